"""What clients may send to /v1/events: one file for each protocol, listed here.

A protocol says whether a request is its own (`claims`) and cuts the body into
items (`read`). What an item may be is not its business: `weir.admission` judges
all of them alike. The first that claims a request reads it.
"""

from __future__ import annotations

import typing

from weir_ingest.head import Head
from weir_ingest.protocols import (
    cloudevents_batch,
    cloudevents_binary,
    cloudevents_structured,
    json_body,
    json_seq,
    ndjson,
)
from weir_ingest.protocols.batch import Batch, BatchLimits
from weir_ingest.protocols.json_text import decoder_of_at_most


class Protocol(typing.Protocol):
    """What a module of this package offers."""

    def claims(self, head: Head) -> bool:
        """Say whether a request is this protocol's."""
        ...

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:
        """Cut a decoded body into its items."""
        ...


# The batch media type also starts like the structured one: it comes first.
PROTOCOLS: tuple[Protocol, ...] = (
    cloudevents_batch,
    cloudevents_structured,
    cloudevents_binary,
    ndjson,
    json_seq,
    json_body,  # claims everything: `curl -d` sends JSON as a form
)


def prepare(limits: BatchLimits) -> None:
    """Make what takes long, before the first request pays for it."""
    for limit in (limits.max_events, limits.max_batch_events):
        decoder_of_at_most(limit)


def read(head: Head, body: bytes, limits: BatchLimits) -> Batch:
    """Cut a decoded body into its items.

    Raises:
        ProblemError: If the body as a whole cannot be read.
    """
    for protocol in PROTOCOLS:
        if protocol.claims(head):
            return protocol.read(head, body, limits)
    raise AssertionError  # the last one claims everything
