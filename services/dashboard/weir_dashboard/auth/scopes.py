"""The scope table: which scope each route needs. A route that is not here is denied.

One row a route, the same table for API keys and signed-in sessions. A test compares it
with the OpenAPI description.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """What a credential opens."""

    INGEST = "ingest"
    """Send events; opens nothing here."""
    READ = "read"
    """See numbers and definitions."""
    TAIL = "tail"
    """See contents of events."""
    DEFINE = "define"
    """Write definitions."""
    OPERATE = "operate"
    """Acknowledge, replay, test."""
    ADMIN = "admin"
    """Keys, members, everything else."""


API = "/api/v1"

# None: open to everybody, signed in or not.
TABLE: dict[tuple[str, str], Scope | None] = {
    ("POST", "/query"): Scope.READ,
    ("GET", "/series"): Scope.READ,
    ("GET", "/metrics"): Scope.READ,
    ("GET", "/metrics/{name}"): Scope.READ,
    ("GET", "/boards"): Scope.READ,
    ("GET", "/alerts"): Scope.READ,
    ("GET", "/alerts/{id}"): Scope.READ,
    ("POST", "/alerts/{id}/acknowledgement"): Scope.OPERATE,
    ("DELETE", "/alerts/{id}/acknowledgement"): Scope.OPERATE,
    ("GET", "/silences"): Scope.READ,
    ("POST", "/silences"): Scope.OPERATE,
    ("POST", "/silences/preview"): Scope.READ,
    ("DELETE", "/silences/{name}"): Scope.OPERATE,
    ("GET", "/channels"): Scope.READ,
    ("POST", "/channels/{name}/test"): Scope.OPERATE,
    ("GET", "/rules"): Scope.READ,
    ("GET", "/rules/{name}"): Scope.READ,
    ("POST", "/rules/preview"): Scope.DEFINE,
    ("POST", "/backtest"): Scope.DEFINE,
    ("GET", "/definitions"): Scope.READ,
    ("GET", "/definitions/refused"): Scope.READ,
    ("GET", "/definitions/{kind}/{name}"): Scope.READ,
    ("GET", "/definitions/{kind}/{name}/history"): Scope.READ,
    ("GET", "/definitions/{kind}/{name}/progress"): Scope.READ,
    ("POST", "/definitions/validate"): Scope.DEFINE,
    ("POST", "/definitions/diff"): Scope.DEFINE,
    ("POST", "/definitions/plan"): Scope.DEFINE,
    ("POST", "/definitions/apply"): Scope.DEFINE,
    ("POST", "/definitions/{kind}/{name}/rollback"): Scope.DEFINE,
    ("PUT", "/definitions/{kind}/{name}"): Scope.DEFINE,
    ("DELETE", "/definitions/{kind}/{name}"): Scope.DEFINE,
    ("GET", "/changes"): Scope.ADMIN,
    ("POST", "/preview"): Scope.TAIL,
    ("GET", "/ledger"): Scope.READ,
    ("GET", "/corrections"): Scope.READ,
    ("GET", "/lateness"): Scope.READ,
    ("POST", "/lateness"): Scope.READ,
    ("GET", "/metrics/{name}/ledger"): Scope.READ,
    ("GET", "/quarantine"): Scope.READ,
    ("GET", "/quarantine/summary"): Scope.READ,
    ("GET", "/quarantine/{id}"): Scope.TAIL,
    ("POST", "/quarantine/replay"): Scope.OPERATE,
    ("GET", "/audit"): Scope.READ,
    ("POST", "/audit"): Scope.OPERATE,
    ("GET", "/jobs"): Scope.READ,
    ("POST", "/jobs"): Scope.OPERATE,
    ("GET", "/jobs/{id}"): Scope.READ,
    ("DELETE", "/jobs/{id}"): Scope.OPERATE,
    ("GET", "/status"): Scope.READ,
    ("GET", "/pipeline"): Scope.READ,
    ("GET", "/discovery/types"): Scope.READ,
    ("GET", "/discovery/ingest"): Scope.READ,
    ("GET", "/session"): None,
    ("POST", "/session"): None,
    ("DELETE", "/session"): None,
    ("POST", "/session/once"): Scope.ADMIN,
    ("GET", "/keys"): Scope.ADMIN,
    ("POST", "/keys"): Scope.ADMIN,
    ("POST", "/keys/{id}/rotate"): Scope.ADMIN,
    ("DELETE", "/keys/{id}"): Scope.ADMIN,
    ("GET", "/live"): Scope.READ,
    ("GET", "/openapi.json"): Scope.READ,
    ("GET", "/asyncapi.json"): Scope.READ,
}

APPENDING = frozenset(
    {
        ("POST", "/alerts/{id}/acknowledgement"),
        ("DELETE", "/alerts/{id}/acknowledgement"),
        ("POST", "/silences"),
        ("DELETE", "/silences/{name}"),
        ("POST", "/channels/{name}/test"),
        ("POST", "/definitions/apply"),
        ("POST", "/definitions/{kind}/{name}/rollback"),
        ("PUT", "/definitions/{kind}/{name}"),
        ("DELETE", "/definitions/{kind}/{name}"),
        ("POST", "/quarantine/replay"),
        ("POST", "/audit"),
        ("POST", "/jobs"),
        ("DELETE", "/jobs/{id}"),
        ("POST", "/keys"),
        ("POST", "/keys/{id}/rotate"),
        ("DELETE", "/keys/{id}"),
    }
)
"""Routes that append to a topic that is kept: their answers tell the tenant's quota of changes."""


@dataclass(frozen=True)
class Entry:
    """One row of the table, ready to be compared with a path."""

    method: str
    template: str
    scope: Scope | None
    pattern: re.Pattern[str]

    @property
    def appends(self) -> bool:
        """Whether what it does counts against the tenant's quota of changes."""
        return (self.method, self.template) in APPENDING


def _entries() -> tuple[Entry, ...]:
    rows = []
    for (method, template), scope in TABLE.items():
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(API + template))
        rows.append(Entry(method, template, scope, re.compile(pattern)))
    # A fixed path wins over one with a placeholder.
    return tuple(sorted(rows, key=lambda row: row.template.count("{")))


ENTRIES = _entries()


def find(method: str, path: str) -> tuple[Entry | None, bool]:
    """Return the row of a request, and whether its path is known with another method."""
    known = [row for row in ENTRIES if row.pattern.fullmatch(path)]
    method = "GET" if method == "HEAD" else method
    return next((row for row in known if row.method == method), None), bool(known)
