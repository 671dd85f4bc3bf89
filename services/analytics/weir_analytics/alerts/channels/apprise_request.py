"""What the process that speaks Apprise is asked, and what it answers."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to send.

    Attributes:
        url: The Apprise URL.
        title, body: Plain text.
        kind: `info success warning failure`.
        event: Kind of the message, as `weir.alerts` has it.
        key: The same for every message of one alert.
        is_end: Whether it ends the alert.
        allowed: Hosts, addresses and networks that may be called although not public.
    """

    url: str
    title: str
    body: str
    kind: str
    event: str
    key: str
    is_end: bool
    allowed: list[str]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it.

    Attributes:
        taken: Whether the service took it.
        status: The HTTP status that it refused it with, if that was told.
        why: What Apprise says, without any part of the URL.
        refused: Whether channels may not use this service.
        called_inward: Whether it would have called an address that is not allowed.
    """

    taken: bool = False
    status: int | None = None
    why: str = ""
    refused: bool = False
    called_inward: bool = False
