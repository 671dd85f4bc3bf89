"""What services that keep incidents are told of the alert; they listen on loopback here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from apprise.plugins.opsgenie import OPSGENIE_API_LOOKUP
from apprise.plugins.pagerduty import PAGERDUTY_API_LOOKUP
from apprise.plugins.splunk import NotifySplunk
from apprise_service import Service
from weir_analytics.alerts.channels.addresses import Addresses
from weir_analytics.alerts.channels.apprise_process import send
from weir_analytics.alerts.channels.apprise_request import Outcome, Request
from weir_analytics.alerts.channels.guard import Guard

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
    yield service
    service.close()


def told(service: Service, url: str, *, is_end: bool = False, kind: str = "") -> dict[str, Any]:
    """Send a message; return what the service got."""
    assert sent(url, is_end=is_end, kind=kind).taken
    return service.bodies[-1]


def sent(url: str, *, is_end: bool = False, kind: str = "") -> Outcome:
    """Send a message; return what came of it."""
    kind = kind or ("success" if is_end else "failure")
    request = Request(
        url=url, title="Slow", body="p95", kind=kind, key="k1", is_end=is_end, allowed=[]
    )
    return send(request, Guard(Addresses([])))


def test_pagerduty_resolves_what_it_opened(service: Service) -> None:
    """By the alert's key, unless the URL has one; and an action that it names stays."""
    fired = told(service, PAGERDUTY)
    assert (fired["event_action"], fired["dedup_key"]) == ("trigger", "k1")
    ended = told(service, PAGERDUTY, is_end=True)
    assert (ended["event_action"], ended["dedup_key"]) == ("resolve", "k1")

    own = told(service, f"{PAGERDUTY}?dedup=own&action=trigger", is_end=True)
    assert (own["event_action"], own["dedup_key"]) == ("trigger", "own")


def test_splunk_recovers_what_it_opened(service: Service) -> None:
    """Its entity is the alert, unless the URL names one."""
    fired = told(service, SPLUNK)
    assert (fired["message_type"], fired["entity_id"]) == ("CRITICAL", "k1")
    ended = told(service, SPLUNK, is_end=True)
    assert (ended["message_type"], ended["entity_id"]) == ("RECOVERY", "k1")
    assert told(service, f"{SPLUNK}/own")["entity_id"] == "own"


def test_opsgenie_is_sent_whatever_is_told(service: Service) -> None:
    """An end and a test are new alerts; the alias is for what may be told twice."""
    service.answer = b'{"requestId": "r1"}'
    assert told(service, OPSGENIE)["alias"] == "k1"
    ended = told(service, OPSGENIE, is_end=True)
    assert ended["message"] == "Slow"
    assert "alias" not in ended
    assert told(service, OPSGENIE, kind="info")["message"] == "Slow"
    assert told(service, f"{OPSGENIE}?alias=own")["alias"] == "own"
    assert len(service.bodies) == 4


def test_opsgenie_cannot_be_told_to_close(service: Service) -> None:
    """What it was to close it does not know; that is said, instead of nothing sent."""
    found = sent(f"{OPSGENIE}?action=close", is_end=True)

    assert (found.taken, found.refused) == (False, True)
    assert found.why == "Opsgenie can be sent new alerts only, got action=close; leave it out"
    assert service.bodies == []
