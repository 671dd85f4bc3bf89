"""NDJSON: one JSON text on each line. A bad line harms no other."""

from __future__ import annotations

from weir_ingest.head import Head
from weir_ingest.protocols.batch import Batch, BatchLimits, cut, lenient

NAME = "ndjson"

_MEDIA_TYPES = (
    b"application/x-ndjson",
    b"application/ndjson",
    b"application/jsonl",
    b"application/x-jsonlines",
    b"application/jsonlines",
)


def claims(head: Head) -> bool:
    """Say whether the content type is one of those in use for NDJSON."""
    return head.content_type.startswith(_MEDIA_TYPES)


def read(head: Head, body: bytes, limits: BatchLimits) -> Batch:
    """Cut the body at its line ends; blank lines are none.

    Raises:
        ProblemError: 413 `too_many_events`.
    """
    return lenient(head, cut(body.removeprefix(b"\xef\xbb\xbf"), b"\n", limits.max_events), NAME)
