"""/livez, /readyz and /metrics, on a port of their own.

Kafka being down leaves ingest live and ready: its clients must get Weir's own
503 with Retry-After, and not a proxy's. Not ready is a process that does not know
the keys yet, or is shutting down.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from weir_ingest.answers import Answer, json_answer
from weir_ingest.head import Receive, Scope, Send
from weir_ingest.instruments import Instruments


class Ops:
    """The ASGI callable of the ops port."""

    def __init__(
        self, not_ready: Callable[[], str | None], observe: Callable[[], None], inst: Instruments
    ) -> None:
        """Prepare it.

        Args:
            not_ready: Returns why the process is not ready, None if it is.
            observe: Brings the gauges up to date.
            inst: What is exposed.
        """
        self._not_ready = not_ready
        self._observe = observe
        self._registry = inst.registry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Answer one probe."""
        await self._answer(scope["path"]).send(send)

    def _answer(self, path: str) -> Answer:
        if path == "/livez":
            return json_answer(200, b'{"status":"ok"}')
        if path == "/readyz":
            why = self._not_ready()
            if why is None:
                return json_answer(200, b'{"status":"ok"}')
            return json_answer(503, f'{{"status":"{why}"}}'.encode())
        if path == "/metrics":
            self._observe()
            body = generate_latest(self._registry)
            return Answer(200, body, [(b"content-type", CONTENT_TYPE_LATEST.encode())])
        return json_answer(404, b'{"code":"not_found"}')
