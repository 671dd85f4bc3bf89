"""The heartbeat of channels: as long as it comes, rules are being evaluated.

Whoever receives it complains when it stays away; that is how one learns that Weir itself,
its Kafka or its network is down, when nothing can be told any more. So it is sent only
while the job evaluates what comes in and can record what it finds, is never made up for and
never sent twice: one that fails is followed by the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import structlog
from weir.alerts.due import Place
from weir.alerts.messages import heartbeat_message
from weir.clock import Clock
from weir.definitions.channel import Channel
from weir_reading.catalog import Catalog

from weir_analytics.alerts.sending import Sending

LOOK_EVERY_S: Final = 0.25
log = structlog.get_logger()


class Beat(NamedTuple):
    """The last heartbeat of a channel.

    Attributes:
        at_s: When it was sent, on the monotonic clock.
        evaluated_ms: Processed-through that rules were evaluated up to then.
    """

    at_s: float
    evaluated_ms: int


def due(
    every_ms: Mapping[Place, int], last: Mapping[Place, Beat], now_s: float, evaluated_ms: int
) -> list[Place]:
    """Return the channels whose heartbeat is to be sent.

    Args:
        every_ms: How often each channel wants one.
        last: The last one of each; who had none gets one at once.
        now_s: The monotonic clock.
        evaluated_ms: Processed-through of the last look at all rules.
    """
    found = []
    for place, length_ms in every_ms.items():
        before = last.get(place)
        if before is None or (
            now_s - before.at_s >= length_ms / 1000 and evaluated_ms != before.evaluated_ms
        ):
            found.append(place)
    return found


class Heartbeats:
    """Sends the heartbeats of all channels that want one."""

    def __init__(
        self,
        catalog: Catalog,
        sending: Sending,
        clock: Clock,
        *,
        evaluated: Callable[[], int | None],
        may_send: Callable[[], bool],
    ) -> None:
        """Prepare.

        Args:
            catalog: Which channels there are.
            sending: Sends.
            clock: For the time between two.
            evaluated: Returns processed-through of the last look at all rules.
            may_send: Tells whether this job is the one that works, and can record.
        """
        self._catalog, self._sending, self._clock = catalog, sending, clock
        self._evaluated, self._may_send = evaluated, may_send
        self._last: dict[Place, Beat] = {}

    async def run(self) -> None:
        """Send until cancelled."""
        under_way: dict[Place, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as sends:
            while True:
                under_way = {place: one for place, one in under_way.items() if not one.done()}
                for place, every_ms in self._next().items():
                    if place not in under_way:
                        under_way[place] = sends.create_task(self._send(place, every_ms))
                await asyncio.sleep(LOOK_EVERY_S)

    def _next(self) -> dict[Place, int]:
        """Return the channels whose turn it is, with how often it is."""
        evaluated_ms = self._evaluated()
        if evaluated_ms is None or not self._may_send():
            return {}
        wanted = {
            (one.tenant, one.name): one.readable.heartbeat
            for one in self._catalog.folded.current(kind="channel")
            if isinstance(one.readable, Channel) and one.readable.heartbeat is not None
        }
        self._last = {place: one for place, one in self._last.items() if place in wanted}
        now = due(wanted, self._last, self._clock.monotonic_s(), evaluated_ms)
        return {place: wanted[place] for place in now}

    async def _send(self, place: Place, every_ms: int) -> None:
        evaluated_ms = self._evaluated() or 0
        self._last[place] = Beat(self._clock.monotonic_s(), evaluated_ms)
        note = heartbeat_message(*place, every_ms, self._clock.now_ms(), evaluated_ms)
        answer = await self._sending.send(place, note)
        if not answer.delivered:
            why = answer.why
            log.warning("heartbeat_failed", channel=place[1], status=answer.status, why=why)
