"""Which windows a query asks for: range, window and step made definite.

A range "the last hour" is aligned to the epoch, one from an instant to another to its
start, on an edge of the panes that are kept so long ago. What is left out gets the
default: tumbling windows of 1/120 of the range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from weir.definitions.durations import format_duration, parse_duration_ms
from weir.panes import Windows, ceil_to, floor_to, kept_since, last_windows, windows_between
from weir.query.limits import check_multiple, check_points, check_window, refuse
from weir.query.model import Query

DEFAULT_POINTS = 120
LEAST_POINTS = 12
"""So many windows are left where a default step is longer for the sake of a comparison."""
DEFAULT_RANGE = "1h"
# Pane length -> how long its panes are kept, ms.
Keep = Mapping[int, int]


def windows_of(query: Query, keeps: Sequence[Keep], now_ms: int) -> Windows:
    """Return the windows of a query.

    Args:
        query: What is asked.
        keeps: The resolutions of each metric that it reads.
        now_ms: Where "the last hour" ends.

    Raises:
        ProblemError: `query_invalid` if lengths are not whole panes or do not fit the
            kind of window, `query_too_large` if there are too many windows.
    """
    grain_ms = math.lcm(*(min(keep) for keep in keeps))
    step_ms, length_ms = _step_and_length(query, keeps, now_ms)
    written = query.window is not None and query.window.length is not None
    check_multiple("/window/length" if written else "/step", length_ms, grain_ms)
    check_multiple("/step", step_ms, grain_ms)
    check_window(length_ms, step_ms, grain_ms)
    if query.range.from_ms is not None and query.range.to_ms is not None:
        # Instants are typed by hand or read off a cursor: the span grows to whole panes.
        edges = (_kept_grain(query, keeps, now_ms, compared=also) for also in (True, False))
        edge_ms = next((e for e in edges if not (step_ms % e or length_ms % e)), grain_ms)
        from_ms, to_ms = floor_to(query.range.from_ms, edge_ms), ceil_to(query.range.to_ms, edge_ms)
        if query.step is None and step_ms != _asked_length(query):
            to_ms = from_ms + ceil_to(to_ms - from_ms, step_ms)  # nobody chose what would be cut
        return _between((from_ms, to_ms), step_ms, length_ms, grain_ms)
    range_ms = _last_ms(query)
    check_points(-(-range_ms // step_ms), range_ms, grain_ms)
    return last_windows(now_ms, range_ms=range_ms, step_ms=step_ms, length_ms=length_ms)


def _between(span: tuple[int, int], step_ms: int, length_ms: int, grain_ms: int) -> Windows:
    from_ms, to_ms = span
    check_points((to_ms - from_ms) // step_ms, to_ms - from_ms, grain_ms)
    windows = windows_between(from_ms, to_ms, step_ms=step_ms, length_ms=length_ms)
    if windows.count == 0:
        most = f"at most the range, {format_duration(to_ms - from_ms)}"
        refuse("/step", most, format_duration(step_ms), "take a shorter step or a longer range")
    return windows


def _step_and_length(query: Query, keeps: Sequence[Keep], now_ms: int) -> tuple[int, int]:
    window = query.window
    step_ms = parse_duration_ms(query.step) if query.step else None
    length_ms = _asked_length(query)
    if window is None or window.kind == "tumbling":
        if step_ms is not None and length_ms is not None and step_ms != length_ms:
            mend = "leave the step out, or ask for hopping or sliding windows"
            refuse("/step", "the length of tumbling windows", query.step, mend)
        both = length_ms or step_ms or _default_step(query, keeps, now_ms)
        return both, both
    step_ms = step_ms or _default_step(query, keeps, now_ms)
    length_ms = length_ms or step_ms
    if window.kind == "hopping" and step_ms >= length_ms:
        required = f"shorter than the length of hopping windows, {format_duration(length_ms)}"
        mend = "take a shorter step, or ask for tumbling or sliding windows"
        refuse("/step", required, format_duration(step_ms), mend)
    return step_ms, length_ms


def _default_step(query: Query, keeps: Sequence[Keep], now_ms: int) -> int:
    """Return range / 120 rounded up to panes of the finest length kept over the range."""
    if query.range.from_ms is not None and query.range.to_ms is not None:
        range_ms = query.range.to_ms - query.range.from_ms
    else:
        range_ms = _last_ms(query)
    wanted_ms = -(-range_ms // DEFAULT_POINTS)
    step_ms = ceil_to(wanted_ms, _kept_grain(query, keeps, now_ms, compared=True))
    if step_ms * LEAST_POINTS <= range_ms:
        return step_ms
    # Few points of both times say less than many of the one, and a note about the other.
    return ceil_to(wanted_ms, _kept_grain(query, keeps, now_ms, compared=False))


def _kept_grain(query: Query, keeps: Sequence[Keep], now_ms: int, *, compared: bool) -> int:
    """Return the finest length of panes that are kept over all that a query reads, in ms.

    Spans before each window lie earlier than the range, and windows that are compared, which
    are counted in if they are to be.
    """
    # "The last 24 h" is kept by panes of 24 h: its oldest window starts after this.
    begin_ms = query.range.from_ms
    oldest_ms = now_ms - _last_ms(query) + 1 if begin_ms is None else begin_ms
    if compared:
        oldest_ms -= max(map(parse_duration_ms, query.compare), default=0)
    before = (side.before for side in query.sides if side.before is not None)
    oldest_ms -= max(map(parse_duration_ms, before), default=0)
    return math.lcm(*(_finest_kept(keep, oldest_ms, now_ms) for keep in keeps))


def _asked_length(query: Query) -> int | None:
    """Return how long windows are to be, in ms; None if that is left out."""
    window = query.window
    return parse_duration_ms(window.length) if window and window.length else None


def _finest_kept(keep: Keep, oldest_ms: int, now_ms: int) -> int:
    kept = (
        pane_ms
        for pane_ms in sorted(keep)
        if kept_since(now_ms, pane_ms=pane_ms, keep_ms=keep[pane_ms]) <= oldest_ms
    )
    return next(kept, max(keep))


def _last_ms(query: Query) -> int:
    return parse_duration_ms(query.range.last or DEFAULT_RANGE)
