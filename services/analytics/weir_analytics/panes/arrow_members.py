"""What is read of events, as columns: decoded by msgspec, and taken out while it is at hand.

Values are decoded into structs of the members that some metric reads; all else is skipped. A
member may have any JSON type in any event, so nothing is declared and nothing is guessed: a
column looks at the values that it has, and is one of Arrow if they are of one type.

A hundred thousand structs take longer to walk through than they took to decode: what they hold
lies all over the memory. So columns are made of some thousands at a time, of each type's events
only what the metrics of that type read (docs/decisions/0032).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from weir.definitions.selection import Selection
from weir.event import UNREADABLE
from weir.expressions import Path
from weir.expressions.numbers import scalar_text
from weir.expressions.paths import DATA, TEXT_ATTRIBUTES, TIME, attribute_text
from weir.members import DEEPEST, MemberReader, is_too_deep

from weir_analytics.panes.arrow_account import Words
from weir_analytics.panes.compile_views import leaf_of

Indices = npt.NDArray[np.intp]
Leaf: TypeAlias = tuple[str, ...]
# All values are of one type, or null; or Python's objects as they came.
Column: TypeAlias = "pa.Array | list[Any]"

_NONE: Final = type(None)
# Of one of them values are equal only if their texts are: 1, 1.0 and true are of three.
_NUMBERS: Final = (({int, _NONE}, pa.int64()), ({float, _NONE}, pa.float64()))
_SCALARS: Final = {int, float, bool, _NONE}
# What Python takes for an object or a list, and for a value in one, at least.
_CONTAINER, _VALUE = 72, 32
# And for a short text or a number that a list holds, once for all.
_OBJECT = 64
# So many events are decoded before columns are made of them: structs and texts lie in the cache.
_AT_ONCE: Final = 2_000
# Some events of one kind, by what is read of them, are worth columns of their own; those of many
# kinds with few events each have all members read.
_FEW_KINDS, _EVENTS_A_KIND = 8, 64
_MOST_TYPES: Final = 1_000
# Types are remembered by what is read of them. There may be any number, of any length: a client
# that makes them up fills no memory, and a longer one is looked up anew each time.
_TYPES_KEPT: Final = 10_000
_LONG_TYPE: Final = 256

ENVELOPE: Final = ("type", "weirtenant", "weirsource")


class Coded(NamedTuple):
    """Scalars as texts, each different one once.

    Attributes:
        codes: Of each event the place in `texts`; -1: an object or an array, which has no text.
        texts: The texts; None stands for null.
    """

    codes: npt.NDArray[np.int32]
    texts: list[str | None]


# ── decoding ────────────────────────────────────────────────────────────────


class Decoder:
    """Values to structs with the members that some paths need."""

    def __init__(self, leaves: Iterable[Leaf]) -> None:
        """Take what is read besides the envelope."""
        leaves = tuple(leaves)
        outer = {leaf[-1] for leaf in leaves if leaf[0] != DATA}.union(ENVELOPE)
        inner = {leaf[1] for leaf in leaves if leaf[0] == DATA}
        # Members may have any name, attributes of Python not.
        self._outer = {name: f"o{at}" for at, name in enumerate(sorted(outer))}
        self._inner = {name: f"i{at}" for at, name in enumerate(sorted(inner))}
        data = _struct("Data", self._inner)
        self._data = data
        self.no_data = data()
        of: Any = data | None if inner else msgspec.Raw | None
        self._decode = msgspec.json.Decoder(_struct("Event", self._outer, {DATA: of})).decode
        self._event_of = _struct("Event", self._outer, {DATA: Any})
        self.nothing = self._event_of()
        self._by_member = MemberReader(outer, inner)

    def events(self, values: Sequence[bytes]) -> list[Any]:
        """Return each value as a struct; `nothing` for what is no JSON object.

        A member that cannot be read is null, whether or not it is read: see `weir.members`.
        """
        if max(map(len, values), default=0) > 2 * DEEPEST:
            values = [b"" if is_too_deep(value) else value for value in values]
        decode = self._decode
        try:
            return list(map(decode, values))
        except UNREADABLE:
            return [self._event(value) for value in values]

    def outer(self, name: str) -> Callable[[Any], Any]:
        """Return the reader of a member of the event."""
        return attrgetter(self._outer[name])

    def inner(self, name: str) -> Callable[[Any], Any]:
        """Return the reader of a member of its data."""
        return attrgetter(self._inner[name])

    def data_of(self, structs: list[Any]) -> list[Any]:
        """Return the data of some events, of one without any such as has no members."""
        found = list(map(attrgetter(DATA), structs))
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


def _struct(name: str, members: dict[str, str], also: dict[str, Any] | None = None) -> Any:
    fields = [(own, Any, None) for own in members.values()]
    fields += [(own, kind, None) for own, kind in (also or {}).items()]
    renamed = {own: member for member, own in members.items()}
    return msgspec.defstruct(name, fields, rename=renamed, gc=False)


# ── columns ─────────────────────────────────────────────────────────────────


class Reads:
    """Which members the metrics of a type read, besides those that are read of every event."""

    def __init__(
        self, always: Iterable[Path], metrics: Iterable[tuple[Selection, Iterable[Path]]] = ()
    ) -> None:
        """Take the paths that are read of every event, and by metric those that it reads."""
        self.always = _leaves(always)
        self._exact: dict[str, frozenset[Leaf]] = {}
        self._prefixed: dict[str, frozenset[Leaf]] = {}
        for selection, paths in metrics:
            leaves = _leaves(paths)
            of_names = (
                (self._exact, selection.exact_types),
                (self._prefixed, selection.type_prefixes),
            )
            for known, names in of_names:
                for name in names:
                    known[name] = known.get(name, self.always) | leaves
        self.all = self.always.union(*self._exact.values(), *self._prefixed.values())
        self._known: dict[str, frozenset[Leaf]] = {}
        self._sets: dict[frozenset[Leaf], frozenset[Leaf]] = {}

    def of(self, event_type: str) -> frozenset[Leaf]:
        """Return what is read of the events of a type; equal ones are one set."""
        found = self._known.get(event_type)
        if found is None:
            beside = (of for name, of in self._prefixed.items() if event_type.startswith(name))
            found = self._exact.get(event_type, self.always).union(*beside)
            found = self._sets.setdefault(found, found)
            if len(self._known) >= _TYPES_KEPT:
                self._known.clear()
            if len(event_type) <= _LONG_TYPE:
                self._known[event_type] = found
        return found


def _leaves(paths: Iterable[Path]) -> frozenset[Leaf]:
    return frozenset(leaf_of(path) for path in paths if path.parts != (TIME,))


class Taken(NamedTuple):
    """A member of the events that it was taken of.

    Attributes:
        column: Its values, and a null behind them.
        places: Of each event where it stands in the column; None: they are the first ones.
    """

    column: Column
    places: Indices | None

    def at(self, events: Indices) -> Column:
        """Return the values of some events."""
        return picked(self.column, events if self.places is None else self.places[events])


class Members:
    """What is read of some events; filled list by list, and read once it is full."""

    def __init__(self, decoder: Decoder, reads: Reads) -> None:
        """Take who decodes, and what is to be taken."""
        self._decoder, self._reads = decoder, reads
        self.size, self.bytes = 0, 0
        self._words: dict[str, list[Words]] = {name: [] for name in ENVELOPE}
        self._pieces: dict[Leaf, list[tuple[Indices, Column]]] = defaultdict(list)
        self._types: dict[Leaf, pa.DataType | None] = {}
        self._made: dict[Leaf, Taken] = {}
        self._coded: dict[Leaf, Coded] = {}

    def add(self, values: Sequence[bytes | None]) -> None:
        """Take the next events; None is one that has nothing."""
        for at in range(0, len(values), _AT_ONCE):
            self._add(values[at : at + _AT_ONCE])

    def _add(self, values: Sequence[bytes | None]) -> None:
        present = [value for value in values if value is not None]
        structs = self._decoder.events(present)
        if len(present) < len(values):
            found = iter(structs)
            nothing = self._decoder.nothing
            structs = [nothing if value is None else next(found) for value in values]
        for name, words in self._words.items():
            found_words = words_of(list(map(self._decoder.outer(name), structs)))
            words.append(found_words)
            self.bytes += sum(map(len, found_words.texts))
        columns: list[tuple[Leaf, Column]] = []
        for leaves, places in self._kinds(self._words["type"][-1]):
            some = structs if len(places) == len(structs) else picked(structs, places)
            own, places = list(self._taken(some, leaves)), places + self.size
            for leaf, column in own:
                self._pieces[leaf].append((places, column))
            columns += own
            self.bytes += places.nbytes
        self._weigh(columns, present)
        self.size += len(structs)

    def _weigh(self, columns: Sequence[tuple[Leaf, Column]], values: Sequence[bytes]) -> None:
        """Add about how much columns take that were made of some values."""
        lists = (column for _leaf, column in columns if isinstance(column, list))
        if not all(set(map(type, column)) <= _SCALARS for column in lists):
            self.bytes += decoded_bytes(values)
            return
        for leaf, column in columns:
            kind = None
            if isinstance(column, pa.Array):
                self.bytes += column.nbytes
                kind = column.type
            if _is_null(column) or self._types.setdefault(leaf, kind) == kind is not None:
                continue
            objects = len(column)
            if self._types[leaf] is not None:
                # Of several types all are Python's objects once they are joined.
                objects = sum(len(one) for _places, one in self._pieces[leaf])
                self._types[leaf] = None
            self.bytes += _OBJECT * objects

    def words(self, name: str) -> Words:
        """Return a text of the envelope of each event; see `words_of`."""
        return _joined_words(self._words[name])

    def leaf(self, leaf: Leaf) -> Taken:
        """Return what was taken of a member."""
        found = self._made.get(leaf)
        if found is None:
            found = self._made[leaf] = self._joined(self._pieces.pop(leaf, []))
        return found

    def coded(self, leaf: Leaf) -> Coded:
        """Return the texts of what was taken of a member."""
        found = self._coded.get(leaf)
        if found is None:
            found = self._coded[leaf] = coded(self.leaf(leaf).column)
        return found

    def _kinds(self, types: Words) -> list[tuple[frozenset[Leaf], Indices]]:
        """Return the events by what is read of them."""
        size, reads = len(types.codes), self._reads
        if len(types.texts) > _MOST_TYPES:
            return [(reads.all, np.arange(size))]
        # Behind them, that of what has no type: it is forged, and no metric counts it.
        by_code = [*map(reads.of, types.texts), reads.always]
        kinds = list(dict.fromkeys(by_code))
        if len(kinds) > max(_FEW_KINDS, size // _EVENTS_A_KIND):
            return [(reads.all, np.arange(size))]
        if len(kinds) == 1:
            return [(kinds[0], np.arange(size))]
        numbers = np.array([kinds.index(of) for of in by_code], np.intp)[types.codes]
        parts = ((of, np.flatnonzero(numbers == n)) for n, of in enumerate(kinds))
        return [(of, places) for of, places in parts if len(places)]

    def _taken(self, structs: list[Any], leaves: frozenset[Leaf]) -> Iterator[tuple[Leaf, Column]]:
        data: list[Any] | None = None
        for leaf in leaves:
            if leaf[0] == DATA:
                data = self._decoder.data_of(structs) if data is None else data
                yield leaf, column_of(list(map(self._decoder.inner(leaf[1]), data)))
                continue
            column = column_of(list(map(self._decoder.outer(leaf[-1]), structs)))
            if leaf[0] in TEXT_ATTRIBUTES and not _is_text(column):
                column = column_of(list(map(attribute_text, values_in(column))))
            yield leaf, column

    def _joined(self, pieces: list[tuple[Indices, Column]]) -> Taken:
        column = joined([*(column for _places, column in pieces), pa.nulls(1)])
        at = np.concatenate([np.empty(0, np.intp), *(places for places, _column in pieces)])
        if len(at) == self.size and (at == np.arange(self.size)).all():
            return Taken(column, None)
        places = np.full(self.size, len(at), np.intp)
        places[at] = np.arange(len(at))
        return Taken(column, places)


def column_of(values: list[Any]) -> Column:
    """Return JSON values as a column."""
    with suppress(pa.ArrowTypeError, pa.ArrowInvalid):
        return pa.array(values, pa.string())  # nothing but a text becomes one
    kinds = set(map(type, values))
    for of, kind in _NUMBERS:
        if kinds <= of:
            with suppress(pa.ArrowInvalid, OverflowError):
                return pa.array(values, kind)
    return values


def values_in(column: Column) -> list[Any]:
    """Return the JSON values of a column."""
    if isinstance(column, list):
        return column
    found: list[Any] = column.to_pylist()
    return found


def joined(columns: Sequence[Column]) -> Column:
    """Return one column after the other as one."""
    kinds = {None if isinstance(c, list) else c.type for c in columns if not _is_null(c)}
    if None in kinds or len(kinds) > 1:
        return [value for column in columns for value in values_in(column)]
    kind = kinds.pop() if kinds else pa.string()
    return pa.concat_arrays([pa.nulls(len(c), kind) if _is_null(c) else c for c in columns])


def _is_text(column: Column) -> bool:
    return isinstance(column, pa.Array) and pa.types.is_string(column.type)


def _is_null(column: Column) -> bool:
    return isinstance(column, pa.Array) and column.null_count == len(column)


def picked(column: Any, places: Indices) -> Any:
    """Return the values at some places, of an array as an array."""
    if isinstance(column, pa.Array):
        return column.take(pa.array(places))
    if len(places) < 2:
        return [column[int(at)] for at in places]
    return list(itemgetter(*places.tolist())(column))


def decoded_bytes(values: Sequence[bytes]) -> int:
    """Return about how much values take once they are decoded: brackets take more than texts."""
    raw = np.frombuffer(b"".join(values), np.uint8)
    brackets, commas = (sum(int(np.count_nonzero(raw == ord(c))) for c in of) for of in ("{[", ","))
    return len(raw) + _CONTAINER * brackets + _VALUE * commas


# ── texts ───────────────────────────────────────────────────────────────────


def coded(column: Column) -> Coded:
    """Return JSON values as texts, each different one once."""
    if isinstance(column, pa.Array):
        return _coded(column.dictionary_encode())
    texts: dict[str | None, int] = {}
    codes = np.fromiter((_code(texts, value) for value in column), np.int32, len(column))
    return Coded(codes, list(texts))


def _coded(column: pa.DictionaryArray) -> Coded:
    """Return a column of one type with the texts of its values."""
    texts: dict[str | None, int] = {}
    # What is too small for a normal double has the text of 0, and so has -0.0.
    code_of = [texts.setdefault(scalar_text(v), len(texts)) for v in column.dictionary.to_pylist()]
    code_of.append(texts.setdefault(None, len(texts)) if column.null_count else 0)
    indices = column.indices.fill_null(len(code_of) - 1).to_numpy()
    return Coded(np.array(code_of, np.int32)[indices], list(texts))


def _code(texts: dict[str | None, int], value: Any) -> int:
    try:
        return texts.setdefault(scalar_text(value), len(texts))
    except TypeError:
        return -1


def words_of(texts: list[Any]) -> Words:
    """Return texts of the envelope, each different one once; what is none has no code."""
    try:
        column = pa.array(texts, pa.string())
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        column = pa.array(list(map(_text, texts)), pa.string())
    found = column.dictionary_encode()
    return Words(found.indices.fill_null(-1).to_numpy(), found.dictionary.to_pylist())


def _text(value: Any) -> str | None:
    value = attribute_text(value)
    return value if isinstance(value, str) else None


def _joined_words(pieces: Sequence[Words]) -> Words:
    if len(pieces) == 1:
        return pieces[0]
    known: dict[str, int] = {}
    codes = [np.empty(0, np.int32)]
    for piece in pieces:
        code_of = [known.setdefault(text, len(known)) for text in piece.texts]
        codes.append(np.array([*code_of, -1], np.int32)[piece.codes])
    return Words(np.concatenate(codes), list(known))
