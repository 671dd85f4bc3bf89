"""The set-up: what is missing is named, what is done is not done again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from weir_local import bootstrap
from weir_local.bootstrap import Prerequisite, Setup, SetupError, Step


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


@pytest.mark.parametrize(
    ("command", "oldest", "text"),
    [
        (("no-such-program",), 17, "Tool 17 or newer must be on PATH, found none; install it"),
        ((sys.executable, "-c", "print('9.1')"), 17, "must be 17 or newer, found 9.1; install it"),
    ],
)
def test_a_missing_program_is_named(command: tuple[str, ...], oldest: int, text: str) -> None:
    """What is missing or too old is told with its mend."""
    with pytest.raises(SetupError, match=text):
        bootstrap.check_prerequisites([Prerequisite("Tool", command, oldest, "install it")])


def test_a_program_that_will_do_is_fine() -> None:
    """The oldest version that will do is accepted."""
    command = (sys.executable, "-c", "print('17.0')")
    bootstrap.check_prerequisites([Prerequisite("Tool", command, 17, "install it")])


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


def test_a_failed_step_stops_what_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure is told, is not stamped, and what waits for it is not tried."""
    done: list[str] = []

    def fail(_log: Path) -> None:
        msg = "no network"
        raise SetupError(msg)

    (tmp_path / "first").write_text("input")
    first = Step("first", (tmp_path / "first",), (), fail)
    monkeypatch.setattr(bootstrap, "WHAT", {"first": "first", "second": "second"})
    with pytest.raises(SetupError, match="no network"):
        Setup([first, step(tmp_path, "second", done, ("first",))]).run()
    assert done == []
    assert not first.is_done()


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
