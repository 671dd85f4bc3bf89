"""Flink as a process: its jars, the program in `flink/java`, and jobs one after the other.

Everything is kept below `.tools/flink`: jars as `flink/pom.xml` names them, each checked by
the SHA-256 in `flink/jars.lock`, and the classes compiled from `flink/java`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import harness
from flink_sql import script
from weir_local.bootstrap import LOGS, TOOLS, SetupError, run_logged, sha256_of
from weir_local.console import say
from weir_local.kafka import find_java
from workload import Wanted

HERE = Path(__file__).parent / "flink"
JAVA = HERE / "java"
LOCK = HERE / "jars.lock"
HOME = TOOLS / "flink"
JARS, CLASSES = HOME / "jars", HOME / "classes"
LOG = LOGS / "flink.log"
END_S = 20.0

SETTINGS = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "slot.request.timeout": "20s",
    "pipeline.object-reuse": "true",
    "state.backend.type": "hashmap",
    "table.optimizer.agg-phase-strategy": "AUTO",
    "taskmanager.memory.managed.size": "512m",
    "taskmanager.memory.network.min": "256m",
    "taskmanager.memory.network.max": "256m",
    "table.local-time-zone": "UTC",
}
"""What was tried to make it fast; the benchmark's page says it, and what was not better."""

# The same collector as Weir's JVM has; Flink's own scripts add the openings to modules.
OPENED = ("java.lang", "java.net", "java.io", "java.nio", "java.util", "java.util.concurrent")
OPTIONS = (
    "-Xmx2g",
    "-XX:+UseParallelGC",
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED),
)


# ── what it is made of ──────────────────────────────────────────────────────


def install() -> None:
    """Fetch and compile what is not there; needs Maven, a JDK and, once, the network.

    Raises:
        SetupError: If a jar is missing, unknown or not the one that was locked.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    if wrong_jars():
        say("  fetching the jars of Flink …")
        fetch_jars()
        if wrong := wrong_jars():
            shutil.rmtree(JARS)
            msg = (
                f"every jar must have the SHA-256 of {LOCK}, {', '.join(wrong[:5])} differ; "
                "empty the Maven cache of them and try again"
            )
            raise SetupError(msg)
    stamp, digest = HOME / "stamp", _sources_digest()
    if not stamp.exists() or stamp.read_text() != digest:
        _compile()
        stamp.write_text(digest)


def fetch_jars() -> None:
    """Have Maven put what `flink/pom.xml` names into `.tools/flink/jars`."""
    shutil.rmtree(JARS, ignore_errors=True)
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={JARS}"]
    run_logged(["mvn", "-B", "-f", HERE / "pom.xml", "dependency:copy-dependencies", *options], LOG)


def wrong_jars() -> list[str]:
    """Return the names of jars that are missing, too many, or not the locked ones."""
    lines = [line.split() for line in LOCK.read_text().splitlines() if not line.startswith("#")]
    locked = {name: digest for digest, name in lines}
    present = {path.name: path for path in JARS.glob("*.jar")}
    return sorted(
        name
        for name in locked.keys() | present.keys()
        if name not in present or sha256_of(present[name]) != locked.get(name)
    )


def write_lock() -> None:
    """Write `jars.lock` from what `pom.xml` resolves to; after a change of it."""
    fetch_jars()
    lines = [f"{sha256_of(path)}  {path.name}" for path in sorted(JARS.glob("*.jar"))]
    comments = [line for line in LOCK.read_text().splitlines() if line.startswith("#")]
    LOCK.write_text("\n".join([*comments, *lines]) + "\n")


def version_of(name: str) -> str:
    """Return the version of one of the jars."""
    found = [path.stem for path in JARS.glob(f"{name}-*.jar")]
    return found[0].removeprefix(f"{name}-") if found else "none"


def _sources() -> list[Path]:
    return sorted(path for path in JAVA.rglob("*") if path.is_file())


def _sources_digest() -> str:
    seen = hashlib.sha256(LOCK.read_bytes())
    for path in _sources():
        seen.update(path.read_bytes())
    return seen.hexdigest()


def _compile() -> None:
    shutil.rmtree(CLASSES, ignore_errors=True)
    shutil.copytree(JAVA / "META-INF", CLASSES / "META-INF")
    java = [path for path in _sources() if path.suffix == ".java"]
    compiler = Path(find_java()).with_name("javac")
    run_logged([compiler, "-proc:none", "-d", CLASSES, "-cp", f"{JARS}/*", *java], LOG)


# ── a cluster that runs ─────────────────────────────────────────────────────


@dataclass
class Flink:
    """One JVM with a cluster in it, which counts a range of a topic at a time."""

    process: subprocess.Popen[str]
    folder: Path

    def cpu_s(self) -> float:
        """Return its CPU seconds so far."""
        return harness.tree_cpu_s([self.process.pid])

    def count(
        self,
        bootstrap: str,
        topic: str,
        ends: Mapping[int, int],
        metrics: Sequence[Wanted],
        *,
        explained: bool = False,
        moment: Callable[[], None] = lambda: None,
    ) -> list[dict[str, Any]]:
        """Run one job to its end; return what the panes of each metric add up to.

        Args:
            bootstrap: Where the broker is.
            topic: The topic.
            ends: Where the range ends in each partition; it begins at the first record.
            metrics: What is counted.
            explained: Whether to look into its plan for how often it reads the topic.
            moment: Called when the job is planned and begins to run, and when it has ended.
                What its panes add up to is merged after that.

        Raises:
            RuntimeError: If the JVM ended; names its log.
        """
        file = self.folder / "job.sql"
        file.write_text(script(bootstrap, topic, dict(ends), metrics))
        output, told = _pipes(self.process)
        told.write(f"{len(metrics)} {str(explained).lower()} {file}\n")
        told.flush()
        answers = []
        for call in (moment, moment, lambda: None):
            answers.append(output.readline())
            if not answers[-1]:
                said = (self.folder / "flink.log").read_text()[-2_000:]
                msg = f"Flink must run the job, its JVM ended; it said:\n{said}"
                raise RuntimeError(msg)
            call()
        found: list[dict[str, Any]] = json.loads(answers[-1])
        return found


@contextmanager
def flink(folder: Path) -> Iterator[Flink]:
    """Start Flink in a folder, and end it afterwards."""
    install()
    folder.mkdir(parents=True, exist_ok=True)
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    settings.append(f"io.tmp.dirs={folder}")
    log = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
    where = ["-cp", f"{CLASSES}:{JARS}/*", "dev.weir.bench.Peer"]
    with (folder / "flink.log").open("w") as errors:
        process = subprocess.Popen(  # noqa: S603  the program above
            [find_java(), *OPTIONS, log, *where, *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            if _pipes(process)[0].readline() != "ready\n":
                msg = f"Flink must start, see {folder / 'flink.log'}"
                raise RuntimeError(msg)
            yield Flink(process, folder)
        finally:
            _end(process)


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    if process.stdout is None or process.stdin is None:
        msg = "the process must have been started with pipes"
        raise RuntimeError(msg)
    return process.stdout, process.stdin


def _end(process: subprocess.Popen[str]) -> None:
    _pipes(process)[1].close()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
