"""What must be there: found in the version that will be used, or told with its mend."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from weir_local.prerequisites import Prerequisite, java, missing, missing_room, prerequisites


def prints(one: Prerequisite, *lines: str) -> Prerequisite:
    """Return a prerequisite whose program prints these lines."""
    command = (sys.executable, "-c", f"print({chr(10).join(lines)!r})")
    return replace(one, command=command)


def named(name: str) -> Prerequisite:
    """Return one of the prerequisites."""
    return next(one for one in prerequisites() if one.name == name)


PICKED_UP = "Picked up JAVA_TOOL_OPTIONS: -Xmx1.5g -Dx=8.1"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("Java", ('openjdk version "17.0.15" 2025-04-15',)),
        ("Java", ('openjdk version "21" 2023-09-19',)),
        ("Java", (PICKED_UP, 'openjdk version "17" 2021-09-14')),
        ("Maven", ("\x1b[1mApache Maven 3.8.7\x1b[m",)),
        ("Node.js", ("v20.19.0",)),
        ("Node.js", ("v22.12.0",)),
        ("Node.js", ("v23.0.0",)),
        ("npm", ("10.8.2",)),
    ],
)
def test_a_version_that_will_do_is_fine(name: str, lines: tuple[str, ...]) -> None:
    """The oldest version that will do is accepted, however it is told."""
    assert missing([prints(named(name), *lines)]) == []


@pytest.mark.parametrize(
    ("name", "lines", "text"),
    [
        ("Java", ('openjdk version "11.0.2" 2019-01-15',), "17 or newer, found 11.0"),
        ("Java", ('openjdk version "16" 2021-03-16',), "17 or newer, found 16;"),
        ("Java", ("Picked up JAVA_TOOL_OPTIONS: -Dx=19.1",), "found one that tells no version"),
        ("Node.js", ("v20.18.3",), "20.19 or newer of 20, or 22.12 or newer, found 20.18"),
        ("Node.js", ("v21.7.0",), "found 21.7"),
        ("Node.js", ("v22.11.0",), "found 22.11"),
        ("npm", ("8.19.4",), "npm must be 9 or newer, found 8.19; install npm"),
    ],
)
def test_another_version_is_named(name: str, lines: tuple[str, ...], text: str) -> None:
    """The newest version that will not do is refused, with what was found."""
    assert text in "".join(missing([prints(named(name), *lines)]))


def test_a_missing_program_is_named() -> None:
    """What is not there is told with its mend."""
    (text,) = missing([replace(named("npm"), command=("no-such-program",))])
    assert text == "npm 9 or newer must be on PATH, found none; install npm; it comes with Node.js"


def test_the_java_of_java_home_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the one that is started, whatever is on PATH."""
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (text,) = missing([java()])
    assert text.startswith(f"Java 17 or newer must be at {old}, found none; install a JDK")
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.1\"' >&2\n")
    old.chmod(0o755)
    (text,) = missing([java()])
    assert text.startswith("Java must be 17 or newer, found 11.0; ")


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first installation needs 4 GB."""
    for free, texts in ((4_000_000_000, 0), (3_900_000_000, 1)):
        usage = shutil._ntuple_diskusage(5, 5, free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, usage=usage: usage)
        assert len(missing_room(tmp_path)) == texts
