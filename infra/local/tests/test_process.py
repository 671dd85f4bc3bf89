"""Parts as processes: known by pid and birth, ended with all they started."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from weir_local.diagnosis import explain
from weir_local.process import Part, PartError, birth_mark, last_error
from weir_local.waiting import wait_until

SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
# A child that leaves its parent's process group, as Spark's Python daemon does.
FAMILY = [
    sys.executable,
    "-c",
    "import os, subprocess, sys, time\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
    " process_group=0)\n"
    "print(child.pid, flush=True); time.sleep(60)",
]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('up', flush=True); time.sleep(60)",
]


def started(part: Part) -> str:
    """Start a part and return its first line."""
    part.start()
    return wait_until(
        lambda: part.log_path.read_text().strip(), timeout_s=10, what="the first line"
    ).splitlines()[0]


def test_start_twice_is_one_process(tmp_path: Path) -> None:
    """A part that runs already is left alone, also by another object of the same folder."""
    part = Part("sleeper", SLEEPER, tmp_path)
    started(part)
    try:
        again = Part("sleeper", SLEEPER, tmp_path)
        again.start()
        assert again.pid() == part.pid()
    finally:
        part.kill()
    assert part.pid() is None


def test_kill_takes_the_children(tmp_path: Path) -> None:
    """A kill reaches a child that has left the process group."""
    part = Part("family", FAMILY, tmp_path)
    child = int(started(part))
    part.kill()
    assert birth_mark(child) is None


def test_children_of_a_dead_leader_end_at_the_next_start(tmp_path: Path) -> None:
    """What a crash of the leader left behind does not live beside the new one."""
    part = Part("family", FAMILY, tmp_path)
    child = int(started(part))
    leader = part.pid()
    assert leader is not None
    os.kill(leader, signal.SIGKILL)
    wait_until(lambda: part.pid() is None, timeout_s=5, what="the leader's end")
    assert birth_mark(child) is not None
    part.start()
    try:
        assert birth_mark(child) is None
        assert part.pid() not in (None, leader)
    finally:
        part.kill()


def test_a_stranger_with_our_pid_is_left_alone(tmp_path: Path) -> None:
    """A pid that was given to another program since is neither ours nor signalled."""
    part = Part("sleeper", SLEEPER, tmp_path)
    with subprocess.Popen(SLEEPER, stdout=subprocess.DEVNULL, start_new_session=True) as stranger:  # noqa: S603
        part.pid_path.write_text(json.dumps({"pid": stranger.pid, "born": "another boot:1"}))
        assert part.pid() is None
        part.stop()
        part.kill()
        assert stranger.poll() is None
        stranger.kill()


def test_stop_ends_what_does_not_listen(tmp_path: Path) -> None:
    """A part that ignores SIGTERM is ended when its time is over."""
    part = Part("stubborn", STUBBORN, tmp_path)
    started(part)
    part.stop(timeout_s=0.3)
    assert part.pid() is None


def test_an_ended_part_says_why(tmp_path: Path) -> None:
    """The error names the part, its last words and its log."""
    part = Part("broken", [sys.executable, "-c", "raise ValueError('no such thing')"], tmp_path)
    part.start()
    wait_until(lambda: part.pid() is None, timeout_s=10, what="its end")
    expected = (
        f"broken has ended with exit status 1: ValueError: no such thing; see {tmp_path}/broken.log"
    )
    with pytest.raises(PartError) as refusal:
        part.check_alive()
    assert str(refusal.value) == expected
    part.kill()


def test_another_object_knows_no_status(tmp_path: Path) -> None:
    """Who did not start it cannot know its status, and does not make one up."""
    part = Part("sleeper", SLEEPER, tmp_path)
    started(part)
    pid = part.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: part.pid() is None, timeout_s=10, what="its end")
    assert part.ending() == "sleeper has ended by SIGKILL"
    assert Part("sleeper", SLEEPER, tmp_path).ending() == "sleeper has ended"
    part.kill()


def test_an_earlier_run_is_not_the_reason(tmp_path: Path) -> None:
    """What stood in the log before the start is not told, also by another object."""
    (tmp_path / "broken.log").write_text("OSError: No space left on device\n" * 3)
    part = Part("broken", [sys.executable, "-c", "print('a new fault')"], tmp_path)
    part.start()
    wait_until(lambda: part.pid() is None, timeout_s=10, what="its end")
    for one in (part, Part("broken", part.argv, tmp_path)):
        assert one.written() == ["a new fault"]
        assert explain(one) == "a new fault"
    (tmp_path / "broken.log").write_text("emptied\n")
    assert part.written() == ["emptied"]
    part.kill()


def test_another_spark_and_python_are_not_inherited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPARK_HOME, PYTHONPATH and their like of a shell do not reach a part, all else does."""
    monkeypatch.setenv("SPARK_HOME", "/other/spark")
    monkeypatch.setenv("SPARK_CONF_DIR", "/other/conf")
    monkeypatch.setenv("PYTHONPATH", "/other/python")
    monkeypatch.setenv("WEIR_TEST", "passed on")
    tell = "import os; print({n: os.environ[n] for n in os.environ if n[:4] in NAMES})"
    names = "NAMES = ('SPAR', 'PYTH', 'WEIR'); "
    part = Part("teller", [sys.executable, "-c", names + tell], tmp_path, {"PYTHONPATH": "ours"})
    part.start()
    wait_until(lambda: part.pid() is None, timeout_s=10, what="its end")
    (line,) = part.written()
    told = ast.literal_eval(line)
    assert (told["WEIR_TEST"], told["PYTHONPATH"]) == ("passed on", "ours")
    assert not {"SPARK_HOME", "SPARK_CONF_DIR"} & told.keys()
    part.kill()


def test_last_error_prefers_the_telling_line() -> None:
    """Of a log the last line that speaks of an error is taken, else the last one."""
    assert last_error([]) == "it wrote nothing"
    assert last_error(["starting", "fatal: no room", "bye"]) == "fatal: no room"
    assert last_error(["starting", "bye"]) == "bye"
