"""Which panes have changed, in bounded room: one by one, and beyond a bound by spans. Pure.

A batch may change as many panes as it has events: devices that were away send what they
have, and every minute of days changes. Whoever tells of that, or takes note of it, lists
panes up to a bound. Beyond it the version and resolution with the most of them is told by
its first and last pane, and everything between, in every shard, may have changed. Spans are
as many as there are resolutions of versions, whatever events come.

Of a metric to which nothing late comes the span is as exact as the list: the newest pane,
or two. Where it says too much, panes are read again that are as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from typing import Final, NamedTuple, TypeVar

MOST_LISTED: Final = 500
"""Panes that a batch record lists. With 22 bytes each, and at most four batches a second that
are kept for 15 minutes, lists take 40 MB of Redis, an eighth of the least that the chart gives it.
Fifty metrics to which nothing late comes change fewer."""
MOST_HELD: Final = 20_000
"""Panes that a reader lists which waits to look: some 4 MB."""
SHORT: Final = 8
"""Panes of a span that readers list: the newest ones, where nothing late came."""

PaneKey = tuple[int, int, int]
"""Version id, pane length in seconds, pane start in seconds."""
_Pane = TypeVar("_Pane", bound=tuple[int, ...])


class PaneSpan(NamedTuple):
    """Panes of one version and resolution, in all shards, each of which may have changed.

    Attributes:
        vid: The version.
        res_s: The resolution: how long its panes are.
        first_s: Start of the first.
        last_s: Start of the last.
    """

    vid: int
    res_s: int
    first_s: int
    last_s: int

    def over(self, other: PaneSpan) -> PaneSpan:
        """Return the span that holds another one of its version and resolution as well."""
        first_s, last_s = min(self.first_s, other.first_s), max(self.last_s, other.last_s)
        return self._replace(first_s=first_s, last_s=last_s)

    def holds(self, pane: tuple[int, ...]) -> bool:
        """Tell whether a pane, by its key or with its shard, lies in it."""
        return pane[:2] == self[:2] and self.first_s <= pane[2] <= self.last_s

    def starts(self) -> range:
        """Return the starts of its panes."""
        return range(self.first_s, self.last_s + 1, self.res_s)

    def panes(self) -> Iterator[PaneKey]:
        """Yield the keys of its panes."""
        return ((self.vid, self.res_s, start_s) for start_s in self.starts())


def folded(panes: Collection[_Pane], most: int) -> tuple[list[_Pane], list[PaneSpan]]:
    """Return panes as a list that has a bound, and spans of those that are not on it.

    Args:
        panes: By their key, or with something behind it.
        most: How many are listed at most.
    """
    of_span: dict[tuple[int, ...], list[_Pane]] = {}
    for pane in panes:
        of_span.setdefault(pane[:2], []).append(pane)
    spans, left = [], len(panes)
    # The most of them first: the fewest spans, and the metric that others do not pay for.
    for place in sorted(of_span, key=lambda place: (-len(of_span[place]), place)):
        if left <= most:
            break
        gone = of_span.pop(place)
        left -= len(gone)
        starts = [pane[2] for pane in gone]
        spans.append(PaneSpan(place[0], place[1], min(starts), max(starts)))
    return [pane for kept in of_span.values() for pane in kept], spans


class ChangedPanes:
    """What has changed since somebody looked, shards together.

    Attributes:
        listed: Panes that changed, and those of short spans.
        spans: By version and resolution, panes that may have changed as well.
    """

    def __init__(self, panes: Iterable[PaneKey] = (), spans: Iterable[PaneSpan] = ()) -> None:
        self.listed: set[PaneKey] = set()
        self.spans: dict[tuple[int, int], PaneSpan] = {}
        self._take(panes, spans)

    def __bool__(self) -> bool:
        """Tell whether anything may have changed."""
        return bool(self.listed or self.spans)

    def add(self, other: ChangedPanes) -> None:
        """Take note of what else has changed; beyond `MOST_HELD` by spans."""
        self._take(other.listed, other.spans.values())

    def __contains__(self, pane: tuple[int, ...]) -> bool:
        """Tell whether a pane, by its key or with its shard, may have changed."""
        return pane[:3] in self.listed or self._may_span(pane)

    def among(self, keys: Set[PaneKey]) -> set[PaneKey]:
        """Return those of some panes that may have changed."""
        found = {key for key in self.listed if key in keys}
        if self.spans:
            found.update(key for key in keys if self._may_span(key))
        return found

    def touches(self, keys: Set[PaneKey]) -> bool:
        """Tell whether any of some panes may have changed; as long as the shorter side takes."""
        return not self.listed.isdisjoint(keys) or any(
            any(pane in keys for pane in span.panes())
            if len(span.starts()) < len(keys)
            else any(span.holds(key) for key in keys)
            for span in self.spans.values()
        )

    def of(self, vids: Collection[int]) -> ChangedPanes:
        """Return what changed of some versions."""
        listed = (key for key in self.listed if key[0] in vids)
        return ChangedPanes(listed, (span for span in self.spans.values() if span.vid in vids))

    def is_before(self, end_s: int) -> bool:
        """Tell whether a pane that starts before an instant may have changed."""
        return any(start_s < end_s for _, _, start_s in self.listed) or any(
            span.first_s < end_s for span in self.spans.values()
        )

    def _take(self, panes: Iterable[PaneKey], spans: Iterable[PaneSpan]) -> None:
        self.listed.update(panes)
        for span in spans:
            self._take_span(span)
        if len(self.listed) > MOST_HELD:
            # To half of it, or the next few panes would be sorted again.
            kept, more = folded(self.listed, MOST_HELD // 2)
            self.listed = set(kept)
            for span in more:
                self._hold(span)

    def _take_span(self, span: PaneSpan) -> None:
        if len(span.starts()) <= SHORT:
            self.listed.update(span.panes())
        else:
            self._hold(span)

    def _hold(self, span: PaneSpan) -> None:
        place = span.vid, span.res_s
        self.spans[place] = span.over(self.spans.get(place, span))

    def _may_span(self, pane: tuple[int, ...]) -> bool:
        span = self.spans.get((pane[0], pane[1]))
        return span is not None and span.holds(pane)
