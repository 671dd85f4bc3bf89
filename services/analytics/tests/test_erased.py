"""Who was erased, as columns: the keyed hash that Spark makes is the one that is stored."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from weir.erasure import subject_hash
from weir_analytics.panes.erased import Erased

KEY = b"a key that is longer than one block of the hash: " * 3
SUBJECTS = ["user-17", "", "Zoë Ω", "a\0b", "x" * 512, None]
TENANTS = ["acme", "zeta", None]


@pytest.mark.spark
def test_the_column_knows_who_was_erased(spark: SparkSession) -> None:
    """Of every tenant and subject: true exactly for those whose hash is in the list."""
    erased = {("acme", "user-17"), ("acme", "Zoë Ω"), ("acme", "a\0b"), ("zeta", "")}
    known = frozenset((tenant, subject_hash(KEY, tenant, who)) for tenant, who in erased)
    pairs = [(tenant, who) for tenant in TENANTS for who in SUBJECTS]
    frame = spark.createDataFrame(pairs, "view_weirtenant string, subject string")
    about = Erased(known, KEY).about(F.col("subject")).alias("about")
    found = {(row[0], row[1]): row["about"] for row in frame.select("*", about).collect()}

    assert found == {pair: pair in erased for pair in pairs}


def test_without_the_key_nothing_is_counted() -> None:
    """Events about the erased would be: the driver stops and says what it needs."""
    with pytest.raises(ValueError, match="must hold the file hash_key"):
        Erased(frozenset({("acme", "0" * 64)}), b"")


def test_the_key_is_in_no_text() -> None:
    """What is logged of a plan does not tell it."""
    assert "secret" not in repr(Erased(frozenset(), b"secret"))
