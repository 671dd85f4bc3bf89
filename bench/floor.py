"""The floor of the engine: Spark reads and parses every event of a log, and throws it away.

It has a process and a session of its own, with all of the JVM's compilers: the engine's own JVM
has little to do and goes without the optimizing one (docs/decisions/0036), which would make its
floor slower than Spark is.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Final

import harness
from contest import Bench, Log, Spent, reading, spent
from pyspark.sql import functions as F
from weir_analytics.panes.session import open_session
from weir_analytics.settings import Settings

Ends = Mapping[int, int]

SCHEMA: Final = (
    "type string, weirtenant string, weirsource string, data struct<region: string,"
    " route: string, env: string, status: double, latency_ms: double, bytes: double,"
    " user: string>"
)
_READY: Final = "ready"
_PATIENCE_S: Final = 120.0
_END_S: Final = 20.0


class Parser:
    """A process with a session that parses ranges of topics."""

    def __init__(self, asked: Connection, process: BaseProcess) -> None:
        """Take that process, which has begun, and the connection to it."""
        self._asked, self._process = asked, process
        self.pid = process.pid or 0

    def parse(self, topic: str, start: Ends, end: Ends) -> None:
        """Parse a range; done when this returns.

        Raises:
            TimeoutError: If the process does not answer within two minutes.
            SystemExit: If it has ended, before it was asked or since.
        """
        with self._alive():
            self._asked.send((topic, dict(start), dict(end)))
        self.wait()

    def wait(self) -> None:
        """Wait for an answer; raises what `parse` does."""
        with self._alive():
            if not self._asked.poll(_PATIENCE_S):
                msg = f"Spark must answer within {_PATIENCE_S:.0f} s, it has not"
                raise TimeoutError(msg)
            self._asked.recv()

    @contextmanager
    def _alive(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, ConnectionError) as error:
            self._process.join(_END_S)
            msg = (
                f"Spark must parse until it is told to end, its process {self.pid} ended with"
                f" {self._process.exitcode}; why is on standard error"
            )
            raise SystemExit(msg) from error


@contextmanager
def parser(bench: Bench) -> Iterator[Parser]:
    """Start such a process beside a benchmark's; end it afterwards."""
    own = bench.settings.model_copy(
        update={"columns": True, "state_dir": bench.settings.state_dir.with_name("floor")}
    )
    context = multiprocessing.get_context("spawn")
    asked, answering = context.Pipe()
    process = context.Process(target=_serve, args=(own, answering))
    process.start()
    answering.close()
    found = Parser(asked, process)
    bench.beside.append(found.pid)
    try:
        found.wait()
        yield found
    finally:
        bench.beside.remove(found.pid)
        asked.close()  # which ends it
        process.join(_END_S)
        process.kill()


def _serve(settings: Settings, asked: Connection) -> None:
    with open_session(settings) as spark:
        asked.send(_READY)
        while (given := _next(asked)) is not None:
            events = F.from_json(F.col("value").cast("string"), SCHEMA).alias("e")
            records = reading(spark, settings, *given).select(events)
            records.write.format("noop").mode("overwrite").save()
            asked.send(_READY)


def _next(asked: Connection) -> tuple[str, Ends, Ends] | None:
    """Return what is to be parsed next; None once nobody asks any more."""
    with suppress(EOFError):
        found: tuple[str, Ends, Ends] = asked.recv()
        return found
    return None


@dataclass
class Floor:
    """Who reads and parses every event, and throws it away."""

    bench: Bench
    parser: Parser
    log: Log
    size: int

    def run(self) -> Spent:
        """Parse the log."""
        return spent(self.log.total, self._parse, self._cpu_s)

    def check(self) -> None:
        """Do nothing: no number comes out."""

    def _cpu_s(self) -> float:
        return harness.tree_cpu_s([self.parser.pid, self.bench.broker.part.pid() or 0])

    def _parse(self) -> None:
        for start, end in self.log.slices(self.size):
            self.parser.parse(self.log.topic, start, end)
