"""Alerts by their timelines, through the real process: Kafka, Redis, a receiver of webhooks.

All timelines run at once, each with a metric, a rule and a channel of its own, on one line
of processed-through. Panes and batch records are written as the engine writes them.

What concerns all panes at once has a run for each timeline. There a span in the midst is
more than that: counting begins anew at the log's start, and what retention took was the
oldest. So `rebuilding` is everything up to where counting had been, and `incomplete`
everything before its last pane; what is wanted is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import people
import pytest
from alerts_job import AlertsJob, Receiver, append, define
from redis import Redis
from timelines import START_MS, Moment, Timeline, World, metric_of, play, row_of, timelines
from weir.definitions.records import DriverStart, start_record
from weir.rows import Row
from weir_local.kafka import Broker
from weir_local.testing import running_broker
from weir_local.waiting import wait_until
from written import PaneKey, Writer

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

# What concerns all panes at once cannot happen to one timeline alone.
GLOBAL = ("rebuilding", "incomplete", "stall", "back")
ALONE = [t for t in timelines() if {m.what for m in t.moments} & set(GLOBAL)]
TOGETHER = [t for t in timelines() if t not in ALONE]


STALLED_OR_BACK = [t for t in ALONE if {m.what for m in t.moments} & {"stall", "back"}]
LOST = [t for t in ALONE if {m.what for m in t.moments} & {"rebuilding", "incomplete"}]
END_MS = START_MS + 41 * 60_000
# Nearly everything happens in the first minutes; a start takes two seconds.
KILLED_TO_MS = START_MS + 15 * 60_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Return a broker of this test's own: its log of alerts must begin empty."""
    with running_broker(tmp_path / "kafka") as broker:
        yield broker


