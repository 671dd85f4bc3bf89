"""S0: a driver takes over, finds out where the shards stand, and says where to go on.

Nothing is counted before this is done. Each step is safe to be cut off anywhere:
whoever starts next begins here again (RELIABILITY 2.3 and 2.4).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Literal, NamedTuple

import msgspec
import structlog
from confluent_kafka import KafkaException
from weir import names
from weir.batches import FIELD, BatchRecord, Opening, decode
from weir.clock import Clock
from weir.commit import Fence, Mark, Verdict
from weir.commit_found import Found, Level, LogBounds, Recovery
from weir.commit_recovery import activation_floor, ended_at, incomplete_before_ms, reconcile
from weir.definitions.cut_short import furthest_said
from weir.definitions.fold import Definitions
from weir.definitions.history import NO_START, Horizons, Lane, Start
from weir.definitions.records import (
    DriverStart,
    OpenLane,
    horizons_record,
    lane_record,
    start_record,
)

from weir_analytics.jobs.adopting import adopted
from weir_analytics.panes import checkpoint
from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_analytics.panes.holes import Hole
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.open_lanes import bridge, lanes_beside, near, rebuilds
from weir_analytics.panes.passing import first_line
from weir_analytics.panes.recovery import Shards, VerdictError
from weir_analytics.panes.same_log import topic_id
from weir_analytics.panes.shard_wire import open_client
from weir_analytics.panes.stream import BatchStream
from weir_analytics.settings import Settings

LOG = structlog.get_logger()
TIMEOUT_S = 15.0
# For so long a start asks when the first records of the log came, each time for up to 15 s. Then
# it goes on without, which makes more panes incomplete than need be, for good.
PATIENCE_S = 60.0
PAUSE_S = 1.0

Reason = Literal["start", "lost", "behind", "rewind"]
REASONS: Mapping[Verdict, Reason] = {
    Verdict.OK: "start",
    Verdict.LOST: "lost",
    Verdict.BEHIND: "behind",
    Verdict.REWIND: "rewind",
}


@dataclass(frozen=True)
class Footing:
    """What a driver stands on once it has taken over.

    Attributes:
        fence: The right to write.
        epoch: The life of the state that goes on, or begins.
        events_id: Kafka's id of `weir.events`.
        target: Where live counting goes on if the checkpoint is new.
        levels: What single shards count first.
        copies: Whether they copy to quarantine what cannot be used: of the batch that was under
            way some tasks may not have done that, and nobody runs it again.
        empty: Counting begins at the start of the log: nothing lies before it, and what
            was appended since this driver came up (its own ticks) is still to be counted.
        through_ms: Processed-through of the epoch's last record; 0 in a new epoch.
        may_activate_from: No version starts or stops before these offsets, the log's ends
            at this start: a version activated while the log is counted again, and a
            shard restored from before that, would make a hole. Nothing for the first
            driver ever, before which nothing was counted. What is left out stops wherever
            that is (`Changes.leave_out`).
        lost: Holes of the log that this process has given up.
        cut_epoch: The epoch that began when the log had lost its end; 0: it never has.
        told: The lanes, by name, that readers were last told to be under way.
    """

    fence: Fence
    epoch: int
    events_id: str
    target: Offsets
    levels: tuple[Level, ...]
    copies: bool
    empty: bool
    through_ms: int
    may_activate_from: Offsets
    lost: tuple[Hole, ...] = ()
    cut_epoch: int = 0
    told: frozenset[int] = frozenset()


class Counts(NamedTuple):
    """What an epoch counts, as a start record says it.

    Attributes:
        events_id: Kafka's id of the log; None: as said before.
        cut_short: Where that ended, if it had lost its end since that was said.
    """

    events_id: str | None = None
    cut_short: Offsets | None = None


AS_BEFORE: Final = Counts()


@dataclass(frozen=True)
class Stores:
    """Everything outside that a driver's own thread talks to."""

    definitions: DefinitionsLog
    shards: Shards
    stream: BatchStream


