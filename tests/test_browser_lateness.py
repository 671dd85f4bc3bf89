"""What would be late is seen where an allowed lateness is written, in a real browser."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from browser import SIZES, Held, accessibility_faults, opened, refuse, signed_in
from playwright.sync_api import Page, Route, expect
from weir_local.testing import TestStack

TYPE = "browser.tardy"
PROMPT, LATE = 400, 4
# Both far from the lengths on which their shares are told.
LATE_MS = 150_000
WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture(scope="module")
def tardy(stack: TestStack) -> TestStack:
    """Return the shared stack with events of a type of this module's own, one of 101 late."""
    for seed, count, late_ms in (("prompt", PROMPT, 0), ("late", LATE, LATE_MS)):
        moment = datetime.fromtimestamp(time.time() - late_ms / 1000, UTC)
        fixed = {"specversion": "1.0", "source": "t", "type": TYPE, "data": {}}
        fixed["time"] = moment.isoformat(timespec="milliseconds")
        stack.post([{**fixed, "id": f"browser-tardy-{seed}-{n}"} for n in range(count)])
    text = f"events: {{type: {TYPE}}}\naggregates: [count]\nallowed_lateness: 1m\n"
    stack.define("metric", "browser_tardy", f"kind: metric\nname: browser_tardy\n{text}")
    path = "/lateness?metric=browser_tardy"
    stack.wait_until(
        lambda: stack.api("GET", path).body["all"]["events"] == PROMPT + LATE, "all events"
    )
    return stack


def said(page: Page) -> str:
    """Return what is said of the allowed lateness."""
    words = page.get_by_test_id("lateness-said")
    words.wait_for()
    return words.inner_text().replace("\xa0", " ")


def test_a_new_metric_takes_the_length_that_is_suggested(tardy: TestStack) -> None:
    """The share is of the length as it is written, and the shortest that loses few is offered."""
    with signed_in(tardy) as (page, complaints):
        opened(page, f"/metrics/new?type={TYPE}")
        assert "With 1 m at most 0.99 % of 404 events" in said(page)
        row = page.get_by_test_id("lateness-of")
        expect(row).to_have_count(1)
        expect(row).to_contain_text("404")
        page.get_by_test_id("metric-allowed_lateness").fill("90s")
        told = page.get_by_test_id("lateness-said")
        expect(told).to_contain_text("With 90 s at most 0.99 % of 404 events")
        expect(told).to_contain_text("came more than 1 m after they happened")
        page.get_by_test_id("lateness-use").click()
        expect(page.get_by_test_id("metric-allowed_lateness")).to_have_value("5m")
        expect(told).to_contain_text("With 5 m at most 0 % of 404 events")
        expect(page.get_by_test_id("lateness-use")).to_have_count(0)
        assert accessibility_faults(page) == []
        assert complaints.texts == []


def test_the_text_of_a_metric_is_told_as_it_is_changed(tardy: TestStack) -> None:
    """In the editor of a stored definition, and on the metric's page as it is stored."""
    with signed_in(tardy) as (page, complaints):
        opened(page, "/m/browser_tardy?tab=corrections")
        assert "With 1 m at most 0.99 % of 404 events" in said(page)
        opened(page, "/d/metric/browser_tardy")
        assert "With 1 m at most 0.99 % of 404 events" in said(page)
        editor = page.locator("textarea.editor")
        editor.fill(editor.input_value().replace("lateness: 1m", "lateness: 10m"))
        told = page.get_by_test_id("lateness-said")
        expect(told).to_contain_text("With 10 m at most 0 % of 404 events")
        assert complaints.texts == []


