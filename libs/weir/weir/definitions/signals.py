"""Signals: what a rule can watch of Weir itself, beside the metrics that teams define.

A rule names one as its metric, `weir.stalled`. Signals are read from the parts' heartbeats
and from the accounts of batches at one moment after the other, by the clock; nothing of
them is stored, and they change no verdict on data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PREFIX: Final = "weir."
EVERY_MS: Final = 10_000
"""From one reading to the next: the window of every rule on a signal."""
AGGREGATE: Final = "last"


@dataclass(frozen=True, slots=True)
class Signal:
    """One number about Weir.

    Attributes:
        says: What the number is, in the words of a message: "standing still for 75 s".
        unit: Of the number.
        by: Its dimensions: one alert for each value of them.
    """

    says: str
    unit: str
    by: tuple[str, ...] = ()


SIGNALS: Final = {
    "weir.stalled": Signal("counting has stood still for", "s"),
    "weir.lag": Signal("numbers are behind by", "s"),
    "weir.ledger": Signal("not accounted for:", "events"),
    "weir.quarantine": Signal("put into quarantine:", "%"),
    "weir.memory": Signal("memory of Redis in use:", "%"),
    "weir.log": Signal("time until events are deleted uncounted, used up:", "%"),
    "weir.quota": Signal("quotas, of what can be counted:", "%"),
    "weir.channel": Signal("messages fail since", "s", ("channel",)),
    "weir.rules": Signal("not evaluated:", "rules"),
}
"""By the name that rules use.

- `weir.stalled`: since processed-through last went on, seconds.
- `weir.lag`: processed-through behind the clock, seconds.
- `weir.ledger`: events read of the log and not found in the ledger, or the reverse, in the
  closed minutes of the last quarter of an hour.
- `weir.quarantine`: events put into quarantine, of all in the last ten closed minutes.
- `weir.memory`: memory that Redis uses, of what it may use.
- `weir.log`: of the time for which the log keeps an event, what has passed for the first that is
  not counted, or not counted again, and that numbers need: at 100 it is deleted; 0 where the log
  keeps events for ever.
- `weir.quota`: what all tenants may send together, of what the engine was seen to count in the
  same time; 0 where no quota is set.
- `weir.channel`: since when nothing has been delivered on a channel although it was tried;
  0 for one that works.
- `weir.rules`: rules of the tenant that cannot be evaluated.
"""
