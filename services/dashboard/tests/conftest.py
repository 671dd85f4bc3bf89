"""A real dashboard, served by uvicorn in a thread, against a real Kafka and Redis."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from redis import Redis
from weir import names
from weir.batches import FIELD, BatchRecord, Opening, encode, entry_id
from weir.changed import MOST_LISTED, folded
from weir.clock import SystemClock
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import DriverStart, NewRecord, start_record
from weir.erasure import subject_hash
from weir.rows import Row, merge_packed
from weir_dashboard.__main__ import public_server
from weir_dashboard.app import build
from weir_dashboard.auth.callers import hash_key_text
from weir_dashboard.definitions.writer import Expected
from weir_dashboard.running import Dashboard
from weir_dashboard.settings import Settings
from weir_local.kafka import Broker
from weir_local.ports import free_port
from weir_local.redis import RedisServer
from weir_local.testing import running_broker
from weir_local.waiting import wait_until
from weir_service.probes import Server
from written import mark, short_id

from .watching import METRIC

PaneKey = tuple[int, int, int]
HASH_KEY = "a hash key for tests"


@dataclass
class Running:
    """A dashboard that serves.

    Attributes:
        url: `http://127.0.0.1:port`.
        key: An API key of tenant `default` with every scope.
        dashboard: The service itself, to look into.
    """

    url: str
    key: str
    dashboard: Dashboard
    loop: asyncio.AbstractEventLoop
    server: Server
    redis: Redis

    @property
    def live_url(self) -> str:
        """Return where the live socket is."""
        return self.url.replace("http", "ws") + "/api/v1/live"

    def client(self, key: str | None = None) -> httpx.Client:
        """Return an HTTP client with a key; the one with every scope by default."""
        headers = {"authorization": f"Bearer {key or self.key}"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=30)

    def key_for(self, tenant: str, scopes: list[str]) -> str:
        """Store a key for any tenant, as an installer would, and return it."""
        key_id = "".join(secrets.choice("abcdefgh12345678") for _ in range(8))
        key = f"wk_{key_id}_{secrets.token_urlsafe(32)}"
        digest = hash_key_text(HASH_KEY.encode(), key)
        body = {"kind": "key", "name": key_id, "hash": digest, "scopes": scopes, "source": "http"}
        self.put(tenant, "key", key_id, json.dumps(body))
        return key

    def put(self, tenant: str, kind: str, name: str, text: str) -> int:
        """Store a definition for any tenant, past the API, and return its vid."""
        writer = self.dashboard.context.writer
        work = writer.put((tenant, kind, name), text, by="test", expected=Expected(absent=True))
        vid: int = self.run(work).vid
        return vid

    def record(self, record: NewRecord) -> int:
        """Append a record to the definitions, as a driver does; return its offset once read."""
        offset: int = self.run(self.dashboard.context.writer._appender.append(*record))
        folded = self.dashboard.context.catalog.folded
        wait_until(lambda: folded.next_offset > offset, timeout_s=10, what="the record read")
        return offset

    def erase(self, tenant: str, subject: str) -> int:
        """Say, as a driver does, that an erasure holds; return the vid of its job."""
        known = subject_hash(HASH_KEY.encode(), tenant, subject)
        text = {"do": {"job": "erase", "subject_hash": known}}
        vid = self.put(tenant, "job", "gone", json.dumps(text))
        fence = self.record(start_record(DriverStart("a", 1, "start"), at_ms=0))
        facts = {"topic_id": "events", "offsets": {"0": 1}}
        self.record(job_record(JobReport(vid, JobState.RUNNING, facts=facts), fence=fence))
        return vid

    def run(self, work: Any) -> Any:
        """Run a coroutine on the service's loop and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)


