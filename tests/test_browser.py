"""From a POST to a pixel in a real browser, over a restart of the dashboard."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
import weblog
from alert_pages import ALERT_PAGES, RULE
from board_dialog import MADE, leave_while_it_stores, overtake, store_without_an_answer
from browser import SETTLED, SIZES, Followed, accessibility_faults, opened, signed_in
from playwright.sync_api import Locator, Page, Route, expect
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
  - type: number  # whole soon after the metric is made, also where events came before it
    title: Hits in five seconds
    size: S
    metric: browser_hits
    aggregate: count
    window: {length: 5s}
"""
# Each page, and what is there once it has its content.
PAGES = {
    "/": "[data-testid=tile-value]",
    "/live": "[data-testid=checks] .good",
    "/b/hits": "[data-testid=tile-value]",
    "/metrics": "[data-testid=metric-row]",
    "/metrics/new": "[data-testid=metric-name]",
    "/m/browser_hits": "[data-testid=chart]",
    "/m/browser_hits?tab=corrections": "[data-testid=corrections] header",
    "/m/browser_hits?put=board": "[data-testid=tile-board]",
    "/ledger": "[data-testid=ledger-row]",
    "/status": "[data-testid=part-row]",
    "/definitions": "main tbody tr",
    "/d/metric/browser_hits": "textarea.editor",
    "/rules/new?metric=browser_hits": "[data-testid=would-fire]",
    **ALERT_PAGES,
    "/login": "[data-testid=login-key]",
}
WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
TEST_ID = "document.activeElement.dataset.testid"

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture(scope="module")
def hits(stack: TestStack) -> TestStack:
    """Return the shared stack with a metric, a board and a rule of this module's own."""
    stack.define("metric", "browser_hits", METRIC)
    stack.define("board", "hits", BOARD)
    progress = "/definitions/metric/browser_hits/progress"
    stack.wait_until(lambda: stack.api("GET", progress).body["serving"])
    stack.define("rule", "many_hits", RULE)
    return stack


def hit(stack: TestStack, name: str, type_: str = TYPE, **data: Any) -> None:
    """Post one event."""
    now = weblog.iso(SystemClock().now_ms())
    event = {"specversion": "1.0", "id": name, "source": "/hits", "type": type_, "time": now}
    weblog.post(stack.ingest_url, stack.key, [{**event, "data": data}])


def tab_to(page: Page, test_id: str) -> None:
    """Move the focus by the keyboard alone until it stands on an element."""
    for _ in range(80):
        if page.evaluate(TEST_ID) == test_id:
            return
        page.keyboard.press("Tab")
    pytest.fail(f"{test_id} must be reached by Tab")


def await_in_tail(stack: TestStack, page: Page, type_: str, **data: Any) -> None:
    """Post events until one is shown: what came before a subscription is not told."""

    def is_shown() -> bool:
        hit(stack, f"{type_}-{SystemClock().now_ms()}", type_, **data)
        page.wait_for_timeout(500)
        return row_of(page, type_).is_visible()

    stack.wait_until(is_shown, f"{type_} in the tail")


def row_of(page: Page, type_: str) -> Locator:
    """Return the newest row of a type in the tail."""
    return page.locator(f"[data-testid=tail-row][data-type='{type_}']").first


def pasted(command: str) -> dict[str, Any] | None:
    """Run a command in a shell; None as long as ingest has not read of the key in it."""
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30)  # noqa: S603, S607
    assert ran.returncode == 0, ran.stdout + ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    return None if answer.get("code") == "unauthorized" else answer


def await_value(page: Page, value: int, timeout_ms: int = 20_000) -> None:
    """Wait until the tile shows a number."""
    tile = page.get_by_test_id("tile-value").first
    expect(tile).to_have_attribute("data-value", str(value), timeout=timeout_ms)


def shown(page: Page) -> str:
    """Return the number that the tile shows, with all its digits."""
    return page.get_by_test_id("tile-value").first.get_attribute("data-value") or ""


def test_an_event_changes_the_number_and_a_restart_leaves_it_right(hits: TestStack) -> None:
    """The number follows each event, sleeps through a restart, and equals a fresh page."""
    with signed_in(hits) as (page, complaints):
        opened(page, "/b/hits")
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
        # A page that has tried in vain waits for up to 30 s.
        await_value(page, 3, 60_000)
        slept = shown(page)
        page.reload()
        await_value(page, 3)
        assert shown(page) == slept
        assert complaints.texts == []


