"""An alert from a POST to a webhook, through ingest, Kafka, Spark, Redis and the alerts job."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from alerts_job import SECRET, Receiver
from weir.clock import SystemClock
from weir_local.client import ApiError
from weir_local.testing import TestStack
from weir_local.waiting import wait_until

pytestmark = pytest.mark.stack

METRIC = """
kind: metric
name: {name}
events: {{type: {name}}}
by: [data.shop]
aggregates: [count]
resolution: 1s
keep: {{1s: 6h}}
allowed_lateness: 3s
"""
CHANNEL = """
kind: channel
name: {name}
webhook: {{url: "{url}", secret: "secret://test_hook"}}
follow: all
"""
RULE = """
kind: rule
name: {name}
metric: {name}
aggregate: count
window: {{length: 5s, step: 1s}}
by: [shop]
above: 20
message: "{{value}} orders dropped in {{shop}}"
route: {{channels: [{name}]}}
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a receiver on loopback."""
    receiver = Receiver()
    yield receiver
    receiver.close()


def test_a_burst_fires_and_resolves(stack: TestStack, receiver: Receiver) -> None:
    """One shop drops orders: it alone fires, is confirmed and resolved, under one key."""
    name = f"dropped_{uuid.uuid4().hex[:8]}"
    (stack.home.secrets / "test_hook").write_text(SECRET)
    stack.define("metric", name, METRIC.format(name=name))
    stack.define("channel", name, CHANNEL.format(name=name, url=receiver.url))
    stack.define("rule", name, RULE.format(name=name))

    stack.await_whole(name, "5s")
    events = [
        {
            "specversion": "1.0",
            "id": f"{name}-{n}",
            "source": "test",
            "type": name,
            "data": {"shop": "a" if n % 6 else "b"},
        }
        for n in range(60)
    ]
    # At the end of a second a window could be looked at that has only a part of the burst.
    clock = SystemClock()
    wait_until(lambda: clock.now_ms() % 1000 < 200, timeout_s=10, what="a second that begins")
    stack.post(events)
    wait_until(
        lambda: "resolved" in [body["kind"] for body in receiver.bodies],
        timeout_s=60,
        what="the alert resolved",
    )

    told = {body["kind"]: body for body in receiver.bodies}
    # Where counting falls behind, a window is final already when it is looked at first.
    confirmed = told.pop("confirmed", told["firing"])
    assert confirmed["verdict"] == "confirmed"
    assert told.keys() == {"firing", "resolved"}
    assert {body["labels"]["shop"] for body in receiver.bodies} == {"a"}
    assert len({body["dedup_key"] for body in receiver.bodies}) == 1
    assert confirmed["value"] == told["firing"]["value"] > 20
    assert told["firing"]["text"].startswith(f"{told['firing']['value']:g} orders dropped in a")
    assert receiver.forged == 0


def test_a_rule_that_its_metric_cannot_answer_is_refused(stack: TestStack) -> None:
    """Before it is stored, with what the metric has."""
    name = f"wrong_{uuid.uuid4().hex[:8]}"
    stack.define("metric", name, METRIC.format(name=name))
    wrong = RULE.format(name=name).replace("aggregate: count", "aggregate: p95")
    with pytest.raises(ApiError, match=f"one that {name} keeps"):
        stack.define("rule", name, wrong)
