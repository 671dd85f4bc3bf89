"""Views: the value at a path, read as one type, as text of a series, or as there at all.

A member of `data`, or an extension, is parsed as a VARIANT, which remembers its JSON type; a view
then asks for one type and is null for every other. Numbers are read back from the
variant's JSON, because Spark's own way from its DECIMAL to a double divides, and is
off by the last bit. The text of a number that is no 64-bit integer is made by a worker of
Python. What this costs is in docs/decisions/0010-typed-reads.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from weir.expressions import Kind, Path
from weir.expressions.functions import TO_TEXT
from weir.expressions.paths import DATA, TIME, TIME_MEMBER, element_at

from weir_analytics.panes.compile_functions import FUNCTIONS

text_by_worker: Final = FUNCTIONS[TO_TEXT]
"""The shortest text that reads back to a double, as `number_text` writes it.

Java 17 writes some doubles otherwise, with a digit more or another last one.
"""
_MAX_UINT64 = 2**64 - 1


class View(Enum):
    """How a path is read; the value begins the name of its column."""

    NUMBER = "n"
    TEXT = "t"
    BOOL = "b"
    PRESENT = "p"
    """True if there is anything but null."""
    MARKED = "m"
    """`~` for null, `=` and the text of a scalar; null for what has no text."""
    DIMENSION = "d"
    """`MARKED`, escaped as a part of a series text."""
    SIZE = "s"
    """How many elements an array has; null of anything else."""
    ITEMS = "i"
    """The elements of an array, as they are; null of anything else."""

    @staticmethod
    def of(kind: Kind) -> View:
        """Return the view that reads a kind."""
        return {Kind.NUMBER: View.NUMBER, Kind.TEXT: View.TEXT, Kind.BOOL: View.BOOL}[kind]


def leaf_of(path: Path) -> tuple[str, ...]:
    """Return which member of the parsed struct holds a path: one name, or two of a variant.

    The first of two is `data`, or the word before an extension, which is a member itself.
    """
    if path.parts == (TIME,):
        return (TIME_MEMBER,)
    return path.parts[:2]


def members_of(paths: Iterable[Path]) -> tuple[set[str], set[str]]:
    """Return which members of an event hold some paths, and which of its data do."""
    leaves = list(map(leaf_of, paths))
    outer = {leaf[-1] for leaf in leaves if leaf[0] != DATA}
    return outer, {leaf[1] for leaf in leaves if leaf[0] == DATA}


def view_column(parsed: Column, path: Path, view: View) -> Column:
    """Return one view of a path.

    Args:
        parsed: The struct of `EventSchema.parse`.
        path: The path.
        view: How it is read.
    """
    if view is View.DIMENSION:
        return escaped(view_column(parsed, path, View.MARKED))
    if path.is_extension:
        return _variant_view(parsed[path.parts[1]], view)
    if not path.in_data:
        return _attribute_view(parsed[leaf_of(path)[0]], path, view)
    variant = parsed[DATA][path.parts[1]]
    if len(path.parts) > 2:
        below = "".join(map(_step, path.parts[2:]))
        variant = F.try_variant_get(variant, f"${below}", "variant")
    return _variant_view(variant, view)


def escaped(text: Column) -> Column:
    """Return a text as it stands in a series text."""
    doubled = F.replace(text, F.lit("\\"), F.lit("\\\\"))
    return F.replace(doubled, F.lit("|"), F.lit("\\|"))


def _step(part: str) -> str:
    return f"['{part}']" if element_at(part) is None else part


def _attribute_view(attribute: Column, path: Path, view: View) -> Column:
    if path.parts == (TIME,):
        milliseconds = attribute.try_cast("bigint")
        if view is View.NUMBER:
            return milliseconds.cast("double")
        attribute = milliseconds.cast("string")
    if view is View.PRESENT:
        return attribute.isNotNull()
    if view is View.MARKED:
        return F.coalesce(F.concat(F.lit("="), attribute), F.lit("~"))
    return attribute


def item_view(item: Column, kind: Kind) -> Column:
    """Return an element of `View.ITEMS` as a kind, null if it is of another."""
    return _variant_view(item, View.of(kind))


def _variant_view(variant: Column, view: View) -> Column:
    json_type = F.schema_of_variant(variant)
    if view is View.NUMBER:
        # Only a number's JSON reads as one: a string's begins with a quote. Adding
        # zero turns -0.0 into 0.0, as in the reference.
        return F.to_json(variant).try_cast("double") + F.lit(0.0)
    if view is View.TEXT:
        return F.when(json_type == "STRING", F.try_variant_get(variant, "$", "string"))
    if view is View.BOOL:
        return F.when(json_type == "BOOLEAN", F.try_variant_get(variant, "$", "boolean"))
    if view is View.PRESENT:
        return variant.isNotNull() & ~F.is_variant_null(variant)
    if view in (View.SIZE, View.ITEMS):
        items = F.try_variant_get(variant, "$", "array<variant>")
        return items if view is View.ITEMS else F.array_size(items).cast("double")
    is_said = json_type.isin("STRING", "BIGINT", "BOOLEAN")
    return (
        F.when(is_said, F.concat(F.lit("="), F.try_variant_get(variant, "$", "string")))
        .when(json_type.isNull() | (json_type == "VOID"), F.lit("~"))
        .otherwise(F.concat(F.lit("="), _number_text(variant, json_type, is_said)))
    )


def _number_text(variant: Column, json_type: Column, is_said: Column) -> Column:
    """Return the text of a number that is no BIGINT, null of anything else.

    A worker is given what needs it and null in place of the rest: it sees every event, whatever
    condition stands around it.
    """
    text = F.to_json(variant)
    digits = _is_beyond_int64(json_type, text)
    double = F.when(~is_said & ~digits, text.try_cast("double"))
    return F.when(digits, text).otherwise(text_by_worker(double))


def _is_beyond_int64(json_type: Column, text: Column) -> Column:
    """Tell whether a number is a whole one of 64 bits that a BIGINT does not hold."""
    whole = json_type.isin("DECIMAL(19,0)", "DECIMAL(20,0)") & text.try_cast("bigint").isNull()
    return whole & (text.try_cast("decimal(20,0)") <= F.lit(str(_MAX_UINT64)).cast("decimal(20,0)"))
