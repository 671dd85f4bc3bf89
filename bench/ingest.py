"""What ingest costs: one event a request, and NDJSON of up to 1,000, beside the bare server.

Weir's ingest, on a broker of its own, and a bare ASGI callable that reads the body and answers run
in alternating rounds under the same uvicorn and the same HTTP parser. Both get the same bytes from
the same clients on kept connections. CPU is that of the server's process tree; Kafka's is not in
it. After each round the log must have grown by exactly what was sent.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import hmac
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import harness
import httpx
from confluent_kafka import Consumer, Producer, TopicPartition
from weir import names
from weir_local import ports
from weir_local.testing import running_broker

HASH_KEY: Final = "0123456789abcdef0123456789abcdef"
KEY: Final = f"wk_benchbch_{'k' * 43}"
READY_S: Final = 60.0
CONNECTIONS: Final = 32
SIZES: Final = (1, 10, 100, 1_000)
ANSWER: Final = b"HTTP/1.1 200"
BARE: Final = """
async def app(scope, receive, send):
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    answer = b'{"accepted":1}'
    headers = [(b"content-type", b"application/json"), (b"content-length", b"14")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})
"""


@dataclass(frozen=True)
class Server:
    """A contestant.

    Attributes:
        pid: Its process.
        port: Where it listens, on loopback.
        is_weir: It stores what it is sent.
    """

    pid: int
    port: int
    is_weir: bool


def event(number: int) -> bytes:
    """Return one event as a client writes it; every one has an id of its own."""
    return (
        f'{{"specversion":"1.0","id":"{number:012d}","source":"/bench","type":"bench.order",'
        f'"time":"2026-03-01T10:00:00.{number % 1000:03d}Z","subject":"u{number % 5000}",'
        f'"data":{{"total":{number % 97}.5,"region":"eu","route":"/api/{number % 40}"}}}}'
    ).encode()


def requests(first: int, count: int, size: int) -> list[bytes]:
    """Return requests of `size` events each, as they go over the wire."""
    kind = b"application/cloudevents+json" if size == 1 else b"application/x-ndjson"
    made = []
    for start in range(first, first + count * size, size):
        body = b"\n".join(event(n) for n in range(start, start + size))
        head = (
            b"POST /v1/events HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer %b\r\n"
            b"content-type: %b\r\ncontent-length: %d\r\n\r\n"
        ) % (KEY.encode(), kind, len(body))
        made.append(head + body)
    return made


async def _client(port: int, mine: Sequence[bytes]) -> int:
    """Send requests one after another on one connection; return how many were answered 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    good = 0
    for request in mine:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        body = await reader.readexactly(length)
        good += head.startswith(ANSWER) and b'"quarantined":1' not in body
    writer.close()
    return good


async def _send(port: int, made: Sequence[bytes]) -> int:
    lanes = [made[lane::CONNECTIONS] for lane in range(CONNECTIONS)]
    return sum(await asyncio.gather(*(_client(port, lane) for lane in lanes)))


class Log:
    """How far the log of events has grown."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})

    def records(self) -> int:
        """Return how many records it holds."""
        topic = self._consumer.list_topics(names.EVENTS, timeout=10).topics[names.EVENTS]
        ends = (
            self._consumer.get_watermark_offsets(TopicPartition(names.EVENTS, p), timeout=10)
            for p in topic.partitions
        )
        return sum(high for _low, high in ends)

    def close(self) -> None:
        """Let go of the broker, which ends before this process."""
        self._consumer.close()


def round_of(server: Server, made: Sequence[bytes], size: int, log: Log) -> dict[str, float]:
    """Return events per second and per CPU second of a round.

    Raises:
        SystemExit: If an answer was none, or the log has not grown by what was sent.
    """
    before, cpu_s, began = log.records(), harness.tree_cpu_s([server.pid]), time.monotonic()
    good = asyncio.run(_send(server.port, made))
    wall_s = time.monotonic() - began
    cpu_s = harness.tree_cpu_s([server.pid]) - cpu_s
    events = len(made) * size
    grown = log.records() - before
    if good != len(made) or grown != events * server.is_weir:
        msg = f"{len(made)} requests must be stored, {good} were, of {grown} events"
        raise SystemExit(msg)
    return {"per_s": events / wall_s, "per_cpu_s": events / cpu_s, "cpu_us": 1e6 * cpu_s / events}


def define_key(bootstrap: str) -> None:
    """Write the key that the clients send."""
    digest = hmac.new(HASH_KEY.encode(), KEY.encode(), hashlib.sha256).hexdigest()
    text = {"kind": "key", "name": "benchbch", "hash": digest, "scopes": ["ingest"]}
    record = {
        **{"v": 1, "tenant": "default", "kind": "key", "name": "benchbch", "version": 1},
        **{"based_on": None, "op": "put", "text": json.dumps(text), "by": "bench", "at_ms": 0},
    }
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(names.DEFINITIONS, json.dumps(record), "default/key/benchbch")
    producer.flush(10)


@contextmanager
def started(command: Sequence[str], env: dict[str, str], log: Path) -> Iterator[int]:
    """Run a server; end it with the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  our own servers
            command, env={**os.environ, **env}, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(20)


