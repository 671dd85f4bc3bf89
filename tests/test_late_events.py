"""Late events from ingest to what the API tells of them: how late they were, what they changed."""

from __future__ import annotations

import time
from typing import Any

import pytest
from weir_local.client import ApiClient, ApiError
from weir_local.testing import TestStack

pytestmark = pytest.mark.stack

NAME, TYPE, SOURCE = "tardy", "dev.tardy", "tardy_phones"
METRIC = (
    f"kind: metric\nname: {NAME}\nevents: {{type: {TYPE}}}\nby: [data.shop]\nvalue: data.x\n"
    "aggregates: [count, sum]\nresolution: 1s\nkeep: {1s: 6h}\nallowed_lateness: 5s\n"
)
# Beyond ten seconds, where the account of lateness has an edge, and the pane is final.
LATE_MS = 12_000


def test_late_events_are_told_with_their_source(stack: TestStack) -> None:
    """What a final pane was and is, by how many events of which source, and how late they were."""
    stack.define("metric", NAME, METRIC)
    stack.await_whole(NAME, "1s")
    made = stack.api("POST", "/keys", {"label": "", "scopes": ["ingest"], "source": SOURCE}).body
    phones = ApiClient(stack.ingest_url, made["key"])
    at_ms = stack.wait_until(lambda: send(phones, "prompt", 5), "ingest to know the key")
    stack.wait_until(lambda: counted_ms(stack) > at_ms + LATE_MS, "the pane to be final", 60)
    assert corrections(stack) == []
    before = stack.figures("panes")["weir_panes_corrections_total"]
    assert send(phones, "late", 1, at_ms)
    (one,) = stack.wait_until(lambda: corrections(stack), "a correction", 60)
    phones.close()

    assert (one["metric"], one["version"], one["resolution_ms"]) == (NAME, 1, 1_000)
    assert (one["t_ms"], one["by"]) == (at_ms // 1_000 * 1_000 + 1_000, {"shop": "a"})
    assert (one["was"]["count"], one["now"]["count"], one["events"]) == (5, 6, 1)
    assert (one["was"]["sum"], one["now"]["sum"]) == (10.0, 12.0)
    assert one["sources"] == [{"source": SOURCE, "events": 1}]
    stack.wait_until(
        lambda: stack.figures("panes")["weir_panes_corrections_total"] >= before + 1,
        "the figure of corrections",
    )
    assert corrections(stack, "&late_ms=0&source=" + SOURCE) == [one]
    assert corrections(stack, "&source=nobody") == []
    told = stack.wait_until(lambda: lateness(stack, events=6), "the account of lateness", 60)
    late = {share["than_ms"]: share["events"] for share in told["late"]}
    assert (late[10_000], late[3_600_000]) == (1, 0)
    assert LATE_MS <= told["max_ms"] < 3_600_000


def test_who_sent_nothing_that_counts_is_no_source(stack: TestStack) -> None:
    """Two sources send late events of one pane; of one `where` is not true."""
    name = "tardy_large"
    where = METRIC.replace(f"name: {NAME}", f"name: {name}\nwhere: data.x > 1")
    stack.define("metric", name, where)
    stack.await_whole(name, "1s")
    senders = []
    for source in ("tardy_large", "tardy_small"):
        body = {"label": "", "scopes": ["ingest"], "source": source}
        senders.append(ApiClient(stack.ingest_url, stack.api("POST", "/keys", body).body["key"]))
    large, small = senders
    at_ms = stack.wait_until(lambda: send(large, "on-time", 5), "ingest to know the key")
    stack.wait_until(lambda: send(small, "small", 1, x=0), "ingest to know the other key")
    stack.wait_until(lambda: counted_ms(stack) > at_ms + LATE_MS, "the pane to be final", 60)
    assert send(small, "late-small", 3, at_ms, x=0)
    assert send(large, "late-large", 2, at_ms)
    for phones in senders:
        phones.close()

    def found(further: str = "") -> list[dict[str, Any]]:
        items = stack.api("GET", f"/corrections?metric={name}{further}").body["items"]
        return items if sum(one["events"] for one in items) == 2 else []

    told = stack.wait_until(found, "the late events", 60)
    sources = [(one["sources_exact"], s["source"]) for one in told for s in one["sources"]]
    assert set(sources) == {(True, "tardy_large")}
    assert sum(s["events"] for one in told for s in one["sources"]) == 2
    of_small = stack.api("GET", f"/corrections?metric={name}&source=tardy_small").body["items"]
    assert of_small == []


def send(phones: ApiClient, seed: str, count: int, at_ms: int = 0, x: int = 2) -> int:
    """Send events of one instant, of now by default; return it, or 0 if the key is not known."""
    at_ms = at_ms or time.time_ns() // 1_000_000
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_ms // 1_000))
    fixed = {"specversion": "1.0", "source": "t", "type": TYPE, "data": {"shop": "a", "x": x}}
    told = {"time": f"{moment}.{at_ms % 1_000:03}Z"}
    try:
        phones.post_events([fixed | told | {"id": f"{NAME}-{seed}-{n}"} for n in range(count)])
    except ApiError as error:
        assert error.status == 401  # noqa: PT017  it is asked again
        return 0
    return at_ms


def counted_ms(stack: TestStack) -> int:
    """Return the received time up to which all is counted."""
    return int(stack.api("GET", "/status").body["fresh"]["processed_through_ms"])


def corrections(stack: TestStack, further: str = "") -> list[dict[str, Any]]:
    """Return what late events changed."""
    found: list[dict[str, Any]]
    found = stack.api("GET", f"/corrections?metric={NAME}{further}").body["items"]
    return found


def lateness(stack: TestStack, events: int) -> dict[str, Any] | None:
    """Return how late the events of the source were, once so many are told."""
    found = stack.api("GET", "/lateness").body["sources"]
    return next((s for s in found if (s["source"], s["events"]) == (SOURCE, events)), None)
