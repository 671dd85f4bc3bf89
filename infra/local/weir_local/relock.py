"""Write the locks anew: Python packages, those of each image, jars, Node packages.

`requirements.in`, the two `pom.xml` and `package.json` say what is wanted; the locks
say which files that is, by hash. What an image holds is a part of the one Python lock:
same versions, same hashes. No lock names the address of a registry.
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
LOG = LOGS / "lock.log"
IMAGE_LOCKS = (
    "services/requirements-build",
    "services/ingest/requirements",
    "services/analytics/requirements",
    "services/dashboard/requirements",
)


def lock_python() -> None:
    """Write `requirements.txt` from `requirements.in`, for every system, with hashes."""
    if not (UV / "bin" / "uv").exists():
        run_logged([sys.executable, "-m", "venv", UV], LOG)
        run_logged([UV / "bin" / "python", "-m", "pip", "install", "-q", "uv"], LOG)
    _compile("requirements")


def lock_images() -> None:
    """Write the lock of each image, as a part of `requirements.txt`."""
    for name in IMAGE_LOCKS:
        _compile(name, "--no-annotate", "-c", "requirements.txt")


def _compile(name: str, *more: str) -> None:
    options = ["--universal", "--generate-hashes", "--no-emit-index-url", "--no-header"]
    allowed = ["--allow-unsafe", "--python-version", "3.11", "-q", *more]
    files = [f"{name}.in", "-o", f"{name}.txt"]
    run_logged([UV / "bin" / "uv", "pip", "compile", *options, *allowed, *files], LOG)
    say(f"locked {name}.txt")


def lock_jars() -> None:
    """Write `jars.lock` from what the two `pom.xml` resolve to."""
    jars = TOOLS / "jars"
    fetch_jars(jars, LOG)
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
    run_logged(["npm", "install", *options, omit], LOG, WEB)
    say(f"locked {(WEB / 'package-lock.json').relative_to(ROOT)}")


def main() -> int:
    """Write all of them; return the exit code."""
    LOGS.mkdir(parents=True, exist_ok=True)
    try:
        lock_python()
        lock_images()
        lock_jars()
        lock_node()
    except SetupError as error:
        sys.stderr.write(f"weir: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
