"""An estimate is on no screen without the ends that it lies between (promise 10)."""

from __future__ import annotations

import re

import pytest
import weblog
from browser import accessibility_faults, opened, signed_in
from playwright.sync_api import Page, expect
from weir.clock import SystemClock
from weir_local.testing import TestStack

NAME = "bounded_waits"
METRIC = f"""
kind: metric
name: {NAME}
events: {{type: browser.bounded}}
value: data.ms
unit: ms
by: [data.region]
aggregates: [count, p50]
sketches: {{kll_k: 200}}
resolution: 1s
allowed_lateness: 1s
"""
BOARD = f"""
kind: board
name: {NAME}
title: Bounded
tiles:
  - type: top
    title: Waits by region
    size: M
    metric: {NAME}
    aggregate: p50
    by: [region]
    window: 15m
  - type: top
    title: Waits, small
    size: S
    metric: {NAME}
    aggregate: p50
    by: [region]
    window: 15m
  - type: top
    title: Events by region
    size: S
    metric: {NAME}
    aggregate: count
    by: [region]
    window: 15m
"""
RULE = f"""
kind: rule
name: {NAME}
metric: {NAME}
aggregate: p50
window: {{length: 10s, step: 1s}}
by: [region]
above: 400
"""
# More than a sketch of this size keeps, and few enough for all of them.
MANY, FEW = 3_000, 30
ENDS = re.compile(r"[\d,]+ \u2013 [\d,]+ ms")
# A table shows a window that is over: a minute's step of it, how late events may be, and counting.
OVER_MS = 90_000
WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture(scope="module")
def waits(stack: TestStack) -> TestStack:
    """Return the shared stack with a rule that fires: on an estimate in eu, exactly in us."""
    stack.define("metric", NAME, METRIC)
    stack.await_whole(NAME, "10s")
    stack.define("board", NAME, BOARD)
    stack.define("rule", NAME, RULE)
    now_ms = SystemClock().now_ms()
    head = {"specversion": "1.0", "source": "/bounded", "type": "browser.bounded"}
    events = [
        {**head, "id": f"{region}-{n}", "data": {"ms": 1_000 + n % 1_000, "region": region}}
        for region, many in (("eu", MANY), ("us", FEW))
        for n in range(many)
    ]
    for at in range(0, len(events), 1_000):
        dated = [{**event, "time": weblog.iso(now_ms)} for event in events[at : at + 1_000]]
        weblog.post(stack.ingest_url, stack.key, dated)
    rule = f"/rules/{NAME}"
    stack.wait_until(lambda: stack.api("GET", rule).body["firing"] == 2, "both series firing")
    return stack


def rows(page: Page, title: str) -> list[list[str]]:
    """Return the cells of a board's table by row, its head first."""
    tile = page.get_by_test_id("top-tile").filter(has_text=title)
    expect(tile.get_by_test_id("top-row")).to_have_count(2, timeout=OVER_MS)
    return [row.locator("th, td").all_inner_texts() for row in tile.locator("tr").all()]


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_boards_table_tells_the_ends(waits: TestStack, size: str) -> None:
    """Of a percentile in a column of their own; a count is exact, and has no such column."""
    with signed_in(waits, size) as (page, complaints):
        opened(page, f"/b/{NAME}")
        head, *found = rows(page, "Waits by region")
        assert head == ["region", "p50", "within", "n"]
        within = {region: ends for region, _value, ends, _n in found}
        assert ENDS.fullmatch(within["eu"])
        assert within["us"] == "exact"
        assert rows(page, "Events by region")[0] == ["region", "count"]
        # The narrowest table has room for names, numbers and their ends.
        small = page.get_by_test_id("top-tile").filter(has_text="Waits, small")
        assert small.locator(".scroll").evaluate("one => one.scrollWidth <= one.clientWidth")
        names = small.locator("tbody .barcell").all()
        assert all((cell.bounding_box() or {"width": 0})["width"] >= 60 for cell in names)
        assert not page.evaluate(WIDE)
        assert accessibility_faults(page) == []
        assert complaints.texts == []


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_rule_and_its_alerts_tell_the_ends(waits: TestStack, size: str) -> None:
    """Where its series stand, in the list of alerts, and in all that happened to one."""
    behind = re.compile(rf"p50 [\d,]+ ms \({ENDS.pattern}\) > 400 ms")
    with signed_in(waits, size) as (page, complaints):
        opened(page, f"/rules/{NAME}")
        group = page.get_by_test_id("rule-group")
        expect(group.filter(has_text="eu")).to_contain_text(re.compile(f"within {ENDS.pattern}"))
        expect(group.filter(has_text="us")).not_to_contain_text("within")
        assert not page.evaluate(WIDE)

        opened(page, "/alerts")
        row = page.get_by_test_id("alert-row").filter(has_text="Bounded waits")
        expect(row.filter(has_text="eu")).to_contain_text(behind)
        expect(row.filter(has_text="us")).to_contain_text(re.compile(r"p50 [\d,]+ ms > 400 ms"))
        row.filter(has_text="eu").click()
        expect(page.get_by_test_id("happened")).to_contain_text(behind)
        assert not page.evaluate(WIDE)
        assert accessibility_faults(page) == []
        assert complaints.texts == []
