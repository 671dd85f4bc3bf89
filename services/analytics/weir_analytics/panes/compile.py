"""From metrics to Spark columns: one parse of an event, then columns for each metric.

    parsed = schema.parse(F.col("value"))      # from_json, only the members needed
    views  = schema.views(F.col("parsed"))     # every path read once, as each type asked
    inputs = read_metric(metric, schema, {name: F.col(name) for name in views})

`parsed` and each of `views` are to be columns of a `select` of their own, so that
Spark computes them once an event, however many metrics read them.

Every column is built node by node from `pyspark.sql.functions`. No text of a
user becomes SQL, and nothing here can raise for an event: what cannot be read or
computed is null. The meaning is that of `weir.expressions.use`; a property test
holds the two equal. `spark.sql.caseSensitive` and
`spark.sql.variant.allowDuplicateKeys` must be true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, cast

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from weir.definitions.metric import Metric
from weir.expressions import Node, Path
from weir.expressions.dimension import Dimension
from weir.expressions.paths import DATA, EXTENSION
from weir.expressions.tree import Absent, Has, Read, Size, paths_of, walk
from weir.expressions.use import MAX_VALUE
from weir.problems import Reason
from weir.series import KEPT_CHARACTERS, MAX_BYTES

from weir_analytics.panes.compile_nodes import compile_node
from weir_analytics.panes.compile_views import View, escaped, leaf_of, view_column

ENVELOPE = ("type", "weirtenant", "weirsource")
"""Members that every plan needs, whatever its metrics read."""


class Views(Protocol):
    """Columns by the names that `EventSchema.views` gives them."""

    def __getitem__(self, name: str, /) -> Column:
        """Return one of them."""
        ...


SETTINGS = {
    # Else `{"a": 1, "A": 2}` is read as one member.
    "spark.sql.caseSensitive": "true",
    # Else an object with a repeated key is read as absent; now its last one wins.
    "spark.sql.variant.allowDuplicateKeys": "true",
}
"""What the session must be set to for the columns to mean what they say."""

EMPTY_MEMBER = "\x00empty"
"""Stands for the empty text in a distinct count: the sketch takes no text of length zero."""


@dataclass(frozen=True)
class EventSchema:
    """What a set of metrics reads of an event.

    Attributes:
        reads: Each path with each way in which some metric reads it, in a fixed order.
    """

    reads: tuple[tuple[Path, View], ...]

    @classmethod
    def of(cls, metrics: Iterable[Metric]) -> EventSchema:
        """Return the least schema that serves some metrics."""
        return cls.reading(read for metric in metrics for read in _reads_of(metric))

    @classmethod
    def reading(cls, reads: Iterable[tuple[Path, View]]) -> EventSchema:
        """Return the least schema that serves some reads."""
        return cls(tuple(sorted(set(reads), key=lambda read: (read[0], read[1].value))))

    @property
    def spark_type(self) -> T.StructType:
        """The type for `from_json`: the members read, extensions and those of `data` as variants.

        Below `data` only the first name is a member of the type. What is deeper is
        read out of its variant, so that `{"a": {"b": 1}, "a": 5}` means 5 here too.
        """
        leaves = {leaf_of(path) for path, _view in self.reads}
        outer = sorted({leaf[0] for leaf in leaves if len(leaf) == 1} | set(ENVELOPE))
        fields = [T.StructField(name, T.StringType()) for name in outer]
        extensions = sorted(leaf[1] for leaf in leaves if leaf[0] == EXTENSION)
        fields += [T.StructField(name, T.VariantType()) for name in extensions]
        inner = sorted(leaf[1] for leaf in leaves if leaf[0] == DATA)
        if inner:
            members = [T.StructField(name, T.VariantType()) for name in inner]
            fields.append(T.StructField(DATA, T.StructType(members)))
        return T.StructType(fields)

    def parse(self, value: Column) -> Column:
        """Return a record's value as the struct of `spark_type`.

        Args:
            value: The bytes of an event, checked by ingest or by the engine.
        """
        return F.from_json(value.cast("string"), self.spark_type)

    def views(self, parsed: Column) -> dict[str, Column]:
        """Return what `read_metric` reads, by name: the envelope, and every view."""
        views = {name: parsed[name] for name in ENVELOPE}
        for path, view in self.reads:
            views[self._name(path, view)] = view_column(parsed, path, view)
        return views

    def view(self, views: Views, path: Path, view: View) -> Column:
        """Return one of the views."""
        return views[self._name(path, view)]

    def _name(self, path: Path, view: View) -> str:
        return f"{view.value}{self.reads.index((path, view))}"


@dataclass(frozen=True)
class MetricInputs:
    """What one metric reads of an event, before it is judged: the least code a metric.

    `error_of`, `series_of` and `member_of` say the rest, the same for every metric, so
    the engine computes them once, on the rows of all metrics.

    Attributes:
        selected: Whether the event is of the metric's types and sources; the tenant
            is the caller's to compare.
        where: Whether it matches; true or false, never null.
        text: Text of the series as long as it is; null if it cannot be told.
        value: A double, null if there is none.
        absent: Whether something that the value reads is absent; null if the metric
            measures nothing.
        marked: For the first of `Metric.members`: `~` if there is nothing to count, `=` and a text,
            null if it cannot be told.
    """

    selected: Column
    where: Column
    text: Column
    value: Column
    absent: Column
    marked: Column


def read_metric(metric: Metric, schema: EventSchema, views: Views) -> MetricInputs:
    """Return what one metric reads.

    Args:
        metric: The metric.
        schema: A schema made of metrics with this one among them.
        views: Columns that hold what `EventSchema.views` made.
    """

    def read(path: Path, view: View) -> Column:
        return schema.view(views, path, view)

    where, tree = F.lit(True), metric.value_tree
    if metric.where_tree is not None:
        where = F.coalesce(compile_node(metric.where_tree, read), F.lit(False))
    value, absent = F.lit(None).cast("double"), F.lit(None).cast("boolean")
    if tree is not None:
        value = compile_node(tree, read)
        absent = reduce(
            Column.__or__, [~read(path, View.PRESENT) for path in paths_of(tree)] or [F.lit(False)]
        )
    marked = F.lit("~")
    if metric.members:
        marked = schema.view(views, metric.members[0], View.MARKED)
    return MetricInputs(
        selected=_selected(metric, views),
        where=where,
        text=_text([_dimension(one, read) for one in metric.dimensions]),
        value=value,
        absent=absent,
        marked=marked,
    )


def reads_of(tree: Node) -> Iterable[tuple[Path, View]]:
    """Yield each path that an expression reads, with the way in which it does."""
    for node in walk(tree):
        if isinstance(node, Read):
            yield node.path, View.of(node.kind)
        elif isinstance(node, Absent):
            yield node.path, View.PRESENT
        elif isinstance(node, Size):
            yield node.path, View.SIZE
        elif isinstance(node, Has):
            yield node.path, View.ITEMS


def _reads_of(metric: Metric) -> Iterable[tuple[Path, View]]:
    for tree in (metric.where_tree, metric.value_tree):
        yield from reads_of(tree) if tree is not None else ()
    if metric.value_tree is not None:
        # A value that is null has one code if what it reads is absent, and another if not.
        yield from ((path, View.PRESENT) for path in paths_of(metric.value_tree))
    for one in metric.dimensions:
        if one.tree is not None:
            yield from reads_of(one.tree)
        elif one.path is not None:
            yield one.path, View.DIMENSION
    yield from ((path, View.MARKED) for path in metric.members)


def _selected(metric: Metric, views: Views) -> Column:
    events, event_type = metric.events, views["type"]
    tests = [F.startswith(event_type, F.lit(prefix)) for prefix in events.type_prefixes]
    if events.exact_types:
        tests.insert(0, event_type.isin(*events.exact_types))
    selected = reduce(Column.__or__, tests)
    if events.source:
        selected = selected & views["weirsource"].isin(*events.source)
    return F.coalesce(selected, F.lit(False))


def _dimension(one: Dimension, read: Callable[[Path, View], Column]) -> Column:
    """Return a dimension's part of the series text; see `Dimension.read`."""
    if one.path is not None:
        return read(one.path, View.DIMENSION)
    text = series_of(compile_node(cast("Node", one.tree), read))
    return F.coalesce(F.concat(F.lit("="), escaped(text)), F.lit("~"))


