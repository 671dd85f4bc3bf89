"""What a rebuild costs, by size: one that bends shows, and the largest log is the bar."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import psutil
import pytest
import rebuild
from contest import Spent
from job import SHOWN_LINES, STRANGE_LINES, Job
from rebuild import asked, bar, costs, watched
from weir import names
from weir.clock import SystemClock
from weir.commit import Mark
from workload import draw, recount, wanted

BUSY_S = 0.4
# A parent of a worker that has used some CPU; the worker ends when it is told, as the daemon of
# Spark's workers ends them, or as Redis ends what it forks.
LOSES = """
import signal, subprocess, sys, time

BURN = "import time\\nwhile time.process_time() < {busy_s}: pass\\nprint(1, flush=True)\\ninput()"
if sys.argv[1] == "ignores":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
program = [sys.executable, "-S", "-c", BURN]
worker = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
worker.stdout.readline()
print("ready", flush=True)
input()
worker.kill()
worker.wait()
while time.process_time() < 2 * {busy_s}: pass
print("burnt", flush=True)
input()
"""
# Says `ready` after some CPU that is not to count, and `burnt` after some that is.
BURN = """
import subprocess, sys, time

def burn():
    end_s = time.process_time() + {busy_s}
    while time.process_time() < end_s:
        pass

burn()
if sys.argv[2] != "child":
    print("ready", flush=True)
    input()
    burn()
    for name in sys.argv[3:]:
        subprocess.run([sys.executable, "-S", "-c", sys.argv[1], "", name], check=True)
    print("burnt", flush=True)
    input()
