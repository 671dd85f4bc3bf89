"""/v1/events: CloudEvents, NDJSON, arrays, objects; the answer says what became of each item."""

from __future__ import annotations

from weir_ingest import openapi, protocols
from weir_ingest.answers import Accepted, Answer, encode, json_answer
from weir_ingest.head import Head
from weir_ingest.protocols.batch import Batch, BatchLimits
from weir_ingest.wire import Route, Stored, Wire


class Events(Wire):
    """The protocol that is Weir's own."""

    query_keys = ("access_token",)
    document = openapi.EVENTS

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:
        """Cut a body by whichever protocol claims it."""
        return protocols.read(head, body, limits)

    def stored(self, stored: Stored) -> Answer:
        """Return counts, and what became of each item that could not be used."""
        quarantined = len(stored.items)
        body = Accepted(
            stored.accepted, quarantined, stored.position, stored.retry_safe, stored.items
        )
        return json_answer(200, encode(body))


ROUTES = (Route(("/v1/events",), Events(), ("POST", "PUT")),)
