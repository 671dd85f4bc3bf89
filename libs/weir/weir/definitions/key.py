"""Keys: credentials of clients. Only the keyed hash is ever stored."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from weir.definitions.base import DefinitionModel, as_tuple
from weir.definitions.faults import fault
from weir.definitions.silence import Instant
from weir.event import OWNER_PATTERN

SCOPES: Final = ("ingest", "read", "tail", "define", "operate", "admin")
MOST_PER_S: Final = 10**12
"""The largest quota: ten seconds of it still fit the 15 digits of a number in a header field."""
_ID: Final = re.compile(r"[a-z0-9]{8}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_SOURCE: Final = re.compile(OWNER_PATTERN)


def _checked_id(name: str) -> str:
    if not _ID.fullmatch(name):
        raise fault(required="a key id: 8 of a-z and 0-9", mend="make the key through the API")
    return name


def _checked_hash(text: str) -> str:
    if not _HASH.fullmatch(text):
        mend = "never write the key itself into a definition; make it through the API"
        # The value is not said back: it may be the key.
        raise fault(required="64 hexadecimal digits", mend=mend, got="something else")
    return text


def _checked_scope(scope: str) -> str:
    if scope not in SCOPES:
        raise fault(required="a scope", mend=f"the scopes are {', '.join(SCOPES)}")
    return scope


def _checked_source(source: str) -> str:
    if not _SOURCE.fullmatch(source):
        required = "a source: up to 64 of a-z, 0-9, _, . and -, not one of the signs first"
        raise fault(required=required, mend="say what the client is, such as web or shop.app")
    return source


Rate = Annotated[int, Field(ge=1, le=MOST_PER_S, strict=True)]
"""So much a second."""


class Key(DefinitionModel):
    """An API key, `wk_<name>_<secret>`.

    Attributes:
        hash: HMAC-SHA256 of the whole key with the installation's `hash_key`, in hex.
        scopes: What it opens.
        source: The `weirsource` of the events that it sends.
        label: What people call it.
        expires: From when on it is refused as a wrong one is; None: never.
        events_per_s: How many events a second it may send, averaged over 10 s; None: any number.
        bytes_per_s: The same of the bytes of bodies, once decoded.
    """

    kind: Literal["key"] = "key"
    name: Annotated[str, AfterValidator(_checked_id)]
    hash: Annotated[str, AfterValidator(_checked_hash)]
    scopes: Annotated[
        tuple[Annotated[str, AfterValidator(_checked_scope)], ...],
        BeforeValidator(as_tuple),
        Field(min_length=1),
    ]
    source: Annotated[str, AfterValidator(_checked_source)] = "default"
    label: str = Field(default="", max_length=200)
    expires: Instant | None = None
    events_per_s: Rate | None = None
    bytes_per_s: Rate | None = None
