"""I10: within 10 s of any stall every number says since when it is stale, and why."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from weir import names
from weir.rows import Row
from weir_local.redis import RedisServer
from weir_local.testing import running_broker
from weir_local.waiting import wait_until

from .conftest import Engine
from .test_live_socket import greeted
from .watching import asked, ten_seconds_ago

if TYPE_CHECKING:
    from weir_local.kafka import Broker
    from weir_local.server import Server

    from .conftest import Running

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

LIMIT_S = 10.0


@pytest.fixture(scope="module")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return a broker of this module's own, to be stopped."""
    with running_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="module")
def kafka(kafka_broker: Broker) -> str:
    """Return its address."""
    return kafka_broker.bootstrap


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Return a Redis of this module's own, to be stopped."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


class Beating:
    """Commits a batch and beats for `panes` and `ingest` twice a second, as the services do.

    Each batch adds to the pane of a metric that ended last, so that queries are due.
    """

    def __init__(self, running: Running, engine: Engine, vid: int) -> None:
        self.running, self._engine, self._vid = running, engine, vid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.driver = self.ingest = True

    def __enter__(self) -> Beating:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            try:
                if self.ingest:
                    self._beat("ingest", {"received_ms": now_ms()})
                if self.driver:
                    self._beat("panes", {"doing": "counting", "lag_records": 0})
                    self._engine.commit({(self._vid, 10, ten_seconds_ago(1)): {"=eu": Row(1)}})
            except Exception:  # noqa: BLE001, S112  what is stopped does not answer: that is meant
                continue

    def _beat(self, name: str, detail: dict[str, Any]) -> None:
        beat = {"at_ms": now_ms(), "status": "ok", "version": "1", "detail": detail}
        self.running.redis.set(names.part_key(name, "test"), json.dumps(beat), ex=15)


def now_ms() -> int:
    """Return the present."""
    return time.time_ns() // 1_000_000


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    """Let a server stand still, as on a machine that hangs."""
    server.part.send(signal.SIGSTOP)
    try:
        yield
    finally:
        server.part.send(signal.SIGCONT)


def status(http: httpx.Client) -> dict[str, Any]:
    """Return what the API says of the parts and of freshness."""
    found: dict[str, Any] = http.get("/status").json()
    return found


@pytest.mark.parametrize(
    ("what", "part", "codes"),
    [
        ("driver", "panes", {"driver_away", "batch_stuck"}),
        ("redis", "redis", {"redis_away"}),
        ("kafka", "kafka", {"kafka_away"}),
        ("ingest", "ingest", {"ingest_away"}),
        ("hub", "hub", {"hub_away"}),
    ],
)
def test_a_stall_is_told_within_ten_seconds(
    running: Running,
    engine: Engine,
    metric: tuple[str, int],
    kafka_broker: Broker,
    redis_server: RedisServer,
    what: str,
    part: str,
    codes: set[str],
) -> None:
    """On the live socket, in the status and in answers; and no longer once it goes on."""
    engine.commit({(metric[1], 10, ten_seconds_ago(2)): {"=eu": Row(7)}})
    servers = {"kafka": kafka_broker, "redis": redis_server}
    with (
        Beating(running, engine, metric[1]) as beating,
        running.client() as http,
        greeted(running) as client,
    ):
        client.say("subscribe", id=1, to="query", query=asked(metric[0]))
        client.hear("snapshot")
        wait_until(lambda: status(http)["fresh"]["status"] == "live", timeout_s=20, what="live")
        at_ms = now_ms()
        with stall(what, beating, servers):
            fresh = client.hear("heartbeat")["fresh"]
            while fresh["status"] != "stale":
                assert now_ms() - at_ms < LIMIT_S * 1_000
                fresh = client.hear("heartbeat", timeout_s=LIMIT_S)["fresh"]
            told = status(http)
            assert (fresh["part"], told["fresh"]["part"]) == (part, part)
            assert abs(fresh["since_ms"] - at_ms) < 4_000
            assert told["holding"]["code"] in codes
            if what != "redis":
                answer = http.post("/query", json=asked(metric[0])).json()
                assert answer["fresh"]["status"] == "stale"
        wait_until(lambda: status(http)["fresh"]["status"] == "live", timeout_s=30, what="live")


@contextmanager
def stall(what: str, beating: Beating, servers: dict[str, Server]) -> Iterator[None]:
    """Let one part stand still."""
    if what in servers:
        with stopped(servers[what]):
            yield
    elif what == "hub":
        with unanswered(beating.running):
            yield
    else:
        setattr(beating, what, False)
        yield
        setattr(beating, what, True)


@contextmanager
def unanswered(running: Running) -> Iterator[None]:
    """Let the hub wait for an answer that does not come, to whatever is subscribed to.

    All else of the dashboard goes on: its own loop, and what is asked over HTTP.
    """
    go_on = asyncio.Event()

    async def wait(answer: Callable[[], Awaitable[Any]]) -> Any:
        await go_on.wait()
        return await answer()

    with pytest.MonkeyPatch.context() as patched:
        for feed in running.dashboard.hub._feeds.all():
            patched.setattr(feed.question, "answer", partial(wait, feed.question.answer))
        yield
        running.loop.call_soon_threadsafe(go_on.set)
