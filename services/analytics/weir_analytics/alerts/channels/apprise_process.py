"""Sends one message by Apprise, in a process of its own: `python -m … < request > outcome`.

A library of two hundred services that run in this process may hang, write, follow
redirects or read whatever an answer holds; so it may call only what the guard lets it, has
a bounded memory, and is ended by its parent when time is up. Nothing is written but the
outcome, and that without any part of the URL.
"""

from __future__ import annotations

import contextlib
import logging
import re
import resource
import signal
import sys
from typing import Any, Final
from urllib.parse import unquote

import apprise
import msgspec

from weir_analytics.alerts.channels.addresses import Addresses
from weir_analytics.alerts.channels.apprise_request import Outcome, Request
from weir_analytics.alerts.channels.guard import Guard
from weir_analytics.alerts.channels.incidents import carry, to_close
from weir_analytics.alerts.channels.schemes import refusal

MAX_MEMORY_BYTES: Final = 1 << 30
MAX_LIFE_S: Final = 30
MAX_SAID: Final = 300
STAYS_OPEN: Final = "it opened an incident, and could not close it"
_STATUS: Final = re.compile(r"\berror=(\d{3})\b")
_PARTS: Final = re.compile(r"[/:@?&=,+#\s]+")
_LEAST_SECRET: Final = 3


class _Lines(logging.Handler):
    """Keeps what Apprise logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def send(request: Request, guard: Guard) -> Outcome:
    """Send a message by the service that its URL names."""
    lines = _Lines()
    logging.getLogger("apprise").addHandler(lines)
    asset = apprise.AppriseAsset(
        app_id="Weir", app_desc="Weir", async_mode=False, allow_templates=False
    )
    service = apprise.Apprise.instantiate(request.url, asset=asset)
    if not isinstance(service, apprise.NotifyBase):
        return Outcome(why="the secret holds no URL that Apprise reads")
    schemes = _schemes(service)
    refused = refusal(schemes)
    refused = refused or carry(service, schemes, request)
    if refused:
        return Outcome(why=refused, refused=True)
    services = apprise.Apprise(asset=asset)
    services.add(service)
    if not _notified(services, request, request.kind):
        return _failed(lines, request, guard)
    if to_close(schemes, request) and not _notified(services, request, "success"):
        failed = _failed(lines, request, guard)
        return msgspec.structs.replace(failed, why=f"{STAYS_OPEN}: {failed.why}")
    return Outcome(taken=True)


def redacted(text: str, url: str) -> str:
    """Return a text without a URL or any part of it that could be a secret."""
    # The scheme is no secret, and says which service speaks.
    named = url.partition("://")[2]
    written = _PARTS.split(named)
    parts = {url, named, *written, *map(unquote, written), *_PARTS.split(unquote(named))}
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= _LEAST_SECRET:
            text = re.sub(re.escape(part), "***", text, flags=re.IGNORECASE)
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown if len(shown) <= MAX_SAID else shown[: MAX_SAID - 1] + "…"


def _notified(services: apprise.Apprise, request: Request, kind: str) -> bool:
    taken = services.notify(
        body=request.body,
        title=request.title,
        notify_type=kind,
        body_format=apprise.NotifyFormat.TEXT,
    )
    return bool(taken)


def _failed(lines: _Lines, request: Request, guard: Guard) -> Outcome:
    """Return why a service did not take a message, as far as Apprise says."""
    said = " ".join(lines.said)
    found = _STATUS.search(said)
    status = int(found[1]) if found and not guard.barred else None
    return Outcome(status=status, why=redacted(said, request.url), called_inward=guard.barred)


def main() -> None:
    """Read a request, send it, write the outcome."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    # A parent that is killed ends nobody.
    signal.alarm(MAX_LIFE_S)
    # Not every system knows this bound.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    # No file grows: nothing of a message is ever left behind.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    guard = Guard(Addresses(request.allowed))
    guard.install()
    try:
        outcome = send(request, guard)
    except Exception as error:  # noqa: BLE001  whatever two hundred services may raise
        outcome = Outcome(why=f"it broke off: {type(error).__name__}", called_inward=guard.barred)
    sys.stdout.buffer.write(msgspec.json.encode(outcome))


def _schemes(service: Any) -> frozenset[str]:
    """Return every scheme that a service goes by."""
    found: set[str] = set()
    for given in (service.protocol, service.secure_protocol):
        found |= {given} if isinstance(given, str) else set(given or ())
    return frozenset(found)


if __name__ == "__main__":
    main()
