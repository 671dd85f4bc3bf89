"""One life of the stream: what its callbacks find of it, and why it ends.

The JVM keeps the function that counts a batch, and what that raised, until its own collector
comes round, minutes after the stream has ended: neither may hold what the life has open. And a
callback that comes late, since Spark stops waiting for a stream's thread after a while, must
change nothing of the life that follows.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from weir.formats import NewerFormatError

from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.holes import HoleError
from weir_analytics.panes.passing import StreamEndedError, first_line, told
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.session import drop_callbacks

LOG = structlog.get_logger()

_GRAVE: Final = (VerdictError, NewerFormatError)


@dataclass
class Life:
    """From the start of a stream to its end.

    Attributes:
        cycle: Returns what counts its batches; None once that is gone.
        ending: Set before the stream is stopped: no batch begins any more.
        failure: The first of what ends it, if anything does.
        short: Shards of which a commit was applied in part, whoever found it.
    """

    cycle: Callable[[], Cycle | None]
    ending: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None
    short: set[int] = field(default_factory=set)
    _taken: list[BaseException] = field(default_factory=list)

    def fail(self, error: BaseException) -> None:
        """Take in what ends it; the first, but that a driver must end comes before all else.

        The same error told again, by another who follows, says nothing new.
        """
        if any(error is one for one in self._taken):
            return
        self._taken.append(error)
        known = told(error)
        if known is not error:  # nobody expects it, so where it came from is all there is
            LOG.error("batch_failed", error=repr(error)[:300], exc_info=error)
        if isinstance(known, VerdictError):
            self.short |= known.shards
        is_graver = isinstance(known, _GRAVE) and not isinstance(self.failure, _GRAVE)
        if self.failure is None or is_graver:
            self.failure = known

    def holes(self) -> list[HoleError]:
        """Return what was found missing, after it was passed, beside what ends the life."""
        return [e for e in self._taken if isinstance(e, HoleError) and e is not self.failure]

    def take_failure(self) -> BaseException | None:
        """Return what ended it, and forget all of it: its frames hold everything."""
        failure, self.failure = self.failure, None
        self._taken.clear()
        return failure

    def count(self, work: Callable[[Cycle], None], number: int) -> None:
        """Have a batch counted.

        Args:
            work: Counts it.
            number: Which batch it is.

        Raises:
            StreamEndedError: If it failed; why is in `failure`, whole, for whoever follows.
        """
        try:
            work(self._cycle(number))
        except Exception as error:  # noqa: BLE001  whoever follows the stream raises it
            self.fail(error)
            said = first_line(error)
        else:
            return
        raise StreamEndedError(said)  # by a frame that holds nothing else

    def _cycle(self, number: int) -> Cycle:
        found = self.cycle()
        if found is None:
            msg = f"batch {number} must be of the stream that runs, is of one that has ended"
            raise StreamEndedError(msg)
        return found


def let_go(spark: SparkSession) -> None:
    """Close what a life leaves open, which is over: nobody else does for a long time."""
    try:
        drop_callbacks(spark)
    except (Py4JError, OSError) as error:
        LOG.warning("callbacks_not_dropped", error=first_line(error))
    # Its parts know each other, and some hold a client of Kafka.
    gc.collect()
