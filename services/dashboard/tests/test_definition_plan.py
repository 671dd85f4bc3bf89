"""What storing several definitions would do: `POST /definitions/plan`."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Running

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
METRIC = "kind: metric\nname: {name}\nevents: {{type: order.placed}}\nkeep: {{10s: 1h}}\n"
RULE = "kind: rule\nname: {name}\nmetric: {metric}\naggregate: count\nwindow: 1m\nabove: 5\n"


def metric(name: str, more: str = "") -> dict[str, str]:
    """Return a metric as it is sent."""
    return {"kind": "metric", "name": name, "text": METRIC.format(name=name) + more}


def rule(name: str, on: str) -> dict[str, str]:
    """Return a rule as it is sent."""
    return {"kind": "rule", "name": name, "text": RULE.format(name=name, metric=on)}


def planned(running: Running, *definitions: dict[str, str]) -> list[dict[str, Any]]:
    """Ask for a plan; return its items."""
    with running.client() as http:
        answer = http.post("/definitions/plan", json={"definitions": list(definitions)})
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def put(running: Running, one: dict[str, str]) -> Any:
    """Store a definition that is not there; return the answer."""
    path = f"/definitions/{one['kind']}/{one['name']}"
    with running.client() as http:
        return http.put(path, json={"text": one["text"]}, headers={"if-none-match": "*"})


def test_a_rule_may_come_with_its_metric(running: Running) -> None:
    """Each is judged beside those before it; the metric says what it costs; nothing is stored."""
    found = planned(running, metric("planned"), rule("planned_rule", "planned"))
    assert [one["ok"] for one in found] == [True, True]
    assert (found[0]["estimate"]["rows"], found[1]["estimate"]) == (360, None)
    new = [(one["diff"]["old_version"], one["diff"]["same"]) for one in found]
    assert new == [(None, False), (None, False)]
    with running.client() as http:
        assert http.get("/definitions/metric/planned").status_code == 404


def test_a_refused_metric_stands_beside_nothing(running: Running) -> None:
    """Its rule is refused as it would be where it is stored, and so is one that comes first."""
    bad = metric("planned_badly", "max_serieses: 5\n")
    found = planned(running, bad, rule("r", "planned_badly"), metric("after"), rule("q", "after"))
    assert [one["ok"] for one in found] == [False, False, True, True]
    assert found[0]["errors"][0]["pointer"] == "/max_serieses"
    assert (found[1]["code"], found[1]["diff"]) == ("metric_unknown", None)
    first, _ = planned(running, rule("r", "planned_late"), metric("planned_late"))
    assert first["code"] == "metric_unknown"


def test_it_refuses_what_storing_refuses(running: Running) -> None:
    """A kind with routes of its own, a rule on nothing: the same code and words."""
    wrong = [rule("lonely", "nowhere"), {"kind": "key", "name": "k", "text": "kind: key\n"}]
    for one in wrong:
        (found,), refused = planned(running, one), put(running, one).json()
        assert (found["code"], found["message"]) == (refused["code"], refused["message"])
        with running.client() as http:
            assert http.post("/definitions/validate", json=one).json()["code"] == found["code"]


def test_what_is_in_force_is_compared(running: Running) -> None:
    """By members; and word for word it is never refused, since storing it changes nothing."""
    for one in (metric("planned_twice"), metric("going"), rule("stays", "going")):
        assert put(running, one).status_code == 201
    with running.client() as http:
        gone = http.delete("/definitions/metric/going", headers={"if-match": '"1"'})
    assert gone.is_success
    changed, same = planned(running, metric("planned_twice", "unit: ms\n"), rule("stays", "going"))
    assert changed["diff"]["members"] == [{"pointer": "/unit", "old": "", "new": "ms"}]
    assert (same["ok"], same["diff"]["same"]) == (True, True)


@pytest.mark.parametrize(
    ("definitions", "words"),
    [
        ([], "definitions"),
        ([metric("a"), metric("a")], "must come once, got metric/a twice"),
        ([metric(f"m{n}") for n in range(501)], "definitions"),
    ],
)
def test_what_cannot_be_planned(
    running: Running, definitions: list[dict[str, str]], words: str
) -> None:
    """None, one twice, and more than are judged at once."""
    with running.client() as http:
        answer = http.post("/definitions/plan", json={"definitions": definitions})
    assert answer.status_code == 422
    assert words in answer.json()["message"]