@dataclass
class OwnStart:
    """The newest start record of this process, whatever lives it has had.

    Attributes:
        fence: Its fence; None: there is none, or there may be one that was not read back.
        said: The holes of the log of which one of its start records has said what they make
            incomplete. Later the log's start lies behind them: what is asked then is of no hole.
        short: Shards of which a commit was applied in part, whatever their marks say: the next
            start takes those away, and has them counted anew.
    """

    fence: int | None = None
    said: set[Hole] = field(default_factory=set)
    short: set[int] = field(default_factory=set)

    def check(self, definitions: Definitions) -> None:
        """Do nothing while nobody has started since.

        A process that was paused meets errors of all kinds then, as of a connection that is gone.
        Beginning again because of one it would fence the driver that counts now.

        Raises:
            VerdictError: FENCED if somebody has.
        """
        newest = definitions.fence()
        if self.fence is not None and newest is not None and newest > self.fence:
            msg = (
                f"fence must be {self.fence}, the newest start record is {newest}: "
                "another driver runs"
            )
            raise VerdictError(Verdict.FENCED, msg)


def take_over(
    stores: Stores,
    settings: Settings,
    clock: Clock,
    lost: tuple[Hole, ...] = (),
    lacks_ms: int = 0,
    own: OwnStart | None = None,
    note: Callable[[Verdict], None] = lambda _verdict: None,
) -> Footing:
    """Append the start record, raise the fence, reconcile.

    Args:
        stores: Where state is.
        settings: The service's settings.
        clock: The present.
        lost: Holes of the log that are given up: panes that they touch are incomplete.
        lacks_ms: Panes that start earlier lack what retention took from lanes.
        own: What this process has appended before; this one is noted there.
        note: Told what was found, before anything is done about it; not of what is raised.

    Raises:
        VerdictError: FENCED if a newer driver has started, RETRY if one came between what was
            read and the start record, FOREIGN if the state is of another log.
        NewerFormatError: If a newer release wrote some of the state; nothing is written then.
        StoreError: If Redis keeps nothing over a restart, and that is not accepted, or takes no
            writes, also not once the stream has let go of what is due; the same.
        KafkaException: If the log does not say where it begins and ends; the same.
    """
    if not settings.redis_without_aof:
        stores.shards.require_aof()
    marks = stores.shards.read_marks()  # before the start record: with Redis away none is written
    stores.definitions.read_to(stores.definitions.end())
    own = own or OwnStart()
    own.check(stores.definitions.fold)
    check_formats(stores)
    check_shards(settings, stores.definitions.fold.start(), marks)
    events_id = topic_id(settings.kafka, names.EVENTS)
    definitions_id = topic_id(settings.kafka, names.DEFINITIONS)
    before = stores.definitions.fold.start()
    log = LogOffsets(settings.kafka, names.EVENTS)
    start = _Start(stores, settings, clock, definitions_id, log, own)
    lacks_ms = max(lacks_ms, start.lacks_before_ms([one for one in lost if one not in own.said]))
    log.bounds(events_id)  # the same: while a partition has no leader none is written
    stores.stream.trim(clock.now_ms())
    stores.shards.try_writes()
    # Where an older release began the epoch, the marks know what it counts.
    counted = {mark.topic_id for mark in marks if mark is not None}
    counts = Counts(events_id if counted == {events_id} else None)
    fence = start.append("start", stores.definitions.fold.epoch(), lacks_ms, counts=counts)
    own.said.update(lost)
    # First of all: the mark of one says that nothing is amiss, and whoever came next believed it.
    short = sorted(own.short)
    stores.shards.drop_marks(short, fence)
    own.short.clear()
    start.say_horizons(before, fence, events_id)
    bounds = log.bounds(events_id)  # again: whoever counted until now may have counted beyond it
    marks = stores.shards.read_marks()
    planned = checkpoint.last_planned(settings.checkpoint_dir, names.EVENTS)
    ends = [mark.end for mark in marks if mark is not None]
    found = Found(
        marks=marks,
        checkpoint=planned,
        log=bounds,
        epoch=start.epoch,
        last_record=stores.stream.last_record(),
        first_ever=before is None,
        counted_id=before.events_id if before is not None else None,
        near=near(log, bounds, [*ends, *ended_at(planned, bounds)]) if ends else None,
        cuts=stores.definitions.fold.cuts(events_id),
        said=furthest_said(stores.definitions.fold, events_id),
    )
    recovery = adopted(found, reconcile(found), stores.definitions, fence=fence.fence, clock=clock)
    LOG.info(
        "reconciled",
        verdict=recovery.verdict.value,
        reason=recovery.reason,
        short=short,
    )
    for gap in recovery.gaps:
        LOG.error("log_lost", count=gap.count, **asdict(gap))
    if recovery.verdict is Verdict.FOREIGN or recovery.target is None:
        raise VerdictError(Verdict.FOREIGN, recovery.reason)
    note(recovery.verdict)
    newest = newest_record(settings)
    if recovery.new_epoch:
        fence = start.new_epoch(recovery, bounds, fence)
    if not recovery.keep_checkpoint:
        checkpoint.set_aside(settings.checkpoint_dir, str(fence.fence))
    # Within an epoch processed-through never falls.
    is_of_epoch = newest is not None and newest.epoch == start.epoch
    through_ms = newest.processed_through_ms if newest and is_of_epoch else 0
    return Footing(
        fence=fence,
        epoch=start.epoch,
        events_id=events_id,
        target=dict(recovery.target),
        levels=recovery.levels,
        copies=not recovery.keep_checkpoint,
        empty=not any(recovery.target.values()),
        may_activate_from=activation_floor(bounds.end, first_start=before is None),
        through_ms=through_ms,
        lost=lost,
        cut_epoch=max((cut.epoch for cut in stores.definitions.fold.cuts(events_id)), default=0),
        told=frozenset(one.lane for one in newest.lanes) if newest else frozenset(),
    )


