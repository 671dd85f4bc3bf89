"""Sends what is due, at least once, each channel by itself.

What is due stands in the records: a message is sent until its outcome stands there too.
Of one alert a channel sends one message after the other, so that an end never overtakes its
beginning; what fails of one alert holds up no other, and no other channel. When a message
may be sent decides line.py. Tests of a channel, which people ask for, do not stand in that
line.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

import structlog
from prometheus_client import Counter, Histogram
from weir import metrics
from weir.alerts.due import Due, DueKey, Place
from weir.alerts.messages import trial_message
from weir.alerts.records import Attempt, Delivery, Trial
from weir.clock import Clock
from weir_reading.catalog import Catalog

from weir_analytics.alerts.channels.answer import Answer
from weir_analytics.alerts.channels.sender import Sender
from weir_analytics.alerts.heartbeats import Heartbeats
from weir_analytics.alerts.journal import Journal
from weir_analytics.alerts.line import Head, Line, is_too_old
from weir_analytics.alerts.sending import Sending
from weir_analytics.alerts.settings import Settings
from weir_analytics.failpoints import failpoint

NOT_IN_TIME = "it could not be sent within a day"
TRIAL_S = 10.0
"""A test that could not begin by then would be answered after whoever asked has gone."""
OUTCOMES = ("delivered", "refused", "given_up")
MESSAGES = Counter(
    metrics.ALERTS_MESSAGES, "Messages of alerts with their outcome, by outcome.", ["outcome"]
)
for _outcome in OUTCOMES:
    MESSAGES.labels(_outcome)
REPEATS = Counter(
    metrics.ALERTS_REPEATS,
    "Messages sent again, since no try before was confirmed: a receiver may have them twice.",
)
DELIVERY = Histogram(
    metrics.ALERTS_DELIVERY_SECONDS,
    "From when a message is due until a receiver has confirmed it.",
    buckets=(0.1, 0.3, 1, 3, 10, 30, 60, 300, 3_600, 86_400),
)
log = structlog.get_logger()

_Work = Callable[[Place], Awaitable[None]]


class Outbox:
    """The messages that are due.

    Attributes:
        fence: Offset of this job's start record; None before it stands: nothing is sent.
    """

    def __init__(
        self,
        journal: Journal,
        catalog: Catalog,
        settings: Settings,
        clock: Clock,
        evaluated: Callable[[], int | None],
    ) -> None:
        """Prepare.

        Args:
            journal: The records, with what is due.
            catalog: The channels.
            settings: Where secrets are, and whom channels may call.
            clock: The time.
            evaluated: Returns processed-through of the last look at all rules.
        """
        self._journal, self._clock = journal, clock
        self._sending = Sending(Sender(catalog, settings, clock), journal.channels, clock)
        self._heartbeats = Heartbeats(
            catalog, self._sending, clock, evaluated=evaluated, may_send=self._may_beat
        )
        self._workers: dict[Place, asyncio.Task[None]] = {}
        self._testers: dict[Place, asyncio.Task[None]] = {}
        self._asked_s: dict[str, float] = {}
        self.fence: int | None = None
        self._woken: dict[Place, asyncio.Event] = {}

    @property
    def failing(self) -> Mapping[Place, str]:
        """Channels whose last send failed: tenant and name -> why."""
        return self._sending.failing

    @property
    def failing_since_ms(self) -> Mapping[Place, int]:
        """Since when they do: tenant and name -> the job's clock."""
        return self._sending.failing_since_ms

    def wake(self) -> None:
        """Begin to send on channels that something is due for and that do not send already."""
        self._note_tests()
        if not self._may_send():
            return
        self._sending.drop_unknown()
        for place in self._journal.fold.due.places():
            self._begin(self._workers, place, self._work)
            if place in self._woken:
                self._woken[place].set()
        for one in self._asked():
            self._begin(self._testers, (one.tenant, one.channel), self._test)

    async def run(self) -> None:
        """Send heartbeats until cancelled; what is due is sent when `wake` says so."""
        await self._heartbeats.run()

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
        await self._sending.close()

    def _begin(self, tasks: dict[Place, asyncio.Task[None]], place: Place, work: _Work) -> None:
        task = tasks.get(place)
        if task is None or task.done():
            tasks[place] = asyncio.create_task(self._sending.kept_up(place, work))

    async def _work(self, place: Place) -> None:
        """Send until nothing is due on a channel."""
        line, woken = Line(), asyncio.Event()
        self._woken[place] = woken
        # Looked at again at the end: while the last ones end, more may have become due.
        while self._is_due(place):
            async with asyncio.TaskGroup() as sends:
                while self._is_due(place):
                    woken.clear()
                    if not await self._give_up(place, line):
                        await self._begin_next(place, line, woken, sends)

    async def _give_up(self, place: Place, line: Line) -> bool:
        """Settle some of what is too old without a call; return whether there was any."""
        heads = self._journal.fold.due.heads(place)
        old = line.too_old(heads, self._clock.monotonic_s(), self._clock.now_ms())
        if not old:
            return False
        answer = Answer(None, 0, self._sending.failing.get(place, NOT_IN_TIME))
        alerts = [due.notification.dedup_key for _, due in old]
        MESSAGES.labels("given_up").inc(len(old))
        log.info("given_up", channel=place[1], messages=len(old), why=answer.why)
        await self._journal.append(
            [
                self._delivery(key, "given_up", answer, line.tries(alert))
                for (key, _), alert in zip(old, alerts, strict=True)
            ]
        )
        for alert in alerts:
            line.ended(alert, answered=False)
        return True

    async def _begin_next(
        self, place: Place, line: Line, woken: asyncio.Event, sends: asyncio.TaskGroup
    ) -> None:
        """Send what is next, or wait until there may be something."""
        now_s, at_once = self._clock.monotonic_s(), self._sending.at_once(place)
        due = self._journal.fold.due
        head = line.next(due.heads(place), now_s, at_once)
        if head is not None:
            sends.create_task(self._send(place, line, head, woken))
            return
        wait_s = line.wait_s(due.heads(place), now_s, at_once)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await woken.wait()

    async def _send(self, place: Place, line: Line, head: Head, woken: asyncio.Event) -> None:
        """Send one message once, and record what came of it."""
        key, due = head
        alert = due.notification.dedup_key
        if line.tries(alert):
            REPEATS.inc()
        failpoint("C12-stored")
        answer = await self._sending.send(place, due.notification)
        failpoint("C12-sent")
        outcome = self._outcome(due, answer)
        if outcome is None:
            line.failed(alert, self._clock.monotonic_s(), answered=answer.status is not None)
            if line.tries(alert) == 1:
                await self._journal.append([self._attempt(key, answer)])
        else:
            log.info("delivery", channel=place[1], outcome=outcome, status=answer.status)
            tries = line.tries(alert) + 1
            MESSAGES.labels(outcome).inc()
            if outcome == "delivered":
                DELIVERY.observe(max(0, self._clock.now_ms() - due.since_ms) / 1000)
            await self._journal.append([self._delivery(key, outcome, answer, tries)])
            line.ended(alert, answered=outcome != "given_up")
        woken.set()

    async def _test(self, place: Place) -> None:
        while (trial := self._next_trial(place)) is not None:
            answer = await self._sending.send(place, trial_message(trial))
            outcome = "delivered" if answer.delivered else "refused" if answer.final else "failed"
            log.info("channel_tested", channel=place[1], outcome=outcome, status=answer.status)
            key = trial.tenant, trial.id, trial.channel
            await self._journal.append([self._delivery(key, outcome, answer, 1)])

    def _may_send(self) -> bool:
        """Tell whether outcomes that this job records count.

        Those of a job that was taken over from are passed over: its messages would stay due.
        """
        return self.fence is not None and self._journal.fold.reader.fence <= self.fence

    def _may_beat(self) -> bool:
        """Tell whether what rules find can be recorded, and so told; a pass without is no proof."""
        return self._may_send() and not self._journal.is_away()

    def _is_due(self, place: Place) -> bool:
        return self._may_send() and place in self._journal.fold.due.places()

    def _next_trial(self, place: Place) -> Trial | None:
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
        return "given_up" if is_too_old(due, self._clock.now_ms()) else None

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
