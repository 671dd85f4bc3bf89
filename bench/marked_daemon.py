"""The parent of Spark's Python workers, with the marks of `marks.py`; see the engine's own."""

from __future__ import annotations

from marks import mark_workers
from pyspark import daemon
from weir_analytics.panes.daemon import STEPS, spare_collector

if __name__ == "__main__":
    assert STEPS  # noqa: S101  imported so that the workers need not
    mark_workers()
    spare_collector()
    daemon.manager()
