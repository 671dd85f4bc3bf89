"""Signing in, in a real browser: what the server told before it counts no more."""

from __future__ import annotations

import pytest
from browser import blank_page, opened, sign_in, signed_in
from playwright.sync_api import APIResponse, Page, Route, expect
from weir_local.signin import sign_in_link
from weir_local.testing import TestStack

SETTLED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"

pytestmark = [pytest.mark.stack, pytest.mark.browser]


class Held:
    """The first answer of a page's server to who is signed in, held back."""

    def __init__(self, page: Page) -> None:
        """Hold it from now on."""
        self._page = page
        self._held: list[tuple[Route, APIResponse]] = []
        page.route("**/api/v1/session", self._hold)

    def _hold(self, route: Route) -> None:
        if route.request.method == "GET" and not self._held:
            self._held.append((route, route.fetch()))
        else:
            route.continue_()

    def let_go(self) -> bool:
        """Let the page have it, and see to it; return whether it says that somebody is."""
        [(route, answer)] = self._held
        with self._page.expect_request_finished(lambda one: one.url.endswith("/session")):
            route.fulfill(response=answer)
        self._page.evaluate(SETTLED)
        return bool(answer.json()["signed_in"])


def test_an_answer_of_before_signs_nobody_out(stack: TestStack) -> None:
    """Asked when the page was opened, the server says "nobody"; that comes once one is in."""
    with blank_page() as (page, complaints):
        held = Held(page)
        sign_in(stack, page)
        assert held.let_go() is False

        assert "/login" not in page.url
        expect(page.get_by_test_id("login-key")).to_have_count(0)
        assert complaints.texts == []


def test_a_link_that_was_used_ends_no_session(stack: TestStack) -> None:
    """Who is signed in stays so, though the page did not know it yet when the link was refused."""
    used = sign_in_link(stack.home).replace("127.0.0.1", "localhost")
    with blank_page() as (page, _complaints):
        for _ in range(2):
            page.goto("about:blank")
            page.goto(used)
            expect(page.locator(".tenant")).not_to_be_empty()
        page.goto("about:blank")
        held = Held(page)
        page.goto(used)
        expect(page.get_by_test_id("problem")).to_be_visible()
        assert held.let_go() is True

        expect(page.locator(".tenant")).not_to_be_empty()


def test_the_key_of_a_command_is_of_whoever_made_it(stack: TestStack) -> None:
    """Somebody else signs in behind them, with no reload: what they send is not theirs."""
    other = stack.api("POST", "/keys", {"label": "other", "scopes": ["admin", "read"]}).body["key"]
    with signed_in(stack) as (page, complaints):
        opened(page, "/live")
        command = page.get_by_test_id("curl-command")
        page.get_by_test_id("make-key").click()
        expect(command).to_have_attribute("data-ready", "true")
        page.get_by_label("More").click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_test_id("login-key").fill(other)
        page.get_by_test_id("login-enter").click()

        expect(page.get_by_test_id("make-key")).to_be_visible()
        expect(command).to_have_attribute("data-ready", "false")
        assert "wk_" not in (command.text_content() or "").replace("wk_…", "")
        assert complaints.texts == []
