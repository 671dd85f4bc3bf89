"""A rule is written in a real browser: its limit dragged, typed, moved by keys, and saved."""

from __future__ import annotations

from typing import Any

import pytest
import weblog
from browser import (
    SETTLED,
    accessibility_faults,
    drag,
    limit_handle,
    opened,
    sign_out,
    signed_in,
)
from playwright.sync_api import Locator, Page, expect
from weir.clock import SystemClock
from weir_local.testing import TestStack

TYPE = "browser.wait"
METRIC = f"""
kind: metric
name: browser_waits
events: {{type: {TYPE}}}
value: data.ms
unit: ms
by: [data.region]
aggregates: [count, max]
resolution: 1s
allowed_lateness: 1s
"""
NEW = "/rules/new?metric=browser_waits&agg=max&win=10s&by=region"
KEPT = "# kept\nlabels: {team: checkout}\n"

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture(scope="module")
def waits(stack: TestStack) -> TestStack:
    """Return the shared stack with a metric whose greatest value was 300 ms, in eu."""
    stack.define("metric", "browser_waits", METRIC)
    stack.await_whole("browser_waits", "10s")
    now_ms = SystemClock().now_ms()
    events = [event(now_ms, "eu", 300), event(now_ms, "us", 100)]
    position = weblog.post(stack.ingest_url, stack.key, events)["position"]
    # A limit is proposed once, from what is counted by then.
    asked = {"metric": "browser_waits", "aggregate": "max", "range": {"last": "1m"}}
    stack.query({**asked, "after": position})
    return stack


def event(now_ms: int, region: str, ms: float) -> dict[str, Any]:
    """Return one event."""
    data = {"ms": ms, "region": region}
    head = {"specversion": "1.0", "source": "/waits", "type": TYPE, "time": weblog.iso(now_ms)}
    return {**head, "id": f"{region}-{now_ms}", "data": data}


def fired(page: Page) -> Locator:
    """Return what the newest backtest says."""
    return page.locator("[data-testid=outcome][data-old=false] [data-testid=would-fire]")


def limit_tried(page: Page, times: int) -> Locator:
    """Return the limits at which the rule would have fired so often, lowest first."""
    return page.locator(f"[data-testid=sweep-limit][data-fired='{times}']")


def await_backtest(page: Page, times: int) -> None:
    """Wait until the backtest of what the form says now says how often."""
    expect(fired(page)).to_have_attribute("data-value", str(times), timeout=15_000)


def test_a_limit_is_dragged_typed_and_moved_by_keys(waits: TestStack) -> None:
    """Field, handle and backtest say the same whichever moves, and what is saved is a rule."""
    with signed_in(waits) as (page, complaints):
        opened(page, NEW)
        field, handle = page.get_by_test_id("rule-limit-high"), limit_handle(page)
        # a tenth above the greatest value of the last 24 h
        expect(field).to_have_value("330", timeout=20_000)
        await_backtest(page, 0)

        drag(page, handle, 60)
        expect(field).not_to_have_value("330")
        dragged = field.input_value()
        assert 100 < float(dragged) < 300
        expect(handle).to_have_attribute("aria-valuenow", dragged)
        await_backtest(page, 1)
        expect(page.locator("[data-testid=strip][data-fired='1']")).to_contain_text("eu")

        field.fill("400")
        expect(handle).to_have_attribute("aria-valuenow", "400")
        expect(handle).to_have_attribute("aria-valuetext", "400 ms")
        await_backtest(page, 0)

        # Of the backtest of this limit: those of the one before are replaced under the mouse.
        own = page.locator("[data-testid=sweep] li[aria-current=true]")
        expect(own).to_contain_text("400", timeout=15_000)
        taken = limit_tried(page, 1).last
        expect(taken).to_have_attribute("title", "take this limit")
        taken.click()
        assert 100 < float(field.input_value()) < 300
        await_backtest(page, 1)
        title = page.get_by_test_id("message-title")
        expect(title).to_contain_text(f"> {field.input_value()} ms", timeout=15_000)
        field.fill("400")
        await_backtest(page, 0)

        handle.focus()
        page.keyboard.press("ArrowDown")
        expect(field).not_to_have_value("400")
        moved = field.input_value()
        assert 300 < float(moved) < 400
        expect(handle).to_have_attribute("aria-valuenow", moved)
        await_backtest(page, 0)

        page.get_by_test_id("rule-name").fill("slow_waits")
        page.get_by_test_id("rule-save").click()
        page.wait_for_url("**/rules/slow_waits", timeout=20_000)
        expect(page.get_by_text("Saved as version 1.")).to_be_visible()
        rules = {rule["name"]: rule for rule in waits.api("GET", "/rules").body["items"]}
        rule = rules["slow_waits"]
        assert (rule["limit"], rule["side"], rule["by"]) == (float(moved), "above", ["region"])
        assert accessibility_faults(page) == []
        assert complaints.texts == []


