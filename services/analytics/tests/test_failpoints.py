"""Failpoints act only where the test-only package is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from weir_analytics import failpoints

FAULTS = """
def failpoint(name):
    print("reached", name)
"""
PROGRAM = "from weir_analytics.failpoints import failpoint; failpoint('C7')"


def test_nothing_happens_without_the_package() -> None:
    """In this environment, as in every image, no fault can be armed."""
    assert importlib.util.find_spec("weir_faults") is None
    failpoints.failpoint("C7")


def test_the_package_is_told_the_point(tmp_path: Path) -> None:
    """With the package on the path each point is reported to it."""
    (tmp_path / "weir_faults.py").write_text(FAULTS, encoding="utf-8")

    done = subprocess.run(  # noqa: S603  our own interpreter
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "reached C7\n"


@pytest.mark.parametrize("point", ["C3", "C6", "C7", "C8", "C9"])
def test_every_point_of_the_commit_is_in_the_code(point: str) -> None:
    """The crash points that a test names exist."""
    folder = Path(failpoints.__file__).parent
    found = [p for p in folder.rglob("*.py") if f'failpoint("{point}")' in p.read_text("utf-8")]

    assert len(found) == 1
