"""Servers for tests: a broker, or a whole stack that is used through its public API.

A stack runs without the keeper, so a part that a test kills stays down until the test
starts it again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weir_local import ports
from weir_local.client import Answer, ApiClient
from weir_local.home import Home, Ports
from weir_local.kafka import Broker
from weir_local.services import addresses, ask
from weir_local.stack import CORE, Stack
from weir_local.topics import TOPICS
from weir_local.waiting import T, wait_until

READY_TIMEOUT_S = 300.0


def free_port_base() -> int:
    """Return a port from which on all ports that a stack needs are free now.

    Raises:
        RuntimeError: If a hundred tries found none.
    """
    first, last = ports.STACKS[0], ports.STACKS[-1]
    for base in random.sample(ports.STACKS, 100):
        if all(ports.is_free(port) for port in Ports(base).by_use.values()):
            return base
    msg = f"eight free ports in a row must exist from {first} to {last}, found none in 100 tries"
    raise RuntimeError(msg)


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """Yield a broker with Weir's topics, all of them empty; it ends with the block."""
    broker = Broker(folder)
    broker.start()
    try:
        broker.create_topics(TOPICS)
        yield broker
    finally:
        broker.kill()


class TestStack:
    """A running stack and what tests do with it."""

    __test__ = False  # pytest: this is no test class

    def __init__(self, folder: Path, port_base: int | None = None) -> None:
        """Prepare a stack in a folder; nothing is started yet."""
        self.home = Home(folder, port_base or free_port_base())
        self.stack = Stack(self.home)
        known = addresses(self.home)
        self.ingest_url = known["WEIR_INGEST_URL"]
        self.dashboard_url = known["WEIR_DASHBOARD_URL"]
        self.kafka_bootstrap = known["WEIR_KAFKA_BOOTSTRAP"]
        self.redis_url = known["WEIR_REDIS_URL"]
        self.key = known["WEIR_API_KEY"]
        self._ingest = ApiClient(self.ingest_url, self.key, patience_s=READY_TIMEOUT_S)
        self._api = ApiClient(self.dashboard_url, self.key, patience_s=READY_TIMEOUT_S)

    def start(self, names: tuple[str, ...] = CORE) -> None:
        """Start the parts and return when all are ready."""
        self.stack.start(names)

    def stop(self) -> None:
        """Stop every part cleanly."""
        self.close()
        self.stack.stop()

    def close(self) -> None:
        """Close the connections; the parts go on."""
        self._ingest.close()
        self._api.close()

    def post(self, events: Sequence[dict[str, Any]]) -> Answer:
        """Post events as one CloudEvents batch; 503 is waited out with the same ids."""
        return self._ingest.post_events(list(events))

    def query(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of `POST /api/v1/query`."""
        answer: dict[str, Any] = self.api("POST", "/query", body).body
        return answer

    def api(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Call the dashboard's API; `path` comes after `/api/v1`."""
        return self._api.call(method, f"/api/v1{path}", body, headers)

    def define(self, kind: str, name: str, text: str) -> Answer:
        """Put a new definition."""
        put = f"/definitions/{kind}/{name}"
        return self.api("PUT", put, {"text": text}, {"If-None-Match": "*"})

    def await_whole(self, metric: str, window: str, timeout_s: float = 60.0) -> None:
        """Return when a metric just defined has been counted for a whole window.

        A window that began before that is incomplete: it says so, and it changes no alert.

        Args:
            metric: One that keeps `count` and whose panes divide a second.
            window: The window's length, such as "10s".
            timeout_s: How long to wait.

        Raises:
            TimeoutError: If the deadline passed.
        """
        asked = {
            **{"metric": metric, "aggregate": "count", "step": "1s", "range": {"last": "5s"}},
            "window": {"kind": "sliding", "length": window},
        }

        def is_whole() -> bool:
            series = self.query(asked)["series"]
            return bool(series) and set(series[0]["state"]) <= {"p", "f"}

        progress = f"/definitions/metric/{metric}/progress"
        self.wait_until(
            lambda: self.api("GET", progress).body["serving"], f"{metric} counted", timeout_s
        )
        self.wait_until(is_whole, f"windows of {metric} that are counted whole", timeout_s)

    def kill(self, name: str) -> None:
        """End every process of a part at once (SIGKILL)."""
        self.stack.parts[name].kill()

    def restart(self, name: str, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Start a part again and return when it is ready."""
        self.stack.launch(name)
        self.wait_until(lambda: self.stack.is_ready(name), f"{name} ready", timeout_s)

    def log(self, name: str) -> str:
        """Return what a part has written so far."""
        return self.stack.parts[name].log_path.read_text(errors="replace")

    def figures(self, name: str) -> dict[str, float]:
        """Return what a part tells Prometheus, by series as it is written there."""
        _status, text = ask(self.home.ports[f"{name} ops"], "/metrics")
        lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {series: float(value) for series, _space, value in lines}

    def wait_until(
        self, look: Callable[[], T | None], what: str = "it", timeout_s: float = 30.0
    ) -> T:
        """Call `look` until it returns something true, and return that.

        Raises:
            TimeoutError: If the deadline passed.
        """
        return wait_until(look, timeout_s=timeout_s, what=what, every_s=0.1)
