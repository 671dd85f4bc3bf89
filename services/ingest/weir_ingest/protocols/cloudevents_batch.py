"""CloudEvents in batched mode: a JSON array of events."""

from __future__ import annotations

from weir_ingest.head import Head
from weir_ingest.protocols.batch import Batch, BatchLimits
from weir_ingest.protocols.json_text import readable, split_array
from weir_ingest.protocols.media import check_json_format

NAME = "cloudevents-batch"


def claims(head: Head) -> bool:
    """Say whether the content type is the batch's."""
    return head.content_type.startswith(b"application/cloudevents-batch")


def read(head: Head, body: bytes, limits: BatchLimits) -> Batch:
    """Cut a batch into its events; an empty one is valid.

    Raises:
        ProblemError: 400, 413 `too_many_events`, 415 if the format is not JSON.
    """
    check_json_format(head)
    items = split_array(readable(body), limits.max_batch_events)
    return Batch(items, NAME, strict=True)
