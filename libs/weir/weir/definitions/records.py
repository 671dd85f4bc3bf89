"""The records of `weir.definitions`: how changes and what drivers say are written.

Builders return key and value as they are appended; the reader of each format
version is in `fold.py`. `vid` of a definition is the offset that its record gets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from weir.definitions.history import Horizons, Spread

FORMAT: Final = 1
"""The version of the format that is written now, but of what stands in a bundle."""

BUNDLED: Final = 2
"""The version of a record in a bundle: a reader of the first would take it without the others."""

DRIVER_PREFIX: Final = "_/"


class NewRecord(NamedTuple):
    """A record to append to the topic's one partition."""

    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class Edit:
    """Who changes what.

    Attributes:
        tenant: Whose definition.
        kind: Its kind.
        name: Its name.
        based_on: The version that the change was made from; None where there was none.
            Readers ignore the record if another version is current when they meet it.
        by: Who makes it, such as `key:a1b2c3d4`.
        at_ms: When, by the writer's clock.
    """

    tenant: str
    kind: str
    name: str
    based_on: int | None
    by: str
    at_ms: int


def put_record(edit: Edit, text: str) -> NewRecord:
    """Return the record that makes a text the next version of a definition.

    Args:
        edit: Who changes what.
        text: As it was written; checked before.
    """
    return _change(edit, "put", text)


def delete_record(edit: Edit) -> NewRecord:
    """Return the record that deletes a definition; its history stays."""
    return _change(edit, "delete", "")


def bundle_records(puts: Sequence[tuple[Edit, str]], bundle: str) -> list[NewRecord]:
    """Return the records that make texts the next versions of several definitions, or none.

    They are to be appended in their order, with nothing between them.

    Args:
        puts: Who changes what, and the text; each definition once. One alone is no bundle.
        bundle: What nobody else calls a bundle.
    """
    if len(puts) == 1:
        return [put_record(*puts[0])]
    return [
        _change(edit, "put", text, bundle={"id": bundle, "at": at, "of": len(puts)})
        for at, (edit, text) in enumerate(puts)
    ]


def _change(
    edit: Edit,
    op: Literal["put", "delete"],
    text: str,
    *,
    bundle: Mapping[str, Any] | None = None,
) -> NewRecord:
    value: dict[str, Any] = {
        "v": FORMAT if bundle is None else BUNDLED,
        "tenant": edit.tenant,
        "kind": edit.kind,
        "name": edit.name,
        "version": (edit.based_on or 0) + 1,
        "based_on": edit.based_on,
        "op": op,
        "text": text,
        "by": edit.by,
        "at_ms": edit.at_ms,
    }
    if bundle is not None:
        value["bundle"] = bundle
    return NewRecord(f"{edit.tenant}/{edit.kind}/{edit.name}".encode(), _json(value))


@dataclass(frozen=True, slots=True)
class DriverStart:
    """A driver's start, before it is written.

    Attributes:
        instance: Which process.
        shards: Over how many shards series are spread.
        reason: `start`, `lost`, `behind` or `rewind`.
        epoch: The epoch that goes on; None: the record's own offset begins a new one.
        incomplete_before_ms: Panes that start earlier are incomplete; 0: none.
        horizon_ms: The dedup horizon that it is set to.
        beyond_ms: Events older than this when received are to be beyond the horizon. From
            where both hold, `horizons_record` says.
        tenant_bytes: What all metrics of a tenant may take together; None: it is not said.
        events_id: Kafka's id of the log that the epoch counts; None: it is not known.
        cut_short: Where that log ended when the epoch began, if it had lost its end: what was
            said before of later offsets stands there. None: nothing was lost.
        follows: The fence of the start that the driver has read last, `NO_START`: there is none.
            Where another one has come between, the record is a fence and no more. None: it is
            not said.
    """

    instance: str
    shards: int
    reason: Literal["start", "lost", "behind", "rewind"]
    epoch: int | None = None
    incomplete_before_ms: int = 0
    horizon_ms: int = 0
    beyond_ms: int = 0
    tenant_bytes: int | None = None
    events_id: str | None = None
    cut_short: Mapping[int, int] | None = None
    follows: int | None = None


def start_record(start: DriverStart, *, at_ms: int, job: str = "panes") -> NewRecord:
    """Return the record whose offset becomes the driver's fence."""
    fields = {
        "instance": start.instance,
        "shards": start.shards,
        "reason": start.reason,
        "epoch": start.epoch,
        "incomplete_before_ms": start.incomplete_before_ms,
        "horizon_ms": start.horizon_ms,
        "beyond_ms": start.beyond_ms,
        "tenant_bytes": start.tenant_bytes,
        "events_id": start.events_id,
        "cut_short": None if start.cut_short is None else _offsets(start.cut_short),
        "follows": start.follows,
    }
    # The fence of a start record is its own offset, which nobody knows before.
    return _driver("start", job, None, at_ms, fields)


@dataclass(frozen=True, slots=True)
class Counting:
    """From where, or up to where, a version of a metric is counted.

    Attributes:
        vid: The version: the offset of its record.
        tenant: Its tenant.
        name: Its name.
        version: Its number.
        offsets: Partition -> offset: events at or after it, of a stop: before it.
        after: The vid that it follows, None if there is none.
        cut: Resolution in seconds -> start in seconds of the first pane that is its
            own; earlier ones belong to `after`. None without a predecessor.
        from_start: No event of the log lies before the offsets.
        fills: What lies before the offsets is counted by a lane; the version serves from its
            takeover on.
        topic_id: Kafka's id of the `weir.events` that the offsets are of.
    """

    vid: int
    tenant: str
    name: str
    version: int
    offsets: Mapping[int, int]
    after: int | None = None
    cut: Mapping[int, int] | None = None
    from_start: bool = False
    fills: bool = False
    topic_id: str = ""


