"""The JVM that a session starts: who waits for whom in it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from weir_analytics.panes.session import (
    COMPILERS_NICE,
    CONNECTOR,
    drop_callbacks,
    session_config,
    source_options,
)
from weir_analytics.settings import Settings
from weir_local.waiting import wait_until


def nice_values(process: Path) -> Iterator[tuple[str, int]]:
    """Yield name and nice value of each thread of a process that has not ended meanwhile."""
    for task in (process / "task").iterdir():
        try:
            stat = (task / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        name, _, rest = stat.partition("(")[2].rpartition(")")
        # The state is the third field of proc(5), the nice value the nineteenth.
        yield name, int(rest.split()[16])


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own there")
def test_the_compilers_wait_for_batches(spark: SparkSession) -> None:
    """They run on what is left; every other thread has the priority of the process."""
    jvm: Any = spark.sparkContext._jvm
    nice: dict[bool, set[int]] = {True: set(), False: set()}
    for name, value in nice_values(Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}")):
        nice["CompilerThre" in name].add(value)
    assert nice == {True: {COMPILERS_NICE}, False: {os.getpriority(os.PRIO_PROCESS, 0)}}


def test_a_thread_that_has_ended_is_passed_over(tmp_path: Path) -> None:
    """Between the list and the look at it; a machine that is busy ends some then."""
    for number in (1, 2, 3):
        (tmp_path / "task" / str(number)).mkdir(parents=True)
    line = f"3 (a (b) c) S {' '.join(['0'] * 15)} 7 1 0\n"
    (tmp_path / "task" / "3" / "stat").write_text(line)
    # Read after its end, a file that was opened before it says that there is no such process.
    (tmp_path / "task" / "2" / "stat").symlink_to(f"/proc/self/task/{os.getpid()}/nothing")
    assert list(nice_values(tmp_path)) == [("a (b) c", 7)]


@pytest.mark.parametrize(("columns", "is_quick"), [(False, True), (True, False)])
def test_only_columns_are_worth_an_optimizing_compiler(
    tmp_path: Path, columns: bool, is_quick: bool
) -> None:
    """Of driver and executors alike: what Python's workers count leaves the JVM little to do."""
    for jar in CONNECTOR:
        (tmp_path / jar.replace("*", "1")).touch()
    told: dict[str, Any] = {"kafka_bootstrap": "k:1", "redis_url": "redis://r", "columns": columns}
    config = session_config(Settings(state_dir=tmp_path, jars_dir=tmp_path, **told))
    for of in ("driver", "executor"):
        options = config[f"spark.{of}.extraJavaOptions"].split()
        assert ("-XX:TieredStopAtLevel=1" in options) is is_quick


def test_a_stream_passes_over_nothing_that_the_log_has_lost(tmp_path: Path) -> None:
    """It ends there, and the driver says what is gone (I13); Spark alone would only warn."""
    settings = Settings(state_dir=tmp_path, jars_dir=tmp_path, kafka_bootstrap="k:1", redis_url="r")
    options = source_options(settings, '{"weir.events":{"0":5}}')
    assert options["failOnDataLoss"] == "true"
    assert options["startingOffsets"] == '{"weir.events":{"0":5}}'


@pytest.mark.spark
def test_connections_of_streams_that_have_ended_are_closed(spark: SparkSession) -> None:
    """Each stream calls Python by a thread and a connection of its own, which Py4J keeps."""
    gateway: Any = spark.sparkContext._gateway
    listeners = []
    for _stream in range(4):
        count_a_batch(spark)
        drop_callbacks(spark)
        server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
        listeners.append(server.getListeners().size())
    assert len(set(listeners)) == 1
    port = gateway.get_callback_server().get_listening_port()
    # The JVM's collector has one of its own, whenever it lets go of what Python made.
    wait_until(lambda: connected_to(port) <= 1, timeout_s=10, what="connections to be closed")


def count_a_batch(spark: SparkSession) -> None:
    """Begin a stream, have it call Python, and end it."""
    called = threading.Event()
    log = spark.readStream.format("rate").load().writeStream
    query = log.foreachBatch(lambda _frame, _number: called.set()).start()
    assert called.wait(60)
    query.stop()


def connected_to(port: int) -> int:
    """Return how many connections this process has that came to one of its ports."""
    found = psutil.Process().net_connections("tcp")
    return sum(one.laddr.port == port and one.status == psutil.CONN_ESTABLISHED for one in found)