@dataclass
class Run:
    """One timeline under way."""

    number: int
    timeline: Timeline
    vid: int
    receiver: Receiver
    worlds: Iterator[tuple[World, tuple[Moment, ...]]]
    held: dict[int, Any]

    @property
    def name(self) -> str:
        """Return what its metric, rule and channel are called."""
        return f"t{self.number}"

    def ids(self) -> set[str]:
        """Return the ids of all messages that came."""
        return {body["id"] for body in self.receiver.bodies}

    def is_told(self) -> bool:
        """Tell whether as many messages came as are wanted."""
        return len(told(self)) >= len(self.timeline.told)

    def advance(self, through_ms: int) -> tuple[tuple[Moment, ...], dict[PaneKey, dict[str, Row]]]:
        """Go on to an instant; return what happened, and the panes that changed."""
        moments: tuple[Moment, ...] = ()
        for world, happened in self.worlds:
            moments += happened
            if world.through_ms == through_ms:
                break
        return moments, self.changed(world)

    def changed(self, world: World) -> dict[PaneKey, dict[str, Row]]:
        """Return the panes that changed since the last look at the world."""
        pane_s = self.timeline.pane_ms // 1000
        changed = {end: f for end, f in world.panes.items() if self.held.get(end) != f}
        self.held |= changed
        return {
            (self.vid, pane_s, end // 1000 - pane_s): {"": row_of(filled)} if filled.events else {}
            for end, filled in changed.items()
        }


def begun(bootstrap: str, number: int, timeline: Timeline) -> Run:
    """Define a timeline's metric, rule and channel."""
    receiver = Receiver()
    name = f"t{number}"
    metric = metric_of(timeline, name=name).canonical()
    rule = timeline.rule.canonical() | {"metric": name, "name": name}
    rule["route"] = {**rule["route"], "channels": [name]}
    follow = "all" if timeline.follow else "firing"
    channel = {"webhook": {"url": receiver.url, "secret": "secret://hook"}, "follow": follow}
    at_ms = START_MS - 1 + timeline.rule.hold
    vid = define(bootstrap, "metric", name, metric, at_ms)
    define(bootstrap, "channel", name, channel, at_ms)
    define(bootstrap, "rule", name, rule, at_ms)
    return Run(number, timeline, vid, receiver, play(timeline, END_MS), {})


def happen(job: AlertsJob, bootstrap: str, run: Run, moment: Moment) -> None:
    """Do what people do, and wait until the job knows of it."""
    if moment.what == "silence":
        until_ms, *made = moment.args
        people.silence(bootstrap, run.name, until_ms, made[0] if made else moment.at_ms)
        job.await_definitions(bootstrap)
    elif moment.what == "unsilence":
        people.unsilence(bootstrap, run.name, moment.at_ms)
        job.await_definitions(bootstrap)
    elif moment.what in ("acknowledge", "unacknowledge"):
        people.acknowledge(bootstrap, run.name, moment.args[0] if moment.args else None)
        # The test stands behind it in the log: who answers it has read the other.
        test = people.ask_for_test(bootstrap, run.name)
        wait_until(lambda: test in run.ids(), timeout_s=20, what="the test of a channel")


KILL = pytest.mark.parametrize(
    "kill",
    [False, pytest.param(True, marks=pytest.mark.disruption)],
    ids=["", "killed after each step"],
)


@pytest.mark.timeout(600)
@KILL
def test_timelines(broker: Broker, redis_url: str, tmp_path: Path, kill: bool) -> None:
    """What receivers get, each message once or more under one id, and nothing else.

    In every second minute panes are told by spans: as many had changed as are not listed.
    """
    runs = [begun(broker.bootstrap, n, timeline) for n, timeline in enumerate(TOGETHER)]
    job = AlertsJob(broker.bootstrap, redis_url, tmp_path)
    job.start()
    with Redis.from_url(redis_url) as redis:
        writer = Writer(redis, epoch=1)
        for through_ms in range(START_MS, END_MS + 1, 60_000):
            panes: dict[PaneKey, dict[str, Row]] = {}
            for run in runs:
                moments, changed = run.advance(through_ms)
                panes |= changed
                for moment in moments:
                    happen(job, broker.bootstrap, run, moment)
            writer.commit(panes, through_ms, spans=through_ms // 60_000 % 2 == 0)
            job.await_evaluated(through_ms)
            if kill and through_ms < KILLED_TO_MS:
                job.kill()
                job.start()
    for run in runs:
        wait_until(run.is_told, timeout_s=20, what=f"all messages of: {run.timeline.name}")
    assert job.stop() == 0
    for run in runs:
        run.receiver.close()
        assert_told(run)


@pytest.mark.parametrize("timeline", STALLED_OR_BACK, ids=lambda one: one.name[:40])
def test_a_timeline_of_processed_through(
    broker: Broker, redis_url: str, tmp_path: Path, timeline: Timeline
) -> None:
    """It stands still, or begins anew behind: nothing is told that was told, or was not so."""
    run = begun(broker.bootstrap, 0, timeline)
    job = AlertsJob(broker.bootstrap, redis_url, tmp_path)
    job.start()
    with Redis.from_url(redis_url) as redis:
        writer = Writer(redis, epoch=1)
        for world, moments in play(timeline):
            back_ms = next((m.args[0] - START_MS for m in moments if m.what == "back"), None)
            if back_ms is not None:
                # The store is lost, and counted again from far behind.
                redis.flushdb()
                writer = Writer(redis, writer.epoch + 1, "lost")
                behind_ms = world.through_ms - back_ms
                writer.commit({}, behind_ms)
                wait_until(lambda: job.evaluated_ms == behind_ms, timeout_s=20, what="behind")  # noqa: B023
                run.held.clear()
            writer.commit(run.changed(world), world.through_ms)
            job.await_evaluated(world.through_ms)
    wait_until(run.is_told, timeout_s=20, what="all messages")
    assert job.stop() == 0
    run.receiver.close()
    assert_told(run)


class Store:
    """The engine's store as it is lost and counted again, or as the log loses its beginning."""

    def __init__(self, redis: Redis, bootstrap: str, run: Run) -> None:
        self._redis, self._bootstrap, self._run = redis, bootstrap, run
        self._writer = Writer(redis, epoch=1)
        self._begun_ms: int | None = None
        self._through_ms = START_MS

    def happen(self, job: AlertsJob, moment: Moment) -> None:
        """Lose the state, or a part of the log; or be back where counting had been."""
        if moment.what == "rebuilding":
            self._redis.flushdb()
            # A job that was not there before takes this for where counting had been.
            self._writer = Writer(self._redis, self._writer.epoch + 1, "lost", moment.args[1])
            self._begun_ms = moment.at_ms
        elif moment.what == "rebuilt":
            self._begun_ms = None
        elif moment.what == "incomplete":
            start = DriverStart("test", 1, "behind", incomplete_before_ms=moment.args[1])
            append(self._bootstrap, start_record(start, at_ms=moment.at_ms))
            job.await_definitions(self._bootstrap)
            self._writer = Writer(self._redis, self._writer.epoch + 1, "behind")

    def commit(self, world: World) -> int:
        """Count what there is to count, or a part of it again; return processed-through."""
        if self._begun_ms is None:
            self._through_ms = world.through_ms
            self._writer.commit(self._run.changed(world), world.through_ms)
            return world.through_ms
        self._run.held.clear()
        # Half as fast as time goes by, and never to where it had been.
        counted_ms = START_MS + (world.through_ms - self._begun_ms) // 2
        counted_ms = min(counted_ms, self._through_ms - 1)
        panes = self._run.changed(world)
        counted = {key: rows for key, rows in panes.items() if ends_ms(key) <= counted_ms}
        self._writer.commit(counted, counted_ms)
        self._run.held.clear()
        return counted_ms


def ends_ms(key: PaneKey) -> int:
    """Return the end of a pane."""
    _, res_s, start_s = key
    return (start_s + res_s) * 1000


@KILL
@pytest.mark.parametrize("timeline", LOST, ids=lambda one: one.name[:40])
def test_a_timeline_of_what_is_lost(
    broker: Broker, redis_url: str, tmp_path: Path, timeline: Timeline, kill: bool
) -> None:
    """Nothing is told of what is counted again, or of what the log has lost."""
    run = begun(broker.bootstrap, 0, timeline)
    job = AlertsJob(broker.bootstrap, redis_url, tmp_path)
    job.start()
    try:
        with Redis.from_url(redis_url) as redis:
            redis.flushdb()
            store = Store(redis, broker.bootstrap, run)
            for world, moments in play(timeline):
                for moment in moments:
                    store.happen(job, moment)
                through_ms = store.commit(world)
                what = f"evaluated up to {through_ms}"
                wait_until(lambda: job.evaluated_ms == through_ms, timeout_s=20, what=what)  # noqa: B023
                due = [one for one in timeline.told if one.from_ms <= world.through_ms]
                assert len(told(run)) <= len(due)
                if kill or "restart" in {moment.what for moment in moments}:
                    job.kill()
                    job.start()
        wait_until(run.is_told, timeout_s=20, what="all messages")
        assert job.stop() == 0
    finally:
        job.kill()
        run.receiver.close()
    assert_told(run)


def told(run: Run) -> list[dict[str, Any]]:
    """Return the messages that a receiver got, each once."""
    bodies = (body for body in run.receiver.bodies if body["kind"] != "test")
    return list({body["id"]: body for body in bodies}.values())


def assert_told(run: Run) -> None:
    """Hold what came against what was wanted."""
    name, messages = run.timeline.name, told(run)
    kinds = [body["kind"] for body in messages]
    assert kinds == [wanted.kind for wanted in run.timeline.told], name
    assert run.receiver.forged == 0
    open_key = None
    for body, wanted in zip(messages, run.timeline.told, strict=True):
        for member, value in wanted.besides.items():
            assert body["verdict" if member == "state" else member] == value, (name, body)
        if body["kind"] == "firing":
            open_key = body["dedup_key"]
        elif body["kind"] in ("resolved", "ended"):
            assert body["dedup_key"] == open_key, name
