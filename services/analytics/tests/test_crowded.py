"""Full panes: what a driver knows of them, and what that makes of a series in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F
from weir.rows import Row
from weir.series import OTHER, series_digest, shard_of
from weir_analytics.panes.commit_job import Bound, Limits, Pane
from weir_analytics.panes.crowded import (
    MOST,
    TYPE,
    Crowded,
    bounds_column,
    counted_as,
    placed,
    shard_column,
)
from weir_analytics.panes.pane_merge import Cap, PaneChange, PaneRead, bounds_of, merge_pane

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMITS = {1: Limits({10: 60, 60: 600}), -2: Limits({60: 600})}
TEXTS = ["", "=a", "~", "=\u00e9|=2", *(f"=u{n}" for n in range(300))]


class TestCrowded:
    def test_a_pane_is_full_when_it_is_in_every_shard(self) -> None:
        """A series may be in any shard, so the largest of their bounds counts."""
        crowded = Crowded(2)
        crowded.take([(0, Bound(1, 10, "5")), (0, Bound(1, 20, "4"))])
        assert crowded.bounds() == ()
        crowded.take([(1, Bound(1, 10, "7"))])
        assert crowded.bounds() == (Bound(1, 10, "7"),)
        crowded.take([(1, Bound(1, 10, "3"))])
        assert crowded.bounds() == (Bound(1, 10, "5"),)

    def test_the_panes_told_of_last_are_known(self) -> None:
        """Every record of a batch carries them, so they are few."""
        crowded = Crowded(1)
        crowded.take((0, Bound(1, start, "5")) for start in range(MOST))
        crowded.take([(0, Bound(1, 0, "4")), (0, Bound(1, MOST, "5"))])
        starts = [bound.start_s for bound in crowded.bounds()]
        assert starts == [*range(2, MOST), 0, MOST]


class TestBoundsOf:
    def test_all_panes_around_must_be_full(self) -> None:
        """An event counts in a pane of each length; the largest bound leaves none of them out."""
        full = {
            Pane(1, 10, 70): PaneChange({}, bound="5"),
            Pane(1, 60, 60): PaneChange({}, bound="3"),
        }
        assert list(bounds_of(full, LIMITS)) == [Bound(1, 70, "5")]
        assert not list(bounds_of({**full, Pane(1, 60, 60): PaneChange({})}, LIMITS))
        assert not list(bounds_of({Pane(1, 10, 70): PaneChange({}, bound="5")}, LIMITS))

    def test_system_metrics_have_none(self) -> None:
        """Their series come from the account, not from a metric's rows."""
        assert not list(bounds_of({Pane(-2, 60, 60): PaneChange({}, bound="5")}, LIMITS))

    def test_a_pane_with_room_has_none(self) -> None:
        """One with `other`, as after Redis was emptied, may still have room for rows."""
        read = PaneRead(2, b"", {}, own=frozenset({"=a"}))
        assert merge_pane(read, {"=b": Row(1)}, Cap(3)).bound is None
        assert merge_pane(read, {"=b": Row(1)}, Cap(2)).bound == max(
            series_digest(text).hex() for text in ("=a", "=b")
        )


@pytest.mark.spark
class TestColumns:
    @pytest.mark.parametrize("start_s", [1 << 35, 253_402_300_790, -(1 << 35)])
    def test_a_pane_in_a_far_future_is_left_out(self, start_s: int) -> None:
        """A key holds no such start; who does not know of a full pane makes the same panes."""
        near, far = Bound(1, (1 << 35) - 1, "a"), Bound(1, start_s, "b")
        assert bounds_column([far], 2).null_count == 2
        assert bounds_column([near, far], 2) == bounds_column([near], 2)

    @pytest.mark.parametrize("shards", [1, 3])
    def test_spark_and_python_say_the_same(self, spark: SparkSession, shards: int) -> None:
        """Series beyond the bound are `other` of their shard, in panes that have a bound."""
        middle = sorted(series_digest(text).hex() for text in TEXTS)[len(TEXTS) // 2]
        bounds = bounds_column([Bound(7, -10, "0"), Bound(1, 20, middle)], 1).to_pylist()
        rows = [(vid, start, text) for vid, start in ((1, 20), (1, 30), (7, 20)) for text in TEXTS]
        frame = spark.createDataFrame(rows, "vid bigint, start_s bigint, series string").crossJoin(
            spark.createDataFrame([(dict(bounds[0]),)], f"bounds {TYPE}")
        )
        found = frame.select(
            "*", counted_as(F.col("series"), F.col("bounds"), shards).alias("as")
        ).select("*", shard_column(F.col("as"), shards).alias("shard"))
        for row in found.collect():
            digest = series_digest(row.series)
            beyond = (row.vid, row.start_s) == (1, 20) and digest.hex() > middle
            shard = shard_of(digest, shards)
            assert placed(row["as"], shards) == (shard, OTHER if beyond else row.series)
            assert row.shard == shard

    def test_without_bounds_every_series_is_its_own(self, spark: SparkSession) -> None:
        """Most batches know of no full pane."""
        frame = spark.createDataFrame(
            [(1, 20, "=a", None)], f"vid bigint, start_s bigint, series string, bounds {TYPE}"
        )
        found = frame.select(counted_as(F.col("series"), F.col("bounds"), 1).alias("as")).first()
        assert found is not None
        assert found["as"] == "=a"
        assert bounds_column([], 3).to_pylist() == [None] * 3
