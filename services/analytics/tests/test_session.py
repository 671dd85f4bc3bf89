"""The JVM that a session starts: who waits for whom in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from weir_analytics.panes.session import COMPILERS_NICE


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own there")
def test_the_compilers_wait_for_batches(spark: SparkSession) -> None:
    """They run on what is left; every other thread has the priority of the process."""
    jvm: Any = spark.sparkContext._jvm
    nice: dict[bool, set[int]] = {True: set(), False: set()}
    for task in Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/task").iterdir():
        name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
        # The state is the third field of proc(5), the nice value the nineteenth.
        nice["CompilerThre" in name].add(int(rest.split()[16]))
    assert nice == {True: {COMPILERS_NICE}, False: {os.getpriority(os.PRIO_PROCESS, 0)}}
