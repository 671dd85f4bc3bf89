"""An allowed lateness chosen from the data: what it says would be late is what then is late.

What is held against it is counted from the log itself, event by event (`account.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from account import account_for, read_log
from weir_local.client import ApiClient, ApiError
from weir_local.testing import TestStack

pytestmark = pytest.mark.stack

TYPE, OTHER_TYPE = "dev.chosen", "dev.chosen_not"
VANS, SHOPS = "chosen_vans", "chosen_shops"
# So many events of each lateness: of a thousand more than one is a minute late, and less than
# one five minutes. Both are far from the edges, so that no slow machine carries one over.
PROMPT, LATE, VERY_LATE = 3_000, 40, 2
LATE_MS, VERY_LATE_MS = 62_000, 300_000


class Received(NamedTuple):
    """An event as the log has it."""

    source: str
    late_ms: int
    received_ms: int


@pytest.fixture
def senders(stack: TestStack) -> Iterator[list[ApiClient]]:
    """Return a client of each source."""
    found = [sender(stack, source) for source in (VANS, SHOPS)]
    yield found
    for one in found:
        one.close()


def test_what_is_chosen_from_the_data_makes_as_many_late_as_was_said(
    stack: TestStack, senders: list[ApiClient]
) -> None:
    """Every share told is that of a count by hand; the same traffic then makes so many late."""
    vans, shops = senders
    send(vans, "first", PROMPT)
    send(vans, "first-late", LATE, LATE_MS)
    send(vans, "first-very", VERY_LATE, VERY_LATE_MS)
    send(shops, "shops", 10)
    send(shops, "other", 500, LATE_MS, OTHER_TYPE)
    told = stack.wait_until(lambda: told_of(stack, "1m", PROMPT + LATE + VERY_LATE + 10), "all")

    events = received(stack)
    assert_told_is(told["all"], events)
    assert [one["source"] for one in told["sources"]] == [SHOPS, VANS]
    for one in told["sources"]:
        assert_told_is(one, [e for e in events if e.source == one["source"]])
    assert told["untyped"] == 0
    chosen_ms = told["all"]["suggested_ms"]
    assert chosen_ms == 120_000

    stack.define("metric", "chosen", text(f"{chosen_ms // 1000}s"))
    stack.await_whole("chosen", "1s")
    from_ms = max(one.received_ms for one in received(stack))
    send(vans, "again", PROMPT)
    send(vans, "again-late", LATE, LATE_MS)
    send(vans, "again-very", VERY_LATE, VERY_LATE_MS)
    more = stack.wait_until(
        lambda: of_metric(stack, PROMPT + LATE + VERY_LATE + len(events)), "all of the second"
    )
    late = [e for e in received(stack) if e.received_ms > from_ms and e.late_ms > chosen_ms]
    assert len(late) == VERY_LATE
    found = stack.wait_until(lambda: corrections(stack, len(late)), "the corrections", 60)
    assert {s["source"] for one in found for s in one["sources"]} == {VANS}
    # And what was said of the first half is true of the second: it was the same traffic.
    assert at_edge(more["all"], chosen_ms) == at_edge(told["all"], chosen_ms) + len(late)


def sender(stack: TestStack, source: str) -> ApiClient:
    """Return a client with a key of a source, once ingest knows it."""
    made = stack.api("POST", "/keys", {"label": "", "scopes": ["ingest"], "source": source}).body
    client = ApiClient(stack.ingest_url, made["key"])
    stack.wait_until(lambda: knows(client), "ingest to know the key")
    return client


def knows(client: ApiClient) -> bool:
    """Return whether ingest takes the key."""
    try:
        send(client, "knock", 1, event_type="dev.chosen_knock")
    except ApiError as error:
        assert error.status == 401  # noqa: PT017  it is asked again
        return False
    return True


def send(
    client: ApiClient, seed: str, count: int, late_ms: int = 0, event_type: str = TYPE
) -> None:
    """Send events that happened some time ago."""
    for at in range(0, count, 500):
        moment = datetime.fromtimestamp(time.time() - late_ms / 1000, UTC)
        fixed = {"specversion": "1.0", "source": "t", "type": event_type}
        fixed["time"] = moment.isoformat(timespec="milliseconds")
        part = range(at, min(at + 500, count))
        client.post_events([{**fixed, "id": f"{seed}-{n}", "data": {}} for n in part])


def text(allowed: str) -> str:
    """Return the definition with an allowed lateness."""
    return (
        f"kind: metric\nname: chosen\nevents: {{type: {TYPE}}}\naggregates: [count]\n"
        f"resolution: 1s\nkeep: {{1s: 6h}}\nallowed_lateness: {allowed}\n"
    )


def told_of(stack: TestStack, allowed: str, events: int) -> dict[str, Any] | None:
    """Return what is told of a draft, once it is of so many events."""
    found: dict[str, Any] = stack.api("POST", "/lateness", {"text": text(allowed)}).body
    return found if found["all"]["events"] == events else None


def of_metric(stack: TestStack, events: int) -> dict[str, Any] | None:
    """Return what is told of the metric, once it is of so many events."""
    found: dict[str, Any] = stack.api("GET", "/lateness?metric=chosen").body
    return found if found["all"]["events"] == events else None


def received(stack: TestStack) -> list[Received]:
    """Return the events of the type that count, by the log alone."""
    return [
        Received(one["weirsource"], one["_received_ms"] - one["_time_ms"], one["_received_ms"])
        for one in account_for(read_log(stack.kafka_bootstrap)).counted
        if one["type"] == TYPE
    ]


def assert_told_is(told: dict[str, Any], events: list[Received]) -> None:
    """Assert that what is told at each length is what a count by hand finds."""
    assert told["events"] == len(events)
    for share in told["late"]:
        late = sum(one.late_ms > share["than_ms"] for one in events)
        assert (share["than_ms"], share["events"]) == (share["than_ms"], late)
        assert share["share"] == pytest.approx(late / len(events))
    offered = [share["than_ms"] for share in told["late"] if share["than_ms"] <= 86_400_000]
    few = (ms for ms in offered if 1_000 * sum(e.late_ms > ms for e in events) < len(events))
    assert told["suggested_ms"] == next(few, None)


def at_edge(told: dict[str, Any], edge_ms: int) -> int:
    """Return how many events came later than a length told."""
    return next(int(one["events"]) for one in told["late"] if one["than_ms"] == edge_ms)


def corrections(stack: TestStack, events: int) -> list[dict[str, Any]] | None:
    """Return what late events changed, once it is of so many events."""
    found: list[dict[str, Any]]
    found = stack.api("GET", "/corrections?metric=chosen").body["items"]
    return found if sum(one["events"] for one in found) == events else None
