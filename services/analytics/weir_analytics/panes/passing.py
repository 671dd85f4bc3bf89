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
from pyspark.errors import PySparkException
from redis.exceptions import RedisError
from weir.formats import NewerFormatError

from weir_analytics.panes.holes import Hole, HoleError, OvertakenError, holes_in
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.shard_wire import StoreError, WrongCommandError

# What Spark says before what ended a task. Text of events comes after it only.
_LOST = re.compile(
    r"(?:An error occurred while calling .*\n: )?"
    r"(?:(?:org\.apache\.spark\.SparkException: )?Job aborted due to stage failure: .*?"
    r"Lost task \S+ in stage \S+ \(TID \d+\) \([^()\n]*\): )?"
)
# What Spark says of a worker that raised something.
_OF_WORKER = re.compile(r"(?:[\w.]+\.PythonException: )?\s*(?:An exception was thrown|Traceback)")
_TRACED = "Traceback (most recent call last):\n"
_CHAINED = re.compile(
    r"\n\n(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n"
    + re.escape(_TRACED)
)
# The frames of a traceback are indented; the line after them is what was raised.
_FRAMES = re.compile(r"(?:[ \t].*\n)*(?:\w+\.)*")
# What the JVM says of a log, a peer or a disk, and of an executor that was lost through no task.
# A pipe that breaks is that of a worker that ended: what it counted may well be the reason.
_AWAY = re.compile(
    r"org\.apache\.kafka\.[\w.$]+(?:Exception|Error)\b"
    r"|java\.util\.concurrent\.TimeoutException\b"
    r"|java\.net\.(?:Connect|NoRouteToHost|SocketTimeout|UnknownHost)Exception\b"
    r"|java\.io\.(?:FileNotFound|InterruptedIO)Exception\b"
    r"|java\.io\.IOException\b(?!: (?:Broken pipe|Connection reset))"
    r"|java\.nio\.file\.(?:AccessDenied|FileSystem|NoSuchFile)Exception\b"
    r"|ExecutorLostFailure \(executor \S+ exited unrelated to the running tasks\)"
)


class StreamEndedError(Exception):
    """The stream ended for a reason that may pass: begin again at S0."""


class TrialError(Exception):
    """Counting some records of the log for nothing failed.

    Attributes:
        why: With what.
        is_outside: Whether that is known to be of the log, the store or a disk.
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
"""What the log, the store and disks say, whoever asks them: what is counted has no part in it.

But for `WrongCommandError`: what a key of a version holds is that version's.
"""


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
    return not isinstance(error, Exception) or isinstance(error, ends) or bool(missing(error))


def is_outside(error: BaseException) -> bool:
    """Tell whether an error is known to be of the log, the store or a disk: of no version.

    It may come now and then, as from an old part of the log: then what is tried with a version and
    without it says nothing of that version. What nobody knows may well be a version's, since the
    JVM's reasons are as many as its parts: trying again, with it and without it, has to tell.

    Only the kind of error decides, and never what it says: that may be text of an event.
    """
    if isinstance(error, TrialError):
        return error.is_outside
    if isinstance(error, (PySparkException, Py4JError)):
        said = _said_of_task(error)
        if not _OF_WORKER.match(said):
            return _AWAY.match(said) is not None
        raised = _raised(said)
        return bool(raised) and all(map(_is_of_outside, raised))
    return isinstance(error, OUTSIDE) and not isinstance(error, WrongCommandError)


def missing(error: BaseException) -> tuple[Hole, ...]:
    """Return the records that are missing by an error, also where Spark quotes a task.

    By what the task's worker raised first: all else that Spark says may be text of an event. A
    trial looks for none.
    """
    if isinstance(error, HoleError):
        return error.holes
    if not isinstance(error, (PySparkException, Py4JError)):
        return ()
    said = _said_of_task(error)
    raised = _raised(said) if _OF_WORKER.match(said) else []
    return holes_in(raised[0]) if raised else ()


def _said_of_task(error: BaseException) -> str:
    """Return what Spark says of a task, without what it says before that."""
    text = str(error)
    return text[_LOST.match(text).end() :]  # type: ignore[union-attr]  # it matches anything


def first_line(error: BaseException) -> str:
    """Return what an error says first; of one of a task what its worker raised."""
    raised = _raised(str(error))
    said = raised[-1] if raised else f"{type(error).__name__}: {error}".strip()
    return said.splitlines()[0][:300]


def _raised(said: str) -> list[str]:
    """Return what a worker raised that Spark quotes, each with its message's first line.

    First what it met, then what it raised because of that. All but the first may be text that an
    error quotes.
    """
    _, traced, below = said.partition(_TRACED)
    if not traced:
        return []
    parts = _CHAINED.split(below.split("\n\tat ", 1)[0])
    lines = (_FRAMES.sub("", part, count=1).partition("\n")[0].strip() for part in parts)
    return [line for line in lines if line]


def _is_of_outside(raised: str) -> bool:
    """Tell whether what a worker raised is one of `OUTSIDE`, by its name."""
    kinds = {kind.__name__ for kind in _kinds(OUTSIDE)} - {WrongCommandError.__name__}
    return raised.partition(":")[0] in kinds


def _kinds(of: Iterable[type]) -> Iterator[type]:
    for kind in of:
        yield kind
        yield from _kinds(kind.__subclasses__())
