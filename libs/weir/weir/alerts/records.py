"""The records of `weir.alerts`: what is written before anything is sent, and what became of it.

One partition; the key is the tenant. A `look` holds everything that one look changed
of one series: the transitions, the state after them, and the messages that follow, with
their text. So no crash can leave a transition without its message or its state. The fold
that reads them is in `fold.py`.

Unknown members are ignored and members added later have defaults, so that records are read
for as long as they are kept (400 days), by later releases and by earlier ones.
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal

import msgspec

from weir import names
from weir.alerts.step import Series, Transition
from weir.formats import Newer, NewerFormatError, checked

VERSION: Final = 1


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """One message: the body of a webhook; other channels render it.

    Attributes:
        id: The same whenever it is sent again.
        kind: `firing confirmed amended withdrawn resolved ended no_data heartbeat test`.
        verdict: `provisional` or `confirmed`.
        dedup_key: The same for every message of one alert.
        tenant, rule, rule_version: Whose, which, and which version of it.
        labels: Dimension values and the rule's own labels.
        severity: The rule's.
        title, text: What it says.
        value, low, high: The number with its bounds; None where silence is told.
        limit: What it is held against: a number, or the two of `outside`.
        unit: Of the value.
        count: Events in the window.
        since_ms: End of the first window beyond.
        at_ms: End of the window that made the change.
        before, before_low, before_high: The value that was told before, with its bounds.
        reason: Why, where the kind does not say it.
        links: `alert`, and `runbook` if the rule names one.
    """

    id: str
    kind: str
    verdict: str
    dedup_key: str
    tenant: str
    rule: str
    rule_version: int
    labels: dict[str, str | None]
    severity: str
    title: str
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | tuple[float, float] | None = None
    unit: str = ""
    count: int | None = None
    since_ms: int | None = None
    at_ms: int = 0
    before: float | None = None
    before_low: float | None = None
    before_high: float | None = None
    reason: str | None = None
    links: dict[str, str] = msgspec.field(default_factory=dict)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A notification and who gets it.

    Attributes:
        notification: It.
        channels: Those that must get it.
        held: Those that would get it, were it not silenced.
        silences: What silences it.
    """

    notification: Notification
    channels: list[str]
    held: list[str] = msgspec.field(default_factory=list)
    silences: list[str] = msgspec.field(default_factory=list)


class Look(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="look"):
    """What one look changed of one series.

    Attributes:
        v: Version of this format.
        fence: Offset of the start record of the job that wrote it.
        tenant, rule: Whose, which.
        vid: Offset of the rule's version in `weir.definitions`.
        group: Values of the rule's dimensions, in its order.
        transitions: What changed, in order.
        series: What is known after it, without its tail; None if the series was given up.
        messages: What is to be sent.
        through_ms: Processed-through of the look.
        at_ms: When, by the writer's clock.
    """

    v: int = VERSION
    fence: int
    tenant: str
    rule: str
    vid: int
    group: list[str | None]
    transitions: list[Transition]
    series: Series | None
    messages: list[Message] = msgspec.field(default_factory=list)
    through_ms: int = 0
    at_ms: int = 0


class Delivery(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="delivery"):
    """What became of one message on one channel.

    Attributes:
        id: The notification.
        channel: The channel.
        outcome: `delivered`, `refused` (for good) or `given_up` (after a day); of a test
            also `failed`, as one that is not tried again.
        status: What the receiver answered; None without an answer.
        why: What went wrong, in few words.
        barred: Whether its address is not allowed.
        tries: How often it was sent.
        took_ms: How long the last answer took.
    """

    v: int = VERSION
    fence: int
    tenant: str
    id: str
    channel: str
    outcome: str
    status: int | None = None
    why: str = ""
    barred: bool = False
    tries: int = 1
    took_ms: int = 0
    at_ms: int = 0


class Attempt(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="attempt"):
    """The first try of a message that failed and is made again: from when a channel fails.

    Attributes:
        id, channel: As of a delivery.
        status, why, took_ms: What came of it.
    """

    v: int = VERSION
    fence: int
    tenant: str
    id: str
    channel: str
    status: int | None = None
    why: str = ""
    took_ms: int = 0
    at_ms: int = 0


class Cursor(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="cursor"):
    """Up to where every series of a tenant's rules is settled: nothing has to be told of it.

    One record for all of them: the topic is kept for over a year and read from its start.

    Attributes:
        settled_ms: By vid of the rule's version: windows that end up to here have been
            looked at for good.
    """

    v: int = VERSION
    fence: int
    tenant: str
    settled_ms: dict[int, int]
    at_ms: int = 0


class Acknowledgement(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="acknowledgement"
):
    """Somebody has taken an alert on, or gives it back; written by the API, without a fence.

    Attributes:
        alert: The alert's dedup key.
        op: `put`, or `delete` to give it back.
        by: Who.
        note: What they say.
        until_ms: Up to which processed-through; it ends with the alert at the latest.
    """

    v: int = VERSION
    tenant: str
    alert: str
    op: Literal["put", "delete"]
    by: str
    note: str = ""
    until_ms: int = 0
    at_ms: int = 0


class Trial(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="test"):
    """Somebody asks for a test of a channel; written by the API, without a fence.

    The job answers with a delivery of the same id.
    """

    v: int = VERSION
    tenant: str
    id: str
    channel: str
    by: str
    at_ms: int = 0


Record = Look | Delivery | Attempt | Cursor | Acknowledgement | Trial

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final[msgspec.json.Decoder[Record]] = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """Return a record as the JSON that the topic holds."""
    return _ENCODER.encode(record)


def decode(text: bytes) -> Record:
    """Return the record that a JSON text holds.

    Raises:
        NewerFormatError: If a newer release wrote it.
        ValueError: If it is none of this format.
    """
    return _DECODER.decode(checked(text, f"record of {names.ALERTS}", VERSION))


class Reader:
    """Says which records of `weir.alerts` count, for whoever folds them in their order.

    Each counts once; one that cannot be read does not, nor one of a job that an other has
    taken over from.

    Attributes:
        next_offset: The offset after the last record.
        fence: The latest job that wrote; 0 before any.
        newer: What a newer release wrote.
    """

    def __init__(self) -> None:
        self.next_offset = 0
        self.fence = 0
        self.newer = Newer()

    def take(self, offset: int, value: bytes) -> Record | None:
        """Return the record if it counts."""
        if offset < self.next_offset:
            return None
        self.next_offset = offset + 1
        try:
            record = decode(value)
        except NewerFormatError as error:
            self.newer.meet(error.message)
            return None
        except ValueError:
            return None
        if isinstance(record, Acknowledgement | Trial):
            # People ask, and no job takes over from them.
            return record
        if record.fence < self.fence:
            return None
        self.fence = record.fence
        return record


def dedup_key(tenant: str, vid: int, series: str, key_ms: int) -> str:
    """Return what every message of one alert carries.

    Args:
        tenant: Whose.
        vid: The version of the rule.
        series: Its dimension values as one text.
        key_ms: Identity of the alert within its series.
    """
    return _digest(tenant, str(vid), series, str(key_ms))


def notification_id(key: str, kind: str, through_ms: int) -> str:
    """Return the id of a message, the same whenever it is made again."""
    return "ntf_" + _digest(key, kind, str(through_ms))


def _digest(*parts: str) -> str:
    joined = b"".join(len(p.encode()).to_bytes(4, "big") + p.encode() for p in parts)
    return hashlib.sha256(joined).hexdigest()[:32]