def test_a_refusal_is_told_and_figures_of_another_draft_say_so(tardy: TestStack) -> None:
    """Of a text that is not the one at hand nothing can be taken; the next answer is as before."""
    with signed_in(tardy) as (page, complaints):
        opened(page, f"/metrics/new?type={TYPE}")
        told, use = page.get_by_test_id("lateness-said"), page.get_by_test_id("lateness-use")
        section = page.get_by_role("region", name="What would have been late")
        refused, where = section.get_by_test_id("problem"), page.get_by_test_id("metric-where")
        expect(told).to_have_attribute("data-old", "false")
        expect(use).to_be_enabled()
        held = Held(page, "POST", "**/api/v1/lateness")
        where.fill("data.x > 1")
        route = held.wait()
        expect(told).to_have_attribute("data-old", "true")
        expect(told).to_contain_text("Of the text before the last change:")
        expect(use).to_be_disabled()
        assert accessibility_faults(page) == []
        refuse(route, 503, "any", "no store")
        expect(refused).to_contain_text("no store")
        # Beside what one types: it breaks in neither now nor with each letter.
        expect(refused).to_have_attribute("role", "status")
        expect(told).to_have_attribute("data-old", "true")
        assert not page.evaluate(WIDE)
        refused.evaluate("one => { one.dataset.first = 'yes' }")
        held = Held(page, "POST", "**/api/v1/lateness")
        where.fill("data.x > 2")
        held.wait()
        expect(refused).to_have_attribute("data-first", "yes")
        held.let_go()
        expect(told).to_have_attribute("data-old", "false")
        expect(refused).to_have_count(0)
        expect(use).to_be_enabled()
        [complaint] = complaints.texts
        assert "503" in complaint


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (f"/metrics/new?type={TYPE}", "lateness-said"),
        ("/m/browser_tardy?tab=corrections", "lateness-said"),
        ("/status", "lateness"),
    ],
)
def test_fewer_hours_are_asked_for_where_a_day_is_too_much(
    tardy: TestStack, path: str, shown: str
) -> None:
    """That is what the refusal says to do, and no field does; what is told says of how long."""
    with signed_in(tardy) as (page, _complaints):
        asked: list[int] = []

        def answer(route: Route) -> None:
            body = route.request.post_data_json or {"hours": route.request.url.rpartition("=")[2]}
            asked.append(int(body["hours"]))
            if asked[-1] > 6:
                refuse(route, 422, "query_too_large", "ask for less")
            else:
                route.continue_()

        page.route("**/api/v1/lateness*", answer)
        opened(page, path)
        expect(page.get_by_test_id(shown)).to_contain_text("the last 6 hours")
        assert asked == [24, 6]
        assert page.get_by_test_id("problem").count() == 0


@pytest.mark.parametrize(
    ("path", "shown"),
    [("/m/browser_tardy?tab=corrections", "lateness-said"), ("/status", "lateness")],
)
def test_a_refusal_is_told_wherever_lateness_is(tardy: TestStack, path: str, shown: str) -> None:
    """The first and a later one, which leaves figures that say that they are not of now."""
    with signed_in(tardy) as (page, _complaints):
        refusing = [True]

        def answer(route: Route) -> None:
            if refusing:
                refuse(route, 429, "rate_limited", "wait for one")
            else:
                route.continue_()

        page.route("**/api/v1/lateness*", answer)
        opened(page, path)
        refused, told = page.get_by_test_id("problem"), page.get_by_test_id(shown)
        expect(refused).to_contain_text("wait for one")
        assert not page.evaluate(WIDE)
        refusing.clear()
        page.get_by_role("button", name="Try again").click()
        expect(refused).to_have_count(0)
        expect(told).to_contain_text("the last day")
        expect(told).to_have_attribute("data-old", "false")
        refusing.append(True)
        # It is read again by itself, once a minute.
        expect(refused).to_contain_text("wait for one", timeout=75_000)
        expect(told).to_have_attribute("data-old", "true")
        expect(told).to_contain_text("As it was told last")
        assert accessibility_faults(page) == []
        assert not page.evaluate(WIDE)


def test_no_length_is_suggested_that_the_draft_may_not_allow(tardy: TestStack) -> None:
    """What is kept for six hours is final by then: it is said how to allow more."""
    made = datetime.fromtimestamp(time.time() - 11 * 3_600, UTC).isoformat(timespec="milliseconds")
    fixed = {"specversion": "1.0", "source": "t", "type": f"{TYPE}.day", "data": {}, "time": made}
    tardy.post([{**fixed, "id": f"browser-tardy-day-{n}"} for n in range(10)])
    with signed_in(tardy) as (page, complaints):
        opened(page, f"/metrics/new?type={TYPE}.day")
        suggested = page.get_by_test_id("lateness-suggested")
        expect(suggested).to_contain_text("Less than 0.1 % would have been with 12 h")
        page.get_by_test_id("metric-form").get_by_role("radio", name="1s", exact=True).click()
        expect(suggested).to_contain_text("With 6 h, the longest of the usual lengths")
        expect(suggested).to_contain_text("with a longer keep, in the text, more may be allowed")
        expect(page.get_by_test_id("lateness-use")).to_have_count(0)
        assert complaints.texts == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_fits_every_screen(tardy: TestStack, size: str, theme: str) -> None:
    """Nothing is wider than the screen where it is told."""
    with signed_in(tardy, size, theme) as (page, _complaints):
        for path in (f"/metrics/new?type={TYPE}", "/d/metric/browser_tardy", "/status"):
            opened(page, path)
            shown = "lateness" if path == "/status" else "lateness-said"
            page.get_by_test_id(shown).scroll_into_view_if_needed()
            assert not page.evaluate(WIDE), path
            assert accessibility_faults(page) == []
