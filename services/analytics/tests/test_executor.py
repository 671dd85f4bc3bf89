"""The program of executors in pods, against a real driver of Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from weir_analytics.executor import JARS, MAIN, command
from weir_analytics.panes.session import EXECUTOR_LOGS
from weir_local.waiting import wait_until

TOLD = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1g",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_EXECUTOR_POD_NAME": "weir-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_JAVA_OPT_10": "-Dlast=1",
    "SPARK_JAVA_OPT_0": "-Dfirst=1",
    "SPARK_JAVA_OPT_2": "-Dsecond=1",
}
# A driver whose one executor of its own waits for a second one, which this test brings, and
# then has each of the two hold a task at the same time, and then one that fails.
DRIVER = """
import time
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local-cluster[1,1,512]").appName("driver")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.executor.memory", "512m").config("spark.ui.enabled", "false").getOrCreate())
context = spark.sparkContext
print("told", context.getConf().get("spark.driver.port"), context.applicationId, flush=True)
executors = context._jsc.sc().getExecutorMemoryStatus
deadline = time.monotonic() + 90
while executors().size() < 3:
    assert time.monotonic() < deadline, executors().toString()
    time.sleep(0.2)
def where(_):
    import os, time
    time.sleep(3)
    yield os.environ.get("SPARK_EXECUTOR_POD_NAME", "own")
print("ran", *sorted(context.parallelize([1, 2], 2).mapPartitions(where).collect()), flush=True)
def fail(_):
    import time
    time.sleep(1)
    raise ValueError("fails on purpose")
try:
    context.parallelize([1, 2], 2).mapPartitions(fail).collect()
except Exception:
    print("failed", flush=True)
spark.stop()
"""


def test_the_command_carries_what_spark_told() -> None:
    """Options in their order, the heap, Spark's classes after those that were asked for."""
    words = command({**TOLD, "SPARK_CLASSPATH": "/opt/weir/jars/a.jar"}, "/usr/bin/java")
    assert words[:4] == ["/usr/bin/java", "-Dfirst=1", "-Dsecond=1", "-Dlast=1"]
    assert words[4:7] == ["-Dspark.master=k8s://", "-Xms1g", "-Xmx1g"]
    assert words[7:10] == ["-cp", f"/opt/weir/jars/a.jar:{JARS}/*", MAIN]
    given = dict(zip(words[10::2], words[11::2], strict=True))
    assert given == {
        "--driver-url": "spark://CoarseGrainedScheduler@driver:7078",
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.7",
        "--resourceProfileId": "0",
        "--podName": "weir-exec-3",
    }


@pytest.mark.parametrize("name", [name for name in TOLD if "JAVA_OPT" not in name])
def test_what_spark_did_not_tell_is_named(name: str) -> None:
    """A pod that somebody else made ends with the name of what is missing."""
    told = {key: value for key, value in TOLD.items() if key != name}
    done = start(told, Path(os.devnull))
    assert done.wait(30) == 2


def start(told: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start the program as Spark starts it in a pod."""
    # A JVM writes what JDK_JAVA_OPTIONS tell it into its output, which is lines of JSON alone.
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("SPARK_") and key != "JDK_JAVA_OPTIONS"
    }
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "weir_analytics.executor"],
            env={**clean, **told},
            stdout=out,
            stderr=subprocess.STDOUT,
        )


@pytest.mark.spark
def test_a_driver_gives_it_work_and_ends_it(tmp_path: Path) -> None:
    """It registers by what it was told, works beside another one, and goes with the driver.

    Of all this it logs the task that failed, in lines of JSON, and nothing else.
    """
    log = tmp_path / "driver.log"
    with log.open("w") as out:
        driver = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", DRIVER],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=tmp_path,
        )
    executor = None

    def line(word: str) -> list[str] | None:
        found = [one.split()[1:] for one in log.read_text().splitlines() if one.startswith(word)]
        assert found or driver.poll() is None, log.read_text()
        return found[0] if found else None

    try:
        port, application = wait_until(lambda: line("told "), timeout_s=90, what="the driver")
        told = {
            "SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@127.0.0.1:{port}",
            "SPARK_EXECUTOR_ID": "77",
            "SPARK_EXECUTOR_CORES": "1",
            "SPARK_EXECUTOR_MEMORY": "512m",
            "SPARK_APPLICATION_ID": application,
            "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
            "SPARK_EXECUTOR_POD_NAME": "pod-77",
            "SPARK_RESOURCE_PROFILE_ID": "0",
            "SPARK_JAVA_OPT_0": "-Dspark.driver.port=" + port,
            "SPARK_JAVA_OPT_1": EXECUTOR_LOGS,
        }
        executor = start(told, tmp_path / "executor.log")
        ran = wait_until(lambda: line("ran "), timeout_s=120, what="both tasks done")
        assert ran == ["own", "pod-77"]
        assert driver.wait(60) == 0
        assert executor.wait(60) is not None
        logged = [json.loads(one) for one in (tmp_path / "executor.log").read_text().splitlines()]
        assert any("fails on purpose" in one["exception"] for one in logged)
        assert {one["level"] for one in logged} == {"error"}
        assert all(datetime.fromisoformat(one["at"]).tzinfo == UTC for one in logged)
    finally:
        for process in (driver, executor):
            if process is not None:
                process.kill()
                process.wait(10)
