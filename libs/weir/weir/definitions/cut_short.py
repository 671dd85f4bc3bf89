"""A log that lost its end, and was gone on with: what was said of the offsets that are gone. Pure.

Kafka may come back from an older disk: the log has the same id and ends earlier, and what comes
gets the offsets of what is gone. What was said to hold from some place behind the end on, as an
erasure, would hold for none of that until the log is as long again. So the start record of the
driver that goes on says where the log ended. All that was said before of places behind it stands
there from then on: for everybody who reads the records in their order, whenever that is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from weir.commit import Offsets, furthest
from weir.definitions.history import Activation, Horizons, Lane
from weir.definitions.jobs import JobReport

if TYPE_CHECKING:
    from weir.definitions.fold import Definitions

PLACES: Final = ("offsets", "begin")
"""The facts of jobs that are places of the log of events: an erasure's, a replay's."""
DRAWN: Final = "places"
"""Those that an audit has drawn: pairs of partition and offset."""


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
        if not _are_of(said.facts, self.topic_id):
            return said
        facts = dict(said.facts)
        for name, places in _places_in(facts):
            facts[name] = {str(p): n for p, n in self.place(places).items()}
        if isinstance(drawn := facts.get(DRAWN), Sequence):
            facts[DRAWN] = [[p, min(n, self.end.get(p, 0))] for p, n in drawn]
        return replace(said, facts=facts)


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
        if report.facts.get("topic_id") == topic_id:
            yield from (places for _name, places in _places_in(report.facts))


def _are_of(facts: Mapping[str, Any], topic_id: str) -> bool:
    """Tell whether the places that a job goes on with are of a log.

    Of jobs that read the log an earlier release did not say it. Theirs only lead a reader further
    back than it must go if they are taken for it.
    """
    return bool(facts.get("topic_id", topic_id) == topic_id)


def _places_in(facts: Mapping[str, Any]) -> Iterator[tuple[str, dict[int, int]]]:
    """Yield the places of the log of events that a job goes on with, by their names."""
    for name in PLACES:
        if isinstance(told := facts.get(name), Mapping):
            yield name, {int(p): int(n) for p, n in told.items()}
