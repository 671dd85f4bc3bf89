"""Measures: what metrics keep of their events besides a count, from columns to rows.

Every metric of a plan shares the aggregates. A metric that asks for no sketch gives each of
them nulls, and what no metric of the plan asks for has no column at all: so nobody pays for
what others want more than a null, and nothing for what nobody wants.

The row of an event carries the number of its metric's measures (`sketch`), by which the
inputs are told apart. To add a measure: its input, its aggregate, how the writer reads it,
and its place in a row of `weir`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from weir.definitions.metric import Metric
from weir.frequent import capacity, texts_of
from weir.further import Further, Last
from weir.rows import Row
from weir.sets import Theta, compact_theta
from weir.sketches import compact_hll, compact_kll

from weir_analytics.panes.compile import member_of, series_of
from weir_analytics.panes.kinds import Use

TIME, IDENTITY = "time_ms", "identity"
NEWEST_TYPE = f"struct<{TIME}: bigint, {IDENTITY}: binary, value: double>"


@dataclass(frozen=True, order=True)
class Measures:
    """What one metric keeps; metrics that keep the same share one number.

    A size of 0 is a sketch that nobody asks for. `…_member` says which of the metric's
    marked texts a sketch takes.
    """

    kll_k: int
    hll_lg_k: int
    theta_lg_k: int
    top_lg_k: int
    theta_member: int
    top_member: int
    spread: bool
    last: bool

    @classmethod
    def of(cls, metric: Metric) -> Measures:
        """Return what a metric keeps."""
        sizes, members = metric.sketches, metric.members
        theta, top = metric.theta_path, metric.top_path
        return cls(
            kll_k=metric.kll_k,
            hll_lg_k=sizes.hll_lg_k if metric.needs_hll else 0,
            theta_lg_k=0 if theta is None else sizes.theta_lg_k,
            top_lg_k=0 if top is None else sizes.top_lg_k,
            theta_member=0 if theta is None else members.index(theta),
            top_member=0 if top is None else members.index(top),
            spread=metric.needs_spread,
            last=metric.needs_last,
        )


NOTHING = Measures(0, 0, 0, 0, 0, 0, spread=False, last=False)


class Measured:
    """What the metrics of one plan keep, and the columns that this takes."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        """Take the metrics of the plan."""
        metrics = tuple(metrics)
        self.valued = any(metric.value is not None for metric in metrics)
        kinds = sorted({Measures.of(metric) for metric in metrics} - {NOTHING})
        self._numbers = {measures: number for number, measures in enumerate(kinds, 1)}
        self.marked = tuple(
            marked_name(at) for at in range(max((1, *(len(m.members) for m in metrics))))
        )

    @property
    def ordered(self) -> bool:
        """Whether rows carry event time and identity."""
        return any(measures.last for measures in self._numbers)

    @property
    def fields(self) -> dict[str, str]:
        """Members that rows have only under such metrics: name -> type."""
        found = dict.fromkeys(self.marked[1:], "string")
        return found | ({TIME: "bigint", IDENTITY: "binary"} if self.ordered else {})

    def of(self, metric: Metric, members: Sequence[Column]) -> dict[str, Column]:
        """Return what the rows of a metric hold for its measures.

        Args:
            metric: The metric.
            members: Its marked texts, in the order of `Metric.members`.
        """
        # Null would mean a text that cannot be told.
        padded = [*members, *[F.lit("~")] * (len(self.marked) - len(members))]
        found = dict(zip(self.marked, padded, strict=True))
        measures = Measures.of(metric)
        if measures != NOTHING:
            found["sketch"] = F.lit(self._numbers[measures])
        if measures.last:
            found |= {TIME: F.col(TIME), IDENTITY: F.col(IDENTITY)}
        return found

    def inputs(self) -> dict[str, Column]:
        """Return the inputs of the aggregates, of a row that is used: null for all others."""
        found: dict[str, Column] = {}
        if self.valued:
            found["value"] = F.when(_is_used(), F.col("value"))
        for k in self._sizes("kll_k"):
            found[f"sample_{k}"] = self._when(F.col("value"), kll_k=k)
        for lg_k in self._sizes("hll_lg_k"):
            found[f"member_{lg_k}"] = self._when(member_of(F.col("marked")), hll_lg_k=lg_k)
        for lg_k in self._sizes("theta_lg_k"):
            found[f"set_{lg_k}"] = self._of_texts("theta", lg_k)
        for lg_k in self._sizes("top_lg_k"):
            found[f"text_{lg_k}"] = self._of_texts("top", lg_k)
        if any(measures.spread for measures in self._numbers):
            found["apart"] = self._when(F.col("value"), spread=True)
        if self.ordered:
            found["newest"] = self._when(F.struct(TIME, IDENTITY, "value"), last=True)
        return found

    def _sizes(self, name: str) -> list[int]:
        return sorted({getattr(measures, name) for measures in self._numbers} - {0})

    def _when(self, column: Column, **wanted: Any) -> Column:
        """Return a column where the row's metric keeps this, null elsewhere."""
        numbers = [
            number
            for measures, number in self._numbers.items()
            if all(getattr(measures, name) == value for name, value in wanted.items())
        ]
        return F.when(_is_used() & F.col("sketch").isin(*numbers), column)

    def _of_texts(self, word: str, lg_k: int) -> Column:
        """Return the text that a sketch takes, of whichever of its marked ones it is."""
        size, place = f"{word}_lg_k", f"{word}_member"
        of_size = {m for m in self._numbers if getattr(m, size) == lg_k}
        branches = []
        for at in sorted({getattr(measures, place) for measures in of_size}):
            marked = F.col(marked_name(at))
            text = _text_of(marked) if word == "top" else member_of(marked)
            branches.append(self._when(text, **{size: lg_k, place: at}))
        return F.coalesce(*branches)


