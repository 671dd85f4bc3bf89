"""Heartbeats of channels: they come while rules are evaluated, and stay away when not."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from alerts_job import AlertsJob, Receiver, define
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it names them in no __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)
from redis import Redis
from weir import names
from weir.alerts.channels import Channels
from weir.alerts.due import Place
from weir.alerts.messages import heartbeat_message
from weir.alerts.records import Notification, Trial
from weir.clock import ManualClock, SystemClock
from weir.definitions.records import Edit, put_record
from weir.kafka import Kafka
from weir_analytics.alerts import heartbeats
from weir_analytics.alerts.channels.answer import Answer
from weir_analytics.alerts.channels.sender import Sender
from weir_analytics.alerts.heartbeats import Beat, Heartbeats, due
from weir_analytics.alerts.journal import Journal
from weir_analytics.alerts.sending import Sending
from weir_analytics.alerts.settings import Settings
from weir_local.kafka import Broker
from weir_local.testing import running_broker
from weir_local.waiting import wait_until
from weir_reading.catalog import Catalog
from weir_reading.follower import Record
from written import Writer

PLACE: Place = ("default", "hook")
EVERY_MS = 10_000
START_MS = 1_800_000_000_000
CHANNEL = {"apprise": "secret://hook", "heartbeat": "10s"}


@pytest.mark.parametrize(
    ("last", "is_due"),
    [
        (None, True),
        (Beat(at_s=90.0, evaluated_ms=1), True),
        (Beat(at_s=90.01, evaluated_ms=1), False),
        (Beat(at_s=0.0, evaluated_ms=2), False),
        (Beat(at_s=0.0, evaluated_ms=3), True),
    ],
)
def test_due(last: Beat | None, is_due: bool) -> None:
    """After its time, if rules were looked at since; also if counting began anew behind."""
    known = {} if last is None else {PLACE: last}

    assert due({PLACE: EVERY_MS}, known, 100.0, 2) == ([PLACE] if is_due else [])
    assert due({}, known, 100.0, 2) == []


def test_what_it_says() -> None:
    """How often it comes, and what its receiver should do; each has an id of its own."""
    first, second = (heartbeat_message(*PLACE, 90_000, at_ms, START_MS) for at_ms in (1, 2))

    assert first.text == (
        "Weir evaluates its rules, and says so every 1m30s. "
        "Complain if this message has not come for 3m."
    )
    assert (first.kind, first.at_ms) == ("heartbeat", START_MS)
    assert first.dedup_key == second.dedup_key
    assert first.id != second.id


class Hanging(Sender):
    """Begins to send, and never ends.

    Attributes:
        sent: Tenant, channel and kind of what it began to send.
    """

    def __init__(self, catalog: Catalog, settings: Settings, clock: ManualClock) -> None:
        super().__init__(catalog, settings, clock)
        self.sent: list[tuple[str, str, str]] = []

    async def send(self, tenant: str, channel: str, note: Notification) -> Answer:
        """Hang."""
        self.sent.append((tenant, channel, note.kind))
        await asyncio.sleep(3_600)
        return Answer(None, 0)


def test_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one is under way there is no other on its channel, however long it takes."""
    monkeypatch.setattr(heartbeats, "LOOK_EVERY_S", 0.001)
    text = json.dumps({"kind": "channel", "name": "hook", **CHANNEL})
    record = put_record(Edit("default", "channel", "hook", None, "ann", 0), text)
    catalog, clock = Catalog(), ManualClock()
    catalog.take([Record(0, record.key, record.value, 0)])
    settings = Settings(
        kafka_bootstrap="127.0.0.1:9", redis_url="redis://127.0.0.1:9", secrets_dir=tmp_path
    )
    sender = Hanging(catalog, settings, clock)
    sending = Sending(sender, Channels(), clock)
    looks = 0

    def evaluated() -> int:
        nonlocal looks
        looks += 1
        clock.advance(EVERY_MS)
        return looks

    beating = Heartbeats(catalog, sending, clock, evaluated=evaluated, may_send=lambda: True)

    async def played() -> None:
        running = asyncio.create_task(beating.run())
        async with asyncio.timeout(10):
            while looks < 20:  # noqa: ASYNC110  polled, as in every test
                await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await sending.close()

    asyncio.run(played())
    assert sender.sent == [("default", "hook", "heartbeat")]


