"""A served pane beside its recount: exact parts exactly, sketches within twice their bound. Pure.

A bound of a sketch holds in 99 of 100 trials, so an audit of a thousand series would
name ten that are right. At twice the error nothing that is right is ever named, and
what is wrong, such as a part that is missing or counted twice, shows in `n`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import datasketches as ds
from weir.definitions.metric import Metric
from weir.frequent import Texts
from weir.further import Further
from weir.rows import Row
from weir.series import OTHER, series_digest, shard_of
from weir.sets import opened

from weir_analytics.jobs.recount import Counted, Exact
from weir_analytics.jobs.sample import PaneAt
from weir_analytics.panes.commit_job import Limits
from weir_analytics.panes.pane_merge import Cap, cap_of, own_series

EXACT_BELOW: Final = 2.0**53
FLOAT_ERROR: Final = 1e-9
SPREAD_ERROR: Final = 1e-6
TIMES: Final = 2
_DEVIATIONS: Final = 3

Served = Sequence[Mapping[str, Row]]
"""A pane as it is served: of each shard series text -> row."""


@dataclass(frozen=True)
class Difference:
    """One field that is not what the log says.

    Attributes:
        metric: The metric.
        version: Its version's number.
        res_s: Length of the pane in seconds.
        start_s: Its start.
        series: Text of the series; `*` is what is counted together as other.
        field: `n`, `sum`, `min`, `max`, `spread`, `last`, `distinct`, `theta`, `top`, `values`
            or `p<percentile>`.
        served: What is served; None: nothing.
        recounted: What the log says; None: nothing. Of a sketch the span that it must lie in.
    """

    metric: str
    version: int
    res_s: int
    start_s: int
    series: str
    field: str
    served: Any
    recounted: Any

    def told(self) -> dict[str, Any]:
        """Return it as an outcome tells it."""
        return asdict(self)


def nameless(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a difference as it is told, without the texts of events: of whom it is.

    The log of definitions keeps outcomes for good, where no erasure reaches a name.
    """
    known = ("metric", "version", "res_s", "start_s", "field")
    numbers = {name: _numbers_of(told[name]) for name in ("served", "recounted")}
    return {name: told[name] for name in known} | numbers


def _numbers_of(value: Any) -> Any:
    """Return what of a value of a difference is no text: of `[text, 3]` that is 3."""
    if isinstance(value, list | tuple):
        kept = [one for one in value if isinstance(one, int | float)]
        return kept[0] if len(kept) == 1 else kept
    return value if isinstance(value, int | float) else None


def compare(
    metric: Metric, version: int, pane: PaneAt, served: Served, counted: Counted
) -> Iterator[Difference]:
    """Yield every field of a pane that differs, both ways round."""
    cap = cap_of(Limits({}, metric.max_series), len(served))
    for shard, rows in enumerate(served):
        here = {s: e for s, e in counted.items() if _shard(s, len(served)) == shard}
        expected = _capped(here, _own(rows, here, cap))
        for series in sorted(rows.keys() | expected.keys()):
            exact, row = expected.get(series, Exact()), rows.get(series)
            for field, is_, must in _fields(metric, row, exact):
                yield Difference(
                    metric.name, version, pane.res_s, pane.start_s, series, field, is_, must
                )


def _shard(series: str, shards: int) -> int:
    return shard_of(series_digest(series), shards)


def _own(rows: Mapping[str, Row], counted: Counted, cap: Cap) -> frozenset[str]:
    """Return the series that must have a row of their own: those of the smallest digests.

    Whether an unsure event made a series only its row can tell.
    """
    sure = (s for s, exact in counted.items() if exact.n or s in rows)
    return own_series(frozenset(sure), (), cap)


def _capped(counted: Counted, own: frozenset[str]) -> Counted:
    """Return what was counted as a pane holds it: the rest together as other."""
    expected = {series: exact for series, exact in counted.items() if series in own}
    for series in counted.keys() - own:
        expected.setdefault(OTHER, Exact()).add(counted[series])
    return expected


