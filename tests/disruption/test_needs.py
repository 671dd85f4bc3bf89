"""What the machine lacks is told, and ends a run non-zero: also where processes share the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from weir_local.repository import ROOT

TESTS = """
from disruption.faults import needs


def test_that_needs_what_nobody_has():
    needs(a_moon=lambda: None)


def test_that_needs_what_is_there():
    needs(a_sun=lambda: True)
"""


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["alone", "shared"])
def test_what_is_not_tried_has_not_passed(tmp_path: Path, processes: tuple[str, ...]) -> None:
    """It is told with what is missing; what was tried is not."""
    (tmp_path / "test_it.py").write_text(TESTS)
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "shared")])
    done = subprocess.run(  # noqa: S603  our own interpreter
        [sys.executable, "-m", "pytest", "-q", "-p", "conftest", *processes, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in done.stdout.splitlines() if "not tried" in line]
    name = "test_it.py::test_that_needs_what_nobody_has"
    assert told == [f"{name}: not tried, the machine lacks a moon"], done.stdout
    assert "1 passed, 1 skipped" in done.stdout
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
