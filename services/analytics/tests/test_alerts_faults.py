"""The alerts job when something is away, is started twice, or is taken from under it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import people
import pytest
from alerts_job import AlertsJob, Receiver, activate, append, define
from redis import Redis
from weir.alerts.channels import Standing
from weir.definitions.records import Edit, put_record
from weir.rows import Row
from weir.series import encode_series
from weir_local.kafka import Broker
from weir_local.testing import running_broker
from weir_local.waiting import wait_until
from written import Writer

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

START_MS = 1_800_000_000_000
MINUTE_MS = 60_000
METRIC = {
    "events": {"type": "t"},
    "aggregates": ["count"],
    "resolution": "1m",
    "keep": {"1m": "7d"},
    "allowed_lateness": "10m",
}


class Scene:
    """One metric, one rule above 10, and two receivers, over panes of a minute."""

    def __init__(self, broker: Broker, redis: Redis, job: AlertsJob) -> None:
        self.broker, self.redis, self.job = broker, redis, job
        self.hook, self.other = Receiver(), Receiver()
        for name, receiver in (("hook", self.hook), ("other", self.other)):
            webhook = {"url": receiver.url, "secret": "secret://hook"}
            self.define("channel", name, {"webhook": webhook})
        self._vid = self.define("metric", "m", METRIC)
        self.define("rule", "r", self.rule())
        self.writer = Writer(redis, epoch=1)
        self._at = 0

    @property
    def through_ms(self) -> int:
        """Return processed-through after the last pane."""
        return START_MS + self._at * MINUTE_MS

    @staticmethod
    def rule(**members: object) -> dict[str, object]:
        """Return the rule."""
        route = {"channels": ["hook", "other"]}
        whole = {"metric": "m", "aggregate": "count", "window": "1m", "above": 10, "route": route}
        return {**whole, **members}

    def define(
        self, kind: str, name: str, body: Mapping[str, Any] | None, based_on: int | None = None
    ) -> int:
        """Append a definition."""
        return define(
            self.broker.bootstrap,
            kind,
            name,
            body,
            START_MS - 1,
            based_on=based_on,
        )

    def pane(self, events: int, *, wait: bool = True) -> None:
        """Count events in the next minute."""
        key = (self._vid, 60, START_MS // 1000 + self._at * 60)
        self._at += 1
        self.writer.commit({key: {"": Row(events)} if events else {}}, self.through_ms)
        if wait:
            self.job.await_evaluated(self.through_ms)

    def correct(self, at: int, events: int, *, told: bool = True) -> None:
        """Count a minute's events anew, as late ones do."""
        key = (self._vid, 60, START_MS // 1000 + at * 60)
        self.writer.commit({key: {"": Row(events)}}, self.through_ms, told=told)

    def tick(self) -> None:
        """Go on without events."""
        self.writer.commit({}, self.through_ms)

    def kinds(self, receiver: Receiver | None = None) -> list[str]:
        """Return what a receiver was told, each message once."""
        bodies = (receiver or self.hook).bodies
        return [body["kind"] for body in {body["id"]: body for body in bodies}.values()]

    def await_kinds(
        self, *kinds: str, receiver: Receiver | None = None, timeout_s: float = 30
    ) -> None:
        """Wait until a receiver was told these, and nothing else."""
        wait_until(
            lambda: len(self.kinds(receiver)) >= len(kinds),
            timeout_s=timeout_s,
            what=f"told {kinds}",
        )
        assert self.kinds(receiver) == list(kinds)


@pytest.fixture
def scene(tmp_path: Path, redis_url: str) -> Iterator[Scene]:
    """Return a scene with a running job."""
    with running_broker(tmp_path / "kafka") as broker, Redis.from_url(redis_url) as redis:
        job = AlertsJob(broker.bootstrap, redis_url, tmp_path)
        scene = Scene(broker, redis, job)
        try:
            job.start()
            yield scene
        finally:
            job.kill()
            scene.hook.close()
            scene.other.close()


def await_standing(scene: Scene, outcome: str) -> Standing:
    """Wait until what is recorded of channel `hook` has an outcome; return it."""

    def standing() -> Standing | None:
        found = people.listing(scene.broker.bootstrap).channels.standing("default", "hook")
        return found if found.outcome == outcome else None

    return wait_until(standing, timeout_s=20, what=f"hook {outcome}")


def test_a_receiver_that_fails_is_tried_again_and_delays_nobody(scene: Scene) -> None:
    """503 three times, then it is delivered, in order; the other channel has it at once."""
    scene.hook.is_down = True
    scene.pane(3)
    scene.pane(12)
    scene.await_kinds("firing", receiver=scene.other)
    assert scene.hook.bodies == []
    standing = await_standing(scene, "failed")
    assert (standing.status, standing.failing_ms) == (503, standing.at_ms)
    wait_until(lambda: scene.hook.calls >= 3, timeout_s=30, what="three calls")
    scene.hook.is_down = False
    scene.pane(3)
    scene.await_kinds("firing", "resolved")

    assert len(scene.hook.bodies) == 2
    assert scene.hook.bodies[0]["dedup_key"] == scene.hook.bodies[1]["dedup_key"]
    assert await_standing(scene, "delivered").failing_ms is None


def test_a_refusal_is_not_tried_again(scene: Scene) -> None:
    """What a receiver refuses for good is written down, and the next message is sent."""
    scene.hook.statuses[:] = [400]
    scene.pane(12)
    scene.pane(3)
    scene.await_kinds("resolved")

    assert scene.hook.calls == 2


@pytest.mark.parametrize("end", ["deleted", "changed", "stopped"])
def test_the_end_of_a_rule_ends_what_fires(scene: Scene, end: str) -> None:
    """Whoever was told that it fires is told that it ended, and why; the new version fires anew."""
    scene.pane(12)
    scene.await_kinds("firing")
    body = {
        "deleted": None,
        "changed": scene.rule(above=9),
        "stopped": scene.rule(mode="stopped"),
    }[end]
    scene.define("rule", "r", body, based_on=1)
    scene.tick()
    again = ("firing",) if end == "changed" else ()
    scene.await_kinds("firing", "ended", *again)

    first, ended = scene.hook.bodies[:2]
    assert ended["dedup_key"] == first["dedup_key"]
    assert end in ended["reason"] or end == "stopped"


def test_a_definition_that_cannot_be_read_stops_no_other(scene: Scene) -> None:
    """A rule, a channel and a metric of a later release are passed over."""
    for kind in ("rule", "channel", "metric"):
        scene.define(kind, "later", {"shape": "of a later release"})
    scene.define("rule", "lost", scene.rule(metric="nobody_has_it"))
    scene.pane(12)
    scene.await_kinds("firing")

    assert scene.job.says("rule_refused")


def test_before_its_metric_is_counted_a_rule_says_nothing(scene: Scene) -> None:
    """No events are no 0 then: a rule below would fire on a metric that nobody counts yet."""
    vid = append(
        scene.broker.bootstrap,
        put_record(
            Edit("default", "metric", "fresh", None, "test", START_MS - 1),
            json.dumps({"kind": "metric", "name": "fresh", **METRIC}),
        ),
    )
    scene.define("rule", "low", scene.rule(metric="fresh", above=None, below=5))
    scene.pane(3)
    scene.pane(3)
    assert scene.kinds() == []

    activate(scene.broker.bootstrap, "fresh", vid)
    scene.pane(3)
    scene.await_kinds("firing")


def test_of_two_jobs_the_later_one_works(scene: Scene, tmp_path: Path) -> None:
    """The earlier one ends by itself; nothing is lost between them."""
    scene.pane(12)
    scene.await_kinds("firing")
    (tmp_path / "second").mkdir()
    second = AlertsJob(scene.broker.bootstrap, scene.job.redis_url, tmp_path / "second")
    second.start()
    try:
        wait_until(
            lambda: scene.job.exit_code is not None, timeout_s=20, what="the first one ended"
        )
        assert scene.job.exit_code == 3
        scene.pane(3, wait=False)
        second.await_evaluated(scene.through_ms)
        scene.await_kinds("firing", "resolved")
    finally:
        second.kill()


def test_a_wiped_redis_fires_and_resolves_nothing(scene: Scene) -> None:
    """All is counted again from lower revisions on; what is told then is what comes after."""
    for events in (3, 12, 12):
        scene.pane(events)
    scene.await_kinds("firing")
    before_ms, panes = scene.through_ms, 3
    scene.redis.flushall()
    scene.writer = Writer(scene.redis, epoch=2, reason="lost")
    scene._at = 0
    for events in (3, 12, 12)[:panes]:
        scene.pane(events, wait=False)
    assert scene.through_ms == before_ms
    scene.pane(12)
    assert scene.kinds() == ["firing"]
    scene.pane(3)
    scene.await_kinds("firing", "resolved")


def test_without_kafka_nothing_is_told_and_nothing_is_lost(scene: Scene) -> None:
    """What cannot be recorded is not sent; it is when the log is back."""
    scene.pane(3)
    scene.broker.kill()
    scene.pane(12, wait=False)
    wait_until(lambda: scene.job.says("topic_read_failed", "log_lost"), timeout_s=30, what="told")
    assert scene.hook.calls == 0

    scene.broker.start()
    # What could not be recorded comes first, and a client may be slow to try the broker again.
    scene.pane(3, wait=False)
    scene.await_kinds("firing", "resolved", timeout_s=60)


def test_a_job_whose_start_is_the_first_record_of_all(tmp_path: Path, redis_url: str) -> None:
    """Its fence is 0, and it sends all the same."""
    with running_broker(tmp_path / "kafka") as broker, Redis.from_url(redis_url) as redis:
        job = AlertsJob(broker.bootstrap, redis_url, tmp_path)
        try:
            job.start()
            scene = Scene(broker, redis, job)
            scene.pane(12)
            scene.await_kinds("firing")
        finally:
            job.kill()


def test_what_changes_while_a_rule_is_refused_is_not_missed(scene: Scene) -> None:
    """A correction is said once, and a rule that has too many groups just then looks later."""
    metric = {**METRIC, "by": ["data.region"], "allowed_lateness": "0s"}
    vid = scene.define("metric", "wide", metric)
    scene.define("rule", "wide_rule", scene.rule(metric="wide", by=["region"]))
    scene.job.await_definitions(scene.broker.bootstrap)

    def minute(number: int, through: int, **regions: int) -> None:
        rows = {encode_series((name,)): Row(n) for name, n in regions.items()}
        through_ms = START_MS + through * MINUTE_MS
        scene.writer.commit({(vid, 60, START_MS // 1000 + number * 60): rows}, through_ms)
        scene.job.await_evaluated(through_ms)

    minute(0, 1, eu=12)
    minute(1, 2, eu=3)
    scene.await_kinds("firing", "resolved")
    many = {f"r{n}": 1 for n in range(501)}
    minute(2, 3, **many)
    assert '"rule": "wide_rule", "why": "query must have at most 500 series' in (
        scene.job.log_path.read_text()
    )
    # Late events take the reason of the first alert away while nobody looks.
    minute(0, 4, eu=4)
    assert scene.kinds() == ["firing", "resolved"]
    minute(2, 5, eu=3)
    scene.define("metric", "unlike", METRIC)
    scene.await_kinds("firing", "resolved", "withdrawn")


@pytest.mark.parametrize("way", ["away", "unread"])
def test_what_is_corrected_unseen_is_seen_later(scene: Scene, way: str) -> None:
    """Old panes that an alert rests on change while the job is down, or in a record it misses."""
    for events in (12, 3, *[2] * 12):
        scene.pane(events)
    scene.await_kinds("firing", "resolved")
    if way == "away":
        scene.job.kill()
    scene.correct(0, 4, told=way == "away")
    if way == "away":
        scene.job.start()
    scene.pane(2)
    scene.await_kinds("firing", "resolved", "withdrawn")
    scene.pane(2)
    assert scene.kinds() == ["firing", "resolved", "withdrawn"]