def check_formats(stores: Stores) -> None:
    """Read what of the state was not read yet: all of it must be of formats known here.

    Rows are many, and are looked at when something is merged into them.

    Raises:
        NewerFormatError: If a newer release wrote some of it.
    """
    stores.shards.newest_fence()
    stores.shards.read_outboxes()
    stores.stream.last_record()


def check_shards(settings: Settings, before: Start | None, marks: Sequence[Mark | None]) -> None:
    """Compare the number of shards with that of the last start.

    Raises:
        VerdictError: FOREIGN if the number of shards differs: every pane would be cleared.
    """
    found = {mark.shards for mark in marks if mark is not None}
    found |= {before.shards} if before is not None else set()
    if found - {settings.shards} and not settings.reshard:
        msg = (
            f"shards must be {max(found - {settings.shards})} as before, got {settings.shards}: "
            "with another number every pane is deleted and the whole log counted again; "
            "set WEIR_ANALYTICS_SHARDS back, or WEIR_ANALYTICS_RESHARD=true if that is wanted"
        )
        raise VerdictError(Verdict.FOREIGN, msg)


@dataclass(frozen=True)
class _Start:
    stores: Stores
    settings: Settings
    clock: Clock
    definitions_id: str
    log: LogOffsets
    own: OwnStart

    @property
    def epoch(self) -> int:
        """The epoch that the start record read back last names."""
        epoch = self.stores.definitions.fold.epoch()
        return -1 if epoch is None else epoch

    def append(
        self,
        reason: Reason,
        epoch: int | None,
        incomplete_ms: int,
        also: Sequence[int] = (),
        counts: Counts = AS_BEFORE,
    ) -> Fence:
        """Append a start record, read it back, and raise its fence in every shard.

        Readers take the latest start's word, so what was incomplete once stays said. They take it
        only of a driver that had read the start before, which it names.

        Args:
            reason: Why.
            epoch: The epoch that goes on; None begins one.
            incomplete_ms: Panes that start earlier are incomplete, as far as this start knows.
            also: Shards beyond the present number that are to be cleared.
            counts: What the epoch counts.

        Raises:
            VerdictError: RETRY if another driver has started since this one read to the end:
                it was paused, and what it has found is no more so. FENCED if one has since this
                record.
        """
        definitions, settings = self.stores.definitions, self.settings
        before = definitions.fold.start()
        start = DriverStart(
            instance=settings.instance,
            shards=settings.shards,
            reason=reason,
            epoch=epoch,
            incomplete_before_ms=max(incomplete_ms, before.incomplete_before_ms if before else 0),
            horizon_ms=settings.horizon_ms,
            beyond_ms=settings.beyond_ms,
            tenant_bytes=settings.tenant_bytes,
            events_id=counts.events_id or (before.events_id if before else None),
            cut_short=counts.cut_short,
            follows=before.fence if before else NO_START,
        )
        self.own.fence = None  # until it is read back: it may be there whatever becomes of this
        offset = self.own.fence = definitions.append(start_record(start, at_ms=self.clock.now_ms()))
        self.own.check(definitions.fold)  # reading it back may have brought one behind it
        if (said := definitions.fold.start()) is not None and said.overtaken:
            msg = f"start {offset} must follow {start.follows}, another driver came between"
            raise VerdictError(Verdict.RETRY, msg)
        fence = Fence(offset, self.definitions_id)
        # On a connection of its own: the reader's answers once its wait for more is over.
        _start, end = LogOffsets(settings.kafka, names.DEFINITIONS).ends()
        self.stores.shards.raise_fence(fence, end[0], also)
        return fence

    def say_horizons(self, before: Start | None, fence: Fence, events_id: str) -> None:
        """Append by what the log is counted from its start on, before any of it is.

        What was counted when nobody wrote that down, was by the settings of the start before.
        Where other settings hold from is recorded with a batch (`Changes.record`).
        """
        definitions = self.stores.definitions
        if definitions.fold.horizons:
            return
        found = Horizons(
            begin={},
            horizon_ms=(before.horizon_ms if before else 0) or self.settings.horizon_ms,
            beyond_ms=(before.beyond_ms if before else 0) or self.settings.beyond_ms,
            topic_id=events_id,
        )
        record = horizons_record(found, fence=fence.fence, at_ms=self.clock.now_ms())
        definitions.append_fenced(record, fence.fence)

    def lacks_before_ms(self, lost: Sequence[Hole]) -> int:
        """Return the event time from which the log holds all of a pane, behind some holes."""
        if not lost:
            return 0
        start, end = self.log.ends()
        behind = {p: max(start[p], last + 1) for p, _first, last in sorted(lost)}
        return self._complete_from_ms(behind, end)

    def _complete_from_ms(self, start: Offsets, end: Offsets) -> int:
        """Return the event time from which the log holds all of a pane, or a later one.

        The first record may not be readable, for as long as the log keeps it; a driver that waits
        for it never starts. So after a while the bound is one that needs no record. What is too
        much of it stays: readers are never told less, or panes that were shown as incomplete, and
        silenced rules, would change without a record of the log; and nobody could say later
        whether the log has all of what is between, since retention has come there by then.

        Raises:
            KafkaException: If a partition has no leader, or no broker answered: that passes, and
                says nothing of the record.
        """
        horizon_ms, until_s = self._horizon_ms(), self.clock.monotonic_s() + PATIENCE_S
        while True:
            now_ms = self.clock.now_ms()
            try:
                return self.log.complete_from_ms(start, end, horizon_ms, now_ms)
            except (KafkaException, TimeoutError) as error:
                why = first_line(error)
            first, end = self.log.ends()
            start = {p: max(n, first[p]) for p, n in start.items()}  # retention went on
            if self.clock.monotonic_s() >= until_s:
                break
            LOG.warning("old_log_not_read", what="start", error=why, pause_s=PAUSE_S)
            threading.Event().wait(PAUSE_S)
        by_ms = incomplete_before_ms(self.log.received_by_ms(start, now_ms), horizon_ms, start)
        LOG.error("log_start_not_read", error=why, incomplete_before_ms=by_ms)
        return by_ms

    def _horizon_ms(self) -> int:
        """Return the longest dedup horizon that anything was or will be counted by."""
        known = (one.horizon_ms for one in self.stores.definitions.fold.horizons)
        return max(known, default=self.settings.horizon_ms)

    def new_epoch(self, recovery: Recovery, bounds: LogBounds, before: Fence) -> Fence:
        """Begin an epoch: fence first, then empty what is lost, then tell the readers.

        Raises:
            VerdictError: FENCED if another driver has started since this one has.
        """
        reason = REASONS[recovery.verdict]
        incomplete_ms = self._incomplete_before_ms(recovery, bounds)
        counts = Counts(bounds.topic_id, bounds.end if recovery.cut_short else None)
        # Who was paused since it found all that would fence the one that counts now.
        self.stores.definitions.check_fence_now(before.fence)
        fence = self.append(reason, None, incomplete_ms, recovery.clear, counts)
        epoch = self.epoch
        mark = Mark(
            epoch=epoch,
            batch=-1,
            topic_id=bounds.topic_id,
            end=dict(recovery.target or {}),
            shards=self.settings.shards,
        )
        if recovery.clear:
            lanes = self._open_lanes(self._rebuilds(recovery, bounds), fence)
            self.stores.shards.recount(recovery, fence, mark, lanes)
            # Their marks are right from here on, also if what follows fails.
            self.own.short.difference_update(recovery.clear)
        for level in recovery.bridges:
            again = not recovery.keep_checkpoint
            wanted = bridge(bounds, level, self.clock.now_ms(), copies=again)
            (lane,) = self._open_lanes([wanted], fence)
            there = msgspec.structs.replace(mark, end=dict(level.to_offsets))
            self.stores.shards.bridge(level, fence, there, lane)
        opening = Opening(epoch=epoch, reason=reason, at_ms=self.clock.now_ms())
        if self.stores.stream.open_epoch(opening) is Verdict.FENCED:
            msg = f"epoch {epoch} must be the newest of the stream; another driver has opened one"
            raise VerdictError(Verdict.FENCED, msg)
        return fence

    def _rebuilds(self, recovery: Recovery, bounds: LogBounds) -> list[OpenLane]:
        """Return the lanes that count again what lost shards held.

        What could not be used was copied when it was counted first. Without the checkpoint
        nobody runs the batch that was under way again; without any shard as well nobody knows
        what was counted at all. Then lanes copy, too: readers keep one copy of each.
        """
        if not recovery.rebuild:
            return []
        target, now_ms = dict(recovery.target or {}), self.clock.now_ms()
        beside = lanes_beside(self.settings.cores)
        lanes = rebuilds(self.log, bounds, target, recovery.rebuild, now_ms, beside=beside)
        if recovery.keep_checkpoint or not lanes:
            return lanes
        is_known = len(recovery.rebuild) < self.settings.shards
        newest_ms = lanes[0].until_ms
        return [replace(lane, copies=not is_known or lane.until_ms == newest_ms) for lane in lanes]

    def _open_lanes(self, wanted: Sequence[OpenLane], fence: Fence) -> list[Lane]:
        """Append the records of lanes, and read them back.

        Raises:
            VerdictError: FENCED if a newer driver has started: every reader ignores them.
        """
        definitions, now_ms = self.stores.definitions, self.clock.now_ms()
        records = (lane_record(lane, fence=fence.fence, at_ms=now_ms) for lane in wanted)
        offsets = [definitions.append_fenced(record, fence.fence) for record in records]
        return [definitions.fold.lanes[offset] for offset in offsets]

    def _incomplete_before_ms(self, recovery: Recovery, bounds: LogBounds) -> int:
        if recovery.given_up:
            # When the last of it was received nobody can ask any more; until now at most.
            return incomplete_before_ms(self.clock.now_ms(), self._horizon_ms())
        if not recovery.gaps and not self._lacks_repeats(recovery, bounds):
            return 0
        return self._complete_from_ms(bounds.start, bounds.end)

    def _lacks_repeats(self, recovery: Recovery, bounds: LogBounds) -> bool:
        """Tell whether a shard that is behind may count a repeat of what retention has taken.

        As one that was put back to almost as long ago as the log reaches. What is not known after
        a while is taken for so: see `_complete_from_ms`.
        """
        begins: dict[int, int] = {}
        for level in (*recovery.levels, *recovery.bridges):
            for partition, begin in level.read_from.items():
                if bounds.start.get(partition) and begin < level.to_offsets.get(partition, 0):
                    begins[partition] = min(begin, begins.get(partition, begin))
        horizon_ms, until_s = self._horizon_ms(), self.clock.monotonic_s() + PATIENCE_S
        while begins:
            first, _ = self.log.ends()
            try:
                return any(
                    self.log.received_ms(p, max(n, first[p])) - self.log.received_ms(p, first[p])
                    < horizon_ms
                    for p, n in begins.items()
                )
            except (KafkaException, TimeoutError) as error:
                why = first_line(error)
            LOG.warning("old_log_not_read", what="start", error=why, pause_s=PAUSE_S)
            if self.clock.monotonic_s() >= until_s:
                return True
            threading.Event().wait(PAUSE_S)
        return False


def newest_record(settings: Settings) -> BatchRecord | None:
    """Return the newest batch record, of whatever epoch; None if none is kept."""
    client = open_client(settings, TIMEOUT_S)
    before = "+"
    try:
        # Behind it stand only the openings of epochs that told nothing.
        while entries := client.xrevrange(names.BATCHES, max=before, count=8):
            for entry_id, fields in entries:
                found = decode(fields[FIELD])
                if isinstance(found, BatchRecord):
                    return found
                before = f"({entry_id.decode()}"
    finally:
        client.close()
    return None
