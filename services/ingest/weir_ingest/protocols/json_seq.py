"""JSON text sequences (RFC 7464): each text begins with a record separator."""

from __future__ import annotations

from weir_ingest.head import Head
from weir_ingest.protocols.batch import Batch, BatchLimits, check_count, lenient

NAME = "json-seq"


def claims(head: Head) -> bool:
    """Say whether the content type is the sequence's."""
    return head.content_type.startswith(b"application/json-seq")


def read(head: Head, body: bytes, limits: BatchLimits) -> Batch:
    """Cut the body at its record separators.

    Raises:
        ProblemError: 413 `too_many_events`.
    """
    items = [text for text in body.split(b"\x1e") if text and not text.isspace()]
    check_count(len(items), limits.max_events)
    return lenient(head, items, NAME)
