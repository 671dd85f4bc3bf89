"""A load with a metric of its own, and its comparison with the recount: `load` and `recount`."""

from __future__ import annotations

from typing import Any

from account import Account, account_for, read_log
from load import GROUPS, ODD, TYPE, Load
from recount import Api, MetricSpec, compare, compare_ledger, panes_of
from weir_local.testing import TestStack

PANE_MS = 10_000
# No sketches: of thousands of panes some lie beyond bounds that hold in 99 of 100, and a driver
# that starts again and again makes their plan each time. `test_recount.py` has them.
AGGREGATES = ("count", "sum", "min", "max", "avg", "stddev", "last")
SPEC = MetricSpec("load", TYPE, ("group",), value=lambda event: float(event["data"]["n"]))
DEFINITION = f"""
kind: metric
name: load
events: {{type: [{TYPE}, {ODD}]}}
value: data.n
by: [data.group]
aggregates: [count, sum, min, max, avg, stddev, last]
resolution: 10s
"""


def begin(stack: TestStack, seed: int) -> Load:
    """Define the metric, and return a load that is not running yet."""
    stack.define("metric", "load", DEFINITION)
    stack.wait_until(lambda: is_filled(stack), "the metric filled from the log")
    return Load(stack.ingest_url, stack.key, str(seed))


def edit_load(stack: TestStack) -> int:
    """Write the metric's next version, which is counted from the log; return its number."""
    path = "/definitions/metric/load"
    version = int(stack.api("GET", path).body["version"])
    text = f"{DEFINITION}unit: u{version}\n"
    stack.api("PUT", path, {"text": text}, {"If-Match": f'"{version}"'})
    return version + 1


def await_load(stack: TestStack, load: Load, target: int) -> None:
    """Wait until more than `target` events have been acknowledged."""
    stack.wait_until(lambda: load.acknowledged > target, f"event {target} acknowledged", 60)


def assert_equal_to_recount(stack: TestStack, load: Load) -> list[dict[str, Any]]:
    """Compare ledger and panes with the log, once all of the log is counted.

    Returns:
        The load's events, each that counts once.
    """
    api = Api(stack.dashboard_url, stack.key)
    account = stack.wait_until(lambda: settled(stack, api), "ledger equal to the log", 120)
    events = [event for event in account.counted if event["type"] == TYPE]
    numbers = {event["data"]["n"] for event in events}
    assert len(numbers) == len(events)
    assert set(range(load.acknowledged)) <= numbers
    assert len(numbers) <= load.acknowledged + load.unknown
    result = compare(api, panes_of(events, SPEC, PANE_MS), SPEC, AGGREGATES, PANE_MS)
    assert result.mismatches == []
    assert result.points >= GROUPS
    return events


def settled(stack: TestStack, api: Api) -> Account | None:
    """Return the account of the log once the served ledger says the same."""
    account = account_for(read_log(stack.kafka_bootstrap))
    done = not compare_ledger(api, account).mismatches and is_filled(stack)
    return account if done else None


def is_filled(stack: TestStack, metric: str = "load") -> bool:
    """Tell whether a metric holds the log: after a loss it is filled once more."""
    told = stack.api("GET", f"/definitions/metric/{metric}/progress").body
    return bool(told["serving"]) and not told["lanes"]
