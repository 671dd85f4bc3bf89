"""Set the checkout up: look at what is there, then install what is missing.

Runs on a plain Python 3.11, so it uses the standard library only and imports nothing
of this package: `make` calls it before everything else. Each step is remembered by the
content of what it depends on, so a second call does nothing and needs no network. Steps
that do not wait for each other run side by side.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
VENV = ROOT / ".venv"
TOOLS = ROOT / ".tools"
LOGS = TOOLS / "logs"
STAMPS = TOOLS / "stamps"
LOCAL = ROOT / "infra" / "local"
WEB = ROOT / "services" / "dashboard" / "web"
PACKAGES = (
    ROOT / "libs" / "weir",
    ROOT / "services" / "ingest",
    ROOT / "services" / "analytics",
    ROOT / "services" / "dashboard",
    LOCAL,
)
OLDEST_PYTHON = (3, 11)
MIN_FREE_BYTES = 4_000_000_000
HEARTBEAT_S = 15.0
SHOWN_LINES = 8


class SetupError(Exception):
    """The checkout could not be set up; the text says what is missing and what to do."""


# ── what must be there already ──────────────────────────────────────────────


@dataclass(frozen=True)
class Prerequisite:
    """A program that Weir does not install itself.

    Attributes:
        name: What people call it.
        command: Prints its version.
        oldest: The first version that will do.
        mend: What to do if it is missing or too old.
    """

    name: str
    command: tuple[str, ...]
    oldest: int
    mend: str


PREREQUISITES = (
    Prerequisite(
        "Java", ("java", "-version"), 17, "install a JDK, such as the package openjdk-17-jdk"
    ),
    Prerequisite("Maven", ("mvn", "-v"), 3, "install Apache Maven, such as the package maven"),
    Prerequisite("Node.js", ("node", "-v"), 20, "install Node.js 20 or newer, with npm"),
    Prerequisite("npm", ("npm", "-v"), 9, "install npm; it comes with Node.js"),
)


def check_prerequisites(wanted: Iterable[Prerequisite]) -> None:
    """Do nothing if everything that must be there is there.

    Raises:
        SetupError: With one line for each thing that is missing.
    """
    with ThreadPoolExecutor() as pool:  # four programs, a second each on a slow disk
        missing = [text for text in pool.map(_missing, wanted) if text]
    if sys.version_info < OLDEST_PYTHON:
        missing.append(f"Python must be 3.11 or newer, found {sys.version.split()[0]}; install it")
    if importlib.util.find_spec("ensurepip") is None and not VENV.exists():
        missing.append("Python must be able to make environments; install the package python3-venv")
    free = shutil.disk_usage(ROOT).free
    if free < MIN_FREE_BYTES and not (STAMPS / "pages").exists():
        missing.append(
            f"the disk must have {MIN_FREE_BYTES / 1e9:g} GB free for the first start, "
            f"found {free / 1e9:.1f} GB; free some space"
        )
    if missing:
        raise SetupError("\n".join(missing))


def _missing(wanted: Prerequisite) -> str | None:
    if shutil.which(wanted.command[0]) is None:
        return f"{wanted.name} {wanted.oldest} or newer must be on PATH, found none; {wanted.mend}"
    done = subprocess.run(wanted.command, capture_output=True, text=True, check=False)  # noqa: S603
    found = re.search(r"(\d+)\.(\d+)", done.stdout + done.stderr)
    if found and int(found[1]) >= wanted.oldest:
        return None
    version = found[0] if found else "a version that does not tell its number"
    return f"{wanted.name} must be {wanted.oldest} or newer, found {version}; {wanted.mend}"


# ── steps ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Step:
    """Something that is done once for each content of its inputs.

    Attributes:
        name: What is said and stamped.
        inputs: Files whose content decides whether it must be done again.
        outputs: What must be there for it to count as done.
        run: Does it; is given the path of its log.
        after: Names of steps that must be done first.
    """

    name: str
    inputs: tuple[Path, ...]
    outputs: tuple[Path, ...]
    run: Callable[[Path], None]
    after: tuple[str, ...] = ()

    def digest(self) -> str:
        """Return what its inputs hold, and for which Python and machine, as one text."""
        seen = hashlib.sha256(f"{sys.version_info[:2]} {os.uname().machine} {ROOT}".encode())
        for path in self.inputs:
            seen.update(str(path.relative_to(ROOT)).encode() + b"\0")
            seen.update(path.read_bytes() + b"\0")
        return seen.hexdigest()

    def is_done(self) -> bool:
        """Return whether it was done with these very inputs."""
        stamp = STAMPS / self.name
        same = stamp.exists() and stamp.read_text() == self.digest()
        return same and all(path.exists() for path in self.outputs)

    def do(self) -> None:
        """Run it and remember that it was done; what changed meanwhile counts as not done."""
        digest = self.digest()
        (STAMPS / self.name).unlink(missing_ok=True)
        self.run(LOGS / f"{self.name}.log")
        (STAMPS / self.name).write_text(digest)


def run_logged(command: Iterable[str | Path], log: Path, cwd: Path = ROOT) -> None:
    """Run a command with its output in a log.

    Raises:
        SetupError: If it failed; shows its last lines.
    """
    words = [str(word) for word in command]
    with log.open("ab") as output:
        output.write(f"\n$ {' '.join(words)}\n".encode())
        output.flush()
        began_at = output.tell()
        done = subprocess.run(  # noqa: S603
            words, cwd=cwd, stdout=output, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode != 0:
        text = log.read_bytes()[began_at:].decode("utf-8", "replace")
        hint = "; is the network there?" if _looks_offline(text) else ""
        msg = f"`{' '.join(words[:4])} …` failed{hint}\n{_telling(text)}\nAll of it is in {log}."
        raise SetupError(msg)


def _telling(text: str) -> str:
    """Return the lines that most likely say what went wrong."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return "\n".join(errors[:SHOWN_LINES] or lines[-SHOWN_LINES:])


