"""How a driver of the simulation starts: S0, and what it marks and commits by.

An actor is a generator. Between any two of its steps the world may do anything:
end it, let it sleep for long, start another, take Redis' latest writes away, take the
log's head, or all of the log. What it decides it asks the pure functions, through a
`Rules`, which mutants replace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from weir.commit import (
    Attempt,
    Fence,
    Mark,
    Offsets,
    Verdict,
    decide_fence,
    decide_opening,
    furthest,
    same_offsets,
)
from weir.commit_found import Found, Level, Planned, Recovery
from weir.commit_recovery import activation_floor
from weir.definitions.history import NO_START, Start
from weir.names import LIVE_LANE

from .commit_attempt import Rules, check_decided, check_told, try_commit
from .commit_world import (
    DEFINITIONS_ID,
    PANE_LENGTH,
    SHARDS,
    Definition,
    Parts,
    Range,
    Record,
    World,
    evaluate,
    events_id,
    topic_of,
)

Steps = Iterator[None]
NEAR = 5


class FencedError(Exception):
    """A newer driver owns the state: exit."""


class RestartError(Exception):
    """The state is not what it should be: begin again at S0."""


class Starting:
    """One process of the panes job, as far as before its first batch."""

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
        self.gave_up = -1

    # ── S0 ──────────────────────────────────────────────────────────────────
    def _start(self) -> Steps:
        world = self.world
        last = read = world.last_start()
        epoch = last.epoch if last else None
        while True:
            opened, before = epoch is None, self.topic
            # Before the ends: what is found of a newer log then is not taken for this one's.
            self.topic = world.topic
            self.floor = activation_floor(world.ends(), first_start=last is None)
            said = max(self.lacks, read.incomplete_before_ms if read else 0)
            # What an epoch counts was found before it begins.
            topic = self.topic if last is None else before if opened else topic_of(last)
            yield  # who sleeps here decides by what is no more so
            self._append_start(epoch, said, topic, read)
            yield
            yield from self._raise_fence()
            found = Found(
                [image.marks.get(LIVE_LANE) for image in world.shards],
                world.planned,
                replace(world.bounds(), topic_id=events_id(self.topic)),
                self.epoch,
                world.last_record(),
                first_ever=last is None,
                counted_id=last.events_id if last else None,
                near=self._near(),
            )
            lacks, self.found_from = world.complete_from(), found.log.start
            yield
            recovery = self._decided(found)
            check_decided(world, found)
            self.lacks = max(self.lacks, self._lacks(recovery, lacks))
            is_said = self.lacks <= said and (not opened or topic == self.topic)
            if (opened or not recovery.new_epoch) and is_said:
                break
            epoch, read = None, self._unfenced()
        yield from self._recover(recovery, opened)
        check_told(world, found, recovery)
        self.planned = found.checkpoint if recovery.keep_checkpoint else None

    def _append_start(self, epoch: int | None, said: int, topic: int, read: Start | None) -> None:
        """Append a start record, and begin again if it does not follow the one that was read."""
        world = self.world
        follows = read.fence if read else NO_START
        record = Definition("start", epoch=epoch, incomplete=said, topic=topic, follows=follows)
        offset = world.append_definition(record)
        self.epoch, self.fence = offset if epoch is None else epoch, Fence(offset, DEFINITIONS_ID)
        start = world.last_start()
        if self.rules.begins_again and start and start.overtaken:
            raise RestartError

    def _unfenced(self) -> Start | None:
        """Return one's own start, unless another driver has started since."""
        start = self.world.last_start()
        if self.rules.asks_before_an_epoch and start and start.fence != self.fence.fence:
            raise FencedError
        return start

    def _lacks(self, recovery: Recovery, of_log: int) -> int:
        """Return the first pane that has all that a recovery passes; 0: it passes nothing."""
        if not self.rules.tells_gone:
            return 0
        if recovery.given_up and self.gave_up != self.topic:
            # What is gone was received by now, also if this is asked again.
            self.gave_up = self.topic
            return max(of_log, self.world.now // PANE_LENGTH + 1)
        return of_log if recovery.gaps else 0

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
            active = self._active()
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
        for low, high in ((begin, middle), (middle, target)):
            # Of each partition a lane of its own, counted at the same time as the others; or, as
            # where there are more partitions than tasks, one of several.
            one_each = self.world.rng.random() < 0.6
            for mine in [[p] for p in high] if one_each else [list(high)]:
                start, end = {p: low.get(p, 0) for p in mine}, {p: high[p] for p in mine}
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
        # A mark that went back since it was read took the fence, which is younger, with it; one
        # that went alone did not.
        live = image.marks.get(LIVE_LANE)
        if live is None or not same_offsets(live.end, level.from_offsets):
            raise RestartError
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

    def _look(self, begin: Offsets, to: Offsets) -> None:
        """Look whether the log is the one that was found, and still holds a range."""
        if self.rules.looks_at_topic and self.world.topic != self.topic:
            raise RestartError
        if self.rules.looks_at_start_of_log and self.world.is_gone(begin, to):
            raise RestartError

    def _active(self) -> dict[int, Offsets]:
        """Return by version from where it is counted: all of a log in which it did not begin."""
        found = self.world.activations(heed=self.rules.heeds_topic)
        return {vid: record.offsets for vid, record in found.items()}

    def _give_way(self) -> None:
        fences = [image.fence.fence for image in self.world.shards if image.fence]
        if any(fence > self.fence.fence for fence in fences):
            raise FencedError
        raise RestartError

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
