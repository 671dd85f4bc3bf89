"""Acknowledgements, silences and how channels are, over HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from weir.alerts.machine import Phase
from weir.alerts.step import Kind, Transition
from weir_dashboard.api.alert_answers import silences_of

from .channels import define_channel, listed_channel, problem
from .test_alerts import FIRING, Job, put_rule, rule_text

if TYPE_CHECKING:
    from .conftest import Running

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
HOUR_MS = 3_600_000


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Return a name of this test's own."""
    return "n" + str(abs(hash(request.node.name)) % 10**9)


@pytest.fixture
def alert(running: Running, metric: tuple[str, int], name: str) -> str:
    """Return an alert that fires in region eu, by its id."""
    job = Job(running, put_rule(running, name, rule_text(name, metric[0])))
    return job.tell(FIRING, phase=Phase.FIRING)


class TestAcknowledgement:
    def test_it_stands_beside_the_alert(self, running: Running, alert: str, name: str) -> None:
        """Who, what they say, until when; and what happened says so too."""
        with running.client() as client:
            path = f"/alerts/{alert}/acknowledgement"
            before_ms = running.dashboard.context.clock.now_ms()
            found = client.post(path, json={"for": "2h", "note": "on it"}).json()
            ack = found["ack"]
            assert (ack["by"][:4], ack["note"]) == ("key:", "on it")
            assert 2 * HOUR_MS <= ack["until_ms"] - before_ms < 2 * HOUR_MS + 60_000
            assert found["happened"][-1]["kind"] == "acknowledged"
            (listed,) = client.get("/alerts", params={"rule": name}).json()["items"]
            assert listed["ack"] == ack

            found = client.delete(path).json()
            assert (found["ack"], found["happened"][-1]["kind"]) == (None, "given_back")
            assert client.delete(path).json()["happened"] == found["happened"]
            assert client.post(path, json={}).json()["ack"]["note"] == ""

    def test_what_is_over_is_not_taken_on(
        self, running: Running, metric: tuple[str, int], name: str
    ) -> None:
        """Nor what is not there."""
        job = Job(running, put_rule(running, name, rule_text(name, metric[0])))
        over = Transition(Kind.RESOLVED, 180_000, 180_000, 60_000)
        alert = job.tell(FIRING, over, phase=Phase.OK)
        with running.client() as client:
            path = f"/alerts/{alert}/acknowledgement"
            assert problem(client.post(path, json={})) == (409, "already_ended")
            nothing = client.post("/alerts/nothing/acknowledgement", json={})
            assert problem(nothing) == (404, "not_found")

    @pytest.mark.parametrize(
        ("body", "told"),
        [
            ({"for": "8d"}, "an alert can be taken on for at most 7d, got 8d"),
            ({"for": "0s"}, "an alert can be taken on for at most 7d, got 0s"),
            ({"for": 5}, '"pointer":"/for"'),
            ({"until": "1h"}, '"pointer":"/until","required":"no such member"'),
        ],
    )
    def test_for_how_long(
        self, running: Running, alert: str, body: dict[str, object], told: str
    ) -> None:
        """For a week at most, in the words of definitions; then nobody has taken it on."""
        with running.client() as client:
            path = f"/alerts/{alert}"
            found = client.post(f"{path}/acknowledgement", json=body)
            assert found.status_code == 422
            assert told in found.text
            assert client.get(path).json()["ack"] is None
            # The longest that is allowed is.
            assert client.post(f"{path}/acknowledgement", json={"for": "7d"}).json()["ack"]

    def test_another_tenants_alert(self, running: Running, alert: str) -> None:
        """It is not found."""
        with running.client(running.key_for("other", ["read", "operate"])) as client:
            found = client.post(f"/alerts/{alert}/acknowledgement", json={})
        assert problem(found) == (404, "not_found")