def _text(dimensions: list[Column]) -> Column:
    """Return the dimensions joined as in a series text, null if one has no text."""
    if not dimensions:
        return F.lit("")
    separated = [part for dimension in dimensions for part in (F.lit("|"), dimension)]
    return F.concat(*separated[1:]) if len(dimensions) > 1 else dimensions[0]


def series_of(text: Column) -> Column:
    """Return what `weir.series.cut_text` makes of a text: a long one is cut and ends in its MD5."""
    short = F.concat(F.substring(text, 1, KEPT_CHARACTERS), F.lit("…"), F.md5(text.cast("binary")))
    return F.when(F.octet_length(text) > MAX_BYTES, short).otherwise(text)


def member_of(marked: Column) -> Column:
    """Return the text that the sketch of a distinct count takes, null if there is none."""
    unmarked = F.when(marked != "~", F.substring(marked, 2, 2**31 - 1))
    return F.when(marked == "=", EMPTY_MEMBER).otherwise(unmarked)


def error_of(value: Column, absent: Column, text: Column, marked: Column) -> Column:
    """Return why a matched event cannot be used, null if it can; see `MetricInputs`."""
    missing = F.when(absent, Reason.VALUE_MISSING.value).otherwise(Reason.VALUE_INVALID.value)
    return (
        F.when(absent.isNotNull() & value.isNull(), missing)
        .when(F.abs(value) > MAX_VALUE, Reason.VALUE_RANGE.value)
        .when(text.isNull() | marked.isNull(), Reason.VALUE_INVALID.value)
    )
