"""When a soak's alarm must fire, by what was sent, and when its receiver was told that it did.

Weir has no part in what is expected: the windows of the rule are counted here, over the times of
the load's own events. No I/O.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

# Of the rule in `scene.py`.
WINDOW_S, STEP_S, ABOVE, RECOVER = 5, 1, 3, 1
# An event that came late moves the end of what was told by the window that holds it.
OFF_MS = 2_000


class Episode(NamedTuple):
    """A time in which the alarm fires, in ms of event time.

    Attributes:
        from_ms: End of the first window beyond the limit.
        to_ms: End of the first one that is back; None: it still fires.
    """

    from_ms: int
    to_ms: int | None


def expected(batches: Iterable[tuple[int, int]]) -> list[Episode]:
    """Return when the alarm fires, by every window from the first event on.

    Args:
        batches: Time of their events, ms, and how many, of all that were acknowledged.
    """
    seconds: Counter[int] = Counter()
    for at_ms, events in batches:
        seconds[at_ms // 1000] += events
    if not seconds:
        return []
    found: list[Episode] = []
    begin: int | None = None
    for end in range(min(seconds) + 1, max(seconds) + WINDOW_S + 2, STEP_S):
        count = sum(seconds[second] for second in range(end - WINDOW_S, end))
        if begin is None and count > ABOVE:
            begin = end
        elif begin is not None and count <= RECOVER:
            found.append(Episode(begin * 1000, end * 1000))
            begin = None
    return found


def told(bodies: Iterable[Mapping[str, Any]]) -> list[Episode]:
    """Return when a receiver was told that the alarm fired, by the last word on each alert.

    Args:
        bodies: What it got, in order; a message may come again. What was withdrawn never fired.
            An amendment may come after the end, which it leaves as it is: of a value.
    """
    found: dict[str, Episode | None] = {}
    seen: set[str] = set()
    for body in bodies:
        if body["id"] in seen:
            continue
        seen.add(body["id"])
        key, kind = body["dedup_key"], body["kind"]
        known = found.get(key)
        if kind == "withdrawn":
            found[key] = None
        elif kind == "amended" and known is not None:
            found[key] = known._replace(from_ms=body["since_ms"])
        else:
            found[key] = Episode(body["since_ms"], body["at_ms"] if kind == "resolved" else None)
    return sorted(one for one in found.values() if one is not None)


def unlike(wanted: Sequence[Episode], found: Sequence[Episode]) -> list[str]:
    """Return what was not told as it was, and what was told and never was.

    The alarm is younger than the load: when the first episode began is not compared.
    """
    begun = list(wanted)
    if begun and found and found[0].from_ms >= begun[0].from_ms:
        begun[0] = begun[0]._replace(from_ms=found[0].from_ms)
    missing = [one for one in begun if not any(_is_like(one, other) for other in found)]
    extra = [one for one in found if not any(_is_like(one, other) for other in begun)]
    return [f"not told: {one}" for one in missing] + [f"never was: {one}" for one in extra]


def _is_like(one: Episode, other: Episode) -> bool:
    ends = [math.inf if end is None else end for end in (one.to_ms, other.to_ms)]
    if abs(one.from_ms - other.from_ms) > OFF_MS:
        return False
    return ends[0] == ends[1] or abs(ends[0] - ends[1]) <= OFF_MS
