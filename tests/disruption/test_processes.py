"""Crashes do not change numbers, and what was accepted is stored (promises 1, 2, 4, 7)."""

from __future__ import annotations

import random
import time
import urllib.request

import psutil
import pytest
from disruption.rig import PACE, promised_s
from disruption.sketched import assert_sketches, define_sketched
from equality import assert_equal_to_recount, await_load, begin
from load import Load
from recount import Api
from weir.clock import SystemClock
from weir_local.testing import TestStack

FIRST_RESULT_S = promised_s(60.0)

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1500)]


def processed_through_ms(stack: TestStack) -> int:
    """Return up to when every event is in the served numbers."""
    fresh = stack.api("GET", "/status").body["fresh"]
    return int(fresh["processed_through_ms"] or 0)


def await_new_result(stack: TestStack) -> None:
    """Wait until events received from now on are counted."""
    now_ms = SystemClock().now_ms()
    stack.wait_until(lambda: processed_through_ms(stack) > now_ms, "a new result", FIRST_RESULT_S)


@pytest.mark.disruption  # seven restarts of a part: minutes
def test_killed_driver_redis_and_kafka_leave_equal_numbers(own_stack: TestStack, seed: int) -> None:
    """The driver killed five times under load, then Redis, then Kafka: equal to the recount."""
    chance = random.Random(seed)  # noqa: S311
    define_sketched(own_stack)
    with begin(own_stack, seed) as load:
        for part in ("panes",) * 5 + ("redis", "kafka"):
            target = load.acknowledged + chance.randrange(200, 2000)
            await_load(own_stack, load, target)
            own_stack.kill(part)
            began_s = time.monotonic()
            own_stack.restart(part)
            revive(own_stack)
            await_new_result(own_stack)
            assert time.monotonic() - began_s < FIRST_RESULT_S
    assert_all_equal(own_stack, load)


def assert_all_equal(stack: TestStack, load: Load) -> None:
    """Compare ledger and panes with the log, those with sketches, too."""
    events = assert_equal_to_recount(stack, load)
    assert_sketches(stack, Api(stack.dashboard_url, stack.key), events)


def revive(stack: TestStack) -> None:
    """Start again what ended because another part was killed, as the keeper does."""
    for name in ("ingest", "panes", "dashboard"):
        if stack.stack.parts[name].pid() is None:
            stack.restart(name)


def test_kafka_stopped_for_a_minute(own_stack: TestStack, seed: int) -> None:
    """Without Kafka: 503 in time, flat memory, stale on the board; then nothing is missing."""
    define_sketched(own_stack)
    with begin(own_stack, seed) as load:
        await_load(own_stack, load, 3000)
        ingest = psutil.Process(own_stack.stack.parts["ingest"].pid() or 0)
        before_bytes = ingest.memory_info().rss
        stopped_s, stopped_ms = time.monotonic(), SystemClock().now_ms()
        own_stack.kill("kafka")
        seen = watch_outage(own_stack, ingest, until_s=stopped_s + 60)
        own_stack.restart("kafka")
        revive(own_stack)
        await_new_result(own_stack)
    refused = [r for r in load.refusals if stopped_s <= r.at_s]
    first = next(r for r in refused if r.status == 503)
    assert first.at_s + first.took_s - stopped_s <= 5 + load.every_s
    assert {r.status for r in refused} == {503}
    assert all(1 <= int(r.retry_after) <= 5 for r in refused)
    assert abs(seen.largest_bytes - before_bytes) <= 50_000_000
    assert seen.probes == {200}
    assert seen.stale_since_ms is not None
    assert abs(seen.stale_since_ms - stopped_ms) < 10_000
    assert_all_equal(own_stack, load)


class Outage:
    """What was seen while Kafka was away."""

    def __init__(self) -> None:
        self.largest_bytes = 0
        self.probes: set[int] = set()
        self.stale_since_ms: int | None = None


def watch_outage(stack: TestStack, ingest: psutil.Process, *, until_s: float) -> Outage:
    """Look at ingest and at the freshness until a moment of the monotonic clock."""
    seen = Outage()
    ops = stack.home.ports["ingest ops"]

    def look() -> bool:
        seen.largest_bytes = max(seen.largest_bytes, ingest.memory_info().rss)
        for path in ("/livez", "/readyz"):
            with urllib.request.urlopen(f"http://127.0.0.1:{ops}{path}", timeout=5) as answer:
                seen.probes.add(answer.status)
        fresh = stack.api("GET", "/status").body["fresh"]
        if fresh["status"] == "stale":
            seen.stale_since_ms = fresh["since_ms"]
        return time.monotonic() > until_s

    stack.wait_until(look, "the end of the outage", 90 * PACE)
    return seen
