"""A log that lost its end, and was gone on with: what was said of the offsets that are gone. Pure.

Kafka may come back from an older disk: the log has the same id and ends earlier, and what comes
gets the offsets of what is gone. What was said to hold from some place behind the end on, as an
erasure, would hold for none of that until the log is as long again. So the start record of the
driver that goes on says where the log ended. All that was said before of places behind it stands
there from then on: for everybody who reads the records in their order, whenever that is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weir.commit import Offsets, furthest
from weir.definitions.history import Activation, Horizons, Lane
from weir.definitions.jobs import JobReport

if TYPE_CHECKING:
    from weir.definitions.fold import Definitions


@dataclass(frozen=True, slots=True)
class CutShort:
    """Where a log ended when it was gone on with.

    Attributes:
        epoch: The epoch that began then.
        topic_id: Kafka's id of the log.
        end: Partition -> offset; a partition that is missing ended at 0.
    """

    epoch: int
    topic_id: str
    end: Offsets

    def place(self, said: Offsets) -> dict[int, int]:
        """Return where a place stands."""
        return {p: min(n, self.end.get(p, 0)) for p, n in said.items()}

    def activation(self, said: Activation) -> Activation:
        """Return from where on a version is counted, and takes over."""
        if said.is_of(self.topic_id):
            finish = None if said.finish is None else self.place(said.finish)
            said = replace(said, begin=self.place(said.begin), finish=finish)
        taken = said.takeover
        if taken is not None and taken.is_of(self.topic_id):
            said = replace(said, takeover=replace(taken, offsets=self.place(taken.offsets)))
        return said

    def lane(self, said: Lane) -> Lane:
        """Return a lane that counts none of what is gone."""
        if said.topic_id != self.topic_id:
            return said
        return replace(said, start=self.place(said.start), end=self.place(said.end))

    def horizons(self, said: Horizons) -> Horizons:
        """Return horizons as they hold."""
        is_here = said.topic_id == self.topic_id
        return replace(said, begin=self.place(said.begin)) if is_here else said

    def report(self, said: JobReport) -> JobReport:
        """Return what a driver goes on with of a job: an erasure, from where it holds."""
        offsets = _places_in(said.facts, self.topic_id)
        if offsets is None:
            return said
        there = {str(p): n for p, n in self.place(offsets).items()}
        return replace(said, facts={**said.facts, "offsets": there})


def furthest_said(definitions: Definitions, topic_id: str) -> dict[int, int]:
    """Return by partition the furthest place of a log that somebody has said something of."""
    return furthest(list(_said(definitions, topic_id)))


def _said(definitions: Definitions, topic_id: str) -> Iterator[Offsets]:
    for one in definitions.activations.values():
        if one.topic_id == topic_id:
            yield from (one.begin, one.finish or {})
        if one.takeover is not None and one.takeover.topic_id == topic_id:
            yield one.takeover.offsets
    yield from (lane.end for lane in definitions.lanes.values() if lane.topic_id == topic_id)
    yield from (one.begin for one in definitions.horizons if one.topic_id == topic_id)
    for report in definitions.jobs.values():
        yield _places_in(report.facts, topic_id) or {}


def _places_in(facts: Mapping[str, Any], topic_id: str) -> dict[int, int] | None:
    """Return the offsets of a log that a job goes on with; None if it does with none."""
    told = facts.get("offsets")
    if facts.get("topic_id") != topic_id or not isinstance(told, Mapping):
        return None
    return {int(p): int(n) for p, n in told.items()}