class TestSilences:
    def test_from_its_preview_to_its_end(self, running: Running, alert: str, name: str) -> None:
        """What the preview says is hidden, is; everybody sees by whom, why and until when."""
        wanted = {"rule": name, "where": [["region", "=", "eu"], ["team", "=", "shop"]]}
        with running.client() as client:
            found = client.post("/silences/preview", json=wanted).json()
            assert ([one["id"] for one in found["now"]], found["firing"]) == ([alert], 1)
            elsewhere = {"rule": name, "where": "region = 'us'"}
            assert client.post("/silences/preview", json=elsewhere).json()["firing"] == 0

            made = client.post("/silences", json={**wanted, "for": "2h", "reason": "deploy"})
            assert made.status_code == 201, made.text
            silence = made.json()
            assert (silence["rule"], silence["where"]) == (name, wanted["where"])
            assert (silence["reason"], silence["active"], silence["firing"]) == ("deploy", True, 1)
            assert silence["by"].startswith("key:")
            # Its end is reckoned before its record is written.
            assert 0 <= silence["at_ms"] + 2 * HOUR_MS - silence["until_ms"] < 60_000
            assert silence in client.get("/silences").json()["items"]
            (listed,) = client.get("/alerts", params={"rule": name}).json()["items"]
            assert listed["silenced_by"] == [silence["name"]]

            ended = client.delete(f"/silences/{silence['name']}").json()
            assert not ended["active"]
            (listed,) = client.get("/alerts", params={"rule": name}).json()["items"]
            assert listed["silenced_by"] == []
            again = client.delete(f"/silences/{silence['name']}")
            assert problem(again) == (404, "not_found")

    def test_what_was_ended_by_hand_stays_for_a_day(
        self, running: Running, alert: str, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Until when it was in force, and that it hides nothing any more."""
        wanted = {"rule": name, "for": "2h", "reason": "deploy"}
        with running.client() as client:
            made = client.post("/silences", json=wanted).json()
            ended = client.delete(f"/silences/{made['name']}").json()
            assert 0 <= ended["until_ms"] - made["at_ms"] < 60_000
            over = {"active": False, "until_ms": ended["until_ms"], "firing": 0}
            assert ended == {**made, **over}
            assert ended in client.get("/silences").json()["items"]
            assert client.get(f"/alerts/{alert}").json()["silenced_by"] == []

            monkeypatch.setattr("weir_dashboard.api.alert_actions.DAY_MS", 0)
            listed = client.get("/silences").json()["items"]
            assert made["name"] not in [one["name"] for one in listed]

    def test_what_is_over_is_held_against_no_alert(self, running: Running, name: str) -> None:
        """A silence of last year is left out before alerts are looked at, not for each."""
        until = {"past": "2020-01-31T18:00:00Z", "coming": "2120-01-31T18:00:00Z"}
        for when, text in until.items():
            body = {"kind": "silence", "name": f"{name}_{when}", "rule": name, "until": text}
            running.put("default", "silence", body["name"], json.dumps(body))
        here = running.dashboard.context
        found = [one.name for one in silences_of(here, "default", here.clock.now_ms())]
        assert f"{name}_coming" in found
        assert f"{name}_past" not in found

    def test_refusals(self, running: Running) -> None:
        """Everything, for ever, or by a condition that is none."""
        with running.client() as client:
            found = client.post("/silences", json={"for": "1h"})
            assert problem(found) == (422, "definition_invalid")
            assert "a silence of a rule, or of labels" in found.text
            for body in (
                {"rule": "r"},
                {"rule": "r", "for": "367d"},
                {"rule": "r", "for": "0s"},
                {"rule": "r", "for": "1h", "who": "me"},
                {"where": "count > 5", "for": "1h"},
                {"where": [["region", "eu"]], "for": "1h"},
            ):
                assert client.post("/silences", json=body).status_code == 422, body

    @pytest.mark.usefixtures("alert")
    def test_another_tenants_silence(self, running: Running, name: str) -> None:
        """Neither seen nor ended, and it hides nothing of others."""
        with running.client(running.key_for("other", ["read", "operate"])) as other:
            made = other.post("/silences", json={"rule": name, "for": "1h"}).json()
            assert made["firing"] == 0
            with running.client() as client:
                listed = client.get("/silences").json()["items"]
                assert made["name"] not in [one["name"] for one in listed]
                (one,) = client.get("/alerts", params={"rule": name}).json()["items"]
                assert one["silenced_by"] == []
                ended = client.delete(f"/silences/{made['name']}")
                assert problem(ended) == (404, "not_found")


class TestChannels:
    def test_what_waits(
        self,
        running: Running,
        metric: tuple[str, int],
        name: str,
    ) -> None:
        """Messages that were not delivered yet are counted, and which rules name a channel."""
        define_channel(running, name, apprise="secret://slack")
        text = rule_text(name, metric[0], route={"channels": [name]})
        Job(running, put_rule(running, name, text)).tell(FIRING, phase=Phase.FIRING)
        with running.client() as client:
            found = listed_channel(client, name)

        assert (found["waiting"], found["rules"], found["outcome"]) == (1, [name], None)

    def test_no_such_channel(self, running: Running) -> None:
        """Nor another tenant's."""
        with running.client() as client:
            assert problem(client.post("/channels/nothing/test")) == (404, "not_found")

    def test_a_job_that_does_not_answer_is_told(
        self, running: Running, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After a while, with what to look at."""
        monkeypatch.setattr("weir_dashboard.api.channels.ANSWER_S", 0.5)
        define_channel(running, name, apprise=f"secret://{name}")
        with running.client() as client:
            found = client.post(f"/channels/{name}/test")

        assert problem(found) == (503, "not_available")
        assert "see whether it runs" in found.json()["message"]
