"""Sends what is due, at least once, each channel by itself.

What is due stands in the records: a message is sent until its outcome stands there too.
A channel sends one message at a time and in order, so that an end never overtakes its
beginning, and waits longer after each failure; another channel does not notice. Tests of a
channel, which people ask for, do not stand in that line.
"""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Awaitable, Callable

import structlog
from weir.alerts.fold import Due, DueKey
from weir.alerts.messages import trial_message
from weir.alerts.records import Attempt, Delivery, Trial
from weir.clock import Clock
from weir_reading.catalog import Catalog

from weir_analytics.alerts.channels.answer import Answer
from weir_analytics.alerts.channels.sender import Sender
from weir_analytics.alerts.journal import Journal
from weir_analytics.alerts.settings import Settings

GIVE_UP_MS = 86_400_000
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0
TRIAL_S = 10.0
"""A test that could not begin by then would be answered after whoever asked has gone."""
log = structlog.get_logger()

_Place = tuple[str, str]
_Work = Callable[[_Place], Awaitable[None]]


class Outbox:
    """The messages that are due.

    Attributes:
        fence: Offset of this job's start record; None before it stands: nothing is sent.
        failing: Channels whose last send failed: tenant and name -> why.
        failing_since_ms: Since when they do: tenant and name -> the job's clock.
    """

    def __init__(
        self, journal: Journal, catalog: Catalog, settings: Settings, clock: Clock
    ) -> None:
        self._journal, self._clock = journal, clock
        self._sender = Sender(catalog, settings, clock)
        self._workers: dict[_Place, asyncio.Task[None]] = {}
        self._testers: dict[_Place, asyncio.Task[None]] = {}
        self._asked_s: dict[str, float] = {}
        self.fence: int | None = None
        self.failing: dict[_Place, str] = {}
        self.failing_since_ms: dict[_Place, int] = {}

    def wake(self) -> None:
        """Begin to send on channels that something is due for and that do not send already."""
        self._note_tests()
        if not self._may_send():
            return
        for tenant, _, channel in self._journal.fold.due:
            self._begin(self._workers, (tenant, channel), self._work)
        for one in self._asked():
            self._begin(self._testers, (one.tenant, one.channel), self._test)

    def oldest_due_ms(self) -> int | None:
        """Return since when the oldest message waits for its outcome; None if none does."""
        due = self._journal.fold.due.values()
        return next((one.since_ms for one in due), None)

    async def close(self) -> None:
        """Stop; what was not confirmed is sent by the next job."""
        tasks = [*self._workers.values(), *self._testers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._sender.close()

    def _begin(self, tasks: dict[_Place, asyncio.Task[None]], place: _Place, work: _Work) -> None:
        task = tasks.get(place)
        if task is None or task.done():
            tasks[place] = asyncio.create_task(self._kept_up(place, work))

    async def _kept_up(self, place: _Place, work: _Work) -> None:
        """Work until nothing is left to do; whatever breaks it, it begins anew after a pause."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return await work(place)
            except Exception as error:  # noqa: BLE001  one channel must not end unseen
                # Not its text: it may hold a part of a secret.
                where = traceback.extract_tb(error.__traceback__)[-1]
                log.error(
                    "channel_broke",
                    channel=place[1],
                    error=type(error).__name__,
                    where=f"{where.filename}:{where.lineno}",
                )
                self._note_failed(place, "it broke off; the log of the alerts job says where")
            await asyncio.sleep(_spread(pause_s))
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _work(self, place: _Place) -> None:
        tries, pause_s = 0, FIRST_PAUSE_S
        while (found := self._next(place)) is not None:
            key, due = found
            answer = await self._sender.send(*place, due.notification)
            tries += 1
            outcome = self._outcome(due, answer)
            if outcome is None:
                self._note_failed(place, answer.why or f"answered {answer.status}")
                if tries == 1:
                    await self._journal.append([self._attempt(key, answer)])
                await asyncio.sleep(_spread(pause_s))
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
                continue
            log.info("delivery", channel=place[1], outcome=outcome, status=answer.status)
            await self._journal.append([self._delivery(key, outcome, answer, tries)])
            if outcome == "delivered":
                self._note_works(place)
            tries, pause_s = 0, FIRST_PAUSE_S

    async def _test(self, place: _Place) -> None:
        while (trial := self._next_trial(place)) is not None:
            answer = await self._sender.send(*place, trial_message(trial))
            outcome = "delivered" if answer.delivered else "refused" if answer.final else "failed"
            log.info("channel_tested", channel=place[1], outcome=outcome, status=answer.status)
            if answer.delivered:
                self._note_works(place)
            key = trial.tenant, trial.id, trial.channel
            await self._journal.append([self._delivery(key, outcome, answer, 1)])

    def _note_failed(self, place: _Place, why: str) -> None:
        standing = self._journal.channels.standing(*place)
        since_ms = standing.failing_ms or self._clock.now_ms()
        self.failing[place] = why
        self.failing_since_ms.setdefault(place, since_ms)

    def _note_works(self, place: _Place) -> None:
        self.failing.pop(place, None)
        self.failing_since_ms.pop(place, None)

    def _may_send(self) -> bool:
        """Tell whether outcomes that this job records count.

        Those of a job that was taken over from are passed over: its messages would stay due.
        """
        return self.fence is not None and self._journal.fold.reader.fence <= self.fence

    def _next(self, place: _Place) -> tuple[DueKey, Due] | None:
        due = self._journal.fold.due if self._may_send() else {}
        return next(((k, one) for k, one in due.items() if (k[0], k[2]) == place), None)

    def _next_trial(self, place: _Place) -> Trial | None:
        asked = self._asked() if self._may_send() else []
        return next((one for one in asked if (one.tenant, one.channel) == place), None)

    def _asked(self) -> list[Trial]:
        """Return the tests that somebody still waits for."""
        since_s = self._clock.monotonic_s() - TRIAL_S
        trials = self._journal.fold.trials
        return [trials[one] for one, at_s in self._asked_s.items() if at_s > since_s]

    def _note_tests(self) -> None:
        """Keep since when tests are known: the clock of who asked may be another one.

        It counts for those alone that were asked for before this job began.
        """
        now_s, now_ms = self._clock.monotonic_s(), self._clock.now_ms()
        trials, known = self._journal.fold.trials.values(), self._asked_s
        began = self.fence is not None
        ages = {one.id: 0.0 if began else max(0, now_ms - one.at_ms) / 1000 for one in trials}
        self._asked_s = {one: known.get(one, now_s - age_s) for one, age_s in ages.items()}

    def _outcome(self, due: Due, answer: Answer) -> str | None:
        """Return what became of a message for good; None: it is sent again."""
        if answer.delivered:
            return "delivered"
        if answer.final:
            return "refused"
        return "given_up" if self._clock.now_ms() - due.since_ms > GIVE_UP_MS else None

    def _attempt(self, key: DueKey, answer: Answer) -> Attempt:
        tenant, number, channel = key
        return Attempt(
            fence=self.fence or 0,
            tenant=tenant,
            id=number,
            channel=channel,
            status=answer.status,
            why=answer.why,
            took_ms=answer.took_ms,
            at_ms=self._clock.now_ms(),
        )

    def _delivery(self, key: DueKey, outcome: str, answer: Answer, tries: int) -> Delivery:
        tenant, number, channel = key
        return Delivery(
            fence=self.fence or 0,
            tenant=tenant,
            id=number,
            channel=channel,
            outcome=outcome,
            status=answer.status,
            why=answer.why,
            barred=answer.barred,
            tries=tries,
            took_ms=answer.took_ms,
            at_ms=self._clock.now_ms(),
        )


def _spread(pause_s: float) -> float:
    """Return a pause of about this length, so that channels do not all try at once."""
    return pause_s * (0.5 + random.random())  # noqa: S311  no secret
