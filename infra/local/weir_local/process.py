"""A part of the stack as a process: start it, know it again later, stop all of it.

Each part runs in a session of its own, so that Ctrl-C in a terminal does not reach
it and so that everything it started can be found: Spark's Python daemon leaves its
process group, but not its session. A part is known by its pid and the moment it
started, written to a file, so that a pid that the system has given to a stranger
since is never signalled.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from weir_local.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STOP_TIMEOUT_S = 15.0
TAIL_BYTES = 64 * 1024
# Settings of another program's Python or Spark: with them a part would run other code.
NOT_INHERITED = frozenset(
    {
        "HADOOP_CONF_DIR",
        "PYSPARK_DRIVER_PYTHON",
        "PYSPARK_PYTHON",
        "PYSPARK_SUBMIT_ARGS",
        "PYTHONHOME",
        "PYTHONPATH",
        "SPARK_CONF_DIR",
        "SPARK_HOME",
        "YARN_CONF_DIR",
    }
)


class PartError(Exception):
    """A part could not be started or has ended; the text says which, why, and where to look."""


def birth_mark(pid: int) -> str | None:
    """Return what tells this process from a later one with the same pid; None if it is gone.

    On Linux the boot's id and the start in clock ticks: psutil's `create_time` moves
    with the wall clock.
    """
    if sys.platform == "linux":
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else f"{boot}:{fields[19]}"
    try:
        process = psutil.Process(pid)
        gone = process.status() == psutil.STATUS_ZOMBIE
        return None if gone else repr(process.create_time())
    except psutil.NoSuchProcess:
        return None


def session_members(leader: int) -> list[psutil.Process]:
    """Return every living process of a session."""
    members = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and birth_mark(process.pid):
                members.append(process)
        except OSError:  # it ended, or it is somebody else's
            continue
    return members


def last_lines(path: Path, count: int = 20, *, from_byte: int = 0) -> list[str]:
    """Return the last lines of a text file from a place on; none if it is missing.

    A file that is shorter than `from_byte` was emptied since: all of it is newer.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            begin = from_byte if from_byte <= size else 0
            file.seek(max(begin, size - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()[-count:]


def last_error(written: Sequence[str]) -> str:
    """Return the line of a log that most likely says why its process ended."""
    lines = [line.strip() for line in written if line.strip()]
    marks = ("error", "exception", "fatal", "critical", "cannot", "can't", "could not", "denied")
    telling = [
        line
        for line in lines
        if any(mark in line.lower() for mark in marks) and not line.startswith(("at ", "File "))
    ]
    return (telling or lines or ["it wrote nothing"])[-1][:300]


@dataclass
class Part:
    """A process of the stack.

    Attributes:
        name: What people call it.
        argv: The command.
        folder: Where the log (`<name>.log`) and the pid file (`<name>.pid`) are.
        env: Environment added to this process's own.
        cwd: Working directory, if it matters.
    """

    name: str
    argv: Sequence[str]
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _log_from: int = field(default=0, repr=False)

    @property
    def log_path(self) -> Path:
        """Return where its output goes."""
        return self.folder / f"{self.name}.log"

    @property
    def pid_path(self) -> Path:
        """Return where its pid and birth mark are kept."""
        return self.folder / f"{self.name}.pid"

    def start(self) -> None:
        """Start the process, unless it runs already."""
        if self.pid() is not None:
            return
        self.kill()  # what a crash of its leader left behind
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._log_from = log.tell()
            self._child = subprocess.Popen(  # noqa: S603  the command is ours
                list(self.argv),
                env={**_inherited(), **self.env},
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._write_pid(self._child.pid)

    def pid(self) -> int | None:
        """Return the pid if the process we started is alive, else None."""
        if self._child is not None:
            self._child.poll()  # takes the exit status, so that no zombie stays
        known = self._read_pid()
        if known is None or birth_mark(known[0]) != known[1]:
            return None
        return known[0]

    def check_alive(self) -> None:
        """Do nothing while it runs.

        Raises:
            PartError: If it has ended; says how, and the last error of its log.
        """
        if self.pid() is None:
            msg = f"{self.ending()}: {last_error(self.written())}; see {self.log_path}"
            raise PartError(msg)

    def written(self, count: int = 400) -> list[str]:
        """Return the last lines that it wrote since its latest start, none of an earlier run."""
        return last_lines(self.log_path, count, from_byte=self._known().get("log_from", 0))

    def ending(self) -> str:
        """Return that it has ended, and with what status or signal if we are its parent."""
        code = self._child.poll() if self._child is not None else None
        if code is None:
            return f"{self.name} has ended"
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit status {code}"
        return f"{self.name} has ended {how}"

    def send(self, number: signal.Signals) -> None:
        """Send a signal to every process of the part."""
        known = self._read_pid()
        if known is not None:
            _signal_all(self._members(known), number)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Ask the process to end, and make it end if it has not in time."""
        pid = self.pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError, TimeoutError):
                os.kill(pid, signal.SIGTERM)
                wait_until(lambda: self.pid() is None, timeout_s=timeout_s, what="its end")
        self.kill()

    def kill(self) -> None:
        """End every process of the part at once, as a crash would (SIGKILL)."""
        known = self._read_pid()
        if known is None:
            return
        self.send(signal.SIGKILL)
        wait_until(
            lambda: self.pid() is None and not self._members(known),
            timeout_s=10,
            what=f"the end of {self.name}",
        )
        if self._child is not None:
            self._child.wait()
        self.pid_path.unlink(missing_ok=True)

    def memory_bytes(self) -> int:
        """Return the resident memory of all its processes."""
        known = self._read_pid()
        total = 0
        for process in self._members(known) if known else []:
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
        return total

    def listens(self, port: int) -> bool:
        """Return whether one of its processes takes connections on a port."""
        known = self._read_pid()
        for process in self._members(known) if known else []:
            with contextlib.suppress(psutil.Error):
                for one in process.net_connections("tcp"):
                    if one.status == psutil.CONN_LISTEN and one.laddr[1:2] == (port,):
                        return True
        return False

    def _members(self, known: tuple[int, str]) -> list[psutil.Process]:
        # A session's number is not given out again while anything of it lives. So a
        # living leader with another mark is a stranger, and nothing of ours is left.
        mark = birth_mark(known[0])
        return session_members(known[0]) if mark in (None, known[1]) else []

    def _write_pid(self, pid: int) -> None:
        text = json.dumps({"pid": pid, "born": birth_mark(pid), "log_from": self._log_from})
        partial = self.pid_path.with_suffix(".pid.new")
        partial.write_text(text)
        partial.replace(self.pid_path)

    def _read_pid(self) -> tuple[int, str] | None:
        known = self._known()
        try:
            return int(known["pid"]), str(known["born"])
        except (ValueError, KeyError, TypeError):
            return None

    def _known(self) -> dict[str, Any]:
        try:
            known = json.loads(self.pid_path.read_text())
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}


def _signal_all(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.NoSuchProcess:
            continue
