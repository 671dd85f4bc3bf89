"""Alerts over the live socket: what fires, each change, resuming, silences, other tenants."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from weir.alerts.machine import Phase, Point
from weir.alerts.step import Kind, Transition
from weir.definitions.silence import instant_text
from weir_local.waiting import wait_until

from .test_alerts import Job, put_rule, rule_text
from .test_live_socket import Client, greeted

if TYPE_CHECKING:
    from .conftest import Running

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


def transition(kind: Kind, at_ms: int = 120_000) -> Transition:
    """Return a transition of one alert."""
    return Transition(kind, at_ms, at_ms, 60_000, point=Point(at_ms, "p", 40, 617.2, 592.0, 648.1))


def following(client: Client, seq: int | None = None, number: int = 1) -> tuple[list[str], int]:
    """Subscribe; return the ids of the alerts that are told at once, and the seq after them."""
    members: dict[str, Any] = {} if seq is None else {"from": {"seq": seq}}
    client.say("subscribe", id=number, to="alerts", **members)
    client.hear("subscribed")
    told = []
    while (frame := client.hear("alert", "alerts"))["op"] == "alert":
        told.append(frame["alert"]["id"])
    return told, frame["seq"]


@pytest.fixture
def job(running: Running, metric: tuple[str, int], request: pytest.FixtureRequest) -> Job:
    """Return a job with a rule of this test's own."""
    name = f"live_{abs(hash(request.node.name)) % 10**8}"
    return Job(running, put_rule(running, name, rule_text(name, metric[0])))


def test_what_fires_then_each_change(running: Running, job: Job) -> None:
    """As the API tells it, at once; what ended is told once and no longer among what fires."""
    alert_id = job.tell(transition(Kind.FIRING), phase=Phase.FIRING)
    with running.client() as http, greeted(running) as client:
        at_once, seq = following(client)
        assert alert_id in at_once
        job.tell(transition(Kind.RESOLVED, 240_000), phase=Phase.OK)
        ended, firing = client.hear("alert"), client.hear("alerts")
        whole = http.get(f"/alerts/{alert_id}").json()
        assert ended["alert"] == {name: whole[name] for name in ended["alert"]}
        assert (ended["alert"]["id"], ended["alert"]["state"]) == (alert_id, "resolved")
        assert ended["seq"] == firing["seq"] > seq
        assert alert_id not in firing["open"]


def test_resuming_by_seq(running: Running, job: Job) -> None:
    """Only what changed since, also what has ended meanwhile; of another log all that fires."""
    first = job.tell(transition(Kind.FIRING), phase=Phase.FIRING, group=("eu",))
    with greeted(running) as client:
        at_once, seq = following(client)
        assert first in at_once
    second = job.tell(transition(Kind.FIRING), phase=Phase.FIRING, group=("us",))
    job.tell(transition(Kind.RESOLVED, 240_000), phase=Phase.OK, group=("us",))
    with greeted(running) as client:
        missed: list[str] = []
        while second not in missed:
            told, seq = following(client, seq)
            missed += told
        assert first not in missed
        assert following(client, seq, 2) == ([], seq)
        assert first in following(client, 10**9, 3)[0]


def test_a_silence_changes_what_is_told(running: Running, job: Job) -> None:
    """No record of `weir.alerts` says so."""
    alert_id = job.tell(transition(Kind.FIRING), phase=Phase.FIRING)
    rule = job.rule_name
    with greeted(running) as client:
        following(client)
        text = {"kind": "silence", "name": rule, "rule": rule, "reason": "planned"}
        until = instant_text(32_503_680_000_000)
        running.put("default", "silence", rule, json.dumps({**text, "until": until}))
        while (frame := client.hear("alert"))["alert"]["id"] != alert_id:
            pass
        assert frame["alert"]["silenced_by"] == [rule]


def test_a_silence_hides_no_end_from_a_client_that_is_slow(running: Running, job: Job) -> None:
    """What ended while it was paused is told, beside all that fires."""
    ended = job.tell(transition(Kind.FIRING), phase=Phase.FIRING, group=("eu",))
    firing = job.tell(transition(Kind.FIRING), phase=Phase.FIRING, group=("us",))
    with greeted(running) as client, running.client() as http:
        following(client)
        client.say("pace", hz=0)
        client.say("subscribe", id=9, to="pipeline")
        client.hear("subscribed")  # so the pace before it is known
        job.tell(transition(Kind.RESOLVED, 240_000), phase=Phase.OK, group=("eu",))
        until = instant_text(32_503_680_000_000)
        text = {"kind": "silence", "name": job.rule_name, "rule": job.rule_name, "reason": "x"}
        running.put("default", "silence", job.rule_name, json.dumps({**text, "until": until}))
        wait_until(
            lambda: http.get(f"/alerts/{firing}").json()["silenced_by"], timeout_s=5, what="it"
        )
        client.say("pace", hz=4)
        told = {}
        while (frame := client.hear("alert", "alerts"))["op"] == "alert":
            told[frame["alert"]["id"]] = frame["alert"]["state"]
    assert (told[ended], told[firing]) == ("resolved", "firing")


def test_a_position_before_the_first_record(running: Running) -> None:
    """As the server itself says it while `weir.alerts` is empty."""
    with greeted(running) as client:
        assert isinstance(following(client, -1)[1], int)


def test_nobody_is_told_of_another_tenants(running: Running, job: Job) -> None:
    """Neither at once nor later."""
    with greeted(running, running.key_for("elsewhere", ["read"])) as client:
        assert following(client)[0] == []
        job.tell(transition(Kind.FIRING), phase=Phase.FIRING)
        with greeted(running) as own:
            assert following(own)[0]
        with pytest.raises(TimeoutError):
            client.hear("alert", timeout_s=1)
