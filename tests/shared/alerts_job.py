"""A real alerts process on a real Kafka and Redis, and a receiver that it calls."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import Producer
from standardwebhooks import Webhook, WebhookVerificationError
from weir import metrics, names
from weir.clock import SystemClock
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    NewRecord,
    activation_record,
    delete_record,
    put_record,
    start_record,
)
from weir_analytics.alerts.itself import shipped
from weir_local import ports
from weir_local.waiting import wait_until

SECRET = base64.b64encode(b"a secret of 24 bytes, 24").decode()


def define(
    bootstrap: str,
    kind: str,
    name: str,
    body: Mapping[str, Any] | None,
    at_ms: int,
    *,
    based_on: int | None = None,
) -> int:
    """Append a definition as the dashboard does, without a body its end; return its vid.

    A new metric is also activated, as the driver does.
    """
    edit = Edit("default", kind, name, based_on=based_on, by="test", at_ms=at_ms)
    record = delete_record(edit)
    if body is not None:
        record = put_record(edit, json.dumps({"kind": kind, "name": name, **body}))
    vid = append(bootstrap, record)
    if kind == "metric":
        activate(bootstrap, name, vid)
    return vid


def activate(bootstrap: str, name: str, vid: int) -> None:
    """Start a driver, and let it count a metric from the start of the log."""
    start = DriverStart(instance="test", shards=1, reason="start")
    fence = append(bootstrap, start_record(start, at_ms=0))
    counting = Counting(vid, "default", name, 1, {0: 0}, from_start=True)
    append(bootstrap, activation_record(counting, op="start", fence=fence, at_ms=0))


def append(bootstrap: str, record: NewRecord) -> int:
    """Append a record of `weir.definitions`; return its offset."""
    offsets: list[int] = []
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(
        names.DEFINITIONS,
        record.value,
        record.key,
        on_delivery=lambda _, message: offsets.append(message.offset() or 0),
    )
    assert producer.flush(10) == 0
    return offsets[0]


@dataclass
class Receiver:
    """Takes webhooks, keeps those whose signature is right, and answers as it is told.

    Signatures are verified by the library of the standard, as receivers are told to.

    Attributes:
        bodies: What came and was answered 2xx, in order.
        at_ms: When each of them came, by the clock.
        of_weir: The same of the rules on Weir itself that every tenant with a key has: they
            tell all channels, whenever a machine is slow enough.
        statuses: What to answer next to all but these; 200 when it is empty.
        calls: How many calls came at all.
        is_down: Whether everything is answered 503.
    """

    bodies: list[dict[str, Any]] = field(default_factory=list)
    at_ms: list[int] = field(default_factory=list)
    of_weir: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    forged: int = 0
    calls: int = 0
    is_down: bool = False

    def __post_init__(self) -> None:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:
                    return  # whoever called was killed in the midst of it
                status = receiver.take(dict(self.headers.items()), body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/weir"

    def take(self, headers: dict[str, str], body: bytes) -> int:
        """Take one call; return what to answer."""
        self.calls += 1
        try:
            told = Webhook(SECRET).verify(body, headers)
        except WebhookVerificationError:
            self.forged += 1
            return 401
        of_weir = told.get("rule") in shipped()
        status = self.statuses.pop(0) if self.statuses and not of_weir else 200
        status = 503 if self.is_down else status
        if status == 200 and of_weir:
            self.of_weir.append(told)
        elif status == 200:
            self.at_ms.append(SystemClock().now_ms())
            self.bodies.append(told)
        return status

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class AlertsJob:
    """The process.

    Attributes:
        log_path: What it writes.
    """

    def __init__(self, bootstrap: str, redis_url: str, folder: Path) -> None:
        self._secrets = folder / "secrets"
        self._secrets.mkdir()
        self.store_secret("hook", SECRET)
        self.log_path = folder / "alerts.log"
        self.redis_url = redis_url
        self._ops_port = ports.free_port()
        self._env = {
            "WEIR_ALERTS_KAFKA_BOOTSTRAP": bootstrap,
            "WEIR_ALERTS_REDIS_URL": redis_url,
            "WEIR_ALERTS_SECRETS_DIR": str(self._secrets),
            "WEIR_ALERTS_OPS_PORT": str(self._ops_port),
            "WEIR_ALERTS_ALLOWED_HOSTS": "127.0.0.0/8",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self.launch()
        wait_until(self._is_ready, timeout_s=30, what="the alerts job ready")

    def launch(self) -> None:
        """Start it."""
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "weir_analytics.alerts"],
                env={**os.environ, **self._env},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def store_secret(self, name: str, text: str) -> None:
        """Put a secret into its folder."""
        (self._secrets / name).write_text(text + "\n")

    @property
    def exit_code(self) -> int | None:
        """Return with what it has ended; None while it runs."""
        return None if self._process is None else self._process.poll()

    def says(self, *events: str) -> bool:
        """Tell whether its log holds a line of one of these events."""
        text = self.log_path.read_text()
        return any(f'"event": "{event}"' in text for event in events)

    def await_definitions(self, bootstrap: str) -> None:
        """Wait until it goes by everything that was defined so far."""
        name = f"seen_{uuid.uuid4().hex[:8]}"
        body = {"metric": "nobody_has_it", "aggregate": "count", "window": "1m", "above": 1}
        define(bootstrap, "rule", name, {**body, "mode": "shadow"}, 0)
        # Definitions are read in their order, and a rule is logged when it is first watched.
        line = f'"rule": "{name}"'
        wait_until(lambda: line in self.log_path.read_text(), timeout_s=20, what=f"{name} is seen")

    def kill(self) -> None:
        """End it with -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def stop(self) -> int:
        """End it with SIGTERM; return its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(15)

    @property
    def evaluated_ms(self) -> float:
        """Return the processed-through of its newest look."""
        return self.figure(metrics.ALERTS_PROCESSED_THROUGH) * 1000

    def figure(self, name: str) -> float:
        """Return what it tells Prometheus of itself; 0 where it does not."""
        text = httpx.get(f"http://127.0.0.1:{self._ops_port}/metrics").text
        found = next((one for one in text.splitlines() if one.startswith(f"{name} ")), "0 0")
        return float(found.split()[1])

    def await_evaluated(self, through_ms: int) -> None:
        """Wait until rules are evaluated up to an instant."""
        wait_until(
            lambda: self.evaluated_ms >= through_ms,
            timeout_s=20,
            what=f"alerts evaluated; see {self.log_path}",
        )

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(self.log_path.read_text()[-4_000:])
        try:
            return httpx.get(f"http://127.0.0.1:{self._ops_port}/readyz").status_code == 200
        except httpx.TransportError:
            return False
