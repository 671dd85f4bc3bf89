"""The actors of the simulation: drivers and the attempts of their tasks.

An actor is a generator. Between any two of its steps the world may do anything:
end it, let it sleep for long, start another, take Redis' latest writes away. What it
decides it asks the pure functions, through a `Rules`, which mutants replace.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace

from weir.commit import (
    Attempt,
    Fence,
    Mark,
    Offsets,
    ShardState,
    Verdict,
    decide,
    decide_fence,
    decide_opening,
    decide_record,
    furthest,
)
from weir.commit_found import Found, Level, Planned, Recovery
from weir.commit_recovery import activation_floor, reconcile
from weir.names import LIVE_LANE

from .commit_world import (
    DEFINITIONS_ID,
    LEDGER,
    NO_END,
    PANE_LENGTH,
    SHARDS,
    BeyondLogError,
    Definition,
    Entry,
    Image,
    Parts,
    Range,
    Record,
    World,
    evaluate,
    events_id,
)

Steps = Iterator[None]
BATCH_LIMIT = 6
SLICE = 6
NEAR = 5
MAX_STARTS = 30


@dataclass(frozen=True)
class Rules:
    """The decisions under test; a mutant replaces one."""

    decide: Callable[[ShardState, Range], Verdict] = lambda shard, mine: decide(shard, mine.attempt)
    reconcile: Callable[[Found], Recovery] = reconcile
    new_token: Callable[[World, str | None], str] = lambda world, _: str(world.rng.random())
    ticks: bool = True
    activates_at_from: bool = False
    keeps_floor: bool = True
    chains_clearing: bool = True
    marks_lanes: bool = True
    fills_every_shard: bool = True
    stops_only_what_is_over: bool = True
    looks_at_topic: bool = True
    looks_at_start_of_log: bool = True
    tells_overtaken: bool = True


class FencedError(Exception):
    """A newer driver owns the state: exit."""


class RestartError(Exception):
    """The state is not what it should be: begin again at S0."""


class Driver:
    """One process of the panes job, from its start to its end."""

    def __init__(self, world: World, rules: Rules) -> None:
        self.world, self.rules = world, rules
        self.fence = Fence(-1, DEFINITIONS_ID)
        self.epoch = -1
        self.position: Offsets = {}
        self.floor: Offsets = {}
        self.last_to: Offsets = {}
        self.batch = 0
        self.planned: Planned | None = None
        self.trims = dict.fromkeys(range(SHARDS), 0)
        self.idle_rounds = 0
        self.attempts: list[Iterator[None]] = []
        self.topic = 0
        self.found_from: Offsets = {}
        self.lacks = 0
        self.adopting = False

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

    # ── S0 ──────────────────────────────────────────────────────────────────
    def _start(self) -> Steps:
        world = self.world
        last = world.last_start()
        epoch = last.epoch if last else None
        while True:
            opened = epoch is None
            offset = len(world.definitions)
            self.epoch = offset if epoch is None else epoch
            # Before the ends: what is found of a newer log then is not taken for this one's.
            self.topic = world.topic
            self.floor = activation_floor(world.ends(), first_start=last is None)
            said = max(self.lacks, world.said_incomplete())
            world.append_definition(Definition("start", epoch=self.epoch, incomplete=said))
            self.fence = Fence(offset, DEFINITIONS_ID)
            yield
            yield from self._raise_fence()
            found = Found(
                [image.marks.get(LIVE_LANE) for image in world.shards],
                world.planned,
                replace(world.bounds(), topic_id=events_id(self.topic)),
                self.epoch,
                world.last_record(),
                first_ever=last is None,
                near=self._near(),
            )
            lacks, self.found_from = world.complete_from(), found.log.start
            yield
            recovery = self._decided(found)
            self.lacks = max(self.lacks, lacks if recovery.gaps else 0)
            if (opened or not recovery.new_epoch) and self.lacks <= said:
                break
            epoch = None
        yield from self._recover(recovery, opened)
        self.planned = found.checkpoint if recovery.keep_checkpoint else None

    def _decided(self, found: Found) -> Recovery:
        """Return what there is to do, by a person's decision where one is needed."""
        recovery = self.rules.reconcile(found)
        if recovery.verdict is not Verdict.FOREIGN:
            return recovery
        if not self.world.decided():
            self._stand_still(recovery.reason)
        self.adopting = True
        return self.rules.reconcile(replace(found, adopt=True))

    def _stand_still(self, why: str) -> None:
        """End, until somebody decides; that is wrong where nobody has touched the log."""
        if self.world.lossless or not (self.world.topic or any(self.world.first.values())):
            self.world.wrongs.append(f"foreign: {why}")
        self.world.stands_still = True
        raise FencedError

    def _near(self) -> Offsets:
        """Return the place behind which a shard is not levelled."""
        marks = (image.marks.get(LIVE_LANE) for image in self.world.shards)
        ends = furthest([mark.end for mark in marks if mark])
        return {p: max(0, n - NEAR) for p, n in ends.items()}

    def _raise_fence(self) -> Steps:
        for shard, _ in enumerate(self.world.shards):
            image = self.world.shards[shard]
            verdict = decide_fence(image.fence, self.fence, len(self.world.definitions))
            if verdict is Verdict.FENCED:
                raise FencedError
            if verdict is Verdict.FOREIGN:
                self.world.wrongs.append("foreign fence")
                raise FencedError
            if verdict is Verdict.OK:
                self.world.put(shard, image._replace(fence=self.fence))
            yield

    def _recover(self, recovery: Recovery, opened: bool) -> Steps:
        world = self.world
        if recovery.verdict is Verdict.FOREIGN or recovery.target is None:
            world.wrongs.append(f"foreign though adopted: {recovery.reason}")
            raise FencedError
        lanes: dict[int, Offsets] = {}
        if recovery.rebuild:
            yield from self._open_lanes(recovery.target, lanes)
        for shard in recovery.clear:
            mine = lanes if shard in recovery.rebuild else {}
            yield from self._clear(shard, recovery.target, mine)
        for level in recovery.bridges:
            yield from self._bridge(level)
        for level in recovery.levels:
            world.levelled = True
            active = {v: a.offsets for v, a in world.activations().items()}
            self._look(level.read_from, level.to_offsets)
            parts = evaluate(world, level.read_from, level.to_offsets, active)[level.shard]
            wanted = self._range(LIVE_LANE, level.from_offsets, level.to_offsets, corrects=False)
            yield from self._commit(level.shard, wanted, parts)
        if not recovery.keep_checkpoint:
            world.plan(None)
            yield
        if opened:
            verdict = decide_opening(world.last_record(), self.epoch)
            if verdict is Verdict.FENCED:
                self._give_way()
            if verdict is Verdict.OK:
                world.append_record(Record(self.epoch, 0, {}))
            yield
        self.trims = dict.fromkeys(range(SHARDS), 0)
        self.last_to = self.position = recovery.target
        self.batch = 0

    def _open_lanes(self, target: Offsets, lanes: dict[int, Offsets]) -> Steps:
        """Append the records of the lanes that count again what lies before a place."""
        begin = {p: min(n, target.get(p, 0)) for p, n in self.found_from.items() if n}
        middle = {
            p: max(begin.get(p, 0), int(self.world.rng.random() * (n + 1)))
            for p, n in target.items()
        }
        for start, end in ((begin, middle), (middle, target)):
            record = Definition(
                "rebuild", self.fence.fence, offsets=end, start=start, topic=self.topic
            )
            lanes[self.world.append_definition(record)] = start
            yield
        self._check_mine(lanes)

    def _check_mine(self, lanes: Iterable[int]) -> None:
        """Look whether readers will heed the lanes that were opened."""
        if self.world.topic == self.topic and any(n not in self.world.rebuilds() for n in lanes):
            raise FencedError

    def _bridge(self, level: Level) -> Steps:
        """Let a shard that is far behind go on with the others, and a lane count the rest."""
        world = self.world
        world.levelled = True
        start, end = level.read_from, level.to_offsets
        lane = world.append_definition(
            Definition("rebuild", self.fence.fence, offsets=end, start=start, topic=self.topic)
        )
        yield
        self._check_mine([lane])
        image = world.shards[level.shard]
        # A mark that went back since it was read took the fence, which is younger, with it.
        marks = {LIVE_LANE: self._mark(end, -1), str(lane): self._mark(start, -1)}
        self._write(level.shard, image.token, marks={**image.marks, **marks})
        yield

    def _clear(self, shard: int, target: Offsets, lanes: dict[int, Offsets]) -> Steps:
        """Empty a shard and set its marks, each step only upon the one before."""
        token = self._write(shard, self.world.shards[shard].token, marks={})
        yield
        token = self._write(shard, token, panes={}, outbox={})
        yield
        marks = {LIVE_LANE: self._mark(target, -1)}
        if self.rules.marks_lanes:
            marks |= {str(lane): self._mark(start, -1) for lane, start in lanes.items()}
        self._write(shard, token, marks=marks)
        yield

    def _write(self, shard: int, token: str | None, **changes: object) -> str:
        image = self.world.shards[shard]
        moved = image.token != token and self.rules.chains_clearing
        if image.fence is None or image.fence.fence < self.fence.fence or moved:
            raise RestartError
        if image.fence.fence > self.fence.fence:
            raise FencedError
        changes["token"] = self.rules.new_token(self.world, token)
        self.world.put(shard, image._replace(**changes))  # type: ignore[arg-type]
        return str(changes["token"])

    def _give_way(self) -> None:
        fences = [image.fence.fence for image in self.world.shards if image.fence]
        if any(fence > self.fence.fence for fence in fences):
            raise FencedError
        raise RestartError

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
        world = self.world
        for vid, activation in list(world.activations().items()):
            if not activation.backfill or vid <= max(world.takeovers(), default=-1):
                continue  # a version that is edited before it serves is given up
            waiting = {shard for lane, shard, *_ in self.open_slices() if lane == vid}
            if len(waiting) > (0 if self.rules.fills_every_shard else SHARDS - 1):
                continue
            cut = int(world.rng.random() * (world.now // PANE_LENGTH + 1))
            record = Definition("takeover", self.fence.fence, 0, vid, at, cut=cut, topic=self.topic)
            world.append_definition(record)
            if world.lossless and vid in world.takeovers():
                check_takeover(world, vid, cut)
            yield

    def _batch(self, planned: Planned) -> Steps:
        world = self.world
        if self.rules.activates_at_from:
            yield from self._activate(planned)
        self._look(planned.from_offsets, planned.to_offsets)
        active = {v: a.offsets for v, a in world.activations().items()}
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
        self.idle_rounds += planned.to_offsets == world.ends()
        yield

    def _record(self, planned: Planned) -> Steps:
        """Publish the corrections of all outboxes, then the record."""
        world = self.world
        outboxes = [dict(image.outbox) for image in world.shards]
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

    def _look(self, begin: Offsets, to: Offsets) -> None:
        """Look whether the log is the one that was found, and still holds a range."""
        if self.rules.looks_at_topic and self.world.topic != self.topic:
            raise RestartError
        if self.rules.looks_at_start_of_log and self.world.is_gone(begin, to):
            raise RestartError

    def _look_for_lane(self, begin: Offsets, to: Offsets) -> None:
        """Look likewise: what a lane lacks is told by a start record, then it goes on."""
        if self.rules.looks_at_topic and self.world.topic != self.topic:
            raise RestartError
        lacks = self.world.complete_from() if self.world.is_gone(begin, to) else 0
        if lacks > self.world.said_incomplete() and self.rules.tells_overtaken:
            self.lacks = lacks
            raise RestartError

    def _slice(self) -> Steps:
        """Do some slice of some backfill or rebuild in one shard."""
        world = self.world
        open_slices = self.open_slices()
        if not open_slices:
            return
        lane, shard, at, end = open_slices[int(world.rng.random() * len(open_slices))]
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

    # ── S4 ──────────────────────────────────────────────────────────────────
    def _range(
        self, lane: str, begin: Offsets, to: Offsets, *, batch: int = -1, corrects: bool = True
    ) -> Range:
        rebuild = self.world.rebuilds().get(int(lane)) if lane != LIVE_LANE else None
        start = rebuild.start if rebuild else {}
        attempt = Attempt(self.fence, events_id(self.topic), begin, to, None, lane, start)
        return Range(attempt, self.epoch, batch, 0, corrects)

    def _mark(self, end: Offsets, batch: int) -> Mark:
        return Mark(
            epoch=self.epoch,
            batch=batch,
            topic_id=events_id(self.topic),
            end=dict(end),
            shards=SHARDS,
        )

    def _leave_behind(self, shard: int, wanted: Range, parts: Parts) -> None:
        """Start an attempt that nobody waits for and that may wake up much later."""
        attempt = try_commit(self.world, self.rules, shard, wanted, parts)
        next(attempt)
        self.attempts.append(attempt)

    def _commit(self, shard: int, wanted: Range, parts: Parts) -> Steps:
        verdict = Verdict.RETRY
        attempt = try_commit(self.world, self.rules, shard, wanted, parts)
        while True:
            try:
                next(attempt)
            except StopIteration as stop:
                verdict = stop.value
                break
            yield
        if verdict is Verdict.FENCED:
            raise FencedError
        if verdict is Verdict.FOREIGN:
            self._stand_still("a shard's mark is of another log")
        live = wanted.attempt.lane == LIVE_LANE
        if verdict is Verdict.LOST or (live and verdict in (Verdict.BEHIND, Verdict.REWIND)):
            raise RestartError


def try_commit(
    world: World, rules: Rules, shard: int, wanted: Range, parts: Parts
) -> Generator[None, None, Verdict]:
    """Read, merge, decide, write; returns the verdict. Any answer may get lost."""
    while True:
        read = world.shards[shard]
        mine = wanted._replace(
            attempt=Attempt(
                wanted.attempt.fence,
                wanted.attempt.topic_id,
                wanted.attempt.from_offsets,
                wanted.attempt.to_offsets,
                read.token,
                wanted.attempt.lane,
                wanted.attempt.lane_start,
            )
        )
        yield
        verdict = rules.decide(world.state(shard, mine.attempt.lane), mine)
        if verdict is Verdict.RETRY:
            continue
        if verdict is Verdict.OK:
            apply(world, rules, shard, read, mine, parts)
            if world.rng.random() < 0.1:  # the answer got lost
                yield
                continue
        return verdict


def apply(world: World, rules: Rules, shard: int, read: Image, mine: Range, parts: Parts) -> None:
    """Write the merged panes, the outbox, the mark and a new token at once."""
    now = world.shards[shard]
    attempt = mine.attempt
    if now.fence is not None and now.fence.fence > attempt.fence.fence:
        world.wrongs.append("I7: an old driver wrote after a newer fence was raised")
    panes, corrections = dict(read.panes), {}
    through = world.received_through(attempt.from_offsets)
    for key, weight in parts.items():
        panes[key] = panes.get(key, 0) + weight
        vid, pane = key
        if vid != LEDGER and panes[key] > world.sent.get((shard, pane), 0):
            world.wrongs.append("I6: a pane holds more than was sent")
        if vid != LEDGER and mine.corrects and through >= (pane + 1) * PANE_LENGTH:
            corrections[mine.epoch, mine.batch, vid, pane, shard] = weight
    outbox = {n: entry for n, entry in now.outbox.items() if n > mine.trim}
    outbox[max(now.outbox, default=0) + 1] = Entry(corrections)
    mark = Mark(
        epoch=mine.epoch,
        batch=mine.batch,
        topic_id=attempt.topic_id,
        end=dict(attempt.to_offsets),
        shards=SHARDS,
    )
    marks = {**now.marks, attempt.lane: mark}
    token = rules.new_token(world, now.token)
    world.put(shard, Image(now.fence, marks, token, panes, outbox))


def check_takeover(world: World, vid: int, cut: int) -> None:
    """Check that a version holds, from the cut on, what the log holds up to each shard's mark."""
    for shard, image in enumerate(world.shards):
        live = image.marks.get(LIVE_LANE)
        expected = evaluate(world, {}, live.end if live else {}, {vid: {}}, ledger=False)[shard]
        now = {key: n for key, n in image.panes.items() if key[0] == vid and key[1] >= cut}
        if now != {key: n for key, n in expected.items() if key[1] >= cut}:
            world.wrongs.append("I12: a version took over before it was filled")


def check_record(world: World, to: Offsets) -> None:
    """Check what a reader of the record may believe (I11), and note final values (I9)."""
    if not world.lossless:
        return
    for image in world.shards:
        end = image.marks[LIVE_LANE].end
        if any(end.get(p, 0) < n for p, n in to.items()):
            world.wrongs.append("I11: a record names offsets that a shard has not counted")
    through = world.received_through(to)
    for shard, image in enumerate(world.shards):
        for (vid, pane), value in image.panes.items():
            key = (vid, pane, shard)
            if vid != LEDGER and key not in world.final and through >= (pane + 1) * PANE_LENGTH:
                world.final[key] = value - published(world, key)


def published(world: World, pane: tuple[int, int, int]) -> int:
    """Return the sum of all corrections published of a pane."""
    return sum(n for key, n in world.corrections.items() if key[2:] == pane)
