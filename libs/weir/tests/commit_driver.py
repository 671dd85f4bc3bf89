"""The drivers of the simulation: what one counts once it has started."""

from __future__ import annotations

from weir.commit import Offsets, Verdict, decide_record, furthest, same_offsets
from weir.commit_found import Planned
from weir.names import LIVE_LANE

from .commit_attempt import check_record, check_takeover
from .commit_start import FencedError, RestartError, Starting, Steps
from .commit_world import (
    NO_END,
    PANE_LENGTH,
    SHARDS,
    BeyondLogError,
    Definition,
    Record,
    evaluate,
)

BATCH_LIMIT = 6
SLICE = 6
MAX_STARTS = 30


class Driver(Starting):
    """One process of the panes job, from its start to its end."""

    def run(self) -> Steps:
        """Start, and begin again as long as the verdicts say so."""
        for _ in range(MAX_STARTS):
            try:
                yield from self._start()
                yield from self._count()
            except (RestartError, BeyondLogError):
                yield
            except FencedError:
                return
        self.world.wrongs.append("a driver started again and again")

    # ── batches ─────────────────────────────────────────────────────────────
    def _count(self) -> Steps:
        planned = self.planned
        if planned is not None:
            self.last_to = self.position = planned.to_offsets
            self.batch = planned.batch + 1
            if not planned.committed:
                yield from self._batch(planned)
        while True:
            yield from self._activate(planned)
            yield from self._slice()
            planned = self._plan()
            if planned is None:
                self.idle_rounds += 1
                yield
                continue
            yield
            yield from self._batch(planned)

    def _plan(self) -> Planned | None:
        world = self.world
        ends = world.ends()
        if self.rules.ticks and ends == self.position:
            world.append_ticks()
            ends = world.ends()
        to = {p: min(end, self.position.get(p, 0) + BATCH_LIMIT) for p, end in ends.items()}
        if to == self.position:
            return None
        if any(n < self.position.get(p, 0) for p, n in ends.items()):
            raise RestartError  # Spark sees a log that ends before where it is
        if world.planned is not None and world.planned.batch >= self.batch:
            raise FencedError  # Spark refuses to write a plan that exists, and ends the query
        planned = Planned(self.batch, self.position, to, committed=False)
        world.plan(planned)
        self.last_to = self.position = to
        self.batch += 1
        return planned

    def _activate(self, planned: Planned | None) -> Steps:
        at = furthest([self.last_to, self.floor] if self.rules.keeps_floor else [self.last_to])
        if self.rules.activates_at_from and planned is not None:
            at = dict(planned.from_offsets)
        if any(d.kind == "start" for d in self.world.definitions[self.fence.fence + 1 :]):
            raise FencedError  # what it activates would be ignored by every reader
        for vid in self.world.versions():
            if vid not in self.world.activations():
                record = Definition(
                    "activation", self.fence.fence, 0, vid, at, vid % 2 == 0, topic=self.topic
                )
                self.world.append_definition(record)
                yield
        if not self.rules.activates_at_from:
            yield from self._stop(at)
            yield from self._take_over(at)

    def _stop(self, at: Offsets) -> Steps:
        """Count no more for the versions to which their successors left no pane."""
        world = self.world
        for vid, cuts in world.cuts().items():
            over = cuts.end <= cuts.first or not self.rules.stops_only_what_is_over
            if cuts.end < NO_END and over and vid not in world.stops():
                world.append_definition(
                    Definition("stop", self.fence.fence, 0, vid, at, topic=self.topic)
                )
                yield

    def _take_over(self, at: Offsets) -> Steps:
        """Let the versions serve that are filled in every shard, from a pane of the past on."""
        world, rebuilds = self.world, self.world.rebuilds()
        for vid, activation in list(world.activations().items()):
            if not activation.backfill or vid <= max(world.takeovers(), default=-1):
                continue  # a version that is edited before it serves is given up
            waiting = {shard for lane, shard, *_ in self.open_slices() if lane == vid}
            if len(waiting) > (0 if self.rules.fills_every_shard else SHARDS - 1):
                continue
            cut = int(world.rng.random() * (world.now // PANE_LENGTH + 1))
            record = Definition("takeover", self.fence.fence, 0, vid, at, cut=cut, topic=self.topic)
            world.append_definition(record)
            if world.lossless and not world.went_back and vid in world.takeovers():
                lacking = {shard for lane, shard, *_ in self.open_slices() if lane in rebuilds}
                check_takeover(world, vid, cut, set(range(SHARDS)) - lacking)
            yield

    def _batch(self, planned: Planned) -> Steps:
        world = self.world
        if self.rules.activates_at_from:
            yield from self._activate(planned)
        self._look(planned.from_offsets, planned.to_offsets)
        active = self._active()
        parts = evaluate(world, planned.from_offsets, planned.to_offsets, active)
        for shard in range(SHARDS):
            wanted = self._range(
                LIVE_LANE, planned.from_offsets, planned.to_offsets, batch=planned.batch
            )
            wanted = wanted._replace(trim=self.trims[shard])
            if world.rng.random() < world.left_behind:
                self._leave_behind(shard, wanted, parts[shard])
            yield from self._commit(shard, wanted, parts[shard])
        yield from self._record(planned)
        if world.planned is not None and world.planned.batch == planned.batch:
            world.plan(Planned(planned.batch, planned.from_offsets, planned.to_offsets, True))
        world.is_publishing = False
        self.idle_rounds += planned.to_offsets == world.ends()
        yield

    def _record(self, planned: Planned) -> Steps:
        """Publish the corrections of all outboxes, then the record."""
        world = self.world
        outboxes = [dict(image.outbox) for image in world.shards]
        marks = [image.marks.get(LIVE_LANE) for image in world.shards]
        stand = all(mark and same_offsets(mark.end, planned.to_offsets) for mark in marks)
        if not stand and self.rules.reads_marks_with_outboxes:
            raise RestartError
        world.is_publishing = True
        yield
        for outbox in outboxes:
            for entry in outbox.values():
                world.corrections.update(entry.corrections)
        yield
        rev = planned.batch + 1
        verdict = decide_record(world.last_record(), self.epoch, rev)
        if verdict is Verdict.LOST:
            self._give_way()
        self.trims = {shard: max(outbox, default=0) for shard, outbox in enumerate(outboxes)}
        if verdict is Verdict.OK:
            world.append_record(Record(self.epoch, rev, self.trims))
            if self.adopting:
                world.append_definition(Definition("adopted", self.fence.fence))
                self.adopting = False
            check_record(world, planned.to_offsets)

    def _look_for_lane(self, begin: Offsets, to: Offsets) -> None:
        """Look likewise: what a lane lacks is told by a start record, then it goes on."""
        if self.rules.looks_at_topic and self.world.topic != self.topic:
            raise RestartError
        lacks = self.world.complete_from() if self.world.is_gone(begin, to) else 0
        if lacks > self.world.said_incomplete() and self.rules.tells_overtaken:
            self.lacks = lacks
            raise RestartError

    def _slice(self) -> Steps:
        """Do some slice of some backfill or rebuild in one shard, or two at once."""
        rng, open_slices = self.world.rng, self.open_slices()
        if not open_slices:
            return
        chosen = rng.sample(open_slices, min(len(open_slices), 1 + (rng.random() < 0.4)))
        under_way = [self._slice_of(*one) for one in chosen]
        while under_way:
            at = int(rng.random() * len(under_way))
            try:
                next(under_way[at])
            except StopIteration:
                del under_way[at]
            else:
                yield

    def _slice_of(self, lane: int, shard: int, at: Offsets, end: Offsets) -> Steps:
        world = self.world
        size = 1 + int(world.rng.random() * SLICE)
        to = {p: min(n, at.get(p, 0) + size) for p, n in end.items()}
        rebuild = lane in world.rebuilds()
        known = {v: a.offsets for v, a in world.activations().items() if v not in world.stops()}
        active = known if rebuild else {lane: {}}
        self._look_for_lane(at, to)
        parts = evaluate(world, at, to, active, ledger=rebuild, cuts_at=self.position)[shard]
        wanted = self._range(str(lane), at, to, corrects=False)
        if world.rng.random() < world.left_behind:
            self._leave_behind(shard, wanted, parts)  # a slice given up half-way
        else:
            yield from self._commit(shard, wanted, parts)

    def open_slices(self) -> list[tuple[int, int, Offsets, Offsets]]:
        """Return lane, shard, place and end of every lane that is not done in a shard."""
        world = self.world
        found: list[tuple[int, int, Offsets, Offsets]] = []
        for shard, image in enumerate(world.shards):
            for vid, activation in world.activations().items():
                if activation.backfill and vid not in world.stops():
                    mark = image.marks.get(str(vid))
                    found.append((vid, shard, mark.end if mark else {}, activation.offsets))
            for lane, record in world.rebuilds().items():
                mark = image.marks.get(str(lane))
                if mark is not None or not self.rules.marks_lanes:
                    found.append((lane, shard, mark.end if mark else record.start, record.offsets))
        return [one for one in found if any(one[2].get(p, 0) < n for p, n in one[3].items())]
