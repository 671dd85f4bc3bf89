"""Whose failure an error is: the log's, the store's or a disk's, or of what is counted. Pure."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException
from pyspark.errors import ArithmeticException, PySparkException
from redis.exceptions import ConnectionError as RedisConnectionError
from weir_analytics.panes.holes import Hole, HoleError
from weir_analytics.panes.passing import TrialError, first_line, is_of_records, is_outside
from weir_analytics.panes.shard_wire import StoreError

LOST = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.runJob.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 7.0 "
    "failed 4 times, most recent failure: Lost task 0.3 in stage 7.0 (TID 9) (host executor 1): "
)
FRAMES = "\n\tat java.base/java.lang.Thread.run(Thread.java:840)\n"


def raised(what: str) -> PySparkException:
    """Return what Spark says of a worker that raised something."""
    trace = f'Traceback (most recent call last):\n  File "small.py", line 1, in read\n{what}\n'
    return PySparkException(f"{LOST}org.apache.spark.api.python.PythonException: {trace}{FRAMES}")


def thrown(what: str, cause: str = "") -> PySparkException:
    """Return what Spark says of a task that the JVM ended."""
    return PySparkException(f"{LOST}{what}{FRAMES}{cause}")


@pytest.mark.parametrize(
    "error",
    [
        KafkaException("no broker"),
        TimeoutError("the log did not answer within 15 s"),
        RedisConnectionError("reset"),
        StoreError("redis refused to write: OOM"),
        OSError(28, "No space left on device"),
        HoleError([Hole(0, 7, 9)]),
        TrialError("TimeoutError: the log did not answer", is_outside=True),
        raised("TimeoutError: the log did not answer within 15 s"),
        raised("cimpl.KafkaException: KafkaError{code=_TRANSPORT}"),
        raised("redis.exceptions.ConnectionError: Error 111 connecting"),
        raised("weir_analytics.panes.shard_wire.StoreError: redis refused to write: OOM"),
        thrown("org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired"),
        thrown("java.util.concurrent.TimeoutException: Cannot fetch record for offset 7"),
    ],
)
def test_of_the_log_the_store_and_disks(error: Exception) -> None:
    """Also where Spark quotes a worker, or its own source; none of it is of what is counted."""
    assert is_outside(error)
    assert not is_of_records(error)


@pytest.mark.parametrize(
    "error",
    [
        raised("ZeroDivisionError: no 666"),
        raised("pyarrow.lib.ArrowInvalid: x\nValueError: so it is"),
        thrown("org.apache.spark.SparkArithmeticException: [ARITHMETIC_OVERFLOW] long overflow"),
        thrown("java.lang.StackOverflowError: too deep"),
        thrown(
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
            "Caused by: java.io.EOFException: of the socket",
        ),
        ArithmeticException("[ARITHMETIC_OVERFLOW] long overflow"),
    ],
)
def test_of_what_is_counted(error: Exception) -> None:
    """Python's and the JVM's; and a worker that ended without a word."""
    assert is_of_records(error)
    assert not is_outside(error)


@pytest.mark.parametrize(
    "error",
    [
        thrown("java.io.IOException: No space left on device"),
        thrown("ExecutorLostFailure (executor 1 exited): heartbeat timed out"),
        PySparkException("Job 7 cancelled as part of cancellation of all jobs"),
    ],
)
def test_what_nobody_knows(error: Exception) -> None:
    """It may be searched for, and counts against no version."""
    assert not is_outside(error)
    assert not is_of_records(error)


def test_a_line_says_what_a_worker_raised() -> None:
    """Or what Spark says first."""
    assert first_line(raised("TimeoutError: so it is")) == "TimeoutError: so it is"
    assert first_line(PySparkException("no task\nat all")) == "PySparkException: no task"
