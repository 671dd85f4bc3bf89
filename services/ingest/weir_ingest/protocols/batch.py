"""The items of one request, whatever protocol they came in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from weir.mappings import Mapping
from weir.problems import ProblemError, Reason, echo

from weir_ingest.head import Head

_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,128}", re.ASCII)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How many events one request may hold.

    Attributes:
        max_events: In most protocols.
        max_batch_events: In a CloudEvents batch.
    """

    max_events: int
    max_batch_events: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Items as the client wrote them, and what holds for all of them.

    Attributes:
        items: JSON texts, not yet checked.
        protocol: Its name in `ingestproto` and metrics.
        strict: Items claim to be CloudEvents.
        whole: The body is one item: if it is no JSON, the request is refused.
        type: Type of an item without one.
        subject: Subject of an item without one.
        mapping: Reads items of a client that knows nothing of Weir.
        mapped: The name of that mapping (`weir.mappings.named`), by which a replay reads
            what is refused now.
    """

    items: Sequence[bytes]
    protocol: str
    strict: bool = False
    whole: bool = False
    type: str | None = None
    subject: str | None = None
    mapping: Mapping | None = None
    mapped: str = ""


def lenient(head: Head, items: Sequence[bytes], protocol: str, *, whole: bool = False) -> Batch:
    """Return a batch of items that need not be CloudEvents (INGEST 4.6).

    Raises:
        ProblemError: 400 `attribute_invalid`, if ?type=, ?name= or ?subject= is
            no usable attribute.
    """
    query = head.query
    event_type = _attribute("type", query.get("type"))
    name = query.get("name")
    if event_type is None and name is not None:
        if not _NAME.fullmatch(name):
            message = f'name must be 1 to 128 of A-Z a-z 0-9 _ . -, got "{echo(name)}"'
            raise ProblemError(400, Reason.ATTRIBUTE_INVALID, message)
        event_type = f"dev.weir.ndjson.{name}"
    subject = _attribute("subject", query.get("subject"))
    return Batch(items, protocol, whole=whole, type=event_type, subject=subject)


def _attribute(name: str, value: str | None) -> str | None:
    if not value:
        return None
    if len(value) > 512 or not value.isprintable():
        message = f'{name} must be at most 512 printable characters, got "{echo(value)}"'
        raise ProblemError(400, Reason.ATTRIBUTE_INVALID, message)
    return value


def cut(body: bytes, separator: bytes, limit: int) -> list[bytes]:
    """Return the texts between separators; blank ones are none.

    It ends at the limit: a body of nothing but separators would make millions.

    Raises:
        ProblemError: 413 `too_many_events`.
    """
    if body.count(separator) <= limit:
        texts = [text for text in body.split(separator) if text and not text.isspace()]
        if len(texts) > limit:
            raise too_many_events(limit)
        return texts
    texts = []
    at = 0
    for match in _text_after(separator).finditer(body):
        if len(texts) == limit:
            raise too_many_events(limit)
        # White space before a text is its own: an assigned id is made of all its bytes.
        start = body.rfind(separator, at, match.start()) + 1
        texts.append(body[max(start, at) : match.end()])
        at = match.end()
    return texts


@lru_cache
def _text_after(separator: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"[^\s%b][^%b]*+" % (separator, separator))


def too_many_events(limit: int) -> ProblemError:
    """Return the refusal of a request with more events than it may hold."""
    message = f"a request must hold at most {limit} events, got more; send them in parts"
    return ProblemError(413, Reason.TOO_MANY_EVENTS, message)
