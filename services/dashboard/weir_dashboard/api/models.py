"""What the API takes and gives, as JSON. The OpenAPI description is made from these.

Requests refuse unknown members; answers may gain members, which clients ignore.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from weir.event import OWNER_PATTERN

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
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
    """One place of a request that is wrong."""

    pointer: str
    required: str
    got: str
    mend: str


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


class Key(Told):
    """An API key, without the key."""

    id: str
    label: str
    scopes: list[str]
    source: str
    created_ms: int
    created_by: str


class ShownKey(Key):
    """A new API key. The key itself is shown this once."""

    key: str


# ── definitions ─────────────────────────────────────────────────────────────


class DefinitionText(Sent):
    """The text of a definition, YAML 1.2 or JSON."""

    text: Annotated[str, Field(max_length=262_144)]


class Draft(DefinitionText):
    """The text of a definition that is not stored yet."""

    kind: str | None = None
    name: str | None = None


class StoredDefinition(Told):
    """A stored definition."""

    kind: str
    name: str
    version: int
    text: str
    parsed: dict[str, Any]
    by: str
    at_ms: int
    vid: int
    state: Literal["serving", "starting", "stored"]


class Change(Told):
    """One edit of a definition."""

    version: int
    op: Literal["put", "delete"]
    text: str | None
    by: str
    at_ms: int
    vid: int


class Progress(Told):
    """How far the newest version of a definition is in use.

    `active`: it is counted live (metrics), or in use at once (all other kinds).
    """

    kind: str
    name: str
    version: int
    active: bool
    serving: bool
    from_start: bool
    lanes: list[dict[str, Any]] = []


class Validation(Told):
    """What the check says about a draft."""

    ok: bool
    kind: str | None = None
    name: str | None = None
    parsed: dict[str, Any] | None = None
    message: str | None = None
    code: str | None = None
    errors: list[ProblemPlace] = []
    estimate: dict[str, Any] | None = None


# ── the flow ────────────────────────────────────────────────────────────────


class LedgerMinute(Told):
    """What became of the events received within one minute.

    `received` is what the batch records say was read of the log for that minute, null
    where they no longer reach back; `difference` is received less the five
    dispositions that are stored, and anything but 0 is a fault. `open`: still in flight.
    """

    minute_ms: int
    received: int | None
    counted: int
    duplicate: int
    quarantined: int
    beyond_horizon: int
    erased: int
    difference: int | None
    open: bool
    sources: dict[str, dict[str, int]]


class BatchCheck(Told):
    """Whether every batch record accounts for each record that it read of the log.

    `records` is what was read: `events`, of all tenants, and `ticks`, the records that the
    engine itself writes so that a quiet log goes on; `difference` is what is left.
    """

    records: int
    events: int
    ticks: int
    batches: int
    difference: int


class Ledger(Told):
    """The account of every received event, newest minute first."""

    items: list[LedgerMinute]
    next: str | None = None
    batches: BatchCheck
    fresh: Fresh


class Part(Told):
    """One process of Weir, by its heartbeat; Kafka and Redis by their answers."""

    name: str
    instance: str
    running: bool
    ready: bool
    status: str
    at_ms: int
    since_ms: int
    busy: float | None
    flow: Annotated[float | None, Field(alias="in")] = None
    lag_ms: int | None
    version: str
    rss_bytes: int | None
    detail: dict[str, Any]


class Status(Told):
    """All parts and how fresh the numbers are."""

    now_ms: int
    epoch: int
    rev: int
    fresh: Fresh
    parts: list[Part]


class Pipeline(Told):
    """The flow: the parts and which is the bottleneck."""

    bottleneck: str | None
    parts: list[Part]
    fresh: Fresh


class SeenType(Told):
    """An event type that has been received in the last hour."""

    type: str
    sources: list[str]
    count: int
    last_minute_ms: int


class IngestAddress(Told):
    """Where clients of this installation send events."""

    url: str
    events_url: str


class Quarantined(Told):
    """One record of `weir.quarantine`; `text` needs the scope `tail`."""

    id: str
    at_ms: int
    reason: str
    source: str
    origin: str | None
    version: int | None
    bytes: int
    text: str | None = None


class PreviewQuery(DefinitionText):
    """A metric draft to be tried on the newest events of the tail."""

    last: Annotated[int, Field(ge=1, le=200)] = 200


class PreviewEvent(Told):
    """What the draft makes of one event."""

    id: str
    type: str
    time_ms: int | None
    matched: bool
    value: float | None = None
    series: dict[str, str | None] | None = None
    reason: str | None = None


class Preview(Told):
    """What the draft makes of the newest events, newest first, and in all."""

    seen: int
    matched: int
    refused: int
    events: list[PreviewEvent]
