"""How a record that changes a definition is read; whether it counts is the fold's to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir.definitions.history import Definition


def read_change(offset: int, key: str, record: Mapping[str, Any]) -> Definition:
    """Return the version that a record would make.

    Args:
        offset: Where it stands in the topic.
        key: Its key.
        record: Its value, decoded.

    Raises:
        ValueError: If it stands under another key than it names, or does something unknown.
        KeyError: If a member is missing.
        TypeError: If a member is of another type.
    """
    definition = Definition(
        vid=offset,
        tenant=text(record["tenant"]),
        kind=text(record["kind"]),
        name=text(record["name"]),
        version=number(record["version"]),
        based_on=None if record["based_on"] is None else number(record["based_on"]),
        op=record["op"],
        text=text(record.get("text") or ""),
        by=text(record.get("by", "")),
        at_ms=number(record["at_ms"]),
    )
    if key != "/".join(definition.place) or definition.op not in ("put", "delete"):
        msg = "key or op does not fit"
        raise ValueError(msg)
    return definition


def text(value: object) -> str:
    """Return a member that must be a text.

    Raises:
        TypeError: If it is none.
    """
    if not isinstance(value, str):
        msg = f"text is required, got {type(value).__name__}"
        raise TypeError(msg)
    return value


def number(value: object) -> int:
    """Return a member that must be a whole number.

    Raises:
        TypeError: If it is none.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"a whole number is required, got {type(value).__name__}"
        raise TypeError(msg)
    return value


def numbers(value: Mapping[str, Any]) -> dict[int, int]:
    """Return a member that maps whole numbers to whole numbers.

    Raises:
        TypeError: If one is none.
        ValueError: The same, of a key.
    """
    return {int(name): number(found) for name, found in value.items()}
