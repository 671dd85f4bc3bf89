"""Which copies in `weir.quarantine` no replay has looked into, the oldest first. Pure.

Only copies of what nobody could use are looked at, of which all was kept: what one metric could
not use is counted by its next version, from the log, and of a record that was cut nothing can be
made. A copy is looked into by a replay that was done and asked for it. What that has put back has
a note; what it has left was of no use, and whoever asked was told.

Bounded: of more copies than that the oldest are held, and what follows is read again once they
are fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weir import names
from weir.definitions.fold import Definitions
from weir.definitions.job import Job, Replay
from weir.definitions.jobs import JobState

from weir_analytics.jobs.mended import Headers, Whole, is_wanted, whole_of

MOST_HELD: Final = 20_000


@dataclass(frozen=True)
class DoneReplay:
    """A replay that is done.

    Attributes:
        tenant: Whose.
        wanted: What it asked for.
        high: By partition of `weir.quarantine`, where it ended when the replay began.
    """

    tenant: str
    wanted: Replay
    high: Mapping[int, int]


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
            found.append(DoneReplay(asked.tenant, model.do, high))
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
    """What was read of `weir.quarantine`, in the order of each partition."""

    def __init__(self, most: int = MOST_HELD) -> None:
        """Begin with nothing read; `most` is how many copies, and notes, are held."""
        self._most = most
        self._held: dict[str, Unreplayed] = {}
        # A batch that runs again copies again what may have been put back meanwhile.
        self._noted: dict[str, None] = {}
        # By partition, the first copy that is not held for want of room.
        self._next: dict[int, int] = {}

    def take(self, partition: int, offset: int, at_ms: int, headers: Headers) -> None:
        """Take in a record."""
        if names.HEADER_REPLAYED in headers:
            self._note((headers.get(names.HEADER_ORIGIN) or b"").decode("utf-8", "replace"))
            return
        copy = whole_of(headers, None)
        if copy is None or copy.is_cut or copy.origin in self._noted or copy.origin in self._held:
            return
        if len(self._held) >= self._most or partition in self._next:
            self._next.setdefault(partition, offset)
            return
        self._held[copy.origin] = Unreplayed(partition, offset, at_ms, copy)

    def drop(self, replays: Sequence[DoneReplay], start: Mapping[int, int]) -> int:
        """Let go of what was looked into, or is deleted; return how many were deleted unseen.

        Args:
            replays: Those that are done.
            start: By partition, the first offset that is still there.
        """
        kept = {o: one for o, one in self._held.items() if not _is_looked_into(one, replays)}
        self._held = {
            o: one for o, one in kept.items() if one.offset >= start.get(one.partition, 0)
        }
        return len(kept) - len(self._held)

    def again(self) -> dict[int, int]:
        """Return from where on to read again, by partition; nothing while there is no need.

        There is once no more than half of what may be held is, and copies follow that were not.
        """
        if not self._next or len(self._held) > self._most // 2:
            return {}
        again, self._next = self._next, {}
        return again

    def oldest(self) -> dict[int, Unreplayed]:
        """Return the oldest copy of each partition that has one."""
        found: dict[int, Unreplayed] = {}
        for one in self._held.values():
            if one.partition not in found or one.offset < found[one.partition].offset:
                found[one.partition] = one
        return found

    def _note(self, origin: str) -> None:
        self._held.pop(origin, None)
        self._noted[origin] = None
        if len(self._noted) > self._most:
            del self._noted[next(iter(self._noted))]


def _is_looked_into(one: Unreplayed, replays: Iterable[DoneReplay]) -> bool:
    return any(
        one.offset < replay.high.get(one.partition, 0)
        and is_wanted(replay.wanted, replay.tenant, one.copy)
        for replay in replays
    )
