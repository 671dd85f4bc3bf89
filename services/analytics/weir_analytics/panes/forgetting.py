"""Freeing the ids and names of series that no pane holds, in slices between two batches.

Of one shard after the other: the ids that have a name are candidates, those that a pane holds
are taken off, and what is left is deleted. Commits go on between slices; the panes that they
change are noted from the outboxes and looked at again in the slice that deletes. So an id is
never freed that a pane holds, be it that its series came back meanwhile.

A deletion gives the shard another token: every writer forgets the ids that it knows. An id
is not given twice, since the number of the last one stays; a series that comes back after
its id was freed gets a new one.

It happens only where the shard stands at the end of the last batch. A Redis that lost its
tail holds panes as they were before, which nobody noted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weir import names
from weir.clock import Clock
from weir.commit import Fence, Offsets, same_offsets
from weir.series import first_value, series_digest

from weir_analytics.panes.commit_job import OutboxEntry, Pane
from weir_analytics.panes.pane_reader import parse_state
from weir_analytics.panes.recovery import Shards
from weir_analytics.panes.shard_wire import Command
from weir_analytics.panes.versions import LISTED

# What a live batch waits for at most, about.
SLICE_S: Final = 0.1
NAMES_AT_ONCE: Final = 1_000
PANES_AT_ONCE: Final = 20
FREED_AT_ONCE: Final = 5_000
# Candidates held at once, some 100 bytes each; of more the panes are walked several times.
MOST_IDS: Final = 500_000

_END: Final = object()

Idle = dict[int, set[bytes]]
"""By version: ids that no pane was seen with."""


@dataclass
class Forgetting:
    """The walk of one life of a driver; only to be used between two batches.

    Attributes:
        freed: How many ids the walk at hand has freed.
    """

    shards: Shards
    count: int
    fence: Fence
    clock: Clock
    freed: int = 0
    _steps: Iterator[None] | None = None
    _shard: int = 0
    _end: Offsets = field(default_factory=dict)
    _changed: set[Pane] = field(default_factory=set)

    @property
    def is_under_way(self) -> bool:
        """Whether a walk has begun and not ended."""
        return self._steps is not None

    def begin(
        self,
        versions: Collection[int],
        ended: Collection[int],
        may_go: Callable[[int], bool] = lambda _vid: True,
    ) -> None:
        """Begin a walk.

        Args:
            versions: All that may have series.
            ended: Those of them that nobody counts any more: of these nothing stays.
            may_go: Whether that is so of one of which something is there. Most of those that
                ever ended have nothing, and it may take long to tell.
        """
        self.freed = 0
        self._steps = self._walk(list(versions), list(ended), may_go)

    def note(self, outboxes: Mapping[int, Sequence[OutboxEntry]]) -> None:
        """Take note of what commits changed; to be told of every entry of an outbox."""
        if self.is_under_way:
            for entry in outboxes.get(self._shard, ()):
                self._changed.update(entry.changed)

    def go_on(self, end: Offsets) -> None:
        """Do a slice.

        Args:
            end: Where the last batch ended; all its outbox entries have been noted.

        Raises:
            VerdictError: FENCED if a newer driver has a shard; LOST if a shard moved.
        """
        self._end = end
        until_s = self.clock.monotonic_s() + SLICE_S
        while self._steps is not None:
            if next(self._steps, _END) is _END:
                self._steps = None
            if self.clock.monotonic_s() >= until_s:
                return

    def _walk(
        self, versions: Sequence[int], ended: Sequence[int], may_go: Callable[[int], bool]
    ) -> Iterator[None]:
        for shard in range(self.count):
            self._shard = shard
            sizes = self.shards.ask([("HLEN", names.names_key(shard, vid)) for vid in versions])
            named = [vid for vid, size in zip(versions, sizes, strict=True) if size]
            parts = -(-sum(sizes) // MOST_IDS)
            for part in range(parts):
                yield from self._free(shard, named, part, parts)
            self._drop(shard, ended, may_go)
            yield

    def _free(self, shard: int, versions: Sequence[int], part: int, parts: int) -> Iterator[None]:
        """Free the ids of a shard whose number is one of every `parts`."""
        self._changed.clear()
        idle: Idle = {}
        for vid in versions:
            for numbers in self._named(shard, vid):
                found = {n for n in numbers if int.from_bytes(n, "big") % parts == part}
                if found:
                    idle.setdefault(vid, set()).update(found)
                yield
        for keys in self.shards.keys(shard, "p:"):
            held = [key for key in keys if _version_of(key) in idle]
            for at in range(0, len(held), PANES_AT_ONCE):
                self._spare(idle, held[at : at + PANES_AT_ONCE])
                yield
            yield
        while idle and self._release(shard, idle):
            yield

    def _named(self, shard: int, vid: int) -> Iterator[Iterable[bytes]]:
        """Yield the ids that have a name; HSCAN misses none that is there all the time."""
        cursor: bytes | int = 0
        while True:
            scan: Command = ("HSCAN", names.names_key(shard, vid), cursor, "COUNT", NAMES_AT_ONCE)
            cursor, found = self.shards.ask([scan])[0]
            yield found[::2]
            if int(cursor) == 0:
                return

    def _spare(self, idle: Idle, panes: Sequence[bytes]) -> None:
        """Take the ids that panes hold off those that may go."""
        held = [key for key in panes if _version_of(key) in idle]
        found = self.shards.ask([("HKEYS", key) for key in held])
        for vid, numbers in zip(map(_version_of, held), found, strict=True):
            if vid in idle:
                idle[vid].difference_update(numbers)
                if not idle[vid]:
                    del idle[vid]

    def _release(self, shard: int, idle: Idle) -> bool:
        """Delete some ids that nothing holds; False where the shard is not as it should be."""
        reads: list[Command] = [("GET", names.token_key(shard)), ("GET", names.mark_key(shard))]
        token, mark = self.shards.ask(reads)
        state = parse_state(None, mark, None, token)
        if state.live is None or not same_offsets(state.live.end, self._end):
            return False
        self._spare(idle, [names.pane_key(shard, *pane).encode() for pane in self._changed])
        self._changed.clear()
        if idle:
            vid, numbers = _some(idle)
            found = self.shards.ask([("HMGET", names.names_key(shard, vid), *numbers)])[0]
            # One without a name has lost it to an erasure (`redaction.py`), and its id with it.
            known = zip(numbers, found, strict=True)
            texts = {number: text.decode() for number, text in known if text is not None}
            writes: list[Command] = [("HDEL", names.names_key(shard, vid), *numbers)]
            if texts:
                digests = map(series_digest, texts.values())
                writes.append(("HDEL", names.ids_key(shard, vid), *digests))
            if vid in LISTED:
                writes += _unlisted(shard, vid, texts)
            self.shards.change(shard, self.fence, state.token, writes)
            self.freed += len(numbers)
        return True

    def _drop(self, shard: int, ended: Sequence[int], may_go: Callable[[int], bool]) -> None:
        """Delete what is left of ended versions without series: the number of the last id."""
        token, *sizes = self.shards.ask(
            [
                ("GET", names.token_key(shard)),
                *(("HLEN", names.names_key(shard, vid)) for vid in ended),
                *(("EXISTS", names.ids_key(shard, vid)) for vid in ended),
            ]
        )
        named, known = sizes[: len(ended)], sizes[len(ended) :]
        left = (vid for vid, n, ids in zip(ended, named, known, strict=True) if ids and not n)
        gone = [vid for vid in left if may_go(vid)]
        if gone:
            keys = [names.ids_key(shard, vid) for vid in gone]
            text = None if token is None else token.decode()
            self.shards.change(shard, self.fence, text, [("UNLINK", *keys)])


def _unlisted(shard: int, vid: int, texts: Mapping[bytes, str]) -> list[Command]:
    """Return the commands that take ids off the lists of whose they were."""
    found: dict[str, list[bytes]] = {}
    for number, text in texts.items():
        found.setdefault(names.listed_key(shard, vid, first_value(text)), []).append(number)
    return [("SREM", key, *numbers) for key, numbers in found.items()]


def _some(idle: Idle) -> tuple[int, list[bytes]]:
    """Take ids of one version off those that may go."""
    vid, numbers = next(iter(idle.items()))
    taken = [numbers.pop() for _ in range(min(len(numbers), FREED_AT_ONCE))]
    if not numbers:
        del idle[vid]
    return vid, taken


def _version_of(pane_key: bytes) -> int:
    return int(pane_key.split(b":p:", 1)[1].split(b":", 1)[0])
