"""A real ingest process on a real broker, and readers of what it wrote."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from weir import names
from weir_local import ports

HASH_KEY = "0123456789abcdef0123456789abcdef"


def wait_for(claim: Callable[[], Any], timeout_s: float = 20.0) -> Any:
    """Poll until a claim holds; return what it gave."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        found = claim()
        if found:
            return found
        time.sleep(0.02)
    pytest.fail(f"not within {timeout_s:g} s: {claim}")


@dataclass(frozen=True)
class Stored:
    """A record of weir.events as a reader sees it."""

    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]

    @property
    def reason(self) -> str | None:
        """The refusal's code, None of an event."""
        first, value = self.headers[0]
        return value.decode() if first == names.HEADER_REASON else None

    @property
    def event(self) -> dict[str, Any]:
        """The event as plain JSON."""
        found: dict[str, Any] = json.loads(self.value)
        return found


def _headers(message: Message) -> list[tuple[str, bytes]]:
    pairs: Any = message.headers() or []
    return [(name, bytes(value)) for name, value in pairs]


class LogReader:
    """Reads what was appended after a mark."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "test", "enable.auto.commit": False}
        )
        self._partitions = sorted(
            self._consumer.list_topics(names.EVENTS, timeout=10).topics[names.EVENTS].partitions
        )

    def ends(self) -> dict[int, int]:
        """Return the end offset of each partition."""
        return {
            p: self._consumer.get_watermark_offsets(TopicPartition(names.EVENTS, p), timeout=10)[1]
            for p in self._partitions
        }

    def since(self, mark: dict[int, int]) -> list[Stored]:
        """Return all records appended after a mark."""
        ends = self.ends()
        left = {p: end - mark[p] for p, end in ends.items() if end > mark[p]}
        self._consumer.assign([TopicPartition(names.EVENTS, p, mark[p]) for p in left])
        found: list[Stored] = []
        while len(found) < sum(left.values()):
            for message in self._consumer.consume(sum(left.values()) - len(found), 5):
                assert message.error() is None, message.error()
                found.append(
                    Stored(
                        message.partition() or 0,
                        message.offset() or 0,
                        message.key() or b"",
                        message.value() or b"",
                        _headers(message),
                    )
                )
        return found

    def close(self) -> None:
        """Let go of the broker."""
        self._consumer.close()


@dataclass
class Ingest:
    """A running ingest process."""

    process: subprocess.Popen[bytes]
    port: int
    ops_port: int
    key: str
    bootstrap: str
    log_path: Path
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=20))

    @property
    def url(self) -> str:
        """Where events go."""
        return f"http://127.0.0.1:{self.port}/v1/events"

    @property
    def authorization(self) -> dict[str, str]:
        """What tells who sends."""
        return {"authorization": f"Bearer {self.key}"}

    def post(self, body: bytes | Iterator[bytes], **headers: str) -> httpx.Response:
        """Send a body; header names are written with underscores."""
        sent = self.authorization
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(self.url, content=body, headers=sent)

    def exchange(self, *parts: bytes, timeout_s: float = 10) -> bytes:
        """Send bytes as they are; return everything that came back until the end."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s) as connection:
            for part in parts:
                connection.sendall(part)
            received = b""
            while chunk := connection.recv(65_536):
                received += chunk
            return received

    def ops(self, path: str) -> httpx.Response:
        """Ask the ops port."""
        return self.client.get(f"http://127.0.0.1:{self.ops_port}{path}")

    def is_ready(self) -> bool:
        """Say whether it answers that it is ready."""
        if self.process.poll() is not None:
            raise AssertionError(self.log_path.read_text())
        try:
            return self.ops("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def rss_bytes(self) -> int:
        """Return the process's resident memory."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> int:
        """Stop it by SIGTERM; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.client.close()
        return self.process.wait(timeout=15)


def new_key(
    bootstrap: str,
    *,
    tenant: str = "default",
    source: str = "web",
    scopes: tuple[str, ...] = ("ingest",),
) -> str:
    """Define a key as the dashboard does; return it."""
    key_id = secrets.token_hex(4)
    key = f"wk_{key_id}_{secrets.token_urlsafe(32)}"
    digest = hmac.new(HASH_KEY.encode(), key.encode(), hashlib.sha256).hexdigest()
    text = {"kind": "key", "name": key_id, "hash": digest, "scopes": scopes, "source": source}
    define_key(bootstrap, tenant, key_id, json.dumps(text))
    return key


def define_key(
    bootstrap: str, tenant: str, key_id: str, text: str | None, version: int = 1
) -> None:
    """Append a change of a key's definition; without a text it is deleted."""
    record = {
        **{"v": 1, "tenant": tenant, "kind": "key", "name": key_id, "version": version},
        **{"based_on": version - 1 or None, "op": "put" if text else "delete"},
        **{"text": text or "", "by": "test", "at_ms": 0},
    }
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(names.DEFINITIONS, json.dumps(record), f"{tenant}/key/{key_id}")
    assert producer.flush(10) == 0


@pytest.fixture(scope="session")
def start_ingest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Ingest]]:
    """Return a function that starts an ingest process on free ports."""
    running: list[Ingest] = []

    def start(bootstrap: str, key: str, **settings: str) -> Ingest:
        folder = tmp_path_factory.mktemp("ingest")
        (folder / "hash_key").write_text(HASH_KEY)
        port, ops_port = ports.free_port(), ports.free_port()
        env = {
            "WEIR_INGEST_PORT": str(port),
            "WEIR_INGEST_OPS_PORT": str(ops_port),
            "WEIR_INGEST_KAFKA_BOOTSTRAP": bootstrap,
            "WEIR_INGEST_SECRETS_DIR": str(folder),
            "WEIR_INGEST_REDIS_URL": "redis://127.0.0.1:1/0",
            **{f"WEIR_INGEST_{name.upper()}": value for name, value in settings.items()},
        }
        log_path = folder / "log"
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "weir_ingest"],
                env={**os.environ, **env},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        ingest = Ingest(process, port, ops_port, key, bootstrap, log_path)
        running.append(ingest)
        return ingest

    yield start
    for ingest in running:
        ingest.stop()


@pytest.fixture(scope="session")
def ingest(kafka: str, start_ingest: Callable[..., Ingest]) -> Ingest:
    """Return the session's ingest, ready. Redis is away, which must not matter."""
    started = start_ingest(kafka, new_key(kafka), body_timeout_s="2")
    wait_for(started.is_ready)
    return started


@pytest.fixture
def log_reader(kafka: str) -> Iterator[LogReader]:
    """Return a reader of weir.events."""
    reader = LogReader(kafka)
    yield reader
    reader.close()


@pytest.fixture(name="wait_for")
def wait_for_fixture() -> Callable[..., Any]:
    """Return the function that polls until a claim holds."""
    return wait_for


@pytest.fixture(name="new_key")
def new_key_fixture() -> Callable[..., str]:
    """Return the function that defines a key."""
    return new_key


@pytest.fixture(name="define_key")
def define_key_fixture() -> Callable[..., None]:
    """Return the function that changes a key's definition."""
    return define_key


@pytest.fixture
def reader_of() -> Iterator[Callable[[str], LogReader]]:
    """Return a function that makes a reader of another broker's log."""
    readers: list[LogReader] = []

    def make(bootstrap: str) -> LogReader:
        readers.append(LogReader(bootstrap))
        return readers[-1]

    yield make
    for reader in readers:
        reader.close()
