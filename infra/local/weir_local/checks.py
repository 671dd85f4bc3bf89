"""Everything that CI checks, in one order: `make test`; the quick part of it: `make lint`.

Faults run two at a time, which costs each of them some of its pace. Most of them are in
`make test-disruption`, which takes hours; there what judges how fresh the numbers are under
load, such as the soak, runs after them, alone.

Every check runs, also after one has failed, so that one run tells all. At the end the time
of each stage stands beside what it may take, all of them together 45 minutes, and the last line
is that of pytest, over all of its runs. What takes longer is told as "over" and fails nothing:
machines of CI are shared, and whoever changes the tests reads it. The output is kept in
`.tools/logs/`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from weir.clock import SystemClock

from weir_local.console import say
from weir_local.repository import ROOT, TOOLS

WEB = ROOT / "services" / "dashboard" / "web"
BIN = Path(sys.executable).parent
SOURCES = ("libs", "services", "cli", "charts", "infra", "tests", "bench", "conftest.py")
PACKAGES = (
    "libs/weir/weir",
    "libs/reading/weir_reading",
    "libs/service/weir_service",
    "services/ingest/weir_ingest",
    "services/analytics/weir_analytics",
    "services/dashboard/weir_dashboard",
    "cli/weir_cli",
    "infra/local/weir_local",
    "infra/chart/weir_chart",
    "infra/images/weir_images",
)
# One run each: mypy knows a folder `tests` only once.
TESTED = (
    "libs/weir/tests",
    "libs/service/tests",
    "libs/reading/tests",
    "services/ingest/tests",
    "services/analytics/tests",
    "services/dashboard/tests",
    "cli/tests",
    "infra/local/tests",
    "tests",
    "bench",
    "charts/weir/files",
    "conftest.py",
)
LOGS = TOOLS / "logs"


@dataclass(frozen=True)
class Check:
    """One command that must succeed.

    Attributes:
        name: What is said.
        command: Its words.
        folder: Where it runs.
        may_end: An exit code besides 0 that is no failure.
    """

    name: str
    command: tuple[str, ...]
    folder: Path = ROOT
    may_end: int = 0


LINT = (
    Check("ruff format", (str(BIN / "ruff"), "format", "--check", "-q", ".")),
    Check("ruff check", (str(BIN / "ruff"), "check", "-q", ".")),
    Check("mypy", (str(BIN / "mypy"), *PACKAGES)),
    *(Check(f"mypy {tests}", (str(BIN / "mypy"), tests)) for tests in TESTED),
    Check("codespell", (str(BIN / "codespell"), *SOURCES, "docs", "README.md", "CONTRIBUTING.md")),
    Check("biome", ("npm", "run", "--silent", "lint"), WEB),
    Check("tsc", ("npm", "run", "--silent", "check"), WEB),
    Check("types of the API", ("node", "tools/types.mjs", "--check"), WEB),
)
SERVERS = "kafka or redis or spark or stack or browser"
CHART = ("tests/chart", "tests/images")
DISRUPTION = "tests/disruption"
ELSEWHERE = tuple(f"--ignore={path}" for path in (*CHART, DISRUPTION))
# Where one service alone is tested, on servers of the test's own.
SERVICES = ("libs", "services", "cli", "infra")


# What takes longest is told, so that the budget of a stage can be kept.
SLOWEST = ("--durations=12", "--durations-min=15")


# A file at a time in each of two processes, and all that share the stack in one (conftest.py).
SIDE_BY_SIDE = ("--numprocesses=2", "--dist=loadfile", "--no-loadscope-reorder")


def _pytest(name: str, *options: str) -> Check:
    return Check(name, (str(BIN / "python"), "-m", "pytest", "-q", *SLOWEST, *options))


def _paced(check: Check) -> Check:
    """Give each fault twice the patience, since another runs beside it; no bar is another."""
    return replace(check, command=("env", "WEIR_PACE=2", *check.command))


UNIT = (
    Check("vitest", ("npm", "run", "--silent", "test"), WEB),
    _pytest(
        "pytest, no server",
        "--numprocesses=2",
        "--dist=worksteal",
        *(f"--ignore={path}" for path in CHART),
        f"-m=not disruption and not ({SERVERS})",
    ),
)


@dataclass(frozen=True)
class Stage:
    """A part of `make test` that is to fit into a time.

    Attributes:
        name: What is said.
        budget_min: Minutes that it may take on two cores; 0 where nothing is promised.
        checks: What it runs.
    """

    name: str
    budget_min: int
    checks: tuple[Check, ...] = ()


SET_UP = Stage("set-up", 4)
STAGES = (
    Stage("lint", 1, LINT),
    Stage("unit and property", 4, UNIT),
    Stage(
        # Each test has a Kafka, a Redis or a driver that it may stop, wipe and lie to, which no
        # shared stack survives: so it is the longest, and a stage of its own.
        "services on servers",
        17,
        (
            _pytest(
                "pytest, services", *SERVICES, *SIDE_BY_SIDE, f"-m=not disruption and ({SERVERS})"
            ),
        ),
    ),
    Stage(
        "contract, end to end, browser",
        8,
        (
            _pytest(
                "pytest, servers",
                "tests",
                *SIDE_BY_SIDE,
                *ELSEWHERE,
                f"-m=not disruption and ({SERVERS})",
            ),
        ),
    ),
    Stage("chart and images", 3, (_pytest("pytest, chart", *CHART, "-m=not disruption"),)),
    Stage(
        "short disruption",
        8,
        (
            _paced(
                _pytest(
                    "pytest, disruption",
                    DISRUPTION,
                    *SIDE_BY_SIDE,
                    f"-m=not disruption and ({SERVERS})",
                )
            ),
        ),
    ),
)
WITHIN_MIN = 45
FAULTS = (
    Stage(
        "faults",
        0,
        (
            _paced(
                _pytest(
                    "pytest, faults",
                    "-vv",
                    "--numprocesses=2",
                    "--dist=worksteal",
                    "-m=disruption and not alone",
                )
            ),
        ),
    ),
    Stage("alone", 0, (_pytest("pytest, alone", "-vv", "-m=disruption and alone"),)),
)
# As pytest ends where it was asked for tests of which there are none: those of the other stage.
NOTHING_CHOSEN = 5
# As the last line of a run says it: "2 failed, 31 passed, 1 skipped in 12.34s".
OUTCOME = re.compile(r"(\d+) (failed|passed|skipped|errors?|xfailed|xpassed|deselected)\b")
LAST_LINE = re.compile(r"(?:no tests ran|\d+ \w+.*) in [\d.]+s\b")


def faults_of(only: str) -> tuple[Stage, ...]:
    """Return the stages of the long form, or of the tests that an expression of pytest's names."""
    if not only:
        return FAULTS
    return tuple(
        replace(
            stage,
            checks=tuple(
                replace(one, command=(*one.command, f"-k={only}"), may_end=NOTHING_CHOSEN)
                for one in stage.checks
            ),
        )
        for stage in FAULTS
    )


