"""A limit is dragged in a real browser, and a receiver hears that it was crossed, and its end."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import pytest
import weblog
from alerts_job import SECRET, Receiver
from browser import drag, limit_handle, opened, signed_in
from playwright.sync_api import Locator, Page, expect
from weir.clock import SystemClock
from weir_local.testing import TestStack

METRIC = """
kind: metric
name: {name}
events: {{type: {name}}}
value: data.ms
unit: ms
aggregates: [count, p95]
resolution: 1s
allowed_lateness: 1s
"""
CHANNEL = """
kind: channel
name: {name}
webhook: {{url: "{url}", secret: "secret://test_hook"}}
"""
BOARD = """
kind: board
name: {name}
title: Waits
tiles:
  - {{type: number, title: Wait, size: S, metric: {name}, aggregate: p95, window: 10s}}
  - {{type: chart, title: Waits, size: L, metric: {name}, aggregate: p95, window: 10s}}
"""
SLOW_MS, QUICK_MS = 200.0, 5.0

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a receiver on loopback."""
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def name(stack: TestStack, receiver: Receiver) -> str:
    """Return the name of a metric of slow requests, and of a channel to the receiver."""
    name = f"slow_{uuid.uuid4().hex[:6]}"
    (stack.home.secrets / "test_hook").write_text(SECRET)
    stack.define("metric", name, METRIC.format(name=name))
    stack.define("channel", name, CHANNEL.format(name=name, url=receiver.url))
    stack.await_whole(name, "10s")
    return name


def post(stack: TestStack, name: str, ms: float) -> None:
    """Post requests of this moment that all took as long."""
    now_ms = SystemClock().now_ms()
    head = {"specversion": "1.0", "source": "/slow", "type": name, "time": weblog.iso(now_ms)}
    events = [{**head, "id": f"{now_ms}-{n}", "data": {"ms": ms}} for n in range(40)]
    weblog.post(stack.ingest_url, stack.key, events)


def row(page: Page, name: str) -> Locator:
    """Return the alert's row of the list."""
    return page.get_by_test_id("alert-row").filter(has_text=name.replace("_", " ").capitalize())


def await_state(stack: TestStack, page: Page, name: str, state: str, ms: float) -> None:
    """Post requests until the list says how the alert stands."""
    shown = page.locator(f"[data-state={state}]").and_(row(page, name))

    def is_shown() -> bool:
        post(stack, name, ms)
        page.wait_for_timeout(500)
        return shown.count() == 1

    stack.wait_until(is_shown, f"{name} {state}", 60)


def test_a_dragged_limit_is_told_when_crossed_and_when_it_is_over(
    stack: TestStack, name: str, receiver: Receiver
) -> None:
    """The 95th percentile crosses it: one message that fires, one that resolves, both signed."""
    post(stack, name, SLOW_MS)
    with signed_in(stack) as (page, complaints):
        opened(page, f"/rules/new?metric={name}&agg=p95&win=10s")
        field = page.get_by_test_id("rule-limit-high")
        expect(field).not_to_have_value("", timeout=20_000)
        suggested = field.input_value()
        # Until the backtest is there, what stands above the chart may still move it.
        page.locator("[data-testid=outcome][data-old=false]").wait_for(timeout=20_000)
        drag(page, limit_handle(page), 175)
        expect(field).not_to_have_value(suggested)
        limit = float(field.input_value())
        assert QUICK_MS < limit < SLOW_MS

        page.get_by_test_id("rule-channel").filter(has_text=name).click()
        page.get_by_test_id("rule-name").fill(name)
        page.get_by_test_id("rule-save").click()
        page.wait_for_url(f"**/rules/{name}", timeout=20_000)
        opened(page, "/alerts")
        await_state(stack, page, name, "firing", SLOW_MS)
        stack.wait_until(lambda: receiver.bodies, "the message that it fires")
        opened(page, f"/m/{name}?agg=p95")
        said = re.compile(f"{name.replace('_', ' ').capitalize()}: above {limit:g} ms")
        expect(page.get_by_test_id("chart")).to_have_accessible_name(said, timeout=20_000)
        post(stack, name, SLOW_MS)
        stack.define("board", name, BOARD.format(name=name))
        opened(page, f"/b/{name}")
        expect(page.get_by_test_id("fires")).to_have_count(2, timeout=20_000)
        opened(page, "/alerts")
        await_state(stack, page, name, "resolved", QUICK_MS)
        stack.wait_until(lambda: len(receiver.bodies) > 1, "the message that it is over")
        assert complaints.texts == []

    fired, resolved = receiver.bodies
    assert (fired["kind"], resolved["kind"]) == ("firing", "resolved")
    assert fired["dedup_key"] == resolved["dedup_key"]
    assert (fired["rule"], fired["limit"], fired["unit"]) == (name, limit, "ms")
    assert fired["low"] <= SLOW_MS <= fired["high"]
    assert resolved["value"] <= limit < fired["value"]
    assert receiver.forged == 0
