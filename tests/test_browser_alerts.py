"""An alert in a real browser: in the header, in the list, beside it, and when it is over."""

from __future__ import annotations

import re
import uuid

import pytest
import weblog
from browser import accessibility_faults, opened, signed_in
from playwright.sync_api import Page, expect
from weir.clock import SystemClock
from weir_local.testing import TestStack

METRIC = """
kind: metric
name: {name}
events: {{type: {name}}}
aggregates: [count]
resolution: 1s
allowed_lateness: 1s
"""
RULE = """
kind: rule
name: {name}
metric: {name}
aggregate: count
window: {{length: 3s, step: 1s}}
above: 0
severity: critical
runbook: https://wiki.example.com/{name}
"""

# Other tests' alerts are said too, each in the place of the one before.
HEAR = """() => {
  const news = document.querySelector("[data-testid=alert-news]");
  window.heard = [];
  const hear = () => window.heard.push(news.textContent);
  new MutationObserver(hear).observe(news, {childList: true, characterData: true, subtree: true});
}"""

WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture
def name(stack: TestStack) -> str:
    """Return the name of a metric and of a rule that fires while events come."""
    name = f"told_{uuid.uuid4().hex[:6]}"
    stack.define("metric", name, METRIC.format(name=name))
    progress = f"/definitions/metric/{name}/progress"
    stack.wait_until(lambda: stack.api("GET", progress).body["serving"])
    stack.define("rule", name, RULE.format(name=name))
    return name


def send(stack: TestStack, name: str) -> None:
    """Post one event that the rule fires on."""
    now_ms = SystemClock().now_ms()
    event = {"specversion": "1.0", "id": f"{name}-{now_ms}", "source": "/told", "type": name}
    weblog.post(stack.ingest_url, stack.key, [{**event, "time": weblog.iso(now_ms), "data": {}}])


def await_state(stack: TestStack, page: Page, name: str, state: str) -> None:
    """Wait until the list says how the alert stands; what fires goes on getting events."""
    row = page.locator(f"[data-testid=alert-row][data-state={state}]", has_text=said(name))

    def is_shown() -> bool:
        if state == "firing":
            send(stack, name)
        page.wait_for_timeout(500)
        # Where a pause between two events was long, it fired twice.
        return row.count() > 0

    stack.wait_until(is_shown, f"{name} {state}")


def said(name: str) -> str:
    """Return a rule's name as the pages say it."""
    return name.replace("_", " ").capitalize()


def test_an_alert_is_told_wherever_one_looks(stack: TestStack, name: str) -> None:
    """Header, title and live region say that it fires; beside the list stands why."""
    with signed_in(stack) as (page, complaints):
        opened(page, "/alerts")
        page.get_by_test_id("new-rule").first.wait_for()
        page.evaluate(HEAR)
        await_state(stack, page, name, "firing")
        badge = page.get_by_role("navigation").get_by_role("link", name=re.compile("Alerts"))
        expect(badge.first).to_have_accessible_name(re.compile(r"^Alerts ?\d+ firing$"))
        expect(page).to_have_title(re.compile(r"^\d+ firing · Alerts · Weir$"))
        news = re.compile(f"{said(name)} fires|alerts fire")

        def is_told() -> bool:
            # One that ends within the seconds between two sentences is not said.
            send(stack, name)
            page.wait_for_timeout(500)
            return any(news.search(text) for text in page.evaluate("window.heard"))

        stack.wait_until(is_told, f"the news that {name} fires")

        page.get_by_test_id("alert-row").filter(has_text=said(name)).first.click()
        detail = page.get_by_test_id("alert-detail")
        expect(detail.get_by_role("heading", name=said(name))).to_be_visible()
        expect(detail.get_by_test_id("happened")).to_contain_text(
            re.compile(r"Firing: count \d+ > 0")
        )
        expect(detail.get_by_role("figure")).to_have_accessible_name(re.compile("fire above 0"))
        expect(detail.get_by_role("link", name="Runbook")).to_have_attribute(
            "href", f"https://wiki.example.com/{name}"
        )
        assert "id=" in page.url
        assert accessibility_faults(page) == []
        assert complaints.texts == []


def test_an_alert_is_followed_by_keys_to_its_end(stack: TestStack, name: str) -> None:
    """Escape closes, j chooses; when it is over it stands in both lists, and at its address."""
    with signed_in(stack) as (page, complaints):
        opened(page, "/alerts")
        page.get_by_test_id("new-rule").first.wait_for()
        await_state(stack, page, name, "firing")
        page.keyboard.press("Escape")
        expect(page.get_by_text("No alert is chosen")).to_be_visible()
        page.keyboard.press("j")
        expect(page.locator("[data-testid=alert-row][aria-current=true]")).to_have_count(1)

        await_state(stack, page, name, "resolved")
        page.get_by_role("radio", name="History").click()
        row = page.get_by_test_id("alert-row").filter(has_text=said(name)).first
        expect(row).to_have_attribute("data-state", "resolved")
        alert = row.get_attribute("data-id")
        opened(page, f"/alerts/{alert}")
        happened = page.get_by_test_id("happened")
        expect(happened).to_contain_text("Resolved: count 0", timeout=10_000)
        page.set_viewport_size({"width": 390, "height": 844})
        expect(page.get_by_test_id("alert-row")).to_have_count(0)
        expect(happened).to_be_visible()
        assert not page.evaluate(WIDE)
        assert accessibility_faults(page) == []
        page.get_by_role("button", name="All alerts").click()
        expect(page.get_by_test_id("alert-row").first).to_be_visible()
        expect(page.get_by_test_id("alert-detail")).to_have_count(0)
        assert complaints.texts == []


def test_rules_are_found_and_lead_to_their_editor(stack: TestStack, name: str) -> None:
    """The table says when a rule fires, in words; Find knows the page."""
    with signed_in(stack) as (page, complaints):
        opened(page, "/metrics")
        page.get_by_test_id("live-pill").first.wait_for()
        page.keyboard.press("/")
        page.get_by_role("dialog").wait_for()
        page.keyboard.type("alerts")
        page.keyboard.press("Enter")
        page.wait_for_url("**/alerts", timeout=20_000)
        page.get_by_role("radio", name="Rules").click()
        row = page.locator(f"[data-rule={name}]")
        expect(row).to_contain_text(f"{name} count above 0")
        expect(row).to_contain_text("3 s windows")
        link = row.get_by_role("link", name=name).first
        expect(link).to_have_attribute("href", f"/rules/{name}")
        assert complaints.texts == []
