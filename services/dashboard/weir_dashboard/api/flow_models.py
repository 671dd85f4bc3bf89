"""What the API gives of the flow: the ledger, the parts, what holds numbers back."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from weir_dashboard.api.models import Fresh, Page, Told


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


class Holding(Told):
    """Why numbers are not at the present: a code of a closed set, and a sentence.

    `quiet` is said of numbers that are live: nothing has been sent. `newer_release` is said of
    what a newer release has written and this one cannot read: answers that need it are 503.
    """

    code: Literal[
        "quiet",
        "rebuilding",
        "redis_away",
        "redis_refuses",
        "kafka_away",
        "partition_without_leader",
        "driver_away",
        "driver_waiting",
        "batch_stuck",
        "lanes_busy",
        "load",
        "catching_up",
        "ingest_away",
        "hub_away",
        "newer_release",
    ]
    message: str


class Lag(Told):
    """How far counting is behind: records that are not counted, and age of the numbers.

    Refused items and what came twice are among the records, since only counting tells them from
    events; ticks are not, but of a driver before this one, or where none is heard. Null: not known.
    """

    records: int | None
    ms: int | None


class LogHeld(Told):
    """For how long the log still holds what is not counted: by age, and by size at today's rate.

    `left_ms` is that of `partition`, where it ends first, `kept_ms` what it is for an event
    that comes now; null: for ever, or not known. `warning` comes with less than a quarter left.
    """

    left_ms: int | None
    partition: int | None
    kept_ms: int | None
    oldest_ms: int | None
    warning: str | None


class QuarantineHeld(Told):
    """For how long quarantine still holds what no replay has looked into, of all tenants.

    Null: nothing waits, or it is kept for ever, or no driver tells. `kept_ms` is what it is for an
    event that comes now. `warning` comes with less than a quarter left.
    """

    left_ms: int | None
    kept_ms: int | None
    warning: str | None


class DedupGap(Told):
    """Partitions were added: until then an event that is sent again may count once more."""

    partitions_before: int
    partitions: int
    since_ms: int
    until_ms: int


class Status(Told):
    """All parts, how fresh the numbers are, and what holds them back."""

    now_ms: int
    epoch: int
    rev: int
    fresh: Fresh
    holding: Holding | None
    lag: Lag
    log: LogHeld
    quarantine: QuarantineHeld
    dedup_gap: DedupGap | None
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
    """One record of `weir.quarantine`; `text` needs the scope `tail`.

    `version` is the id of the metric's version that could not use the event, `metric` and
    `metric_version` what it is called; null: nobody could use the record. `left_out` is how many
    later ones of the same version, partition and batch have no copy. `replayed_ms` says in lists
    when it was put back into the log.
    """

    id: str
    at_ms: int
    reason: str
    source: str
    origin: str | None
    version: int | None
    metric: str | None = None
    metric_version: int | None = None
    bytes: int
    left_out: int = 0
    text: str | None = None
    replayed_ms: int | None = None


class Copied(Told):
    """Of how many events of a version and partition there are copies, and of how many none.

    `version`, `metric`, `metric_version`: as of a record; `partition` is one of the log. `message`
    says in words what is missing and what to do; null if nothing is.
    """

    version: int | None
    metric: str | None
    metric_version: int | None
    partition: int | None
    copies: int
    left_out: int
    message: str | None


class QuarantinePage(Page[Quarantined]):
    """The newest copies, and what they are not: the whole.

    `left_out` tells of which versions and partitions more could not be used than is copied, among
    all copies that were read for this list, whatever their reason; `whole`: there is nothing older
    than what is listed. Of everything tells `/quarantine/summary`.
    """

    left_out: list[Copied]
    whole: bool


class QuarantineSummary(Told):
    """How many events are copied and how many are not, where most is missing first.

    `whole`: all of the topic was read; else the newest 50,000 records, or 256 MB, of all tenants.
    """

    items: list[Copied]
    copies: int
    left_out: int
    whole: bool
