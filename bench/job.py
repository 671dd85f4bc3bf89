"""The real panes job beside its own broker and Redis, and what it has counted so far."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import marks
import psutil
import redis
from confluent_kafka import Producer
from weir import names, rows
from weir.definitions.fold import Definitions
from weir.definitions.records import Edit, put_record
from weir.kafka import Kafka
from weir.topics import Sizes, topics
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_local.kafka import Broker
from weir_local.redis import RedisServer
from weir_local.repository import SPARK_JARS
from workload import PARTITIONS, Wanted

HERE = Path(__file__).parent
END_S = 60.0
POLL_S = 0.2
STOPPED_S = 10.0
STOP_POLL_S = 0.01
SHOWN_LINES = 8
STRANGE_LINES = 16
# What 20 metrics with sketches would take, had each of them its 10,000 series, is beyond the
# usual budget, and those that exceed it would not begin.
TENANT_BYTES = 2**42


@dataclass
class Job:
    """One job that runs.

    Attributes:
        pid: Of the first process of its tree.
        file: Where its marks are, if it was started with them.
        log: What it says.
    """

    broker: Broker
    server: RedisServer
    pid: int
    file: Path
    log: Path
    redis: Any = field(init=False)

    def __post_init__(self) -> None:
        self.redis = redis.Redis.from_url(self.server.url)

    def vids(self, metrics: Sequence[Wanted]) -> list[int]:
        """Return the ids of the metrics' versions."""
        return _vids(self._definitions(), metrics)

    def await_serving(self, metrics: Sequence[Wanted], timeout_s: float = END_S) -> None:
        """Return when all metrics are counted and serve; what comes now is counted live.

        Raises:
            SystemExit: If they do not in time.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            fold = self._definitions()
            begun = [fold.activations.get(vid) for vid in _vids(fold, metrics)]
            if all(one is not None and one.serves for one in begun):
                return
            if time.monotonic() > deadline:
                serving = sum(one is not None and one.serves for one in begun)
                msg = f"{len(metrics)} metrics must serve within {timeout_s:.0f} s, {serving} do"
                raise SystemExit(msg)
            time.sleep(POLL_S)

    def _definitions(self) -> Definitions:
        log = DefinitionsLog(Kafka(self.broker.bootstrap))
        log.read_to(log.end())
        log.close()
        return log.fold

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the job stand still, with all that it started: its cores are free meanwhile."""
        root = psutil.Process(self.pid)
        stopped: list[psutil.Process] = []
        try:
            # From the root on: who stands still starts nobody.
            waiting = [root]
            while waiting:
                process = waiting.pop()
                process.suspend()
                stopped.append(process)
                _await_stopped(process)
                waiting += process.children()
            yield
        finally:
            for process in reversed(stopped):
                process.resume()

    def accounted(self) -> int:
        """Return how many events the ledger accounts for."""
        keys = self.redis.keys(f"{names.shard_prefix(0)}p:-1:*")
        found = (packed for key in keys for packed in self.redis.hgetall(key).values())
        return sum(rows.decode(packed).n for packed in found)

    def await_accounted(self, sent: int, timeout_s: float = END_S) -> None:
        """Return when the ledger has every event.

        Raises:
            SystemExit: If it has more, or not all in time; with what the job said last.
        """
        deadline = time.monotonic() + timeout_s
        while (got := self.accounted()) != sent:
            if got > sent or time.monotonic() > deadline:
                msg = f"the ledger must account for {sent} events, got {got}; the job said:"
                raise SystemExit("\n".join([msg, self.said()]))
            time.sleep(POLL_S)

    def said(self) -> str:
        """Return the last lines that it wrote, and before them the last that are not common."""
        lines = self.log.read_text("utf-8", "replace").splitlines()
        before, last = lines[:-SHOWN_LINES], lines[-SHOWN_LINES:]
        return "\n".join([*list(_strange(before))[-STRANGE_LINES:], *last])


def _strange(lines: Iterable[str]) -> Iterator[str]:
    """Yield what says that something went wrong.

    Of the job's own lines those above "info", of the JVM's those that warn or tell of an error,
    and causes; of each traceback of a Python worker, also within those, the last line.
    """
    traced = False
    for line in lines:
        if line[:1] == "{":
            if '"level": "info"' not in line:
                yield line
            continue
        if " WARN " in line or " ERROR " in line or line.startswith("Caused by: "):
            yield line
        elif traced and line[:1].strip():
            traced = False
            yield line
        traced = traced or "Traceback (most recent call last):" in line


def _await_stopped(process: psutil.Process) -> None:
    """Return when a process stands still, or has ended: what sends a signal does not wait."""
    deadline = time.monotonic() + STOPPED_S
    while process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
        if time.monotonic() > deadline:
            msg = f"process {process.pid} must stand still, but it is {process.status()}"
            raise SystemExit(msg)
        time.sleep(STOP_POLL_S)


def _vids(fold: Definitions, metrics: Sequence[Wanted]) -> list[int]:
    found = (fold.get("default", "metric", f"m{one.number}") for one in metrics)
    return [one.vid for one in found if one is not None]


@contextmanager
def job(folder: Path, metrics: Sequence[Wanted], *, marked: bool = False) -> Iterator[Job]:
    """Start everything, with metrics defined before the first event; end it afterwards.

    Args:
        folder: Where everything goes.
        metrics: What is counted.
        marked: Whether the steps of the job are marked, as `marks.py` says.
    """
    broker, server = Broker(folder / "kafka"), RedisServer(folder / "redis", durable=True)
    try:
        broker.start()
        server.start()
        broker.create_topics(topics(Sizes(events_partitions=PARTITIONS)))
        define(broker, metrics)
        with running(broker, server, folder, marked=marked) as process:
            yield Job(broker, server, process.pid, folder / "marks", folder / "job.log")
    finally:
        server.kill()
        broker.kill()


@contextmanager
def running(
    broker: Broker, server: RedisServer, folder: Path, *, marked: bool
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the panes job; end it afterwards."""
    told = {
        "KAFKA_BOOTSTRAP": broker.bootstrap,
        "REDIS_URL": server.url,
        "STATE_DIR": str(folder / "state"),
        "JARS_DIR": str(SPARK_JARS),
        "OPS_PORT": "0",
        "INSTANCE": "bench",
        "TENANT_BYTES": str(TENANT_BYTES),
    }
    environment = os.environ | {f"WEIR_ANALYTICS_{name}": value for name, value in told.items()}
    environment[marks.FILE] = str(folder / "marks")
    path = [str(HERE), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    program = [str(HERE / "marked_panes.py")] if marked else ["-m", "weir_analytics.panes"]
    with (folder / "job.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, *program],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its session: JVM and workers with it
        process.wait()


def define(broker: Broker, metrics: Sequence[Wanted]) -> None:
    """Write the metrics as definitions."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for one in metrics:
        text = one.metric().model_dump_json(exclude_unset=True, by_alias=True)
        record = put_record(Edit("default", "metric", f"m{one.number}", None, "bench", 0), text)
        producer.produce(names.DEFINITIONS, record.value, record.key)
    producer.flush(END_S)