def activation_record(
    counting: Counting, *, op: Literal["start", "stop"], fence: int, at_ms: int, job: str = "panes"
) -> NewRecord:
    """Return the record by which a driver begins or stops to count a version."""
    fields = {
        "vid": counting.vid,
        "tenant": counting.tenant,
        "name": counting.name,
        "version": counting.version,
        "op": op,
        "offsets": _offsets(counting.offsets),
        "after": counting.after,
        "cut": None if counting.cut is None else _offsets(counting.cut),
        "from_start": counting.from_start,
        "fills": counting.fills,
        "topic_id": counting.topic_id,
    }
    return _driver("activation", job, fence, at_ms, fields)


@dataclass(frozen=True, slots=True)
class OpenLane:
    """A range of the log that is counted beside the live one, before it is written.

    Attributes:
        kind: `backfill` of versions, or `rebuild` of shards.
        topic_id: Kafka's id of `weir.events`: offsets of another topic mean nothing.
        vids: The versions that a backfill counts; empty for a rebuild, which counts what
            live counting would have.
        shards: The shards that a rebuild counts for; empty for a backfill, which is for all.
        start: Partition -> first offset.
        end: Partition -> offset after the last.
        until_ms: All its records were received before this instant.
        complete_from_ms: Panes that start earlier may lack events that the log no longer has;
            0: none.
        copies: Whether a rebuild copies to quarantine what cannot be used: nobody can say that
            this was done when its range was counted first.
    """

    kind: Literal["backfill", "rebuild"]
    topic_id: str
    start: Mapping[int, int]
    end: Mapping[int, int]
    vids: tuple[int, ...] = ()
    shards: tuple[int, ...] = ()
    until_ms: int = 0
    complete_from_ms: int = 0
    copies: bool = False


def lane_record(lane: OpenLane, *, fence: int, at_ms: int, job: str = "panes") -> NewRecord:
    """Return the record whose offset names a lane from then on."""
    fields = {
        "kind": lane.kind,
        "topic_id": lane.topic_id,
        "vids": list(lane.vids),
        "shards": list(lane.shards),
        "start": _offsets(lane.start),
        "end": _offsets(lane.end),
        "until_ms": lane.until_ms,
        "complete_from_ms": lane.complete_from_ms,
        "copies": lane.copies,
    }
    return _driver("lane", job, fence, at_ms, fields)


@dataclass(frozen=True, slots=True)
class TakeOver:
    """From where a version serves that was filled from the log.

    Attributes:
        vid: The version.
        after: The vid that served before; None if none did.
        offsets: Partition -> offset: to events at or after it the cut applies. The version
            after the cut leaves earlier panes out, the one before it later ones.
        cut: Resolution in seconds -> start in seconds of the first pane that the version holds
            completely. None without a predecessor: all panes are its own.
        complete_from_ms: Panes that start earlier are incomplete; 0: none.
        topic_id: Kafka's id of the `weir.events` that the offsets are of.
    """

    vid: int
    after: int | None
    offsets: Mapping[int, int]
    cut: Mapping[int, int] | None
    complete_from_ms: int = 0
    topic_id: str = ""


def takeover_record(taken: TakeOver, *, fence: int, at_ms: int, job: str = "panes") -> NewRecord:
    """Return the record by which a version takes over from its predecessor."""
    fields = {
        "vid": taken.vid,
        "after": taken.after,
        "offsets": _offsets(taken.offsets),
        "cut": None if taken.cut is None else _offsets(taken.cut),
        "complete_from_ms": taken.complete_from_ms,
        "topic_id": taken.topic_id,
    }
    return _driver("takeover", job, fence, at_ms, fields)


def aside_record(
    vid: int, why: str | None, *, fence: int, at_ms: int, job: str = "panes"
) -> NewRecord:
    """Return the record by which a driver sets a version aside, or takes that back.

    Args:
        vid: The version: one that nobody has begun to count, or that is not filled yet.
        why: Why its plan cannot be made, in words; None: it can.
        fence: The driver's.
        at_ms: When, by the driver's clock.
        job: Which job.
    """
    return _driver("aside", job, fence, at_ms, {"vid": vid, "why": why})


def horizons_record(horizons: Horizons, *, fence: int, at_ms: int, job: str = "panes") -> NewRecord:
    """Return the record by which a driver says by what the log is counted from somewhere on."""
    fields = {
        "topic_id": horizons.topic_id,
        "offsets": _offsets(horizons.begin),
        "horizon_ms": horizons.horizon_ms,
        "beyond_ms": horizons.beyond_ms,
    }
    return _driver("horizons", job, fence, at_ms, fields)


def spread_record(spread: Spread, *, fence: int, job: str = "panes") -> NewRecord:
    """Return the record by which a driver says that it has met partitions of a log."""
    fields = {"topic_id": spread.topic_id, "partitions": spread.partitions}
    return _driver("spread", job, fence, spread.at_ms, fields)


def _offsets(numbers: Mapping[int, int]) -> dict[str, int]:
    return {str(key): number for key, number in sorted(numbers.items())}


def _driver(
    record: str, job: str, fence: int | None, at_ms: int, fields: Mapping[str, Any]
) -> NewRecord:
    value = {"v": FORMAT, "record": record, "job": job, "fence": fence, "at_ms": at_ms, **fields}
    return NewRecord(f"{DRIVER_PREFIX}{record}".encode(), _json(value))


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
