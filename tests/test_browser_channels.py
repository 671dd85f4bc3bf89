"""Channels, silences and acknowledgements in a real browser, down to what a receiver gets."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from threading import Event

import pytest
from alerts_job import SECRET, Receiver
from browser import SIZES, accessibility_faults, opened, signed_in
from playwright.sync_api import Page, expect
from slow_receivers import HANGS, SlowReceiver
from weir.clock import SystemClock
from weir_local.client import ApiClient
from weir_local.testing import TestStack

METRIC = """
kind: metric
name: {name}
events: {{type: {name}}}
by: [data.shop]
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
by: [shop]
above: 0
"""
WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a receiver on loopback."""
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def name(stack: TestStack) -> str:
    """Return a metric and a rule that fires in a shop while events of it come."""
    name = f"acted_{uuid.uuid4().hex[:6]}"
    stack.define("metric", name, METRIC.format(name=name))
    stack.await_whole(name, "3s")
    stack.define("rule", name, RULE.format(name=name))
    return name


def said(name: str) -> str:
    """Return a rule's name as the pages say it."""
    return name.replace("_", " ").capitalize()


@contextmanager
def coming(stack: TestStack, name: str) -> Iterator[None]:
    """Post events all the while: what fires goes on, however long its pages take."""
    client = ApiClient(stack.ingest_url, stack.key, patience_s=60)
    over = Event()

    def post() -> None:
        while not over.wait(0.5):
            number = f"{name}-{SystemClock().now_ms()}"
            event = {"specversion": "1.0", "id": number, "source": "/acted", "type": name}
            client.post_events([{**event, "data": {"shop": "it's"}}])

    with closing(client), ThreadPoolExecutor(1) as pool:
        posting = pool.submit(post)
        try:
            yield
        finally:
            over.set()
        posting.result()


def await_firing(page: Page, name: str) -> None:
    """Wait until the list says that it fires."""
    row = page.locator("[data-testid=alert-row][data-state=firing]", has_text=said(name))
    expect(row).to_have_count(1, timeout=30_000)


def test_a_channel_is_made_and_tested(stack: TestStack, receiver: Receiver) -> None:
    """The table says what the receiver really answered: taken, refused, taken again."""
    name = f"hook_{uuid.uuid4().hex[:6]}"
    (stack.home.secrets / "test_hook").write_text(SECRET)
    with signed_in(stack) as (page, complaints):
        opened(page, "/alerts?tab=channels")
        page.get_by_test_id("new-channel").click()
        form = page.get_by_test_id("channel-form")
        form.get_by_label("Name").fill(name)
        form.get_by_label("Address").fill(receiver.url)
        form.get_by_label("Secret").fill("test_hook")
        assert accessibility_faults(page) == []
        page.get_by_test_id("channel-store").click()
        row = page.locator(f"[data-channel={name}]")
        expect(row).to_contain_text("webhook to 127.0.0.1")
        expect(row).to_contain_text("none yet")

        for status, told in ((200, "Delivered"), (410, "Refused"), (200, "Delivered")):
            receiver.statuses.append(status)
            row.get_by_test_id("test-channel").click()
            answer = row.get_by_test_id("test-answer")
            expect(answer).to_have_text(re.compile(rf"^{told} ?{status} in \d+ ms"))
            last = row.locator("td").nth(2)
            expect(last).to_contain_text(told)
            broken = re.compile("nothing delivered since")
            (expect(last).to_contain_text if status == 410 else expect(last).not_to_contain_text)(
                broken
            )
        assert accessibility_faults(page) == []
        assert complaints.texts == []
    assert [body["title"] for body in receiver.bodies] == [f"Test of channel {name}"] * 2


