"""Services that keep incidents: which alert a message is of, where Apprise has a place for it.

    PagerDuty            its dedup key; an end resolves, unless the URL names an action
    Splunk On-Call       its entity; an end recovers, unless the URL names an action
    Opsgenie             its alias, but for ends: see below

What the URL says itself stays. Apprise closes an alert of Opsgenie, or adds to it, by ids
that it kept in a file when it opened it; here it keeps no files, and would say that it had
sent what it had not. So whatever comes is a new alert there, an end too.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

_NEW: Final = "new"


def carry(service: Any, schemes: frozenset[str], url: str, key: str, *, is_end: bool) -> str:
    """Give a service the key of an alert; return why it cannot be used, empty if it can.

    Args:
        service: A service of Apprise.
        schemes: What it goes by.
        url: As the secret has it.
        key: The alert's dedup key.
        is_end: Whether the message ends it.
    """
    options = {name.lower() for name in parse_qs(urlsplit(url).query)}
    if "pagerduty" in schemes:
        service.dedup = service.dedup or key
        if "action" not in options:
            service.action = "map"
    elif "splunk" in schemes:
        if service.entity_id == f"{service.app_id}/{service.routing_key}":
            service.entity_id = key
    elif "opsgenie" in schemes:
        return _opsgenie(service, "" if is_end else key)
    return ""


def _opsgenie(service: Any, alias: str) -> str:
    if service.action not in ("map", _NEW):
        return f"Opsgenie can be sent new alerts only, got action={service.action}; leave it out"
    service.action = _NEW
    service.alias = service.alias or alias or None
    return ""
