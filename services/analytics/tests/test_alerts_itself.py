"""Rules on Weir itself, through the real job: Kafka, Redis, a receiver of webhooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import people
import pytest
from alerts_job import AlertsJob, Receiver, define
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it names them in no __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)
from redis import Redis
from weir import metrics, names
from weir.batches import LedgerRow
from weir.clock import SystemClock
from weir.definitions.signals import SIGNALS
from weir.names import part_key
from weir.rows import Row
from weir.series import encode_series
from weir_local.kafka import Broker
from weir_local.testing import running_broker
from weir_local.waiting import wait_until
from weir_reading.accounts import LEDGER_VID
from weir_reading.parts import PATTERN
from written import Writer

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

MINUTE_MS = 60_000
KEY = {"hash": "0" * 64, "scopes": ["ingest"], "source": "http"}
LIMITS = {
    "weir.stalled": 15,
    "weir.lag": 15,
    "weir.ledger": 0,
    "weir.quarantine": 5,
    "weir.memory": 0,
    "weir.log": 75,
    "weir.quota": 99,
    "weir.channel": 1,
    "weir.rules": 0,
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Return a broker of this test's own: its log of alerts must begin empty."""
    with running_broker(tmp_path / "kafka") as broker:
        yield broker


@pytest.fixture
def job(broker: Broker, redis_url: str, tmp_path: Path) -> Iterator[AlertsJob]:
    """Return the job, not started yet; it is ended after the test."""
    job = AlertsJob(broker.bootstrap, redis_url, tmp_path)
    yield job
    job.kill()


@pytest.mark.timeout(240)
def test_each_signal_fires_and_goes_back(broker: Broker, job: AlertsJob) -> None:
    """While nothing is counted; over a kill -9; with the store gone, nothing resolves."""
    hook, away = Receiver(), Receiver()
    away.is_down = True
    for name, receiver in (("hook", hook), ("away", away)):
        webhook = {"url": receiver.url, "secret": "secret://hook"}
        define(broker.bootstrap, "channel", name, {"webhook": webhook}, 0)
    refused = {"metric": "nobody_has_it", "aggregate": "count", "window": "1m", "above": 1}
    define(broker.bootstrap, "rule", "refused", refused, 0)
    for signal, limit in LIMITS.items():
        body = {"metric": signal, "above": limit, "route": {"channels": ["hook"]}}
        if signal == "weir.memory":
            # No channel is named: both are told, and one of them does not answer.
            del body["route"]
        define(broker.bootstrap, "rule", signal.replace(".", "_"), body, 0)
    job.start()
    with Redis.from_url(job.redis_url) as redis:
        writer = Writer(redis, epoch=1)
        count_with_faults(writer)
        beat(redis, "ingest", allowed_per_s=1_000)
        beat(redis, "panes", capacity_per_s=1_000)
        run_out(broker)
        wait_until(
            lambda: kinds(hook, "firing") == set(LIMITS),
            timeout_s=90,
            what=f"all signals firing, {kinds(hook, 'firing')}; see {job.log_path}",
        )
        await_figures(job, difference=2, refused=1, failing=1, due=True)
        restart_and_read(job, redis)
        redis.flushall()
        restart_and_read(job, redis)
        assert kinds(hook, "resolved") == set()
        away.is_down = False
        # Of a log that began long before these records no minute is known whole for a minute:
        # nobody says that the events lost before were found, or that quarantine is over.
        end, writer = writer.end, Writer(redis, epoch=2)
        writer.end = end

        def is_back() -> bool:
            writer.commit({}, SystemClock().now_ms())
            return kinds(hook, "resolved") >= {"weir.stalled", "weir.lag", "weir.channel"}

        wait_until(is_back, timeout_s=60, every_s=1.0, what="counting and channel well again")
        await_figures(job, difference=0, refused=1, failing=0, due=False)
    assert len({body["id"] for body in hook.of_weir if body["kind"] == "firing"}) == len(SIGNALS)
    assert kinds(hook, "resolved") == {"weir.stalled", "weir.lag", "weir.channel"}
    titles = {body["rule"]: body["title"] for body in hook.of_weir if body["kind"] == "firing"}
    assert titles["weir_ledger"] == "Weir ledger: not accounted for: 2 events > 0 events"
    assert titles["weir_channel"].endswith(" in away")