def await_ready(url: str) -> None:
    """Return when a server answers.

    Raises:
        SystemExit: If it does not within a minute.
    """
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    msg = f"{url} must answer within {READY_S:.0f} s"
    raise SystemExit(msg)


@contextmanager
def contestants(folder: Path, bootstrap: str) -> Iterator[dict[str, Server]]:
    """Run both servers."""
    (folder / "hash_key").write_text(HASH_KEY)
    (folder / "bare.py").write_text(BARE)
    port, ops, bare = (ports.free_port() for _ in range(3))
    env = {
        "WEIR_INGEST_PORT": str(port),
        "WEIR_INGEST_OPS_PORT": str(ops),
        "WEIR_INGEST_KAFKA_BOOTSTRAP": bootstrap,
        "WEIR_INGEST_SECRETS_DIR": str(folder),
        "WEIR_INGEST_REDIS_URL": "redis://127.0.0.1:1/0",
    }
    uvicorn = [
        *(sys.executable, "-m", "uvicorn", "bare:app", "--app-dir", str(folder), "--http", "h11"),
        *("--port", str(bare), "--no-access-log", "--log-level", "warning", "--lifespan", "off"),
    ]
    with (
        started([sys.executable, "-m", "weir_ingest"], env, folder / "weir.log") as weir,
        started(uvicorn, {}, folder / "bare.log") as floor,
    ):
        await_ready(f"http://127.0.0.1:{ops}/readyz")
        await_ready(f"http://127.0.0.1:{bare}/")
        yield {"weir": Server(weir, port, True), "bare": Server(floor, bare, False)}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of every size, by contestant."""
    rounds: dict[int, dict[str, list[dict[str, float]]]] = {}
    first = 0
    with tempfile.TemporaryDirectory() as name, running_broker(Path(name)) as broker:
        define_key(broker.bootstrap)
        log = Log(broker.bootstrap)
        with contestants(Path(name), broker.bootstrap) as servers:
            for size in SIZES:
                found = rounds[size] = {one: [] for one in servers}
                count = max(CONNECTIONS, min(options.requests, options.events // size))
                for turn in range(options.rounds + 1):
                    made = requests(first, count, size)
                    first += count * size
                    for one, server in servers.items():
                        got = round_of(server, made, size, log)
                        if turn:  # the first warms up
                            found[one].append(got)
        log.close()
    return {str(size): {one: _told(got) for one, got in by.items()} for size, by in rounds.items()}


def _told(rounds: Sequence[dict[str, float]]) -> dict[str, Any]:
    names_ = ("per_s", "per_cpu_s", "cpu_us")
    return {name: harness.median_of([one[name] for one in rounds], 2) for name in names_}


def bars(sizes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return P4 and P5 as they stand."""
    one, many = sizes["1"], sizes["1000"]["weir"]["per_cpu_s"]
    share = one["weir"]["per_cpu_s"]["median"] / one["bare"]["per_cpu_s"]["median"]
    return [
        {
            "id": "P4",
            "what": "one event a request, of a bare ASGI callable under the same uvicorn and h11",
            "reach": "≥ 0.5 (record 0.75)",
            "got": f"{share:.2f}",
        },
        {
            "id": "P5",
            "what": "NDJSON of 1,000 events a request",
            "reach": "≥ 0.6 M events a CPU-s (record 1.2)",
            "got": f"{many['median'] / 1e6:.2f} M events a CPU-s",
        },
    ]


def main() -> int:
    """Measure, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each size")
    parser.add_argument("--requests", type=int, default=20_000, help="most requests of a round")
    parser.add_argument("--events", type=int, default=400_000, help="most events of a round")
    options = parser.parse_args()
    sizes = measure(options)
    harness.write(
        "ingest", settings=vars(options), figures={"bars": bars(sizes), "events a request": sizes}
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
