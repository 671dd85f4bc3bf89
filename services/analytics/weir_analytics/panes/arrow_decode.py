"""Values of events to what some paths need of them, by msgspec; all else is skipped.

A name that an event has is looked for among those that are read one after the other. Of a few
dozens that is the quickest way. But names are read for all metrics of all tenants: beyond
`FEW_NAMES` members are cut out under whatever name they have, and read when somebody asks, so
that an event costs what it holds itself, whatever others have defined (docs/decisions/0033).

What a record is does not depend on what is read of it: one that a decoder refuses because of a
member is read member by member (`weir.members`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, Final, Protocol

import msgspec
from weir.event import UNREADABLE
from weir.expressions import Path
from weir.expressions.paths import DATA
from weir.members import DEEPEST, MemberReader, is_too_deep, read_member

from weir_analytics.panes.compile_views import members_of

ENVELOPE: Final = ("type", "weirtenant", "weirsource")
# Beyond it an event of 22 members costs more than with its members cut out first (1.3 µs).
FEW_NAMES: Final = 128


class Decoder(Protocol):
    """Decodes values, and tells of each the members that it was made for.

    Attributes:
        nothing: What stands for a value that is no event.
    """

    nothing: Any

    def events(self, values: Sequence[bytes | None]) -> list[Any]:
        """Return what each value holds; `nothing` for None, and for what is no JSON object.

        A member that cannot be read is null, whether or not it is read: see `weir.members`.
        """

    def outer(self, name: str) -> Callable[[Any], Any]:
        """Return the reader of a member of the event."""

    def inner(self, name: str) -> Callable[[Any], Any]:
        """Return the reader of a member of its data."""

    def data_of(self, events: Sequence[Any]) -> list[Any]:
        """Return the data of some events, of one without any such as has no members."""


def decoder_of(paths: Iterable[Path]) -> Decoder:
    """Return who decodes the envelope and what holds some paths."""
    outer, inner = members_of(paths)
    outer.update(ENVELOPE)
    wide = len(outer) + len(inner) > FEW_NAMES
    return WideDecoder(outer, inner) if wide else StructDecoder(outer, inner)


class StructDecoder:
    """Decodes into structs of a few members."""

    def __init__(self, outer: Iterable[str], inner: Iterable[str]) -> None:
        """Take the names of members of the event, and of its data."""
        # Members may have any name, attributes of Python not.
        self._outer = {name: f"o{at}" for at, name in enumerate(sorted(outer))}
        self._inner = {name: f"i{at}" for at, name in enumerate(sorted(inner))}
        self._data = _struct("Data", self._inner)
        self.no_data = self._data()
        # Of a union with Raw msgspec takes null alone.
        of: Any = self._data | None if self._inner else msgspec.Raw
        self._decode = msgspec.json.Decoder(_struct("Event", self._outer, {DATA: of})).decode
        self._event_of = _struct("Event", self._outer, {DATA: Any})
        self.nothing = self._event_of()
        self._by_member = MemberReader(outer, inner)

    def events(self, values: Sequence[bytes | None]) -> list[Any]:
        """Return each value as a struct; see `Decoder`."""
        values = _not_too_deep(values)
        present = [value for value in values if value is not None]
        try:
            structs = list(map(self._decode, present))
        except UNREADABLE:
            structs = list(map(self._event, present))
        if len(present) == len(values):
            return structs
        found = iter(structs)
        return [self.nothing if value is None else next(found) for value in values]

    def outer(self, name: str) -> Callable[[Any], Any]:
        """Return the reader of a member of the event."""
        return attrgetter(self._outer[name])

    def inner(self, name: str) -> Callable[[Any], Any]:
        """Return the reader of a member of its data."""
        return attrgetter(self._inner[name])

    def data_of(self, events: Sequence[Any]) -> list[Any]:
        """Return the data of some events, of one without any such as has no members."""
        found = list(map(attrgetter(DATA), events))
        if None in found:
            found = [self.no_data if data is None else data for data in found]
        return found

    def _event(self, value: bytes) -> Any:
        with suppress(*UNREADABLE):
            return self._decode(value)
        found = self._by_member.read(value)
        if found is None:
            return self.nothing
        members = {own: found[name] for name, own in self._outer.items()}
        data = self._data(**{own: found[DATA][name] for name, own in self._inner.items()})
        return self._event_of(**members, **{DATA: data})


class WideDecoder:
    """Cuts out all members, under whatever name, and reads those that somebody asks for."""

    def __init__(self, outer: Iterable[str], inner: Iterable[str]) -> None:
        """Take the names of members of the event, and of its data."""
        self.nothing: dict[str, Any] = {}
        self._by_member = MemberReader(outer, inner)

    def events(self, values: Sequence[bytes | None]) -> list[dict[str, Any]]:
        """Return the members of each value; see `Decoder`."""
        return [
            self.nothing if value is None else self._event(value) for value in _not_too_deep(values)
        ]

    def outer(self, name: str) -> Callable[[dict[str, Any]], Any]:
        """Return the reader of a member of the event."""
        return lambda members: _value(members.get(name))

    inner = outer  # a member of its data is read alike

    def data_of(self, events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the members of the data of some events; none where it is no object."""
        return [self._data(event.get(DATA)) for event in events]

    def _event(self, value: bytes) -> dict[str, Any]:
        with suppress(*UNREADABLE):
            return _cut(value)
        # A name that is no UTF-8 is refused, though nobody may ask for it.
        found = self._by_member.read(value)
        return self.nothing if found is None else found

    def _data(self, found: Any) -> dict[str, Any]:
        if not isinstance(found, msgspec.Raw):
            return found or self.nothing  # nothing, or read member by member
        with suppress(*UNREADABLE):
            return _cut(found)
        return self._by_member.data(found)


_cut: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _value(found: Any) -> Any:
    return read_member(found) if isinstance(found, msgspec.Raw) else found


def _not_too_deep(values: Sequence[bytes | None]) -> Sequence[bytes | None]:
    """Return values, None in place of one that nests deeper than any event."""
    if max(map(len, filter(None, values)), default=0) <= 2 * DEEPEST:
        return values
    return [None if value is None or is_too_deep(value) else value for value in values]


def _struct(name: str, members: dict[str, str], also: dict[str, Any] | None = None) -> Any:
    fields = [(own, Any, None) for own in members.values()]
    fields += [(own, kind, None) for own, kind in (also or {}).items()]
    renamed = {own: member for member, own in members.items()}
    return msgspec.defstruct(name, fields, rename=renamed, gc=False)
