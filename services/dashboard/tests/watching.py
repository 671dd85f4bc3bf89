"""A client that follows one query, and what the tests of queries ask."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import Any

from websockets.sync.client import connect
from websockets.typing import Subprotocol
from weir.live import apply

METRIC = """
kind: metric
name: {name}
events: {{type: web.request}}
by: [data.region]
aggregates: [count, rate]
resolution: 10s
keep: {{10s: 24h}}
allowed_lateness: 1m
"""


def ten_seconds_ago(steps: int = 0) -> int:
    """Return the start of a whole pane of 10 s, some panes back, in seconds."""
    return int(time.time()) // 10 * 10 - 10 * steps


def asked(name: str, **members: Any) -> dict[str, Any]:
    """Return a query for the last ten minutes by region."""
    query = {
        "metric": name,
        "aggregate": "count",
        "by": ["region"],
        "window": {"kind": "tumbling", "length": "10s"},
        "step": "10s",
        "range": {"last": "5m"},
    }
    return {**query, **members}


class Watcher:
    """A client that follows one query and folds what it hears, as the browser does."""

    def __init__(self, running: Any, query: dict[str, Any]) -> None:
        self._running, self._query = running, query
        self.answer: dict[str, Any] | None = None
        self.deltas = self.snapshots = 0
        self._parts: list[dict[str, Any]] = []
        self._stack = ExitStack()
        self.open()

    def close(self) -> None:
        """Cut the connection, if there is one."""
        self._stack.close()

    def open(self) -> None:
        """Connect, and resume from what is held."""
        self.close()
        self.socket = self._stack.enter_context(
            connect(self._running.live_url, subprotocols=[Subprotocol("weir.v1")], compression=None)
        )
        held = self.answer
        position = None if held is None else {"epoch": held["epoch"], "rev": held["rev"]}
        say = self.socket.send
        say(json.dumps({"op": "hello", "v": 1, "auth": self._running.key}))
        say(
            json.dumps(
                {"op": "subscribe", "id": 1, "to": "query", "query": self._query, "from": position}
            )
        )

    def listen(self, until: Any, timeout_s: float = 30) -> None:
        """Fold frames until a condition holds of the answer."""
        deadline = time.monotonic() + timeout_s
        while self.answer is None or not until(self.answer):
            left = deadline - time.monotonic()
            assert left > 0, f"the answer never came to it: {self.answer}"
            self.fold(json.loads(self.socket.recv(timeout=left)))

    def fold(self, frame: dict[str, Any]) -> None:
        """Fold one frame."""
        assert frame["op"] != "error", frame
        if frame["op"] == "snapshot":
            self.snapshots += frame["part"] == 1
            earlier = self._parts if frame["part"] > 1 else []
            self._parts = [*earlier, *frame["answer"]["series"]]
            if frame["part"] == frame["parts"]:
                self.answer = {**frame["answer"], "series": self._parts}
        elif frame["op"] == "delta":
            self.deltas += 1
            assert self.answer is not None
            self.answer = apply(self.answer, frame)  # type: ignore[arg-type]


def total(answer: dict[str, Any], region: str) -> int:
    """Return how many events of a region an answer counts."""
    found = [s for s in answer["series"] if s["by"].get("region") == region]
    return sum(count or 0 for s in found for count in s["count"])
