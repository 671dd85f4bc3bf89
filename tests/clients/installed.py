"""The clients that tests run, installed once: Python's below `.tools/clients`, Node's here.

They are in environments of their own, so that no client is held to a version by what Weir needs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from weir_local.bootstrap import (
    LOGS,
    STAMPS,
    TOOLS,
    Step,
    only_one_setup,
    run_logged,
)

HERE = Path(__file__).parent
LOCK = HERE / "requirements.txt"
PYTHON = TOOLS / "clients" / "bin" / "python"
NODE_MODULES = HERE / "node_modules"


def _install_python(log: Path) -> None:
    run_logged([sys.executable, "-m", "venv", "--clear", PYTHON.parents[1]], log)
    pip: list[str | Path] = [
        PYTHON,
        "-m",
        "pip",
        "install",
        "--no-input",
        "--progress-bar=off",
        "--no-deps",
    ]
    run_logged([*pip, "--require-hashes", "-r", LOCK], log)


def _install_node(log: Path) -> None:
    run_logged(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], log, HERE)


STEPS = (
    Step("clients-python", (LOCK,), (PYTHON,), _install_python),
    Step(
        "clients-node",
        (HERE / "package.json", HERE / "package-lock.json"),
        (NODE_MODULES,),
        _install_node,
    ),
)


def install() -> None:
    """Install what is not installed; another test that does so is waited for.

    Raises:
        SetupError: If it failed; shows the last lines of what was said.
    """
    for folder in (LOGS, STAMPS):
        folder.mkdir(parents=True, exist_ok=True)
    with only_one_setup():
        for step in STEPS:
            if not step.is_done():
                step.do()