class Scene:
    """A running job whose channel wants a heartbeat, and the stream of batches."""

    def __init__(self, broker: Broker, redis: Redis, job: AlertsJob) -> None:
        self.broker, self.job, self.hook = broker, job, Receiver()
        webhook = {"url": self.hook.url, "secret": "secret://hook"}
        body = {"webhook": webhook, "heartbeat": "10s"}
        define(broker.bootstrap, "channel", "hook", body, START_MS)
        self._writer = Writer(redis, epoch=1)

    def go_on_until(self, beats: int) -> None:
        """Commit batches until so many heartbeats have come."""

        def came() -> bool:
            self._writer.commit({}, START_MS + self._writer.rev * 1000)
            return self.beats >= beats

        wait_until(came, timeout_s=30, what=f"{beats} heartbeats", every_s=0.5)

    def go_on_for(self, seconds: float) -> None:
        """Commit batches for so long."""
        end_s = time.monotonic() + seconds

        def over() -> bool:
            self._writer.commit({}, START_MS + self._writer.rev * 1000)
            return time.monotonic() > end_s

        wait_until(over, timeout_s=2 * seconds, what="time", every_s=0.5)

    @property
    def beats(self) -> int:
        """Return how many heartbeats have come."""
        return [body["kind"] for body in self.hook.bodies].count("heartbeat")


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


@pytest.mark.kafka
@pytest.mark.redis
def test_they_come_as_long_as_batches_do(scene: Scene) -> None:
    """And after them again; one that fails is not made up for, and nothing is ever due."""
    assert scene.beats == 0
    begun_s = time.monotonic()
    scene.go_on_until(1)
    assert time.monotonic() - begun_s < EVERY_MS / 1000
    scene.go_on_until(2)
    # Seen is when they arrive: on a busy machine the first may be seconds under way.
    assert EVERY_MS - 3_000 < scene.hook.at_ms[1] - scene.hook.at_ms[0] < EVERY_MS + 6_000

    # One may still be owed for what was committed before the pause.
    quiet_s = time.monotonic() + 2 * EVERY_MS / 1000
    wait_until(lambda: time.monotonic() > quiet_s, timeout_s=30, what="two intervals")
    assert scene.beats <= 3
    before = scene.beats
    scene.hook.statuses[:] = [503]
    scene.go_on_until(before + 1)

    assert scene.hook.calls == before + 2
    assert scene.job.says("heartbeat_failed")
    ids = [body["id"] for body in scene.hook.bodies]
    assert len(set(ids)) == len(ids)


@pytest.mark.kafka
@pytest.mark.redis
def test_they_stay_away_while_nothing_can_be_recorded(scene: Scene) -> None:
    """Rules are looked at without Kafka, too; but what they found would be told nobody."""
    scene.go_on_until(1)
    scene.broker.kill()
    scene.go_on_for(1.5 * EVERY_MS / 1000)
    assert scene.beats == 1

    scene.broker.start()
    scene.go_on_until(2)


@pytest.mark.kafka
def test_a_broker_that_takes_nothing_is_away(tmp_path: Path) -> None:
    """It answers whoever reads; that it refuses what is written only an append shows."""
    trial = Trial(tenant="default", id="t", channel="hook", by="ann")

    async def played(bootstrap: str) -> None:
        journal = Journal(Kafka(bootstrap), SystemClock(), lambda: None)
        journal.follower.start()
        await journal.follower.caught_up.wait()
        limit_records(bootstrap, 1)
        is_limited = True

        async def write() -> None:
            # A broker says that a limit is set before it keeps to it, and may take some more.
            while is_limited:
                await journal.append([trial])

        writing = asyncio.create_task(write())
        assert not journal.is_away()
        async with asyncio.timeout(20):
            while not journal.is_away():  # noqa: ASYNC110  polled, as in every test
                await asyncio.sleep(0.1)
            assert journal.follower.away_s() is None
            is_limited = False
            limit_records(bootstrap, 1_000_000)
            await writing
        assert not journal.is_away()
        await journal.close()

    with running_broker(tmp_path / "kafka") as broker:
        asyncio.run(played(broker.bootstrap))


def limit_records(bootstrap: str, most_bytes: int) -> None:
    """Let a broker take records of alerts only up to a size."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    entry = ConfigEntry(
        "max.message.bytes", str(most_bytes), incremental_operation=AlterConfigOpType.SET
    )
    asked = ConfigResource(ConfigResource.Type.TOPIC, names.ALERTS, incremental_configs=[entry])
    for answer in admin.incremental_alter_configs([asked]).values():
        answer.result(10)