def marked_name(at: int) -> str:
    """Return the name of the column with the marked text at a place."""
    return f"marked_{at + 1}" if at else "marked"


def _is_used() -> Column:
    return F.col("use") == int(Use.USED)


def _text_of(marked: Column) -> Column:
    """Return a text as it is listed, a long one cut as in a series; null if there is none."""
    return series_of(F.when(marked != "~", F.substring(marked, 2, 2**31 - 1)))


def aggregates(inputs: Iterable[str]) -> dict[str, Column]:
    """Return the aggregates by name, each native in the JVM."""
    found: dict[str, Column] = {}
    names = list(inputs)
    if "value" in names:
        found |= {"sum": F.sum("value"), "min": F.min("value"), "max": F.max("value")}
    for name in names:
        kind, _, size = name.partition("_")
        if kind == "sample":
            found[f"kll_{size}"] = F.kll_sketch_agg_double(name, F.lit(int(size)))
        elif kind == "member":
            found[f"hll_{size}"] = F.hll_sketch_agg(name, F.lit(int(size)))
        elif kind == "set":
            found[f"theta_{size}"] = F.theta_sketch_agg(name, F.lit(int(size)))
        elif kind == "text":
            found[f"top_{size}"] = _frequent(name, int(size))
            found[f"texts_{size}"] = F.count(name)
        elif kind == "apart":
            found["variance"] = F.var_pop(name)
        elif kind == "newest":
            found["newest"] = F.max(name)
    return {name: column.alias(name) for name, column in found.items()}


def _frequent(name: str, lg_k: int) -> Column:
    made = F.call_function("approx_top_k_accumulate", F.col(name), F.lit(capacity(lg_k)))
    return made["sketch"]


def outputs_of(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """Return the names of the aggregates that some metrics ask for, besides `n`."""
    metrics = tuple(metrics)
    kept = [Measures.of(metric) for metric in metrics]
    valued = any(metric.value is not None for metric in metrics)
    found = ["sum", "min", "max"] if valued else []
    for name, size in (("kll", "kll_k"), ("hll", "hll_lg_k"), ("theta", "theta_lg_k")):
        found += [f"{name}_{k}" for k in sorted({getattr(one, size) for one in kept} - {0})]
    for lg_k in sorted({one.top_lg_k for one in kept} - {0}):
        found += [f"top_{lg_k}", f"texts_{lg_k}"]
    found += ["variance"] if any(one.spread for one in kept) else []
    found += ["newest"] if any(one.last for one in kept) else []
    return tuple(found)


def output_type(output: str) -> str:
    """Return the type of an aggregate by its name: sketches are bytes, most others doubles."""
    if output == "newest":
        return NEWEST_TYPE
    if output.startswith("texts_"):
        return "bigint"
    return "double" if output in ("sum", "min", "max", "variance") else "binary"


class RowReader:
    """Rows of `weir` out of the columns that a writer receives."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Take the columns by name; those of aggregates that nobody asks for are not there."""
        self._n = columns["n"]
        nothing: Sequence[None] = [None] * len(self._n)
        self._numbers = tuple(columns.get(name, nothing) for name in ("sum", "min", "max"))
        self._hlls = [column for name, column in columns.items() if name.startswith("hll_")]
        self._klls = [column for name, column in columns.items() if name.startswith("kll_")]
        self._tops = [
            (columns[f"texts_{name.removeprefix('top_')}"], column)
            for name, column in columns.items()
            if name.startswith("top_")
        ]
        self._thetas = {
            int(name.removeprefix("theta_")): column
            for name, column in columns.items()
            if name.startswith("theta_")
        }
        self._variance = columns.get("variance", nothing)
        self._newest = columns.get("newest", nothing)
        self._is_plain = not (self._tops or self._thetas or {"variance", "newest"} & set(columns))

    def row(self, at: int) -> Row:
        """Return one row; empty sketches are None."""
        sums, lows, highs = self._numbers
        hll = kll = None
        for column in self._hlls:
            if hll := compact_hll(column[at]):
                break
        for column in self._klls:
            if kll := compact_kll(column[at]):
                break
        further = None if self._is_plain else self._further(at)
        return Row(self._n[at], sums[at], lows[at], highs[at], hll, kll, further)

    def _further(self, at: int) -> Further | None:
        variance, newest = self._variance[at], self._newest[at]
        thetas = ((lg_k, compact_theta(column[at])) for lg_k, column in self._thetas.items())
        found = Further(
            spread=None if variance is None else variance * self._n[at],
            last=None if newest is None else Last(newest[TIME], newest[IDENTITY], newest["value"]),
            top=next((top for n, s in self._tops if (top := texts_of(n[at] or 0, s[at]))), None),
            theta=next((Theta(lg_k, theta) for lg_k, theta in thetas if theta), None),
        )
        return None if found == Further() else found