@dataclass
class Run:
    """What became of the checks so far.

    Attributes:
        log: Where all that they say is kept.
        failed: Names of the checks that failed.
        outcomes: How many tests ended how, over all runs of pytest.
        took_s: Seconds by stage.
    """

    log: IO[bytes]
    failed: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    took_s: dict[str, float] = field(default_factory=dict)

    def stage(self, stage: Stage) -> None:
        """Run every check of a stage, also after one has failed."""
        began_s = time.monotonic()
        for check in stage.checks:
            self.check(check)
        self.took_s[stage.name] = time.monotonic() - began_s

    def check(self, check: Check) -> None:
        """Run one check, showing what it says."""
        say(f"── {check.name}")
        began_s, last = time.monotonic(), b""
        self.log.write(f"── {check.name}\n".encode())
        with subprocess.Popen(  # noqa: S603  the commands are listed above
            check.command, cwd=check.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            for line in process.stdout or ():
                self.show(line)
                last = line
        if process.returncode not in (0, check.may_end):
            self.failed.append(check.name)
        if "pytest" in check.command and LAST_LINE.search(last.decode(errors="replace")):
            self.outcomes.update(outcomes(last.decode(errors="replace")))
        word = "failed" if check.name in self.failed else "passed"
        say(f"   {check.name} {word} in {time.monotonic() - began_s:.0f} s")

    def show(self, line: bytes) -> None:
        """Write a line to the screen and to the log."""
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        self.log.write(line)
        self.log.flush()


def outcomes(line: str) -> Counter[str]:
    """Return how many tests ended how, from the last line of a run of pytest."""
    return Counter(
        {
            word.rstrip("s") if word.startswith("error") else word: int(count)
            for count, word in OUTCOME.findall(line)
        }
    )


def table(took_s: Mapping[str, float], within_min: int = 0) -> str:
    """Return the time of each stage, and of all, beside what it may take; 0 minutes: no bound."""
    budgets = {stage.name: stage.budget_min for stage in (SET_UP, *STAGES, *FAULTS)}
    rows = [_row(name, took, budgets[name]) for name, took in took_s.items()]
    return "\n".join(["── time", *rows, _row("all", sum(took_s.values()), within_min)])


def _row(name: str, took_s: float, budget_min: int) -> str:
    bound = f"of {budget_min} min" if budget_min else ""
    over = "   over" if 0 < budget_min * 60 < took_s else ""
    return f"   {name:<32}{minutes(took_s):>8}{bound:>12}{over}"


def minutes(seconds: float) -> str:
    """Return a time as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def last_line(run: Run) -> str:
    """Return what pytest would say had it run all tests at once."""
    order = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")
    told = [f"{run.outcomes[word]} {word}" for word in order if run.outcomes[word]]
    others = [name for name in run.failed if not name.startswith("pytest")]
    if others:
        told.append(f"checks failed: {', '.join(others)}")
    return f"{', '.join(told) or 'no tests ran'} in {sum(run.took_s.values()):.2f}s"


def main(arguments: list[str]) -> int:
    """Run the checks; return 1 if one failed, or if no test ran of those that were asked for."""
    LOGS.mkdir(parents=True, exist_ok=True)
    breaks = arguments[:1] == ["--disruption"]
    with (LOGS / ("disruption.log" if breaks else "test.log")).open("wb") as log:
        run = Run(log)
        if arguments == ["--lint"]:
            run.stage(STAGES[0])
            return 1 if run.failed else 0
        if began := os.environ.get("WEIR_BEGAN_S"):
            run.took_s[SET_UP.name] = SystemClock().now_ms() / 1000 - float(began)
        for stage in faults_of(" ".join(arguments[1:])) if breaks else STAGES:
            run.stage(stage)
        run.show(f"{table(run.took_s, 0 if breaks else WITHIN_MIN)}\n".encode())
        run.show(f"{last_line(run)}\n".encode())
    return 1 if run.failed or not run.outcomes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
