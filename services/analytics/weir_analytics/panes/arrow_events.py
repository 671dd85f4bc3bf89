"""Events of one task as columns: each path read once, in whatever way somebody asks for.

What is taken of events is in `arrow_members.py`. The meaning of a view is that of
`compile_views.py`; a property test holds both to the reference (docs/decisions/0032).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from weir.expressions import Path
from weir.expressions.numbers import as_double
from weir.expressions.paths import TIME

from weir_analytics.panes.arrow_groups import Longs
from weir_analytics.panes.arrow_members import Coded, Column, Indices, Members, coded
from weir_analytics.panes.compile_views import View

_TYPES: Final = {View.NUMBER: pa.float64(), View.TEXT: pa.string(), View.BOOL: pa.bool_()}

# A list holds what `members` does.
_REFERENCE: Final = 8


@dataclass
class Held:
    """About how many bytes were made of some events and parts of them, and are held."""

    bytes: int = 0

    def add(self, column: Column) -> None:
        """Add what is held from now on."""
        self.bytes += _REFERENCE * len(column) if isinstance(column, list) else column.nbytes


@dataclass
class Events:
    """Some events, and what has been read of them so far.

    Attributes:
        members: What was taken of all events of the task.
        times_ms: The event times of these.
        places: Which of all these are; None: all.
        parent: What these are a part of, with their places there.
        held: What is held of these, of what they are a part of, and of its other parts, beside
            `members`.
    """

    members: Members
    times_ms: Longs
    places: Indices | None = None
    parent: tuple[Events, Indices] | None = None
    held: Held = field(default_factory=Held)
    _columns: dict[Path, Column] = field(default_factory=dict)
    _views: dict[tuple[Path, View], pa.Array] = field(default_factory=dict)
    _coded: dict[Path, Coded] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many they are."""
        return len(self.times_ms)

    def forget(self) -> None:
        """Let go of what has been read; who asks again has it made again."""
        for made in (self._columns, self._views, self._coded):
            made.clear()
        self.held.bytes = 0
        self.members.forget()

    def part(self, places: Indices) -> Events:
        """Return some of them."""
        own = places if self.places is None else self.places[places]
        times_ms = self.times_ms[places]
        self.held.bytes += own.nbytes + times_ms.nbytes
        return Events(self.members, times_ms, own, (self, places), self.held)

    def read(self, path: Path, view: View) -> Any:
        """Return one view of a path; `ITEMS` is a list of lists, all else an array."""
        if view is View.ITEMS:
            column = self._values(path)
            if isinstance(column, pa.Array):
                return [None] * len(self)
            return [found if isinstance(found, list) else None for found in column]
        found = self._views.get((path, view))
        if found is None:
            found = self._views[path, view] = self._view(path, view)
            self.held.add(found)
        return found

    def coded(self, path: Path) -> Coded:
        """Return the texts at a path, as dimensions and sketches take them."""
        found = self._coded.get(path)
        if found is None:
            found = self._coded[path] = self._texts(path)
            self.held.bytes += found.codes.nbytes
        return found

    def _texts(self, path: Path) -> Coded:
        if path.parts == (TIME,):
            return coded(self._values(path))
        # Texts are found once for all parts, and each takes their numbers.
        found, taken = self.members.coded(path), self.members.taken(path)
        at = np.arange(len(self)) if self.places is None else self.places
        return Coded(found.codes[taken.places(at)], found.texts)

    def _view(self, path: Path, view: View) -> pa.Array:
        if self.parent is not None:
            whole, places = self.parent
            if (known := whole._views.get((path, view))) is not None:
                return known.take(pa.array(places))
        if path.parts == (TIME,) and view is View.NUMBER:
            return pa.array(self.times_ms.astype(np.float64))
        column = self._values(path)
        if view is View.PRESENT:
            if isinstance(column, pa.Array):
                return column.is_valid()
            return pa.array([value is not None for value in column], pa.bool_())
        if view is View.SIZE:
            if isinstance(column, pa.Array):
                return pa.nulls(len(column), pa.float64())
            sizes = [float(len(v)) if isinstance(v, list) else None for v in column]
            return pa.array(sizes, pa.float64())
        return typed(column, view)

    def _values(self, path: Path) -> Column:
        """Return the JSON values at a path; null where there is none."""
        if path.parts == (TIME,):
            return pa.array(self.times_ms)
        found = self._columns.get(path)
        if found is None:
            at = np.arange(len(self)) if self.places is None else self.places
            found = self._columns[path] = self.members.taken(path).at(at)
            self.held.add(found)
        return found


def typed(column: Column, view: View) -> pa.Array:
    """Return JSON values as one type; null what is of another."""
    kind = _TYPES[view]
    if not isinstance(column, pa.Array):
        return _typed(column, view)
    if column.type == kind:
        return pc.add(column, 0.0) if view is View.NUMBER else column
    if view is View.NUMBER and pa.types.is_integer(column.type):
        # Beyond 2**53 the nearest double, as in the reference.
        return column.cast(kind, safe=False)
    return pa.nulls(len(column), kind)


def _typed(values: list[Any], view: View) -> pa.Array:
    if view is View.TEXT:
        values = [value if isinstance(value, str) else None for value in values]
    elif view is View.BOOL:
        values = [value if isinstance(value, bool) else None for value in values]
    else:
        return _numbers(values)
    return pa.array(values, _TYPES[view])


def _numbers(values: list[Any]) -> pa.Array:
    if set(map(type, values)) <= {int, float, type(None)}:
        try:
            # Adding zero turns -0.0 into 0.0, as in the reference.
            return pc.add(pa.array(values, pa.float64()), 0.0)
        except pa.ArrowInvalid:
            pass  # a whole number that doubles do not hold
    return pa.array(list(map(as_double, values)), pa.float64())