def test_the_command_of_the_first_run_works_as_it_stands(hits: TestStack) -> None:
    """What the page shows is pasted into a shell; the event appears, and is counted."""
    with signed_in(hits) as (page, complaints):
        followed = Followed(page)
        opened(page, "/live")
        command = page.get_by_test_id("curl-command")
        page.get_by_test_id("make-key").click()
        expect(command).to_have_attribute("data-ready", "true", timeout=20_000)
        text = command.text_content() or ""
        assert hits.ingest_url in text.replace("localhost", "127.0.0.1")
        followed.await_tail(hits)
        answer = hits.wait_until(lambda: pasted(text), "the key known to ingest")
        assert answer.get("accepted") == 1, answer
        row = row_of(page, "order.placed")
        expect(row).to_contain_text("12.5", timeout=10_000)
        expect(row).to_have_attribute("data-fate", "counted", timeout=20_000)
        assert complaints.texts == []


def test_the_tail_shows_what_its_filter_says(hits: TestStack) -> None:
    """A condition typed into the filter holds on the server for everything that follows."""
    with signed_in(hits) as (page, complaints):
        opened(page, "/live")
        await_in_tail(hits, page, "tail.seen", total=1)
        page.get_by_test_id("tail-filter").press_sequentially("data.total >")
        expect(page.get_by_text("is no whole condition yet")).to_be_visible()
        page.get_by_test_id("tail-filter").press_sequentially(" 10")
        expect(page.get_by_test_id("tail-row")).to_have_count(0, timeout=10_000)
        told = page.get_by_text('Nothing that arrived matches "data.total > 10" yet.')
        expect(told).to_be_visible()
        await_in_tail(hits, page, "tail.high", total=11)
        hit(hits, "low", "tail.low", total=2)
        await_in_tail(hits, page, "tail.last", total=12)
        assert row_of(page, "tail.low").count() == 0
        assert complaints.texts == []


def test_an_event_of_the_tail_opens(hits: TestStack) -> None:
    """A row opens by Enter and by a click, whole, and stands still; fields need no filter."""
    with signed_in(hits) as (page, complaints):
        opened(page, "/live")
        await_in_tail(hits, page, "tail.open", deep={"far": {"down": "whole"}}, pad="x" * 300)
        page.get_by_test_id("tail-filter").fill("matches.nothing")
        expect(page.get_by_test_id("tail-row")).to_have_count(0, timeout=10_000)
        expect(page.get_by_test_id("field-row").first).to_be_visible()
        page.get_by_test_id("tail-filter").fill("")
        button = row_of(page, "tail.open").get_by_role("button").first
        button.press("Enter")
        whole = page.get_by_test_id("tail-whole")
        expect(whole).to_contain_text('"down": "whole"')
        expect(button).to_have_attribute("aria-expanded", "true")
        expect(page.get_by_test_id("tail-pause")).to_have_attribute("aria-pressed", "true")
        assert accessibility_faults(page) == []
        button.click()
        expect(whole).to_have_count(0)
        expect(page.get_by_test_id("tail-pause")).to_have_attribute("aria-pressed", "false")
        assert complaints.texts == []


def test_a_pause_outlasts_a_filter_and_holds_only_what_is_shown(hits: TestStack) -> None:
    """Whoever paused resumes; what arrives meanwhile is kept, and known to the form."""
    with signed_in(hits) as (page, complaints):
        followed = Followed(page)
        opened(page, "/live")
        await_in_tail(hits, page, "tail.paused", total=1)
        pause, rows = page.get_by_test_id("tail-pause"), page.get_by_test_id("tail-row")
        pause.click()
        seen = rows.count()
        page.get_by_test_id("tail-filter").fill("tail.meanwhile")
        expect(rows).to_have_count(0, timeout=10_000)
        expect(pause).to_have_attribute("aria-pressed", "true")
        followed.await_tail(hits, text="tail.meanwhile")
        hit(hits, "meanwhile", "tail.meanwhile", total=2)
        expect(page.get_by_text("1 newer event is shown when you resume.")).to_be_visible(
            timeout=10_000
        )
        expect(page.get_by_label("Types")).to_contain_text("tail.meanwhile")
        page.get_by_test_id("tail-filter").fill("")
        expect(rows).to_have_count(seen)
        expect(pause).to_have_attribute("aria-pressed", "true")
        pause.click()
        expect(row_of(page, "tail.meanwhile")).to_be_visible()
        assert complaints.texts == []


