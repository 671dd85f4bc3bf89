"""A row of CSV as an event, by the names in the first row."""

from __future__ import annotations

from collections import Counter
from typing import Final

from weir_cli.exits import UsageError
from weir_cli.sending.entries import Cutter, Entry, Point
from weir_cli.sending.fields import NotUnderstoodError, Shape, event_of
from weir_cli.sending.rows import Row, RowCutter

TYPE: Final = "dev.weir.csv.event"


class Table:
    """CSV: the first row names the columns, each further one is an event."""

    word = "csv"

    def __init__(self, columns: tuple[str, ...], delimiter: str, shape: Shape) -> None:
        """Take the columns.

        Args:
            columns: Their names.
            delimiter: What stands between fields.
            shape: What the caller chose.

        Raises:
            UsageError: If two columns have one name, one has none, or an option names another.
        """
        twice = [name or "(none)" for name, times in Counter(columns).items() if times > 1]
        if twice or "" in columns:
            msg = (
                "the first row of CSV must name each column once, got"
                f" {', '.join(twice) or 'one without a name'}; see --format and --delimiter"
            )
            raise UsageError(msg)
        for option, name in (*shape.chosen.items(), *(("--text", one) for one in shape.texts)):
            if name not in columns:
                msg = f'{option} must name a column, got "{name}"; there are {", ".join(columns)}'
                raise UsageError(msg)
        self._columns, self._delimiter, self._shape = columns, delimiter, shape

    def told(self) -> str:
        """Return what it is read as, in words."""
        told = f"CSV with the columns {', '.join(self._columns)}"
        return told if self._shape.time else f"{told}, each row as of its arrival (--time)"

    def cutter(self, at: Point) -> Cutter:
        """Return what cuts an input from a point on."""
        return RowCutter(at, self._delimiter)

    def event(self, entry: Entry) -> bytes:
        """Return a row as it is sent.

        Raises:
            NotUnderstoodError: If it has not a field for each column, or no time where one is
                asked for.
        """
        fields = entry.fields if isinstance(entry, Row) else ()
        if len(fields) != len(self._columns):
            msg = f"a row must have {len(self._columns)} fields, got {len(fields)}"
            raise NotUnderstoodError(msg)
        named = dict(zip(self._columns, fields, strict=True))
        return event_of(entry, named, self._shape, TYPE)


def first_row(head: bytes, at: Point, delimiter: str, *, is_whole: bool) -> Row | None:
    """Return the row that names the columns; None if there is none.

    Args:
        head: How the input begins.
        at: Where its text begins there.
        delimiter: What stands between fields.
        is_whole: This is all of the input.
    """
    cutter = RowCutter(at, delimiter)
    rows = cutter.feed(head[at.offset :]) + (cutter.end() if is_whole else [])
    found = next((row for row in rows if not row.is_blank), None)
    return found if isinstance(found, Row) else None
