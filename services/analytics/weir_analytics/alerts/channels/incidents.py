"""Services that keep incidents: which alert a message is of, where Apprise has a place for it.

    PagerDuty            its dedup key; an end resolves, unless the URL names an action
    Splunk On-Call       its entity; an end recovers, unless the URL names an action
    Opsgenie             its alias, but for ends: see below

What the URL says itself stays, but for tests: of those nothing must stay open, and nothing
else be closed. PagerDuty is sent a test and its end at once, Splunk On-Call one that opens
nothing. A heartbeat is refused wherever a message opens something: nothing would ever close
those, and no such service complains when one stays away.

Apprise closes an alert of Opsgenie, or adds to it, by ids that it kept in a file when it
opened it; here it keeps no files, and would say that it had sent what it had not. So
whatever comes is a new alert there, an end and a test too.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from weir_analytics.alerts.channels.apprise_request import Request

KEEPS: Final = frozenset(
    [
        "betterstack",
        "firehydrant",
        "goalert",
        "goalerts",
        "ilert",
        "incidentio",
        "jira",
        "opsgenie",
        "pagerduty",
        "pagertree",
        "signl4",
        "spike",
        "splunk",
        "squadcast",
        "victorops",
        "xmatters",
    ]
)
"""Schemes of the services that open something for a message, and keep it until it is closed."""
NO_HEARTBEAT: Final = (
    "it keeps incidents, and a heartbeat would open one each time; leave out heartbeat here, "
    "and give it to a channel whose receiver complains when none comes"
)
CLOSED_AFTER_S: Final = 1.0
_NEW: Final = "new"
_TEST: Final = "test"


def carry(service: Any, schemes: frozenset[str], request: Request) -> str:
    """Give a service the key of an alert; return why it cannot be used, empty if it can.

    Args:
        service: A service of Apprise.
        schemes: What it goes by.
        request: What is to be sent.
    """
    if request.event == "heartbeat" and schemes & KEEPS:
        return NO_HEARTBEAT
    if "pagerduty" in schemes:
        _pagerduty(service, request)
    elif "splunk" in schemes:
        _splunk(service, request)
    elif "opsgenie" in schemes:
        return _opsgenie(service, "" if request.is_end else request.key)
    return ""


def to_close(schemes: frozenset[str], request: Request) -> bool:
    """Tell whether a message that was taken has opened what is to be closed at once."""
    return request.event == _TEST and "pagerduty" in schemes


def _pagerduty(service: Any, request: Request) -> None:
    is_test = request.event == _TEST
    if is_test:
        # Its end follows at once, and somebody waits; Apprise would pause for 5.5 s.
        service.request_rate_per_sec = CLOSED_AFTER_S
    # A key of its own may be that of an incident that is open.
    service.dedup = request.key if is_test else service.dedup or request.key
    if is_test or "action" not in _options(request.url):
        service.action = "map"


def _splunk(service: Any, request: Request) -> None:
    if request.event == _TEST:
        service.entity_id, service.action = request.key, "info"
    elif service.entity_id == f"{service.app_id}/{service.routing_key}":
        service.entity_id = request.key


def _opsgenie(service: Any, alias: str) -> str:
    if service.action not in ("map", _NEW):
        return f"Opsgenie can be sent new alerts only, got action={service.action}; leave it out"
    service.action = _NEW
    service.alias = service.alias or alias or None
    return ""


def _options(url: str) -> set[str]:
    return {name.lower() for name in parse_qs(urlsplit(url).query)}
