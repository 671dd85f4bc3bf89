"""Signing in and out, in a real browser: what is told of before, or of others, counts no more."""

from __future__ import annotations

import pytest
import weblog
from browser import (
    SETTLED,
    Held,
    accessibility_faults,
    blank_page,
    door,
    enter,
    opened,
    sign_in,
    sign_out,
    signed_in,
)
from playwright.sync_api import APIResponse, Page, Route, WebSocketRoute, expect
from weir.clock import SystemClock
from weir_local.testing import TestStack

pytestmark = [pytest.mark.stack, pytest.mark.browser]

# Where something is typed: an address, a field, and what.
TYPED = [
    ("/d/metric/door_typed", "textarea.editor", "{metric}# more\n"),
    ("/metrics/new", "#metric-name", "typed_here"),
    ("/rules/new?metric=door_typed&agg=count", "[data-testid=rule-limit-high]", "410"),
]


class HeldAnswer:
    """The first answer of a page's server to who is signed in, held back."""

    def __init__(self, page: Page) -> None:
        """Hold it from now on."""
        self._page = page
        self._is_taken = False
        self._held: list[tuple[Route, APIResponse]] = []
        page.route("**/api/v1/session", self._hold)

    def _hold(self, route: Route) -> None:
        if route.request.method != "GET" or self._is_taken:
            route.fallback()
            return
        # Said first: others may be handled while this one is fetched.
        self._is_taken = True
        self._held.append((route, route.fetch()))

    def let_go(self) -> bool:
        """Let the page have it, and see to it; return whether it says that somebody is."""
        [(route, answer)] = self._held
        with self._page.expect_request_finished(lambda one: one == route.request):
            route.fulfill(response=answer)
        self._page.evaluate(SETTLED)
        return bool(answer.json()["signed_in"])


def key_of(stack: TestStack, label: str, *scopes: str) -> str:
    """Return a new key with a label."""
    made = stack.api("POST", "/keys", {"label": label, "scopes": list(scopes)})
    return str(made.body["key"])


def post_first(stack: TestStack) -> None:
    """Let events be known: on a stack without one, the page of events makes a key by itself."""
    event = {"specversion": "1.0", "source": "/door", "type": "door.seen"}
    now_ms = SystemClock().now_ms()
    event |= {"id": f"door-{now_ms}", "time": weblog.iso(now_ms)}
    weblog.post(stack.ingest_url, stack.key, [event])
    stack.wait_until(lambda: stack.api("GET", "/discovery/types").body["items"], "a type seen")


def test_an_answer_of_before_signs_nobody_out(stack: TestStack) -> None:
    """Asked when the page was opened, the server says "nobody"; that comes once one is in."""
    with blank_page() as (page, complaints):
        held = HeldAnswer(page)
        sign_in(stack, page)
        assert held.let_go() is False

        assert "/login" not in page.url
        expect(page.get_by_test_id("login-key")).to_have_count(0)
        assert complaints.texts == []


def test_a_link_that_was_used_ends_no_session(stack: TestStack) -> None:
    """Who is signed in stays so, though the page did not know it yet when the link was refused."""
    used = door(stack)
    with blank_page() as (page, _complaints):
        for _ in range(2):
            page.goto("about:blank")
            page.goto(used)
            expect(page.locator(".tenant")).not_to_be_empty()
        page.goto("about:blank")
        held = HeldAnswer(page)
        page.goto(used)
        expect(page.get_by_test_id("problem")).to_be_visible()
        assert held.let_go() is True

        expect(page.locator(".tenant")).not_to_be_empty()


def test_a_sign_out_that_is_refused_says_so(stack: TestStack) -> None:
    """Whoever is signed in stays so, and may try again."""
    with signed_in(stack) as (page, complaints):
        held = Held(page, "DELETE", "**/api/v1/session")
        sign_out(page)
        refusal = {"status": 503, "code": "store_unavailable", "message": "no store"}
        held.wait().fulfill(status=503, json=refusal)
        expect(page.get_by_role("dialog").get_by_test_id("problem")).to_contain_text("no store")
        expect(page.locator(".tenant")).not_to_be_empty()
        [text] = complaints.texts
        assert "503" in text
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_test_id("login-key")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert complaints.texts == [text]


