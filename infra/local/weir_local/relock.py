"""Write the three locks anew: Python packages, jars, Node packages.

`requirements.in`, the two `pom.xml` and `package.json` say what is wanted; the locks
say which files that is, by hash. No lock names the address of a registry.
"""

from __future__ import annotations

import sys

from weir_local.bootstrap import (
    LOCAL,
    LOGS,
    ROOT,
    TOOLS,
    WEB,
    SetupError,
    fetch_jars,
    run_logged,
    sha256_of,
)
from weir_local.console import say

UV = TOOLS / "uv"


def lock_python() -> None:
    """Write `requirements.txt` from `requirements.in`, for every system, with hashes."""
    log = LOGS / "lock.log"
    if not (UV / "bin" / "uv").exists():
        run_logged([sys.executable, "-m", "venv", UV], log)
        run_logged([UV / "bin" / "python", "-m", "pip", "install", "-q", "uv"], log)
    options = ["--universal", "--generate-hashes", "--no-emit-index-url", "--no-header"]
    source, lock = "requirements.in", "requirements.txt"
    allowed = ["--allow-unsafe", "--python-version", "3.11", "-q"]
    run_logged([UV / "bin" / "uv", "pip", "compile", *options, *allowed, source, "-o", lock], log)
    say(f"locked {lock}")


def lock_jars() -> None:
    """Write `jars.lock` from what the two `pom.xml` resolve to."""
    jars = TOOLS / "jars"
    fetch_jars(jars, LOGS / "lock.log")
    lock = LOCAL / "jars.lock"
    comments = [line for line in lock.read_text().splitlines() if line.startswith("#")]
    lines = [
        f"{sha256_of(path)}  {path.relative_to(jars)}" for path in sorted(jars.glob("*/*.jar"))
    ]
    lock.write_text("\n".join([*comments, *lines]) + "\n")
    say(f"locked {len(lines)} jars in {lock.relative_to(ROOT)}")


def lock_node() -> None:
    """Write `package-lock.json` from `package.json`, without download addresses."""
    options = ["--package-lock-only", "--no-audit", "--no-fund"]
    omit = "--omit-lockfile-registry-resolved"
    run_logged(["npm", "install", *options, omit], LOGS / "lock.log", WEB)
    say(f"locked {(WEB / 'package-lock.json').relative_to(ROOT)}")


def main() -> int:
    """Write all three; return the exit code."""
    LOGS.mkdir(parents=True, exist_ok=True)
    try:
        lock_python()
        lock_jars()
        lock_node()
    except SetupError as error:
        sys.stderr.write(f"weir: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
