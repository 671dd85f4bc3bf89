"""What the load's metric does with every event that counts, by the rule alone.

A part of the recount: it shares no code with Weir (a test holds that). What is sent is in
`load.py`; nothing is taken from there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from account import MINUTE_MS
from disruption.mixed_recount import USES

METRIC = "load"
TYPES = ("load.tick", "load.odd")
# Of its resolutions the coarsest is kept longest.
KEEP_MS = 90 * 86_400_000


def use_of(event: dict[str, Any]) -> str:
    """Return what becomes of an event that counts."""
    if event["type"] not in TYPES:
        return "not_matched"
    if not isinstance(event["data"]["n"], int):
        return "value_quarantined"
    is_kept = event["_received_ms"] - event["_time_ms"] < KEEP_MS
    return "used" if is_kept else "pane_not_kept"


def uses_of(events: Iterable[dict[str, Any]]) -> dict[int, Counter[str]]:
    """Return what becomes of the events of each received minute."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for event in events:
        received_ms = event["_received_ms"]
        found[received_ms - received_ms % MINUTE_MS][use_of(event)] += 1
    return found


def unseen(uses: dict[int, Counter[str]]) -> list[str]:
    """Return what became of no event: nothing is proved of that."""
    return [use for use in USES if not any(tally[use] for tally in uses.values())]
