"""How two versions of a definition differ: in their text, and in what they mean."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_MEMBERS: Final = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """One member that differs.

    Attributes:
        pointer: Its place (RFC 6901).
        old: What it was; None where it was not there.
        new: What it is; None where it is gone.
    """

    pointer: str
    old: Any
    new: Any


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Return the innermost members that differ, by place; of very many the first 200.

    Args:
        old: A definition with every default filled in; empty for none.
        new: Likewise.
    """
    return list(_of_objects("", old, new))[:MAX_MEMBERS]


def text_diff(old: str, new: str, *, old_name: str, new_name: str) -> str:
    """Return a unified diff of two texts; empty if not a letter differs."""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), old_name, new_name, lineterm="", n=3
    )
    return "".join(f"{line}\n" for line in lines)


def _of_objects(place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    for name in (*old, *(name for name in new if name not in old)):
        yield from _of(f"{place}/{_escaped(name)}", old.get(name), new.get(name))


def _of(place: str, old: Any, new: Any) -> Iterator[Difference]:
    if old == new and type(old) is type(new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _of_objects(place, old, new)
    elif isinstance(old, list) and isinstance(new, list) and _holds_objects(old, new):
        for at in range(max(len(old), len(new))):
            yield from _of(f"{place}/{at}", _at(old, at), _at(new, at))
    else:
        yield Difference(place, old, new)


def _holds_objects(*lists: list[Any]) -> bool:
    return any(isinstance(one, Mapping) for items in lists for one in items)


def _at(items: list[Any], at: int) -> Any:
    return items[at] if at < len(items) else None


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
