"""Everything that CI checks, in one order: `make test`; the quick part of it: `make lint`.

Every check runs, also after one has failed, so that one run tells all. pytest comes
last and writes the last line. The output is kept in `.tools/logs/test.log`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

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
LOG = TOOLS / "logs" / "test.log"


@dataclass(frozen=True)
class Check:
    """One command that must succeed.

    Attributes:
        name: What is said.
        command: Its words.
        folder: Where it runs.
    """

    name: str
    command: tuple[str, ...]
    folder: Path = ROOT


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
TESTS = (
    Check("vitest", ("npm", "run", "--silent", "test"), WEB),
    Check("pytest", (str(BIN / "python"), "-m", "pytest", "-m", "not disruption")),
)


def run(checks: tuple[Check, ...], log: IO[bytes]) -> list[str]:
    """Run every check; return the names of those that failed."""
    failed: list[str] = []
    for check in checks:
        if check.name == "pytest" and failed:
            say(f"failed so far: {', '.join(failed)}")
        say(f"── {check.name}")
        began = time.monotonic()
        if _run(check, log) != 0:
            failed.append(check.name)
        if check.name != "pytest":
            word = "failed" if check.name in failed else "passed"
            say(f"   {check.name} {word} in {time.monotonic() - began:.0f} s")
    return failed


def _run(check: Check, log: IO[bytes]) -> int:
    log.write(f"── {check.name}\n".encode())
    with subprocess.Popen(  # noqa: S603  the commands are listed above
        check.command, cwd=check.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        for line in process.stdout or ():
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            log.write(line)
            log.flush()
    return process.returncode


def main(arguments: list[str]) -> int:
    """Run the checks; return 1 if one failed."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("wb") as log:
        failed = run(LINT if arguments == ["--lint"] else LINT + TESTS, log)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
