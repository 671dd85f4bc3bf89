"""`weir top` on connections that fail, are closed, or tell less than was asked for."""

from __future__ import annotations

import json
import os
import pty
import random
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve
from weir import names
from weir.clock import ManualClock
from weir_cli import live
from weir_cli.api import UnreachedError
from weir_cli.watched import Watched

from .conftest import Command, finish
from .test_top import FRAMES, folded, read_until

Talk = Callable[[ServerConnection, list[dict[str, Any]]], None]


def metric(name: str) -> dict[str, Any]:
    """Return a metric as the API lists it."""
    return {"name": name, "aggregates": ["rate"], "resolution_ms": 10_000}


@contextmanager
def dashboard(talk: Talk | None, *metrics: str) -> Iterator[str]:
    """Serve a list of metrics and a live socket; give the address.

    Args:
        talk: What the socket does with a client, given all that it asked; None for no socket.
        metrics: Names.
    """

    def http(connection: ServerConnection, request: Request) -> Response | None:
        if request.path.endswith("/metrics"):
            body = json.dumps({"items": [metric(name) for name in metrics]})
            answer = connection.respond(HTTPStatus.OK, body)
            answer.headers[names.HTTP_API] = names.API_VERSION
            return answer
        return connection.respond(HTTPStatus.NOT_FOUND, "no") if talk is None else None

    def handle(connection: ServerConnection) -> None:
        # hello, the parts, the alerts, and each metric.
        asked = [json.loads(connection.recv())]
        while len(asked) < wanted:
            asked.append(json.loads(connection.recv(timeout=10)))
        assert talk is not None
        talk(connection, asked)

    wanted = 3 + len(metrics)
    server: Server = serve(
        handle, "127.0.0.1", 0, process_request=http, subprotocols=[live.PROTOCOL]
    )
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"


def tell(connection: ServerConnection, frames: list[dict[str, Any]]) -> None:
    """Send frames, and keep the connection until the client ends it."""
    for frame in frames:
        connection.send(json.dumps(frame))
    for _ in connection:
        pass


