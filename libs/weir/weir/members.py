"""Members of an event's record, each read by itself.

A reader of JSON that skips what nobody asks for refuses a number beyond doubles, or bytes that
are no UTF-8, only where somebody reads them. Ingest writes neither, another producer may. What
such a record is must not depend on what is read of it, or a recount under other definitions
finds another number: so a member that cannot be read is null, as RELIABILITY 4 has it for
`1e400`, and the record is an event as long as its grammar holds.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from weir.event import UNREADABLE
from weir.json_exact import is_deeper

DEEPEST: Final = 512
"""How many levels a record nests at most. Ingest takes 32; a parser has frames for some 700,
fewer the more calls are under way, and whether it has them must not decide."""

_DATA: Final = "data"
_NULL: Final = msgspec.Raw(b"null")


def is_too_deep(value: bytes) -> bool:
    """Tell whether a record nests deeper than any event may."""
    if len(value) <= 2 * DEEPEST or value.count(b"{") + value.count(b"[") <= DEEPEST:
        return False
    return not _is_shallow(value) and is_deeper(value, DEEPEST)


# All bytes but those that tell how deep a text nests.
_NO_SHAPE: Final = bytes(set(range(256)) - set(b'{}[]"'))
_LAYERS: Final = 40


def _is_shallow(value: bytes) -> bool:
    """Tell whether a text certainly nests some dozens of levels deep at most.

    Long lists of objects are common, and going through their brackets one by one takes many times
    what skipping them does. So pairs with nothing between them are taken away, layer by layer.
    """
    if b"\\" in value:
        value = value.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(value.translate(None, _NO_SHAPE).split(b'"')[::2])
    for _layer in range(_LAYERS):
        size = len(outside)
        outside = outside.replace(b"[]", b"").replace(b"{}", b"")  # two levels at most
        if len(outside) == size:
            break
    return not outside


class MemberReader:
    """Reads some members of an event and of its data, whatever the others are."""

    def __init__(self, outer: Iterable[str], inner: Iterable[str]) -> None:
        """Take the names of members of the event, and of its data."""
        self._outer = _raw_members("Event", {*outer, _DATA})
        self._inner = _raw_members("Data", inner)

    def read(self, value: bytes) -> dict[str, Any] | None:
        """Return the members that are asked for, null where there is none or it cannot be read.

        Args:
            value: A record's value.

        Returns:
            The members, `data` as an object of its own members (none if it is no object);
            None: the value is no JSON object, or nests too deep.
        """
        if is_too_deep(value):
            return None
        try:
            members = self._outer(value)
        except UNREADABLE:
            return None
        data = self.data(members.pop(_DATA))
        found: dict[str, Any] = {name: read_member(raw) for name, raw in members.items()}
        found[_DATA] = data
        return found

    def data(self, raw: msgspec.Raw) -> dict[str, Any]:
        """Return the members of an event's data, all null if it is no object."""
        try:
            members = self._inner(raw)
        except UNREADABLE:
            members = self._inner(b"{}")
        return {name: read_member(one) for name, one in members.items()}


def _raw_members(kind: str, names: Iterable[str]) -> Callable[[Any], dict[str, Any]]:
    """Return what cuts members out of a JSON object without reading them."""
    # Members may have any name, attributes of Python not.
    own: Mapping[str, str] = {name: f"m{at}" for at, name in enumerate(sorted(names))}
    fields = [(field, msgspec.Raw, _NULL) for field in own.values()]
    renamed = {field: name for name, field in own.items()}
    decode = msgspec.json.Decoder(msgspec.defstruct(kind, fields, rename=renamed)).decode

    def members(value: Any) -> dict[str, Any]:
        found = decode(value)
        return {name: getattr(found, field) for name, field in own.items()}

    return members


def read_member(raw: msgspec.Raw) -> Any:
    """Return a member that was cut out of its object, null if it cannot be read."""
    try:
        return msgspec.json.decode(raw)
    except UNREADABLE:
        return None