def await_figures(
    job: AlertsJob, *, difference: int, refused: int, failing: int, due: bool
) -> None:
    """Wait until Prometheus is told of events, rules, channels, and whether a message waits."""

    def told() -> tuple[float, float, float, bool, bool]:
        return (
            job.figure(metrics.ALERTS_LEDGER_DIFFERENCE),
            job.figure(metrics.ALERTS_RULES_REFUSED),
            job.figure(metrics.ALERTS_FAILING_CHANNELS),
            job.figure(metrics.ALERTS_DUE) > 0,
            job.figure(metrics.ALERTS_OLDEST_DUE) > 0,
        )

    wanted = (difference, refused, failing, due, due)
    wait_until(lambda: told() == wanted, timeout_s=60, what=f"figures {wanted}")


def restart_and_read(job: AlertsJob, redis: Redis) -> None:
    """End the job with -9, start it, and wait until it has read all signals twice."""
    job.kill()
    job.start()
    seen: set[int] = set()

    def has_read() -> bool:
        beats = [json.loads(text) for key in redis.keys(PATTERN) if (text := redis.get(key))]
        looks = [one["detail"].get("looked_ms") for one in beats if one["at_ms"] >= begun_ms]
        seen.update(look for look in looks if look is not None)
        return len(seen) > 1

    begun_ms = SystemClock().now_ms()
    wait_until(has_read, timeout_s=40, what="two readings of all signals")


def beat(redis: Redis, name: str, **detail: object) -> None:
    """Say something as a process of Weir, as long as the store is there."""
    now_ms = SystemClock().now_ms()
    redis.set(part_key(name, "test"), json.dumps({"at_ms": now_ms, "detail": detail}))


def run_out(broker: Broker) -> None:
    """Let the log keep events for ten seconds, and append one that nobody counts."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    kept = ConfigEntry("retention.ms", "10000", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ConfigResource.Type.TOPIC, names.EVENTS, incremental_configs=[kept])
    for changed in admin.incremental_alter_configs([topic]).values():
        changed.result(10)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(names.EVENTS, b"x")
    assert producer.flush(10) == 0


def count_with_faults(writer: Writer) -> None:
    """Commit a batch of three minutes ago: 2 of 30 events lost, 10 % in quarantine."""
    now_ms = SystemClock().now_ms()
    minute_ms = (now_ms // MINUTE_MS - 3) * MINUTE_MS
    row = LedgerRow("default", "http", minute_ms, counted=27, quarantined=3)
    pane = {
        encode_series(("default", "http", "counted")): Row(25),
        encode_series(("default", "http", "quarantined")): Row(3),
    }
    writer.commit({(LEDGER_VID, 60, minute_ms // 1000): pane}, now_ms - MINUTE_MS, [row])


def kinds(receiver: Receiver, kind: str) -> set[str]:
    """Return the signals of which messages of a kind came."""
    rules = {body["rule"] for body in receiver.of_weir if body["kind"] == kind}
    return {rule.replace("_", ".") for rule in rules}


def test_rules_are_shipped_once(broker: Broker, job: AlertsJob) -> None:
    """To a tenant with a key, also one that comes later; what was deleted stays away."""
    job.start()
    define(broker.bootstrap, "key", "abcd1234", KEY, 0)
    wait_until(lambda: watched(job) == shipped_names(), timeout_s=40, what="rules are shipped")
    define(broker.bootstrap, "rule", "weir_lag", None, 0, based_on=1)
    job.kill()
    job.log_path.write_text("")
    job.start()
    left = shipped_names() - {"weir_lag"}
    wait_until(lambda: watched(job) == left, timeout_s=20, what="the rules but one")
    job.await_definitions(broker.bootstrap)
    assert not job.says("own_rules_shipped")
    assert people.listing(broker.bootstrap).alerts("default") == []


def shipped_names() -> set[str]:
    """Return what the shipped rules are called."""
    return {signal.replace(".", "_") for signal in SIGNALS}


def watched(job: AlertsJob) -> set[str]:
    """Return the rules that the job has begun to watch."""
    lines = [json.loads(one) for one in job.log_path.read_text().splitlines() if one[:1] == "{"]
    return {one["rule"] for one in lines if one.get("event") == "rule_watched"}
