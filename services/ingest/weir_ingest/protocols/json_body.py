"""A JSON array or a single object, under whatever content type.

Clients send JSON as a form (`curl -d`), as text or without a type; and NDJSON as
JSON. The first byte and the first line tell.
"""

from __future__ import annotations

from weir_ingest.head import Head
from weir_ingest.protocols import ndjson
from weir_ingest.protocols.batch import Batch, BatchLimits, lenient
from weir_ingest.protocols.json_text import check_value, invalid_json, readable, split_array

NAME = "json"


def claims(head: Head) -> bool:  # noqa: ARG001 - the last in the list takes what is left
    """Claim every request."""
    return True


def read(head: Head, body: bytes, limits: BatchLimits) -> Batch:
    """Cut the body into its items.

    Raises:
        ProblemError: 400 `invalid_json`, `too_deep`, 413 `too_many_events`.
    """
    if b"\n" in body.strip() and _is_lines(body):
        return ndjson.read(head, body, limits)
    body = readable(body)
    if body.lstrip()[:1] == b"[":
        return lenient(head, split_array(body, limits.max_events), NAME)
    why = check_value(body)
    if why is not None:
        raise invalid_json(why)
    return lenient(head, [body], NAME, whole=True)


def _is_lines(body: bytes) -> bool:
    """Say whether the first line is a whole JSON object, and the body is not."""
    first = body.lstrip().split(b"\n", 1)[0].strip()
    return first[:1] == b"{" and first[-1:] == b"}" and check_value(first) is None