def _looks_offline(text: str) -> bool:
    marks = ("resolve host", "ENOTFOUND", "name resolution", "Connection refused", "Unknown host")
    return any(mark in text for mark in marks)


# ── Python ──────────────────────────────────────────────────────────────────


def install_python(log: Path) -> None:
    """Make the environment and install every locked package, each checked by its hash.

    What builds packages comes first: pyspark is published as source only, and nothing
    may be fetched that the lock does not name.
    """
    run_logged([sys.executable, "-m", "venv", VENV], log)
    locked = (ROOT / "requirements.txt").read_text()
    builders = TOOLS / "builders.txt"
    builders.write_text(
        "".join(_entry(locked, name) for name in ("packaging", "setuptools", "wheel"))
    )
    for requirements in (builders, ROOT / "requirements.txt"):
        _pip(["--require-hashes", "-r", requirements], log)


def install_packages(log: Path) -> None:
    """Install Weir's own packages so that what is edited is what runs."""
    words: list[str | Path] = []
    for package in PACKAGES:
        words += ["-e", package]
    _pip(words, log)


def _pip(words: Iterable[str | Path], log: Path) -> None:
    options = ["--no-input", "--progress-bar=off", "--no-deps", "--no-build-isolation"]
    run_logged([VENV / "bin" / "python", "-m", "pip", "install", *options, *words], log)


def _entry(locked: str, name: str) -> str:
    """Return a package's lines of the lock: its version and its hashes."""
    found = re.search(rf"^{name}==.*?(?<!\\)\n", locked, re.MULTILINE | re.DOTALL)
    if found is None:
        msg = f'requirements.txt must lock "{name}"; run `make lock`'
        raise SetupError(msg)
    return found[0]


# ── jars ────────────────────────────────────────────────────────────────────


def read_jar_lock(lock: Path = LOCAL / "jars.lock") -> dict[str, str]:
    """Return the SHA-256 of every jar by `<folder>/<file>`."""
    lines = [line.split() for line in lock.read_text().splitlines() if not line.startswith("#")]
    return {name: digest for digest, name in (line for line in lines if line)}


def install_jars(log: Path) -> None:
    """Fetch the jars of the broker and of Spark's connector, and check every one.

    Raises:
        SetupError: If one is missing, unknown, or not the one that was locked.
    """
    jars = TOOLS / "jars"
    if not wrong_jars(jars):
        return
    fetch_jars(jars, log)
    wrong = wrong_jars(jars)
    if wrong:
        shutil.rmtree(jars)
        msg = (
            f"every jar must have the SHA-256 of infra/local/jars.lock, {', '.join(wrong[:5])} "
            "differ; empty the Maven cache of them and try again"
        )
        raise SetupError(msg)


def fetch_jars(jars: Path, log: Path) -> None:
    """Have Maven put what the two `pom.xml` name into `jars`, in place of what is there."""
    for group in ("kafka", "spark"):
        shutil.rmtree(jars / group, ignore_errors=True)
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={jars / group}"]
        pom = LOCAL / group / "pom.xml"
        run_logged(["mvn", "-B", "-f", pom, "dependency:copy-dependencies", *options], log)


