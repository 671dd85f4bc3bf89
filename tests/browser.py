"""A real Chromium for tests, and everything that a page complains about."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    ConsoleMessage,
    Locator,
    Page,
    Route,
    WebSocket,
    expect,
    sync_playwright,
)
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from weir_local.signin import sign_in_link
from weir_local.testing import TestStack
from weir_local.waiting import wait_until

WEB = Path(__file__).parent.parent / "services" / "dashboard" / "web"
AXE = WEB / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SIZES = {"desk": (1440, 900), "phone": (390, 844)}
# What the browser itself writes when a server that was stopped on purpose does not answer.
AWAY = (
    *("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_SOCKET_NOT_CONNECTED"),
    "ERR_EMPTY_RESPONSE",
)
# Returns once what a page was told is on its screen.
SETTLED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
# What a bar of the contract bounds says so itself; a busy machine is no fault.
expect.set_options(timeout=20_000)


def chromium_path() -> str:
    """Return the path of a Chromium that starts here.

    Raises:
        subprocess.CalledProcessError: If there is none; its output says what to do.
    """
    found = subprocess.run(  # noqa: S603
        ["node", str(WEB / "e2e" / "chromium.mjs")],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


def refuse(route: Route, status: int, code: str, message: str) -> None:
    """Answer a request as the API refuses one."""
    route.fulfill(status=status, json={"status": status, "code": code, "message": message})


@dataclass
class Complaints:
    """What a page wrote to its console as an error, threw, or had refused by its policy."""

    texts: list[str] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        """Collect from a page, from its first script on."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.texts.append(f"thrown: {error}"))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', e =>"
            " console.error('CSP: ' + e.violatedDirective + ' ' + e.blockedURI))"
        )

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(word in message.text for word in AWAY):
            self.texts.append(message.text)


class Followed:
    """What a page follows live, as the server has confirmed it.

    An event that comes before is not told: nobody who posts one at once may count on seeing it.
    """

    def __init__(self, page: Page) -> None:
        """Listen to each connection that the page opens from now on."""
        self._page = page
        self._asked: dict[int, dict[str, Any]] = {}
        self._topics: list[dict[str, Any]] = []
        page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        # Each connection begins with no subscription, that of a page loaded anew as well.
        self._asked, self._topics = {}, []
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, text: str | bytes) -> None:
        frame = json.loads(text)
        if frame["op"] == "subscribe":
            self._asked[frame["id"]] = frame

    def _received(self, text: str | bytes) -> None:
        frame = json.loads(text)
        if frame["op"] == "subscribed" and frame["id"] in self._asked:
            self._topics.append(self._asked[frame["id"]])

    def await_tail(self, stack: TestStack, **wanted: Any) -> None:
        """Return once the page follows the tail through such a filter; none is all of it."""

        def is_followed() -> bool:
            # The handlers run only while Playwright waits.
            self._page.wait_for_timeout(50)
            return any(
                (topic["to"], topic.get("filter")) == ("tail", wanted) for topic in self._topics
            )

        stack.wait_until(is_followed, f"the tail with the filter {wanted}")


class Held:
    """The first request of a page by a method to an address, held until it is let go."""

    def __init__(self, page: Page, method: str, address: str) -> None:
        """Hold it from now on.

        The route stays: when one goes while a page asks, Chromium stops intercepting, and a request
        that is under way in that moment may never be answered.
        """
        self._page = page
        self._method = method
        self._route: Route | None = None
        page.route(address, self._hold)

    def _hold(self, route: Route) -> None:
        if route.request.method != self._method or self._route is not None:
            route.fallback()
        else:
            self._route = route

    def wait(self) -> Route:
        """Return it once it is on its way."""

        def is_held() -> Route | None:
            # The handler runs only while Playwright waits.
            self._page.wait_for_timeout(50)
            return self._route

        return wait_until(is_held, timeout_s=20, what=f"a {self._method} on its way")

    def let_go(self) -> None:
        """Let the server have it; return once the page has its answer and shows it."""
        route = self.wait()
        with self._page.expect_request_finished(lambda one: one == route.request):
            route.continue_()
        self._page.evaluate(SETTLED)


@contextmanager
def blank_page(size: str = "desk", theme: str = "light") -> Iterator[tuple[Page, Complaints]]:
    """Yield a page of a browser of its own, at no address yet, and its complaints."""
    width, height = SIZES[size]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
        )
        page = context.new_page()
        complaints = Complaints()
        complaints.listen(page)
        yield page, complaints
        browser.close()


def door(stack: TestStack) -> str:
    """Return an address that signs in once, at the name of this machine that takes a cookie."""
    return sign_in_link(stack.home).replace("127.0.0.1", "localhost")


def sign_in(stack: TestStack, page: Page) -> None:
    """Sign in by a single-use link; return once the page has left the door.

    Raises:
        AssertionError: If it stays there; with what the page says.
    """
    page.goto(door(stack))
    page.get_by_test_id("live-pill").wait_for(timeout=30_000)
    _await_in(page)


def enter(page: Page, key: str) -> None:
    """Sign in with a key, at the door; return once the page has left it.

    Raises:
        AssertionError: If it stays there; with what the page says.
    """
    page.get_by_test_id("login-key").fill(key)
    page.get_by_test_id("login-enter").click()
    _await_in(page)


def _await_in(page: Page) -> None:
    try:
        page.wait_for_url(lambda url: "/login" not in url, timeout=30_000)
    except PlaywrightTimeoutError as error:
        msg = f"still at {page.url}: {page.locator('main').inner_text()}"
        raise AssertionError(msg) from error


def sign_out(page: Page) -> None:
    """Sign out by the menu."""
    page.get_by_label("More").click()
    page.get_by_role("button", name="Sign out").click()


@contextmanager
def signed_in(
    stack: TestStack, size: str = "desk", theme: str = "light"
) -> Iterator[tuple[Page, Complaints]]:
    """Yield a page that has signed in by a single-use link, and its complaints."""
    with blank_page(size, theme) as (page, complaints):
        sign_in(stack, page)
        yield page, complaints


def opened(page: Page, path: str) -> None:
    """Go to a page of this dashboard."""
    page.goto("/".join(page.url.split("/")[:3]) + path)


def drag(page: Page, handle: Locator, by_px: float) -> None:
    """Drag a handle up or down by the pointer."""
    box = handle.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + by_px / 2, steps=4)
    page.mouse.move(x, y + by_px, steps=4)
    page.mouse.up()


def limit_handle(page: Page) -> Locator:
    """Return the handle on the chart."""
    return page.get_by_role("slider", name="Limit on the chart")


def accessibility_faults(page: Page) -> list[str]:
    """Return what axe finds on a page: rule and the elements it concerns."""
    page.evaluate(AXE.read_text())
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {[node['html'][:120] for node in rule['nodes'][:3]]}"
        for rule in found["violations"]
    ]
