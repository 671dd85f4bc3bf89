"""What the form shows of a draft is what the engine counts."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import pytest
import weblog
from weir.clock import SystemClock
from weir_local.testing import TestStack

pytestmark = pytest.mark.stack

TYPE = "preview.order"
METRIC = f"""
kind: metric
name: preview_orders
events: {{type: {TYPE}}}
value: data.total * 2
where: data.total > 3 or timesrc = 'none' or partitionkey = 'p0'
by: [data.region, partitionkey, datacontenttype]
aggregates: [count, sum]
resolution: 1s
allowed_lateness: 1s
"""
# The live tail takes five events in a tenth of a second.
A_TIME = 5
A_WHILE_MS = 150
EVENTS = 40


@pytest.fixture
def orders() -> list[dict[str, Any]]:
    """Return events of every kind that a metric may meet."""
    now_ms = SystemClock().now_ms()
    values: list[Any] = [1, 2.5, 3, 4, 12.25, "n/a", None, 1e200]
    return [
        {
            "specversion": "1.0",
            "id": f"preview-{at}",
            "source": "/preview",
            "type": TYPE if at % 7 else "preview.other",
            "time": weblog.iso(now_ms - 100 * at),
            "partitionkey": f"p{at % 3}",
            "data": {"total": values[at % len(values)], "region": ("eu", "us", None)[at % 3]},
        }
        for at in range(EVENTS)
    ]


def test_the_previews_sum_is_the_engines(stack: TestStack, orders: list[dict[str, Any]]) -> None:
    """Of the same events both use the same, refuse the same and add up to the same."""
    stack.define("metric", "preview_orders", METRIC)
    progress = "/definitions/metric/preview_orders/progress"
    stack.wait_until(lambda: stack.api("GET", progress).body["serving"])
    position = ""
    for at in range(0, EVENTS, A_TIME):
        some = orders[at : at + A_TIME]
        free_ms = SystemClock().now_ms() + A_WHILE_MS
        stack.wait_until(partial(past, free_ms), "room in the tail")
        position = weblog.post(stack.ingest_url, stack.key, some)["position"]
        stack.wait_until(partial(seen, stack, some), "the events in the tail")
    tried = [one for one in previewed(stack) if one["id"] in {event["id"] for event in orders}]
    assert len(tried) == EVENTS
    counts, sums = used(tried)
    assert {one["reason"] for one in tried} == {None, "value_missing", "value_range"}
    assert counted(stack, "count", position) == counts
    assert counted(stack, "sum", position) == pytest.approx(sums)


def past(at_ms: int) -> bool:
    """Tell whether an instant is over."""
    return SystemClock().now_ms() >= at_ms


def previewed(stack: TestStack) -> list[dict[str, Any]]:
    """Return what the draft makes of the newest 200 events."""
    body = {"text": METRIC, "last": 200}
    found: list[dict[str, Any]] = stack.api("POST", "/preview", body).body["events"]
    return found


def seen(stack: TestStack, events: list[dict[str, Any]]) -> bool:
    """Tell whether all of some events are in the tail."""
    return {event["id"] for event in events} <= {one["id"] for one in previewed(stack)}


def used(tried: list[dict[str, Any]]) -> tuple[dict[Any, int], dict[Any, float]]:
    """Return count and sum of each series, as the preview has them."""
    counts: dict[Any, int] = defaultdict(int)
    sums: dict[Any, float] = defaultdict(float)
    for one in tried:
        if one["matched"] and one["reason"] is None:
            series = tuple(sorted(one["series"].items()))
            counts[series] += 1
            sums[series] += one["value"]
    return dict(counts), dict(sums)


def counted(stack: TestStack, aggregate: str, position: str) -> dict[Any, float]:
    """Return a number of each series, as the engine has counted it."""
    answer = stack.query(
        {
            "metric": "preview_orders",
            "aggregate": aggregate,
            "by": ["region", "partitionkey", "datacontenttype"],
            "range": {"last": "1h"},
            "step": "1h",
            "window": {"kind": "sliding", "length": "2h"},
            "after": position,
        }
    )
    last = [(one["by"], one["value"][-1]) for one in answer["series"]]
    return {tuple(sorted(by.items())): value for by, value in last if value is not None}
