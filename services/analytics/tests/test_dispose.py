"""The first two steps on finite frames: what a record is, and what becomes of it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from weir.definitions.history import Horizons
from weir.horizons import horizons_within
from weir_analytics.panes.batch import PROPERTY, Batch
from weir_analytics.panes.decode import classify, event_time_ms
from weir_analytics.panes.dispose import dispose
from weir_analytics.panes.kinds import Fate, Kind
from weir_analytics.panes.states import kind_of

from .log_frames import (
    EVENT,
    HORIZONS,
    NOW_MS,
    SAMPLED,
    Record,
    batch_of,
    counted,
    event,
    log_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TIME = b"+000001700000000"


def fates(spark: SparkSession, log: DataFrame, batch: Batch) -> list[tuple[int, Fate, int]]:
    """Return partition, fate and R of each record."""
    spark.sparkContext.setLocalProperty(PROPERTY, batch.to_json())
    return [(r.partition, Fate(r.fate), r.received_ms) for r in dispose(classify(log)).collect()]


def placed(
    digest: bytes = b"a" * 32, between: bytes = b'","weirms":"', time: bytes = TIME
) -> bytes:
    """Return a value of our shape, with something else at one of the fixed places."""
    return b'{"weirid":"' + digest + between + time + b'","data":{}}'


# What only one of the two classifiers would take for an event, or both must.
PLACES = [
    (placed(), Kind.EVENT),
    (placed(time=b"-000000000000005"), Kind.EVENT),
    (placed(b"0123456789abcdef" * 2), Kind.EVENT),
    (placed(b" " * 32), Kind.FOREIGN),
    (placed(b"A" * 32), Kind.FOREIGN),
    (placed(b"a" * 31 + b" "), Kind.FOREIGN),
    (placed("é".encode() * 16), Kind.FOREIGN),
    (placed(b"\x00" * 32), Kind.FOREIGN),
    (placed(between=b'","weirmt":"'), Kind.FOREIGN),
    (placed(between=b'", "weirms":'), Kind.FOREIGN),
    (placed(time=b"+1_700000_000000"), Kind.FOREIGN),
    (placed(time=b" 000001700000000"), Kind.FOREIGN),
    (placed(time=b"0000001700000000"), Kind.FOREIGN),
    (placed(time=b"+00000170000000 "), Kind.FOREIGN),
    (placed(time=b"+00000170000000\x00"), Kind.FOREIGN),
    (placed(time=b"+0000017000000.0"), Kind.FOREIGN),
    (placed(time=b"+ 00001700000000"), Kind.FOREIGN),
    (placed(time=b"-+00001700000000"), Kind.FOREIGN),
    (placed(time="+\uff101700000000000".encode()[:16]), Kind.FOREIGN),
    (placed()[:-2], Kind.FOREIGN),
    (placed() + b" ", Kind.FOREIGN),
    (placed()[:60], Kind.FOREIGN),
    (b"", Kind.FOREIGN),
]


class TestClassify:
    @pytest.mark.parametrize("headers", [EVENT, SAMPLED])
    def test_both_readers_of_the_log_know_the_same_events(
        self, spark: SparkSession, headers: list[tuple[str, bytes]]
    ) -> None:
        """The columns and the reader that rebuilds dedup agree on every fixed place."""
        log = log_of(spark, [(value, headers, NOW_MS) for value, _kind in PLACES])
        event_kind = Kind.EVENT if headers is EVENT else Kind.SAMPLED
        wanted = [event_kind if kind is Kind.EVENT else kind for _value, kind in PLACES]

        assert [Kind(row.kind) for row in classify(log).collect()] == wanted
        assert [kind_of(headers, value) for value, _ in PLACES] == wanted

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

    @pytest.mark.parametrize("cuts", [(0, 4), (0, 1, 4), (0, 2, 4), (0, 3, 4)])
    def test_each_record_is_judged_by_the_horizon_of_its_place(
        self, spark: SparkSession, tmp_path: Path, cuts: tuple[int, ...]
    ) -> None:
        """Wherever batches begin; in the other partition the first horizon holds up to its end.

        Never a longer one: then the log is read back, which is not there.
        """
        length_ms = 1_000
        known = tuple(
            Horizons(begin, horizon_ms, HORIZONS.beyond_ms)
            for begin, horizon_ms in (
                ({}, 2 * length_ms),
                ({0: 2, 1: 9}, length_ms),
                ({0: 3, 1: 9}, 0),
            )
        )
        records = [counted(str(0), NOW_MS + at * (length_ms + 1)) for at in range(4)]
        log = log_of(spark, records, records)
        found: dict[tuple[int, int], Fate] = {}
        for start, end in itertools.pairwise(cuts):
            at, to = dict.fromkeys((0, 1), start), dict.fromkeys((0, 1), end)
            batch = replace(
                batch_of(tmp_path, end, end), start=at, horizons=horizons_within(known, at, to)
            )
            part = log.where(f"offset >= {start} and offset < {end}")
            spark.sparkContext.setLocalProperty(PROPERTY, batch.to_json())
            rows = dispose(classify(part)).collect()
            found |= {(row.partition, row.offset): Fate(row.fate) for row in rows}

        new, again = Fate.COUNTED, Fate.DUPLICATE
        assert [found[0, at] for at in range(4)] == [new, again, new, new]
        assert [found[1, at] for at in range(4)] == [new, again, again, again]

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
