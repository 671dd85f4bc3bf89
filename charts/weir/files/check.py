"""Ask a running Weir to count four events of which one is a duplicate.

Posts three events and one of them again, with a key and a source of its own, then waits
until the metric says 3, and the ledger 3 counted and 1 duplicate. Exit code 0 if so.
Uses the public HTTP API and the standard library only. The metric `weir_check` stays.

Told by the environment: WEIR_INGEST_URL, WEIR_DASHBOARD_URL, WEIR_API_KEY_FILE, and if it
should not be 120, WEIR_CHECK_SECONDS.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

DEFAULT_DEADLINE_S = "120"
PAUSE_S = 1.0
METRIC = """\
kind: metric
name: weir_check
description: What the check of an installation sends.
events: {type: dev.weir.check}
by: [subject]
aggregates: [count]
resolution: 10s
keep: {10s: 1h}
"""


class Weir:
    """The two services of an installation, called with one key."""

    def __init__(self, ingest: str, dashboard: str, key: str) -> None:
        """Take their addresses, `http://host:port`, and an API key."""
        self._ingest, self._dashboard, self._key = ingest, dashboard, key

    def with_key(self, key: str) -> Weir:
        """Return the same installation, called with another key."""
        return Weir(self._ingest, self._dashboard, key)

    def call(self, method: str, path: str, body: Any = None, **fields: str) -> tuple[int, Any]:
        """Send a request; return the answer's status and content, (0, reason) without one."""
        address = self._dashboard if path.startswith("/api/") else self._ingest
        parts = urlsplit(address)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        connection = kind(parts.hostname or "", parts.port, timeout=10)
        sent = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, {**sent, **fields})
            answer = connection.getresponse()
            return answer.status, _decoded(answer.read())
        except (OSError, http.client.HTTPException) as error:
            return 0, f"no answer from {address}: {error}"
        finally:
            connection.close()


def _decoded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode("utf-8", "replace")


class Check:
    """One check; everything that it waits for shares one deadline."""

    def __init__(self, weir: Weir, seconds: float) -> None:
        """Begin: the time runs from here."""
        self._weir = weir
        self._seconds = seconds
        self._deadline_s = time.monotonic() + seconds
        self._name = f"check.{secrets.token_hex(6)}"

    def run(self) -> None:
        """Do it.

        Raises:
            TimeoutError: If something is not as it should be in time; says what was seen.
        """
        self._until("the metric weir_check to be stored", self._define)
        self._until("the metric weir_check to be counted", self._is_active)
        made = self._until("a key", self._make_key)
        sender = self._weir.with_key(made["key"])
        try:
            for event in (1, 2, 3, 3):
                self._until(f"event {event} to be accepted", partial(self._post, sender, event))
            self._until("the metric to count 3", self._counts)
            self._until("the ledger to say 3 counted and 1 duplicate", self._accounts)
        finally:
            self._weir.call("DELETE", f"/api/v1/keys/{made['id']}")

    def _until(self, what: str, attempt: Any) -> Any:
        while True:
            done, seen = attempt()
            if done:
                _say(f"{what}: yes")
                return seen
            if time.monotonic() >= self._deadline_s:
                msg = f"waited {self._seconds:g} s for {what}, last seen: {str(seen)[:500]}"
                raise TimeoutError(msg)
            time.sleep(PAUSE_S)

    def _define(self) -> tuple[bool, Any]:
        path = "/api/v1/definitions/metric/weir_check"
        status, seen = self._weir.call("PUT", path, {"text": METRIC}, **{"If-None-Match": "*"})
        # 412: an earlier check has stored it.
        return status in (200, 201, 412), seen

    def _is_active(self) -> tuple[bool, Any]:
        _, seen = self._weir.call("GET", "/api/v1/definitions/metric/weir_check/progress")
        return isinstance(seen, dict) and seen.get("active") is True, seen

    def _make_key(self) -> tuple[bool, Any]:
        wanted = {"scopes": ["ingest"], "source": self._name, "label": "helm test"}
        status, seen = self._weir.call("POST", "/api/v1/keys", wanted)
        return status == http.client.CREATED, seen

    def _post(self, sender: Weir, number: int) -> tuple[bool, Any]:
        event = {
            "specversion": "1.0",
            "id": f"{self._name}-{number}",
            "source": "/check",
            "type": "dev.weir.check",
            "subject": self._name,
            "data": {"number": number},
        }
        kind = {"Content-Type": "application/cloudevents+json"}
        # A key that was made just now is refused until ingest has read of it.
        status, seen = sender.call("POST", "/v1/events", event, **kind)
        return status in (200, 202), seen

    def _counts(self) -> tuple[bool, Any]:
        asked = {
            "metric": "weir_check",
            "aggregate": "count",
            "where": [["subject", "=", self._name]],
            "range": {"last": "10m"},
            "step": "10s",
        }
        _, seen = self._weir.call("POST", "/api/v1/query", asked)
        series = seen.get("series", []) if isinstance(seen, dict) else []
        counted = sum(value or 0 for one in series for value in one["value"])
        return counted == 3, f"count {counted}" if series else seen

    def _accounts(self) -> tuple[bool, Any]:
        _, seen = self._weir.call("GET", "/api/v1/ledger?minutes=10")
        items = seen.get("items", []) if isinstance(seen, dict) else []
        mine = [item["sources"].get(self._name, {}) for item in items]
        told = {word: sum(row.get(word, 0) for row in mine) for word in ("counted", "duplicate")}
        return told == {"counted": 3, "duplicate": 1}, told if items else seen


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the check; return the exit code."""
    key = Path(os.environ["WEIR_API_KEY_FILE"]).read_text(encoding="utf-8").strip()
    weir = Weir(os.environ["WEIR_INGEST_URL"], os.environ["WEIR_DASHBOARD_URL"], key)
    seconds = float(os.environ.get("WEIR_CHECK_SECONDS", DEFAULT_DEADLINE_S))
    try:
        Check(weir, seconds).run()
    except TimeoutError as error:
        sys.stderr.write(f"weir: {error}\n")
        return 1
    _say("passed: 3 events counted, 1 duplicate told apart")
    return 0


if __name__ == "__main__":
    sys.exit(main())
