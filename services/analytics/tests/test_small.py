"""The two ways into a batch, by Spark's source and by a task of ours: the same records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import psutil
import pyarrow as pa
import pytest
import redis
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import PySparkException
from weir.kafka import Kafka
from weir.series import OTHER
from weir_analytics.panes import small
from weir_analytics.panes.batch import PROPERTY, Batch
from weir_analytics.panes.checkpoint import starting_offsets
from weir_analytics.panes.commit_job import Bound
from weir_analytics.panes.crowded import Crowded
from weir_analytics.panes.dataflow import small_dataflow
from weir_analytics.panes.decode import classify
from weir_analytics.panes.dispose import dispose
from weir_analytics.panes.history import read_ranges
from weir_analytics.panes.kinds import Fate
from weir_analytics.panes.outcome import outcome_of
from weir_analytics.panes.plans import run, run_beside
from weir_analytics.panes.session import source_options
from weir_analytics.panes.small import disposed_range
from weir_analytics.panes.writer import Report

from .conftest import settings_for
from .log_frames import EVENT, NOW_MS, SAMPLED, TICK, batch_of, event, open_shards
from .raw_headers import RawProducer
from .test_dispose import PLACES
from .test_plan import Panes, metric, panes_in, plan_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

Offsets = dict[int, int]

FOREIGN = b'{"specversion":"1.0","id":"f","source":"s","type":"t","data":{}}'
REFUSED: list[tuple[str, bytes | None]] = [
    ("weir-reason", b"invalid_json"),
    ("weir-tenant", b"acme"),
    ("weir-\u00e9", None),
]
RECORDS: list[tuple[bytes | None, list[Any]]] = [
    *((event(f"e{i % 30}", x=i), EVENT if i % 3 else SAMPLED) for i in range(60)),
    *((value, EVENT) for value, _kind in PLACES),
    (None, TICK),
    (b"x", TICK),
    (None, []),
    (b"{", REFUSED),
    (None, REFUSED),
    (FOREIGN, []),
    (FOREIGN, EVENT),
    (event("e1"), []),
]
TYPE = (b"content-type", EVENT[0][1])
# Names that are not UTF-8, or hold a zero byte: no client of ours writes them, others may.
RAW: list[tuple[bytes | None, list[tuple[bytes, bytes]]]] = [
    (event("r1"), [(b"\xff\xfe", b"1"), TYPE]),
    (event("r2"), [TYPE, (b"trace\xff", b"1")]),
    (event("r3"), [TYPE, ("\ufffd".encode(), b"1")]),
    (b"{", [(b"weir-reason", b"invalid_json"), (b"\xed\xa0\x80", b"1")]),
    (None, [(b"weir-tick\x00x", b"1")]),
    (b"{", [(b"weir-reason\x00", b"invalid_json"), (b"a\x00b", b"1")]),
]
PARTITIONS = 3


@pytest.fixture
def filled(kafka: str, new_topic: Callable[..., str]) -> tuple[str, Offsets]:
    """Return a topic with the records above in each partition, and their ends."""
    topic = new_topic("small", PARTITIONS, {"message.timestamp.type": "LogAppendTime"})
    producer, raw = Producer({"bootstrap.servers": kafka}), RawProducer(kafka)
    for partition in range(PARTITIONS):
        for value, headers in RECORDS[partition:]:
            producer.produce(topic, value, b"k", partition, headers=headers)
        assert producer.flush(30) == 0
        for value, names in RAW:
            raw.send(topic, partition, value, names)
    raw.close()
    return topic, {p: len(RECORDS) - p + len(RAW) for p in range(PARTITIONS)}


class Ways:
    """One range of a topic, read in both ways."""

    def __init__(self, spark: SparkSession, kafka: str, topic: str, folder: Path) -> None:
        self.spark, self.kafka, self.topic, self.folder = spark, kafka, topic, folder
        self.small = disposed_range(spark)

    def batch(self, way: str, start: Offsets, end: Offsets, **changes: Any) -> Batch:
        """Return a batch whose dedup state is that of one way alone."""
        fields: dict[str, Any] = {
            "kafka_bootstrap": self.kafka,
            "topic": self.topic,
            "copies": False,
        }
        found = batch_of(self.folder / way, **fields | changes)
        return replace(found, start=start, end=end, single=way == "task")

    def log(self, start: Offsets, end: Offsets) -> DataFrame:
        """Return a range as Spark's source reads it."""
        options = source_options(settings_for(self.folder, self.kafka), "")
        options |= {
            "subscribe": self.topic,
            "startingOffsets": starting_offsets(self.topic, start),
            "endingOffsets": starting_offsets(self.topic, end),
        }
        return self.spark.read.format("kafka").options(**options).load()

    def by_spark(self, start: Offsets, end: Offsets) -> list[Row]:
        """Return the disposed records that Spark's source read."""
        return self._sorted(
            self.batch("spark", start, end), dispose(classify(self.log(start, end)))
        )

    def by_task(self, start: Offsets, end: Offsets) -> list[Row]:
        """Return the disposed records that one task read by itself."""
        return self._sorted(self.batch("task", start, end), self.small)

    def _sorted(self, batch: Batch, frame: DataFrame) -> list[Row]:
        self.spark.sparkContext.setLocalProperty(PROPERTY, batch.to_json())
        return sorted(frame.collect(), key=lambda row: (row.partition, row.offset))


