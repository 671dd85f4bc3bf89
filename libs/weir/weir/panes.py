"""Panes: the fixed slices of event time that everything counted is kept in.

A pane is the smallest span of event time that is stored. Panes of one length lie end
to end from the epoch on, so a window is never counted from events: it is the merge of
the panes it covers, and a chart changes its window without anything being recounted.

Apache Beam calls one firing of a window's trigger a pane; that is not meant here.

Instants are milliseconds since the epoch, UTC, and all of them come in as arguments. A
window is named by its END: the window at `t` with length L is [t - L, t).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace


def floor_to(at_ms: int, grain_ms: int) -> int:
    """Return the last edge of a grid from the epoch that is not after an instant.

    Raises:
        ValueError: If `grain_ms` is not positive.
    """
    if grain_ms <= 0:
        msg = f"pane length must be positive, got {grain_ms} ms"
        raise ValueError(msg)
    return at_ms - at_ms % grain_ms


def ceil_to(at_ms: int, grain_ms: int) -> int:
    """Return the first edge of a grid from the epoch that is not before an instant.

    Raises:
        ValueError: If `grain_ms` is not positive.
    """
    return -floor_to(-at_ms, grain_ms)


@dataclass(frozen=True, slots=True)
class Windows:
    """A row of windows of equal length: tumbling, hopping and sliding differ only here.

    Attributes:
        first_end_ms: End of the oldest window.
        step_ms: From one end to the next: the length itself (tumbling), less (hopping),
            or anything (sliding).
        length_ms: How long each window is.
        count: How many there are.
    """

    first_end_ms: int
    step_ms: int
    length_ms: int
    count: int

    @property
    def ends_ms(self) -> range:
        """Return the end of every window, oldest first: the `t_ms` of an answer."""
        return range(self.first_end_ms, self.last_end_ms + self.step_ms, self.step_ms)

    @property
    def last_end_ms(self) -> int:
        """Return the end of the newest window."""
        return self.first_end_ms + (self.count - 1) * self.step_ms

    @property
    def start_ms(self) -> int:
        """Return where the oldest window begins."""
        return self.first_end_ms - self.length_ms

    def earlier(self, by_ms: int) -> Windows:
        """Return the same windows, moved back in time."""
        return replace(self, first_end_ms=self.first_end_ms - by_ms)

    def pane_starts(self, pane_ms: int, since_ms: int | None = None) -> list[int]:
        """Return the start of every pane that some window covers, each once, in order.

        Args:
            pane_ms: How long a pane is.
            since_ms: Panes that start earlier are left out; None for all.
        """
        return [start for run in self._runs(pane_ms, since_ms) for start in run]

    def pane_count(self, pane_ms: int, since_ms: int | None = None) -> int:
        """Return how many `pane_starts` there are, without making them."""
        # Not `len`, which fails above 2^63 steps.
        return sum(-(-(run.stop - run.start) // pane_ms) for run in self._runs(pane_ms, since_ms))

    def _runs(self, pane_ms: int, since_ms: int | None) -> Iterator[range]:
        """Return the panes as runs without a gap: one if windows overlap or meet."""
        spans: Iterable[tuple[int, int]] = [(self.start_ms, self.last_end_ms)]
        if self.step_ms > self.length_ms:
            spans = ((end - self.length_ms, end) for end in self.ends_ms)
        for start_ms, end_ms in spans:
            skipped_ms = 0 if since_ms is None else ceil_to(max(0, since_ms - start_ms), pane_ms)
            if start_ms + skipped_ms < end_ms:
                yield range(start_ms + skipped_ms, end_ms, pane_ms)


def last_windows(now_ms: int, *, range_ms: int, step_ms: int, length_ms: int) -> Windows:
    """Return the windows of "the last hour": aligned to the epoch, up to the open one.

    The newest window is the one that `now_ms` falls in, so that an event is seen before
    its window has ended.
    """
    last_end_ms = floor_to(now_ms, step_ms) + step_ms
    count = max(1, -(-range_ms // step_ms))
    return Windows(last_end_ms - (count - 1) * step_ms, step_ms, length_ms, count)


def windows_between(from_ms: int, to_ms: int, *, step_ms: int, length_ms: int) -> Windows:
    """Return the windows that end within a span, aligned to its start.

    There may be none, if the span is shorter than a step.
    """
    return Windows(from_ms + step_ms, step_ms, length_ms, max(0, (to_ms - from_ms) // step_ms))


def nearest_multiples(length_ms: int, grain_ms: int) -> tuple[int, int]:
    """Return the whole multiples just below and just above a length; never 0."""
    below = max(grain_ms, floor_to(length_ms, grain_ms))
    return below, max(below, ceil_to(length_ms, grain_ms))


def kept_since(now_ms: int, *, pane_ms: int, keep_ms: int) -> int:
    """Return the start of the oldest pane that is still kept, `keep_ms` after its end."""
    return floor_to(now_ms - keep_ms, pane_ms)


def resolution_for(windows: Windows, since: Mapping[int, int]) -> int | None:
    """Return the pane length to read windows from; None if no kept one divides them.

    Of those that are kept back to the oldest window it is the longest: fewer panes are
    read, and each kept resolution holds the same totals. If none reaches back so far it
    is the one that reaches farthest, or a longer one that reaches as far but for the edge of
    its pane, and the oldest windows are unknown.

    Args:
        windows: What is asked for; `first_end_ms` decides the alignment.
        since: Pane length -> start of the oldest pane from which on all are kept, both in ms.
    """
    edges = (windows.length_ms, windows.step_ms, windows.first_end_ms)
    fitting = [pane_ms for pane_ms in since if not any(edge % pane_ms for edge in edges)]
    whole = [pane_ms for pane_ms in fitting if since[pane_ms] <= windows.start_ms]
    if whole:
        return max(whole)
    least_ms = min((since[pane_ms] for pane_ms in fitting), default=0)
    return max((p for p in fitting if since[p] - least_ms < p), default=None)
