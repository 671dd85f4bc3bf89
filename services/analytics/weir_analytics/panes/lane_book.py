"""Where each shard stands in each lane, as its marks say."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import structlog
from weir.batches import LaneProgress
from weir.commit import Offsets, same_offsets
from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.definitions.history import Lane
from weir.erasure import ErasuresMemo
from weir.event_time import LEAD_LIMIT_MS
from weir.lanes import (
    Need,
    Slice,
    counted_lanes,
    filled_by,
    is_done,
    needs,
    next_slice,
    places,
    progress_of,
)

from weir_analytics.panes.commit_job import Untold
from weir_analytics.panes.lane_waits import LaneWaits
from weir_analytics.panes.recovery import Shards

LOG = structlog.get_logger()

# A turn of one slice would be spent on changing from one tenant's plan to the next one's.
TURN_SLICES: Final = 8


class _Known(NamedTuple):
    """What the definitions say of lanes, wherever shards stand in them.

    Attributes:
        lanes: Those that may still have something to count.
        needs: By lane, what it is counted for.
        tenants: By lane, whose versions it fills; nobody's for a rebuild.
        unserved: By lane, the versions that it fills and that do not serve yet.
    """

    lanes: list[Lane]
    needs: dict[int, Need]
    tenants: dict[int, frozenset[str]]
    unserved: dict[int, list[int]]


@dataclass
class LaneBook:
    """The lanes of one life of a driver.

    Of those with the same need, tenants take turns: who edits all day delays another by a turn.

    A Redis that fails over may lose the last commits of a shard. Whoever commits next in the same
    lane finds that out, but nobody does once a lane has come to its end. So that a lane is done is
    believed only of marks that were read again after a live commit: what is lost of the lane then
    is lost with that commit, and the next live one finds it out.

    Attributes:
        topic_id: Kafka's id of `weir.events`.
        waits: The lanes that wait, and why.
        refused: The lanes that are set aside for as long as this life lasts.
    """

    shards: Shards
    topic_id: str
    waits: LaneWaits = field(default_factory=LaneWaits)
    refused: set[int] = field(default_factory=set)
    _at: dict[int, dict[int, Offsets]] = field(default_factory=dict)
    _known: FoldMemo[_Known] = field(init=False)
    _erasures: ErasuresMemo = field(init=False)
    # Lanes that moved in this life, and of which no live commit says that their end is kept.
    _unsure: set[int] = field(default_factory=set)
    _last_turn: dict[str, int] = field(default_factory=dict)
    _turns: int = 0
    _slices: int = 0

    def __post_init__(self) -> None:
        self._known = FoldMemo(self._look)
        self._erasures = ErasuresMemo(self.topic_id)

    def open(self, definitions: Definitions) -> list[Lane]:
        """Return the lanes that may have something to count, in order; reads new ones' marks."""
        lanes = self._known.of(definitions).lanes
        if unknown := [lane for lane in lanes if lane.offset not in self._at]:
            for lane, marks in zip(unknown, self.shards.read_lane_marks(unknown), strict=True):
                self._at[lane.offset] = places(lane, marks)
        return [lane for lane in lanes if lane.offset in self._unsure or self._goes_on(lane)]

    def doubt(self, told: Iterable[int]) -> None:
        """Let lanes that readers were told to be under way be so until a live commit confirms them.

        The life before may have counted the last slice of one, and have ended before any record
        told that it is done: readers have seen none of its panes.

        Args:
            told: Their names, by the newest batch record.
        """
        self._unsure.update(told)

    def confirm(self, definitions: Definitions) -> None:
        """Read again where lanes stand that have come to their end; one that stands behind goes on.

        To be called once a live batch has written to every shard since their last slices. Lanes
        whose versions do not serve yet are read each time, until their takeover is recorded.

        Raises:
            RedisError: If Redis does not answer.
        """
        lanes = [
            lane
            for lane in self.open(definitions)
            if lane.offset in self._unsure and not self._goes_on(lane)
        ]
        lanes += {lane.offset: lane for lane, _vid in self.filled(definitions)}.values()
        for lane, marks in zip(lanes, self.shards.read_lane_marks(lanes), strict=True):
            self._at[lane.offset] = places(lane, marks)
            self._unsure.discard(lane.offset)
            if self._goes_on(lane):
                shards = [n for n, end in self._at[lane.offset].items() if end != lane.end]
                LOG.warning("lane_went_back", lane=lane.offset, kind=lane.kind, shards=shards)

    def filled(self, definitions: Definitions) -> list[tuple[Lane, int]]:
        """Return the versions that are filled and do not serve yet, each with its lane."""
        known = self._known.of(definitions)
        waiting = {lane.offset for lane in self.open(definitions)}
        return [
            (lane, vid)
            for lane in known.lanes
            if lane.offset not in waiting
            for vid in known.unserved[lane.offset]
        ]

    def next(
        self,
        definitions: Definitions,
        most: int,
        first: Mapping[int, int] | None = None,
        without: Container[int] = (),
    ) -> Slice | None:
        """Return the next slice of all, from the same place until it `moved`; None: all are done.

        Args:
            definitions: The fold.
            most: About how many records at most.
            first: What the log begins with.
            without: Lanes that are left out.
        """
        known = self._known.of(definitions)
        lanes = [
            lane
            for lane in self.open(definitions)
            if lane.offset not in without and self._goes_on(lane)
        ]
        if not lanes:
            return None
        lane = min(lanes, key=lambda one: (known.needs[one.offset], self._waits(known, one)))
        return self._next_of(lane, definitions, most, first)

    def beside(
        self,
        found: Slice,
        definitions: Definitions,
        most: int,
        first: Mapping[int, int] | None = None,
    ) -> list[Slice]:
        """Return the next slice of each other rebuild: no two lanes count the same.

        Args:
            found: What is counted anyway, of a rebuild.
            definitions: The fold.
            most: About how many records each has at most.
            first: What the log begins with.
        """
        others = (
            self._next_of(lane, definitions, most, first)
            for lane in self.open(definitions)
            if lane.kind == "rebuild" and lane.offset != found.lane.offset
        )
        return [one for one in others if one is not None]

    def moved(self, done: Slice, definitions: Definitions) -> None:
        """Take note of a slice that is committed."""
        self._at[done.lane.offset] |= dict.fromkeys(done.shards, done.end)
        self._unsure.add(done.lane.offset)
        self._slices += 1
        if self._slices % TURN_SLICES == 0:
            self._turns += 1
            tenants = self._known.of(definitions).tenants.get(done.lane.offset, frozenset())
            self._last_turn |= dict.fromkeys(tenants, self._turns)

    def forget(self, lane: Lane) -> None:
        """Read a lane's marks again: they are not what they were."""
        self._at.pop(lane.offset, None)
        self._unsure.add(lane.offset)

    def progress(self, definitions: Definitions) -> list[LaneProgress]:
        """Return how far the lanes under way have come, for a batch record."""
        found: list[LaneProgress] = []
        whys = self.waits.whys
        for lane in self.open(definitions):
            found += progress_of(lane, self._at[lane.offset], whys.get(lane.offset))
        return found

    def untold(self, definitions: Definitions) -> tuple[Untold, ...]:
        """Return the panes that are counted again, or for the first time: nobody has seen them.

        Until a lane is done for sure. Of a rebuild those that its events may lie in, with what is
        dated ahead; of a backfill those of its versions in the shards that it is not done in.
        """
        found: list[Untold] = []
        for lane in self.open(definitions):
            at = self._at[lane.offset]
            if lane.kind == "rebuild":
                found += (Untold(n, None, lane.until_ms + LEAD_LIMIT_MS) for n in at)
                continue
            is_unsure = not self._goes_on(lane)
            shards = [n for n, end in at.items() if is_unsure or not same_offsets(end, lane.end)]
            vids = filled_by(definitions, lane)
            found += (Untold(shard, vid) for shard in shards for vid in vids)
        return tuple(found)

    def needed(self, definitions: Definitions) -> list[Lane]:
        """Return the lanes that have something to count that numbers have held: all but new ones.

        Those are counted first.
        """
        needs = self._known.of(definitions).needs
        lanes = [lane for lane in self.open(definitions) if self._goes_on(lane)]
        return [lane for lane in lanes if needs[lane.offset] is not Need.NEW]

    def left_out(self, lanes: Iterable[Lane]) -> list[Lane]:
        """Return those that have no turn coming: set aside, or waiting after a failure.

        Also while one of them is tried again: until that goes well nobody knows whether it does.
        """
        out = self.refused | self.waits.whys.keys()
        return [lane for lane in lanes if lane.offset in out]

    def standing(self, lanes: Iterable[Lane]) -> Iterator[tuple[Lane, Offsets]]:
        """Return some open lanes, each once for each of its shards, with how far that is."""
        return ((lane, at) for lane in lanes for at in self._at[lane.offset].values())

    def _goes_on(self, lane: Lane) -> bool:
        """Tell whether a lane has something to count, as far as is known."""
        return not is_done(lane, self._at[lane.offset])

    def _next_of(
        self, lane: Lane, definitions: Definitions, most: int, first: Mapping[int, int] | None
    ) -> Slice | None:
        """Return the next slice of one lane.

        The account of a rebuild is what it was, of all tenants, so each of its slices lies on one
        side of each erasure. A backfill has no account and leaves out everybody who was ever
        erased, wherever in the log: who erases all day cuts nobody's into pieces.
        """
        is_cut = lane.kind == "rebuild"
        borders = self._erasures.of(definitions).borders if is_cut else None
        return next_slice(lane, self._at[lane.offset], most, borders, first)

    def _waits(self, known: _Known, lane: Lane) -> int:
        """Return since which turn a lane's tenants wait; the longest of them."""
        tenants = known.tenants[lane.offset]
        return min((self._last_turn.get(tenant, 0) for tenant in tenants), default=0)

    def _look(self, definitions: Definitions) -> _Known:
        lanes = counted_lanes(definitions, self.topic_id)
        activations = definitions.activations
        filled = {lane.offset: filled_by(definitions, lane) for lane in lanes}
        return _Known(
            lanes=lanes,
            needs=needs(definitions, lanes),
            tenants={at: frozenset(activations[v].tenant for v in f) for at, f in filled.items()},
            unserved={at: [v for v in f if not activations[v].serves] for at, f in filled.items()},
        )
