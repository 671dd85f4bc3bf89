"""What the API takes and gives, as JSON. The OpenAPI description is made from these.

Requests refuse unknown members; answers may gain members, which clients ignore.
"""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from weir.definitions.durations import DurationMs
from weir.definitions.key import Rate
from weir.definitions.silence import Instant
from weir.event import OWNER_PATTERN

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
At = Annotated[
    Instant, Field(json_schema_extra={"type": "string", "example": "2027-01-31T18:00:00Z"})
]
T = TypeVar("T")


class Sent(BaseModel):
    """A request: unknown members are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Told(BaseModel):
    """An answer."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Page(Told, Generic[T]):
    """A list, newest first; `next` is the cursor of the following page, or null."""

    items: list[T]
    next: str | None = None


class ProblemPlace(Told):
    """One place of a request that is wrong.

    In an expression `at` is the character, from 0, and `excerpt` two lines: the text, and
    `^` below the place.
    """

    pointer: str
    required: str
    got: str
    mend: str
    at: int | None = None
    excerpt: str | None = None


class Problem(Told):
    """Why something was refused (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    message: str
    errors: list[ProblemPlace] | None = None


class Fresh(Told):
    """How old the numbers are, and which part is to blame."""

    status: Literal["live", "behind", "stale", "rebuilding"]
    processed_through_ms: int | None
    received_ms: int | None = None
    evaluated_ms: int | None = None
    since_ms: int | None = None
    part: str | None = None
    progress: float | None = None


# ── sessions and keys ───────────────────────────────────────────────────────


class SignIn(Sent):
    """Credentials: an API key, or the token of a sign-in link."""

    key: Annotated[str, Field(max_length=256)] | None = None
    once: Annotated[str, Field(max_length=256)] | None = None


class Session(Told):
    """Who is calling; everything else is null for nobody."""

    signed_in: bool
    tenant: str | None = None
    scopes: list[str] = []
    key_id: str | None = None


class Once(Told):
    """A single-use sign-in token, good for ten minutes."""

    once: str
    path: str
    expires_ms: int


class NewKey(Sent):
    """An API key to make. Its scopes must not exceed the maker's."""

    label: Annotated[str, Field(max_length=100)] = ""
    scopes: Annotated[
        list[Literal["ingest", "read", "tail", "define", "operate", "admin"]],
        Field(min_length=1, max_length=6),
    ]
    source: Annotated[str, Field(pattern=f"^{OWNER_PATTERN}$")] = "http"
    expires: At | None = None
    events_per_s: Rate | None = None
    bytes_per_s: Rate | None = None


class Rotation(Sent):
    """How a key is replaced: for how long both are good, and when the new one expires."""

    overlap: Annotated[
        DurationMs, Field(json_schema_extra={"type": "string", "example": "24h"})
    ] = 86_400_000
    expires: At | None = None


class Key(Told):
    """An API key, without the key.

    `expires_ms`: null: never. `events_per_s`, `bytes_per_s`: null: no quota. `last_used_ms`:
    to within a minute; null: not known.
    """

    id: str
    label: str
    scopes: list[str]
    source: str
    created_ms: int
    created_by: str
    expires_ms: int | None
    events_per_s: int | None
    bytes_per_s: int | None
    last_used_ms: int | None


class ShownKey(Key):
    """A new API key. The key itself is shown this once."""

    key: str


class RotatedKey(ShownKey):
    """A new API key in place of another, and when that one ends."""

    old_id: str
    old_expires_ms: int
