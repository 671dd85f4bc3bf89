"""JSON text sequences (RFC 7464): each text begins with a record separator."""

from __future__ import annotations

from weir_ingest.head import Head
from weir_ingest.protocols.batch import Batch, BatchLimits, cut, lenient

NAME = "json-seq"


def claims(head: Head) -> bool:
    """Say whether the content type is the sequence's."""
    return head.content_type.startswith(b"application/json-seq")


def read(head: Head, body: bytes, limits: BatchLimits) -> Batch:
    """Cut the body at its record separators.

    Raises:
        ProblemError: 413 `too_many_events`.
    """
    return lenient(head, cut(body, b"\x1e", limits.max_events), NAME)
