"""One request to ingest, and what its answer means (docs/ingest.md 4.1).

200 with what became of each event means that all of it is stored. 4xx means that nothing of it
is; sent again it helps with 408 and 429. Anything else, and no answer at all, leaves open what is
stored: the same is sent again, with the same ids.
"""

from __future__ import annotations

import http.client
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any, Final

from weir_cli.api import Answer, NoRedirects, decoded, seconds

PATH: Final = "/v1/events"
# Ingest answers within 4.5 s once it has the body.
TIMEOUT_S: Final = 30.0
ELSEWHERE: Final = "is this ingest? see --url, and whether something asks for a login before it"
_LATER: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


class Fate(Enum):
    """What a request came to."""

    STORED = "stored"
    """Each event is stored, as an event or in quarantine."""
    LATER = "later"
    """Nothing of it is stored; later it may be."""
    UNKNOWN = "unknown"
    """What of it is stored is not known."""
    TOO_LARGE = "too large"
    """Nothing of it is stored, and less at once may be."""
    REFUSED = "refused"
    """Nothing of it is stored, nor will be."""


@dataclass(frozen=True)
class Tried:
    """What came of one request.

    Attributes:
        fate: What it means.
        why: What ingest did, for people.
        answer: Its answer; None if there was none.
        mend: What to do about it; empty: wait.
    """

    fate: Fate
    why: str
    answer: Answer | None = None
    mend: str = ""

    @property
    def pause_s(self) -> float:
        """How long ingest asks to wait; 0 if it does not say."""
        return (self.answer.retry_after_s if self.answer else None) or 0.0

    @property
    def code(self) -> str:
        """The code of a refusal; empty where there was no answer."""
        return str(self.answer.error()["code"]) if self.answer else ""

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """What is told of events that are stored as unusable."""
        return self.answer.body.get("items") or [] if self.answer else []


Post = Callable[[bytes, int, str], Tried]
"""Sends a body of so many events, with an Idempotency-Key."""


class Ingest:
    """Ingest at one address, with one key."""

    def __init__(self, url: str, key: str) -> None:
        """Prepare it; nothing is sent yet."""
        self.url = url.rstrip("/") + PATH
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/x-ndjson",
        }
        self._opener = urllib.request.build_opener(NoRedirects)

    def post(self, body: bytes, events: int, key: str) -> Tried:
        """Send a body once.

        Args:
            body: NDJSON.
            events: How many events it has.
            key: Idempotency-Key.
        """
        fields = self._headers | {"Idempotency-Key": f'"{key}"'}
        request = urllib.request.Request(self.url, body, fields, method="POST")  # noqa: S310  the scheme was checked
        try:
            return meant(self._answer(request), events)
        except urllib.error.URLError as error:
            # Where no connection came about nothing was sent.
            is_sure = isinstance(error.reason, ConnectionRefusedError | socket.gaierror)
            fate = Fate.LATER if is_sure else Fate.UNKNOWN
            return Tried(fate, f"could not be reached ({error.reason})")
        except (OSError, http.client.HTTPException) as error:
            return Tried(Fate.UNKNOWN, f"broke off ({error or type(error).__name__})")

    def _answer(self, request: urllib.request.Request) -> Answer:
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as response:
                return Answer(response.status, decoded(response.read()))
        except urllib.error.HTTPError as error:
            with error:
                again_s = seconds(error.headers.get("Retry-After"))
                to = error.headers.get("Location") if error.code < HTTPStatus.BAD_REQUEST else None
                return Answer(error.code, decoded(error.read()), again_s, location=to)


def meant(answer: Answer, events: int) -> Tried:
    """Return what an answer to so many events means."""
    why = f"answered {answer.status}"
    if answer.is_ok:
        if _accounts_for(answer.body, events):
            return Tried(Fate.STORED, why, answer)
        # A page of a login, or another service: whoever it was, it has stored nothing for us.
        said = f"{why} without what became of {events:,} events"
        return Tried(Fate.UNKNOWN, said, None, ELSEWHERE)
    if answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return Tried(Fate.TOO_LARGE, why, answer)
    if answer.status in _LATER:
        return Tried(Fate.LATER, why, answer)
    is_final = answer.status < HTTPStatus.INTERNAL_SERVER_ERROR
    return Tried(Fate.REFUSED if is_final else Fate.UNKNOWN, why, answer)


def _accounts_for(body: Any, events: int) -> bool:
    """Tell whether an answer says what became of each event."""
    if not isinstance(body, dict):
        return False
    accepted, quarantined = body.get("accepted"), body.get("quarantined")
    if not isinstance(accepted, int) or not isinstance(quarantined, int):
        return False
    items = body.get("items") or []
    return accepted + quarantined == events and len(items) == quarantined
