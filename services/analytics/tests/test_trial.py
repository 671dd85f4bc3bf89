"""What a trial says that it failed with, and whose failure that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException
from pyspark.errors import PySparkException
from weir_analytics.panes import trial
from weir_analytics.panes.passing import TrialError
from weir_analytics.panes.trial import try_out
from weir_analytics.panes.writer import Report, answer_of

from .test_lanes_overtaken import _batch

NOTHING: Any = None
SPARK: Any = object()


def answers(error: Exception) -> list[str]:
    """Return the reports of a task that fails."""

    def counted() -> Iterator[pa.RecordBatch]:
        yield from ()
        raise error

    (found,) = answer_of(iter(()), counted())
    return cast("list[str]", found["report"].to_pylist())


@pytest.mark.parametrize(
    ("error", "is_outside"),
    [
        (ZeroDivisionError("no 666"), False),
        (MemoryError(), False),
        (TimeoutError("the log did not answer within 15 s"), True),
        (KafkaException("no broker"), True),
        (ConnectionResetError("by peer"), True),
    ],
)
def test_a_task_says_whether_the_log_or_the_store_failed_it(
    monkeypatch: pytest.MonkeyPatch, error: Exception, is_outside: bool
) -> None:
    """Only all else may be a version's."""
    monkeypatch.setattr(trial, "run", lambda *_: [Report().to_json(), *answers(error)])
    with pytest.raises(TrialError) as found:
        try_out(SPARK, NOTHING, _batch())
    assert found.value.why.startswith(type(error).__name__)
    assert found.value.is_outside is is_outside


@pytest.mark.parametrize("of_records", [True, False])
@pytest.mark.parametrize(
    ("said", "is_outside"),
    [
        ("java.io.IOException: No space left on device", True),
        ("java.lang.OutOfMemoryError: Java heap space", False),
        ("scala.MatchError: 7 (of class java.lang.Integer)", False),
        ("org.apache.spark.SparkException: [INTERNAL_ERROR] The plan is broken", False),
    ],
)
def test_what_spark_says_of_a_plan_of_columns(
    monkeypatch: pytest.MonkeyPatch, said: str, of_records: bool, is_outside: bool
) -> None:
    """Only what is known to be of the log, the store or a disk is nobody's."""

    def fail(*_: object) -> None:
        raise PySparkException(said)

    monkeypatch.setattr(trial, "run", fail)
    batch = _batch() if of_records else replace(_batch(), start={}, end={})
    assert bool(batch.records) is of_records
    with pytest.raises(TrialError) as found:
        try_out(SPARK, NOTHING, batch)
    assert found.value.is_outside is is_outside
