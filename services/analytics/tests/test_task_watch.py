"""Which worker is ended: one that takes no step, and not one that takes long or waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark import TaskContext
from weir.clock import ManualClock
from weir_analytics.panes import arrow_count, history, small, task_watch
from weir_analytics.panes.arrow_count import count_and_write, count_range
from weir_analytics.panes.arrow_plan import ArrowPlan
from weir_analytics.panes.batch import PROPERTY
from weir_analytics.panes.daemon import STEPS
from weir_analytics.panes.task_watch import (
    EXIT_SILENT,
    LOOKS,
    SILENT_S,
    Silence,
    Steps,
    awaited,
    note_step,
    watched,
)
from weir_analytics.panes.versions import PROPERTY as VERSIONS
from weir_analytics.panes.versions import versions_to_json
from weir_analytics.panes.writer import Report

from .log_frames import EVENT, NOW_MS, batch_of, event, open_shards
from .test_plan import metric, plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Of a log; a third of them are events of ingest, a third refused, a third another producer's.
RECORDS = 900
# Where a task notes steps, by how many they are.
OF_EACH_RECORD = (
    *("history._consume", "dispose._decide", "dispose._look_into", "arrow_count.take"),
    *("arrow_members.add", "arrow_metrics.count", "arrow_count.rows"),
    *("shard_wire._replies", "store._commit_once", "writer.quarantine"),
)
OF_EACH_BATCH = ("dispose.answer", "dispose.finish", "writer.write", "store._try")
LOOK_MS = int(SILENT_S * 1000) // LOOKS
# A process of its own that is ended after half a second without a step.
PROCESS = """
import os, sys, threading
from weir.clock import SystemClock
from weir_analytics.panes import task_watch
from weir_service import logs

task_watch.TELLING_S = 0.5
MOST_S, clock, pause = 0.5, SystemClock(), threading.Event()


@task_watch.watched
def task():
    begun_s = clock.monotonic_s()
    yield "row"
    while clock.monotonic_s() < begun_s + 4 * MOST_S:
        pause.wait(MOST_S / 50)
        task_watch.note_step()
    yield "row"
    if sys.argv[1] == "unheard":
        os.set_blocking(1, False)
        try:
            while True:
                os.write(1, b"x")
        except BlockingIOError:
            os.set_blocking(1, True)
    if sys.argv[1] in ("hangs", "unheard"):
        pause.wait()


logs.configure()
task_watch.arm(MOST_S)
rows = task()
next(rows)
if sys.argv[1] == "waits":  # for whoever takes its rows, and then between tasks
    pause.wait(4 * MOST_S)
    rows.close()
    pause.wait(4 * MOST_S)
print(sum(1 for _ in rows), flush=True)
"""


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Return the steps of a process that has taken none."""
    found = Steps()
    monkeypatch.setattr(task_watch, "HERE", found)
    return found


class Looks:
    """What the thread that looks would do, with a clock that is moved by hand."""

    def __init__(self, here: Steps) -> None:
        self._here, self._silence, self._clock = here, Silence(), ManualClock()
        assert not self.again()

    def again(self, after_ms: int = LOOK_MS) -> bool:
        """Look once more; return whether the process would end."""
        self._clock.advance(after_ms)
        taken, at_work = self._here.taken, self._here.at_work
        return self._silence.is_over(taken, at_work, self._clock.monotonic_s())

    def until_over(self, most: int = 10 * LOOKS) -> int | None:
        """Return after how many looks the process would end; None: it goes on."""
        return next((n for n in range(1, most + 1) if self.again()), None)


