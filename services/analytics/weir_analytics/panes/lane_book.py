"""Where each shard stands in each lane, as its marks say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from weir.batches import LaneProgress
from weir.commit import Offsets
from weir.definitions.fold import Definitions
from weir.definitions.history import Lane
from weir.erasure import borders, erasures
from weir.lanes import (
    Slice,
    counted_lanes,
    filled_by,
    is_done,
    next_slice,
    places,
    progress_of,
)

from weir_analytics.panes.fold_memo import FoldMemo
from weir_analytics.panes.recovery import Shards


class _Known(NamedTuple):
    """What the definitions say of lanes, wherever shards stand in them.

    Attributes:
        lanes: Those that may still have something to count, in the order of their turns.
        unserved: By lane, the versions that it fills and that do not serve yet.
        borders: Places that no slice may lie on both sides of.
    """

    lanes: list[Lane]
    unserved: dict[int, list[int]]
    borders: list[Offsets]


@dataclass
class LaneBook:
    """The lanes of one life of a driver.

    Attributes:
        topic_id: Kafka's id of `weir.events`.
    """

    shards: Shards
    topic_id: str
    _at: dict[int, dict[int, Offsets]] = field(default_factory=dict)
    _known: FoldMemo[_Known] = field(init=False)

    def __post_init__(self) -> None:
        self._known = FoldMemo(self._look)

    def open(self, definitions: Definitions) -> list[Lane]:
        """Return the lanes that may have something to count, in order; reads new ones' marks."""
        lanes = self._known.of(definitions).lanes
        if unknown := [lane for lane in lanes if lane.offset not in self._at]:
            for lane, marks in zip(unknown, self.shards.read_lane_marks(unknown), strict=True):
                self._at[lane.offset] = places(lane, marks)
        return [lane for lane in lanes if not is_done(lane, self._at[lane.offset])]

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

    def next(self, definitions: Definitions, most: int) -> Slice | None:
        """Return the next slice of all; None if there is nothing to do."""
        for lane in self.open(definitions):
            borders = self._known.of(definitions).borders
            return next_slice(lane, self._at[lane.offset], most, borders)
        return None

    def moved(self, done: Slice) -> None:
        """Take note of a slice that is committed."""
        self._at[done.lane.offset] |= dict.fromkeys(done.shards, done.end)

    def forget(self, lane: Lane) -> None:
        """Read a lane's marks again: they are not what they were."""
        self._at.pop(lane.offset, None)

    def progress(self, definitions: Definitions) -> list[LaneProgress]:
        """Return how far the lanes under way have come, for a batch record."""
        found: list[LaneProgress] = []
        for lane in self.open(definitions):
            found += progress_of(lane, self._at[lane.offset])
        return found

    def _look(self, definitions: Definitions) -> _Known:
        lanes = counted_lanes(definitions, self.topic_id)
        activations = definitions.activations
        unserved = {
            lane.offset: [v for v in filled_by(definitions, lane) if not activations[v].serves]
            for lane in lanes
        }
        return _Known(lanes, unserved, borders(erasures(definitions), self.topic_id))