class Engine:
    """Commits panes and batch records in the layout of docs/interfaces.md, section 5.

    One shard. A commit is one transaction, then its record, as in the engine.
    """

    def __init__(self, running: Running, reason: str = "start") -> None:
        """Begin a new epoch."""
        self._running = running
        self._redis: Any = running.redis
        batches = running.dashboard.context.batches
        self.epoch = batches.epoch + 1
        self.rev = 0
        self.offset = 0
        self.through_ms = 0
        opening = Opening(epoch=self.epoch, reason=reason, at_ms=int(time.time() * 1000))
        self._redis.xadd(names.BATCHES, {FIELD: encode(opening)}, id=entry_id(self.epoch, 0))

    def commit(
        self,
        rows: dict[PaneKey, dict[str, Row]] | None = None,
        *,
        through_ms: int | None = None,
        ticks: int = 0,
        most_listed: int = MOST_LISTED,
        **members: Any,
    ) -> BatchRecord:
        """Add rows to panes and append the batch record; return it once it was read.

        More changed panes than are listed are told by spans.
        """
        changed = []
        for (vid, res_s, start_s), added in (rows or {}).items():
            self.add(vid, (res_s, start_s), added)
            changed.append((vid, res_s, start_s, 0))
        changed, spans = folded(changed, most_listed)
        self.rev += 1
        self.through_ms = through_ms if through_ms is not None else int(time.time() * 1000)
        received = members.pop("received", 0)
        begun, self.offset = self.offset, self.offset + received + ticks
        record = BatchRecord(
            epoch=self.epoch,
            batch=self.rev - 1,
            rev=self.rev,
            shards=1,
            from_offsets={0: begun},
            to_offsets={0: self.offset},
            processed_through_ms=self.through_ms,
            at_ms=int(time.time() * 1000),
            received=received,
            ticks=ticks,
            changed=changed,
            spans=spans,
            **members,
        )
        self._redis.set(names.mark_key(0), mark(self.epoch, self.rev - 1, record.to_offsets))
        place = entry_id(self.epoch, self.rev)
        self._redis.xadd(names.BATCHES, {FIELD: encode(record)}, id=place)
        batches = self._running.dashboard.context.batches
        wait_until(
            lambda: (batches.epoch, batches.rev) == (self.epoch, self.rev),
            timeout_s=10,
            what="the batch record read",
        )
        return record

    def add(self, vid: int, pane: tuple[int, int], added: dict[str, Row]) -> None:
        """Add rows to a pane and tell nobody."""
        key = names.pane_key(0, vid, *pane)
        for text, row in added.items():
            short = short_id(self._redis, vid, text)
            stored = self._redis.hget(key, short)
            self._redis.hset(key, short, merge_packed(stored, row))


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return a broker of these tests' own: a first key is stored only where no key is yet."""
    with running_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka(kafka_broker: Broker) -> str:
    """Return its address: the session's own `kafka`, made once, may be another broker's."""
    return kafka_broker.bootstrap


@pytest.fixture(scope="session")
def bootstrap_key() -> str:
    """Return the key that the session's dashboards start with."""
    return f"wk_bootstr1_{secrets.token_urlsafe(32)}"


@pytest.fixture(scope="module")
def settings(
    kafka: str,
    redis_server: RedisServer,
    bootstrap_key: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Settings:
    """Return settings for a dashboard on free ports, and empty the store."""
    folder = tmp_path_factory.mktemp("dashboard")
    (folder / "hash_key").write_text(HASH_KEY + "\n")
    (folder / "bootstrap_key").write_text(bootstrap_key + "\n")
    (folder / "assets").mkdir()
    (folder / "index.html").write_text("<!doctype html><title>Weir</title>")
    (folder / "assets" / "app-1a2b.js").write_text("export {};\n")
    with Redis.from_url(redis_server.url) as redis:
        redis.flushall()
    return Settings(
        kafka_bootstrap=kafka,
        redis_url=redis_server.url,
        secrets_dir=folder,
        web_dir=folder,
        port=free_port(),
        ops_port=free_port(),
    )


@pytest.fixture(scope="module")
def running(settings: Settings, bootstrap_key: str) -> Iterator[Running]:
    """Return a dashboard that serves and is ready."""
    found: list[tuple[Dashboard, asyncio.AbstractEventLoop, Server]] = []

    async def serve() -> None:
        dashboard = build(settings, SystemClock())
        server = public_server(dashboard)
        found.append((dashboard, asyncio.get_running_loop(), server))
        await server.serve()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    wait_until(lambda: bool(found) and found[0][2].started, timeout_s=20, what="the server up")
    dashboard, loop, server = found[0]
    url = f"http://127.0.0.1:{settings.port}"
    redis = Redis.from_url(settings.redis_url)
    key_id = bootstrap_key.split("_")[1]
    wait_until(
        lambda: dashboard.not_ready() is None and dashboard.context.catalog.key(key_id) is not None,
        timeout_s=20,
        what="the first key stored",
    )
    yield Running(url, bootstrap_key, dashboard, loop, server, redis)
    server.stop()
    thread.join(20)
    redis.close()
    assert not thread.is_alive()


@pytest.fixture
def engine(running: Running) -> Engine:
    """Return what commits panes and batch records, as the panes job does."""
    return Engine(running)


@pytest.fixture
def metric(running: Any, request: pytest.FixtureRequest) -> tuple[str, int]:
    """Return a metric of this test's own, by name and vid."""
    name = "m" + "".join(c for c in request.node.name.lower() if c.isalnum())[-40:] + "x"
    return name, running.put("default", "metric", name, METRIC.format(name=name))
