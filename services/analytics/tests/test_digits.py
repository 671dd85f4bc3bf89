"""What a recount is sure of where the engine's functions end in another digit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, cast

import datasketches as ds
import pytest
from weir.definitions.check import check
from weir.definitions.metric import Metric
from weir.expressions import Node, Used, evaluate
from weir.expressions.functions import APPROXIMATED, FUNCTIONS
from weir.further import Further, Last
from weir.rows import Row
from weir_analytics.jobs.compare import compare
from weir_analytics.jobs.digits import Near, UnsureError, near, span_of
from weir_analytics.jobs.recount import Exact, exact_of
from weir_analytics.jobs.sample import PaneAt

from .compile_cases import draw_event, drawn_trees

PANE = PaneAt(5, 60, 1_200)


def metric(**said: Any) -> Metric:
    """Return a metric of events with `data.x`."""
    text = {
        "kind": "metric",
        "name": "m",
        "events": {"type": "t"},
        "keep": {"10s": "1h"},
        "aggregates": ["count"],
        **said,
    }
    model = check("metric", "m", text).model
    assert isinstance(model, Metric)
    return model


def event(x: float, **more: Any) -> dict[str, Any]:
    """Return an event as it is decoded."""
    return {"type": "t", "data": {"x": x, **more}}


def value_of(expression: str, x: float) -> tuple[float, float]:
    """Return the span of a value."""
    found = near(metric(value=expression, aggregates=["sum"]), event(x))
    assert found is not None
    assert found.sure
    return found.span


class TestNear:
    @pytest.mark.parametrize(
        "text", ["ln(data.x)", "log10(data.x)", "exp(1/data.x)", "power(data.x, 1.5)"]
    )
    def test_a_result_has_room_for_the_other_one(self, text: str) -> None:
        """Three units to either side, wherever a unit changes its length, and not many more."""
        for x in (2.0, 3.0, 10.0, 1_024.0, 7.5):
            low, high = value_of(text, x)
            middle = (low + high) / 2
            assert low <= middle - 3 * math.ulp(middle) < middle + 3 * math.ulp(middle) <= high
            assert high - low < 20 * math.ulp(middle)

    def test_what_is_made_of_it_lies_between(self) -> None:
        """Whatever the last digits of each call are, through operators and other functions."""
        text = "abs(ln(data.x) - ln(3)) / round(exp(1), 1) + greatest(ln(data.x), 1) * -2"
        low, high = value_of(text, 3.0)
        for left in (-1, 0, 1):
            for right in (-1, 0, 1):
                ln = math.log(3.0) + left * math.ulp(math.log(3.0))
                ln_3 = math.log(3.0) + right * math.ulp(math.log(3.0))
                assert low <= abs(ln - ln_3) / 2.7 + max(ln, 1.0) * -2 <= high
        assert high - low < 1e-13

    def test_a_step_may_be_taken_or_not(self) -> None:
        """A thousand has the logarithm 3, or a little less: between whole numbers there is one."""
        assert value_of("floor(log10(data.x))", 1_000.0) == (2.0, 3.0)
        assert value_of("floor(log10(data.x))", 1_001.0) == (3.0, 3.0)

    @pytest.mark.parametrize(
        ("where", "sure", "unsure", "never"),
        [
            ("log10(data.x) >= 3", 1_001.0, 1_000.0, 999.0),
            ("log10(data.x) = 3", None, 1_000.0, 1_001.0),
            ("not log10(data.x) in (1, 3)", 7.0, 1_000.0, None),
            ("case when log10(data.x) > 3 then 'a' else 'b' end = 'a'", 1_001.0, 1_000.0, 999.0),
            ("ln(data.x) % 2 < 1", None, 2.0, None),
            ("data.x > 5 and log10(data.x) > 3", 1_001.0, 1_000.0, 4.0),
            ("data.x > 5 or log10(data.x) > 0", 7.0, 1.0, 0.5),
            ("sqrt(ln(data.x)) is not null", 2.0, 1.0, 0.5),
            ("power(-2, log10(data.x)) is null", None, 100.0, None),
        ],
    )
    def test_on_an_edge_an_event_is_unsure(
        self, where: str, sure: float | None, unsure: float, never: float | None
    ) -> None:
        """Beside the edge it counts, or does not; another operand may decide."""
        found = near(metric(where=where, by=["data.k"]), event(unsure, k="a"))
        assert found == Near(Used("=a", None, None), (None, None), sure=False)
        if sure is not None:
            found = near(metric(where=where, by=["upper(data.k) as k"]), event(sure, k="a"))
            assert found == Near(Used("=A", None, None), (None, None))
        if never is not None:
            assert near(metric(where=where), event(never)) is None

    def test_what_nobody_can_use_is_not_unsure(self) -> None:
        """No logarithm, a division by zero, beyond the largest value, another type."""
        for text in ("ln(data.x)", "ln(2) / data.x", "ln(2) * 1e100 * 10 + data.x"):
            assert near(metric(value=text, aggregates=["sum"]), event(0.0)) is None
        assert near(metric(where="ln(data.x) > 1"), event(9.0) | {"type": "other"}) is None
        with pytest.raises(UnsureError):
            span_of(_value("sqrt(ln(data.x))"), event(1.0))

    @pytest.mark.parametrize(
        "where",
        ["ln(data.x) = data.y", "power(data.y, ln(data.x)) > 1", "ln(data.x) % data.y > 1"],
    )
    def test_beside_a_null_there_is_none(self, where: str) -> None:
        """What cannot be computed is not used, whatever the last digits beside it are."""
        assert near(metric(where=where), event(9.0)) is None

    def test_without_such_a_function_it_is_the_reference(self) -> None:
        """Nothing is widened."""
        plain = metric(value="data.x * 0.1", aggregates=["sum"])
        assert near(plain, event(3.0)) == Near(Used("", 0.1 * 3.0, None), (0.1 * 3.0, 0.1 * 3.0))
        assert near(plain, event(1e200)) is None


def off_by(units: int, function: Callable[..., float | None]) -> Callable[..., float | None]:
    """Return a function whose results are some units in the last place too great."""

    def of(*numbers: float) -> float | None:
        result = function(*numbers)
        for _unit in range(0 if result is None else units):
            result = math.nextafter(float(result or 0.0), math.inf)
        return result if result is not None and math.isfinite(result) else None

    return of


class TestDrawn:
    @pytest.mark.parametrize(
        ("units", "all_within"), [(0, True), (1, True), (3, True), (40, False)]
    )
    def test_spans_of_drawn_expressions(
        self, seed: int, monkeypatch: pytest.MonkeyPatch, units: int, all_within: bool
    ) -> None:
        """Functions off by three units leave no span that was drawn; off by forty they do."""
        random = Random(seed)  # noqa: S311 - cases, no secrets
        trees = drawn_trees(random, 1_000)
        events = [json.loads(draw_event(random)) for _ in range(6)]
        spans = {
            (at, n): _span(tree, e) for at, tree in enumerate(trees) for n, e in enumerate(events)
        }
        known = {place: span for place, span in spans.items() if span is not None}
        assert sum(low != high for low, high in known.values()) > len(spans) / 100
        assert len(known) > 0.95 * len(spans)
        for name in APPROXIMATED:
            wrong = replace(FUNCTIONS[name], apply=off_by(units, FUNCTIONS[name].apply))
            monkeypatch.setitem(FUNCTIONS, name, wrong)

        outside = 0
        for (at, n), (low, high) in known.items():
            found = evaluate(trees[at], events[n])
            outside += found != low if low == high else not low <= cast("Any", found) <= high
        assert (outside == 0) is all_within, seed


def _span(tree: Node, event: Mapping[str, Any]) -> tuple[Any, Any] | None:
    try:
        return span_of(tree, event)
    except UnsureError:
        return None


def _value(text: str) -> Any:
    return metric(value=text, aggregates=["sum"]).value_tree


FULL = metric(value="exp(data.x)", aggregates=["sum", "min", "max", "p50", "stddev", "last"])


def recounted(model: Metric, xs: Sequence[float]) -> Exact:
    """Return what the log says of a pane."""
    found = Exact()
    for at, x in enumerate(xs):
        it = near(model, event(x))
        assert it is not None
        found.add(exact_of(model, it, event(x), (at, bytes(16))))
    return found


def counted(values: Sequence[float]) -> Row:
    """Return the row that an engine makes of values."""
    kll = ds.kll_doubles_sketch(200)
    for value in values:
        kll.update(value)
    mean = math.fsum(values) / len(values)
    spread = math.fsum((v - mean) ** 2 for v in values)
    further = Further(spread, Last(len(values) - 1, bytes(16), values[-1]))
    total = math.fsum(values)
    return Row(len(values), total, min(values), max(values), None, bytes(kll.serialize()), further)


class TestCompare:
    @pytest.mark.parametrize("moved", [lambda _i: 1, lambda _i: -1, lambda i: i % 3 - 1])
    def test_another_last_digit_is_no_difference(self, moved: Callable[[int], int]) -> None:
        """Of 100 values of a pane each ends a digit higher or lower: nothing is told."""
        chance = Random(1)  # noqa: S311
        xs = [chance.uniform(-9, 9) for _ in range(100)]
        values = [math.exp(x) + moved(i) * math.ulp(math.exp(x)) for i, x in enumerate(xs)]
        assert (
            list(compare(FULL, 1, PANE, [{"": counted(values)}], {"": recounted(FULL, xs)})) == []
        )

    def test_ten_digits_are_a_difference(self) -> None:
        """In the pane's least, greatest and newest value."""
        xs = [1.0, 2.0, 3.0]
        values = [math.exp(x) + 10 * math.ulp(math.exp(x)) for x in xs]
        found = compare(FULL, 1, PANE, [{"": counted(values)}], {"": recounted(FULL, xs)})
        assert [d.field for d in found] == ["min", "max", "p50", "last"]

    def test_an_unsure_event_may_be_there(self) -> None:
        """One more is right, two more are not; the rest is not compared where one is unsure."""
        served = [{"": counted([1.0, 2.0])}]
        certain, unsure = Exact(1, [1.0]), Exact(unsure=1)
        certain.add(unsure)
        assert list(compare(FULL, 1, PANE, served, {"": certain})) == []
        served = [{"": counted([1.0, 2.0, 2.0])}]
        (found,) = compare(FULL, 1, PANE, served, {"": certain})
        assert (found.field, found.served, found.recounted) == ("n", 3, [1, 2])
        assert list(compare(FULL, 1, PANE, [{}], {"": unsure})) == []
