"""The parent of Spark's Python workers: it imports what they need, once, and they are forks of it.

Spark starts it as `spark.python.daemon.module`. A worker collects all its garbage after
each task, which looks at every object of every imported module: 60 ms a task, two tasks
a batch. What is here before the first fork is therefore put where the collector never
looks; so it also stays in memory that all workers share. While a task runs it looks seldom:
a list of records or of rows is some thousands of objects without a cycle, and by default it would
look at them after every 700. So nothing large may be part of a cycle: it would stay until the
task's end.

What its forks log is lines of JSON, like what the job logs; they end themselves where a task
hangs (`task_watch.py`).
"""

from __future__ import annotations

import gc

from pyspark import daemon
from weir_service import logs

from weir_analytics.panes import arrow_count, dispose, small, task_watch, writer

STEPS = (
    arrow_count.count_and_write,
    arrow_count.count_log,
    small.read_and_dispose,
    dispose.dispose_rows,
    writer.write,
)
"""What runs in a worker; their modules import the rest."""


def spare_collector() -> None:
    """Have the collector of cycles look seldom, and never at what is here."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


if __name__ == "__main__":
    logs.configure()
    task_watch.arm()
    spare_collector()
    daemon.manager()
