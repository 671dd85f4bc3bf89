"""A network of a test's own, which loses packets; and how many connections each service has.

A namespace of the kernel holds one loopback interface and nothing else. Whatever is started
while it is entered lives in it: the servers, the services, the test's own threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import psutil
from disruption.checker import RECOVERY_S
from disruption.rig import SERVICES, Rig

CLONE_NEWNET: Final = 0x4000_0000
# More connections than before a fault that are no leak.
SOCKETS: Final = 5


def iptables() -> str | None:
    """Return what drops packets; None where it is missing."""
    return shutil.which("iptables")


def ip_tool() -> str | None:
    """Return what brings an interface up; None where it is missing."""
    return shutil.which("ip")


@contextlib.contextmanager
def own_network() -> Iterator[None]:
    """Have this thread, and all that it starts within the block, use a network of its own.

    Raises:
        OSError: If the kernel refuses; only root may.
    """
    usual = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("unshare", CLONE_NEWNET)
        try:
            _run(ip_tool(), "link", "set", "lo", "up")
            yield
        finally:
            _call("setns", usual, CLONE_NEWNET)
    finally:
        os.close(usual)


@contextlib.contextmanager
def losing(share: float) -> Iterator[Callable[[], int]]:
    """Drop a share of all packets of TCP within the block; yield what counts them."""
    rule = ["INPUT", "-i", "lo", "-p", "tcp", "-m", "statistic", "--mode", "random"]
    rule += ["--probability", str(share), "-j", "DROP"]
    _run(iptables(), "-A", *rule)
    try:
        yield _dropped
    finally:
        _run(iptables(), "-D", *rule)


Sockets: TypeAlias = dict[str, list[int]]
"""Connections of each service, by process, the most first."""


def await_sockets(rig: Rig, before: Sockets) -> None:
    """Return once each service has as many connections as before the fault, but for a few."""
    now = sockets(rig)

    def are_back() -> bool:
        nonlocal now
        now = sockets(rig)
        return not far_off(before, now)

    try:
        rig.wait_until(are_back, "as many sockets as before", RECOVERY_S)
    except TimeoutError as error:
        msg = f"sockets of {far_off(before, now)} must come back to {before}, are {now}"
        raise AssertionError(msg) from error
    print(f"sockets before {before}, after {now}")  # noqa: T201


def far_off(before: Sockets, now: Sockets) -> list[str]:
    """Return the services that have more or fewer connections than before, but for a few.

    One that has none at all is not there.
    """
    return [
        part
        for part in before
        if not now[part] or abs(sum(now[part]) - sum(before[part])) > SOCKETS
    ]


def sockets(rig: Rig) -> Sockets:
    """Return how many connections each service has open."""
    return {name: connections(rig.part(name).pid()) for name in SERVICES}


def connections(pid: int | None) -> list[int]:
    """Return how many connections a process and those below it have open, the most first.

    Workers come and go while they are asked: who is gone has none.
    """
    if pid is None:
        return []
    found: list[int] = []
    with contextlib.suppress(psutil.Error):
        for one in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                found.append(len(one.net_connections("tcp")))
    return sorted(filter(None, found), reverse=True)


def _dropped() -> int:
    """Return how many packets the only rule has dropped."""
    lines = _run(iptables(), "-vnxL", "INPUT").splitlines()
    return int(lines[-1].split()[0])


def _run(tool: str | None, *words: str) -> str:
    done = subprocess.run((str(tool), *words), check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout


def _call(name: str, *told: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*told) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
