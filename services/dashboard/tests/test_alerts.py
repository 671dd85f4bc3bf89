"""Alerts and rules over HTTP: what the records say, and when a rule would have fired."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from weir import names
from weir.alerts.listing import Alert, Listing
from weir.alerts.machine import Core, Phase, Point
from weir.alerts.messages import Watched, messages
from weir.alerts.records import Delivery, Look, encode
from weir.alerts.step import Kind, Series, Transition
from weir.rows import Row
from weir_local.waiting import wait_until
from weir_reading.parts import OF_TENANTS

if TYPE_CHECKING:
    from weir.definitions.rule import Rule

    from .conftest import Engine, Running

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

MINUTE_MS = 60_000
POINT = Point(120_000, "p", 40, 617.2, 592.0, 648.1)


def rule_text(name: str, of: str, **members: Any) -> str:
    """Return a rule as JSON."""
    whole = {
        **{"kind": "rule", "name": name, "metric": of, "aggregate": "count"},
        **{"window": "1m", "above": 10, "by": ["region"], "labels": {"team": "shop"}},
        **{"route": {"channels": ["hook"]}, "runbook": "https://wiki.example.com/x"},
    }
    return json.dumps({**whole, **members})


def put_rule(running: Running, name: str, text: str) -> dict[str, Any]:
    """Store a rule through the API."""
    with running.client() as client:
        path = f"/definitions/rule/{name}"
        answer = client.put(path, json={"text": text}, headers={"if-none-match": "*"})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


class Job:
    """Writes records as the alerts job does."""

    def __init__(self, running: Running, stored: dict[str, Any]) -> None:
        self._running, self._vid = running, stored["vid"]
        model: Rule = running.dashboard.context.catalog.folded.by_vid(self._vid).model  # type: ignore[union-attr,assignment]
        self._watched = Watched("default", self._vid, stored["version"], model, "ms")

    @property
    def rule_name(self) -> str:
        """What the rule is called."""
        return self._watched.rule.name

    def tell(self, *transitions: Transition, phase: Phase, group: tuple[str, ...] = ("eu",)) -> str:
        """Write a look; return the id of the alert."""
        found = messages(self._watched, group, transitions, {})
        look = Look(
            fence=1,
            tenant="default",
            rule=self._watched.rule.name,
            vid=self._vid,
            group=list(group),
            transitions=list(transitions),
            series=Series(core=Core(phase=phase, at_ms=transitions[-1].at_ms)),
            messages=found,
        )
        self._write(encode(look))
        return found[0].notification.dedup_key if found else ""

    def deliver(self, number: str) -> None:
        """Write that a message was delivered."""
        done = Delivery(
            fence=1, tenant="default", id=number, channel="hook", outcome="delivered", status=204
        )
        self._write(encode(done))

    def _write(self, value: bytes) -> None:
        alerts = self._running.dashboard.context.alerts
        offsets: list[int] = []
        producer = Producer(
            {"bootstrap.servers": self._running.dashboard.context.settings.kafka_bootstrap}
        )
        producer.produce(
            names.ALERTS, value, "default", on_delivery=lambda _, m: offsets.append(m.offset() or 0)
        )
        assert producer.flush(10) == 0
        wait_until(
            lambda: alerts.listing.reader.next_offset > offsets[0],
            timeout_s=10,
            what="the record read",
        )


FIRING = Transition(Kind.FIRING, 120_000, 120_000, 60_000, point=POINT)


def test_an_alert_from_its_firing_to_its_end(
    running: Running, metric: tuple[str, int], request: pytest.FixtureRequest
) -> None:
    """Listed with value, bounds, limit and labels; then with its end and all that happened."""
    name = "r" + str(abs(hash(request.node.name)) % 10**9)
    text = rule_text(name, metric[0], where="region in ('eu', 'us')")
    job = Job(running, put_rule(running, name, text))
    alert_id = job.tell(FIRING, phase=Phase.FIRING)
    with running.client() as client:
        (alert,) = client.get("/alerts", params={"state": "open", "rule": name}).json()["items"]
        assert alert["id"] == alert_id
        assert (alert["state"], alert["verdict"]) == ("firing", "provisional")
        assert (alert["value"], alert["low"], alert["high"]) == (617.2, 592.0, 648.1)
        assert (alert["limit"], alert["count"], alert["since_ms"]) == (10, 40, 60_000)
        assert alert["labels"] == {"team": "shop", "region": "eu"}
        assert alert["runbook"] == "https://wiki.example.com/x"

        (rule,) = [r for r in client.get("/rules").json()["items"] if r["name"] == name]
        assert (rule["state"], rule["firing"], rule["last_fired_ms"]) == ("firing", 1, 60_000)
        assert (rule["by"], rule["where"]) == (["region"], [["region", "in", ["eu", "us"]]])
        assert rule["groups"] == [
            {
                "by": {"region": "eu"},
                "state": "firing",
                "health": "ok",
                "since_ms": None,
                "silent_ms": None,
                "value": 617.2,
                "low": 592.0,
                "high": 648.1,
            }
        ]

        ended = Transition(Kind.RESOLVED, 240_000, 240_000, 60_000, point=POINT)
        job.tell(ended, phase=Phase.OK)
        assert client.get("/alerts", params={"state": "open", "rule": name}).json()["items"] == []
        detail = client.get(f"/alerts/{alert_id}").json()
        assert (detail["state"], detail["at_ms"], detail["metric"]) == (
            "resolved",
            240_000,
            metric[0],
        )
        assert [one["kind"] for one in detail["happened"]] == ["firing", "resolved"]
        assert client.get(f"/rules/{name}").json()["state"] == "ok"


def test_rules_without_their_groups(running: Running, metric: tuple[str, int]) -> None:
    """Who draws limits asks for no series; all that is told of the rule stays the same."""
    name = "light_rule"
    Job(running, put_rule(running, name, rule_text(name, metric[0]))).tell(
        FIRING, phase=Phase.FIRING
    )
    with running.client() as client:
        whole = client.get("/rules").json()["items"]
        light = client.get("/rules", params={"groups": 0}).json()["items"]
    assert [len(rule["groups"]) for rule in whole if rule["name"] == name] == [1]
    assert light == [{**rule, "groups": []} for rule in whole]


@pytest.mark.parametrize("groups", [0, 1])
def test_all_rules_take_one_look_through_the_alerts(
    running: Running, metric: tuple[str, int], groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each board that is open asks every two seconds: a look for each rule is too much."""
    looks: list[str] = []
    all_alerts = Listing.alerts

    def counted(listing: Listing, tenant: str) -> list[Alert]:
        looks.append(tenant)
        return all_alerts(listing, tenant)

    for at in range(3):
        name = f"looked_{groups}_{at}"
        put_rule(running, name, rule_text(name, metric[0]))
    monkeypatch.setattr(Listing, "alerts", counted)
    with running.client() as client:
        rules = client.get("/rules", params={"groups": groups}).json()["items"]
    assert len(rules) >= 3
    assert looks == ["default"]


