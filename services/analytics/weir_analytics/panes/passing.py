"""What may pass by itself, so that the driver begins again, and what is told of it.

A part outside that is away, or refuses for now, comes back: the process goes on and tries
again. Everything else that a batch raises is told as the end of the stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError
from pyspark.errors import (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    PySparkException,
    SparkRuntimeException,
)
from redis.exceptions import RedisError
from weir.formats import NewerFormatError

from weir_analytics.panes.holes import HoleError, OvertakenError, are_told
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.shard_wire import StoreError

# The last line of a traceback in what Spark says of a worker, which begins with Spark's own words.
_RAISED = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception): .+)$", re.MULTILINE)
# What the JVM threw that ended a task, after "Lost task 0.3 in stage …", or by itself.
_THROWN = re.compile(r"\b(?:\w+\.)+\w+(?:Exception|Error): .*")
# What Spark's own source says of a log that does not answer.
_AWAY = re.compile(r"org\.apache\.kafka\.|java\.util\.concurrent\.TimeoutException")
# What is thrown where an expression is evaluated, and by Spark of a worker that ended.
_EVALUATED = re.compile(
    r"org\.apache\.spark\.Spark(?:Arithmetic|ArrayIndexOutOfBounds|DateTime|IllegalArgument"
    r"|NumberFormat|Runtime|UnsupportedOperation)Exception"
    r"|java\.lang\.(?!Interrupted)"
    r"|org\.apache\.spark\.SparkException: Python worker exited unexpectedly"
)


class StreamEndedError(Exception):
    """The stream ended for a reason that may pass: begin again at S0."""


class TrialError(Exception):
    """Counting some records of the log for nothing failed.

    Attributes:
        why: With what.
        is_outside: Whether that was of the log, the store or a disk, as far as is known.
    """

    def __init__(self, why: str, *, is_outside: bool = False) -> None:
        self.why, self.is_outside = why, is_outside
        super().__init__(f"with records of the log it fails: {why}")


PASSING: Final = (
    KafkaException,
    RedisError,
    StoreError,
    TimeoutError,
    OSError,
    Py4JError,
    PySparkException,
    StreamEndedError,
    TrialError,
    HoleError,
    OvertakenError,
)
"""A part outside is away, or refuses for now; or the log lacks records, which is dealt with."""


OUTSIDE: Final = (KafkaException, RedisError, StoreError, OSError, HoleError)
"""What the log, the store and disks say, whoever asks them: what is counted has no part in it."""


EVALUATED: Final = (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    SparkRuntimeException,
)
"""What Spark makes of an expression's errors where it knows them."""


def told(error: BaseException) -> BaseException:
    """Return an error that says what the driver does about it."""
    known = isinstance(error, (VerdictError, NewerFormatError, *PASSING))
    return error if known else StreamEndedError(first_line(error))


def ends_life(error: BaseException) -> bool:
    """Tell whether a driver has to begin again, or to end, whatever it was that met an error.

    What the fence and the store say, and what a start record has to say of the log. All else that
    ends a slice between two batches is no matter of live counting.
    """
    ends = (VerdictError, NewerFormatError, HoleError, OvertakenError)
    return not isinstance(error, Exception) or isinstance(error, ends) or are_told(error)


def is_outside(error: BaseException) -> bool:
    """Tell whether an error is of the log, the store or a disk: no version is to blame for it.

    It may come now and then, as from an old part of the log: then what is tried with a version and
    without it says nothing of that version.
    """
    if isinstance(error, TrialError):
        return error.is_outside
    if isinstance(error, (PySparkException, Py4JError)):
        raised = _raised(error)
        return _is_of_outside(raised) if raised else bool(_AWAY.match(_thrown(error)))
    return isinstance(error, OUTSIDE)


def is_of_records(error: BaseException) -> bool:
    """Tell whether what Spark says of a task is known to come from what it counts.

    A plan of columns is the JVM's, whose reasons are as many as its parts: what is not known to
    come from there says nothing of a version.
    """
    if raised := _raised(error):
        return not _is_of_outside(raised)
    return isinstance(error, EVALUATED) or bool(_EVALUATED.match(_thrown(error)))


def first_line(error: BaseException) -> str:
    """Return what an error says first; of one of a task what its worker raised."""
    said = _raised(error) or f"{type(error).__name__}: {error}".strip()
    return said.splitlines()[0][:300]


def _raised(error: BaseException) -> str:
    """Return what a worker raised that Spark quotes; empty if it quotes none."""
    _, traced, below = str(error).partition("Traceback (most recent call last)")
    raised = _RAISED.findall(below.split("\n\tat ", 1)[0]) if traced else []
    return raised[-1] if raised else ""


def _thrown(error: BaseException) -> str:
    """Return what the JVM threw that ended a task, as Spark quotes it; empty if it quotes none."""
    found = _THROWN.search(str(error).rpartition("Lost task")[2])
    return found[0] if found else ""


def _is_of_outside(raised: str) -> bool:
    """Tell whether what a worker raised is one of `OUTSIDE`, by its name."""
    return raised.partition(":")[0] in {kind.__name__ for kind in _kinds(OUTSIDE)}


def _kinds(of: Iterable[type]) -> Iterator[type]:
    for kind in of:
        yield kind
        yield from _kinds(kind.__subclasses__())
