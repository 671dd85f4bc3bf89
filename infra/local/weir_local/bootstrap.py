"""Set the checkout up: look at what is there, then install what is missing.

Runs on a plain Python 3.11 before everything else, so it uses the standard library only,
and of this package what does the same. Each step is remembered by the content of what it
depends on, so a second call does nothing and needs no network. Steps that do not wait for
each other run side by side; two set-ups of one checkout come one after the other.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir_local.console import complain, in_words, say
from weir_local.prerequisites import Prerequisite, java, missing, missing_room, prerequisites

ROOT = Path(__file__).resolve().parents[3]
VENV = ROOT / ".venv"
TOOLS = ROOT / ".tools"
LOGS = TOOLS / "logs"
STAMPS = TOOLS / "stamps"
LOCAL = ROOT / "infra" / "local"
WEB = ROOT / "services" / "dashboard" / "web"
PACKAGES = (
    ROOT / "libs" / "weir",
    ROOT / "libs" / "reading",
    ROOT / "libs" / "service",
    ROOT / "services" / "ingest",
    ROOT / "services" / "analytics",
    ROOT / "services" / "dashboard",
    ROOT / "cli",
    LOCAL,
)
HEARTBEAT_S = 15.0
SHOWN_LINES = 8


class SetupError(Exception):
    """The checkout could not be set up; the text says what is missing and what to do."""


def check_prerequisites(wanted: Iterable[Prerequisite]) -> None:
    """Do nothing if everything that must be there is there.

    Raises:
        SetupError: With one line for each thing that is missing.
    """
    lacking = missing(wanted)
    if not (STAMPS / "pages").exists():
        lacking += missing_room(ROOT)
    if lacking:
        raise SetupError("\n".join(lacking))


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
    anew = [] if environment_fits() else ["--clear"]
    run_logged([sys.executable, "-m", "venv", *anew, VENV], log)
    locked = (ROOT / "requirements.txt").read_text()
    builders = TOOLS / "builders.txt"
    builders.write_text(
        "".join(_entry(locked, name) for name in ("packaging", "setuptools", "wheel"))
    )
    for requirements in (builders, ROOT / "requirements.txt"):
        _pip(["--require-hashes", "-r", requirements], log)


def environment_fits() -> bool:
    """Return whether the environment is of this very Python, and was made where it is.

    After a Python upgrade its links lead nowhere, and `venv` leaves them as they are.
    """
    tell = "import sys; print(sys.version_info[:2], sys.base_prefix)"
    try:
        done = subprocess.run(  # noqa: S603  our own environment
            [VENV / "bin" / "python", "-c", tell], capture_output=True, text=True, check=False
        )
        made = (VENV / "pyvenv.cfg").read_text()
    except OSError:
        return False
    same = done.stdout.strip() == f"{sys.version_info[:2]} {sys.base_prefix}"
    return same and f" {VENV}\n" in made


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
    """Install the locked packages that build and check the pages, each checked by its hash."""
    run_logged(["npm", "ci", "--no-audit", "--no-fund"], log, WEB)


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
    locked = ROOT / "requirements.txt"
    projects = (locked, *(package / "pyproject.toml" for package in PACKAGES))
    return (
        Step("python", (locked,), (VENV / "bin" / "python",), install_python),
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

    def __init__(self, todo: list[Step], what: Mapping[str, str] | None = None) -> None:
        """Take the steps to do, and what each is called when told; by default as in `WHAT`."""
        self._todo = {step.name: step for step in todo}
        self._what = what or WHAT
        self._running: dict[str, float] = {}
        self._failed: list[str] = []
        self._began = time.monotonic()

    def run(self) -> None:
        """Do all steps; say each with its time, and why one failed at once.

        Raises:
            SetupError: If one failed; what was done stays done.
        """
        futures: dict[Future[None], str] = {}
        with ThreadPoolExecutor(3) as pool:
            while (self._todo and not self._failed) or futures:
                if not self._failed:
                    self._submit(pool, futures)
                done, _ = wait(futures, HEARTBEAT_S, FIRST_COMPLETED)
                if not done:
                    say(f"  … still working on {', '.join(self._what[n] for n in self._running)}")
                for future in done:
                    self._finish(futures.pop(future), future)
        if self._failed:
            what = ", ".join(self._what[name] for name in self._failed)
            msg = f"the set-up is not complete without {what} (see above); what is done is kept"
            raise SetupError(msg)
        say(f"  set up in {time.monotonic() - self._began:.0f} s")

    def _submit(self, pool: ThreadPoolExecutor, futures: dict[Future[None], str]) -> None:
        open_steps = self._todo.keys() | self._running.keys()
        for step in list(self._todo.values()):
            if not open_steps & set(step.after):
                say(f"  {self._what[step.name]} …")
                self._running[step.name] = time.monotonic()
                futures[pool.submit(step.do)] = self._todo.pop(step.name).name

    def _finish(self, name: str, future: Future[None]) -> None:
        took_s = time.monotonic() - self._running.pop(name)
        try:
            future.result()
        except (SetupError, OSError) as error:
            say(f"  {self._what[name]}: failed after {took_s:.0f} s: {in_words(error)}")
            self._failed.append(name)
            return
        say(f"  {self._what[name]}: done in {took_s:.0f} s")


@contextmanager
def only_one_setup() -> Iterator[None]:
    """Hold the checkout; wait for another set-up of it. The system frees it at a crash."""
    with (TOOLS / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another command sets this checkout up; waiting for its end …")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def set_up() -> None:
    """Do what is not done yet."""
    for folder in (LOGS, STAMPS):
        folder.mkdir(parents=True, exist_ok=True)
    with only_one_setup():
        todo = [step for step in steps() if not step.is_done()]
        check_prerequisites(prerequisites() if todo else (java(),))
        if todo:
            say("setting up (once; the next start needs neither this nor the network)")
            Setup(todo).run()


def main() -> int:
    """Set the checkout up; return the exit code."""
    try:
        set_up()
    except (SetupError, OSError) as error:
        complain(f"weir: {in_words(error)}")
        return 1
    except KeyboardInterrupt:
        complain("weir: the set-up was stopped; what is done is kept")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
