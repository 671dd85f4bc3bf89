"""What services that keep incidents are told of the alert; they listen on loopback here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from apprise.plugins.opsgenie import OPSGENIE_API_LOOKUP
from apprise.plugins.pagerduty import PAGERDUTY_API_LOOKUP
from apprise.plugins.splunk import NotifySplunk
from apprise_service import Service
from msgspec.structs import replace
from weir.alerts.messages import heartbeat_message, trial_message
from weir.alerts.records import Trial
from weir_analytics.alerts.channels import incidents
from weir_analytics.alerts.channels.addresses import Addresses
from weir_analytics.alerts.channels.apprise_process import send
from weir_analytics.alerts.channels.apprise_request import Outcome, Request
from weir_analytics.alerts.channels.by_apprise import call, key_of
from weir_analytics.alerts.channels.guard import Guard
from weir_analytics.alerts.channels.schemes import ALLOWED

# Of a library that Apprise reads.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PAGERDUTY = "pagerduty://integration_key@api_key/"
SPLUNK = "splunk://routing_key@api_key"
OPSGENIE = "opsgenie://api_key/"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Return what all three services are here."""
    service = Service()
    url = f"http://127.0.0.1:{service.port}/"
    monkeypatch.setitem(PAGERDUTY_API_LOOKUP, "us", url)
    monkeypatch.setitem(OPSGENIE_API_LOOKUP, "us", url)
    monkeypatch.setattr(NotifySplunk, "notify_url", url)
    monkeypatch.setattr(incidents, "CLOSED_AFTER_S", 0.0)
    yield service
    service.close()


def told(service: Service, url: str, event: str = "firing") -> dict[str, Any]:
    """Send a message; return what the service got."""
    assert sent(url, event).taken
    return service.bodies[-1]


def sent(url: str, event: str = "firing") -> Outcome:
    """Send a message; return what came of it."""
    request = Request(
        url=url,
        title="Slow",
        body="p95",
        kind={"resolved": "success", "firing": "failure"}.get(event, "info"),
        event=event,
        key="k1",
        is_end=event == "resolved",
        allowed=[],
    )
    return send(request, Guard(Addresses([])))


def test_pagerduty_resolves_what_it_opened(service: Service) -> None:
    """By the alert's key, unless the URL has one; and an action that it names stays."""
    fired = told(service, PAGERDUTY)
    assert (fired["event_action"], fired["dedup_key"]) == ("trigger", "k1")
    ended = told(service, PAGERDUTY, "resolved")
    assert (ended["event_action"], ended["dedup_key"]) == ("resolve", "k1")

    own = told(service, f"{PAGERDUTY}?dedup=own&action=trigger", "resolved")
    assert (own["event_action"], own["dedup_key"]) == ("trigger", "own")


def test_splunk_recovers_what_it_opened(service: Service) -> None:
    """Its entity is the alert, unless the URL names one."""
    fired = told(service, SPLUNK)
    assert (fired["message_type"], fired["entity_id"]) == ("CRITICAL", "k1")
    ended = told(service, SPLUNK, "resolved")
    assert (ended["message_type"], ended["entity_id"]) == ("RECOVERY", "k1")
    assert told(service, f"{SPLUNK}/own")["entity_id"] == "own"


@pytest.mark.parametrize("options", ["", "?dedup=own&action=trigger"])
def test_of_a_test_no_incident_stays_open(service: Service, options: str) -> None:
    """PagerDuty's is closed at once, whatever the URL says; Splunk opens none."""
    assert told(service, f"{PAGERDUTY}{options}", "test")["dedup_key"] == "k1"
    assert [one["event_action"] for one in service.bodies] == ["trigger", "resolve"]
    assert {one["dedup_key"] for one in service.bodies} == {"k1"}
    tested = told(service, f"{SPLUNK}/own?action=critical", "test")
    assert (tested["message_type"], tested["entity_id"]) == ("INFO", "k1")


def test_an_incident_that_a_test_could_not_close_is_told(service: Service) -> None:
    """Somebody has to close it by hand."""
    service.statuses[:] = [202, 503]
    found = sent(PAGERDUTY, "test")

    assert (found.taken, found.status) == (False, 503)
    assert found.why.startswith("it opened an incident, and could not close it: ")


@pytest.mark.parametrize("url", [PAGERDUTY, SPLUNK, OPSGENIE, f"spike://{32 * '0'}"])
def test_a_heartbeat_opens_no_incident(service: Service, url: str) -> None:
    """It is refused, in words; other services get it."""
    found = sent(url, "heartbeat")

    assert (found.taken, found.refused) == (False, True)
    assert found.why.startswith("it keeps incidents, and a heartbeat would open one each time")
    assert service.bodies == []


def test_a_channel_is_told_why_it_gets_no_heartbeat() -> None:
    """Through its process, without a call; it is not tried again."""
    answer = asyncio.run(call(PAGERDUTY, heartbeat_message("t", "c", 60_000, 1, 1), []))

    assert answer.final
    assert answer.why.endswith("give it to a channel whose receiver complains when none comes")


def test_what_keeps_incidents_may_be_used() -> None:
    """Each is a scheme of the list; one that Apprise renames is seen here."""
    assert incidents.KEEPS <= ALLOWED


def test_silence_has_one_incident_a_series() -> None:
    """Nothing closes it; its next spell is told in the same one, and an alert has its own."""
    trial = trial_message(Trial(tenant="t", id="spell", channel="c", by="ann"))
    first = replace(trial, kind="no_data", rule="r", labels={"a": "1", "b": None})
    again = replace(first, dedup_key="later", labels={"b": None, "a": "1"})

    assert key_of(first) == key_of(again)
    others = (
        replace(first, rule="s"),
        replace(first, labels={"a": "2", "b": None}),
        replace(first, tenant="u"),
        replace(first, kind="firing"),
    )
    assert key_of(first) not in {key_of(one) for one in others}
    assert key_of(others[-1]) == "spell"


def test_opsgenie_is_sent_whatever_is_told(service: Service) -> None:
    """An end and a test are new alerts; the alias is for what may be told twice."""
    service.answer = b'{"requestId": "r1"}'
    assert told(service, OPSGENIE)["alias"] == "k1"
    ended = told(service, OPSGENIE, "resolved")
    assert ended["message"] == "Slow"
    assert "alias" not in ended
    assert told(service, OPSGENIE, "test")["message"] == "Slow"
    assert told(service, f"{OPSGENIE}?alias=own")["alias"] == "own"
    assert len(service.bodies) == 4


def test_opsgenie_cannot_be_told_to_close(service: Service) -> None:
    """What it was to close it does not know; that is said, instead of nothing sent."""
    found = sent(f"{OPSGENIE}?action=close", "resolved")

    assert (found.taken, found.refused) == (False, True)
    assert found.why == "Opsgenie can be sent new alerts only, got action=close; leave it out"
    assert service.bodies == []
