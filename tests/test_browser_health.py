"""What is not evaluated, and what watches Weir itself, as the pages show it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from browser import accessibility_faults, opened, signed_in
from playwright.sync_api import expect
from weir_local.testing import TestStack

METRIC = """
kind: metric
name: short_lived
events: {type: short.lived}
aggregates: [count]
resolution: 1s
allowed_lateness: 1s
"""
RULE = """
kind: rule
name: bereft
metric: short_lived
aggregate: count
window: {length: 3s, step: 1s}
above: 0
"""
READ_MS = 20_000

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture
def bereft(stack: TestStack) -> Iterator[str]:
    """Return the name of a rule whose metric was deleted."""
    stack.define("metric", "short_lived", METRIC)
    progress = "/definitions/metric/short_lived/progress"
    stack.wait_until(lambda: stack.api("GET", progress).body["serving"])
    stack.define("rule", "bereft", RULE)
    delete(stack, "metric", "short_lived")
    yield "bereft"
    delete(stack, "rule", "bereft")


def delete(stack: TestStack, kind: str, name: str) -> None:
    """End a definition."""
    path = f"/definitions/{kind}/{name}"
    stack.api("DELETE", path, None, {"If-Match": f'"{stack.api("GET", path).body["version"]}"'})


def test_a_rule_that_is_not_evaluated_is_seen_everywhere(stack: TestStack, bereft: str) -> None:
    """In the header, among the alerts, in the table and on its page, with what is wrong."""
    stack.wait_until(lambda: stack.api("GET", f"/rules/{bereft}").body["health"] == "error")
    why = stack.api("GET", f"/rules/{bereft}").body["why"]
    assert "short_lived" in why
    with signed_in(stack) as (page, complaints):
        opened(page, "/alerts")
        badge = page.get_by_role("navigation").get_by_test_id("sick-count").first
        expect(badge).to_contain_text("1 rule not evaluated", timeout=READ_MS)
        row = page.locator(f"[data-testid=sick-rule][data-rule={bereft}]")
        expect(row).to_contain_text("Not evaluated")
        expect(row).to_contain_text(why)

        page.get_by_role("radio", name=re.compile("Rules")).click()
        listed = page.locator(f"[data-rule={bereft}]")
        expect(listed.locator("[data-health=error]")).to_be_visible()
        expect(listed).to_contain_text(why)
        page.get_by_test_id("seek").fill("not evaluated")
        expect(page.get_by_test_id("rule-row")).to_have_count(2)  # this one, and who counts them
        assert "q=not+evaluated" in page.url
        page.reload()
        expect(page.get_by_test_id("seek")).to_have_value("not evaluated")
        expect(page.get_by_test_id("rule-row")).to_have_count(2)

        assert complaints.texts == []

        # Its page asks when it would have fired, which is refused without the metric.
        listed.get_by_role("link", name=bereft).first.click()
        expect(page.get_by_role("status").filter(has_text=why)).to_be_visible(timeout=READ_MS)
        assert accessibility_faults(page) == []


def test_a_rule_on_weir_itself_has_a_page_without_a_chart(stack: TestStack) -> None:
    """Listed apart; its limit is a field, and beside it stands the newest reading."""
    stack.wait_until(lambda: stack.api("GET", "/rules/weir_memory").body["groups"])
    with signed_in(stack) as (page, complaints):
        opened(page, "/alerts?tab=rules")
        apart = page.get_by_role("region", name="Weir itself")
        expect(apart.locator("[data-rule=weir_memory]")).to_contain_text(
            "memory of Redis above 85 %", timeout=READ_MS
        )
        assert accessibility_faults(page) == []
        apart.get_by_role("link", name="weir_memory").click()
        limit = page.get_by_test_id("rule-limit-high")
        expect(limit).to_have_value("85", timeout=READ_MS)
        expect(page.get_by_test_id("rule-group")).to_contain_text(re.compile(r"\d %"))
        expect(page.get_by_test_id("message-title")).to_contain_text(
            re.compile(r"Weir memory: memory of Redis in use: [\d.]+ % > 85 %"), timeout=READ_MS
        )
        for absent in ("outcome", "rule-metric", "rule-window"):
            expect(page.get_by_test_id(absent)).to_have_count(0)
        limit.fill("90")
        expect(page.get_by_test_id("rule-save")).to_be_enabled()
        expect(page.get_by_test_id("message-title")).to_contain_text("> 90 %", timeout=READ_MS)
        page.get_by_role("button", name="Discard").click()
        expect(limit).to_have_value("85")
        assert accessibility_faults(page) == []
        assert complaints.texts == []