def test_health_stands_beside_the_state(running: Running, metric: tuple[str, int]) -> None:
    """As the alerts job tells it; not to everybody, and not in the status of the parts."""
    refused = put_rule(running, "refused_rule", rule_text("refused_rule", metric[0]))
    own = {"kind": "rule", "name": "own_channel", "metric": "weir.channel", "above": 60}
    itself = put_rule(running, "own_channel", json.dumps(own))
    told = {
        "errors": {str(refused["vid"]): "metric must be one that is served"},
        "readings": {str(itself["vid"]): [[["hook"], 61.5], [["other"], 0.0]]},
    }
    now_ms = int(time.time() * 1000)
    beat = {"at_ms": now_ms, "detail": {"rules": 2, "looked_ms": now_ms, OF_TENANTS: told}}
    running.redis.set(names.part_key("alerts", "test"), json.dumps(beat), px=8_000)
    with running.client() as client:

        def rule(name: str) -> dict[str, Any]:
            return client.get(f"/rules/{name}").json()  # type: ignore[no-any-return]

        wait_until(lambda: rule("own_channel")["health"] == "ok", timeout_s=5, what="the job")
        groups = [
            (one["by"]["channel"], one["value"], one["low"], one["high"])
            for one in rule("own_channel")["groups"]
        ]
        # What is read of Weir itself is exact.
        assert groups == [("hook", 61.5, 61.5, 61.5), ("other", 0.0, 0.0, 0.0)]
        assert (rule("own_channel")["unit"], rule("own_channel")["aggregate"]) == ("s", "last")
        # Nobody counts in this test, which is told before what a rule lacks.
        assert rule("refused_rule")["health"] in ("stale", "error")
        asked = {"rule": json.dumps(own), "from_ms": 0, "to_ms": MINUTE_MS}
        refusal = client.post("/backtest", json=asked)
        assert (refusal.status_code, "nothing is stored" in refusal.text) == (422, True)
        status = client.get("/status").json()
        assert "served" not in json.dumps(status)
        wait_until(
            lambda: rule("own_channel")["health"] == "stale", timeout_s=15, what="the job away"
        )
        assert "nobody evaluates" in rule("own_channel")["why"]


