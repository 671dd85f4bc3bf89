"""Estimates in answers about rules and alerts have their ends (promise 10)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import datasketches as ds
import pytest
from weir.alerts.machine import Phase, Point
from weir.alerts.step import Kind, Transition
from weir.rows import Row
from weir.sketches import kll_k

from .test_alerts import Job, put_rule, rule_text

if TYPE_CHECKING:
    from .conftest import Engine, Running

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

METRIC = """
kind: metric
name: {name}
events: {{type: web.request}}
value: data.ms
unit: ms
by: [data.region]
aggregates: [count, p95]
resolution: 10s
allowed_lateness: 1m
"""
# Each of 0 to 19,999 once: the 95th of a hundred is 19,000.
VALUES = 20_000
P95 = 19_000
FIRED = Point(120_000, "p", 40, 617.2, 592.0, 648.1)
RECOVERED = Point(240_000, "p", 50, 98.5, 91.0, 104.0)


@pytest.fixture
def latency(running: Running, engine: Engine, request: pytest.FixtureRequest) -> str:
    """Return a metric with more values in the newest minute than its sketch keeps."""
    name = "latency_" + str(abs(hash(request.node.name)) % 10**9)
    vid = running.put("default", "metric", name, METRIC.format(name=name))
    sketch = ds.kll_doubles_sketch(kll_k([95.0]))
    for value in range(VALUES):
        sketch.update(float(value))
    row = Row(VALUES, float(sum(range(VALUES))), 0.0, VALUES - 1.0, kll=sketch.serialize())
    now_s = int(time.time()) // 60 * 60
    engine.commit({(vid, 10, now_s - 10): {"=eu": row}}, through_ms=now_s * 1000)
    return name


def ends(told: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return a value between its ends."""
    return told["low"], told["value"], told["high"]


def test_the_message_of_a_rule_on_a_percentile(running: Running, latency: str) -> None:
    """The value of now lies between ends that hold the exact one, and are not the same."""
    text = rule_text("slow", latency, aggregate="p95", above=400)
    with running.client() as client:
        found = client.post("/rules/preview", json={"rule": text}).json()
        nowhere = rule_text("slow", latency, aggregate="p95", above=400, where="region = 'us'")
        none = client.post("/rules/preview", json={"rule": nowhere}).json()
    low, value, high = ends(found)
    assert low < value < high
    assert low <= P95 <= high
    assert "error band" in found["text"]
    assert ends(none) == (None, None, None)


def test_where_a_rule_on_a_percentile_stands(running: Running, latency: str) -> None:
    """In the list of rules, of one rule, and in all that happened to its alert."""
    name = latency.replace("latency", "slow")
    job = Job(running, put_rule(running, name, rule_text(name, latency, aggregate="p95")))
    fired = Transition(Kind.FIRING, 120_000, 120_000, 60_000, point=FIRED)
    alert_id = job.tell(fired, phase=Phase.FIRING)
    silent = Transition(Kind.NO_DATA, 180_000, 180_000, 60_000)
    job.tell(silent, phase=Phase.FIRING, group=("us",))
    with running.client() as client:
        (listed,) = [one for one in client.get("/rules").json()["items"] if one["name"] == name]
        alone = client.get(f"/rules/{name}").json()
        told = {one["by"]["region"]: ends(one) for one in listed["groups"]}
        assert told == {"eu": (592.0, 617.2, 648.1), "us": (None, None, None)}
        assert alone["groups"] == listed["groups"]

        ended = Transition(Kind.RESOLVED, 240_000, 240_000, 60_000, point=RECOVERED)
        job.tell(ended, phase=Phase.OK)
        happened = client.get(f"/alerts/{alert_id}").json()["happened"]
        assert [ends(one) for one in happened] == [(592.0, 617.2, 648.1), (91.0, 98.5, 104.0)]
