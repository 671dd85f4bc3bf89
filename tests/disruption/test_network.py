"""How connections are counted, of processes that come and go."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest
from disruption.network import SOCKETS, connections, far_off

# A process of its own: this one has clients of other tests, which come and go.
LISTENS = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)):
    print("listening", flush=True)
    sys.stdin.read()
"""


def test_a_worker_that_has_gone_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ends between being listed and being asked has none, and the rest is counted."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        gone = psutil.Process(ended.pid)
    with subprocess.Popen(  # noqa: S603  the program is ours
        [sys.executable, "-c", LISTENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as one:
        assert one.stdout is not None
        one.stdout.readline()
        monkeypatch.setattr(psutil.Process, "children", lambda _self, recursive: [gone] * recursive)
        assert connections(one.pid) == [1]


def test_a_process_that_is_not_there_has_none() -> None:
    """Neither one that was never started nor one that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    assert [connections(None), connections(ended.pid)] == [[], []]


def test_a_few_connections_more_or_fewer_are_none() -> None:
    """Beyond that a service is named: it leaves them open, or has not come back."""
    before = {"ingest": [3], "panes": [20, 10]}
    for now in ([30 + SOCKETS], [15, 15 - SOCKETS], [20, 10]):
        assert far_off(before, {"ingest": [3], "panes": now}) == []
    for now in ([31 + SOCKETS], [15, 14 - SOCKETS], []):
        assert far_off(before, {"ingest": [3], "panes": now}) == ["panes"]
    assert far_off(before, {"ingest": [], "panes": [30]}) == ["ingest"]