def test_a_rule_that_cannot_be_read_is_passed_over(running: Running) -> None:
    """One of a later release does not stop the list."""
    running.put("default", "rule", "later", json.dumps({"kind": "rule", "shape": "unknown"}))
    with running.client() as client:
        rules = client.get("/rules")
        assert rules.status_code == 200
        assert "later" not in [one["name"] for one in rules.json()["items"]]
        assert client.get("/rules/later").status_code == 404


def test_nobody_sees_another_tenants_alerts(running: Running, metric: tuple[str, int]) -> None:
    """Unknown and another tenant's are the same."""
    name = "foreign_rule"
    job = Job(running, put_rule(running, name, rule_text(name, metric[0])))
    alert_id = job.tell(FIRING, phase=Phase.FIRING)
    key = running.key_for("othertenant", ["read"])
    with running.client(key) as client:
        assert client.get("/alerts").json()["items"] == []
        assert client.get("/rules").json()["items"] == []
        assert client.get(f"/alerts/{alert_id}").status_code == 404
        assert client.get(f"/alerts/{alert_id}").json() == client.get("/alerts/nothing").json()


@pytest.mark.parametrize(
    ("members", "status", "said"),
    [
        ({"metric": "nobody_has_it"}, 404, "one that is served"),
        ({"aggregate": "p95"}, 422, "one that"),
        ({"by": ["nothing"]}, 422, "a dimension of"),
        ({"window": "7s"}, 422, "whole panes"),
        ({"above": None}, 422, "one of above, below and outside"),
    ],
)
def test_a_rule_is_checked_against_its_metric(
    running: Running, metric: tuple[str, int], members: dict[str, Any], status: int, said: str
) -> None:
    """Before it is stored, and when it is only validated."""
    text = rule_text("wrong_rule", metric[0], **members)
    with running.client() as client:
        put = client.put(
            "/definitions/rule/wrong_rule", json={"text": text}, headers={"if-none-match": "*"}
        )
        checked = client.post("/definitions/validate", json={"kind": "rule", "text": text}).json()
        tested = client.post("/backtest", json={"rule": text, "from_ms": 0, "to_ms": MINUTE_MS})

    assert (put.status_code, said in put.text) == (status, True)
    assert (checked["ok"], said in str(checked)) == (False, True)
    assert tested.status_code == status


def test_a_backtest(running: Running, engine: Engine, metric: tuple[str, int]) -> None:
    """Over stored panes: how often, how long, of which groups."""
    name, vid = metric
    now_s = int(time.time()) // 60 * 60
    panes = {
        (vid, 10, now_s - 600 + 60 * minute): {"=eu": Row(n), "=us": Row(3)}
        for minute, n in enumerate((3, 12, 12, 3, 12, 3, 3, 3))
    }
    engine.commit(panes, through_ms=now_s * 1000)
    asked = {
        "rule": rule_text("tried", name),
        "from_ms": (now_s - 600) * 1000,
        "to_ms": (now_s - 120) * 1000,
    }
    with running.client() as client:
        found = client.post("/backtest", json={**asked, "sweep": 5}).json()
        plain = client.post("/backtest", json=asked).json()
        too_many = client.post("/backtest", json={**asked, "sweep": 10})
        too_long = client.post("/backtest", json={**asked, "from_ms": 0})

    assert (found["fired"], found["matched_series"], found["capped"]) == (2, 2, False)
    eu = next(g for g in found["groups"] if g["by"] == {"region": "eu"})
    assert [span["state"] for span in eu["spans"]] == ["firing", "firing"]
    assert found["firing_ms"] >= 3 * MINUTE_MS - 20_000
    assert too_long.status_code == 422
    assert [one["limit"] for one in found["sweep"]] == [8, 9, 10, 11, 12]
    assert [one["fired"] for one in found["sweep"]] == [2, 2, 2, 2, 0]
    assert plain == {**found, "sweep": []}
    assert too_many.status_code == 422