def test_find_takes_the_keyboard(hits: TestStack) -> None:
    """What is typed after the slash is looked for; Enter goes there, Escape goes back."""
    with signed_in(hits) as (page, complaints):
        opened(page, "/metrics")
        page.get_by_test_id("metric-row").first.wait_for()
        page.keyboard.press("/")
        page.get_by_role("dialog").wait_for()
        page.keyboard.type("browser_h")
        expect(page.get_by_role("option")).to_have_text(["browser_hitsmetric"])
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.keyboard.press("/")
        page.get_by_role("dialog").wait_for()
        page.keyboard.type("ledg")
        page.keyboard.press("Enter")
        page.wait_for_url("**/ledger", timeout=20_000)
        page.get_by_label("More").click()
        page.get_by_role("dialog").get_by_role("button", name="Find").click()
        # That the one before is gone must not be taken to mean this one.
        page.evaluate(SETTLED)
        expect(page.get_by_role("combobox")).to_be_focused()
        page.keyboard.type("defini")
        page.keyboard.press("Enter")
        page.wait_for_url("**/definitions", timeout=20_000)
        assert complaints.texts == []


def test_a_metric_is_made_and_tried_by_keyboard(hits: TestStack) -> None:
    """From the first Tab to the new metric's page no pointer is needed."""
    with signed_in(hits) as (page, complaints):
        for total in (2, 4, "n/a"):
            hit(hits, f"keyed-{total}", "keyed.order", total=total)
        opened(page, "/metrics/new")
        page.get_by_test_id("metric-name").wait_for()
        for field, text in (
            ("name", "keyed_orders"),
            ("type", "keyed.order"),
            ("value", "data.total"),
        ):
            tab_to(page, f"metric-{field}")
            page.keyboard.type(text)
        sums = page.get_by_test_id("preview-sums")
        expect(sums).to_have_attribute("data-matched", "3", timeout=20_000)
        rows = page.locator("[data-testid=preview-row][data-matched=true]")
        expect(rows.locator("[title='4']")).to_be_visible()
        expect(page.locator("[data-reason=value_invalid]")).to_be_visible()
        page.keyboard.press("Enter")
        page.wait_for_url("**/m/keyed_orders", timeout=20_000)
        assert complaints.texts == []


@pytest.mark.parametrize("size", SIZES)
def test_each_field_of_a_metric_stands_below_its_name(hits: TestStack, size: str) -> None:
    """At either width, from the left edge on: a style of another page put one beside its name."""
    with signed_in(hits, size) as (page, complaints):
        opened(page, "/metrics/new")
        page.get_by_test_id("metric-by").wait_for()
        rows = page.locator(".form-row").evaluate_all(
            """rows => rows.map(row => [...row.children].map(
                one => ({ left: one.getBoundingClientRect().left - row.getBoundingClientRect().left,
                          top: one.getBoundingClientRect().top,
                          bottom: one.getBoundingClientRect().bottom })))"""
        )
        assert len(rows) == 9
        for name, control in rows:
            assert name["bottom"] <= control["top"]
            assert (name["left"], control["left"]) == (0, 0)
        assert complaints.texts == []


def test_a_refused_metric_leads_to_the_field_that_is_wrong(hits: TestStack) -> None:
    """What cannot be tried is read still; every refusal puts the focus on what to mend."""
    with signed_in(hits) as (page, complaints):
        hit(hits, "dimmed", "dimmed.order")
        opened(page, "/metrics/new")
        page.get_by_test_id("metric-type").fill("dimmed.order")
        expect(page.locator("[data-testid=preview-row][data-matched=true]")).to_be_visible(
            timeout=20_000
        )
        page.get_by_test_id("metric-by").fill("B")
        told = page.get_by_test_id("preview-why")
        expect(told).to_have_text("Not tried yet: mend By first.", timeout=10_000)
        expect(page.get_by_test_id("field-fault")).to_have_count(1)
        assert accessibility_faults(page) == []
        assert complaints.texts == []

        for name, by, wrong, words in (
            ("", "", "name", "must be given"),
            ("dimmed_orders", "B", "by", "must be an attribute or a path below data"),
            ("browser_hits", "", "name", "must be a name that no metric has yet"),
        ):
            page.get_by_test_id("metric-name").fill(name)
            page.get_by_test_id("metric-by").fill(by)
            page.get_by_test_id("metric-create").click()
            expect(page.get_by_test_id(f"metric-{wrong}")).to_be_focused(timeout=10_000)
            fault = page.locator(f"#metric-{wrong}-fault")
            expect(fault).to_contain_text(words)
            assert page.get_by_test_id("problem").count() == 0


