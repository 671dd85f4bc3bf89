"""From a POST to a pixel in a real browser, over a restart of the dashboard."""

from __future__ import annotations

import pytest
import weblog
from browser import accessibility_faults, signed_in
from playwright.sync_api import Page, expect
from weir.clock import SystemClock
from weir_local.testing import TestStack

TYPE = "browser.hit"
METRIC = f"""
kind: metric
name: browser_hits
events: {{type: {TYPE}}}
aggregates: [count]
resolution: 1s
allowed_lateness: 1s
"""
BOARD = """
kind: board
name: hits
title: Hits
tiles:
  - type: number
    title: Hits in an hour
    size: S
    metric: browser_hits
    aggregate: count
    window: {length: 1h}
  - type: chart
    title: Hits in ten seconds
    size: L
    metric: browser_hits
    aggregate: count
    window: {length: 10s}
"""
PAGES = ("/live", "/b/hits", "/metrics", "/m/browser_hits", "/ledger", "/status", "/definitions")

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture(scope="module")
def hits(stack: TestStack) -> TestStack:
    """Return the shared stack with a metric and a board of this module's own."""
    stack.define("metric", "browser_hits", METRIC)
    stack.define("board", "hits", BOARD)
    progress = "/definitions/metric/browser_hits/progress"
    stack.wait_until(lambda: stack.api("GET", progress).body["active"])
    return stack


def hit(stack: TestStack, name: str) -> None:
    """Post one event."""
    now = weblog.iso(SystemClock().now_ms())
    event = {"specversion": "1.0", "id": name, "source": "/hits", "type": TYPE, "time": now}
    weblog.post(stack.ingest_url, stack.key, [{**event, "data": {}}])


def await_value(page: Page, value: int) -> None:
    """Wait until the tile shows a number."""
    tile = page.get_by_test_id("tile-value").first
    expect(tile).to_have_attribute("data-value", str(value), timeout=20_000)


def shown(page: Page) -> str:
    """Return the number that the tile shows, with all its digits."""
    return page.get_by_test_id("tile-value").first.get_attribute("data-value") or ""


def test_an_event_changes_the_number_and_a_restart_leaves_it_right(hits: TestStack) -> None:
    """The number follows each event, sleeps through a restart, and equals a fresh page."""
    with signed_in(hits) as (page, complaints):
        page.goto("/".join(page.url.split("/")[:3]) + "/b/hits")
        page.get_by_test_id("tile").first.wait_for()
        hit(hits, "one")
        await_value(page, 1)
        hit(hits, "two")
        await_value(page, 2)

        hits.kill("dashboard")
        hit(hits, "three")
        pill = page.get_by_test_id("live-pill").first
        expect(pill).to_have_attribute("data-state", "disconnected", timeout=20_000)
        hits.restart("dashboard")
        await_value(page, 3)
        slept = shown(page)
        page.reload()
        await_value(page, 3)
        assert shown(page) == slept
        assert complaints.texts == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_every_page_is_clean(hits: TestStack, size: str, theme: str) -> None:
    """No page has a fault that axe finds, an error in its console, or a sideways scroll."""
    with signed_in(hits, size, theme) as (page, complaints):
        base = "/".join(page.url.split("/")[:3])
        for path in PAGES:
            page.goto(base + path)
            page.locator("h1").first.wait_for()
            page.get_by_test_id("live-pill").first.wait_for()
            assert accessibility_faults(page) == [], path
            wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
            assert not page.evaluate(wide), path
        assert complaints.texts == []
