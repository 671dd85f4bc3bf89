"""Which copies in `weir.quarantine` no replay has looked into, the oldest first. Pure.

Only copies of what nobody could use are looked at, of which all was kept: what one metric could
not use is counted by its next version, from the log, and of a record that was cut nothing can be
made. A copy is looked into by a replay that was done and asked for it. What that has put back has
a note; what it has left was of no use, and whoever asked was told.

Bounded: each partition holds its share of copies, the oldest. What follows is read again once they
are fewer; until then its first one stands for all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weir import names
from weir.definitions.fold import Definitions
from weir.definitions.job import Job, Replay
from weir.definitions.jobs import JobState
from weir.log_place import LogPlace

from weir_analytics.jobs.mended import Headers, Whole, is_wanted, whole_of

MOST_HELD: Final = 20_000


@dataclass(frozen=True)
class DoneReplay:
    """A replay that is done.

    Attributes:
        vid: The job: the offset of its definition's record.
        tenant: Whose.
        wanted: What it asked for.
        high: By partition of `weir.quarantine`, where it ended when the replay began.
        topic_id: Kafka's id of that topic; None: an earlier release did not say it.
        done_ms: When it had ended, by the driver's clock; None: that is not known.
    """

    vid: int
    tenant: str
    wanted: Replay
    high: Mapping[int, int]
    topic_id: str | None = None
    done_ms: int | None = None

    def is_through(self, start: Mapping[int, int]) -> bool:
        """Tell whether all that it has looked into is deleted, by where partitions start."""
        return all(n <= start.get(p, 0) for p, n in self.high.items())

    def has_looked_into(self, one: Unreplayed) -> bool:
        """Tell whether a copy was there, and asked for."""
        if one.offset >= self.high.get(one.partition, 0):
            return False
        if self.topic_id is None and self.done_ms is not None and one.at_ms > self.done_ms:
            return False  # its topic was made anew since: this one has others at the same places
        return is_wanted(self.wanted, self.tenant, one.copy)


def done_replays(fold: Definitions) -> tuple[DoneReplay, ...]:
    """Return the replays that are done, but for those that only said what they would do."""
    found: list[DoneReplay] = []
    for vid, report in fold.jobs.items():
        asked = fold.by_vid(vid)
        model = asked.readable if asked is not None else None
        if asked is None or not isinstance(model, Job) or report.state is not JobState.DONE:
            continue
        if isinstance(model.do, Replay) and not model.do.dry_run:
            high = {int(p): int(n) for p, n in report.facts.get("high", {}).items()}
            topic_id = report.facts.get("quarantine_id")
            done = DoneReplay(vid, asked.tenant, model.do, high, topic_id, report.at_ms)
            found.append(done)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Unreplayed:
    """A copy that no replay has looked into.

    Attributes:
        partition: Of `weir.quarantine`.
        offset: There.
        at_ms: When it was appended.
        copy: What it says, without its bytes.
    """

    partition: int
    offset: int
    at_ms: int
    copy: Whole


class Copies:
    """What was read of one topic `weir.quarantine`, in the order of each partition."""

    def __init__(self, most: int = MOST_HELD) -> None:
        """Begin with nothing read; `most` is how many copies, and notes, are held."""
        self._most = self._share = most
        self._held: dict[str, Unreplayed] = {}
        self._held_in: Counter[int] = Counter()
        # A batch that runs again copies again what may have been put back meanwhile.
        self._noted: dict[str, None] = {}
        # By partition, the first copy that is not held for want of room; the same where what
        # follows it is being read again.
        self._next: dict[int, Unreplayed] = {}
        self._again: dict[int, Unreplayed] = {}
        # By partition, the first offset that was still there when it was looked last.
        self._start: dict[int, int] = {}
        # Those that may have looked into something that is still there. What is held was compared
        # with each of them once.
        self._replays: dict[int, DoneReplay] = {}
        self._replays_of: dict[str, list[DoneReplay]] = {}

    def share(self, partitions: int) -> None:
        """Give each partition its share of the room: the oldest copy of each is held."""
        self._share = max(1, self._most // max(1, partitions))

    def take(self, partition: int, offset: int, at_ms: int, headers: Headers) -> None:
        """Take in a record."""
        if names.HEADER_REPLAYED in headers:
            self._note((headers.get(names.HEADER_ORIGIN) or b"").decode("utf-8", "replace"))
            return
        copy = whole_of(headers, None)
        if copy is None or copy.is_cut or copy.origin in self._noted or copy.origin in self._held:
            return
        if partition in self._next:
            return
        one = Unreplayed(partition, offset, at_ms, copy)
        if self._held_in[partition] >= self._share:
            self._next[partition] = one
            return
        if not _is_looked_into(one, self._replays_of):
            self._held[copy.origin] = one
            self._held_in[partition] += 1

    def drop(self, replays: Sequence[DoneReplay], start: Mapping[int, int]) -> int:
        """Let go of what was looked into, or is deleted; return how many were deleted unseen.

        At least so many: of what is not held only the first one of a partition is known.

        Args:
            replays: All that are done.
            start: By partition, the first offset that is still there.
        """
        known = {one.vid: one for one in replays if not one.is_through(start)}
        new = _by_tenant(one for vid, one in known.items() if vid not in self._replays)
        self._replays, self._replays_of = known, _by_tenant(known.values())
        kept = {o: one for o, one in self._held.items() if not _is_looked_into(one, new)}
        self._held = {o: one for o, one in kept.items() if not _is_deleted(one, start)}
        self._held_in = Counter(one.partition for one in self._held.values())
        passed = self._passed(start)
        ended = _by_tenant(replays) if passed else {}
        self._start = dict(start)
        unseen = sum(not _is_looked_into(one, ended) for one in passed)
        return len(kept) - len(self._held) + unseen

    def _passed(self, start: Mapping[int, int]) -> list[Unreplayed]:
        """Return what stood for what is not held, and is deleted since it was looked last."""
        first = (*self._next.values(), *self._again.values())
        there = [one for one in first if not _is_deleted(one, self._start)]
        return [one for one in there if _is_deleted(one, start)]

    def again(self) -> dict[int, int]:
        """Return from where on to read again, by partition; nothing while there is no need.

        There is once no more than half of its share is held, and copies follow that were not.
        """
        half = self._share // 2
        found = {p: one for p, one in self._next.items() if self._held_in[p] <= half}
        for partition in found:
            del self._next[partition]
        self._again |= found
        return {p: one.offset for p, one in found.items()}

    def all_read(self) -> None:
        """Take in that all was read that was to be read again."""
        self._again = {}

    def oldest(self) -> dict[int, LogPlace]:
        """Return where the oldest copy of each partition is that has one, and since when.

        Where none is held it is the first one that was not: none before that waits. Once that is
        deleted it is what is there first: it was not read yet.
        """
        found: dict[int, LogPlace] = {}
        for one in self._held.values():
            if one.partition not in found or one.offset < found[one.partition].counted:
                found[one.partition] = LogPlace(one.offset, one.at_ms)
        return {p: self._place(one) for p, one in (self._next | self._again).items()} | found

    def _place(self, one: Unreplayed) -> LogPlace:
        if _is_deleted(one, self._start):
            return LogPlace(self._start[one.partition])
        return LogPlace(one.offset, one.at_ms)

    def _note(self, origin: str) -> None:
        held = self._held.pop(origin, None)
        if held is not None:
            self._held_in[held.partition] -= 1
        self._noted[origin] = None
        if len(self._noted) > self._most:
            del self._noted[next(iter(self._noted))]


def _is_deleted(one: Unreplayed, start: Mapping[int, int]) -> bool:
    return one.offset < start.get(one.partition, 0)


def _by_tenant(replays: Iterable[DoneReplay]) -> dict[str, list[DoneReplay]]:
    """Return replays by whose they are, the newest first: mostly it has looked into all before."""
    found: dict[str, list[DoneReplay]] = {}
    for one in sorted(replays, key=lambda one: -one.vid):
        found.setdefault(one.tenant, []).append(one)
    return found


def _is_looked_into(one: Unreplayed, replays: Mapping[str, Sequence[DoneReplay]]) -> bool:
    return any(each.has_looked_into(one) for each in replays.get(one.copy.tenant, ()))
