"""The live protocol (`weir.v1`), without I/O: messages, differences, replay.

What travels is state, not messages: "series k at t is now v". The hub keeps for
each query one `Track`, which knows for each cell of the answer at which revision
it changed last; so a client that saw revision X, whenever that was, gets exactly
what changed since. There is no queue per client, only the number X.
"""

from weir.live.answers import Answer, Correction, Delta, SeriesDelta, SeriesName, apply, same
from weir.live.messages import (
    PROTOCOL,
    Hello,
    Pace,
    Subscribe,
    UnknownOpError,
    Unsubscribe,
    read_message,
)
from weir.live.track import HISTORY_MS, Track

__all__ = [
    "HISTORY_MS",
    "PROTOCOL",
    "Answer",
    "Correction",
    "Delta",
    "Hello",
    "Pace",
    "SeriesDelta",
    "SeriesName",
    "Subscribe",
    "Track",
    "UnknownOpError",
    "Unsubscribe",
    "apply",
    "read_message",
    "same",
]
