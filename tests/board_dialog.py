"""What can come between the dialog that puts a metric on a board and the server."""

from __future__ import annotations

from collections.abc import Callable

from browser import Held, accessibility_faults, opened
from playwright.sync_api import Page, Route, expect
from weir_local.testing import TestStack

MADE = "/definitions/board/made_here"


def store_without_an_answer(stack: TestStack, page: Page) -> None:
    """Put a tile whose answer is lost, and again: the alert has the focus, the board one tile."""
    at_first_write(page, lambda route: _unanswered(stack, route))
    opened(page, "/m/browser_hits?put=board")
    board = page.get_by_test_id("tile-board")
    expect(board).to_have_value("made_here")
    expect(board).to_be_focused()
    page.get_by_test_id("tile-store").click()
    told = page.get_by_test_id("tile-refused")
    expect(told).to_be_focused(timeout=10_000)
    expect(told).to_contain_text("the tile may have been stored")
    assert accessibility_faults(page) == []
    told.get_by_role("button", name="Try again").click()
    page.wait_for_url("**/b/made_here", timeout=20_000)
    expect(page.get_by_test_id("chart-tile")).to_have_count(2)


def at_first_write(page: Page, act: Callable[[Route], None]) -> None:
    """Have the first request that writes the board answered otherwise; the rest goes through.

    The route stays: when one goes while a page asks, Chromium stops intercepting, and a request
    that is under way in that moment may never be answered.
    """
    written: list[Route] = []

    def answer(route: Route) -> None:
        if route.request.method != "PUT" or written:
            route.fallback()
            return
        written.append(route)
        act(route)

    page.route(f"**{MADE}", answer)


def _unanswered(stack: TestStack, route: Route) -> None:
    """Write what a request asks for; its answer is lost."""
    condition = {"If-Match": route.request.headers["if-match"]}
    assert stack.api("PUT", MADE, route.request.post_data_json, condition).status == 200
    route.abort()


def overtake(stack: TestStack, page: Page, text: str) -> None:
    """Let somebody else write the board before the page does."""

    def write_first(route: Route) -> None:
        assert stack.api("PUT", MADE, {"text": text}, {"If-Match": '"2"'}).status == 200
        route.continue_()

    at_first_write(page, write_first)


def leave_while_it_stores(stack: TestStack, page: Page) -> None:
    """Close the dialog before the answer comes: the page stays where its user went."""
    held = Held(page, "PUT", f"**{MADE}")
    opened(page, "/m/browser_hits?put=board")
    expect(page.get_by_test_id("tile-board")).to_be_focused()
    page.get_by_test_id("tile-store").click()
    held.wait()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("link", name="Ledger").first.click()
    page.wait_for_url("**/ledger", timeout=20_000)
    held.let_go()
    assert stack.api("GET", MADE).body["version"] == 5
    assert page.url.endswith("/ledger")