def test_a_rule_is_mended_where_it_is_wrong_and_left_only_knowingly(waits: TestStack) -> None:
    """An error stands at its field, a conflict leads to the other text, leaving asks."""
    text = "kind: rule\nname: watched\nmetric: browser_waits\naggregate: max\nwindow: 10s\n"
    waits.define("rule", "watched", f"{text}above: 400\n{KEPT}")
    with signed_in(waits) as (page, _):
        opened(page, "/rules/watched")
        limit = page.get_by_test_id("rule-limit-high")
        page.get_by_test_id("rule-recover-high").fill("500")
        fault = page.get_by_test_id("field-fault")
        expect(fault).to_contain_text("a recover at most the limit", timeout=10_000)
        page.get_by_test_id("rule-recover-high").fill("")
        expect(fault).to_have_count(0)

        limit.fill("410")
        page.get_by_role("link", name="Metrics").first.click()
        page.get_by_role("button", name="Stay").click()
        expect(limit).to_have_value("410")

        theirs = {"text": f"{text}above: 700\n{KEPT}"}
        waits.api("PUT", "/definitions/rule/watched", theirs, {"If-Match": '"1"'})
        page.get_by_test_id("rule-save").click()
        expect(page.get_by_test_id("conflict")).to_be_visible(timeout=10_000)
        page.get_by_role("button", name="Show theirs").click()
        expect(page.locator("dialog")).to_contain_text("above: 700")
        assert accessibility_faults(page) == []
        page.get_by_role("dialog").get_by_role("button", name="Go on with mine").click()

        # Overtaken once more, and again: what was shown is not what is stored now.
        for version, choice in ((2, "Take theirs"), (3, "Go on with mine")):
            condition = {"If-Match": f'"{version}"'}
            theirs = {"text": f"{text}above: 80{version}\n{KEPT}"}
            assert waits.api("PUT", "/definitions/rule/watched", theirs, condition).status == 200
            page.get_by_test_id("rule-save").click()
            expect(page.get_by_test_id("conflict")).to_be_visible(timeout=10_000)
            page.evaluate(SETTLED)
            assert page.get_by_role("dialog").count() == 0
            page.get_by_role("button", name="Show theirs").click()
            expect(page.locator("dialog")).to_contain_text(f"above: 80{version}")
            page.get_by_role("dialog").get_by_role("button", name=choice).click()
            expect(limit).to_have_value("802" if version == 2 else "410")
            limit.fill("410")
        page.get_by_test_id("rule-save").click()
        expect(page.get_by_text("Saved as version 5.")).to_be_visible(timeout=20_000)
        stored = waits.api("GET", "/definitions/rule/watched").body["text"]
        assert stored == f"{text}above: 410\n{KEPT}"

        page.get_by_test_id("rule-delete").click()
        page.get_by_test_id("question-yes").click()
        page.wait_for_url("**/alerts?tab=rules", timeout=20_000)
        left = [rule["name"] for rule in waits.api("GET", "/rules").body["items"]]
        assert "watched" not in left


def test_signing_out_asks_before_a_rule_is_lost(waits: TestStack) -> None:
    """Who stays is signed in still; who leaves is signed out, and nobody asks a second time."""
    text = "kind: rule\nname: left\nmetric: browser_waits\naggregate: max\nwindow: 10s\n"
    waits.define("rule", "left", f"{text}above: 400\n")
    with signed_in(waits) as (page, complaints):
        opened(page, "/rules/left")
        limit = page.get_by_test_id("rule-limit-high")
        limit.fill("410")
        sign_out(page)
        page.get_by_role("button", name="Stay").click()
        expect(page.locator(".tenant")).not_to_be_empty()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_test_id("question-yes").click()
        expect(page.get_by_test_id("login-key")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert page.url.endswith("/login?to=%2Frules%2Fleft")
        assert complaints.texts == []


def test_nobody_is_asked_about_the_rule_of_somebody_who_is_out(waits: TestStack) -> None:
    """Signed out in another tab, a page with something unsaved is left: it is nobody's now."""
    text = "kind: rule\nname: elsewhere\nmetric: browser_waits\naggregate: max\nwindow: 10s\n"
    waits.define("rule", "elsewhere", f"{text}above: 400\n")
    with signed_in(waits) as (page, _):
        opened(page, "/rules/elsewhere")
        page.get_by_test_id("rule-limit-high").fill("410")
        other = page.context.new_page()
        other.goto(page.url)
        sign_out(other)
        expect(page.get_by_test_id("login-key")).to_be_visible()
        assert page.get_by_role("dialog").count() == 0
