"""What a quarantined record is now: an event after all, or still of no use. Pure.

Only a copy of what nobody could use is looked at (`Whole`); what one metric could not
use is counted by that metric's next version, from the log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from weir import names
from weir.admission import Admitted, Refused, Terms, admit, admit_foreign
from weir.definitions.job import Replay
from weir.event import DEFAULT_TENANT, FOREIGN_SOURCE
from weir.mappings.named import NAMED

PROTOCOL = "replay"
"""What `ingestproto` of an event says that came back so."""

Headers = Mapping[str, bytes | None]
_COUNT = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Whole:
    """A copy of a record that nobody could use.

    Attributes:
        origin: Where it stood in which log, `topic/topic id/partition/offset`; without the id
            if an earlier release copied it.
        tenant: Whose it is.
        source: From which source.
        reason: Why it could not be used.
        at_ms: When it was received.
        value: Its bytes.
        is_cut: Only their beginning was kept.
        left_out: How many more of its partition and batch nobody could use, and have no copy.
        mapped: How ingest read it (`weir.mappings.named`); empty: as an event or bare data.
    """

    origin: str
    tenant: str
    source: str
    reason: str
    at_ms: int
    value: bytes
    is_cut: bool
    left_out: int = 0
    mapped: str = ""


def whole_of(headers: Headers, value: bytes | None) -> Whole | None:
    """Return a record of `weir.quarantine` as the copy of a whole record.

    None if it is none: a note that one was put back, what one metric could not use, or a
    record that the engine did not write.
    """
    if names.HEADER_REPLAYED in headers or names.HEADER_VERSION in headers:
        return None
    at, origin = _text(headers, names.HEADER_AT), _text(headers, names.HEADER_ORIGIN)
    left_out = _text(headers, names.HEADER_LEFT_OUT)
    if not origin or not at.isdigit():
        return None
    return Whole(
        origin=origin,
        tenant=_text(headers, names.HEADER_TENANT),
        source=_text(headers, names.HEADER_SOURCE),
        reason=_text(headers, names.HEADER_REASON),
        at_ms=int(at),
        value=value or b"",
        is_cut=names.HEADER_SHA256 in headers,
        left_out=int(left_out) if _COUNT.fullmatch(left_out) else 0,
        mapped=_text(headers, names.HEADER_MAPPING),
    )


def is_wanted(wanted: Replay, tenant: str, copy: Whole) -> bool:
    """Tell whether a job asks for a copy; never for another tenant's."""
    return (
        copy.tenant == tenant
        and wanted.reason in (None, copy.reason)
        and wanted.source in (None, copy.source)
        and (wanted.since is None or copy.at_ms >= wanted.since)
        and (wanted.until is None or copy.at_ms < wanted.until)
    )


def mended(copy: Whole) -> Admitted | Refused:
    """Return the record that a copy becomes by the rules of this release, or why it cannot.

    A function of the copy alone: an item without an id gets one made of its origin, so that
    a record which is put back twice has one identity and one key. It was received when it
    was; what it says of its own time is read beside that.
    """
    if (copy.tenant, copy.source) == (DEFAULT_TENANT, FOREIGN_SOURCE):
        return admit_foreign(copy.value, received_ms=copy.at_ms, recheck=True, origin=copy.origin)
    if copy.mapped:
        return _admitted(copy, strict=False)
    # Which of Weir's own protocols it came by is not kept. Who claims to send CloudEvents is
    # taken at their word, so that the key is the one that a mended resend gets.
    found = _admitted(copy, strict=True)
    return found if isinstance(found, Admitted) else _admitted(copy, strict=False)


def _admitted(copy: Whole, *, strict: bool) -> Admitted | Refused:
    terms = Terms(
        tenant=copy.tenant,
        source=copy.source,
        arrived_ms=copy.at_ms,
        protocol=PROTOCOL,
        strict=strict,
        idempotency_key=copy.origin,
        mapping=NAMED.get(copy.mapped),
    )
    return admit(copy.value, 0, terms)


def _text(headers: Headers, name: str) -> str:
    return (headers.get(name) or b"").decode("utf-8", "replace")