class TestDisposedRange:
    def test_both_ways_leave_the_same_records(
        self, spark: SparkSession, kafka: str, filled: tuple[str, Offsets], tmp_path: Path
    ) -> None:
        """Batch after batch, of every kind of record: place, kind, fate, R, owner and value."""
        topic, end = filled
        ways = Ways(spark, kafka, topic, tmp_path)
        at = dict.fromkeys(end, 0)
        for upto in ({0: 7, 1: 0, 2: 40}, {0: 50, 1: 1, 2: 41}, end):
            wanted = ways.by_spark(at, upto)
            assert ways.by_task(at, upto) == wanted
            assert len(wanted) == sum(upto.values()) - sum(at.values())
            at = upto

    def test_more_than_one_reading_takes_in(
        self, spark: SparkSession, kafka: str, new_topic: Callable[..., str], tmp_path: Path
    ) -> None:
        """A range of many readings, ending in each partition at another one, loses nothing."""
        topic, end = new_topic("many", 2, {}), {0: 24_000, 1: 9_000}
        headers: Any = EVENT
        producer = Producer({"bootstrap.servers": kafka, "queue.buffering.max.messages": 100_000})
        for partition, count in end.items():
            for i in range(count + 100):
                value = event(f"{partition}-{i % 8_000}")
                producer.produce(topic, value, b"k", partition, headers=headers)
        assert producer.flush(60) == 0
        rows = Ways(spark, kafka, topic, tmp_path).by_task({}, end)

        assert [(r.partition, r.offset) for r in rows] == [
            (p, i) for p in end for i in range(end[p])
        ]
        assert [r.fate for r in rows] == [
            int(Fate.COUNTED if i < 8_000 else Fate.DUPLICATE) for p in end for i in range(end[p])
        ]
        assert [(r.partition, r.seen) for r in rows if r.seen is not None] == list(end.items())

    def test_what_is_gathered_knows_what_was_before(
        self,
        kafka: str,
        new_topic: Callable[..., str],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Of many records some at a time get their fates; a repeat may come with later ones."""
        monkeypatch.setattr(small, "AT_ONCE", 1_000)
        topic, end, headers = new_topic("many", 2, {}), {0: 6_000, 1: 3_000}, cast("Any", EVENT)
        producer = Producer({"bootstrap.servers": kafka})
        for partition, count in end.items():
            for i in range(count):
                producer.produce(topic, event(f"{i % 2_500}"), b"k", partition, headers=headers)
        assert producer.flush(60) == 0
        settings: dict[str, Any] = {"kafka_bootstrap": kafka, "topic": topic, "copies": False}
        batch = replace(batch_of(tmp_path, **settings), start={}, end=end, single=True)
        parts = list(small.disposed_slices(batch))

        assert len(parts) > 2 * len(end)
        fates: dict[int, dict[int, int]] = {p: {} for p in end}
        for part in parts:
            places = zip(*map(pa.Array.to_pylist, (part.partition, part.offset)), strict=True)
            for (p, n), fate in zip(places, part.told.field("fate").to_pylist(), strict=True):
                fates[p][n] = fate
        assert fates == {
            p: {n: int(Fate.COUNTED if n < 2_500 else Fate.DUPLICATE) for n in range(count)}
            for p, count in end.items()
        }

    @pytest.mark.parametrize(
        ("headers", "is_long"), [(EVENT, False), ([("other", b"x" * 1_000)], True)]
    )
    def test_what_is_gathered_is_bounded_with_its_headers(
        self,
        kafka: str,
        new_topic: Callable[..., str],
        monkeypatch: pytest.MonkeyPatch,
        headers: Any,
        is_long: bool,
    ) -> None:
        """Another producer may write headers of any length; those of Weir are always short."""
        monkeypatch.setattr(small, "QUEUE_BYTES", 2_500_000)
        topic, count = new_topic("headers", 1, {}), 8_000
        producer = Producer({"bootstrap.servers": kafka})
        for _ in range(count):
            producer.produce(topic, b"1", b"k", 0, headers=headers)
        assert producer.flush(60) == 0
        read = small._gathered(read_ranges(Kafka(kafka), topic, {0: 0}, {0: count}))
        sizes = [len(one.values) for one in read]

        assert sum(sizes) == count
        assert (len(sizes) > 1) is is_long

    def test_an_empty_range_has_no_records(
        self, spark: SparkSession, filled: tuple[str, Offsets], tmp_path: Path
    ) -> None:
        """A range without records asks nobody: a plan is warmed up before Kafka is there."""
        ways = Ways(spark, "127.0.0.1:1", filled[0], tmp_path)

        assert ways.by_task({}, {}) == []
        assert ways.by_task({0: 5}, {0: 5}) == []

    @pytest.mark.parametrize(
        ("start", "end", "said"),
        [
            ({0: 9_005}, {0: 9_009}, "OFFSET_OUT_OF_RANGE|_AUTO_OFFSET_RESET"),
            ({0: 0}, {0: 9}, "OFFSET_OUT_OF_RANGE|_AUTO_OFFSET_RESET"),
            ({0: 30}, {0: 20}, "must not end before it starts, got 30 to 20"),
        ],
    )
    def test_what_the_log_does_not_hold_is_an_error(
        self,
        spark: SparkSession,
        kafka: str,
        filled: tuple[str, Offsets],
        tmp_path: Path,
        start: Offsets,
        end: Offsets,
        said: str,
    ) -> None:
        """A range behind the log's end, before its start or backwards is no empty one."""
        topic, _ends = filled
        admin = AdminClient({"bootstrap.servers": kafka})
        for done in admin.delete_records([TopicPartition(topic, 0, 10)]).values():
            done.result(30)
        ways = Ways(spark, kafka, topic, tmp_path)

        with pytest.raises(PySparkException, match=said):
            ways.by_task(start, end)

    def test_the_worker_and_its_connection_stay(
        self, spark: SparkSession, kafka: str, filled: tuple[str, Offsets], tmp_path: Path
    ) -> None:
        """A worker outlives its batch, with its connection: a new one imports for a second."""
        ways = Ways(spark, kafka, filled[0], tmp_path)
        ways.by_task({0: 0}, {0: 5})
        ways.by_task({0: 5}, {0: 6})
        before = connections()
        for at in range(6, 12):
            ways.by_task({0: at}, {0: at + 1})

        assert before
        assert before <= connections()


class TestSmallDataflow:
    def test_a_kept_frame_gives_each_batch_its_own_panes(
        self,
        spark: SparkSession,
        kafka: str,
        filled: tuple[str, Offsets],
        tmp_path: Path,
        redis_url: str,
    ) -> None:
        """Range after range, over two shards: panes, ledger and what is told equal Spark's way."""
        topic, end = filled
        ways = Ways(spark, kafka, topic, tmp_path)
        plan = plan_of(metric(value="data.x", aggregates=["count", "sum"]))
        told: dict[str, list[Any]] = {}
        for way in ("spark", "task"):
            wipe(redis_url)
            open_shards(redis_url, ways.batch(way, {}, {}, shards=2))
            reports: list[Report] = []
            at = dict.fromkeys(end, 0)
            for number, upto in enumerate(({0: 30, 1: 12, 2: 0}, {0: 40, 1: 70, 2: 9}, end)):
                known = {"shards": 2, "number": number, "redis_url": redis_url}
                batch = ways.batch(way, at, upto, **known)
                log = ways.log(at, upto) if way == "spark" else None
                reports += map(Report.from_json, run(spark, log, plan, batch))
                at = upto
            told[way] = [
                panes_in(redis_url, 2),
                sorted(line for r in reports for line in r.progress),
                sorted(map(str, (line for r in reports for line in r.fates))),
                {verdict for r in reports for verdict in r.verdicts.values()},
            ]

        assert told["task"] == told["spark"]
        assert told["task"][3] == {"ok"}

    def test_what_is_known_of_full_panes_changes_none(
        self, spark: SparkSession, kafka: str, tmp_path: Path, new_topic: Any, redis_url: str
    ) -> None:
        """Batches that know the bounds of the one before end in the same panes, in both ways.

        Of 320 series 16 have rows of their own, over one shard and over three.
        """
        topic, end = flood_of(new_topic, kafka)
        ways = Ways(spark, kafka, topic, tmp_path)
        flooded = metric(
            value="data.x",
            by=["data.u"],
            aggregates=["sum", "p50", "distinct(data.u)"],
            max_series=16,
        )
        for shards in (1, 3):
            plan = plan_of(flooded, shards=shards)
            found = {}
            for way, knows in (("spark", False), ("spark", True), ("task", True)):
                wipe(redis_url)
                folder = f"{way}-{knows}-{shards}"
                open_shards(redis_url, ways.batch(folder, {}, {}, shards=shards))
                crowded, at = Crowded(shards), dict.fromkeys(end, 0)
                steps = ({0: 100, 1: 90, 2: 0}, {0: 150, 1: 160, 2: 90}, end)
                for number, upto in enumerate(steps):
                    known = {"shards": shards, "number": number, "redis_url": redis_url}
                    batch = ways.batch(folder, at, upto, **known)
                    bounds = crowded.bounds() if knows else ()
                    batch = replace(batch, bounds=bounds, single=way == "task")
                    log = ways.log(at, upto) if way == "spark" else None
                    reports = list(map(Report.from_json, run(spark, log, plan, batch)))
                    crowded.take(outcome_of(reports, {}).bounds)
                    assert bool(bounds) == (knows and number > 0)
                    at = upto
                found[folder] = panes_in(redis_url, shards)
            first, *others = found.values()
            metric_panes = {place: of for place, of in first.items() if place[0] == 1}
            assert all(OTHER in of and len(of) <= 17 for of in metric_panes.values())
            finest = [
                row
                for (_, res_s, _), of in metric_panes.items()
                if res_s == 10
                for row in of.values()
            ]
            assert sum(row.n for row in finest) == 480
            assert [exact(one) for one in others] == [exact(first)] * 2

    def test_series_beyond_a_bound_are_counted_as_other(
        self, spark: SparkSession, kafka: str, tmp_path: Path, new_topic: Any, redis_url: str
    ) -> None:
        """A bound that nobody is below leaves no other row: who has none is not told by Redis."""
        topic, end = flood_of(new_topic, kafka)
        ways = Ways(spark, kafka, topic, tmp_path)
        plan = plan_of(metric(by=["data.u"], keep={"10s": "1h"}))
        wipe(redis_url)
        batch = ways.batch("task", dict.fromkeys(end, 0), end, redis_url=redis_url)
        open_shards(redis_url, batch)
        start_s = NOW_MS // 10_000 * 10
        run(spark, None, plan, replace(batch, bounds=(Bound(1, start_s, "0" * 32),)))

        assert list(panes_in(redis_url)[1, 10, start_s]) == [OTHER]

    @pytest.mark.parametrize(("begin", "counted"), [({}, 480), ({0: 60, 2: 160}, 260)])
    def test_side_by_side_tasks_leave_what_one_does(
        self,
        spark: SparkSession,
        kafka: str,
        tmp_path: Path,
        new_topic: Any,
        redis_url: str,
        begin: Offsets,
        counted: int,
    ) -> None:
        """Lanes of a partition each, committed to the same shards and panes at the same time.

        Of a metric that begins in one of them, behind another and before the third, each counts
        what is its own.
        """
        topic, end = flood_of(new_topic, kafka)
        ways = Ways(spark, kafka, topic, tmp_path)
        sums = metric(value="data.x", by=["data.u"], aggregates=["sum"])
        plan = plan_of(sums, shards=2, guarded=bool(begin), begin=begin)
        start, known = dict.fromkeys(end, 0), {"shards": 2, "redis_url": redis_url}
        found = []
        for is_beside in (False, True):
            wipe(redis_url)
            whole = ways.batch(f"task-{is_beside}", start, end, **known)
            whole = replace(whole, single=True)
            open_shards(redis_url, whole)
            lanes = [
                replace(whole, start={p: 0}, end={p: n}, lane=str(p), lane_start={p: 0})
                for p, n in end.items()
            ]
            texts = run_beside(spark, plan, lanes if is_beside else [whole])
            reports = list(map(Report.from_json, texts))
            assert all(report.verdicts == {0: "ok", 1: "ok"} for report in reports)
            if is_beside:
                told = [[p for p, _at, _seen in report.progress] for report in reports]
                assert told == [[p] for p in end], "each task has the batch of its own"
            found.append(exact(panes_in(redis_url, 2)))
        assert found[0] == found[1]
        panes = (of for (vid, res_s, _at), of in found[1].items() if (vid, res_s) == (1, 10))
        assert sum(n for of in panes for n, *_rest in of.values()) == counted

    @pytest.mark.parametrize("wanted", [[], ["count"], ["sum", "p50", "p99", "distinct(data.u)"]])
    def test_a_kept_frame_shuffles_nothing(self, spark: SparkSession, wanted: list[str]) -> None:
        """Spark keeps a planned shuffle's output: the next batch would get the last one's."""
        metrics = [metric(value="data.x", aggregates=wanted)] if wanted else []
        for guarded in (False, True):
            frame = small_dataflow(spark, plan_of(*metrics, guarded=guarded))
            planned = frame._jdf.queryExecution().executedPlan().toString()

            assert "MapInArrow" in planned
            assert "Exchange" not in planned


def flood_of(new_topic: Callable[..., str], kafka: str) -> tuple[str, Offsets]:
    """Return a topic in which each event of a partition has a series of its own, and its ends."""
    topic = new_topic("flood", PARTITIONS, {"message.timestamp.type": "LogAppendTime"})
    producer = Producer({"bootstrap.servers": kafka})
    for partition in range(PARTITIONS):
        for i in range(160):
            number = 80 * partition + i  # every second series comes in two partitions
            value = event(f"{partition}-{i}", x=i, u=f"u{number}")
            producer.produce(topic, value, b"k", partition, headers=[*EVENT])
    assert producer.flush(30) == 0
    return topic, dict.fromkeys(range(PARTITIONS), 160)


def wipe(redis_url: str) -> None:
    """Empty Redis."""
    client: Any = redis.Redis.from_url(redis_url)
    client.flushall()
    client.close()


def exact(panes: Panes) -> dict[Any, Any]:
    """Return of panes what does not depend on how they were merged: all but the sketches."""
    return {
        place: {series: (row.n, row.sum, row.min, row.max) for series, row in of.items()}
        for place, of in panes.items()
    }


def connections() -> set[tuple[int, int]]:
    """Return the processes that the workers' parent has forked, each with its connections."""
    children = psutil.Process().children(recursive=True)
    parents = [p for p in children if "weir_analytics.panes.daemon" in _command(p)]
    return {
        (worker.pid, connection.laddr.port)
        for parent in parents
        for worker in parent.children()
        for connection in worker.net_connections("inet")
    }


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it has ended in the meantime
        return []
