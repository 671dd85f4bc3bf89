"""What sketches say, held against everything that they have seen (RELIABILITY I5).

A part of the recount: it shares no code with Weir. How many events a sketch has is exact. What
it estimates lies within the printed bound in 99 of 100 cases; of the thousands that a run
compares some lie beyond, so what is asked is twice the bound, which a sound sketch exceeds
less than once in a million times. A list of the most frequent always keeps its bounds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from recount import Api, Comparison, ExactPane, MetricSpec, Panes, is_too_few, pane_query

WIDER = 2.0


def compare_sketches(
    api: Api, panes: Panes, spec: MetricSpec, aggregates: Sequence[str], pane_ms: int
) -> Comparison:
    """Compare each served pane of percentiles and distinct counts with the exact ones."""
    result = Comparison()
    starts = [start for start, _series in panes]
    span = (min(starts), max(starts) + pane_ms)
    for aggregate in aggregates:
        served = dict(api.panes(spec, aggregate, pane_ms, span))
        for key, pane in panes.items():
            point = served.get(key)
            result.note(
                point is not None and _agrees(point, pane, aggregate),
                f"{spec.name} {aggregate} {key}: {point}, of {pane.count} events",
            )
    return result


def _agrees(point: dict[str, Any], pane: ExactPane, aggregate: str) -> bool:
    if point["count"] != pane.count:
        return False
    if aggregate.startswith("p"):
        return _is_percentile(point, pane, aggregate)
    if point["value"] is None:
        return False
    most = max(point["high"] - point["value"], point["value"] - point["low"])
    return bool(abs(point["value"] - len(pane.members)) <= WIDER * most)


def _is_percentile(point: dict[str, Any], pane: ExactPane, aggregate: str) -> bool:
    """Return whether the rank of a value is as near as the ranks of its ends promise."""
    value, values = point["value"], pane.values
    if value is None or is_too_few(pane.count, aggregate):
        return value is None and is_too_few(pane.count, aggregate)
    wanted = float(aggregate[1:]) / 100 * len(values)
    least, most = bisect_left(values, point["low"]), bisect_right(values, point["high"])
    bound = WIDER * max(most - wanted, wanted - least, 1)
    return bisect_left(values, value) - bound <= wanted <= bisect_right(values, value) + bound


def compare_top(
    api: Api,
    events: Iterable[dict[str, Any]],
    spec: MetricSpec,
    text: Callable[[dict[str, Any]], str],
    pane_ms: int,
) -> Comparison:
    """Compare the most frequent texts of each pane of a metric without dimensions."""
    exact: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for event in events:
        if event["type"] == spec.type and spec.matches(event):
            exact[event["_time_ms"] // pane_ms * pane_ms][text(event)] += 1
    span = (min(exact), max(exact) + pane_ms)
    answer = api.call("POST", "/query", pane_query(spec, "top", pane_ms, span))
    (series,) = answer["series"]
    result, seen = Comparison(), set[int]()
    for end_ms, items in zip(answer["t_ms"], series["items"], strict=True):
        counts = exact.get(end_ms - pane_ms, Counter())
        result.note(
            _is_top(items or (), counts),
            f"{spec.name} top {end_ms - pane_ms}: {items}, is {counts.most_common(5)}",
        )
        seen.add(end_ms - pane_ms)
    result.note(seen >= exact.keys(), f"{spec.name} top: panes {exact.keys() - seen} are missing")
    return result


def _is_top(items: Sequence[Sequence[Any]], counts: Counter[str]) -> bool:
    """Return whether each text came as often as its ends say, and no other more than is told."""
    named = [item for item in items if item[0] is not None]
    most_of_others = sum(item[3] for item in items if item[0] is None)
    listed = {item[0] for item in named}
    others = (count for text, count in counts.items() if text not in listed)
    return (
        bool(named) == bool(counts)
        and all(low <= counts[text] <= high for text, _count, low, high in named)
        and max(others, default=0) <= most_of_others
    )


Texts = set[str]
SETS: dict[str, Callable[[Texts, Texts], Texts]] = {
    "overlap": Texts.intersection,
    "only_left": Texts.difference,
    "union": Texts.union,
}


def compare_sets(
    api: Api, left: Panes, right: Panes, specs: tuple[MetricSpec, MetricSpec], pane_ms: int
) -> Comparison:
    """Compare what two metrics' sets have in common, pane by pane, with the sets themselves.

    And, of the first alone, who of a pane came back of the ten panes before it, and who is new.
    """
    result = Comparison()
    starts = sorted({start for start, _series in (*left, *right)})
    span = (starts[0], starts[-1] + pane_ms)
    sides = [{"metric": spec.name, "aggregate": "theta"} for spec in specs]
    earlier = {**sides[0], "before": f"{10 * pane_ms // 1000}s"}

    def members(panes: Panes, *of: int) -> Texts:
        found = (panes[at, ()].members for at in of if (at, ()) in panes)
        return Texts().union(*found)

    for op, of in SETS.items():
        asked: tuple[tuple[dict[str, str], Callable[[int], Texts]], ...] = (
            (sides[1], lambda at: members(right, at)),
            (earlier, lambda at: members(left, *range(at - 10 * pane_ms, at, pane_ms))),
        )
        for other, others in asked:
            query = pane_query(specs[0], "theta", pane_ms, span)
            del query["metric"], query["aggregate"]
            answer = api.call(
                "POST", "/query", {**query, "expr": {"op": op, "left": sides[0], "right": other}}
            )
            (series,) = answer["series"]
            for at, end_ms in enumerate(answer["t_ms"]):
                exact = len(of(members(left, end_ms - pane_ms), others(end_ms - pane_ms)))
                value, low, high = (series[name][at] for name in ("value", "low", "high"))
                most = max(high - value, value - low) if value is not None else 0.0
                result.note(
                    value is not None and abs(value - exact) <= WIDER * most,
                    f"{op} {other} {end_ms - pane_ms}: {value} in {low}..{high}, is {exact}",
                )
    return result
