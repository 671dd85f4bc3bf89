"""Signing in, in a real browser: what the server told before it counts no more."""

from __future__ import annotations

import pytest
from browser import blank_page, sign_in
from playwright.sync_api import APIResponse, Route, expect
from weir_local.testing import TestStack

SETTLED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"

pytestmark = [pytest.mark.stack, pytest.mark.browser]


def test_an_answer_of_before_signs_nobody_out(stack: TestStack) -> None:
    """Asked when the page was opened, the server says "nobody"; that comes once one is in."""
    held: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        if route.request.method == "GET" and not held:
            held.append((route, route.fetch()))
        else:
            route.continue_()

    with blank_page() as (page, complaints):
        page.route("**/api/v1/session", hold)
        sign_in(stack, page)
        [(route, answer)] = held
        assert answer.json()["signed_in"] is False
        with page.expect_request_finished(lambda one: one.url.endswith("/session")):
            route.fulfill(response=answer)
        page.evaluate(SETTLED)

        assert "/login" not in page.url
        expect(page.get_by_test_id("login-key")).to_have_count(0)
        assert complaints.texts == []
