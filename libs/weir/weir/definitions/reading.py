"""What stands in a record of `weir.definitions`, member by member: pure, without the fold.

Whether a record counts is the fold's to decide. A member that is not what it must be raises
here, and the fold passes the record over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weir.definitions.history import (
    Activation,
    Definition,
    Horizons,
    Lane,
    Spread,
    Start,
    TakenOver,
)

Record = Mapping[str, Any]


def read_change(offset: int, key: str, record: Record) -> Definition:
    """Return the version that a change would make.

    Args:
        offset: Where it stands in the topic.
        key: Its key.
        record: Its value, decoded.

    Raises:
        ValueError: If it stands under another key than it names, or does something unknown.
        KeyError: If a member is missing.
        TypeError: If one is of another kind.
    """
    definition = Definition(
        vid=offset,
        tenant=text(record["tenant"]),
        kind=text(record["kind"]),
        name=text(record["name"]),
        version=number(record["version"]),
        based_on=_number_or_none(record["based_on"]),
        op=record["op"],
        text=text(record.get("text") or ""),
        by=text(record.get("by", "")),
        at_ms=number(record["at_ms"]),
    )
    if key != "/".join(definition.place) or definition.op not in ("put", "delete"):
        msg = "key or op does not fit"
        raise ValueError(msg)
    return definition


def read_start(offset: int, record: Record) -> Start:
    """Return a driver's start; raises as `read_change` does."""
    return Start(
        fence=offset,
        job=text(record["job"]),
        epoch=offset if record["epoch"] is None else number(record["epoch"]),
        instance=text(record["instance"]),
        shards=number(record["shards"]),
        reason=text(record["reason"]),
        incomplete_before_ms=number(record["incomplete_before_ms"]),
        at_ms=number(record["at_ms"]),
        horizon_ms=number(record.get("horizon_ms", 0)),
        beyond_ms=number(record.get("beyond_ms", 0)),
        tenant_bytes=_number_or_none(record.get("tenant_bytes")),
        events_id=None if (told := record.get("events_id")) is None else text(told),
        cut_short=_numbers_or_none(record.get("cut_short")),
        follows=_number_or_none(record.get("follows")),
    )


def read_activation(offset: int, record: Record) -> Activation:
    """Return from where a version is counted; raises as `read_change` does."""
    return Activation(
        vid=number(record["vid"]),
        tenant=text(record["tenant"]),
        name=text(record["name"]),
        version=number(record["version"]),
        offset=offset,
        begin=numbers(record["offsets"]),
        finish=None,
        after=_number_or_none(record["after"]),
        cut=_numbers_or_none(record["cut"]),
        from_start=bool(record["from_start"]),
        fills=bool(record.get("fills", False)),
        topic_id=text(record.get("topic_id", "")),
    )


def read_takeover(begun: Activation, offset: int, record: Record) -> Activation:
    """Return a version as it is once it has taken over; raises as `read_change` does."""
    return replace(
        begun,
        after=_number_or_none(record["after"]),
        cut=_numbers_or_none(record["cut"]),
        takeover=TakenOver(
            offset=offset,
            offsets=numbers(record["offsets"]),
            complete_from_ms=number(record["complete_from_ms"]),
            topic_id=text(record.get("topic_id", "")),
        ),
    )


def read_lane(offset: int, record: Record) -> Lane:
    """Return a backfill or rebuild; raises as `read_change` does."""
    return Lane(
        offset=offset,
        fence=number(record["fence"]),
        kind=record["kind"],
        topic_id=text(record["topic_id"]),
        vids=tuple(map(number, record["vids"])),
        shards=tuple(map(number, record["shards"])),
        start=numbers(record["start"]),
        end=numbers(record["end"]),
        until_ms=number(record["until_ms"]),
        complete_from_ms=number(record["complete_from_ms"]),
        copies=bool(record.get("copies", False)),
    )


def read_horizons(record: Record) -> Horizons:
    """Return by what the log is counted from somewhere on; raises as `read_change` does."""
    return Horizons(
        begin=numbers(record["offsets"]),
        horizon_ms=number(record["horizon_ms"]),
        beyond_ms=number(record["beyond_ms"]),
        topic_id=text(record["topic_id"]),
    )


def read_spread(record: Record) -> Spread:
    """Return over how many partitions a log is spread; raises as `read_change` does."""
    return Spread(
        partitions=number(record["partitions"]),
        topic_id=text(record["topic_id"]),
        at_ms=number(record["at_ms"]),
    )


def text(value: object) -> str:
    """Return a text.

    Raises:
        TypeError: If it is none.
    """
    if not isinstance(value, str):
        msg = f"text is required, got {type(value).__name__}"
        raise TypeError(msg)
    return value


def number(value: object) -> int:
    """Return a whole number.

    Raises:
        TypeError: If it is none; true is none.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"a whole number is required, got {type(value).__name__}"
        raise TypeError(msg)
    return value


def numbers(value: Mapping[str, Any]) -> dict[int, int]:
    """Return numbers by number, as offsets by partition.

    Raises:
        TypeError: If one of them is none.
        ValueError: If a name is none.
    """
    return {int(name): number(one) for name, one in value.items()}


def _number_or_none(value: object) -> int | None:
    return None if value is None else number(value)


def _numbers_or_none(value: Mapping[str, Any] | None) -> dict[int, int] | None:
    return None if value is None else numbers(value)
