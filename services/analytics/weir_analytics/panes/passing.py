"""What may pass by itself, so that the driver begins again, and what is told of it.

A part outside that is away, or refuses for now, comes back: the process goes on and tries
again. Everything else that a batch raises is told as the end of the stream.
"""

from __future__ import annotations

import re
from typing import Final

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from redis.exceptions import RedisError
from weir.formats import NewerFormatError

from weir_analytics.panes.holes import HoleError, OvertakenError, are_told
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.shard_wire import StoreError

# The last line of a traceback in what Spark says of a worker, which begins with Spark's own words.
_RAISED = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception): .+)$", re.MULTILINE)


class StreamEndedError(Exception):
    """The stream ended for a reason that may pass: begin again at S0."""


class TrialError(Exception):
    """Counting some records of the log for nothing failed.

    Attributes:
        why: With what.
    """

    def __init__(self, why: str) -> None:
        self.why = why
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


def first_line(error: BaseException) -> str:
    """Return what an error says first; of one of a task what its worker raised."""
    _, traced, below = str(error).partition("Traceback (most recent call last)")
    raised = _RAISED.findall(below.split("\n\tat ", 1)[0]) if traced else []
    said = raised[-1] if raised else f"{type(error).__name__}: {error}".strip()
    return said.splitlines()[0][:300]