def wrong_jars(jars: Path) -> list[str]:
    """Return the names of jars that are missing, too many, or not the locked ones."""
    locked = read_jar_lock()
    present = {str(path.relative_to(jars)): path for path in jars.glob("*/*.jar")}
    return sorted(
        name
        for name in locked.keys() | present.keys()
        if name not in present or sha256_of(present[name]) != locked.get(name)
    )


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ── pages ───────────────────────────────────────────────────────────────────


def install_node(log: Path) -> None:
    """Install the locked packages that build and check the pages, each checked by its hash.

    Not `npm ci`: it refuses a lock without the packages of other systems, and a registry
    that lacks one of those makes such a lock. `--no-save` leaves the lock as it is.
    """
    shutil.rmtree(WEB / "node_modules", ignore_errors=True)
    run_logged(["npm", "install", "--no-save", "--no-audit", "--no-fund"], log, WEB)


def build_pages(log: Path) -> None:
    """Build the dashboard's pages."""
    run_logged(["npm", "run", "build"], log, WEB)


def page_sources() -> tuple[Path, ...]:
    """Return every file that the pages are built from."""
    left_out = {"node_modules", "dist"}
    return tuple(
        path
        for path in sorted(WEB.rglob("*"))
        if path.is_file() and not left_out & set(path.relative_to(WEB).parts)
    )


# ── all of it ───────────────────────────────────────────────────────────────


def steps() -> tuple[Step, ...]:
    """Return every step; a step comes after those that it waits for."""
    poms = tuple(LOCAL / group / "pom.xml" for group in ("kafka", "spark"))
    node = (WEB / "package.json", WEB / "package-lock.json")
    projects = tuple(package / "pyproject.toml" for package in PACKAGES)
    return (
        Step("python", (ROOT / "requirements.txt",), (VENV / "bin" / "python",), install_python),
        Step("jars", (LOCAL / "jars.lock", *poms), (TOOLS / "jars" / "kafka",), install_jars),
        Step("node", node, (WEB / "node_modules",), install_node),
        Step("packages", projects, (VENV / "bin" / "python",), install_packages, ("python",)),
        Step("pages", page_sources(), (WEB / "dist" / "index.html",), build_pages, ("node",)),
    )


WHAT = {
    "python": "Python packages",
    "jars": "Kafka and Spark jars",
    "node": "Node packages",
    "packages": "Weir's own packages",
    "pages": "the dashboard's pages",
}


class Setup:
    """Does the steps that are not done, those side by side that can be."""

    def __init__(self, todo: list[Step]) -> None:
        """Take the steps to do."""
        self._todo = {step.name: step for step in todo}
        self._running: dict[str, float] = {}
        self._began = time.monotonic()

    def run(self) -> None:
        """Do all steps; say each with its time.

        Raises:
            SetupError: If one failed; what was done stays done.
        """
        with ThreadPoolExecutor(3) as pool:
            futures: dict[Future[None], str] = {}
            while self._todo or futures:
                self._submit(pool, futures)
                done, _ = wait(futures, HEARTBEAT_S, FIRST_COMPLETED)
                if not done:
                    say(f"  … still working on {', '.join(WHAT[n] for n in self._running)}")
                for future in done:
                    self._finish(futures.pop(future), future)
        say(f"  set up in {time.monotonic() - self._began:.0f} s")

    def _submit(self, pool: ThreadPoolExecutor, futures: dict[Future[None], str]) -> None:
        open_steps = self._todo.keys() | self._running.keys()
        for step in list(self._todo.values()):
            if not open_steps & set(step.after):
                say(f"  {WHAT[step.name]} …")
                self._running[step.name] = time.monotonic()
                futures[pool.submit(step.do)] = self._todo.pop(step.name).name

    def _finish(self, name: str, future: Future[None]) -> None:
        took_s = time.monotonic() - self._running.pop(name)
        try:
            future.result()
        except SetupError:
            say(f"  {WHAT[name]}: failed after {took_s:.0f} s")
            raise
        say(f"  {WHAT[name]}: done in {took_s:.0f} s")


def say(text: str) -> None:
    """Write one line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Do what is not done yet; return the exit code."""
    for folder in (LOGS, STAMPS):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        todo = [step for step in steps() if not step.is_done()]
        check_prerequisites(PREREQUISITES if todo else PREREQUISITES[:1])
        if todo:
            say("setting up (once; the next start needs neither this nor the network)")
            Setup(todo).run()
    except SetupError as error:
        sys.stderr.write(f"weir: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
