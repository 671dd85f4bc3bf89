"""What is read of events, as columns: taken out while it is at hand.

A member may have any JSON type in any event, so nothing is declared and nothing is guessed: a
column looks at the values that it has, and is one of Arrow if they are of one type.

A hundred thousand decoded events take longer to walk through than they took to decode: what they
hold lies all over the memory. So columns are made of some thousands at a time, of the events of
each tenant and type only what the metrics of that tenant read of that type (docs/decisions/0032).
What lies below a member is taken out as well, and the member itself let go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import reduce
from operator import itemgetter
from sys import getsizeof
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from weir.expressions import Path
from weir.expressions.numbers import scalar_text
from weir.expressions.paths import DATA, TEXT_ATTRIBUTES, attribute_text, element_at

from weir_analytics.panes.arrow_account import Words
from weir_analytics.panes.arrow_decode import ENVELOPE, Decoder
from weir_analytics.panes.arrow_reads import Reads
from weir_analytics.panes.task_watch import note_step

Indices = npt.NDArray[np.intp]
# All values are of one type, or null; or Python's objects as they came.
Column: TypeAlias = "pa.Array | list[Any]"

_NONE: Final = type(None)
# Of one of them values are equal only if their texts are: 1, 1.0 and true are of three.
_NUMBERS: Final = (({int, _NONE}, pa.int64()), ({float, _NONE}, pa.float64()))
_SCALARS: Final = {int, float, bool, _NONE}
_TEXTS: Final = {str, _NONE}
# What Python takes for an object or a list, and for a value in one, at least.
_CONTAINER, _VALUE = 72, 32
# And for a short text or a number that a list holds, once for all.
_OBJECT = 64
# So many events are decoded before columns are made of them: what is decoded and its texts lie in
# the cache. Or so many bytes of them, which may take twenty times as much once they are decoded.
_AT_ONCE: Final = 2_000
_BYTES_AT_ONCE: Final = 8 * 1024 * 1024
# A column of its own for some of the events costs about what so many values do, and takes so many
# bytes besides its values. Of fewer values it is made once there are more of them.
_COLUMN: Final = 100
_COLUMN_BYTES: Final = 1_000
# A member of at least one event in so many has a list of all events.
_MANY: Final = 4
# And of each value where it is: in such a list.
_PLACES: Final = 8 * _MANY
# What an array takes besides what is in it.
_ARRAY: Final = 128


class Coded(NamedTuple):
    """Scalars as texts, each different one once.

    Attributes:
        codes: Of each event the place in `texts`; -1: an object or an array, which has no text.
        texts: The texts; None stands for null.
    """

    codes: npt.NDArray[np.int32]
    texts: list[str | None]


# ── columns ─────────────────────────────────────────────────────────────────


class Taken(NamedTuple):
    """A member of the events that it was taken of.

    Attributes:
        column: Its values, and a null behind them.
        events: Of which events the values are, in ascending order; None: of the first ones.
        order: Where in the column the value of each of them is; None: they are in that order.
        of_all: Of every event where its value is, if it was taken of many: quicker to look up.
    """

    column: Column
    events: Indices | None = None
    order: Indices | None = None
    of_all: Indices | None = None

    def places(self, events: Indices) -> Indices:
        """Return where in the column the values of some events are."""
        if self.of_all is not None:
            return self.of_all[events]
        if self.events is None:
            return events
        # A list of all events would take, for each path, more than the values of a rare type.
        none = len(self.column) - 1
        if not none:
            return np.zeros(len(events), np.intp)
        found = np.searchsorted(self.events, events)
        is_there = self.events[np.minimum(found, none - 1)] == events
        places = found if self.order is None else self.order[found * is_there]
        return np.where(is_there, places, none)

    def at(self, events: Indices) -> Column:
        """Return the values of some events."""
        return picked(self.column, self.places(events))


class Members:
    """What is read of some events; filled list by list, and read once it is full."""

    def __init__(self, decoder: Decoder, reads: Reads) -> None:
        """Take who decodes, and what is to be taken."""
        self._decoder, self._reads = decoder, reads
        self.size, self.bytes = 0, 0
        self._words: dict[str, list[Words]] = {name: [] for name in ENVELOPE}
        self._pieces: dict[Path, list[tuple[Indices, Column]]] = defaultdict(list)
        # By path what is too little for a column yet: where it stands, and values.
        self._few: dict[Path, tuple[list[Indices], list[Any]]] = defaultdict(lambda: ([], []))
        self._types: dict[Path, pa.DataType | None] = {}
        self._made: dict[Path, Taken] = {}
        self._coded: dict[Path, Coded] = {}
        self.coded_bytes = 0

    def add(self, values: Sequence[bytes | None]) -> None:
        """Take the next events; None is one that has nothing."""
        for some in _lists(values):
            self._add(some)
            note_step()

    def _add(self, values: Sequence[bytes | None]) -> None:
        events = self._decoder.events(values)
        for name, words in self._words.items():
            found = words_of(list(map(self._decoder.outer(name), events)))
            words.append(found)
            self.bytes += _ARRAY + found.codes.nbytes + sum(map(getsizeof, found.texts))
        is_flat = True
        for paths, places in self._kinds():
            some = events if len(places) == len(events) else picked(events, places)
            places = places + self.size
            self.bytes += places.nbytes
            if len(some) < len(events):  # what is taken of all has no list of where it is
                self.bytes += _PLACES * len(places) * len(paths)
            for path, own in self._taken(some, paths):
                is_flat &= self._keep(path, places, own)
        if not is_flat:
            self.bytes += decoded_bytes([value for value in values if value is not None])
        self.size += len(events)

    def _keep(self, path: Path, places: Indices, values: list[Any]) -> bool:
        """Keep what was taken at a path; tell whether it is scalars, which are weighed here."""
        if len(values) >= _COLUMN:
            return self._make(path, places, values)
        at, waiting = self._few[path]
        at.append(places)
        waiting += values
        texts = sum(getsizeof(value) for value in values if isinstance(value, str))
        self.bytes += _ARRAY + _OBJECT * len(values) + texts
        if len(waiting) >= _AT_ONCE:
            self._make_waiting(path)
        return not any(isinstance(value, dict | list) for value in values)

    def _make_waiting(self, path: Path) -> None:
        at, waiting = self._few.pop(path)
        self._make(path, np.concatenate(at), waiting)

    def _make(self, path: Path, places: Indices, values: list[Any]) -> bool:
        column = column_of(values)
        kind = None
        if isinstance(column, pa.Array):
            self.bytes += column.nbytes
            kind, is_weighed = column.type, True
        else:
            is_weighed = set(map(type, column)) <= _SCALARS and not any(map(_is_large, column))
        before = self._pieces[path]
        self.bytes += _COLUMN_BYTES
        if not _is_null(column):
            was = self._types.setdefault(path, kind)
            if was != kind or kind is None:
                # Of several types all are Python's objects once they are joined.
                objects = 0 if was is None else sum(len(one) for _places, one in before)
                self.bytes += _OBJECT * (objects + is_weighed * len(column))
                self._types[path] = None
        before.append((places, column))
        return is_weighed

    def words(self, name: str) -> Words:
        """Return a text of the envelope of each event; see `words_of`."""
        return _joined_words(self._words[name])

    def taken(self, path: Path) -> Taken:
        """Return what was taken at a path."""
        found = self._made.get(path)
        if found is None:
            if path in self._few:
                self._make_waiting(path)
            found = self._made[path] = self._joined(self._pieces.pop(path, []))
        return found

    def coded(self, path: Path) -> Coded:
        """Return the texts of what was taken at a path."""
        found = self._coded.get(path)
        if found is None:
            found = self._coded[path] = coded(self.taken(path).column)
            texts = sum(map(getsizeof, found.texts))
            self.coded_bytes += found.codes.nbytes + _VALUE * len(found.texts) + texts
        return found

    def forget(self) -> None:
        """Let go of texts; who asks again has them made again."""
        self._coded.clear()
        self.coded_bytes = 0

    def _kinds(self) -> list[tuple[frozenset[Path], Indices]]:
        """Return the newest events by what is read of them, each kind's apart if that is less."""
        types, tenants, _sources = (words[-1] for words in self._words.values())
        # The codes are -1 of what has none: no text stands behind the last one.
        type_of, tenant_of = [*types.texts, None], [*tenants.texts, None]
        pairs = tenants.codes.astype(np.int64) % len(tenant_of) * len(type_of)
        found = pa.array(pairs + types.codes % len(type_of)).dictionary_encode()
        different, numbers = found.dictionary.to_pylist(), found.indices.to_numpy()
        kinds: dict[frozenset[Path], int] = {}
        kind_of = [
            kinds.setdefault(self._reads.of(tenant_of[tenant], type_of[event_type]), len(kinds))
            for tenant, event_type in (divmod(pair, len(type_of)) for pair in different)
        ]
        size = len(numbers)
        if len(kinds) < 2:
            return [(paths, np.arange(size)) for paths in kinds]
        numbers = np.array(kind_of, np.intp)[numbers]
        parts = [(paths, np.flatnonzero(numbers == n)) for paths, n in kinds.items()]
        whole: frozenset[Path] = frozenset().union(*kinds)
        apart = sum(len(paths) * (len(places) + _COLUMN) for paths, places in parts)
        return parts if apart < len(whole) * (size + _COLUMN) else [(whole, np.arange(size))]

    def _taken(self, events: list[Any], paths: frozenset[Path]) -> Iterator[tuple[Path, list[Any]]]:
        data: list[Any] | None = None
        for leaf, own in self._reads.leaves(paths):
            if leaf[0] == DATA:
                data = self._decoder.data_of(events) if data is None else data
                values = list(map(self._decoder.inner(leaf[1]), data))
                for path in own:
                    yield path, reduce(_below, path.parts[2:], values)
                continue
            values = list(map(self._decoder.outer(leaf[-1]), events))
            if leaf[0] in TEXT_ATTRIBUTES and not set(map(type, values)) <= _TEXTS:
                values = list(map(attribute_text, values))
            yield own[0], values  # an attribute has nothing below it: there is one path

    def _joined(self, pieces: list[tuple[Indices, Column]]) -> Taken:
        column = joined([*(column for _places, column in pieces), pa.nulls(1)])
        at = np.concatenate([np.empty(0, np.intp), *(places for places, _column in pieces)])
        if len(at) == self.size and (at == np.arange(self.size)).all():
            return Taken(column)
        if len(at) * _MANY >= self.size:
            of_all = np.full(self.size, len(at), np.intp)
            of_all[at] = np.arange(len(at))
            return Taken(column, of_all=of_all)
        if (np.diff(at) > 0).all():
            return Taken(column, at)
        order = np.argsort(at)  # what waited for a column stands behind what did not
        return Taken(column, at[order], order)


