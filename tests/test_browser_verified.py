"""A metric's page says that an audit has compared it with the log, and of which time."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
import redis
import weblog
from browser import opened, signed_in
from playwright.sync_api import expect
from weir import names
from weir.clock import SystemClock
from weir_local.testing import TestStack

METRIC = """
kind: metric
name: {name}
events: {{type: {name}}}
aggregates: [count]
resolution: 1s
allowed_lateness: 1s
"""
EVENTS = 7

pytestmark = [pytest.mark.stack, pytest.mark.browser]


@pytest.fixture
def name(stack: TestStack) -> str:
    """Return the name of a metric that has counted some events."""
    name = f"checked_{uuid.uuid4().hex[:6]}"
    stack.define("metric", name, METRIC.format(name=name))
    stack.await_whole(name, "10s")
    now_ms = SystemClock().now_ms()
    head = {"specversion": "1.0", "source": "/checked", "type": name, "time": weblog.iso(now_ms)}
    events = [{**head, "id": f"{name}-{n}", "data": {}} for n in range(EVENTS)]
    weblog.post(stack.ingest_url, stack.key, events)
    return name


def test_that_a_metric_is_verified_is_told_on_its_page(stack: TestStack, name: str) -> None:
    """Before an audit nothing is said; after it when, how many panes, and of which time."""
    with signed_in(stack) as (page, complaints):
        opened(page, f"/m/{name}")
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        badge = page.get_by_test_id("verified")
        expect(badge).to_have_count(0)

        told = stack.wait_until(lambda: audited(stack, name), "panes of it to be audited", 60)
        page.reload()

        expect(badge).to_have_text(re.compile(r"^verified \d"))
        expect(badge).to_have_class(re.compile(r"\bgood\b"))
        expect(badge).to_have_attribute(
            "title",
            re.compile(rf"^{told['panes']} panes of version 1 .+, with {told['events']} events"),
        )
        assert complaints.texts == []


def test_what_was_verified_before_an_edit_or_a_rebuild_is_withdrawn(
    stack: TestStack, name: str
) -> None:
    """Another version serves, or a shard was lost: what an audit said was of other numbers."""
    with signed_in(stack) as (page, complaints):
        opened(page, f"/m/{name}")
        badge = page.get_by_test_id("verified")
        stack.wait_until(lambda: audited(stack, name), "panes of it to be audited", 60)
        page.reload()
        expect(badge).to_have_class(re.compile(r"\bgood\b"))

        edit(stack, name)
        page.reload()
        expect(badge).to_have_text(re.compile(r"^verified \d.+, before version 2 served$"))
        expect(badge).not_to_have_class(re.compile(r"\bgood\b"))

        stack.wait_until(lambda: audited(stack, name), "panes of version 2 to be audited", 60)
        assert withdrawn(stack, name) is None
        redis.Redis.from_url(stack.redis_url).delete(names.mark_key(0))
        stack.wait_until(lambda: withdrawn(stack, name) == "epoch", "a new epoch", 60)
        page.reload()
        expect(badge).to_have_text(re.compile(r"^verified \d.+, before it was counted anew$"))
        expect(badge).not_to_have_class(re.compile(r"\bgood\b"))
        assert complaints.texts == []
    # What comes after this on the same stack finds a shard that is whole.
    stack.await_whole(name, "10s")


def test_that_audits_compare_nothing_is_told_on_its_page(stack: TestStack, name: str) -> None:
    """What an earlier one has verified is told as what it is, without a color; and why."""
    with signed_in(stack) as (page, complaints):
        opened(page, f"/m/{name}")
        badge = page.get_by_test_id("verified")
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        expect(badge).to_have_count(0)

        audit(stack, name, most_records=1)
        page.reload()
        expect(badge).to_have_text(re.compile(r"^audits compare nothing since \d"))
        expect(badge).not_to_have_class(re.compile(r"\bgood\b"))

        stack.wait_until(lambda: audited(stack, name), "panes of it to be audited", 60)
        page.reload()
        expect(badge).to_have_text(re.compile(r"^verified [^,]+$"))
        expect(badge).to_have_class(re.compile(r"\bgood\b"))

        audit(stack, name, most_records=1)
        page.reload()
        expect(badge).to_have_text(re.compile(r"^verified \d.+, audits compare nothing since \d"))
        expect(badge).not_to_have_class(re.compile(r"\bgood\b"))
        why = "compared nothing: no pane was drawn from as much of the log as an audit may read"
        expect(badge).to_have_attribute("title", re.compile(rf" panes of version 1 .+{why}$"))
        assert complaints.texts == []


def edit(stack: TestStack, name: str) -> None:
    """Give a metric another text, and wait until that version serves."""
    text = METRIC.format(name=name) + "unit: ms\n"
    stack.api("PUT", f"/definitions/metric/{name}", {"text": text}, {"If-Match": '"1"'})
    stack.wait_until(
        lambda: stack.api("GET", f"/metrics/{name}").body["version"] == 2, "version 2 to serve", 60
    )


def withdrawn(stack: TestStack, name: str) -> Any:
    """Return by what the newest audit's word is withdrawn."""
    return stack.api("GET", f"/metrics/{name}").body["verified"]["withdrawn_by"]


def audit(stack: TestStack, name: str, **more: Any) -> None:
    """Have a metric audited, and wait until that has ended."""
    asked = {"job": "audit", "metrics": [name], "last": "5m", **more}
    job = stack.api("POST", "/jobs", asked).body["id"]
    stack.wait_until(
        lambda: stack.api("GET", f"/jobs/{job}").body["state"] == "done", "the audit", 60
    )


def audited(stack: TestStack, name: str) -> dict[str, Any] | None:
    """Have a metric audited, and return what is told of it, once panes of it were compared."""
    audit(stack, name)
    told: dict[str, Any] | None = stack.api("GET", f"/metrics/{name}").body["verified"]
    return told if told and told["panes"] and not told["withdrawn_by"] else None
