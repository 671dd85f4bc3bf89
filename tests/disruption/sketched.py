"""A metric of the load with all that can be counted, and its comparison with the recount."""

from __future__ import annotations

from typing import Any

from disruption.rig import PACE
from equality import is_filled
from load import TYPE
from recount import Api, MetricSpec, compare, panes_of
from recount_sketches import compare_sketches, compare_top
from weir_local.testing import TestStack

PANE_MS = 60_000
EXACT = ("count", "rate", "sum", "min", "max", "avg", "stddev", "last")
SKETCHES = ("p50", "p99", "distinct", "theta")
SPEC = MetricSpec(
    "sketched",
    TYPE,
    value=lambda event: float(event["data"]["n"]),
    distinct=lambda event: str(event["data"]["n"]),
)
DEFINITION = f"""
kind: metric
name: sketched
events: {{type: {TYPE}}}
value: data.n
aggregates: [count, rate, sum, min, max, avg, stddev, last, p50, p99, distinct(data.n),
             theta(data.n), "top(data.group, 3)"]
resolution: 1m
keep: {{1m: 6h}}
"""


def define_sketched(stack: TestStack) -> None:
    """Define the metric, and return once it holds the log."""
    stack.define("metric", "sketched", DEFINITION)
    stack.wait_until(lambda: is_filled(stack, "sketched"), "the sketched metric", 60 * PACE)


def assert_sketches(stack: TestStack, api: Api, events: list[dict[str, Any]]) -> None:
    """Assert that each pane has what the recount says: sketches within twice their bound.

    Args:
        stack: What the metric holds is the log once it is filled.
        api: Its API.
        events: The load's events, each that counts once.
    """
    stack.wait_until(lambda: is_filled(stack, "sketched"), "the sketched metric", 120 * PACE)
    panes = panes_of(events, SPEC, PANE_MS)
    found = (
        compare(api, panes, SPEC, EXACT, PANE_MS),
        compare_sketches(api, panes, SPEC, SKETCHES, PANE_MS),
        compare_top(api, events, SPEC, lambda event: str(event["data"]["group"]), PANE_MS),
    )
    wrong = [words for one in found for words in one.mismatches]
    assert wrong == [], f"panes must equal the recount: {[one[:400] for one in wrong[:3]]}"
    assert sum(one.points for one in found) >= len(EXACT) + len(SKETCHES)