def _fields(metric: Metric, row: Row | None, exact: Exact) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, served and right value of each field that is not right."""
    served_n = row.n if row is not None else 0
    if not exact.n <= served_n <= exact.n + exact.unsure:
        yield "n", served_n, _span(exact.n, exact.n + exact.unsure)
        return  # everything else follows from that
    if row is None or exact.unsure:
        return
    lows, highs = sorted(exact.lows), sorted(exact.highs)
    if metric.value_tree is not None and lows:
        yield from _numbers(row, lows, highs)
    if metric.needs_hll:
        yield from _distinct(row.hll, len(exact.members))
    if metric.needs_kll and lows:
        yield from _percentiles(metric, row.kll, lows, highs)
    yield from _further(metric, row.further or Further(), exact)


def _span(low: Any, high: Any) -> Any:
    """Return what is right as a difference tells it."""
    return low if low == high else [low, high]


def _numbers(
    row: Row, lows: Sequence[float], highs: Sequence[float]
) -> Iterator[tuple[str, Any, Any]]:
    """Compare what is added up with values that lie between two ends each, both ascending."""
    least, most = math.fsum(lows), math.fsum(highs)
    size = max(math.fsum(map(abs, lows)), math.fsum(map(abs, highs)))
    whole = size < EXACT_BELOW and all(float(x).is_integer() for x in (*lows, *highs))
    allowed = 0.0 if whole else FLOAT_ERROR * size
    if row.sum is None or not least - allowed <= row.sum <= most + allowed:
        yield "sum", row.sum, _span(least, most)
    for field, served, at in (("min", row.min, 0), ("max", row.max, -1)):
        if served is None or not lows[at] <= served <= highs[at]:
            yield field, served, _span(lows[at], highs[at])


def _distinct(sketch: bytes | None, exact: int) -> Iterator[tuple[str, Any, Any]]:
    found = ds.hll_sketch.deserialize(sketch) if sketch else None
    if not _is_near(found, exact):
        yield "distinct", _size(found), exact


def _is_near(sketch: Any, exact: int) -> bool:
    """Tell whether a number lies within twice the bound of a sketch; None is an empty one."""
    if sketch is None:
        return exact == 0
    estimate = sketch.get_estimate()
    low = estimate - TIMES * (estimate - sketch.get_lower_bound(_DEVIATIONS))
    high = estimate + TIMES * (sketch.get_upper_bound(_DEVIATIONS) - estimate)
    # Of few texts the sketch has them all; rounding is all that it may be off.
    return bool(low - 0.5 <= exact <= high + 0.5)


def _size(sketch: Any) -> float:
    return 0.0 if sketch is None else round(float(sketch.get_estimate()), 1)


def _further(metric: Metric, further: Further, exact: Exact) -> Iterator[tuple[str, Any, Any]]:
    """Yield what only few metrics ask for: spread, last, sets, frequent texts."""
    if metric.needs_spread and (exact.values or exact.spans):
        yield from _spread(further.spread, exact.lows, exact.highs)
    if metric.needs_last and exact.last is not None:
        *which, low, high = exact.last
        served = further.last
        if served is None or [*served[:2]] != which or not low <= served.value <= high:
            yield "last", served and served.value, _span(low, high)
    if metric.theta_path is not None:
        found = opened(further.theta) if further.theta is not None else None
        if not _is_near(found, len(exact.in_set)):
            yield "theta", _size(found), len(exact.in_set)
    if metric.top_path is not None:
        yield from _top(further.top, exact.texts)


def _spread(
    served: float | None, lows: Sequence[float], highs: Sequence[float]
) -> Iterator[tuple[str, Any, Any]]:
    values = [low + (high - low) / 2 for low, high in zip(lows, highs, strict=True)]
    mean = math.fsum(values) / len(values)
    spread = math.fsum((x - mean) ** 2 for x in values)
    # What doubles lose of squares around a mean far from zero, however small the spread is.
    allowed = SPREAD_ERROR * spread + FLOAT_ERROR * mean * mean * len(values)
    # Its root is a distance: by the triangle inequality it moves no farther than the values.
    moved = math.fsum((high - low) ** 2 for low, high in zip(lows, highs, strict=True))
    allowed += 2 * math.sqrt(spread * moved) + moved
    # A row that is no number is none that Weir has written: it is beyond every bound.
    if served is None or not abs(served - spread) <= allowed:
        yield "spread", served, spread


def _top(served: Texts | None, texts: Counter[str]) -> Iterator[tuple[str, Any, Any]]:
    """The bounds of a frequent text are certain, so each text must lie within its own."""
    events = served.events if served is not None else 0
    if served is None or events != texts.total():
        if events != texts.total():
            yield "top", events, texts.total()
        return
    sketch = ds.frequent_strings_sketch.deserialize(served.sketch) if served.sketch else None
    # What the sketch forgot is added to every upper end.
    lost = events - (sketch.total_weight if sketch is not None else 0)
    for text, times in sorted(texts.items()):
        low = sketch.get_lower_bound(text) if sketch is not None else 0
        high = lost + (sketch.get_upper_bound(text) if sketch is not None else 0)
        if not low <= times <= high:
            yield "top", [text, low, high], [text, times]
            return


def _percentiles(
    metric: Metric, sketch: bytes | None, lows: Sequence[float], highs: Sequence[float]
) -> Iterator[tuple[str, Any, Any]]:
    if not sketch:
        yield "values", 0, len(lows)
        return
    kll = ds.kll_doubles_sketch.deserialize(sketch)
    if kll.n != len(lows):
        yield "values", kll.n, len(lows)
        return
    error = TIMES * kll.normalized_rank_error(False) if kll.is_estimation_mode() else 0.0
    for percentile in metric.percentiles:
        q = percentile / 100
        low, high = _at(lows, q - error, math.floor), _at(highs, q + error, math.ceil)
        found = float(kll.get_quantile(q, True))
        if not low <= found <= high:
            yield f"p{percentile:g}", found, [low, high]


def _at(values: Sequence[float], q: float, rounded: Any) -> float:
    """Return the value at a rank of ascending values, the ends beyond them."""
    return values[min(len(values) - 1, max(0, int(rounded(q * len(values))) - 1))]
