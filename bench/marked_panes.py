"""The panes job with the marks of `marks.py`: steps of the driver, and those of Spark itself."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from marks import mark, mark_workers, timed
from pyspark.sql import SparkSession
from weir_analytics.panes import __main__ as job
from weir_analytics.panes import cycle, session, stream
from weir_analytics.panes.definitions_log import DefinitionsLog

# Spark remembers the last five batches; there are four a second.
POLL_S = 0.5


def mark_driver() -> None:
    """Wrap the steps of the driver."""
    timed(cycle.Cycle, "on_batch", "batch")
    timed(cycle, "run", "job")
    timed(stream.BatchStream, "append", "record")
    timed(DefinitionsLog, "poll", "definitions")
    configured = session.session_config

    def with_marks(settings: Any) -> dict[str, str]:
        return dict(configured(settings)) | {"spark.python.daemon.module": "marked_daemon"}

    session.session_config = with_marks


def follow_spark() -> None:
    """Mark what Spark says of each batch's steps, as they are over."""
    seen = -1
    while True:
        time.sleep(POLL_S)
        # Not the active one: that is another for each thread.
        found = SparkSession._instantiatedSession
        for query in found.streams.active if found is not None else ():
            for progress in query.recentProgress:
                if progress["batchId"] > seen:
                    seen = progress["batchId"]
                    mark(f"spark {json.dumps(progress['durationMs'])}", 0, 0)


if __name__ == "__main__":
    mark_driver()
    mark_workers()  # also what the driver itself calls of them
    threading.Thread(target=follow_spark, daemon=True).start()
    sys.exit(job.main())
