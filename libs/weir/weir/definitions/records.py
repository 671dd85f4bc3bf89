"""The records of `weir.definitions`: how changes, driver starts and activations are written.

Builders return key and value as they are appended; the reader of each format
version is in `fold.py`. `vid` of a definition is the offset that its record gets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

FORMAT: Final = 1
"""The version of the format that is written now."""

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


def _change(edit: Edit, op: Literal["put", "delete"], text: str) -> NewRecord:
    value = {
        "v": FORMAT,
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
        horizon_ms: The dedup horizon: a recount of the log decides by it.
        beyond_ms: Events older than this when received are beyond the horizon.
    """

    instance: str
    shards: int
    reason: Literal["start", "lost", "behind", "rewind"]
    epoch: int | None = None
    incomplete_before_ms: int = 0
    horizon_ms: int = 0
    beyond_ms: int = 0


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
    """

    vid: int
    tenant: str
    name: str
    version: int
    offsets: Mapping[int, int]
    after: int | None = None
    cut: Mapping[int, int] | None = None
    from_start: bool = False


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
        "offsets": {str(p): o for p, o in sorted(counting.offsets.items())},
        "after": counting.after,
        "cut": None if counting.cut is None else {str(r): s for r, s in counting.cut.items()},
        "from_start": counting.from_start,
    }
    return _driver("activation", job, fence, at_ms, fields)


def _driver(
    record: str, job: str, fence: int | None, at_ms: int, fields: Mapping[str, Any]
) -> NewRecord:
    value = {"v": FORMAT, "record": record, "job": job, "fence": fence, "at_ms": at_ms, **fields}
    return NewRecord(f"{DRIVER_PREFIX}{record}".encode(), _json(value))


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
