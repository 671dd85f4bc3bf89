"""Whose failure an error is: the log's, the store's or a disk's, or of what is counted. Pure."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException
from pyspark.errors import ArithmeticException, PySparkException, PythonException
from redis.exceptions import ConnectionError as RedisConnectionError
from weir_analytics.panes.holes import Hole, HoleError
from weir_analytics.panes.passing import TrialError, ends_life, first_line, is_outside, missing
from weir_analytics.panes.shard_wire import StoreError

LOST = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.runJob.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 7.0 "
    "failed 4 times, most recent failure: Lost task 0.3 in stage 7.0 (TID 9) (host executor 1): "
)
BELOW = "An exception was thrown from the Python worker:\n"
TRACED = "Traceback (most recent call last):\n"
CAUSED = "\n\nThe above exception was the direct cause of the following exception:\n\n"
MEANWHILE = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
FRAME = '  File "small.py", line 1, in read\n    raise error\n'
FRAMES = "\n\tat java.base/java.lang.Thread.run(Thread.java:840)\n"


def raised(what: str) -> PySparkException:
    """Return what Spark says of a worker that raised something."""
    trace = f"{TRACED}{FRAME}{what}\n"
    return PySparkException(f"{LOST}org.apache.spark.api.python.PythonException: {trace}{FRAMES}")


def raised_after(what: str, then: str, why: str = CAUSED) -> PySparkException:
    """Return what Spark says of a worker that raised something because of something."""
    return raised(f"{what}{why}{TRACED}{FRAME}{then}")


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
        raised("TimeoutError"),
        raised_after(
            "redis.exceptions.ResponseError: MISCONF",
            "weir_analytics.panes.shard_wire.StoreError: redis refused to write: MISCONF",
        ),
        PythonException(f"{BELOW}{TRACED}{FRAME}TimeoutError: no answer\n SQLSTATE: 38000"),
        thrown("org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired"),
        thrown("java.util.concurrent.TimeoutException: Cannot fetch record for offset 7"),
        thrown("java.io.IOException: No space left on device"),
        thrown("java.nio.file.FileSystemException: /spark: No space left on device"),
        thrown("java.net.ConnectException: Connection refused"),
        thrown("ExecutorLostFailure (executor 1 exited unrelated to the running tasks) Reason: -"),
        PySparkException("java.io.IOException: No space left on device"),
    ],
)
def test_of_the_log_the_store_and_disks(error: Exception) -> None:
    """Also where Spark quotes a worker, or its own source; none of it is of what is counted."""
    assert is_outside(error)


@pytest.mark.parametrize(
    "error",
    [
        raised("ZeroDivisionError: no 666"),
        raised("MemoryError"),
        raised("AssertionError"),
        raised_after(
            "redis.exceptions.ResponseError: WRONGTYPE",
            "weir_analytics.panes.shard_wire.WrongCommandError: redis refused to write: WRONGTYPE",
        ),
        thrown("org.apache.spark.SparkArithmeticException: [ARITHMETIC_OVERFLOW] long overflow"),
        thrown("java.lang.StackOverflowError: too deep"),
        thrown(
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
            "Caused by: java.io.EOFException: of the socket",
        ),
        thrown("java.io.IOException: Broken pipe"),
        thrown("java.net.SocketException: Connection reset"),
        thrown("scala.MatchError: 7 (of class java.lang.Integer)"),
        thrown("java.util.NoSuchElementException: None.get"),
        thrown("java.time.DateTimeException: Invalid value for MonthOfYear"),
        thrown("java.util.regex.PatternSyntaxException: Unclosed group near index 1"),
        thrown("org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] 8"),
        thrown("org.apache.spark.SparkException: [INTERNAL_ERROR] The plan is broken"),
        thrown("ExecutorLostFailure (executor 1 exited caused by one of the running tasks)"),
        ArithmeticException("[ARITHMETIC_OVERFLOW] long overflow"),
        PySparkException("Job 7 cancelled as part of cancellation of all jobs"),
    ],
)
def test_of_what_is_counted_or_unknown(error: Exception) -> None:
    """Python's and the JVM's; a worker that ended without a word; and what nobody knows."""
    assert not is_outside(error)


QUOTED = [
    "OSError: x",
    f"{CAUSED}{TRACED}{FRAME}OSError: x",
    f"{MEANWHILE}{TRACED}{FRAME}OSError: x",
    f"\n\tat java.base\n{TRACED}{FRAME}OSError: x",
    f"org.apache.spark.api.python.PythonException: {TRACED}OSError: x",
    f"{LOST}org.apache.kafka.common.KafkaException: x",
    f"{LOST}org.apache.spark.api.python.PythonException: {TRACED}OSError: x",
    "\njava.io.IOException: x",
]


@pytest.mark.parametrize("text", QUOTED)
@pytest.mark.parametrize("gap", ["'", "\n", "'a\n", "'a\n\n"])
def test_text_of_an_event_is_nobodys_word(text: str, gap: str) -> None:
    """An error may quote it: then a tenant would keep all others from being looked for."""
    said = f"Failed to parse string: {gap}{text}\n'"
    assert not is_outside(raised(f"pyarrow.lib.ArrowInvalid: {said}"))
    assert not is_outside(thrown(f"org.apache.spark.SparkRuntimeException: {said}"))
    assert not is_outside(PySparkException(f"[CAST_INVALID_INPUT] {said}"))


HOLES = [Hole(0, 7, 9), Hole(3, 1, 1)]
NO_RECORDS = f"HoleError: {HoleError(HOLES)}"


@pytest.mark.parametrize(
    "error",
    [
        HoleError(HOLES),
        raised(f"weir_analytics.panes.holes.{NO_RECORDS}"),
        PythonException(f"{BELOW}{TRACED}{FRAME}weir_analytics.panes.holes.{NO_RECORDS}\n"),
    ],
)
def test_a_worker_says_which_records_are_missing(error: Exception) -> None:
    """Each with its place; that ends a life, since a start record has to say it."""
    assert missing(error) == tuple(HOLES)
    assert ends_life(error)


@pytest.mark.parametrize("gap", ["", "'", "\n", "'a\n", f"{CAUSED}{TRACED}{FRAME}", "\n\n"])
def test_a_tenant_makes_no_record_missing(gap: str) -> None:
    """By the text of an event that an error quotes: its offsets would be given up for everybody."""
    for text in (NO_RECORDS, f"{TRACED}{FRAME}{NO_RECORDS}", str(HoleError(HOLES))):
        said = f"Failed to parse string: {gap}{text}"
        for error in (
            raised(f"pyarrow.lib.ArrowInvalid: {said}"),
            raised(f"HoleError: {said}"),
            thrown(f"org.apache.spark.SparkRuntimeException: {said}"),
            PySparkException(f"[CAST_INVALID_INPUT] {said}"),
            TrialError(f"ArrowInvalid: {said}"),
            KeyError(said),
        ):
            assert missing(error) == ()
            assert not ends_life(error)


def test_what_is_raised_because_of_something_counts_too() -> None:
    """A log that is late may be expected; what fails then is something else."""
    zero = "ZeroDivisionError: no 666"
    for why in (CAUSED, MEANWHILE):
        assert not is_outside(raised_after("TimeoutError: no answer", zero, why))
        assert not is_outside(raised_after(zero, "TimeoutError: no answer", why))


def test_a_line_says_what_a_worker_raised() -> None:
    """Or what Spark says first."""
    assert first_line(raised("TimeoutError: so it is")) == "TimeoutError: so it is"
    assert first_line(raised_after("KeyError: 7", "a.b.StoreError: full")) == "StoreError: full"
    assert first_line(raised("pyarrow.lib.ArrowInvalid: x\nOSError: so it is")) == "ArrowInvalid: x"
    assert first_line(raised("MemoryError")) == "MemoryError"
    assert first_line(PySparkException("no task\nat all")) == "PySparkException: no task"
