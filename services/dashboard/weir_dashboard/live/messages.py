"""What the server says on the live socket, for its description and for tests.

The hub writes plain dictionaries, for speed; a test holds them against these.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict
from weir.live import Delta

from weir_dashboard.api.alert_models import Alert
from weir_dashboard.api.models import Fresh, Problem
from weir_dashboard.api.read_models import Answer, Correction


class Limits(TypedDict):
    """What a socket may ask for."""

    subscriptions: int
    frame_bytes: int
    messages_per_s: int
    hz: float


class Welcome(TypedDict):
    """Answers hello."""

    op: Literal["welcome"]
    v: Literal[1]
    epoch: int
    rev: int
    now_ms: int
    heartbeat_ms: int
    key_id: str
    scopes: list[str]
    limits: Limits


class Subscribed(TypedDict):
    """Answers subscribe, before anything of the feed comes."""

    op: Literal["subscribed"]
    id: int
    key: str
    query: NotRequired[dict[str, Any]]
    filter: NotRequired[dict[str, Any]]


class Snapshot(TypedDict):
    """A whole answer, or one part of it: each part has its share of the series."""

    op: Literal["snapshot"]
    key: str
    epoch: int
    rev: int
    part: int
    parts: int
    answer: Answer


class DeltaFrame(Delta):
    """What changed in an answer."""

    op: Literal["delta"]
    key: str


class Heartbeat(TypedDict):
    """The pulse: how fresh the numbers are."""

    op: Literal["heartbeat"]
    now_ms: int
    epoch: int
    rev: int
    fresh: Fresh


class TailEvent(TypedDict):
    """A sampled event as ingest copied it; `data` is JSON text, cut at 8 KB."""

    id: str
    type: str
    source: str
    weirsource: NotRequired[str]
    received_ms: int
    time_ms: NotRequired[int | None]
    subject: NotRequired[str | None]
    at: tuple[int, int]
    data: str
    cut: bool
    reason: NotRequired[str | None]


class Refused(TypedDict):
    """A metric that could not use an event."""

    metric: str
    code: str


class Fate(TypedDict):
    """What became of a shown event."""

    id: str
    at: tuple[int, int]
    fate: Literal["counted", "duplicate", "quarantined", "beyond_horizon", "erased"]
    reason: str | None
    refused: list[Refused]


class Tail(TypedDict):
    """Events of the live tail: `shown` of the `of` that came since the last frame."""

    op: Literal["tail"]
    key: str
    shown: int
    of: int
    events: list[TailEvent]
    fates: list[Fate]


PipelinePart = TypedDict(
    "PipelinePart",
    {
        "name": str,
        "instance": str,
        "status": str,
        "since_ms": int,
        "busy": float | None,
        "in": float | None,
        "lag_ms": int | None,
    },
)


class Pipeline(TypedDict):
    """The parts, which of them is the bottleneck, and what is about to be deleted.

    The warnings are those of `log` and `quarantine` in `GET /status`: null while there is time.
    """

    op: Literal["pipeline"]
    key: str
    bottleneck: str | None
    log_warning: str | None
    quarantine_warning: str | None
    parts: list[PipelinePart]


class AlertFrame(TypedDict):
    """One alert as it is now; `seq` is the offset of its newest record in `weir.alerts`."""

    op: Literal["alert"]
    key: str
    seq: int
    alert: Alert


class AlertsFrame(TypedDict):
    """Which alerts fire as of a `seq`: after it nothing that came before is missing."""

    op: Literal["alerts"]
    key: str
    seq: int
    open: list[str]


class CorrectionFrame(TypedDict):
    """What late events changed since the last frame, the newest first.

    `seq` is the place up to which all is told; `of` how many there were, of which `items`
    has the newest 200.
    """

    op: Literal["correction"]
    key: str
    seq: int
    of: int
    items: list[Correction]


class ErrorFrame(TypedDict):
    """A refusal; the socket stays open."""

    op: Literal["error"]
    id: int | None
    problem: Problem


class Goodbye(TypedDict):
    """The server closes; the client comes back after `after_ms`."""

    op: Literal["goodbye"]
    code: int
    reason: str
    after_ms: int


SENT: dict[str, Any] = {
    "welcome": Welcome,
    "subscribed": Subscribed,
    "snapshot": Snapshot,
    "delta": DeltaFrame,
    "heartbeat": Heartbeat,
    "tail": Tail,
    "pipeline": Pipeline,
    "alert": AlertFrame,
    "alerts": AlertsFrame,
    "correction": CorrectionFrame,
    "error": ErrorFrame,
    "goodbye": Goodbye,
}
