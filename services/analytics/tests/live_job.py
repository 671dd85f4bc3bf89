"""The panes job as a process of its own, for tests that kill it, and a recount of the log.

The recount is a plain loop over the records; it shares no code with the engine.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import redis
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from weir import names, rows
from weir.admission import Admitted, Terms, admit
from weir.batches import BatchRecord, Opening, decode
from weir.definitions.records import Edit, delete_record, put_record
from weir.kafka import Kafka
from weir.series import OTHER
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_local.redis import RedisServer
from weir_local.repository import SPARK_JARS
from weir_local.testing import running_broker

EVENT: list[tuple[str, str | bytes | None]] = [
    ("content-type", b"application/cloudevents+json; charset=UTF-8")
]
HORIZON_MS = 3_600_000
METRIC = """
kind: metric
name: amount
events: {type: t}
value: data.x
by: [data.k]
aggregates: [count, sum, p95, "distinct(data.u)"]
keep: {10s: 24h, 1m: 7d}
"""

Panes = dict[tuple[int, int, str], tuple[int, float]]


@dataclass
class Job:
    """One life after the other of the job on one state folder."""

    bootstrap: str
    redis_url: str
    folder: Path
    name: str = "job"
    settings: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ("-m", "weir_analytics.panes")
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Where its log lines go."""
        return self.folder / f"{self.name}.log"

    def start(self) -> None:
        """Start the process in a session of its own: it is a tree."""
        self.folder.mkdir(parents=True, exist_ok=True)
        given = {
            "KAFKA_BOOTSTRAP": self.bootstrap,
            "REDIS_URL": self.redis_url,
            "STATE_DIR": str(self.folder / "state"),
            "JARS_DIR": str(SPARK_JARS),
            "OPS_PORT": "0",
            "DRIVER_MEMORY": "512m",
            "INSTANCE": self.name,
            "REDIS_WITHOUT_AOF": "true",
            # An audit that nobody asked for would mend what a test has spoilt on purpose.
            "AUDIT_HOURS": "0",
            **self.settings,
        }
        environment = os.environ | {f"WEIR_ANALYTICS_{k}": v for k, v in given.items()}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603  the program is ours
                [sys.executable, *self.program],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End the whole tree as a power cut would."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)

    def stop(self) -> int:
        """Ask it to end; return its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(60)

    def lines(self, *events: str) -> list[dict[str, Any]]:
        """Return its log lines of some kinds, in order."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return [line for line in found if line.get("event") in events]