def _lists(values: Sequence[bytes | None]) -> Iterator[Sequence[bytes | None]]:
    """Yield values, as many at a time as are decoded at once."""
    for at in range(0, len(values), _AT_ONCE):
        some = values[at : at + _AT_ONCE]
        if sum(map(len, filter(None, some))) <= _BYTES_AT_ONCE:
            yield some
            continue
        begin, held = 0, 0
        for end, value in enumerate(some):
            size = len(value or b"")
            if held + size > _BYTES_AT_ONCE and end > begin:
                yield some[begin:end]
                begin, held = end, 0
            held += size
        yield some[begin:]


def _below(values: list[Any], part: str) -> list[Any]:
    """Return what lies below some JSON values, as `Path.read` reads it."""
    at = element_at(part)
    if at is None:
        return [value.get(part) if isinstance(value, dict) else None for value in values]
    return [value[at] if isinstance(value, list) and at < len(value) else None for value in values]


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


def _is_large(value: Any) -> bool:
    """Tell whether a scalar takes more than others do: a number of a thousand digits."""
    return isinstance(value, int) and value.bit_length() > 256


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
    # Often all are of one tenant, or of one source: a look at that takes a sixth of the time.
    if texts and isinstance(texts[0], str) and texts.count(texts[0]) == len(texts):
        return Words(np.zeros(len(texts), np.int32), texts[:1])
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
