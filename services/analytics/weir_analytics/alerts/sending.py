"""One try to send, whoever asks for it, and what it says of its channel."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable

import structlog
from weir.alerts.channels import Channels
from weir.alerts.due import Place
from weir.alerts.records import Notification
from weir.clock import Clock

from weir_analytics.alerts.channels.answer import Answer
from weir_analytics.alerts.channels.sender import Sender
from weir_analytics.alerts.line import pause_s

BROKE_OFF = "it broke off; the log of the alerts job says where"
log = structlog.get_logger()


class Sending:
    """Sends, and knows which channels fail.

    Attributes:
        failing: Channels whose last send failed: tenant and name -> why.
        failing_since_ms: Since when they do: tenant and name -> the job's clock.
    """

    def __init__(self, sender: Sender, channels: Channels, clock: Clock) -> None:
        self._sender, self._channels, self._clock = sender, channels, clock
        self._worked: set[Place] = set()
        self.failing: dict[Place, str] = {}
        self.failing_since_ms: dict[Place, int] = {}

    def at_once(self, place: Place) -> int:
        """Return how many messages a channel may be sent at a time."""
        return self._sender.at_once(*place)

    async def send(self, place: Place, note: Notification) -> Answer:
        """Send once; never raises: what nobody foresaw is a failure of this message."""
        try:
            answer = await self._sender.send(*place, note)
        except Exception as error:  # noqa: BLE001  one message must not end its channel
            _log_broken(place, error)
            answer = Answer(None, 0, BROKE_OFF)
        if answer.delivered:
            self._works(place)
        elif note.kind != "test":
            # A test that somebody tries until it works is no channel that fails.
            self._fails(place, answer.why or f"answered {answer.status}")
        return answer

    async def kept_up(self, place: Place, work: Callable[[Place], Awaitable[None]]) -> None:
        """Work until nothing is left to do; whatever breaks it, it begins anew after a pause."""
        tries = 0
        while True:
            try:
                return await work(place)
            except Exception as error:  # noqa: BLE001  one channel must not end unseen
                _log_broken(place, error)
                self._fails(place, BROKE_OFF)
            tries += 1
            await asyncio.sleep(pause_s(tries))

    def drop_unknown(self) -> None:
        """Forget that channels fail that somebody has deleted."""
        for place in [one for one in self.failing if not self._sender.knows(*one)]:
            self._works(place)

    async def close(self) -> None:
        """Close what is open."""
        await self._sender.close()

    def _fails(self, place: Place, why: str) -> None:
        # What an earlier job has seen counts until this one has seen it work.
        known = None if place in self._worked else self._channels.standing(*place).failing_ms
        self.failing[place] = why
        self.failing_since_ms.setdefault(place, known or self._clock.now_ms())

    def _works(self, place: Place) -> None:
        self._worked.add(place)
        self.failing.pop(place, None)
        self.failing_since_ms.pop(place, None)


def _log_broken(place: Place, error: Exception) -> None:
    # Not its text: it may hold a part of a secret.
    where = traceback.extract_tb(error.__traceback__)[-1]
    log.error(
        "channel_broke",
        channel=place[1],
        error=type(error).__name__,
        where=f"{where.filename}:{where.lineno}",
    )
