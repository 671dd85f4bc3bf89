"""What `make test` says at its end: the time of each stage, and how the tests ended."""

from __future__ import annotations

import io
import re
import sys
import tomllib
from pathlib import Path

import pytest
from weir.clock import SystemClock
from weir_local import checks
from weir_local.checks import (
    CHART,
    DISRUPTION,
    FAULTS,
    SERVERS,
    SERVICES,
    SET_UP,
    STAGES,
    WITHIN_MIN,
    Check,
    Run,
    Stage,
    faults_of,
    last_line,
    outcomes,
    table,
)
from weir_local.repository import ROOT


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("28 passed, 1 skipped in 2.04s", {"passed": 28, "skipped": 1}),
        ("1 failed, 2 errors in 0.10s", {"failed": 1, "error": 2}),
        (
            "1 passed, 4 deselected, 1 error in 290.15s (0:04:50)",
            {"passed": 1, "deselected": 4, "error": 1},
        ),
        ("no tests ran in 0.01s", {}),
    ],
)
def test_outcomes_of_a_run(line: str, expected: dict[str, int]) -> None:
    """The last line of pytest, in numbers."""
    assert outcomes(line) == expected


def test_the_last_line_sums_all_runs_and_names_what_else_failed() -> None:
    """Red is seen there, whichever check it was."""
    run = Run(io.BytesIO())
    run.outcomes.update(outcomes("2 failed, 28 passed, 9 deselected in 2.04s"))
    run.outcomes.update(outcomes("3 passed, 1 skipped in 1.00s"))
    run.failed = ["pytest, servers", "mypy"]
    run.took_s = {"lint": 1.5, "short disruption": 2.0}
    assert last_line(run) == "2 failed, 31 passed, 1 skipped, checks failed: mypy in 3.50s"


def test_a_stage_that_took_too_long_is_told() -> None:
    """Each stage stands beside what it may take."""
    told = table({"set-up": 30, "services on servers": 1020, "short disruption": 481}, WITHIN_MIN)
    lines = [line.split() for line in told.splitlines()]
    assert lines[1] == ["set-up", "0:30", "of", "4", "min"]
    assert lines[2] == ["services", "on", "servers", "17:00", "of", "17", "min"]
    assert lines[3] == ["short", "disruption", "8:01", "of", "8", "min", "over"]
    assert lines[4] == ["all", "25:31", "of", "45", "min"]


@pytest.mark.parametrize(("took_s", "word"), [(2700, []), (2701, ["over"])])
def test_all_that_took_too_long_is_told(took_s: int, word: list[str]) -> None:
    """Also as a whole."""
    told = table({"lint": 60, "services on servers": took_s - 60}, WITHIN_MIN).splitlines()
    assert told[3].split() == ["all", f"45:{took_s % 60:02}", "of", "45", "min", *word]


def test_a_run_that_took_too_long_is_not_red(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """It is told: a machine of CI that is busy says nothing of what is tested."""
    passes = Check("pytest, one", ("sh", "-c", "echo 1 passed in 0.01s", "pytest"))
    monkeypatch.setattr(checks, "LOGS", tmp_path)
    monkeypatch.setattr(checks, "STAGES", (Stage("lint", 0, (passes,)),))
    began_s = SystemClock().now_ms() / 1000 - 60 * WITHIN_MIN - 1
    monkeypatch.setenv("WEIR_BEGAN_S", str(began_s))
    assert checks.main([]) == 0
    told = capfdbinary.readouterr().out.decode()
    assert re.search(r"all +45:\d\d +of 45 min   over", told)


def test_what_takes_hours_has_no_bound() -> None:
    """The table of `make test-disruption` tells times alone."""
    told = table({"set-up": 30, "faults": 7200, "alone": 690}).splitlines()
    assert [line.split() for line in told[2:]] == [
        ["faults", "120:00"],
        ["alone", "11:30"],
        ["all", "132:00"],
    ]


def test_all_budgets_together_fit() -> None:
    """Each stage has one: what a run may take if each of them takes all of its own is promised."""
    stages = (SET_UP, *STAGES)
    assert [stage.name for stage in stages if not stage.budget_min] == []
    assert sum(stage.budget_min for stage in stages) <= WITHIN_MIN


def test_the_page_has_every_stage_with_its_bound() -> None:
    """And nothing else: whoever adds a stage says why it is there."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    told = re.findall(r"^\| ([a-z][^|]*?) \| (\d+) min \|", page, re.MULTILINE)
    assert told == [(stage.name, str(stage.budget_min)) for stage in (SET_UP, *STAGES)]


def test_each_test_is_in_one_stage() -> None:
    """By marker or by folder: none is left out, none runs twice."""
    unit, own, servers, chart, disruption = (stage.checks[-1].command for stage in STAGES[1:])
    assert f"-m=not disruption and not ({SERVERS})" in unit
    assert all(f"-m=not disruption and ({SERVERS})" in one for one in (own, servers, disruption))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    folders = set(settings["ini_options"]["testpaths"])
    assert (folders & set(own), folders & set(servers)) == (set(SERVICES), {"tests"})
    assert folders == {*SERVICES, "tests"}
    assert [w for w in unit if w.startswith("--ignore")] == [f"--ignore={p}" for p in CHART]
    left_out = {f"--ignore={path}" for path in (*CHART, DISRUPTION)}
    assert {w for w in servers if w.startswith("--ignore")} == left_out
    assert set(CHART) <= set(chart)
    assert DISRUPTION in disruption


def test_each_fault_is_in_one_stage_and_what_judges_freshness_is_alone() -> None:
    """What one leaves out, the other runs, one at a time and at the pace of a free machine."""
    faults, alone = (stage.checks[-1].command for stage in FAULTS)
    assert "-m=disruption and not alone" in faults
    assert "-m=disruption and alone" in alone
    assert not any(w.startswith(("--numprocesses", "WEIR_PACE")) for w in alone)
    assert not any(w.startswith("--ignore") for w in (*faults, *alone))


def test_some_of_the_faults_can_be_asked_for() -> None:
    """By an expression of pytest's; a stage that has none of them is no failure."""
    assert faults_of("") == FAULTS
    for whole, some in zip(FAULTS, faults_of("drop or wipe"), strict=True):
        assert [one.command for one in some.checks] == [
            (*one.command, "-k=drop or wipe") for one in whole.checks
        ]
    none, red = (
        Check(f"pytest {code}", (sys.executable, "-c", f"raise SystemExit({code})"), may_end=5)
        for code in (5, 1)
    )
    run = Run(io.BytesIO())
    run.stage(Stage("faults", 0, (none, red)))
    assert run.failed == ["pytest 1"]


def test_a_check_that_fails_fails_the_run_and_the_others_still_run() -> None:
    """One run tells all."""
    run = Run(io.BytesIO())
    run.stage(Stage("s", 0, (Check("no", ("false",)), Check("yes", ("true",)))))
    assert run.failed == ["no"]
    assert list(run.took_s) == ["s"]
