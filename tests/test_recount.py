"""Every number that Weir serves equals a recount of the log (promises 2, 3, 4, 10)."""

from __future__ import annotations

import ast
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import weblog
from account import Account, account_for, epoch_ms, read_log
from recount import Api, MetricSpec, compare, compare_ledger, panes_of
from recount_sketches import compare_sets, compare_top
from weir.clock import SystemClock
from weir_local.testing import TestStack

TYPE = "recount.request"
PANE_MS = 10_000
RESENT = 500
# Ticks bring processed-through on once a second.
FRESH_MS = 5_000
# What counts again, and what it counts: no bug of Weir's can be in both.
OWN_CODE = (
    *("account.py", "recount.py", "recount_sketches.py", "weblog.py"),
    *("disruption/mixed_recount.py", "disruption/uses.py"),
)

DEFINITIONS = {
    "recount_requests": "by: [data.method, data.status_class]\naggregates: [count, rate]",
    "recount_bytes": (
        "where: data.bytes is not null\nvalue: data.bytes\nby: [data.method]\n"
        "aggregates: [count, sum, avg, min, max, stddev, last, p50, p95, p99]"
    ),
    "recount_sections": (
        "by: [data.method as verb, "
        "\"split_part(split_part(data.path, '?', 1), '/', 2) as section\"]\n"
        "aggregates: [count]\nmax_series: 5000"
    ),
    "recount_sizes": (
        "by: [floor(data.bytes / 20000) / 8 as size, data.bytes >= 5000 as large, "
        "hour(time) as hour]\naggregates: [count]"
    ),
    "recount_visitors": "aggregates: [count, distinct(data.client), theta(data.client)]",
    "recount_missed": (
        "where: data.status_class != '2xx'\naggregates: [count, theta(data.client)]"
    ),
    # Counters for fewer paths than most panes have: what is listed has to be estimated.
    "recount_paths": 'aggregates: [count, "top(data.path, 5)"]\nsketches: {top_lg_k: 6}',
}


def part_of_path(event: dict[str, Any], name: str) -> str:
    """Return what the dimensions of `recount_sections` are, without Weir's expressions."""
    if name == "verb":
        return str(event["data"]["method"])
    _, *parts = str(event["data"]["path"]).split("?")[0].split("/")
    return parts[0] if parts else ""


def part_of_size(event: dict[str, Any], name: str) -> str:
    """Return what the dimensions of `recount_sizes` are, likewise."""
    if name == "hour":
        return str(int(event["time"][11:13]))
    size = event["data"]["bytes"]
    if size is None:
        return str(None)
    if name == "large":
        return "true" if size >= 5_000 else "false"
    return f"{size // 20_000 / 8:.3f}".rstrip("0").rstrip(".")


SPECS = (
    (MetricSpec("recount_requests", TYPE, ("method", "status_class")), ("count", "rate")),
    (
        MetricSpec(
            "recount_bytes",
            TYPE,
            ("method",),
            matches=lambda event: event["data"]["bytes"] is not None,
            value=lambda event: float(event["data"]["bytes"]),
        ),
        ("count", "sum", "avg", "min", "max", "stddev", "last", "p50", "p95", "p99"),
    ),
    (MetricSpec("recount_sections", TYPE, ("verb", "section"), part=part_of_path), ("count",)),
    (
        MetricSpec("recount_visitors", TYPE, distinct=lambda event: event["data"]["client"]),
        ("count", "distinct", "theta"),
    ),
    (
        MetricSpec(
            "recount_missed",
            TYPE,
            matches=lambda event: event["data"]["status_class"] != "2xx",
            distinct=lambda event: event["data"]["client"],
        ),
        ("count", "theta"),
    ),
    (
        MetricSpec("recount_sizes", TYPE, ("size", "large", "hour"), part=part_of_size),
        ("count",),
    ),
)


def define(stack: TestStack) -> None:
    """Put the metrics of this test and wait until the engine counts them."""
    for name, body in DEFINITIONS.items():
        text = f"kind: metric\nname: {name}\nevents: {{type: {TYPE}}}\nresolution: 10s\n{body}\n"
        stack.define("metric", name, text)
    stack.wait_until(
        lambda: all(is_counted(stack, name) for name in DEFINITIONS), "metrics active", 30
    )


def is_counted(stack: TestStack, name: str) -> bool:
    """Return whether a metric holds what the log holds."""
    progress = stack.api("GET", f"/definitions/metric/{name}/progress").body
    return bool(progress["serving"])