@pytest.fixture(scope="module")
def metric(stack: TestStack) -> str:
    """Return the text of a stored metric."""
    text = "kind: metric\nname: door_typed\nevents: {type: door.seen}\naggregates: [count]\n"
    stack.define("metric", "door_typed", text)
    return text


@pytest.mark.parametrize(("path", "place", "typed"), TYPED)
def test_what_is_typed_outlives_a_sign_out_that_is_refused(
    stack: TestStack, metric: str, path: str, place: str, typed: str
) -> None:
    """Whoever leaves is asked first; where they stay signed in, their page is as it was."""
    typed = typed.format(metric=metric)
    with signed_in(stack) as (page, complaints):
        opened(page, path)
        field = page.locator(place)
        field.fill(typed)
        held = Held(page, "DELETE", "**/api/v1/session")
        sign_out(page)
        page.get_by_role("button", name="Stay").click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_test_id("question-yes").click()
        held.wait()
        expect(page.locator(".tenant")).not_to_be_empty()
        refusal = {"status": 503, "code": "store_unavailable", "message": "no store"}
        held.wait().fulfill(status=503, json=refusal)
        expect(page.get_by_role("dialog").get_by_test_id("problem")).to_contain_text("no store")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(field).to_have_value(typed)
        [complaint] = complaints.texts
        assert "503" in complaint
        sign_out(page)
        page.get_by_test_id("question-yes").click()
        expect(page.get_by_test_id("login-key")).to_be_visible()


@pytest.mark.parametrize(("path", "place", "typed"), TYPED)
def test_what_is_typed_outlives_the_session(
    stack: TestStack, metric: str, path: str, place: str, typed: str
) -> None:
    """Ended in another tab, its page has a door before it: who had it has it again, nobody else."""
    typed = typed.format(metric=metric)
    other_key = key_of(stack, "comes", "admin", "read", "define")
    with signed_in(stack) as (page, _complaints):
        opened(page, path)
        field, note = page.locator(place), page.get_by_text("Your session has ended.")
        field.fill(typed)
        other = page.context.new_page()
        other.goto(page.url)
        sign_out(other)
        expect(page.get_by_test_id("login-key")).to_be_visible()
        expect(note).to_be_visible()
        expect(field).to_be_hidden()
        assert page.url.endswith(path)
        assert page.get_by_role("dialog").count() == 0
        assert accessibility_faults(page) == []

        # It is asked about before it is left, and what is asked can be answered.
        page.get_by_role("link", name="Ledger").first.click()
        page.get_by_role("button", name="Stay").click()
        enter(page, stack.key)
        expect(field).to_be_visible()
        expect(field).to_have_value(typed)
        expect(note).to_have_count(0)
        assert "Sign in" not in page.title()

        sign_out(other)
        expect(field).to_be_hidden()
        enter(page, other_key)
        expect(field).to_be_visible()
        expect(field).not_to_have_value(typed)
        assert page.url.endswith(path)


def test_what_is_typed_outlives_a_session_that_expires(stack: TestStack) -> None:
    """The socket is told so; asking the server who is signed in changes nothing of the page."""
    with blank_page() as (page, _complaints):
        sockets: list[WebSocketRoute] = []

        def through(socket: WebSocketRoute) -> None:
            socket.connect_to_server()
            sockets.append(socket)

        page.route_web_socket("**/api/v1/live", through)
        sign_in(stack, page)
        opened(page, "/metrics/new")
        field = page.locator("#metric-name")
        field.fill("typed_here")
        expect(page.get_by_test_id("live-pill")).to_have_attribute("data-state", "live")
        page.context.clear_cookies()
        sockets[-1].close(code=4401, reason="the session has expired")
        expect(page.get_by_test_id("login-key")).to_be_visible()
        expect(field).to_be_hidden()
        with page.expect_response("**/api/v1/session") as told:
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        assert told.value.json()["signed_in"] is False
        page.evaluate(SETTLED)
        expect(field).to_be_hidden()
        enter(page, stack.key)
        expect(field).to_be_visible()
        expect(field).to_have_value("typed_here")


