"""What the driver says of versions between two batches: begun, stopped, filled, in force.

Each is a record of `weir.definitions` with the driver's fence, read back before the next
range is planned. `activation.py` decides; this asks the log and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, NamedTuple, TypeVar

import structlog
from confluent_kafka import KafkaException
from weir import names
from weir.clock import Clock
from weir.commit import not_after
from weir.dedup_gap import spread_of
from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.definitions.history import Definition, Horizons, Lane, Spread
from weir.definitions.jobs import JobAsked, JobReport, JobState, job_record
from weir.definitions.quota import quota_refusal
from weir.definitions.records import (
    Counting,
    NewRecord,
    OpenLane,
    activation_record,
    aside_record,
    horizons_record,
    lane_record,
    spread_record,
    takeover_record,
)
from weir.horizons import horizons_of, longest_ms
from weir.lanes import filled_by

from weir_analytics.failpoints import failpoint
from weir_analytics.jobs.open_jobs import to_erase
from weir_analytics.panes.activation import (
    counting,
    is_over,
    lanes_to_open,
    left_over,
    predecessor,
    takeover,
    to_stop,
)
from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.due import About, Due, Gate, Said
from weir_analytics.panes.lane_book import LaneBook
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.open_lanes import backfill
from weir_analytics.panes.passing import first_line
from weir_analytics.panes.start import Footing, Stores
from weir_analytics.panes.versions import Version
from weir_analytics.settings import Settings

LOG = structlog.get_logger()

T = TypeVar("T")

# A batch waits for what old parts of the log answer: where they do not they are asked less often,
# and live counting has so many times as long for itself as a question took that was not answered.
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 300.0
OTHERS: Final = 4
NO_KEY: Final = (
    "the panes job must have the installation's hash_key in its secrets_dir, found none; "
    "give it the one that ingest has, and ask again"
)


class _Ask(NamedTuple):
    """When something is asked again that was not answered, and how long it waits after that."""

    at_s: float = 0.0
    pause_s: float = FIRST_PAUSE_S


@dataclass
class Changes:
    """The records of one driver's life between two start records.

    What follows from the definitions alone is not looked for with each batch, but where
    something was written since; what lanes have filled is.

    Attributes:
        gate: What may be said now: the plan of what is counted then is there.
    """

    stores: Stores
    settings: Settings
    footing: Footing
    book: LaneBook
    clock: Clock
    gate: Gate
    _to_stop: FoldMemo[list[Definition]] = field(init=False)
    _left_over: FoldMemo[list[Version]] = field(init=False)
    _to_start: FoldMemo[list[Definition]] = field(init=False)
    _to_erase: FoldMemo[list[JobAsked]] = field(init=False)
    _dear: set[int] = field(default_factory=set)
    _complete_ms: dict[int, int] = field(default_factory=dict)
    _overtaken: set[int] = field(default_factory=set)
    _unfilled: FoldMemo[list[tuple[Offsets, tuple[int, ...]]]] = field(init=False)
    _asks: dict[str, _Ask] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._to_stop = FoldMemo(to_stop)
        self._left_over = FoldMemo(lambda fold: left_over(fold, self.footing.events_id))
        self._to_start = FoldMemo(Definitions.metrics_to_start)
        self._to_erase = FoldMemo(to_erase)
        self._unfilled = FoldMemo(lambda fold: lanes_to_open(fold, self.footing.events_id))

    def record(self, end: Offsets, *, had_events: bool, through_s: int) -> None:
        """Record which versions count from here on, stop here, and serve from here on.

        The offsets are the end of the range planned last; what is recorded here is
        read back before the next range is planned.

        Args:
            end: Where the batch at hand ends.
            had_events: Whether anything of the log so far was an event.
            through_s: Received time counted so far.

        Raises:
            VerdictError: FENCED if a newer driver has started.
        """
        self._set_horizons(end)
        for said in self._chosen(end, had_events=had_events, through_s=through_s).said:
            if said.about.op == "take":
                failpoint("C11-filled")
            offset = self._append(said.record)
            LOG.info(said.event, **said.fields, offset=offset)
            if said.about.op == "take":
                failpoint("C11-taken")
        self._meet(end)
        self._open_lanes()

    def _chosen(self, end: Offsets, *, had_events: bool, through_s: int) -> Due:
        """Return what is said now: all that is due, or what of it a plan was made for."""
        gate = self.gate

        def whole(about: About, definition: Definition) -> bool:
            return about.op != "start" or gate.may_begin(definition)

        def prepared(about: About, _definition: Definition) -> bool:
            return about in gate.prepared

        for choose in (whole, prepared):
            due = self.due(end, choose, had_events=had_events, through_s=through_s)
            if not due.said or gate.may_hold(due):
                return due
        return Due(end, self.stores.definitions.fold)

    def due(
        self,
        end: Offsets,
        choose: Callable[[About, Definition], bool],
        *,
        had_events: bool,
        through_s: int,
    ) -> Due:
        """Return what is to be said at the end of a batch; nothing is written.

        Args:
            end: Where it ends.
            choose: Whether something is to be said together with the rest.
            had_events: Whether anything of the log so far was an event.
            through_s: Received time counted so far.
        """
        due = Due(end, self.stores.definitions.fold)
        # First: a version that is made after an erasure begins at or after its offsets.
        self._erase(due, choose)
        self._stop(due, choose, through_s)
        self._start(due, choose, had_events=had_events)
        self._take_over(due, choose)
        return due

    def _erase(self, due: Due, choose: Callable[[About, Definition], bool]) -> None:
        """Say from where erasures hold that were asked for; the job goes on from there."""
        for asked in self._to_erase.of(self.stores.definitions.fold):
            job, now_ms = asked.definition, self.clock.now_ms()
            if not choose(about := About("erase", job.vid), job):
                continue
            facts = {
                "topic_id": self.footing.events_id,
                "offsets": {str(p): n for p, n in sorted(due.end.items())},
            }
            report = JobReport(job.vid, JobState.RUNNING, now_ms, facts)
            if not self.settings.hash_key:
                told = {"error": NO_KEY}
                report = JobReport(job.vid, JobState.FAILED, now_ms, outcome=told)
            record = job_record(report, fence=self.footing.fence.fence)
            fields = {"job": job.name, "state": report.state.value}
            due.add(Said(about, record, "erasure", fields))

    def _stop(self, due: Due, choose: Callable[[About, Definition], bool], through_s: int) -> None:
        """Say which versions are counted no further."""
        fold = self.stores.definitions.fold
        useless = {one.vid: one for one in self._to_stop.of(fold)}
        over = (one.vid for one in self._left_over.of(fold) if is_over(one, through_s))
        useless |= {vid: one for vid in over if (one := fold.by_vid(vid)) is not None}
        for definition in useless.values():
            if choose(About("stop", definition.vid), definition):
                said = counting(definition, due.end, self.footing.events_id)
                due.add(self._activation(said, "stop"))

    def _start(
        self, due: Due, choose: Callable[[About, Definition], bool], *, had_events: bool
    ) -> None:
        """Say which versions are counted from here on."""
        for definition in self._to_start.of(self.stores.definitions.fold):
            if due.fold.set_aside(definition.vid) is not None:
                continue
            if not self._is_affordable(definition, due.fold):
                continue
            if not choose(About("start", definition.vid), definition):
                continue
            after = predecessor(due.fold, definition)
            whole = after is None and not had_events
            begin = counting(
                definition,
                due.end,
                self.footing.events_id,
                after=after,
                from_start=whole,
                fills=not whole,
            )
            due.add(self._activation(begin, "start"))

    def _take_over(self, due: Due, choose: Callable[[About, Definition], bool]) -> None:
        """Say which versions serve: the lane that fills each is done in every shard.

        What one is complete from is asked once: what retention takes later is in its panes. While
        the log does not say it, the version waits.
        """
        filled = self.book.filled(self.stores.definitions.fold)
        lanes = {lane.offset: lane for lane, _vid in filled}
        known = {n: ms for n, ms in self._complete_ms.items() if n in lanes}
        unknown = {n: lane for n, lane in lanes.items() if n not in known}
        self._complete_ms = known | self._complete_from_ms(unknown)
        for lane, vid in filled:
            if lane.offset not in self._complete_ms:
                continue
            definition = due.fold.by_vid(vid)
            if vid not in filled_by(due.fold, lane) or definition is None:
                continue  # it ends here
            if not choose(about := About("take", vid), definition):
                continue
            complete_ms, events_id = self._complete_ms[lane.offset], self.footing.events_id
            taken = takeover(due.fold, vid, due.end, complete_ms, events_id)
            if taken is not None:
                fence, at_ms = self.footing.fence.fence, self.clock.now_ms()
                record = takeover_record(taken, fence=fence, at_ms=at_ms)
                fields = {"vid": vid, "after": taken.after}
                due.add(Said(about, record, "version_took_over", fields))

    def _activation(self, said: Counting, op: Literal["start", "stop"]) -> Said:
        fence, at_ms = self.footing.fence.fence, self.clock.now_ms()
        record = activation_record(said, op=op, fence=fence, at_ms=at_ms)
        return Said(
            About(op, said.vid), record, f"version_{op}", {"vid": said.vid, "name": said.name}
        )

    def leave_out(self, faults: Mapping[int, str], end: Offsets) -> None:
        """Record that versions are counted no further, since they cannot be.

        At once, also below what a start may activate from (`activation_floor`): an image of a
        shard that comes back may have counted more of such a version than its record says, or
        less, but nothing of it is shown any more, and its successor is filled from the log.

        Args:
            faults: The versions, each with what trying it said.
            end: Where the last batch ended.

        Raises:
            VerdictError: FENCED if a newer driver has started.
        """
        fold = self.stores.definitions.fold
        for vid, why in faults.items():
            if fold.is_left_out(vid):
                continue  # a lane's plan was being made meanwhile
            LOG.error("version_set_aside", vid=vid, why=why)
            if fold.set_aside(vid) is None:
                self.set_aside(vid, why)
            definition, begun = fold.by_vid(vid), fold.activations.get(vid)
            if definition is not None and begun is not None and begun.finish is None:
                said = self._activation(counting(definition, end, self.footing.events_id), "stop")
                offset = self._append(said.record)
                LOG.info(said.event, **said.fields, offset=offset)

    def set_aside(self, vid: int, why: str | None) -> None:
        """Record that a version is not counted, and why; None: that it may be.

        Raises:
            VerdictError: FENCED if a newer driver has started.
        """
        fence = self.footing.fence.fence
        self._append(aside_record(vid, why, fence=fence, at_ms=self.clock.now_ms()))

    def _is_affordable(self, definition: Definition, fold: Definitions) -> bool:
        """Tell whether the tenant may have a version beside what it has counted.

        The API has asked the same; what another producer wrote, or two at once, it has not. It
        tells the author by the same function, and by the budget of this driver's start record.
        """
        metric = definition.metric
        if metric is None:
            return False
        problem = quota_refusal(fold, definition.tenant, metric, self.settings.tenant_bytes)
        if problem is not None and definition.vid not in self._dear:
            LOG.warning("version_refused", vid=definition.vid, why=problem.message)
            self._dear.add(definition.vid)
        return problem is None

    def _set_horizons(self, end: Offsets) -> None:
        """Record from where the settings hold, if what lies before is counted by others."""
        now, wanted = self._horizons()[-1], self.settings
        if (now.horizon_ms, now.beyond_ms) == (wanted.horizon_ms, wanted.beyond_ms):
            return
        found = Horizons(dict(end), wanted.horizon_ms, wanted.beyond_ms, self.footing.events_id)
        fence, at_ms = self.footing.fence.fence, self.clock.now_ms()
        self._append(horizons_record(found, fence=fence, at_ms=at_ms))
        for name in ("horizon_ms", "beyond_ms"):
            before, after = getattr(now, name), getattr(found, name)
            if before != after:
                LOG.warning("setting_changed", name=name, before=before, now=after, offsets=end)

    def _horizons(self) -> tuple[Horizons, ...]:
        """Return by what the log is counted; the driver has said so before its first batch."""
        return horizons_of(self.stores.definitions.fold, self.footing.events_id)

    def _meet(self, end: Offsets) -> None:
        """Record over how many partitions the log is spread, and tell of those that were added."""
        topic_id = self.footing.events_id
        known = spread_of(self.stores.definitions.fold, topic_id)
        if known is not None and len(end) <= known.partitions:
            return
        found = Spread(len(end), topic_id, self.clock.now_ms())
        self._append(spread_record(found, fence=self.footing.fence.fence))
        if known is not None:
            added = sorted(end)[known.partitions :]
            horizon_ms = self._horizons()[-1].horizon_ms
            LOG.warning("partitions_added", partitions=added, dedup_gap_ms=horizon_ms)

    def _open_lanes(self) -> None:
        """Open a lane for versions that are counted from the middle of the log on."""
        waiting = self._unfilled.of(self.stores.definitions.fold)
        if not waiting:
            return
        for lane in self._ask("lanes", partial(self._lanes_for, waiting)) or ():
            record = lane_record(lane, fence=self.footing.fence.fence, at_ms=self.clock.now_ms())
            offset = self._append(record)
            LOG.info("lane_opened", lane=offset, versions=list(lane.vids))

    def _lanes_for(self, waiting: Sequence[tuple[Offsets, tuple[int, ...]]]) -> list[OpenLane]:
        """Return the lanes that fill versions, each with where those were activated."""
        log = self._log()
        bounds, now_ms = log.bounds(self.footing.events_id), self.clock.now_ms()
        horizon_ms = longest_ms(self._horizons(), bounds.start)
        return [
            backfill(log, bounds, begin, vids, horizon_ms=horizon_ms, now_ms=now_ms)
            for begin, vids in waiting
        ]

    def _ask(self, what: str, asked: Callable[[], T]) -> T | None:
        """Ask what old parts of the log have to say, which may not be readable; None: not now.

        Live counting needs none of it, so it goes on without.
        """
        before = self._asks.get(what, _Ask())
        if self.clock.monotonic_s() < before.at_s:
            return None
        began_s = self.clock.monotonic_s()
        try:
            found = asked()
        except (KafkaException, TimeoutError) as error:
            now_s = self.clock.monotonic_s()
            pause_s = min(max(before.pause_s, OTHERS * (now_s - began_s)), LONGEST_PAUSE_S)
            self._asks[what] = _Ask(now_s + pause_s, 2 * pause_s)
            LOG.warning("old_log_not_read", what=what, error=first_line(error), pause_s=pause_s)
            return None
        self._asks.pop(what, None)
        return found

    def _complete_from_ms(self, unknown: Mapping[int, Lane]) -> dict[int, int]:
        """Return from which event time on the versions of lanes hold all that was received.

        Retention may have overtaken a lane, also in an earlier life of the driver; what it
        took since the lane passed there is left out too, which loses nothing that is known. From
        when on the log is whole is one question, however many lanes wait for it.

        Args:
            unknown: Lanes by their offsets.

        Returns:
            The same by offset, of those of which it is known now.
        """
        found = dict[int, int]()
        self._overtaken &= unknown.keys()
        if unknown.keys() - self._overtaken:
            start = self._ask("start", lambda: self._log().start())
            if start is None:
                return found
            for lane in unknown.values():
                if not_after(start, lane.start):
                    found[lane.offset] = lane.complete_from_ms
                else:
                    self._overtaken.add(lane.offset)
        if self._overtaken:
            left_ms = self._ask("takeover", self._left_from_ms)
            if left_ms is not None:
                each = (unknown[offset] for offset in self._overtaken)
                found |= {one.offset: max(one.complete_from_ms, left_ms) for one in each}
        return found

    def _left_from_ms(self) -> int:
        """Return the event time from which the log holds all of a pane."""
        log = self._log()
        start, end = log.ends()
        horizon_ms = longest_ms(self._horizons(), start)
        return log.complete_from_ms(start, end, horizon_ms, self.clock.now_ms())

    def _log(self) -> LogOffsets:
        return LogOffsets(self.settings.kafka, names.EVENTS)

    def _append(self, record: NewRecord) -> int:
        return self.stores.definitions.append_fenced(record, self.footing.fence.fence)