class TestReports:
    @pytest.mark.parametrize("words", [(), ("--json",)])
    def test_without_a_connection_there_is_no_report(
        self, tmp_path: Path, words: tuple[str, ...]
    ) -> None:
        """Exit code 3 and the reason; nothing that reads like numbers is written."""
        with dashboard(None) as url:
            command = Command(tmp_path, url, "wk_key")
            written, errors = command.do("top", "-n", "1", *words, code=3)
        assert [list(json.loads(line)) for line in written.splitlines()] == (
            [["error"]] if words else []
        )
        assert errors.startswith("weir: the dashboard must keep the live connection, server ")
        assert "HTTP 404; --wait waits longer\n" in errors

    def test_the_connection_is_waited_for(self, tmp_path: Path) -> None:
        """As long as --wait says: one that is lost at first is tried again."""
        lost: list[Any] = []

        def talk(connection: ServerConnection, asked: list[dict[str, Any]]) -> None:
            if not lost:
                lost.append(asked)
                connection.close(1013, "not ready")
            else:
                tell(connection, FRAMES)

        with dashboard(talk, "orders") as url:
            command = Command(tmp_path, url, "wk_key")
            written, _ = command.do("top", "-n", "1", "--json", "--wait", "30")
        (found,) = map(json.loads, written.splitlines())
        assert (found["lost_s"], found["metrics"][0]["value"]) == (None, 5.0)
        assert lost

    def test_a_metric_named_twice_is_asked_for_once(self, tmp_path: Path) -> None:
        """Both would share one key, and one of them would be waited for for ever."""
        seen: list[dict[str, Any]] = []

        def talk(connection: ServerConnection, asked: list[dict[str, Any]]) -> None:
            seen.extend(asked)
            for frame in FRAMES:
                connection.send(json.dumps(frame))
            seen.extend(json.loads(message) for message in connection)

        with dashboard(talk, "orders") as url:
            Command(tmp_path, url, "wk_key").do("top", "orders", "orders", "-n", "1")
        assert [one.get("to") for one in seen] == [None, "pipeline", "alerts", "query"]

    @pytest.mark.parametrize(
        ("code", "mend"),
        [
            (4401, "see whether the key still holds, and has the scope read"),
            (4413, "too much was asked for at once, so name fewer metrics"),
            (4400, "it did not understand what was sent, so use the `weir` of its release"),
        ],
    )
    def test_what_is_closed_for_good(self, tmp_path: Path, code: int, mend: str) -> None:
        """The dashboard's reason, and what helps against this one."""
        with dashboard(lambda connection, _: connection.close(code, "why not")) as url:
            _, errors = Command(tmp_path, url, "wk_key").do("top", code=3)
        assert errors == (
            f'weir: the dashboard must keep the connection, closed it with code {code} ("why '
            f'not"); {mend}\n'
        )

    def test_what_is_closed_while_it_is_asked(self, tmp_path: Path) -> None:
        """It is no lost connection either: what is sent then fails with the same code."""
        closed: list[bool] = []

        def talk(connection: ServerConnection, _: list[dict[str, Any]]) -> None:
            connection.close(4401, "revoked")
            closed.append(True)

        def late(secret: str, asked: Any) -> Iterator[dict[str, Any]]:
            before, deadline_s = len(closed), time.monotonic() + 10
            yield from asks(secret, asked)
            while len(closed) == before:
                assert time.monotonic() < deadline_s
                time.sleep(0.01)
            yield {"op": "pace", "hz": 1}

        asks = live._asked
        with dashboard(talk) as url, pytest.MonkeyPatch.context() as patch:
            patch.setattr(live, "_asked", late)
            _, errors = Command(tmp_path, url, "wk_key").do("top", code=3)
        assert 'closed it with code 4401 ("revoked"); see whether the key' in errors

    @pytest.mark.parametrize(("number", "code"), [(63, 2), (62, 3)])
    def test_more_metrics_than_a_socket_takes(self, tmp_path: Path, number: int, code: int) -> None:
        """It is said before the socket is opened, and how many may be named."""
        names = [f"m{n}" for n in range(number)]
        with dashboard(lambda connection, _: connection.close(4401), *names) as url:
            _, errors = Command(tmp_path, url, "wk_key").do("top", *names, code=code)
        told = "METRIC must name at most 62 at once, got 63; name fewer" in errors
        assert told == (code == 2)

    def test_what_is_never_told_is_not_waited_for_for_ever(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Exit code 3, and what is missing."""
        monkeypatch.setattr(live, "UNTOLD_S", 0.0)
        some = [one for one in FRAMES if one["op"] != "alerts"]
        with dashboard(lambda connection, _: tell(connection, some), "orders") as url:
            _, errors = Command(tmp_path, url, "wk_key").do("top", "-n", "1", code=3)
        assert errors.startswith("weir: the dashboard must tell ")
        assert "alerts, " in errors

    def test_a_lost_connection_between_reports(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A restart costs no report; without an end to come, that it is lost is told."""
        asked = Namespace(count=2, every=0.0, wait=5.0, json=False)
        state, report = folded(FRAMES), live.Reports(asked)
        assert report(state, None)
        assert report(state, 1.0)
        assert not report(state, None)
        assert "no connection" not in capsys.readouterr().out
        assert live.Reports(Namespace(**{**vars(asked), "count": None}))(state, 1.0)
        assert "no connection for 1 s" in capsys.readouterr().out
        hasty = live.Reports(Namespace(**{**vars(asked), "wait": 0.0}))
        with pytest.raises(UnreachedError, match="must keep the live connection"):
            hasty(Watched(), 0.1)


def test_sigterm_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    """As Ctrl-C does; the code is what a shell tells of a command that was ended so."""
    ours, theirs = pty.openpty()
    with dashboard(lambda connection, _: tell(connection, FRAMES), "orders") as url:
        process = Command(tmp_path, url, "wk_key").begin("top", stdout=theirs)
        os.close(theirs)
        try:
            read_until(ours, b"orders rate")
            process.terminate()
            assert b"\x1b[?25h" in read_until(ours, b"\x1b[?1049l")
            assert finish(process, 143)[1] == ""
        finally:
            process.kill()
            process.wait()
            os.close(ours)


def test_a_lost_connection_is_shown_as_time_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two attempts, which may be half a minute apart."""
    clock, shown = ManualClock(), list[float]()
    hands = SimpleNamespace(
        monotonic=clock.monotonic_s, sleep=lambda seconds: clock.advance(round(seconds * 1000))
    )
    monkeypatch.setattr(live, "time", hands)
    monkeypatch.setattr(random, "uniform", lambda _low, high: high)

    def show(lost_s: float) -> bool:
        shown.append(lost_s)
        return True

    assert live._pause(show, -2.0, 3.5)
    assert shown == [2.0, 3.0, 4.0, 5.0, 5.5]
    assert not live._pause(lambda _: False, 0.0, 30.0)