def test_the_key_of_a_command_is_of_whoever_made_it(stack: TestStack) -> None:
    """Somebody else signs in behind them, with no reload: what they send is not theirs."""
    other = key_of(stack, "other", "admin", "read")
    post_first(stack)
    with signed_in(stack) as (page, complaints):
        opened(page, "/live")
        command = page.get_by_test_id("curl-command")
        page.get_by_test_id("make-key").click()
        expect(command).to_have_attribute("data-ready", "true")
        sign_out(page)
        enter(page, other)

        assert page.url.endswith("/live")
        expect(page.get_by_test_id("make-key")).to_be_visible()
        expect(command).to_have_attribute("data-ready", "false")
        assert "wk_" not in (command.text_content() or "").replace("wk_…", "")
        assert complaints.texts == []


def test_a_late_key_of_another_takes_no_place(stack: TestStack) -> None:
    """A key is shown once: one that somebody asked for who has gone hides none of who came."""
    other = key_of(stack, "later", "admin", "read", "ingest")
    post_first(stack)
    with signed_in(stack) as (page, complaints):
        opened(page, "/live")
        held = Held(page, "POST", "**/api/v1/keys")
        command = page.get_by_test_id("curl-command")
        page.get_by_test_id("make-key").click()
        held.wait()
        sign_out(page)
        enter(page, other)
        page.get_by_test_id("make-key").click()
        expect(command).to_have_attribute("data-ready", "true")
        shown = command.text_content()
        held.let_go()

        assert command.text_content() == shown
        assert complaints.texts == []


def test_a_tab_goes_where_another_one_goes(stack: TestStack) -> None:
    """Out with whoever signs out there, back where it was, and on as somebody else: no reload."""
    admin, reader = key_of(stack, "tabs", "admin", "read"), key_of(stack, "reads", "read")
    post_first(stack)
    with signed_in(stack) as (page, complaints):
        opened(page, "/live")
        made = page.get_by_test_id("make-key")
        expect(made).to_be_visible()
        page.evaluate("window.isTheSame = true")
        other = page.context.new_page()
        other.goto(page.url)
        sign_out(other)
        expect(page.get_by_test_id("login-key")).to_be_visible()
        enter(other, admin)
        page.wait_for_url("**/live", timeout=20_000)
        expect(made).to_be_visible()

        page.get_by_test_id("tail-filter").fill("typed.before")
        opened(other, "/login")
        enter(other, reader)
        expect(made).to_have_count(0)
        # What somebody typed, or was shown, is of their visit.
        expect(page.get_by_test_id("tail-filter")).to_have_value("")
        assert page.url.endswith("/live")
        assert page.evaluate("window.isTheSame")
        # What a list asks in the moment between is refused: the session ended in the other tab.
        assert [text for text in complaints.texts if "401" not in text] == []


def test_a_tab_that_slept_is_of_whoever_its_link_welcomes(stack: TestStack) -> None:
    """It has not heard of the sign-in in another tab, and its socket comes back with the cookie."""
    reader = key_of(stack, "wakes", "read")
    post_first(stack)
    with blank_page() as (page, complaints):
        sockets: list[WebSocketRoute] = []

        def through(socket: WebSocketRoute) -> None:
            socket.connect_to_server()
            sockets.append(socket)

        page.route_web_socket("**/api/v1/live", through)
        page.add_init_script(
            "Object.defineProperty(BroadcastChannel.prototype, 'onmessage', {set() {}})"
        )
        sign_in(stack, page)
        opened(page, "/live")
        made = page.get_by_test_id("make-key")
        expect(made).to_be_visible()
        other = page.context.new_page()
        other.goto(page.url.replace("/live", "/login"))
        enter(other, reader)
        other.wait_for_url(lambda url: "/login" not in url, timeout=20_000)
        expect(made).to_be_visible()
        sockets[-1].close(code=1001, reason="cut")

        expect(made).to_have_count(0)
        assert page.url.endswith("/live")
        assert [text for text in complaints.texts if "401" not in text] == []
