"""The set-up: what is missing is named, what is done is not done again."""

from __future__ import annotations

import errno
import re
import sys
import threading
import time
import venv
from pathlib import Path

import pytest
from weir_local import bootstrap
from weir_local.bootstrap import Setup, SetupError, Step


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep stamps and logs of these tests out of the checkout."""
    for name in ("STAMPS", "LOGS"):
        folder = tmp_path / name.lower()
        folder.mkdir()
        monkeypatch.setattr(bootstrap, name, folder)
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)


def step(tmp_path: Path, name: str, done: list[str], after: tuple[str, ...] = ()) -> Step:
    """Return a step that notes its name when it is run."""
    (tmp_path / name).write_text("input")
    return Step(name, (tmp_path / name,), (tmp_path / name,), lambda _log: done.append(name), after)


def test_a_step_is_done_once(tmp_path: Path) -> None:
    """A step is done again only after its inputs have changed or its output has gone."""
    done: list[str] = []
    once = step(tmp_path, "once", done)
    assert not once.is_done()
    once.do()
    assert once.is_done()
    (tmp_path / "once").write_text("other")
    assert not once.is_done()


def test_steps_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step comes after the one it waits for, whatever their order in the list."""
    done: list[str] = []
    steps = [step(tmp_path, "second", done, ("first",)), step(tmp_path, "first", done)]
    monkeypatch.setattr(bootstrap, "WHAT", {"first": "first", "second": "second"})
    Setup(steps).run()
    assert done == ["first", "second"]


def failing(tmp_path: Path, name: str, error: Exception) -> Step:
    """Return a step that fails."""

    def fail(_log: Path) -> None:
        raise error

    (tmp_path / name).write_text("input")
    return Step(name, (tmp_path / name,), (), fail)


def test_a_failed_step_stops_what_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure is told, is not stamped, and what waits for it is not tried."""
    done: list[str] = []
    first = failing(tmp_path, "first", SetupError("no network"))
    monkeypatch.setattr(bootstrap, "WHAT", {"first": "first", "second": "second"})
    with pytest.raises(SetupError, match="not complete without first"):
        Setup([first, step(tmp_path, "second", done, ("first",))]).run()
    assert re.search(r"first: failed after \d+ s: no network", capsys.readouterr().out)
    assert done == []
    assert not first.is_done()


def test_a_failure_is_told_before_the_others_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is said while another step is still at work."""
    monkeypatch.setattr(bootstrap, "WHAT", {"first": "first", "slow": "slow"})
    said = threading.Event()
    monkeypatch.setattr(bootstrap, "say", lambda text: said.set() if "no network" in text else None)
    seen: list[bool] = []
    (tmp_path / "slow").write_text("input")
    slow = Step("slow", (tmp_path / "slow",), (), lambda _log: seen.append(said.wait(10)))
    with pytest.raises(SetupError):
        Setup([slow, failing(tmp_path, "first", SetupError("no network"))]).run()
    assert seen == [True]


def test_a_full_disk_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a step finds no space, a sentence says so and what to do."""
    monkeypatch.setattr(bootstrap, "WHAT", {"first": "first"})
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(SetupError):
        Setup([failing(tmp_path, "first", full)]).run()
    assert "the disk is full" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (SetupError("no Java"), 1, "weir: no Java\n"),
        (OSError(errno.ENOSPC, "No space left"), 1, "the disk is full"),
        (OSError(errno.EACCES, "Permission denied"), 1, "Permission denied"),
        (KeyboardInterrupt(), 130, "weir: the set-up was stopped; what is done is kept\n"),
    ],
)
def test_every_end_is_a_sentence(
    error: BaseException,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What ends the set-up is told in words, without a traceback."""

    def fail() -> None:
        raise error

    monkeypatch.setattr(bootstrap, "set_up", fail)
    assert bootstrap.main() == code
    said = capsys.readouterr().err
    assert said.startswith("weir: ")
    assert text in said


def test_two_set_ups_come_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second says that it waits, and goes on when the first has ended."""
    monkeypatch.setattr(bootstrap, "TOOLS", tmp_path)
    order: list[str] = []

    def second() -> None:
        with bootstrap.only_one_setup():
            order.append("second")

    thread = threading.Thread(target=second)
    told: list[str] = []
    with bootstrap.only_one_setup():
        thread.start()
        deadline = time.monotonic() + 10
        while not told and time.monotonic() < deadline:
            told += capsys.readouterr().out.splitlines()
            time.sleep(0.01)
        order.append("first")
    thread.join(10)
    assert told == ["another command sets this checkout up; waiting for its end …"]
    assert order == ["first", "second"]


def test_an_environment_of_another_python_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that works is kept; one with dangling links, or that was moved, is not."""
    environment = tmp_path / "venv"
    monkeypatch.setattr(bootstrap, "VENV", environment)
    assert not bootstrap.environment_fits()
    venv.create(environment, symlinks=True)
    assert bootstrap.environment_fits()
    moved = environment.rename(tmp_path / "moved")
    monkeypatch.setattr(bootstrap, "VENV", moved)
    assert not bootstrap.environment_fits()
    moved.rename(environment)
    monkeypatch.setattr(bootstrap, "VENV", environment)
    (environment / "bin/python").unlink()
    (environment / "bin/python").symlink_to("/nowhere/python3")
    assert not bootstrap.environment_fits()


def test_own_packages_follow_the_locked_ones() -> None:
    """An environment that is made anew for other locked packages gets Weir's own again."""
    by_name = {one.name: one for one in bootstrap.steps()}
    assert set(by_name["python"].inputs) <= set(by_name["packages"].inputs)


def test_a_failed_command_shows_its_error(tmp_path: Path) -> None:
    """The error of a command is in the text, and its log is named."""
    log = tmp_path / "a.log"
    command = [sys.executable, "-c", "print('fi' + 'ne'); raise SystemExit('error: no such host')"]
    with pytest.raises(SetupError, match="error: no such host") as refusal:
        bootstrap.run_logged(command, log)
    assert str(log) in str(refusal.value)
    assert "fine" not in str(refusal.value)


def test_a_changed_jar_is_found(tmp_path: Path) -> None:
    """Every jar must be there, known, and the one that was locked."""
    locked = bootstrap.read_jar_lock(bootstrap.LOCAL / "jars.lock")
    assert len(locked) == 50
    jars = tmp_path / "jars"
    (jars / "kafka").mkdir(parents=True)
    name = next(iter(locked))
    (jars / name).write_bytes(b"not the jar")
    (jars / "kafka" / "unknown.jar").write_bytes(b"")
    wrong = bootstrap.wrong_jars(jars)
    assert name in wrong
    assert "kafka/unknown.jar" in wrong
    assert len(wrong) == 51
