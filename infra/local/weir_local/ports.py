"""Local TCP ports: find a free one, or say who is asked to give way."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from functools import cache
from itertools import cycle

import psutil

HOST = "127.0.0.1"
# Both below the range from which the system gives ports to outgoing connections: a port that
# it has drawn is anybody's again until the server that it is for listens, which takes seconds.
STACKS = range(10_000, 20_000, 10)
"""Where the ports of a test's stack begin."""
SINGLE = range(20_000, 32_000)
"""Ports for single servers."""
_PROCESSES = 16


def free_port() -> int:
    """Return a port of the loopback interface that nothing listens on now.

    Not one that this process had before, as long as there are others; and processes with other
    last digits have others.

    Raises:
        RuntimeError: If none of its ports is free.
    """
    own = _own_ports(os.getpid())
    for _ in range(len(SINGLE) // _PROCESSES):
        if is_free(port := next(own)):
            return port
    msg = f"a port must be free between {SINGLE[0]} and {SINGLE[-1]}, found none; end some servers"
    raise RuntimeError(msg)


@cache
def _own_ports(pid: int) -> Iterator[int]:
    """Return a process's part of the single ports, in an order of its own, again and again."""
    own = list(SINGLE[pid % _PROCESSES :: _PROCESSES])
    random.shuffle(own)
    return cycle(own)


def is_free(port: int) -> bool:
    """Return whether a server could listen on this port now.

    A port whose last server has only just ended counts as free: servers bind with
    SO_REUSEADDR too.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def answers(port: int, timeout_s: float = 0.2) -> bool:
    """Return whether something accepts connections on this port."""
    try:
        with socket.create_connection((HOST, port), timeout=timeout_s):
            return True
    except OSError:
        return False


def listener(port: int) -> str:
    """Return who listens on this port, as far as we may know: `name (pid n)`."""
    try:
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN
            if listens and connection.laddr[1:2] == (port,) and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    except psutil.Error:  # on some systems only root may look
        pass
    return "another program"
