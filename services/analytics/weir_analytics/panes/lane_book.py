"""Where each shard stands in each lane, as its marks say."""

from __future__ import annotations

from dataclasses import dataclass, field

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

from weir_analytics.panes.recovery import Shards


@dataclass
class LaneBook:
    """The lanes of one life of a driver.

    Attributes:
        topic_id: Kafka's id of `weir.events`.
    """

    shards: Shards
    topic_id: str
    _at: dict[int, dict[int, Offsets]] = field(default_factory=dict)

    def open(self, definitions: Definitions) -> list[Lane]:
        """Return the lanes that may have something to count, in order; reads new ones' marks."""
        lanes = counted_lanes(definitions, self.topic_id)
        if unknown := [lane for lane in lanes if lane.offset not in self._at]:
            for lane, marks in zip(unknown, self.shards.read_lane_marks(unknown), strict=True):
                self._at[lane.offset] = places(lane, marks)
        return [lane for lane in lanes if not is_done(lane, self._at[lane.offset])]

    def filled(self, definitions: Definitions) -> list[tuple[Lane, int]]:
        """Return the versions that are filled and do not serve yet, each with its lane."""
        waiting = {lane.offset for lane in self.open(definitions)}
        return [
            (lane, vid)
            for lane in counted_lanes(definitions, self.topic_id)
            if lane.offset not in waiting
            for vid in filled_by(definitions, lane)
            if not definitions.activations[vid].serves
        ]

    def next(self, definitions: Definitions, most: int) -> Slice | None:
        """Return the next slice of all; None if there is nothing to do."""
        for lane in self.open(definitions):
            places = borders(erasures(definitions), self.topic_id)
            return next_slice(lane, self._at[lane.offset], most, places)
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
