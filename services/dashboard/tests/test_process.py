"""The service as a process: starts, says when Redis is away, stops cleanly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis import Redis
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol
from weir import names
from weir.batches import FIELD, BatchRecord, encode, entry_id
from weir_local.ports import free_port
from weir_local.redis import RedisServer
from weir_local.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


class Process:
    """A dashboard in a process of its own, with a Redis of its own."""

    def __init__(self, kafka: str, folder: Path, key: str) -> None:
        self.redis = RedisServer(folder / "redis")
        self.redis.start()
        self.port, self.ops_port = free_port(), free_port()
        self.key = key
        # That of the session's other dashboards: the topic has one first key.
        (folder / "hash_key").write_text("a hash key for tests")
        (folder / "bootstrap_key").write_text(self.key)
        self.log = folder / "log"
        prefix = "WEIR_DASHBOARD_"
        env = {
            f"{prefix}KAFKA_BOOTSTRAP": kafka,
            f"{prefix}REDIS_URL": self.redis.url,
            f"{prefix}SECRETS_DIR": str(folder),
            f"{prefix}PORT": str(self.port),
            f"{prefix}OPS_PORT": str(self.ops_port),
        }
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "weir_dashboard"],
                env={**os.environ, **env},
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def ops(self, path: str) -> int:
        """Return the status of a page of the ops port; 0 if nothing answers."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.ops_port}{path}").status_code
        except httpx.HTTPError:
            return 0

    def takes_its_key(self) -> bool:
        """Tell whether it is ready and its first key is stored."""
        if self.ops("/readyz") != 200:
            return False
        url = f"http://127.0.0.1:{self.port}/api/v1/metrics"
        headers = {"authorization": f"Bearer {self.key}"}
        return httpx.get(url, headers=headers).status_code == 200

    def stop(self) -> None:
        """Kill what still runs."""
        self.process.kill()
        self.process.wait(10)
        self.redis.kill()


@pytest.fixture
def process(kafka: str, tmp_path: Path, bootstrap_key: str) -> Iterator[Process]:
    """Return a dashboard process that is ready and knows its key."""
    one = Process(kafka, tmp_path, bootstrap_key)
    wait_until(one.takes_its_key, timeout_s=60, what="the dashboard ready")
    yield one
    one.stop()


def keep_moving(redis_url: str, rev: int) -> bool:
    """Write what a healthy ingest and panes job write; always true."""
    now_ms = int(time.time() * 1000)
    record = BatchRecord(
        epoch=1,
        batch=rev - 1,
        rev=rev,
        shards=1,
        from_offsets={0: 0},
        to_offsets={0: 0},
        processed_through_ms=now_ms,
        at_ms=now_ms,
    )
    with Redis.from_url(redis_url) as redis:
        redis.xadd(names.BATCHES, {FIELD: encode(record)}, id=entry_id(1, rev))
        beat = json.dumps({"at_ms": now_ms, "status": "ok"})
        redis.set(names.part_key("ingest", "one"), beat, ex=15)
    return True


def next_fresh(socket: ClientConnection) -> dict[str, Any]:
    """Return freshness as the next heartbeat says it."""
    while True:
        frame = json.loads(socket.recv(timeout=10))
        if frame["op"] == "heartbeat":
            return dict(frame["fresh"])


class TestProcess:
    def test_sigterm_stops_it_within_ten_seconds(self, process: Process) -> None:
        """It says good-bye to its sockets, ends with status 0, and logged JSON lines only."""
        url = f"ws://127.0.0.1:{process.port}/api/v1/live"
        with connect(url, subprotocols=[Subprotocol("weir.v1")]) as socket:
            socket.send(json.dumps({"op": "hello", "v": 1, "auth": process.key}))
            assert json.loads(socket.recv(timeout=5))["op"] == "welcome"
            process.process.send_signal(signal.SIGTERM)
            last: dict[str, Any] = {}
            with suppress(ConnectionClosed):
                while True:
                    last = json.loads(socket.recv(timeout=10))
            assert (last["op"], last["code"]) == ("goodbye", 1012)
            assert socket.close_code == 1012
        assert process.process.wait(10) == 0
        lines = process.log.read_text().splitlines()
        assert {json.loads(line)["event"] for line in lines} >= {"starting", "stopped"}
        assert process.key.split("_", 2)[2] not in process.log.read_text()

    def test_redis_away_is_said_and_the_service_stays_ready(self, process: Process) -> None:
        """Ten seconds after Redis stops, redis is named; ready all the while; live again after."""
        url = f"ws://127.0.0.1:{process.port}/api/v1/live"
        revs = iter(range(1, 1_000))
        with connect(url, subprotocols=[Subprotocol("weir.v1")]) as socket:
            socket.send(json.dumps({"op": "hello", "v": 1, "auth": process.key}))
            wait_until(
                lambda: (
                    keep_moving(process.redis.url, next(revs))
                    and next_fresh(socket)["status"] == "live"
                ),
                timeout_s=15,
                what="live",
            )
            process.redis.kill()
            begun = time.monotonic()
            wait_until(
                lambda: next_fresh(socket)["part"] == "redis", timeout_s=12, what="redis named"
            )
            assert time.monotonic() - begun < 10
            assert process.ops("/readyz") == 200
            process.redis.start()
            wait_until(
                lambda: (
                    keep_moving(process.redis.url, next(revs))
                    and next_fresh(socket)["status"] == "live"
                ),
                timeout_s=20,
                what="live again",
            )

    def test_bad_settings_are_told_all_at_once(self, tmp_path: Path) -> None:
        """A start without settings names each of them and ends with status 2."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
        done = subprocess.run(
            [sys.executable, "-m", "weir_dashboard"],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 2
        for name in ("KAFKA_BOOTSTRAP", "REDIS_URL", "SECRETS_DIR"):
            assert f'"name": "WEIR_DASHBOARD_{name}"' in done.stdout