@pytest.mark.stack
def test_ten_thousand_requests_equal_the_recount(stack: TestStack) -> None:
    """Each pane of 10,000 real requests, 500 sent twice, equals a count by another program."""
    define(stack)
    before = figures(stack)
    events = weblog.events_ending_at(SystemClock().now_ms(), type_=TYPE, prefix="recount")
    again = random.Random(2026).sample(events, RESENT)  # noqa: S311
    for at in range(0, len(events), 1000):
        weblog.post(stack.ingest_url, stack.key, events[at : at + 1000])
    weblog.post(stack.ingest_url, stack.key, again)

    api = Api(stack.dashboard_url, stack.key)
    account = stack.wait_until(lambda: settled(stack, api), "ledger equal to the log", 60)

    of_type = [event for event in account.counted if event["type"] == TYPE]
    assert Counter(e["id"] for e in of_type) == Counter(e["id"] for e in events)
    assert account.duplicates[TYPE] == RESENT
    stack.wait_until(lambda: is_told(stack, before, len(events)), "the figures of Prometheus")
    stack.wait_until(lambda: is_at_the_present(stack), "no lag")
    for spec, aggregates in SPECS:
        from_file = panes_of(
            [{**e, "_time_ms": epoch_ms(e["time"])} for e in events], spec, PANE_MS
        )
        from_log = panes_of(of_type, spec, PANE_MS)
        assert from_file == from_log
        result = compare(api, from_log, spec, aggregates, PANE_MS)
        assert result.mismatches == []
        assert result.points >= 100
    visitors, missed = SPECS[3][0], SPECS[4][0]
    sets = (panes_of(of_type, visitors, PANE_MS), panes_of(of_type, missed, PANE_MS))
    result = compare_sets(api, *sets, (visitors, missed), PANE_MS)
    assert result.mismatches == []
    assert result.points >= 600
    paths = MetricSpec("recount_paths", TYPE)
    result = compare_top(api, of_type, paths, lambda event: str(event["data"]["path"]), PANE_MS)
    assert result.mismatches == []
    assert result.points >= 80


def figures(stack: TestStack) -> dict[str, float]:
    """Return what ingest and the engine tell Prometheus."""
    return stack.figures("ingest") | stack.figures("panes")


def is_told(stack: TestStack, before: dict[str, float], events: int) -> bool:
    """Tell whether Prometheus is told of the events of this test, and of what counts them.

    Others' tests share the stack: so these are the least that figures go on by, or are.
    """
    now = figures(stack)
    went_on = {
        'weir_ingest_events_total{outcome="accepted"}': events + RESENT,
        "weir_ingest_delivery_seconds_count": 1,
        'weir_panes_events_total{disposition="counted"}': events,
        'weir_panes_events_total{disposition="duplicate"}': RESENT,
        "weir_panes_log_end_records": events + RESENT,
        "weir_panes_batch_seconds_count": 1,
        "weir_panes_batch_seconds_sum": 0.001,
        "weir_panes_freshness_seconds_count": 1,
        "weir_panes_freshness_seconds_sum": 0.001,
        "weir_panes_ticks_total": 1,
        "weir_panes_revision_count": 1,
        # Received time: what was sent since then is counted.
        "weir_panes_processed_through_seconds": 0.001,
    }
    least = {
        "weir_panes_dedup_entries_count": events,
        'weir_panes_resident_memory_bytes{process="driver"}': 30e6,
        'weir_panes_resident_memory_bytes{process="jvm"}': 100e6,
        'weir_panes_resident_memory_bytes{process="workers"}': 30e6,
        "weir_panes_open_files_count": 20,
        "weir_panes_threads_count": 20,
        "weir_panes_checkpoint_files_count": 3,
        "weir_panes_dedup_bytes": 24 * events,
    }
    return all(now[name] - before[name] >= by for name, by in went_on.items()) and all(
        now[name] >= value for name, value in least.items()
    )


def is_at_the_present(stack: TestStack) -> bool:
    """Tell whether nothing waits to be counted, and numbers are as fresh as they usually are."""
    lag = stack.api("GET", "/status").body["lag"]
    return bool(lag["records"] == 0 and 0 <= lag["ms"] < FRESH_MS)


def settled(stack: TestStack, api: Api) -> Account | None:
    """Return the account of the log once the served ledger says the same."""
    account = account_for(read_log(stack.kafka_bootstrap))
    return account if not compare_ledger(api, account).mismatches else None


def test_the_recount_shares_no_code_with_weir() -> None:
    """The recount and its input import nothing of ours, nor any of our files that may."""
    here = Path(__file__).parent
    ours = {path.stem for path in here.rglob("*.py")} - {Path(name).stem for name in OWN_CODE}
    for name in OWN_CODE:
        tree = ast.parse((here / name).read_text())
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in (
                node.names if isinstance(node, ast.Import) else [ast.alias(node.module or "")]
            )
        }
        assert not {module for module in imported if module.startswith("weir")}, name
        assert not {module for module in imported if module.rpartition(".")[2] in ours}, name
