"""What Weir does not install itself: looked for once, and each thing that is missing is told.

Runs on a plain Python before anything is installed: the standard library only.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

OLDEST_PYTHON = (3, 11)
MIN_FREE_BYTES = 4_000_000_000
Version = tuple[int, int]


@dataclass(frozen=True)
class Prerequisite:
    """A program that Weir does not install itself.

    Attributes:
        name: What people call it.
        command: Prints its version.
        required: The versions that will do, in words.
        mend: What to do if it is missing or another.
        will_do: Whether a version will do.
        shows: Where its output tells the version: major, and minor if there is one.
    """

    name: str
    command: tuple[str, ...]
    required: str
    mend: str
    will_do: Callable[[Version], bool]
    shows: str = r"(\d+)(?:\.(\d+))?"


def java_command() -> str:
    """Return the `java` that Maven, Kafka and Spark start: that of JAVA_HOME, else of PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def prerequisites() -> tuple[Prerequisite, ...]:
    """Return every program that must be there."""
    return (
        java(),
        Prerequisite(
            "Maven",
            ("mvn", "-v"),
            "3 or newer",
            "install Apache Maven, such as the package maven",
            lambda version: version >= (3, 0),
            r"Apache Maven (\d+)(?:\.(\d+))?",
        ),
        Prerequisite(
            "Node.js",
            ("node", "-v"),
            "20.19 or newer of 20, or 22.12 or newer",
            "install such a Node.js, with npm",
            # What Vite 8 runs on.
            lambda version: (20, 19) <= version < (21, 0) or version >= (22, 12),
        ),
        Prerequisite(
            "npm",
            ("npm", "-v"),
            "9 or newer",
            "install npm; it comes with Node.js",
            lambda version: version >= (9, 0),
        ),
    )


def java() -> Prerequisite:
    """Return what is wanted of Java.

    The version is read from its own line only: a line about JAVA_TOOL_OPTIONS may come
    first. A first release tells no minor version (`"21" 2023-09-19`).
    """
    return Prerequisite(
        "Java",
        (java_command(), "-version"),
        "17 or newer",
        "install a JDK, such as the package openjdk-17-jdk; JAVA_HOME, if set, must name it",
        lambda version: version >= (17, 0),
        r'version "(\d+)(?:\.(\d+))?',
    )


def missing(wanted: Iterable[Prerequisite]) -> list[str]:
    """Return one line for each program that is missing, and for a Python that is too old."""
    with ThreadPoolExecutor() as pool:  # four programs, a second each on a slow disk
        found = [text for text in pool.map(_lack, wanted) if text]
    if sys.version_info < OLDEST_PYTHON:
        found.append(f"Python must be 3.11 or newer, found {sys.version.split()[0]}; install it")
    return found


def missing_room(root: Path) -> list[str]:
    """Return what stands against a first installation in a folder."""
    found = []
    if importlib.util.find_spec("ensurepip") is None:
        found.append("Python must be able to make environments; install the package python3-venv")
    free = shutil.disk_usage(root).free
    if free < MIN_FREE_BYTES:
        found.append(
            f"the disk must have {MIN_FREE_BYTES / 1e9:g} GB free for the first start, "
            f"found {free / 1e9:.1f} GB; free some space"
        )
    return found


def _lack(wanted: Prerequisite) -> str | None:
    program = wanted.command[0]
    if shutil.which(program) is None:
        place = f"at {program}" if os.sep in program else "on PATH"
        return f"{wanted.name} {wanted.required} must be {place}, found none; {wanted.mend}"
    done = subprocess.run(wanted.command, capture_output=True, text=True, check=False)  # noqa: S603
    found = re.search(wanted.shows, done.stdout + done.stderr)
    if found and wanted.will_do((int(found[1]), int(found[2] or 0))):
        return None
    version = ".".join(filter(None, found.groups())) if found else "one that tells no version"
    return f"{wanted.name} must be {wanted.required}, found {version}; {wanted.mend}"
