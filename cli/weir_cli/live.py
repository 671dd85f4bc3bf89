"""`weir top` at work: the live socket, followed over lost connections, and where it is shown."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from weir_cli import exits
from weir_cli.api import UnreachedError
from weir_cli.options import address, key, reached
from weir_cli.screen import lines_of, told
from weir_cli.telling import refuse, say, say_json
from weir_cli.watched import Watched, fold, query_of

PROTOCOL = Subprotocol("weir.v1")
TIMEOUT_S = 10.0
# A server sends a heartbeat each 2 s; silence of three of them is a lost connection.
SILENT_S = 6.0
DRAWN_S = 0.25
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
FATAL = frozenset({4400, 4401, 4413})
"""Codes after which trying again does not help (docs/api.md, section 3)."""

Show = Callable[[Watched, float | None], bool]


def run(asked: argparse.Namespace) -> int:
    """Watch until it is stopped; return the exit code.

    Raises:
        UsageError: If address or key cannot be used.
        UnreachedError: If the dashboard did not answer in time, or sends the key away.
    """
    api, secret = reached(asked), key(asked.key_file, os.environ)
    answer = api.call("GET", "/metrics")
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    queries = wanted_queries(answer.body["items"], asked.metrics)
    url = address(asked.url).rstrip("/").replace("http", "ws", 1) + "/api/v1/live"
    if asked.plain or asked.json or not sys.stdout.isatty():
        watch(url, secret, queries, reports(asked))
        return exits.DONE
    with drawn() as show:
        watch(url, secret, queries, show)
    return exits.DONE


def wanted_queries(metrics: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Return what is asked for each metric that is to be shown.

    Raises:
        UsageError: If one that was named is not there.
    """
    known = {metric["name"]: metric for metric in metrics}
    missing = [name for name in names if name not in known]
    if missing:
        got = ", ".join(missing)
        msg = f"METRIC must be one of this tenant's, got {got}; `weir get metric` lists them"
        raise exits.UsageError(msg)
    shown = [known[name] for name in names] if names else metrics[:20]
    return [query for metric in shown if (query := query_of(metric)) is not None]


# ── the connection ──────────────────────────────────────────────────────────


def watch(url: str, secret: str, queries: list[dict[str, Any]], show: Show) -> None:
    """Follow the live socket and show what it says, over lost connections, until shown enough.

    Args:
        url: Of the socket.
        secret: API key.
        queries: What to ask for of metrics.
        show: Given what is known and for how long the connection is lost; whether to go on.

    Raises:
        UnreachedError: If the server closes for a reason that trying again does not mend.
    """
    state, pause_s = Watched(asked=len(queries)), FIRST_PAUSE_S
    lost_at_s = time.monotonic()
    while True:
        try:
            with connect(
                url, subprotocols=[PROTOCOL], compression=None, open_timeout=TIMEOUT_S,
                max_size=2**24,
            ) as socket:  # fmt: skip
                for message in _asked(secret, queries):
                    socket.send(json.dumps(message))
                for frame in _frames(socket):
                    state, pause_s = fold(state, frame), FIRST_PAUSE_S
                    if not show(state, None):
                        return
                lost_at_s = time.monotonic()
                if socket.close_code in FATAL:
                    raise UnreachedError(_closed(socket.close_code))
        except (OSError, WebSocketException):
            pass  # it is tried again, and shown as lost
        if not show(state, time.monotonic() - lost_at_s):
            return
        time.sleep(random.uniform(0, pause_s))  # noqa: S311  spreads clients, no secret
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _closed(code: int | None) -> str:
    return (
        f"the dashboard must keep the connection, closed it with code {code}; "
        "see whether the key still holds, and has the scope read"
    )


def _asked(secret: str, queries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"op": "hello", "v": 1, "auth": secret}
    yield {"op": "subscribe", "id": 1, "to": "pipeline"}
    yield {"op": "subscribe", "id": 2, "to": "alerts"}
    for number, query in enumerate(queries, 3):
        yield {"op": "subscribe", "id": number, "to": "query", "query": query}


def _frames(socket: ClientConnection) -> Iterator[dict[str, Any]]:
    """Yield frames until the connection ends, or the server is silent for too long."""
    while True:
        try:
            yield json.loads(socket.recv(timeout=SILENT_S))
        except (TimeoutError, WebSocketException):
            return


# ── where it is shown ───────────────────────────────────────────────────────


def reports(asked: argparse.Namespace) -> Show:
    """Return what writes a report now and then, the first once everything is known."""
    left, due_s = asked.count, 0.0

    def show(state: Watched, lost_s: float | None) -> bool:
        nonlocal left, due_s
        if time.monotonic() < due_s or (lost_s is None and not state.is_whole):
            return True
        due_s = time.monotonic() + asked.every
        if asked.json:
            say_json({**told(state), "lost_s": lost_s})
        else:
            say("\n".join([*lines_of(state, width=200, height=500, lost_s=lost_s), ""]))
        left = None if left is None else left - 1
        return left is None or left > 0

    return show


@contextmanager
def drawn() -> Iterator[Show]:
    """Give what draws on the terminal; what was there before comes back at the end."""
    drawn_s = 0.0

    def show(state: Watched, lost_s: float | None) -> bool:
        nonlocal drawn_s
        if lost_s is None and time.monotonic() - drawn_s < DRAWN_S:
            return True
        drawn_s = time.monotonic()
        size = shutil.get_terminal_size()
        lines = lines_of(state, width=size.columns, height=size.lines, lost_s=lost_s)
        sys.stdout.write("\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J")
        sys.stdout.flush()
        return True

    sys.stdout.write("\x1b[?1049h\x1b[?25l")
    try:
        yield show
    finally:
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()
