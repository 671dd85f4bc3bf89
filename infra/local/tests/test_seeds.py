"""The seed of a run, and the command that a red test prints: it is the one that repeats it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from weir_local.repository import ROOT
from weir_local.seeds import repetition, seed_of_run

# Makes every test red, and runs none; no stack is started for it.
RED = """
import pytest
from weir_local.testing import TestStack

TestStack.start = TestStack.stop = lambda self: None

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    seed = pyfuncitem.funcargs["seed"]
    raise AssertionError(f"drawn by {seed}")
"""


def test_the_seed_is_the_one_that_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each run draws another."""
    monkeypatch.setenv("WEIR_SEED", "4711")
    assert seed_of_run() == 4711
    monkeypatch.setenv("WEIR_SEED", "")
    assert len({seed_of_run() for _ in range(20)}) > 1


def test_a_repetition_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the seed, what else was told of what may be, and the very test, quoted for a shell."""
    monkeypatch.setenv("WEIR_KILLS", "50")
    monkeypatch.delenv("WEIR_PACE", raising=False)
    test = "tests/disruption/test_faults.py::test_kills[panes and kafka]"
    heading, words = repetition(7, test, ("WEIR_PACE", "WEIR_KILLS"))
    assert heading == "to repeat it"
    command = f"WEIR_SEED=7 WEIR_KILLS=50 .venv/bin/python -m pytest '{test}'"
    assert words == f"seed 7: {command}"
    assert shlex.split(command)[-1] == test


@pytest.mark.parametrize(
    "test",
    [
        "tests/disruption/test_faults.py::test_nothing_is_broken",
        "tests/test_erased_log.py::test_who_was_erased_is_counted_by_nobody",
        "services/analytics/tests/test_arrow_groups.py::TestGroups::"
        "test_groups_are_those_of_a_dict",
    ],
)
def test_a_red_run_prints_its_seed_and_what_repeats_it(tmp_path: Path, test: str) -> None:
    """Under the failure; the command, run as it stands, draws by the same seed."""
    (tmp_path / "red.py").write_text(RED)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    others = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    told = {**others, "PYTHONPATH": path, "WEIR_PACE": "3"}
    words = ["-q", "-p", "red", "-p", "no:cacheprovider"]

    def run(environment: dict[str, str], node: str) -> str:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "pytest", *words, node],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stdout

    first = run(told, test)
    (line,) = (one for one in first.splitlines() if one.startswith("seed "))
    seed = line.removeprefix("seed ").partition(":")[0]
    assert line == f"seed {seed}: WEIR_SEED={seed} WEIR_PACE=3 .venv/bin/python -m pytest '{test}'"
    assert f"drawn by {seed}" in first
    assert f"drawn by {seed}" in run({**told, "WEIR_SEED": seed}, shlex.split(line)[-1])
