"""Archives of the classes that the JVMs of broker and driver load: mapped, not read from jars.

The driver's JVM loads 15,000 classes before it counts its first event. With them archived
(JEP 350) a start costs it a third less CPU, and the broker's two fifths. Whoever starts a
stack many times, as `make test` does, has them written once, by a stack that counts a few
events; a stack takes them where they are. Java leaves an archive unused that was made by
another Java or of other jars.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

from weir.clock import SystemClock

from weir_local.bootstrap import (
    LOGS,
    STAMPS,
    Setup,
    SetupError,
    Step,
    only_one_setup,
)
from weir_local.client import ApiError
from weir_local.console import complain, in_words, say
from weir_local.process import PartError, session_members
from weir_local.repository import KAFKA_CLASSES, ROOT, SPARK_CLASSES, TOOLS
from weir_local.testing import TestStack
from weir_local.waiting import wait_until

WHAT = {"classes": "archives of Java classes, by a stack that counts a few events"}
JARS = ROOT / "infra" / "local" / "jars.lock"
EVENTS = 100
END_S = 60.0
WRITE = "-XX:ArchiveClassesAtExit={}"
# Every way in which panes are kept, and a dimension: each has classes of its own.
METRIC = """
kind: metric
name: classes
events: {type: classes}
value: data.x
where: data.x >= 0
by: [data.k]
aggregates: [count, sum, min, max, stddev, p95, "distinct(data.k)", "top(data.k, 5)"]
keep: {10s: 1h}
"""


def write(log: Path) -> None:
    """Start a stack, have it count, and write the archives as its JVMs end.

    Raises:
        SetupError: If it did not come that far; what it said is in the log.
    """
    for archive in (KAFKA_CLASSES, SPARK_CLASSES):
        archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=TOOLS) as folder:
        stack = TestStack(Path(folder))
        try:
            _arm(stack)
            stack.start()
            _count(stack)
            _end(stack)
        except (PartError, ApiError, TimeoutError) as error:
            log.write_text("\n".join(stack.log(name) for name in ("kafka", "panes")))
            msg = f"{error}; all of it is in {log}"
            raise SetupError(msg) from error
        finally:
            stack.stop()


def _arm(stack: TestStack) -> None:
    parts = stack.stack.parts
    for name, variable, archive in (
        ("kafka", "JDK_JAVA_OPTIONS", KAFKA_CLASSES),
        ("panes", "SPARK_SUBMIT_OPTS", SPARK_CLASSES),
    ):
        parts[name].env = {**parts[name].env, variable: WRITE.format(archive)}


def _count(stack: TestStack) -> None:
    stack.define("metric", "classes", METRIC)
    now_ms = SystemClock().now_ms()
    stack.post(
        [
            {
                "specversion": "1.0",
                "id": f"{number}",
                "source": "/classes",
                "type": "classes",
                "data": {"x": number, "k": f"k{number % 3}"},
            }
            for number in range(EVENTS)
        ]
    )

    def is_counted() -> bool:
        fresh = stack.api("GET", "/status").body["fresh"]
        return int(fresh["processed_through_ms"] or 0) > now_ms

    progress = "/definitions/metric/classes/progress"
    stack.wait_until(lambda: stack.api("GET", progress).body["serving"], "a metric served", 120)
    stack.wait_until(is_counted, "events counted", 60)


def _end(stack: TestStack) -> None:
    """Give both JVMs the time to write; the driver's does after what started it is gone."""
    leader = stack.stack.parts["panes"].pid()
    if leader is not None:
        os.kill(leader, signal.SIGTERM)
        wait_until(
            lambda: not session_members(leader), timeout_s=END_S, what="the archive of the driver"
        )
    stack.stack.stop(("ingest", "alerts", "dashboard"))
    stack.stack.parts["kafka"].stop(END_S)


def steps() -> tuple[Step, ...]:
    """Return the one step."""
    inputs = (ROOT / "requirements.txt", JARS, Path(__file__))
    return (Step("classes", inputs, (KAFKA_CLASSES, SPARK_CLASSES), write),)


def main() -> int:
    """Write the archives if they are missing; return the exit code."""
    try:
        for folder in (LOGS, STAMPS):
            folder.mkdir(parents=True, exist_ok=True)
        with only_one_setup():
            todo = [step for step in steps() if not step.is_done()]
            if todo:
                say("setting up what makes tests start faster (once)")
                Setup(todo, WHAT).run()
    except (SetupError, OSError) as error:
        complain(f"weir: {in_words(error)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
