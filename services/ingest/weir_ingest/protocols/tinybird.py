"""Tinybird's Events API (INGEST 4.6): rows as NDJSON, whatever the Content-Type says.

A bad row harms no other. Every 2xx comes once Kafka has all of them: `wait` chooses its number
and nothing else. 422, some rows stored and others lost, is never answered.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec
from weir.mappings import tinybird
from weir.problems import ProblemError, Reason

from weir_ingest import openapi
from weir_ingest.answers import PROBLEM, Answer, Item, encode, json_answer, problem_answer
from weir_ingest.head import Head
from weir_ingest.protocols.batch import Batch, BatchLimits, cut, lenient
from weir_ingest.protocols.json_text import check_value, split_array
from weir_ingest.wire import Route, Stored, Wire

_BOM = b"\xef\xbb\xbf"
_TEXT = {"type": "string"}


class Written(msgspec.Struct, omit_defaults=True):
    """The body of a success; `items` is ours."""

    successful_rows: int
    quarantined_rows: int
    items: list[Item] = []


def _document() -> dict[str, Any]:
    counted = {name: {"type": "integer"} for name in ("successful_rows", "quarantined_rows")}
    answer = {
        "type": "object",
        "required": [*counted],
        "properties": {**counted, "items": openapi.ITEMS},
    }
    stored = openapi.success(answer)
    parameters = {
        "name": "The data source: the events' type is dev.weir.ndjson.<name>.",
        "wait": "true: a success is 200; else it is 202. Both come once the rows are stored.",
        "token": "The key, where no header can be sent.",
    }
    refusals = {n: said for n, said in openapi.REFUSALS.items() if n != "401"}
    return {
        "summary": "Tinybird: rows of a data source",
        "requestBody": {
            "required": True,
            "content": {"application/x-ndjson": {"schema": _TEXT}},
        },
        "parameters": [
            {
                "name": n,
                "in": "query",
                "description": said,
                "required": n == "name",
                "schema": _TEXT,
            }
            for n, said in parameters.items()
        ],
        "responses": {"200": stored, "202": stored, **refusals},
    }


class Rows(Wire):
    """Rows of one data source."""

    query_keys = ("token",)
    document = _document()

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:
        """Cut a body into its rows; blank lines are none.

        Raises:
            ProblemError: 400, without a usable name; 413 `too_many_events`.
        """
        if not head.query.get("name"):
            message = "query must have name, a data source, got none; send to /v0/events?name=..."
            raise ProblemError(400, Reason.REQUEST_INVALID, message)
        batch = lenient(head, _rows(body.removeprefix(_BOM), limits.max_events), tinybird.PROTOCOL)
        return replace(batch, mapping=tinybird.mapping, mapped=tinybird.PROTOCOL)

    def stored(self, stored: Stored) -> Answer:
        """Return how many rows became events, and how many are kept with a reason."""
        body = Written(stored.accepted, len(stored.items), stored.items)
        waits = stored.head.query.get("wait", "").lower() == "true"
        return json_answer(200 if waits else 202, encode(body))

    def refused(self, head: Head, problem: ProblemError) -> Answer:  # noqa: ARG002 - the same for all
        """Return a problem with `error`, which clients read; a bad token is 403 there."""
        told = replace(problem, status=403 if problem.status == 401 else problem.status)
        body = encode({**told.body(), "error": told.message})
        length = str(len(body)).encode()
        headers = problem_answer(told).headers[2:]
        return Answer(
            told.status, body, [(b"content-type", PROBLEM), (b"content-length", length), *headers]
        )


def _rows(body: bytes, limit: int) -> list[bytes]:
    """Return the lines of a body; people also send one object over several, or an array.

    Raises:
        ProblemError: 413 `too_many_events`.
    """
    text = body.strip()
    if text[:1] == b"[" and _is_one_value(text):
        return split_array(text, limit)
    if text[:1] == b"{" and b"\n" in text and _is_one_value(text):
        return [text]
    return cut(body, b"\n", limit)


def _is_one_value(text: bytes) -> bool:
    """Say whether a body is one JSON value."""
    # Nearly all are lines, and the first of them tells so without a look at the others.
    first, _, rest = text.partition(b"\n")
    with suppress(ProblemError):  # too deep for a parser: that row's fault
        return not (rest and check_value(first) is None) and check_value(text) is None
    return False


ROUTES = (Route(("/v0/events",), Rows()),)
