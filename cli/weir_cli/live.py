"""`weir top` at work: the live socket, followed over lost connections, and where it is shown."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any, NoReturn

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from weir_cli import exits
from weir_cli.api import UnreachedError
from weir_cli.options import address, key, reached
from weir_cli.screen import lines_of, told
from weir_cli.telling import refuse, say, say_json
from weir_cli.watched import ALERTS, FIRST_METRIC, PIPELINE, Watched, fold, query_of

PROTOCOL = Subprotocol("weir.v1")
TIMEOUT_S = 10.0
# A server sends a heartbeat each 2 s; silence of three of them is a lost connection.
SILENT_S = 6.0
DRAWN_S = 0.25
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
# How often it is shown that a connection is still lost.
TICK_S = 1.0
# How long a server may take to tell all that was asked for: a query of a large metric is slow.
UNTOLD_S = 30.0
# A socket may have 64 subscriptions, and two are to the parts and the alerts.
MOST_METRICS = 62
FATAL = {
    4400: "it did not understand what was sent, so use the `weir` of its release",
    4401: "see whether the key still holds, and has the scope read",
    4413: "too much was asked for at once, so name fewer metrics",
}
"""Codes after which trying again does not help (docs/api.md, section 3), and what does."""

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
        watch(url, secret, queries, Reports(asked))
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
    shown = [known[name] for name in dict.fromkeys(names)] if names else metrics[:20]
    if len(shown) > MOST_METRICS:
        msg = f"METRIC must name at most {MOST_METRICS} at once, got {len(shown)}; name fewer"
        raise exits.UsageError(msg)
    return [query_of(metric) for metric in shown]


# ── the connection ──────────────────────────────────────────────────────────


def watch(url: str, secret: str, queries: list[dict[str, Any]], show: Show) -> None:
    """Follow the live socket and show what it says, over lost connections, until shown enough.

    Args:
        url: Of the socket.
        secret: API key.
        queries: What to ask for of metrics.
        show: Given what is known and for how long the connection is lost; whether to go on.

    Raises:
        UnreachedError: If the server closes for a reason that trying again does not mend, or
            `show` has waited long enough.
    """
    state = Watched(asked=dict(enumerate(queries, FIRST_METRIC)))
    pause_s, heard_s = FIRST_PAUSE_S, time.monotonic()
    while True:
        try:
            with connect(
                url, subprotocols=[PROTOCOL], compression=None, open_timeout=TIMEOUT_S,
                max_size=2**24,
            ) as socket:  # fmt: skip
                for message in _asked(secret, state.asked):
                    socket.send(json.dumps(message))
                for frame in _frames(socket):
                    state, pause_s, heard_s = fold(state, frame), FIRST_PAUSE_S, time.monotonic()
                    if not show(state, None):
                        return
                why = _ended(socket.close_code, socket.close_reason)
                state = replace(state, lost=state.lost or why)
        except ConnectionClosed as closed:  # while something was sent
            code, reason = (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (None, None)
            state = replace(state, lost=_ended(code, reason))
        except (OSError, WebSocketException) as error:
            state = replace(state, lost=str(error))  # it is tried again, and shown as lost
        if not _pause(partial(show, state), heard_s, pause_s):
            return
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _pause(show: Callable[[float], bool], heard_s: float, pause_s: float) -> bool:
    """Wait before the next attempt, showing how time goes on; return whether to go on."""
    until_s = time.monotonic() + random.uniform(0, pause_s)  # noqa: S311  spreads clients
    while True:
        now_s = time.monotonic()
        if not show(now_s - heard_s):
            return False
        if now_s >= until_s:
            return True
        time.sleep(min(TICK_S, until_s - now_s))


def _ended(code: int | None, reason: str | None) -> str:
    """Return why a connection has ended.

    Raises:
        UnreachedError: If trying again does not help.
    """
    if code in FATAL:
        said = f' with code {code} ("{reason}")' if reason else f" with code {code}"
        msg = f"the dashboard must keep the connection, closed it{said}; {FATAL[code]}"
        raise UnreachedError(msg)
    return reason or (f"closed with code {code}" if code else f"silent for {SILENT_S:g} s")


def _asked(secret: str, asked: Mapping[int, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"op": "hello", "v": 1, "auth": secret}
    yield {"op": "subscribe", "id": PIPELINE, "to": "pipeline"}
    yield {"op": "subscribe", "id": ALERTS, "to": "alerts"}
    for number, query in asked.items():
        yield {"op": "subscribe", "id": number, "to": "query", "query": query}


def _frames(socket: ClientConnection) -> Iterator[dict[str, Any]]:
    """Yield frames until the connection ends, or the server is silent for too long."""
    while True:
        try:
            yield json.loads(socket.recv(timeout=SILENT_S))
        except (TimeoutError, WebSocketException):
            return


# ── where it is shown ───────────────────────────────────────────────────────


class Reports:
    """Writes a report now and then, the first once everything is known.

    Where so many were asked for, only what is known is one of them, and it is not waited for
    for ever: a lost connection as long as `--wait` says, or until the next report is due.
    """

    def __init__(self, asked: argparse.Namespace) -> None:
        """Prepare; nothing is written.

        Args:
            asked: The command line: `count`, `every`, `wait` and `json`.
        """
        self._left: int | None = asked.count
        self._every_s, self._wait_s, self._as_json = asked.every, asked.wait, asked.json
        self._due_s = 0.0
        self._known_s = time.monotonic()
        self._has_reported = False

    def __call__(self, state: Watched, lost_s: float | None) -> bool:
        """Write what is due; return whether to go on: not where nobody reads any more.

        Raises:
            UnreachedError: If what was asked for does not come.
        """
        now_s = time.monotonic()
        is_known = lost_s is None and state.is_whole
        if is_known:
            self._known_s = now_s
        elif self._left is not None:
            self._give_up(state, now_s, lost_s)
        if now_s < self._due_s or not (is_known or (lost_s is not None and self._left is None)):
            return True
        self._due_s = now_s + self._every_s
        is_read = self._write(state, lost_s)
        self._has_reported = True
        self._left = None if self._left is None else self._left - 1
        return is_read and (self._left is None or self._left > 0)

    def _give_up(self, state: Watched, now_s: float, lost_s: float | None) -> None:
        if lost_s is None:
            most_s = max(self._wait_s, UNTOLD_S)
            why = f"has not for {most_s:g} s; --wait waits longer"
            msg = f"the dashboard must tell {', '.join(state.untold)}, {why}"
        else:
            most_s = max(self._wait_s, self._every_s if self._has_reported else 0.0)
            lost = state.lost or "it was lost"
            msg = f"the dashboard must keep the live connection, {lost}; --wait waits longer"
        if now_s - self._known_s >= most_s:
            raise UnreachedError(msg)

    def _write(self, state: Watched, lost_s: float | None) -> bool:
        if self._as_json:
            return say_json({**told(state), "lost_s": lost_s})
        return say("\n".join([*lines_of(state, width=200, height=500, lost_s=lost_s), ""]))


@contextmanager
def drawn() -> Iterator[Show]:
    """Give what draws on the terminal; what was there before comes back at the end.

    SIGTERM is such an end too: by itself it would leave the screen as drawn, without a cursor.
    """
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

    before = signal.signal(signal.SIGTERM, _end)
    sys.stdout.write("\x1b[?1049h\x1b[?25l")
    try:
        yield show
    finally:
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()
        signal.signal(signal.SIGTERM, before)


def _end(number: int, _: FrameType | None) -> NoReturn:
    # The code that a shell tells of what a signal has ended.
    sys.exit(128 + number)
