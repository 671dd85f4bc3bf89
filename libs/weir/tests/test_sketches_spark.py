"""Sketches made by Spark are read, merged and written here as the same bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import datasketches as ds
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from weir.sketches import (
    compact_hll,
    compact_kll,
    hll_estimate,
    kll_quantile,
    merge_hll,
    merge_kll,
)
from weir_local.repository import SPARK_JARS

pytestmark = pytest.mark.spark
EVENTS = 8000


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Row]]:
    """Return the sketches that Spark makes of four large groups and one of only nulls."""
    folder: Path = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        # The JVM stays for the modules that come after this one, and they need the connector.
        .config("spark.driver.extraClassPath", os.pathsep.join(map(str, SPARK_JARS.glob("*.jar"))))
        .config("spark.local.dir", str(folder))
        .config("spark.sql.warehouse.dir", str(folder))
        .getOrCreate()
    )
    events = session.range(EVENTS).select(
        (F.col("id") % 4).alias("part"),
        F.concat(F.lit("é"), F.col("id") % 1000).alias("user"),
        (F.col("id") * 0.5).alias("value"),
    )
    nothing = session.range(3).select(
        F.lit(4).cast("long").alias("part"),
        F.lit(None).cast("string").alias("user"),
        F.lit(None).cast("double").alias("value"),
    )
    yield (
        events.union(nothing)
        .groupBy("part")
        .agg(
            F.hll_sketch_agg("user", F.lit(12)).alias("hll"),
            F.kll_sketch_agg_double("value", F.lit(800)).alias("kll"),
        )
        .orderBy("part")
        .collect()
    )
    session.stop()


class TestSparksSketches:
    def test_merge_to_the_answer(self, groups: list[Row]) -> None:
        """The merge of Spark's parts gives the distinct count and the p99 of all events."""
        users = hll_estimate(merge_hll(bytes(g.hll) for g in groups[:4]) or b"")
        assert users.low <= 1000 <= users.high
        p99 = kll_quantile(merge_kll(bytes(g.kll) for g in groups[:4]) or b"", 0.99)
        assert p99.low <= 0.5 * (0.99 * EVENTS - 1) <= p99.high

    def test_are_written_back_as_they_came(self, groups: list[Row]) -> None:
        """Reading and writing again changes no byte, so both libraries mean the same."""
        for group in groups:
            hll, kll = bytes(group.hll), bytes(group.kll)
            assert bytes(ds.hll_sketch.deserialize(hll).serialize_updatable()) == hll
            assert bytes(ds.kll_doubles_sketch.deserialize(kll).serialize()) == kll

    def test_hash_the_same(self, groups: list[Row]) -> None:
        """Values counted here and in Spark are the same values: their union adds nothing."""
        here = ds.hll_sketch(12, ds.HLL_8)
        for number in range(0, 1000, 4):
            here.update(f"é{number}")
        spark = compact_hll(bytes(groups[0].hll)) or b""
        union = merge_hll([spark, bytes(here.serialize_compact())])
        assert hll_estimate(union or b"").value == hll_estimate(spark).value == 250

    def test_of_nulls_are_none(self, groups: list[Row]) -> None:
        """A group of only nulls has sketches of 40 and 8 bytes, which mean none."""
        hll, kll = bytes(groups[4].hll), bytes(groups[4].kll)
        assert (len(hll), len(kll)) == (40, 8)
        assert compact_hll(hll) is None
        assert compact_kll(kll) is None
