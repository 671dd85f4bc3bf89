"""What a start that fails leaves behind and says, without starting anything real."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException
from weir_local import __main__ as command
from weir_local import up
from weir_local.client import ApiError
from weir_local.home import Home
from weir_local.process import PartError
from weir_local.stack import CORE, Stack

FULL = OSError(errno.ENOSPC, "No space left on device")
FAULTS = [
    PartError("panes has ended"),
    ApiError(422, {"detail": "no"}),
    TimeoutError("could not see the topics within 30 s"),
    KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN)),
    FULL,
    KeyboardInterrupt(),
]


class Halting:
    """A stack of which two parts start, and then something happens."""

    def __init__(self, before: list[str], fault: BaseException) -> None:
        self.parts = dict.fromkeys(CORE)
        self._running = list(before)
        self._fault = fault

    def running(self) -> list[str]:
        """Return what runs."""
        return list(self._running)

    def start(self, *_: object, **__: object) -> None:
        """Start kafka and redis, no more."""
        self._running = sorted({*self._running, "kafka", "redis"})
        raise self._fault

    def stop(self, names: Collection[str]) -> None:
        """Stop parts."""
        self._running = [name for name in self._running if name not in names]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("before", [[], ["kafka"]])
def test_a_start_that_fails_leaves_what_ran_before(
    before: list[str], fault: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ended the start, what it started is stopped and nothing else."""
    stack = Halting(before, fault)
    monkeypatch.setattr(up, "Stack", lambda _home: stack)
    with pytest.raises(type(fault)):
        up._start(Home(tmp_path / "home", 9100), demo=False)
    assert stack.running() == before


def test_a_keeper_that_cannot_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing runs, and nothing is wanted, that nobody would watch."""
    home = Home(tmp_path / "home", 9100)
    stack = Halting([], FULL)
    monkeypatch.setattr(up, "Stack", lambda _home: stack)
    monkeypatch.setattr(up, "_start_parts", lambda *_: stack._running.append("kafka"))

    def refuse(_home: Home) -> None:
        raise FULL

    monkeypatch.setattr(up, "keeper_part", refuse)
    with pytest.raises(OSError, match="No space left"):
        up._start(home, demo=False)
    assert stack.running() == []
    assert home.wanted() == {}


@pytest.mark.parametrize("fault", FAULTS[:-1], ids=lambda fault: type(fault).__name__)
def test_every_fault_is_a_sentence(
    fault: BaseException,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A fault ends the command with exit code 1 and one line, without a traceback."""
    monkeypatch.setenv("WEIR_HOME", str(tmp_path))

    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(command, "up", fail)
    assert command.main(["up"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("weir: ")
    assert said.count("\n") == 1
    assert ("the disk is full" in said) is (fault is FULL)


def usage(free: int) -> Callable[[Any], Any]:
    """Return a disk's usage with so much free."""
    return lambda _path: SimpleNamespace(free=free)


class TestRoom:
    @pytest.mark.parametrize(
        ("free", "available", "text"),
        [
            (1_000_000_000, 1_500_000_000, None),
            (999_000_000, 1_500_000_000, "must have 1 GB free, found 1.0 GB; free some space"),
            (1_000_000_000, 1_499_000_000, "needs 1.5 GB of free memory, found 1.5 GB; close"),
        ],
    )
    def test_a_start_needs_room(
        self,
        free: int,
        available: int,
        text: str | None,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """At the edge there is room; below it the start is refused, with what was found."""
        stack = Stack(Home(tmp_path / "home", 9100))
        monkeypatch.setattr(shutil, "disk_usage", usage(free))
        monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=available))
        if text is None:
            stack.check_room()
            return
        with pytest.raises(PartError, match=text):
            stack.check_room()

    def test_a_disk_that_fills_is_told_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is said when the space becomes short, and again only after there was some."""
        room = up.Room(tmp_path)
        told = []
        for free in (100_000_000, 99_000_000, 0, 200_000_000, 0):
            monkeypatch.setattr(shutil, "disk_usage", usage(free))
            told.append(room.news())
        assert [text is not None for text in told] == [False, True, False, False, True]
        assert told[1] is not None
        assert told[1].startswith(f"the disk is full: 99 MB are left for {tmp_path}; free some")
