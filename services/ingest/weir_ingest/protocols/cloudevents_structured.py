"""CloudEvents in structured mode: the body is one event in JSON."""

from __future__ import annotations

from weir_ingest.head import Head
from weir_ingest.protocols.batch import Batch, BatchLimits
from weir_ingest.protocols.json_text import check_depth, readable
from weir_ingest.protocols.media import check_json_format

NAME = "cloudevents-structured"


def claims(head: Head) -> bool:
    """Say whether the content type is the structured mode's."""
    return head.content_type.startswith(b"application/cloudevents")


def read(head: Head, body: bytes, limits: BatchLimits) -> Batch:  # noqa: ARG001 - one event
    """Take the body as one event.

    Raises:
        ProblemError: 400, or 415 if the format is not JSON.
    """
    check_json_format(head)
    body = readable(body)
    check_depth(body)
    return Batch([body], NAME, strict=True, whole=True)