"""


def runs(events: int, live_cpu_s: float, rebuild_s: float) -> dict[str, list[Spent]]:
    """Return three rounds of a size, the middle one as given."""
    return {
        "live": [Spent(events, 10.0, live_cpu_s * n) for n in (1, 0.5, 2)],
        "rebuild": [Spent(events, rebuild_s * n, 1.0) for n in (1, 0.5, 2)],
    }


class TestFigures:
    """What is told of each size."""

    def test_a_cost_that_grows_is_told_beside_the_smallest(self) -> None:
        """In CPU of an event, with least and most of the rounds; pace beside it."""
        found = costs({1_000: runs(1_000, 0.02, 5.0), 4_000: runs(4_000, 0.12, 2.0)})

        assert list(found) == ["1000", "4000"]
        assert found["4000"]["live"] == {
            "events_a_second": {"median": 400, "min": 400, "max": 400},
            "µs_an_event": {"median": 30.0, "min": 15.0, "max": 60.0},
            "of_the_smallest": 1.5,
        }
        assert found["1000"]["live"]["of_the_smallest"] == 1.0
        assert found["4000"]["rebuild"]["events_a_second"]["median"] == 2_000
        assert found["4000"]["rebuild"]["of_the_smallest"] == 0.25

    def test_the_largest_log_is_the_bar(self) -> None:
        """Beside it stands the smallest, of which the start is a larger part."""
        found = costs({1_000: runs(1_000, 0.02, 5.0), 4_000: runs(4_000, 0.12, 8.0)})
        for sizes in (found, dict(reversed(found.items()))):
            told = bar(sizes)
            assert (told["id"], told["got"]) == ("P13", 1.25)
            assert "both of the same 4,000 events" in told["what"]
            assert "; of 1,000, where" in told["what"]
            assert told["what"].endswith(": 2.00")

    def test_rounds_are_recounted_one_after_the_other(self) -> None:
        """What is added to a recount is that of all events together."""
        metrics = wanted(3, sketches=True)
        events = list(draw(400, 20))
        truths = recount(events[:150], metrics)
        assert recount(events[150:], metrics, truths) == recount(events, metrics)

    def test_three_sizes_by_default(self) -> None:
        """The smallest first, however they are given."""
        assert len(asked([]).events) == 3
        assert asked(["--events", "30", "10", "20"]).events == [10, 20, 30]


class TestMeasured:
    """What is measured of a run."""

    def test_the_cpu_of_all_processes_counts(self) -> None:
        """That of the job, of what it started, and of Redis; and only what came meanwhile."""
        with burning("job", "child") as one, burning("redis") as other:
            part = SimpleNamespace(pid=lambda: other.pid)
            running = SimpleNamespace(pid=one.pid, server=SimpleNamespace(part=part))

            def work() -> None:
                tell(one)
                tell(other)

            found = watched(cast("Job", running), 10, work)

        assert found.events == 10
        # The system tells hundredths of a second, of each process cut off.
        assert 3 * BUSY_S - 0.1 <= found.cpu_s < 4 * BUSY_S

    @pytest.mark.parametrize("end", ["ignores", "killed"])
    def test_who_takes_its_cpu_along_counts_with_what_was_seen(
        self, capsys: pytest.CaptureFixture[str], end: str
    ) -> None:
        """Else the work would look cheaper by all that it had ever used; and it is told."""
        with started(LOSES, end) as one, burning("redis") as other:
            running = SimpleNamespace(
                pid=one.pid,
                server=SimpleNamespace(part=SimpleNamespace(pid=lambda: other.pid)),
                said=lambda: "the worker died",
            )

            def work() -> None:
                if end == "killed":
                    one.kill()
                    one.wait()
                else:
                    tell(one)
                tell(other)

            found = watched(cast("Job", running), 10, work)

        # Of the worker's own nothing came meanwhile; its parent burns twice as much, if it lives.
        burnt = (1 if end == "killed" else 3) * BUSY_S
        assert burnt - 0.2 <= found.cpu_s < burnt + 0.2
        # Of three processes the worker goes, or with its parent both.
        gone = 2 if end == "killed" else 1
        assert capsys.readouterr().err.startswith(f"  {gone} processes ended within ")

    def test_whose_parent_counts_its_cpu_may_end(self) -> None:
        """As what Redis forks to write its file anew does: nothing of it is lost."""
        with started(LOSES, "heeds") as one, burning("redis") as other:
            part = SimpleNamespace(pid=lambda: other.pid)
            running = SimpleNamespace(pid=one.pid, server=SimpleNamespace(part=part))
            found = watched(cast("Job", running), 10, lambda: tell(one))
        assert BUSY_S < found.cpu_s < 2 * BUSY_S + 0.2

    def test_what_went_wrong_is_said_whoever_wrote_it(self, tmp_path: Path) -> None:
        """The job, its JVM, or a Python worker; and the last lines, however common they are."""
        job = Job.__new__(Job)
        job.log = tmp_path / "job.log"
        common = ['{"event": "batch", "level": "info"}'] * 20
        wrong = [
            '{"event": "batch_failed", "level": "error"}',
            "26/11/26 22:00:48 ERROR Executor: Exception in task 0.0 in stage 1.0 (TID 1)",
            "org.apache.spark.api.python.PythonException: Traceback (most recent call last):",
            '  File "arrow_count.py", line 7, in count_and_write',
            "    raise ValueError(msg)",
            "ValueError: a pane must have a length",
            "",
            "\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:574)",
            "Caused by: java.io.EOFException",
            "26/11/26 22:00:48 WARN TaskSetManager: Lost task 0.0 in stage 1.0 (TID 1)",
        ]
        job.log.write_text("\n".join([*common, *wrong, *common]))
        assert job.said().splitlines() == [
            *(wrong[n] for n in (0, 1, 5, 8, 9)),
            *common[:SHOWN_LINES],
        ]
        job.log.write_text("\n".join(wrong[1:2] * 1_000 + wrong[-1:] + common))
        said = job.said().splitlines()
        assert len(said) == STRANGE_LINES + SHOWN_LINES
        assert said[STRANGE_LINES - 2 : STRANGE_LINES] == [wrong[1], wrong[-1]]

    def test_events_are_written_while_the_job_stands_still(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All of them are counted within the time: none was when it began."""
        did: list[str] = []

        @contextmanager
        def paused() -> Iterator[None]:
            did.append("stands")
            yield
            did.append("goes on")

        def timed(_running: Job, events: int, work: Callable[[], None]) -> Spent:
            did.append("time begins")
            work()
            return Spent(events, 1.0, 1.0)

        monkeypatch.setattr(rebuild, "records", lambda _: did.append("made"))
        monkeypatch.setattr(rebuild, "send", lambda *_: did.append("written"))
        monkeypatch.setattr(rebuild, "watched", timed)
        running = SimpleNamespace(
            paused=paused, await_accounted=lambda upto, _s: did.append(f"counted up to {upto}")
        )
        found = rebuild.live(cast("Job", running), [cast("Any", None)] * 5, 20)

        assert found.events == 5
        assert did == ["made", "stands", "written", "goes on", "time begins", "counted up to 25"]

    def test_both_count_the_same_events(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The log holds those of one round: a rebuild that counts more spreads its start over more.

        Redis has those of the round before, too, when live counting begins.
        """
        did: list[tuple[Any, ...]] = []

        @contextmanager
        def begun(*_: Any) -> Iterator[Any]:
            yield SimpleNamespace(await_serving=lambda *_: None)

        def live(_running: Job, events: list[Any], before: int) -> Spent:
            did.append(("live", len(events), before))
            return Spent(len(events), 1.0, 1.0)

        def rebuilt(_running: Job, total: int) -> Spent:
            did.append(("rebuilt", total))
            return Spent(total, 1.0, 1.0)

        def compared(_running: Job, _metrics: Any, truths: Any, _estimates: Any) -> None:
            did.append(("compared", sum(len(truth.values) for truth in truths)))

        monkeypatch.setattr(rebuild, "job", begun)
        monkeypatch.setattr(rebuild, "forget", lambda _: did.append(("forgot",)))
        for one in (live, rebuilt):
            monkeypatch.setattr(rebuild, one.__name__, one)
        monkeypatch.setattr(rebuild, "compare", compared)
        monkeypatch.setattr(rebuild, "await_time", lambda _: None)  # 45 s of quiet
        options = asked(["--rounds", "2", "--metrics", "1", "--combinations", "10"])
        found = rebuild.measure(Path("nowhere"), 100, options)

        # Of ten types one is the metric's.
        first = [("forgot",), ("live", 100, 0), ("compared", 10), ("rebuilt", 100)]
        later = [("forgot",), ("live", 100, 100), ("compared", 20), ("rebuilt", 100)]
        end = [("compared", 10)]
        assert did == [*first, *end, *later, *end, *later, *end]
        assert {way: [one.events for one in of] for way, of in found.items()} == {
            "live": [100, 100],
            "rebuild": [100, 100],
        }

    def test_only_what_is_counted_is_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Up to the mark in each partition: a job whose log is shorter than that stops."""
        taken: list[tuple[str, int, int]] = []

        class Admin:
            """Takes note of what is to be deleted."""

            def __init__(self, _settings: Any) -> None:
                pass

            def delete_records(self, places: list[Any]) -> dict[Any, Any]:
                """Take it."""
                taken.extend((one.topic, one.partition, one.offset) for one in places)
                return {}

        monkeypatch.setattr(rebuild, "AdminClient", Admin)
        mark = Mark(epoch=3, batch=7, topic_id="t", end={0: 12, 1: 9}, shards=1)
        store = SimpleNamespace(get={names.mark_key(0): msgspec.json.encode(mark)}.get)
        running = SimpleNamespace(redis=store, broker=SimpleNamespace(bootstrap="host:1"))
        rebuild.forget(cast("Job", running))
        assert taken == [(names.EVENTS, 0, 12), (names.EVENTS, 1, 9)]

    def test_who_is_paused_goes_on_whatever_happens(self) -> None:
        """The job, and what it started."""
        sleeping = "import subprocess; subprocess.run(['sleep', '60'])"
        with subprocess.Popen([sys.executable, "-S", "-c", sleeping]) as process:  # noqa: S603
            job, own = Job.__new__(Job), psutil.Process(process.pid)
            job.pid = process.pid
            try:
                deadline_s = SystemClock().monotonic_s() + 20
                while not own.children():
                    assert SystemClock().monotonic_s() < deadline_s
                tree = [own, *own.children()]

                def fail() -> None:
                    with job.paused():
                        assert [one.status() for one in tree] == ["stopped"] * 2
                        raise KeyError

                with pytest.raises(KeyError):
                    fail()
                while "stopped" in [one.status() for one in tree]:
                    assert SystemClock().monotonic_s() < deadline_s
            finally:
                for one in reversed([own, *own.children()]):
                    one.kill()


@contextmanager
def burning(*names: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process that burns CPU, and burns it again with what it starts once it is told."""
    with started(BURN, BURN.format(busy_s=BUSY_S), *names) as process:
        yield process


def tell(process: subprocess.Popen[str]) -> None:
    """Have it go on, and wait until it has burnt CPU."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "burnt\n"


@contextmanager
def started(program: str, *given: str) -> Iterator[subprocess.Popen[str]]:
    """Start a program and wait until it is ready; end it afterwards."""
    process = subprocess.Popen(  # noqa: S603  our own program
        [sys.executable, "-S", "-c", program.format(busy_s=BUSY_S), *given],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()
