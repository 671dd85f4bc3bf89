"""The first two steps on finite frames: what a record is, and what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from weir_analytics.panes.batch import PROPERTY, Batch
from weir_analytics.panes.decode import classify, event_time_ms
from weir_analytics.panes.dispose import dispose
from weir_analytics.panes.kinds import Fate, Kind

from .log_frames import EVENT, NOW_MS, Record, batch_of, event, log_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def fates(spark: SparkSession, log: DataFrame, batch: Batch) -> list[tuple[int, Fate, int]]:
    """Return partition, fate and R of each record."""
    spark.sparkContext.setLocalProperty(PROPERTY, batch.to_json())
    return [(r.partition, Fate(r.fate), r.received_ms) for r in dispose(classify(log)).collect()]


class TestClassify:
    @pytest.mark.parametrize(
        ("record", "kind"),
        [
            ((event("1"), EVENT), Kind.EVENT),
            ((event("1"), [("weir-tail", b"1"), *EVENT]), Kind.SAMPLED),
            ((b"{", [("weir-reason", b"invalid_json")]), Kind.REFUSED),
            ((None, [("weir-tick", b"1")]), Kind.TICK),
            ((b"x", [("weir-tick", b"1")]), Kind.FOREIGN),
            ((event("1"), []), Kind.FOREIGN),
            ((b'{"weirid":"zz', EVENT), Kind.FOREIGN),
            ((None, EVENT), Kind.FOREIGN),
        ],
    )
    def test_first_header_and_fixed_places_tell(
        self, spark: SparkSession, record: tuple[bytes | None, Any], kind: Kind
    ) -> None:
        """What a record is stands in its first header and at its first bytes."""
        value, headers = record
        rows = classify(log_of(spark, [(value, headers, NOW_MS)])).collect()

        assert Kind(rows[0].kind) is kind

    def test_event_time_stands_at_its_place(self, spark: SparkSession) -> None:
        """The event time is read without parsing JSON, before 1970, too."""
        values = [(event("1", NOW_MS), EVENT, NOW_MS), (event("2", -5), EVENT, NOW_MS)]
        log = log_of(spark, values)

        assert [r[0] for r in log.select(event_time_ms(log.value)).collect()] == [NOW_MS, -5]


class TestDispose:
    def test_a_repetition_in_its_partition_is_a_duplicate(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        """The second record of an identity is a duplicate, in another partition it is not."""
        twice = [(event("1"), EVENT, NOW_MS), (event("1"), EVENT, NOW_MS + 1)]
        log = log_of(spark, twice, twice[:1])

        assert fates(spark, log, batch_of(tmp_path, 2, 1)) == [
            (0, Fate.COUNTED, NOW_MS),
            (0, Fate.DUPLICATE, NOW_MS + 1),
            (1, Fate.COUNTED, NOW_MS),
        ]

    def test_ticks_move_time_and_nothing_else(self, spark: SparkSession, tmp_path: Path) -> None:
        """A tick raises R of what follows, also when the clock steps back behind it."""
        tick: Record = (None, [("weir-tick", b"1")], NOW_MS + 50)
        log = log_of(spark, [tick, (event("1"), EVENT, NOW_MS)])

        assert fates(spark, log, batch_of(tmp_path, 2)) == [
            (0, Fate.TICK, NOW_MS + 50),
            (0, Fate.COUNTED, NOW_MS + 50),
        ]

    def test_a_batch_that_runs_again_decides_the_same(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        """The runs of the batch itself are no earlier records when it is repeated."""
        first = [(event("1"), EVENT, NOW_MS), (event("2"), EVENT, NOW_MS)]
        log, batch = log_of(spark, first), batch_of(tmp_path, 2)
        once = fates(spark, log, batch)

        assert fates(spark, log, batch) == once

    def test_the_next_batch_knows_the_last(self, spark: SparkSession, tmp_path: Path) -> None:
        """State goes from batch to batch through the runs on disk."""
        records = [(event("1"), EVENT, NOW_MS), (event("1"), EVENT, NOW_MS)]
        log = log_of(spark, records)
        fates(spark, log.where("offset = 0"), batch_of(tmp_path, 1))
        second = replace(batch_of(tmp_path, 2), start={0: 1})

        assert [f for _, f, _ in fates(spark, log.where("offset = 1"), second)] == [Fate.DUPLICATE]

    def test_a_foreign_event_is_admitted_and_deduplicated(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        """An event of another producer gets its identity from the same code as in ingest."""
        foreign = b'{"specversion":"1.0","id":"1","source":"s","type":"t","data":{}}'
        log = log_of(spark, [(foreign, [], NOW_MS), (foreign, [], NOW_MS)])

        assert [f for _, f, _ in fates(spark, log, batch_of(tmp_path, 2))] == [
            Fate.COUNTED,
            Fate.DUPLICATE,
        ]
