"""The id of an event that has none of its own: a function of the input alone.

The same entry at the same place of an input of the same name has the same id in every run, so
that what is sent again counts once. Two entries with the same bytes at different places have
different ids: they are two events.
"""

from __future__ import annotations

import hashlib
from typing import Final

SOURCE: Final = "urn:weir:send"
"""The `source` of events that get an id here. An identity is source and id: one that a key
implied would change with the key, and the events after an interruption would count again."""
# Ids of another form, should there ever be one, must not meet those of this one.
_FORM: Final = b"weir send 1"


def assigned_id(name: str, start: int, raw: bytes) -> str:
    """Return the id of an entry.

    Args:
        name: What the input is called.
        start: Offset of the entry's first byte.
        raw: Its bytes; white space around them does not count, since a line that had no end
            when it was sent may get one later.
    """
    called = name.encode("utf-8", "surrogateescape")
    parts = (_FORM, len(called).to_bytes(4, "big"), called, start.to_bytes(8, "big"), raw.strip())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


def request_key(name: str, start: int) -> str:
    """Return the Idempotency-Key of a request, by the entry that it begins with.

    Every event has an id as it is sent; this is for what ingest reads otherwise than we do.
    """
    return assigned_id(name, start, b"request")