def test_a_metric_that_is_made_late_fetches_nobody_back(hits: TestStack) -> None:
    """Who leaves while the metric is being made stays where they went."""
    made = "/definitions/metric/late_orders"
    held: list[Route] = []
    with signed_in(hits) as (page, complaints):
        page.route(f"**{made}", lambda route: held.append(route))
        opened(page, "/metrics/new")
        page.get_by_test_id("metric-name").fill("late_orders")
        page.get_by_test_id("metric-type").fill("late.order")
        create = page.get_by_test_id("metric-create")
        create.click()
        expect(create).to_have_attribute("aria-disabled", "true")
        expect(create).to_be_focused()
        page.get_by_role("link", name="Ledger").first.click()
        page.get_by_test_id("question-yes").click()
        page.wait_for_url("**/ledger", timeout=20_000)
        with page.expect_response(f"**{made}"):
            held[0].continue_()
        page.wait_for_timeout(300)
        assert hits.api("GET", made).status == 200
        assert page.url.endswith("/ledger")
        assert complaints.texts == []


def test_a_metric_comes_onto_a_new_board_and_onto_one_that_changed(hits: TestStack) -> None:
    """A tile is made where its metric is shown; what others wrote meanwhile stays."""
    with signed_in(hits) as (page, complaints):
        opened(page, "/metrics?put=board")
        page.get_by_role("link", name="browser_hits").click()
        page.get_by_test_id("tile-board").select_option(label="New board")
        page.get_by_test_id("board-title").fill("Made here")
        assert accessibility_faults(page) == []
        page.get_by_test_id("tile-store").click()
        page.wait_for_url("**/b/made_here", timeout=20_000)
        expect(page.get_by_test_id("chart-tile")).to_have_attribute("data-metric", "browser_hits")
        assert complaints.texts == []

        store_without_an_answer(hits, page)
        text = hits.api("GET", MADE).body["text"] + "# last word\n"
        overtake(hits, page, text)
        opened(page, "/m/browser_hits?put=board")
        page.get_by_role("radio", name="Number").click()
        page.get_by_test_id("tile-store").click()
        page.wait_for_url("**/b/made_here", timeout=20_000)
        expect(page.get_by_test_id("tile")).to_have_attribute("data-metric", "browser_hits")
        now = hits.api("GET", MADE).body
        assert (now["version"], len(now["parsed"]["tiles"])) == (4, 3)
        assert now["text"].endswith("# last word\n")
        leave_while_it_stores(hits, page)


def test_who_may_not_define_is_offered_no_board(hits: TestStack) -> None:
    """Without the scope `define` neither the button nor the dialog is there."""
    made = hits.api("POST", "/keys", {"label": "reader", "scopes": ["read"]})
    with signed_in(hits) as (page, complaints):
        opened(page, "/login?to=/m/browser_hits?put=board")
        page.get_by_test_id("login-key").fill(made.body["key"])
        page.get_by_test_id("login-enter").click()
        page.wait_for_url("**/m/browser_hits*", timeout=20_000)
        page.get_by_test_id("series-row").first.wait_for(timeout=20_000)
        assert page.get_by_test_id("put-on-board").count() == 0
        assert page.get_by_role("dialog").count() == 0
        assert complaints.texts == []


def test_stale_and_provisional_are_seen(hits: TestStack) -> None:
    """A part that stops is named, with since when; an open window is hatched, a stale one told."""
    with signed_in(hits) as (page, complaints):
        opened(page, "/b/hits")
        hit(hits, f"look-{SystemClock().now_ms()}")
        tile = page.get_by_test_id("tile").first
        pill = page.get_by_test_id("live-pill").first
        expect(pill).to_have_attribute("data-state", "live", timeout=30_000)
        hatched = "e => getComputedStyle(e).backgroundImage.includes('gradient')"
        value = page.locator("[data-testid=tile-value].open").first
        value.wait_for(timeout=20_000)
        assert value.evaluate(hatched)

        hits.kill("ingest")
        expect(pill).to_have_attribute("data-state", "stale", timeout=20_000)
        since = page.get_by_text("Ingest does not take events. Since")
        told = since.inner_text()
        expect(tile).to_have_attribute("data-state", "stale", timeout=10_000)
        page.wait_for_timeout(3_000)
        assert since.inner_text() == told
        hits.restart("ingest")
        expect(pill).to_have_attribute("data-state", "live", timeout=60_000)
        expect(tile).not_to_have_attribute("data-state", "stale")
        assert complaints.texts == []


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_every_page_is_clean(hits: TestStack, size: str) -> None:
    """No page has a fault that axe finds, an error in its console, or a sideways scroll."""
    hit(hits, f"clean-{size}")
    with signed_in(hits, size) as (page, complaints):
        for path, content in PAGES.items():
            opened(page, path)
            page.locator(content).first.wait_for(timeout=20_000)
            page.get_by_test_id("live-pill").first.wait_for()
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme)
                assert accessibility_faults(page) == [], (path, theme)
                assert not page.evaluate(WIDE), (path, theme)
        assert complaints.texts == []
