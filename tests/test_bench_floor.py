"""Spark's bare read and parse has a process of its own, and what ends that is told."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
from contest import Log
from floor import Floor, Parser, parser
from weir_analytics.settings import Settings
from weir_local.repository import SPARK_JARS
from workload import PARTITIONS, draw, fill

SPAWN = multiprocessing.get_context("spawn")


@pytest.mark.kafka
@pytest.mark.spark
def test_the_floor_reads_and_parses_in_a_process_of_its_own(
    kafka: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    """All of a log, slice by slice; once that process is killed the benchmark ends."""
    topic = new_topic("events", PARTITIONS)
    log = Log(topic, fill(kafka, topic, draw(400, 10)))
    settings = Settings(
        kafka_bootstrap=kafka,
        redis_url="redis://127.0.0.1:1/0",
        state_dir=tmp_path / "state",
        jars_dir=SPARK_JARS,
        driver_memory="512m",
    )
    broker = SimpleNamespace(part=SimpleNamespace(pid=lambda: None))
    bench = cast("Any", SimpleNamespace(settings=settings, beside=[], broker=broker))
    with parser(bench) as found:
        assert bench.beside == [found.pid]
        floor = Floor(bench, found, log, 200)
        took = floor.run()
        floor.check()
        assert took.events == 400
        assert took.cpu_s > 0, "what it takes is that of the process"

        psutil.Process(found.pid).kill()
        with pytest.raises(SystemExit, match=f"its process {found.pid} ended with -9; why is on"):
            floor.run()
    assert bench.beside == []
    assert not psutil.pid_exists(found.pid)


@pytest.mark.parametrize(("target", "code"), [(sys.exit, 3), (Connection.recv, 0)])
def test_who_has_ended_is_told_whenever_that_was(target: Callable[..., Any], code: int) -> None:
    """Before it was asked, or while it was to answer: one and the same error."""
    asked, answering = SPAWN.Pipe()
    given = (answering,) if target is Connection.recv else (code,)
    process = SPAWN.Process(target=target, args=given)
    process.start()
    answering.close()
    if target is sys.exit:
        process.join()
    with pytest.raises(SystemExit, match=f"must parse until .* {process.pid} ended with {code};"):
        Parser(asked, process).parse("t", {0: 0}, {0: 1})
    asked.close()