def wait_for(claim: Callable[[], bool], what: str, timeout_s: float = 240) -> None:
    """Poll until a claim holds.

    Raises:
        AssertionError: If it does not within the time.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if claim():
            return
        time.sleep(0.2)
    msg = f"waited {timeout_s:.0f} s for {what}"
    raise AssertionError(msg)


_DUMP = """
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  found[#found + 1] = key
  found[#found + 1] = redis.call('DUMP', key)
end
return found
"""
_RESTORE = """
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end
for at = 2, #ARGV, 2 do redis.call('RESTORE', ARGV[at], 0, ARGV[at + 1]) end
"""


@dataclass
class World:
    """The log and the store of a test, as clients and readers see them."""

    bootstrap: str
    redis_url: str
    shards: int = 1

    def __post_init__(self) -> None:
        self.producer = self._new_producer()
        self.redis: Any = redis.Redis.from_url(self.redis_url)

    def _new_producer(self) -> Producer:
        config = {"bootstrap.servers": self.bootstrap, "partitioner": "murmur2_random"}
        return Producer(config)

    def define(self, name: str, text: str, based_on: int | None = None) -> None:
        """Write a version of a metric."""
        edit = Edit("default", "metric", name, based_on, "test", 0)
        record = put_record(edit, text)
        self.producer.produce(names.DEFINITIONS, record.value, record.key)
        self.producer.flush(10)

    def delete(self, name: str, based_on: int) -> None:
        """Delete a metric."""
        record = delete_record(Edit("default", "metric", name, based_on, "test", 0))
        self.producer.produce(names.DEFINITIONS, record.value, record.key)
        self.producer.flush(10)

    def fold(self) -> Any:
        """Return the fold of the definitions as they are now."""
        log = DefinitionsLog(Kafka(self.bootstrap))
        log.read_to(log.end())
        log.close()
        return log.fold

    def vid(self, name: str) -> int:
        """Return the id of a metric's current version."""
        return int(self.fold().get("default", "metric", name).vid)

    def wait_active(self, name: str) -> int:
        """Return the id of a metric's current version once it is counted."""
        vid = self.vid(name)
        wait_for(lambda: vid in self.fold().activations, f"{name} to be counted")
        return vid

    def wait_serving(self, name: str) -> int:
        """Return the id of a metric's current version once it is filled from the log."""
        vid = self.wait_active(name)
        wait_for(lambda: self.fold().activations[vid].serves, f"{name} to be filled")
        return vid

    def send(
        self,
        event_id: str,
        at_ms: int | None = None,
        subject: str | None = None,
        source: str = "web",
        **data: Any,
    ) -> None:
        """Produce an event as ingest does for a source."""
        at_ms = at_ms if at_ms is not None else time.time_ns() // 1_000_000
        moment = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()
        item = {"specversion": "1.0", "id": event_id, "source": "s", "type": "t", "time": moment}
        item |= {} if subject is None else {"subject": subject}
        found = admit(
            json.dumps(item | {"data": data}).encode(), 0, Terms("default", source, at_ms, "test")
        )
        assert isinstance(found, Admitted)
        self._produce(found.value, found.key, EVENT)

    def raw(self, value: bytes | None, headers: list[tuple[str, str | bytes | None]]) -> None:
        """Produce any record."""
        self._produce(value, b"raw", headers)

    def _produce(
        self, value: bytes | None, key: bytes, headers: list[tuple[str, str | bytes | None]]
    ) -> None:
        while True:
            try:
                self.producer.produce(names.EVENTS, value, key, headers=headers)
            except BufferError:  # more is queued than the broker takes at once
                self.producer.poll(0.1)
            else:
                return

    def records(self) -> list[tuple[str, BatchRecord | Opening]]:
        """Return the batch records."""
        return [(i.decode(), decode(f[b"r"])) for i, f in self.redis.xrange(names.BATCHES)]

    def beat(self, instance: str) -> dict[str, Any]:
        """Return the heartbeat of a driver."""
        beat: dict[str, Any] = json.loads(self.redis.get(names.part_key("panes", instance)))
        return beat

    def counted_to(self) -> dict[int, int]:
        """Return the end of the newest batch record."""
        last = [r for _i, r in self.records()[-1:] if isinstance(r, BatchRecord)]
        return dict(last[0].to_offsets) if last else {}

    def wait_counted(self) -> None:
        """Wait until everything that is in the log now has been counted, by lanes too."""
        self.producer.flush(30)
        ends = self.ends()

        def done() -> bool:
            newest = [r for _i, r in self.records()[-1:] if isinstance(r, BatchRecord)]
            return bool(newest) and not newest[0].lanes and self._holds(newest[0], ends)

        wait_for(done, f"the log to be counted up to {ends}")

    @staticmethod
    def _holds(record: BatchRecord, ends: dict[int, int]) -> bool:
        return all(record.to_offsets.get(p, 0) >= n for p, n in ends.items())

    def ends(self) -> dict[int, int]:
        """Return the end of each partition of the log."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "ends"})
        found = consumer.list_topics(names.EVENTS, timeout=10).topics[names.EVENTS].partitions
        ends = {
            p: consumer.get_watermark_offsets(TopicPartition(names.EVENTS, p), timeout=10)[1]
            for p in found
        }
        consumer.close()
        return ends

    def log(self, topic: str = names.EVENTS) -> list[Any]:
        """Return all records of a topic, partition by partition."""
        config = {"bootstrap.servers": self.bootstrap, "group.id": "log"}
        consumer = Consumer(config | {"enable.auto.commit": False, "auto.offset.reset": "earliest"})
        found: list[Any] = []
        for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
            place = TopicPartition(topic, partition, 0)
            _start, end = consumer.get_watermark_offsets(place, timeout=10)
            consumer.assign([place])
            at = 0
            while at < end:
                message = consumer.poll(10)
                assert message is not None
                assert message.error() is None
                at = (message.offset() or 0) + 1
                found.append(message)
        consumer.close()
        return found

    def panes(self, vid: int, res_s: int) -> Panes:
        """Return (start, series) -> (count, sum) as Redis holds them; each shard may have a `*`."""
        found: Panes = {}
        for (_shard, start_s, series), row in self.rows(vid, res_s).items():
            place = (start_s, 0, series)
            n, total = found.get(place, (0, 0.0))
            found[place] = (n + row.n, total + (row.sum or 0.0))
        return found

    def rows(self, vid: int, res_s: int) -> dict[tuple[int, int, str], rows.Row]:
        """Return (shard, start, series) -> row as Redis holds them."""
        found = {}
        for shard in range(self.shards):
            texts = self.redis.hgetall(names.names_key(shard, vid))
            for key in self.redis.keys(f"{names.shard_prefix(shard)}p:{vid}:{res_s}:*"):
                start_s = int(key.decode().rpartition(":")[2])
                for short, packed in self.redis.hgetall(key).items():
                    series = texts.get(short, OTHER.encode()).decode()
                    found[shard, start_s, series] = rows.decode(packed)
        return found

    def add_partition(self) -> None:
        """Give the log one partition more.

        What is sent from now on is keyed to all partitions. A producer that lives on learns of
        them minutes later, and what it then repeats is in another partition: no duplicate.
        """
        self.producer.flush(30)
        partitions = len(self.ends()) + 1
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        wanted = NewPartitions(names.EVENTS, partitions)
        admin.create_partitions([wanted])[names.EVENTS].result(10)
        wait_for(lambda: len(self.ends()) == partitions, "the partition to be known", 30)
        self.producer = self._new_producer()

    def delete_before(self, offset: int) -> None:
        """Take the beginning of each partition away, as retention does; only what is counted."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        counted = self.counted_to()
        places = [TopicPartition(names.EVENTS, p, min(offset, n)) for p, n in counted.items()]
        for future in admin.delete_records(places).values():
            future.result(10)

    def dump(self, shard: int) -> list[bytes]:
        """Return all keys of a shard with their content, as they are at one moment."""
        found: list[bytes] = self.redis.eval(_DUMP, 0, names.shard_prefix(shard) + "*")
        return found

    def restore(self, shard: int, dump: list[bytes]) -> None:
        """Put a shard back to what a dump says, at one moment."""
        self.redis.eval(_RESTORE, 0, names.shard_prefix(shard) + "*", *dump)

    def ledger(self) -> Counter[str]:
        """Return the served account: events by disposition over all minutes."""
        tally: Counter[str] = Counter()
        for (_start, _zero, series), (n, _sum) in self.panes(-1, 60).items():
            tally[series.rpartition("|=")[2]] += n
        return tally


@contextmanager
def running_world(folder: Path) -> Iterator[World]:
    """Yield a log and a store of a test's own, others' have other tests' records; they end here."""
    server = RedisServer(folder / "redis")
    try:
        server.start()
        with running_broker(folder / "kafka") as broker:
            yield World(broker.bootstrap, server.url, shards=2)
    finally:
        server.kill()


def recount(log: list[Any], res_s: int) -> tuple[Panes, Counter[str]]:
    """Count a log the slow way: panes of value `x` by `k`, and events by disposition.

    Args:
        log: Its records.
        res_s: Length of a pane.
    """
    panes: dict[Any, list[float]] = {}
    tally: Counter[str] = Counter()
    latest: dict[tuple[int, bytes], int] = {}
    received: dict[int, int] = {}
    for message in log:
        partition, headers = message.partition(), message.headers() or []
        at_ms = max(received.get(partition, 0), message.timestamp()[1])
        received[partition] = at_ms
        first = headers[0][0] if headers else None
        if first == "weir-tick":
            continue
        try:
            event = json.loads(message.value())
            assert first != "weir-reason"
            # Who puts this header there says that it is written as ingest writes events.
            assert first != names.HEADER_CONTENT_TYPE or "type" in event
            identity = _identity(event)
        except (ValueError, TypeError, KeyError, AssertionError):
            tally["quarantined"] += 1
            continue
        before = latest.get((partition, identity))
        latest[partition, identity] = at_ms
        if before is not None and at_ms - before <= HORIZON_MS:
            tally["duplicate"] += 1
            continue
        tally["counted"] += 1
        x = event.get("data", {}).get("x")
        if not isinstance(x, int):
            continue
        start_s = int(datetime.fromisoformat(event["time"]).timestamp()) // res_s * res_s
        panes.setdefault((start_s, 0, f"={event['data']['k']}"), []).append(x)
    return {key: (len(xs), float(sum(xs))) for key, xs in panes.items()}, tally


def _identity(event: dict[str, Any]) -> bytes:
    words = (event.get("weirtenant", "default"), event["source"], event["id"])
    raw = [word.encode() for word in words]
    return hashlib.md5(b"".join(len(r).to_bytes(4, "big") + r for r in raw)).digest()  # noqa: S324


def assert_equal_to_the_log(world: World, name: str = "amount") -> None:
    """Compare every pane, and the account of every record, with a recount of the log."""
    vid = world.wait_serving(name)
    world.wait_counted()
    log = world.log()
    for res_s in (10, 60):
        panes, tally = recount(log, res_s)
        assert world.panes(vid, res_s) == panes
    assert world.ledger() == tally, (world.ledger(), tally)


def group_offsets(bootstrap: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """Return what Kafka's own tools see of the driver; nothing while a broker finds its groups."""
    group = Consumer({"bootstrap.servers": bootstrap, "group.id": names.PANES_GROUP})
    try:
        found = group.committed([TopicPartition(topic, p) for p in partitions], timeout=10)
    except KafkaException:
        return {}
    finally:
        group.close()
    return {one.partition: one.offset for one in found if one.offset >= 0}
