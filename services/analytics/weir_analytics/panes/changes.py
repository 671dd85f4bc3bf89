"""What the driver says of versions between two batches: begun, stopped, filled, in force.

Each is a record of `weir.definitions` with the driver's fence, read back before the next
range is planned. `activation.py` decides; this asks the log and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import structlog
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
    activation_record,
    aside_record,
    horizons_record,
    lane_record,
    spread_record,
    takeover_record,
)
from weir.horizons import horizons_of, longest_ms

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
from weir_analytics.panes.lane_book import LaneBook
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.open_lanes import backfill
from weir_analytics.panes.start import Footing, Stores
from weir_analytics.panes.versions import Version
from weir_analytics.settings import Settings

LOG = structlog.get_logger()

NO_KEY: Final = (
    "the panes job must have the installation's hash_key in its secrets_dir, found none; "
    "give it the one that ingest has, and ask again"
)


@dataclass
class Changes:
    """The records of one driver's life between two start records.

    What follows from the definitions alone is not looked for with each batch, but where
    something was written since; what lanes have filled is.

    Attributes:
        may_begin: Whether a version may begin: its plan is there.
    """

    stores: Stores
    settings: Settings
    footing: Footing
    book: LaneBook
    clock: Clock
    may_begin: Callable[[Definition], bool]
    _to_stop: FoldMemo[list[Definition]] = field(init=False)
    _left_over: FoldMemo[list[Version]] = field(init=False)
    _to_start: FoldMemo[list[Definition]] = field(init=False)
    _to_erase: FoldMemo[list[JobAsked]] = field(init=False)
    _dear: set[int] = field(default_factory=set)
    _unfilled: FoldMemo[list[tuple[Offsets, tuple[int, ...]]]] = field(init=False)

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
        fold = self.stores.definitions.fold
        self._set_horizons(end)
        # First: a version that is made after an erasure begins at or after its offsets.
        self._erase(end)
        self._meet(end)
        useless = {one.vid: one for one in self._to_stop.of(fold)}
        over = (one.vid for one in self._left_over.of(fold) if is_over(one, through_s))
        useless |= {vid: one for vid in over if (one := fold.by_vid(vid)) is not None}
        for definition in useless.values():
            self._activate(counting(definition, end, self.footing.events_id), "stop")
        for definition in self._to_start.of(fold):
            if fold.set_aside(definition.vid) is not None or not self._is_affordable(definition):
                continue
            if not self.may_begin(definition):
                continue
            after = predecessor(fold, definition)
            whole = after is None and not had_events
            begin = counting(
                definition,
                end,
                self.footing.events_id,
                after=after,
                from_start=whole,
                fills=not whole,
            )
            self._activate(begin, "start")
        self._open_lanes()
        complete_from_ms: dict[int, int] = {}
        for lane, vid in self.book.filled(fold):
            if lane.offset not in complete_from_ms:
                complete_from_ms[lane.offset] = self._complete_from_ms(lane)
            failpoint("C11-filled")
            self._take_over(vid, end, complete_from_ms[lane.offset])
            failpoint("C11-taken")

    def leave_out(self, faults: Mapping[int, str], end: Offsets) -> None:
        """Record that versions are counted no further, since no plan can be made of them.

        At once, also below what a start may activate from (`activation_floor`): an image of a
        shard that comes back may have counted more of such a version than its record says, or
        less, but nothing of it is shown any more, and its successor is filled from the log.

        Args:
            faults: The versions, each with what making it said.
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
                self._activate(counting(definition, end, self.footing.events_id), "stop")

    def set_aside(self, vid: int, why: str | None) -> None:
        """Record that a version is not counted, and why; None: that it may be.

        Raises:
            VerdictError: FENCED if a newer driver has started.
        """
        fence = self.footing.fence.fence
        self._append(aside_record(vid, why, fence=fence, at_ms=self.clock.now_ms()))

    def _is_affordable(self, definition: Definition) -> bool:
        """Tell whether the tenant may have a version beside what it has counted.

        The API has asked the same; what another producer wrote, or two at once, it has not. It
        tells the author by the same function, and by the budget of this driver's start record.
        """
        metric, fold = definition.metric, self.stores.definitions.fold
        if metric is None:
            return False
        problem = quota_refusal(fold, definition.tenant, metric, self.settings.tenant_bytes)
        if problem is not None and definition.vid not in self._dear:
            LOG.warning("version_refused", vid=definition.vid, why=problem.message)
            self._dear.add(definition.vid)
        return problem is None

    def _activate(self, said: Counting, op: Literal["start", "stop"]) -> None:
        fence, at_ms = self.footing.fence.fence, self.clock.now_ms()
        offset = self._append(activation_record(said, op=op, fence=fence, at_ms=at_ms))
        LOG.info("version_" + op, vid=said.vid, name=said.name, offset=offset)

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

    def _erase(self, end: Offsets) -> None:
        """Record from where erasures hold that were asked for; the job goes on from there."""
        for asked in self._to_erase.of(self.stores.definitions.fold):
            facts = {
                "topic_id": self.footing.events_id,
                "offsets": {str(p): n for p, n in sorted(end.items())},
            }
            vid, now_ms = asked.definition.vid, self.clock.now_ms()
            report = JobReport(vid, JobState.RUNNING, now_ms, facts)
            if not self.settings.hash_key:
                told = {"error": NO_KEY}
                report = JobReport(vid, JobState.FAILED, now_ms, outcome=told)
            self._append(job_record(report, fence=self.footing.fence.fence))
            LOG.info("erasure", job=asked.definition.name, state=report.state.value)

    def _open_lanes(self) -> None:
        """Open a lane for versions that are counted from the middle of the log on."""
        settings = self.settings
        waiting = self._unfilled.of(self.stores.definitions.fold)
        if not waiting:
            return
        log = LogOffsets(settings.kafka, names.EVENTS)
        bounds = log.bounds(self.footing.events_id)
        for begin, vids in waiting:
            now_ms = self.clock.now_ms()
            lane = backfill(
                log,
                bounds,
                begin,
                vids,
                horizon_ms=longest_ms(self._horizons(), bounds.start),
                now_ms=now_ms,
            )
            record = lane_record(lane, fence=self.footing.fence.fence, at_ms=now_ms)
            offset = self._append(record)
            LOG.info("lane_opened", lane=offset, versions=list(vids))

    def _take_over(self, vid: int, end: Offsets, complete_from_ms: int) -> None:
        """Record that a version serves: the lane that fills it is done in every shard."""
        fold, fence = self.stores.definitions.fold, self.footing.fence.fence
        taken = takeover(fold, vid, end, complete_from_ms, self.footing.events_id)
        if taken is None:
            return
        record = takeover_record(taken, fence=fence, at_ms=self.clock.now_ms())
        offset = self._append(record)
        LOG.info("version_took_over", vid=vid, after=taken.after, offset=offset)

    def _complete_from_ms(self, lane: Lane) -> int:
        """Return the event time from which a lane's versions hold all that was received.

        Retention may have overtaken the lane, also in an earlier life of the driver; what it
        took since the lane passed there is left out too, which loses nothing that is known.
        """
        log = LogOffsets(self.settings.kafka, names.EVENTS)
        start, end = log.ends()
        if not_after(start, lane.start):
            return lane.complete_from_ms
        horizon_ms = longest_ms(self._horizons(), start)
        left_ms = log.complete_from_ms(start, end, horizon_ms, self.clock.now_ms())
        return max(lane.complete_from_ms, left_ms)

    def _append(self, record: NewRecord) -> int:
        return self.stores.definitions.append_fenced(record, self.footing.fence.fence)
