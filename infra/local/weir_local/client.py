"""A small client of Weir's public HTTP API, on the standard library.

One connection that is kept open. An answer of 503 or 429 is waited out as its
`Retry-After` says, a broken connection with a growing pause, and the same body is
sent again: events keep their ids, so a repetition counts once.
"""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 30.0
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0
TRY_AGAIN = (429, 502, 503, 504)


class ApiError(Exception):
    """The API refused a request for good; carries its status and problem."""

    def __init__(self, status: int, body: Any) -> None:
        """Keep status and body; the text is what the problem says."""
        self.status = status
        self.body = body
        detail = body.get("detail", body) if isinstance(body, dict) else body
        super().__init__(f"the API answered {status}: {detail}")


@dataclass(frozen=True)
class Answer:
    """What the API answered.

    Attributes:
        status: HTTP status.
        headers: Header fields by lower-case name.
        body: Decoded JSON, or text if it was none.
    """

    status: int
    headers: dict[str, str]
    body: Any


class ApiClient:
    """Sends requests with one key to one service."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        patience_s: float = float("inf"),
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Prepare a client; it connects with the first request.

        Args:
            url: `http://host:port`.
            key: API key.
            patience_s: How long a request is tried again; without end by default.
            timeout_s: How long one answer is waited for.
        """
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._key = key
        self._patience_s = patience_s
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None
        self.retries = 0

    def post_events(self, events: list[dict[str, Any]]) -> Answer:
        """Post events as one CloudEvents batch, again and again until they are accepted."""
        headers = {"Content-Type": "application/cloudevents-batch+json"}
        return self.call("POST", "/v1/events", events, headers)

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Send a request until it is answered with something other than "later".

        Raises:
            ApiError: If it was refused (4xx, 5xx other than 502, 503, 504).
            TimeoutError: If patience ran out.
        """
        sent = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        payload = None if body is None else json.dumps(body).encode()
        deadline = time.monotonic() + self._patience_s
        pause_s = FIRST_PAUSE_S
        while True:
            answer = self._once(method, path, payload, {**sent, **(headers or {})})
            if answer is not None and answer.status not in TRY_AGAIN:
                break
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                said = f"answered {answer.status}" if answer else "could not be reached"
                msg = f"{method} {path} at port {self._port} {said} for {self._patience_s:g} s"
                raise TimeoutError(msg)
            self.retries += 1
            told = answer.headers.get("retry-after", "") if answer else ""
            time.sleep(min(float(told) if told.isdecimal() else pause_s, left_s))
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        if answer.status >= http.client.BAD_REQUEST:
            raise ApiError(answer.status, answer.body)
        return answer

    def close(self) -> None:
        """Close the connection; a later request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _once(
        self, method: str, path: str, payload: bytes | None, headers: dict[str, str]
    ) -> Answer | None:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                self._host, self._port, timeout=self._timeout_s
            )
        try:
            self._connection.request(method, path, payload, headers)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return None
        fields = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, fields, _decoded(text))


def _decoded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode("utf-8", "replace")
