"""Runs of the model: faults at random, then healing, then the recount.

One seed is one run, and the same seed is always the same run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weir.commit_found import Planned

from .commit_attempt import Rules, published
from .commit_driver import Driver
from .commit_world import (
    LEDGER,
    PARTITIONS,
    SHARDS,
    Cuts,
    Definition,
    Image,
    World,
)

CORRECT = Rules()
MOST_DRIVERS = 3
MOST_VERSIONS = 3


@dataclass(frozen=True)
class Faults:
    """How likely each fault is at each step, and how long a run is.

    Attributes:
        steps: Steps before healing begins.
        events: Chance of an event at each step.
        crash: A driver ends.
        second: Another driver starts beside the first.
        pause: A driver stands still for some time.
        tail: Redis loses its latest writes: of everything, a shard or the stream.
        wipe: Redis loses everything, or everything or just the marks of one shard.
        checkpoint: The checkpoint is lost, set back, or another one's.
        version: A definition is made.
        left_behind: A task's attempt is given up half-way, or doubled.
        wake: An attempt that nobody waits for takes a step.
        tail_writes: The most writes that a tail has.
        anew: The topic is deleted and created under its name.
        retention: The oldest records of a partition are deleted.
    """

    steps: int = 150
    events: float = 0.25
    crash: float = 0.015
    second: float = 0.006
    pause: float = 0.01
    tail: float = 0.008
    wipe: float = 0.002
    checkpoint: float = 0.006
    version: float = 0.012
    left_behind: float = 0.1
    wake: float = 0.05
    tail_writes: int = 25
    anew: float = 0.0
    retention: float = 0.0


class Run:
    """One run."""

    def __init__(self, seed: int, rules: Rules, faults: Faults) -> None:
        self.world = World(seed, faults.left_behind, rules.behind)
        self.rules, self.faults = rules, faults
        self.drivers: list[tuple[Driver, Iterator[None]]] = []
        self.asleep: dict[Driver, int] = {}
        self.late: list[Iterator[None]] = []
        self._faults = (
            (self._crash, faults.crash),
            (self._second, faults.second),
            (self._pause, faults.pause),
            (self._lose_tail, faults.tail),
            (self._wipe, faults.wipe),
            (self._break_checkpoint, faults.checkpoint),
            (self._define, faults.version),
            (self._create_anew, faults.anew),
            (self._take_away, faults.retention),
        )

    def wrongs(self) -> list[str]:
        """Do the run and return everything that was wrong."""
        for step in range(self.faults.steps):
            self._break(step)
            self._step(step)
        self._heal()
        self._check()
        return self.world.wrongs

    def _start_driver(self) -> None:
        driver = Driver(self.world, self.rules)
        self.drivers.append((driver, driver.run()))

    def _step(self, step: int) -> None:
        rng = self.world.rng
        if rng.random() < self.faults.events:
            self.world.append_event()
        if self.world.stands_still and rng.random() < 0.2:
            self.world.append_definition(Definition("adopt"))
            self.world.stands_still = False
        if not self.drivers:
            self._start_driver()
        index = int(rng.random() * len(self.drivers))
        driver, steps = self.drivers[index]
        if self.asleep.get(driver, 0) <= step:
            self._advance(index, driver, steps)
        if self.late and rng.random() < self.faults.wake:
            self._wake(int(rng.random() * len(self.late)))

    def _advance(self, index: int, driver: Driver, steps: Iterator[None]) -> None:
        try:
            next(steps)
        except StopIteration:
            del self.drivers[index]
        self.late += driver.attempts
        driver.attempts.clear()

    def _wake(self, index: int) -> None:
        try:
            next(self.late[index])
        except StopIteration:
            del self.late[index]

    # ── faults ──────────────────────────────────────────────────────────────
    def _break(self, step: int) -> None:
        """Do at most one fault."""
        chance = self.world.rng.random()
        for fault, likely in self._faults:
            if chance < likely:
                fault(step)
                return
            chance -= likely

    def _crash(self, _: int) -> None:
        if self.drivers:
            del self.drivers[int(self.world.rng.random() * len(self.drivers))]

    def _second(self, _: int) -> None:
        if len(self.drivers) < MOST_DRIVERS:
            self._start_driver()

    def _pause(self, step: int) -> None:
        if self.drivers:
            driver, _ = self.drivers[int(self.world.rng.random() * len(self.drivers))]
            self.asleep[driver] = step + int(self.world.rng.random() * 120)

    def _define(self, _: int) -> None:
        if len(self.world.versions()) < MOST_VERSIONS:
            self.world.append_definition(Definition("version"))

    def _lose_tail(self, _: int) -> None:
        world, rng = self.world, self.world.rng
        if not world.before:
            return
        world.lossless = False
        back = min(len(world.before), 1 + int(rng.random() ** 2 * self.faults.tail_writes))
        shards, stream = world.before[-back]
        kind = rng.random()
        if kind < 0.5:
            del world.before[-back:]
            world.shards, world.stream = list(shards), stream
        elif kind < 0.85:
            shard = int(rng.random() * SHARDS)
            world.put(shard, shards[shard])
        else:
            world.stream = stream

    def _wipe(self, _: int) -> None:
        world, rng = self.world, self.world.rng
        world.lossless = False
        kind, shard = rng.random(), int(rng.random() * SHARDS)
        if kind < 0.5:
            world.shards, world.stream = [Image() for _ in range(SHARDS)], ()
            world.before.clear()
        elif kind < 0.8:
            world.put(shard, Image())
        else:
            world.put(shard, world.shards[shard]._replace(marks={}))

    def _break_checkpoint(self, _: int) -> None:
        world, rng = self.world, self.world.rng
        kind = rng.random()
        if kind < 0.35 or not world.old_plans:
            world.plan(None)
        elif kind < 0.8:
            world.plan(world.old_plans[int(rng.random() * len(world.old_plans))])
        else:
            begin = {p: int(rng.random() * (n + 1)) for p, n in world.ends().items()}
            to = {p: n + int(rng.random() * 4) for p, n in begin.items()}
            world.plan(Planned(int(rng.random() * 30), begin, to, rng.random() < 0.5))

    def _create_anew(self, _: int) -> None:
        self.world.create_anew()

    def _take_away(self, _: int) -> None:
        rng = self.world.rng
        self.world.take_away(int(rng.random() * PARTITIONS), rng.random())

    # ── healing ─────────────────────────────────────────────────────────────
    def _heal(self) -> None:
        """Wake everybody up, keep one driver alive, and wait until all is counted."""
        self.faults = replace(self.faults, events=0.0, wake=0.3)
        self.asleep.clear()
        calm: dict[Driver, int] = {}
        for step in range(6_000):
            self._step(step)
            if len(self.drivers) != 1 or self.late or not self._backfilled():
                calm.clear()
                continue
            driver = self.drivers[0][0]
            # Two rounds: the first may have begun before the last fault.
            if driver.idle_rounds >= calm.setdefault(driver, driver.idle_rounds) + 2:
                return
        self.world.wrongs.append("I16: it never came to rest")

    def _backfilled(self) -> bool:
        active = self.world.activations()
        if len(active) < len(self.world.versions()) or not self.drivers:
            return False
        return not self.drivers[0][0].open_slices()

    # ── the recount ─────────────────────────────────────────────────────────
    def _check(self) -> None:
        world = self.world
        if world.wrongs:
            return
        expected, cuts, said = recount(world), world.cuts(), world.said_incomplete()
        for shard, image in enumerate(world.shards):
            holds, should = owned(image.panes, cuts), owned(expected[shard], cuts)
            if whole(holds, said) != whole(should, said):
                world.wrongs.append(f"I5: shard {shard} is not the sum of its parts")
            if any(n > should.get(key, 0) for key, n in holds.items()):
                world.wrongs.append(f"I3: shard {shard} holds more than the log held")
        self._check_former(said)
        rows = [(k, n) for image in world.shards for k, n in image.panes.items()]
        received = sum(event.shard >= 0 for records in world.log for event in records)
        if not said and sum(n for (vid, _), n in rows if vid == LEDGER) != received:
            world.wrongs.append("I4: the ledger does not add up to what was received")
        if world.lossless and not world.levelled:
            self._check_corrections()

    def _check_former(self, said: int) -> None:
        """Check that panes are told to lack what a log held that is gone, and was counted."""
        counted = self.world.counted
        for topic, events in enumerate(self.world.former):
            if topic in counted and any(one.counted and one.pane >= said for one in events):
                self.world.wrongs.append("I13: panes lack a former log, and nobody says so")

    def _check_corrections(self) -> None:
        world = self.world
        for (vid, pane, shard), value in world.final.items():
            if world.activations()[vid].backfill:
                continue  # a backfill changes panes without corrections, until its takeover
            now = world.shards[shard].panes.get((vid, pane), 0)
            if value + published(world, (vid, pane, shard)) != now:
                world.wrongs.append("I9: the corrections do not add up to the value now")


def owned(panes: dict[tuple[int, int], int], cuts: dict[int, Cuts]) -> dict[tuple[int, int], int]:
    """Return the panes that are read: those on a version's own side of its cuts."""
    return {
        (vid, pane): n
        for (vid, pane), n in panes.items()
        if vid == LEDGER or cuts.get(vid, Cuts()).first <= pane < cuts.get(vid, Cuts()).end
    }


def whole(panes: dict[tuple[int, int], int], said: int) -> dict[tuple[int, int], int]:
    """Return the panes of which nobody has said that they may lack something."""
    return {
        (vid, pane): n
        for (vid, pane), n in panes.items()
        if pane >= said and (vid != LEDGER or not said)
    }


def recount(world: World) -> list[dict[tuple[int, int], int]]:
    """Return what every pane must hold, by the log alone."""
    active = world.activations()
    panes: list[dict[tuple[int, int], int]] = [{} for _ in range(SHARDS)]
    for partition in range(PARTITIONS):
        for offset, event in enumerate(world.log[partition]):
            if event.shard < 0:
                continue
            rows = [((LEDGER, int(event.counted)), 1)]
            for vid, activation in active.items():
                since = 0 if activation.backfill else activation.offsets.get(partition, 0)
                if event.counted and offset >= since:
                    rows.append(((vid, event.pane), event.weight))
            for key, n in rows:
                panes[event.shard][key] = panes[event.shard].get(key, 0) + n
    return panes


def run(seed: int, rules: Rules = CORRECT, faults: Faults | None = None) -> list[str]:
    """Return what was wrong in the run of a seed."""
    return Run(seed, rules, faults or Faults()).wrongs()