class TestSilence:
    def test_it_ends_a_task_after_a_minute(self) -> None:
        """Not a look sooner than that, since the last step was seen."""
        silence = Silence()
        assert not silence.is_over(7, at_work=True, now_s=1000.0)
        for second in range(1, 60):
            assert not silence.is_over(7, at_work=True, now_s=1000.0 + second), second
        assert silence.is_over(7, at_work=True, now_s=1060.0)

    def test_a_step_begins_it_anew(self) -> None:
        """One a minute, just in time, is enough for ever."""
        silence = Silence()
        for second in range(1000):
            assert not silence.is_over(second // 60, at_work=True, now_s=float(second)), second

    def test_nobody_at_work_is_not_silent(self) -> None:
        """However long; and what was waited is not counted to what comes after it."""
        silence = Silence()
        for second in range(1000):
            assert not silence.is_over(7, at_work=False, now_s=float(second)), second
        for second in range(1000, 1059):
            assert not silence.is_over(7, at_work=True, now_s=float(second)), second
        assert silence.is_over(7, at_work=True, now_s=1059.0)

    def test_a_wait_between_begins_it_anew(self) -> None:
        """Fifty seconds of work, a wait, fifty of work, without a step of which anybody knew."""
        silence, now_s = Silence(), 0.0
        for _ in range(3):
            assert not silence.is_over(7, at_work=False, now_s=now_s)
            for _ in range(50):
                now_s += 1
                assert not silence.is_over(7, at_work=True, now_s=now_s), now_s

    def test_a_process_that_stood_still_has_not_been_silent(self) -> None:
        """An hour in which nobody could look counts as two looks; then it goes on as before."""
        silence = Silence()
        silence.is_over(7, at_work=True, now_s=0.0)
        assert not silence.is_over(7, at_work=True, now_s=3600.0)
        for second in range(1, 58):
            assert not silence.is_over(7, at_work=True, now_s=3600.0 + second), second
        assert silence.is_over(7, at_work=True, now_s=3658.0)


@watched
def doubled(rows: Iterable[int], done: list[str]) -> Iterator[int]:
    """Yield twice what is given; note when it ends, however that is."""
    try:
        for row in awaited(rows):
            done.append(f"{row} at work {task_watch.HERE.at_work}")
            yield 2 * row
    finally:
        done.append("ended")


class TestWatched:
    def test_between_tasks_nobody_is_at_work(self, here: Steps) -> None:
        """A worker that has done its task, or failed in it, waits for the next one for ever."""
        looks = Looks(here)
        assert list(doubled([1, 2], [])) == [2, 4]
        assert looks.until_over() is None
        with pytest.raises(TypeError, match="NoneType"):
            list(doubled([1, None], []))  # type: ignore[list-item]
        assert looks.until_over() is None

    def test_who_takes_its_rows_may_take_long(self, here: Steps) -> None:
        """Neither a task whose row nobody asked for, nor one that waits for Spark to go on."""
        looks, done = Looks(here), list[str]()
        rows = doubled([1, 2], done)
        assert looks.until_over() is None
        assert next(rows) == 2
        assert looks.until_over() is None
        assert next(rows) == 4
        assert done == ["1 at work True", "2 at work True"]

    def test_a_task_that_is_left_has_ended(self, here: Steps) -> None:
        """Spark closes a task of which it needs no more: it is told so, and nobody is at work."""
        looks, done = Looks(here), list[str]()
        rows = doubled([1, 2], done)
        next(rows)
        rows.close()  # type: ignore[attr-defined]
        assert done[-1] == "ended"
        assert looks.until_over() is None

    def test_a_wait_for_its_input_is_none_of_its_own(self, here: Steps) -> None:
        """While Spark makes what a task is handed the task is not at work, and then it is."""
        seen: list[int | None] = []

        def slow() -> Iterator[int]:
            looks = Looks(here)
            seen.append(looks.until_over())
            yield 1

        done: list[str] = []
        assert list(doubled(slow(), done)) == [2]
        assert seen == [None]
        assert done == ["1 at work True", "ended"]

    def test_a_task_inside_of_another_is_at_work(self, here: Steps) -> None:
        """The writer of a small batch takes the rows of what counts, in one process."""
        seen: list[int | None] = []

        @watched
        def counts() -> Iterator[int]:
            seen.append(Looks(here).until_over())
            yield 1

        done: list[str] = []
        rows = doubled(counts(), done)
        assert next(rows) == 2
        assert seen == [LOOKS]
        assert Looks(here).until_over() is None
        assert list(rows) == []
        assert done == ["1 at work True", "ended"]
        assert Looks(here).until_over() is None

    def test_each_step_begins_anew(self, here: Steps) -> None:
        """A task that notes one a look goes on for hours; one without is over in a minute."""
        seen: list[object] = []

        @watched
        def counts() -> Iterator[int]:
            looks = Looks(here)
            for _ in range(10 * LOOKS):
                note_step()
                seen.append(looks.again())
            seen.append(looks.until_over())
            yield 1

        assert list(counts()) == [1]
        assert seen == [*[False] * 10 * LOOKS, LOOKS]

    def test_a_row_that_was_taken_is_not_held(self) -> None:
        """While a task makes the next row, what left before is its taker's alone."""
        rows: list[weakref.ref[set[int]]] = []

        @watched
        def counts() -> Iterator[set[int]]:
            for _ in range(3):
                assert not [one for one in rows if one() is not None]
                yield made(rows)

        taken = counts()
        assert [len(next(taken)) for _ in range(3)] == [0, 0, 0]

    def test_nobody_looks_in_a_process_that_is_no_worker(self, here: Steps) -> None:
        """Tests and the driver take the steps of a task, too, and may stand in them for hours."""
        list(doubled([1], []))
        assert here.most_silent_s is None
        assert "task-watch" not in {thread.name for thread in threading.enumerate()}


def made(rows: list[weakref.ref[set[int]]]) -> set[int]:
    """Return a row, and note it without holding it."""
    row: set[int] = set()
    rows.append(weakref.ref(row))
    return row


def run(way: str) -> subprocess.CompletedProcess[str]:
    """Run the process above to its end."""
    command = [sys.executable, "-c", PROCESS, way]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603


def test_a_task_that_hangs_ends_its_process() -> None:
    """After steps for longer than it may be silent; one line says where it stood."""
    done = run("hangs")

    assert (done.returncode, done.stderr) == (EXIT_SILENT, "")
    (line,) = map(json.loads, done.stdout.splitlines())
    assert (line["event"], line["level"], line["silent_s"]) == ("task_silent", "error", 0.5)
    assert any(place.startswith("<string>:") for place in line["where"]), line


def test_a_task_that_hangs_ends_its_process_though_nobody_hears_of_it() -> None:
    """Whoever takes the lines may be what it hangs on."""
    command = [sys.executable, "-c", PROCESS, "unheard"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603
        assert process.wait(60) == EXIT_SILENT


@pytest.mark.parametrize(("way", "left"), [("steps", "1"), ("waits", "0")])
def test_a_task_that_takes_long_goes_on(way: str, left: str) -> None:
    """One with steps, and one that waits; the thread that looks keeps no process alive."""
    done = run(way)

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{left}\n", "")


class Noted(Steps):
    """The steps that some tasks take, with who took them while a task was at work."""

    def __init__(self) -> None:
        self.by: Counter[str] = Counter()
        self.was_at_work: list[object] = []
        super().__init__()

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "at_work":
            self.was_at_work.append(value)
        if name == "taken" and self.at_work:
            code = sys._getframe(2).f_code
            self.by[f"{Path(code.co_filename).stem}.{code.co_name}"] += 1


@dataclass
class Task:
    """What Spark tells a task of itself, by `TaskContext.get`."""

    properties: Mapping[str, str]

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802  Spark's name
        """Return what the driver gave its batch."""
        return self.properties.get(name)

    def partitionId(self) -> int:  # noqa: N802  Spark's name
        """Return which task of the batch it is."""
        return 0


class HandedError(Exception):
    """What ends a task when it asks for its input."""


@pytest.mark.parametrize("step", [*STEPS, count_range], ids=lambda step: step.__name__)
def test_what_runs_in_a_worker_is_judged(
    step: Callable[..., Iterator[Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A task that Spark is given is at work from its begin on, but for its wait for input."""
    given, plan = {PROPERTY: batch_of(tmp_path, 0).to_json()}, plan_of()
    assert isinstance(plan, ArrowPlan)
    monkeypatch.setattr(TaskContext, "get", partial(Task, given))
    noted, at_input = Noted(), list[bool]()
    monkeypatch.setattr(task_watch, "HERE", noted)

    def handed() -> Iterator[Any]:
        at_input.append(noted.at_work)
        raise HandedError
        yield

    arguments: dict[str, Any] = {"told": plan.told, "outputs": plan.outputs, "tasks": 1}
    asked = [arguments[name] for name in signature(step).parameters if name in arguments]
    with pytest.raises(HandedError):
        next(step(*asked, handed()))
    assert noted.was_at_work[:2] == [False, True], "at first nobody, then the task"
    assert at_input == [False]
    assert noted.at_work is False


@pytest.fixture
def filled(
    kafka: str, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    """Return brokers and a log of events, refused and foreign records, read in small pieces."""
    topic = new_topic("steps", 1, {"message.timestamp.type": "LogAppendTime"})
    producer = Producer({"bootstrap.servers": kafka})
    for n in range(RECORDS // 3):
        at_ms, x = NOW_MS + n * 10_000, "no number" if n % 10 == 0 else n
        headers: Any = EVENT
        producer.produce(topic, event(f"e{n}", at_ms, x=x), b"k", headers=headers)
        producer.produce(topic, b"{", b"k", headers=[("weir-reason", b"invalid_json")])
        producer.produce(topic, event(f"f{n}", at_ms, x=n), b"k")
    assert producer.flush(30) == 0
    monkeypatch.setattr(history, "CHUNK", 20)
    monkeypatch.setattr(small, "AT_ONCE", 50)
    monkeypatch.setattr(arrow_count, "AT_ONCE", 100)
    return kafka, topic


@pytest.mark.kafka
@pytest.mark.redis
def test_a_step_is_as_long_however_large_the_batch(
    filled: tuple[str, str], redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twice the records a task takes twice the steps, in whatever it does with each of them."""
    kafka, topic = filled
    plan, noted = plan_of(metric(value="data.x")), list[Noted]()
    assert isinstance(plan, ArrowPlan)
    known: dict[str, Any] = {"kafka_bootstrap": kafka, "topic": topic, "single": True}
    batch = batch_of(tmp_path, 0, redis_url=redis_url, copies="all", **known)
    open_shards(redis_url, batch)
    for start, end in ((0, RECORDS // 3), (RECORDS // 3, RECORDS)):
        told = replace(batch, start={0: start}, end={0: end}, number=start)
        given = {PROPERTY: told.to_json(), VERSIONS: versions_to_json(plan.versions)}
        monkeypatch.setattr(TaskContext, "get", partial(Task, given))
        noted.append(Noted())
        monkeypatch.setattr(task_watch, "HERE", noted[-1])
        (report,) = count_and_write(plan.told, plan.outputs, iter(()))
        assert Report.from_json(report["report"][0].as_py()).verdicts == {0: "ok"}

    less, more = (one.by for one in noted)
    assert less["dispose._look_into"] == 2 * RECORDS // 9, "of each that ingest has not written"
    for place in OF_EACH_RECORD:
        assert 1.6 * less[place] <= more[place] <= 2.4 * less[place], (place, less, more)
        assert less[place] > 2, (place, less)
    for place in OF_EACH_BATCH:
        assert less[place] > 0, (place, less)


@pytest.mark.spark
def test_a_task_that_hangs_comes_again_in_another_worker(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Workers are armed by their parent; Spark repeats the task of one that has ended itself."""
    marker = tmp_path / "hung"

    def count(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        armed = task_watch.HERE.most_silent_s
        for _row in task_watch.awaited(rows):
            pass
        if not marker.exists():
            marker.write_text(str(os.getpid()))
            threading.Event().wait()
        yield pa.RecordBatch.from_pydict({"process": [os.getpid()], "armed": [armed]})

    def task(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not marker.exists():
            task_watch.arm(0.5)
        return task_watch.watched(count)(rows)

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(task, "process long, armed double").collect()

    assert row.process != int(marker.read_text())
    assert row.armed == SILENT_S