def test_a_receiver_that_says_nothing_is_told(stack: TestStack) -> None:
    """Its row says that it failed, after how long and why, and since when nothing arrives."""
    name = f"mute_{uuid.uuid4().hex[:6]}"
    (stack.home.secrets / "test_hook").write_text(SECRET)
    with SlowReceiver(HANGS["says nothing"]) as receiver, signed_in(stack) as (page, complaints):
        hook = f'{{url: "{receiver.url}", secret: "secret://test_hook"}}'
        stack.define("channel", name, f"kind: channel\nname: {name}\nwebhook: {hook}\n")
        opened(page, "/alerts?tab=channels")
        row = page.locator(f"[data-channel={name}]")
        row.get_by_test_id("test-channel").click()
        answer, last = row.get_by_test_id("test-answer"), row.locator("td").nth(2)
        told = re.compile(r"Failed ?1\d{4} ms.*no answer within 10 s")
        expect(answer).to_have_text(told, timeout=30_000)
        expect(last).to_contain_text(told)
        expect(last).to_contain_text(re.compile(r"nothing delivered since \d"))
        assert complaints.texts == []


def test_an_alert_is_taken_on_with_two_taps(stack: TestStack, name: str) -> None:
    """On a phone: the alert, the button; it says by whom, and can be given back."""
    with signed_in(stack, "phone") as (page, complaints), coming(stack, name):
        opened(page, "/alerts")
        await_firing(page, name)
        page.get_by_test_id("alert-row").filter(has_text=said(name)).first.click()
        button = page.get_by_test_id("acknowledge")
        expect(button).to_have_text("Acknowledge")
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        button.click()
        expect(page.get_by_test_id("taken-on")).to_contain_text(re.compile(r"taken on by key:\w+"))
        expect(page.get_by_test_id("happened")).to_contain_text("Taken on by key:")
        assert not page.evaluate(WIDE)
        assert accessibility_faults(page) == []
        page.get_by_role("button", name="Give back").click()
        expect(page.get_by_test_id("taken-on")).to_have_count(0)
        expect(page.get_by_test_id("happened")).to_contain_text("Given back by key:")
        assert complaints.texts == []


def test_a_silence_hides_what_its_preview_said(stack: TestStack, name: str) -> None:
    """Made from an alert by a key, seen beside it and in the list, ended there."""
    with signed_in(stack) as (page, complaints), coming(stack, name):
        opened(page, "/alerts")
        await_firing(page, name)
        page.get_by_test_id("alert-row").filter(has_text=said(name)).first.click()
        page.get_by_test_id("acknowledge").wait_for()
        page.keyboard.press("s")
        form = page.get_by_test_id("silence-form")
        expect(form.get_by_label("Labels")).to_have_value("shop = 'it''s'")
        expect(form.get_by_test_id("silence-hides")).to_have_text(
            re.compile(r"^Hides 1 alert that fires now; \d+ began within a day\.$")
        )
        with page.expect_response(lambda answer: answer.status == 422):
            form.get_by_label("Labels").fill("shop = ")
        expect(form.get_by_test_id("silence-hides")).not_to_contain_text("Hides")
        form.get_by_label("Labels").fill("shop = 'it''s'")
        form.get_by_label("Why").fill("a <b>release</b>")
        assert accessibility_faults(page) == []
        page.get_by_test_id("silence-store").click()
        expect(page.get_by_test_id("silenced")).to_contain_text("silenced by s_")

        page.get_by_role("radio", name="Silences").click()
        row = page.get_by_test_id("silence-row").filter(has_text=said(name))
        expect(row).to_contain_text("shop = it's")
        expect(row).to_contain_text("a <b>release</b>")
        assert accessibility_faults(page) == []
        page.set_viewport_size({"width": SIZES["phone"][0], "height": SIZES["phone"][1]})
        assert not page.evaluate(WIDE)
        row.get_by_test_id("end-silence").click()
        expect(row).to_contain_text("over since")
        expect(row.get_by_test_id("end-silence")).to_have_count(0)
        # Of what was refused the browser itself writes an error.
        assert [text for text in complaints.texts if "status of 422" not in text] == []
