"""Breaks Weir on purpose where a test has put this package on `PYTHONPATH`.

`failpoint(name)` does what `WEIR_FAIL=<point>:kill|raise|sleep@n` orders, once in the life of
the folder `WEIR_FAULTS_DIR`, when this process reaches the point for the n-th time: a
process that was started again with the same order does not fall again. A file there says
that it was done, so that a test can tell whether its fault has bitten.

`WEIR_MUTANT=<module of tests/disruption/mutants>` replaces one function (`mutation.py`).
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

SLEEP_S = 3.0
ORDER = re.compile(r"(?P<point>[\w-]+):(?P<action>kill|raise|sleep)@(?P<at>[1-9]\d*)")


class OrderedError(Exception):
    """What `raise` raises: an error that no code of Weir knows."""


@dataclass(frozen=True)
class Order:
    """What is to happen at a point.

    Attributes:
        point: The failpoint's name.
        action: kill, raise or sleep.
        at: At which time that a process reaches the point, from 1.
    """

    point: str
    action: str
    at: int

    @property
    def note(self) -> str:
        """Return the name of the file that says that it was done."""
        return f"{self.point}.{self.action}.{self.at}"


def read_order(text: str) -> Order | None:
    """Return the order that `WEIR_FAIL` gives; None if it is empty.

    Raises:
        ValueError: If it is not one.
    """
    if not text:
        return None
    found = ORDER.fullmatch(text)
    if found is None:
        msg = f'WEIR_FAIL must be <point>:kill|raise|sleep@n, got "{text}"'
        raise ValueError(msg)
    return Order(found["point"], found["action"], int(found["at"]))


_order = read_order(os.environ.get("WEIR_FAIL", ""))
_reached: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """Do what is ordered for a point, if anything is."""
    if _order is None or _order.point != name:
        return
    _reached[name] += 1
    if _reached[name] == _order.at and _first(_order):
        _act(_order)


def _first(order: Order) -> bool:
    """Note that an order is carried out; False if it was before, here or in another process."""
    try:
        with (Path(os.environ["WEIR_FAULTS_DIR"]) / order.note).open("x") as note:
            note.write(f"{os.getpid()}\n")
    except FileExistsError:
        return False
    return True


def _act(order: Order) -> None:
    if order.action == "sleep":
        time.sleep(SLEEP_S)
    elif order.action == "raise":
        msg = f"ordered at {order.point}"
        raise OrderedError(msg)
    else:
        _kill_session()


def _kill_session() -> None:
    """End every process of this part at once, this one last: Spark's worker is one of three."""
    # Here, for a worker is forked from a parent that has imported this.
    import psutil

    mine, session = os.getpid(), os.getsid(0)
    others = [pid for pid in psutil.pids() if pid != mine and _session_of(pid) == session]
    for pid in (*others, mine):
        os.kill(pid, signal.SIGKILL)


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None
