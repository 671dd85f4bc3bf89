"""Local TCP ports: find a free one, or say who is asked to give way."""

from __future__ import annotations

import socket

import psutil

HOST = "127.0.0.1"


def free_port() -> int:
    """Return a port of the loopback interface that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


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
