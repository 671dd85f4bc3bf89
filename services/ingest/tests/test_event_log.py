"""The log's waits and faults, at the seam to the Kafka library: no broker is asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from prometheus_client import CollectorRegistry
from weir.kafka import Kafka
from weir.problems import ProblemError
from weir_ingest.event_log import EventLog, LogLimits, Record
from weir_ingest.instruments import Instruments

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S = 0.3
BROKEN = KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "lost its tail", True)


class Stored:
    """A message as a report brings it."""

    def partition(self) -> int:
        """Return where it is stored."""
        return 2

    def offset(self) -> int:
        """Return its place."""
        return 7


@dataclass
class Library:
    """A producer whose broker answers when the test says so."""

    settings: dict[str, Any]
    reports: list[Callable[[KafkaError | None, Any], None]] = field(default_factory=list)
    answers: bool = True
    fatal: KafkaError | None = None
    purged: bool = False

    def produce(self, _topic: str, *_: object, on_delivery: Any, **_more: object) -> None:
        """Take a record, unless nothing can be sent any more."""
        if self.fatal is not None:
            raise KafkaException(KafkaError(KafkaError._FATAL, "fatal error"))
        self.reports.append(on_delivery)

    def poll(self, _timeout_s: float) -> None:
        """Report on one record, as the library does: an error in a report ends the call."""
        if self.fatal is not None:
            raise KafkaException(self.fatal)
        if self.answers and self.reports:
            self.reports.pop(0)(None, Stored())

    def purge(self) -> None:
        """Forget everything."""
        self.purged = True


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> list[Library]:
    """Return the producers made so far, the newest last."""
    made: list[Library] = []

    def make(settings: dict[str, Any]) -> Library:
        made.append(Library(settings))
        return made[-1]

    monkeypatch.setattr("weir_ingest.event_log.Producer", make)
    return made


def new_log(max_bytes: int = 10_000, timeout_s: float = TIMEOUT_S) -> EventLog:
    """Return a log that waits for a third of a second, unless told otherwise."""
    return EventLog(
        Kafka(""),
        0,
        LogLimits(100, max_bytes, timeout_s),
        Instruments(registry=CollectorRegistry()),
    )


RECORD = Record(b"v" * 100, b"k", [])


def test_a_hook_that_raises_harms_no_request(libraries: list[Library]) -> None:
    """A record whose hook fails is reported as stored, and so are those after it."""

    def hook(_stored: object) -> None:
        raise ValueError

    async def scene() -> None:
        log = new_log()
        async with asyncio.timeout(5):
            assert await log.append([RECORD._replace(on_stored=hook), RECORD]) == {2: 7}
            assert await log.append([RECORD]) == {2: 7}
        assert not log.is_stuck

    asyncio.run(scene())
    assert len(libraries) == 1


def test_a_poll_that_raises_is_not_the_last(
    libraries: list[Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the library in one look leaves the next look to come."""

    async def scene() -> None:
        log = new_log()
        fails = iter([RuntimeError("once")])
        poll = libraries[0].poll

        def shaky(_timeout_s: float) -> None:
            for error in fails:
                raise error
            poll(_timeout_s)

        monkeypatch.setattr(libraries[0], "poll", shaky)
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with asyncio.timeout(5):
            assert await log.append([RECORD]) == {2: 7}

    asyncio.run(scene())


@pytest.mark.thorough
def test_an_answer_comes_by_one_deadline(libraries: list[Library]) -> None:
    """Waiting for room and for the acknowledgement together take no longer than one of them."""
    # Of a third of a second, what a busy machine holds anybody up for is too large a part.
    timeout_s = 2.0

    async def scene() -> float:
        log = new_log(max_bytes=400, timeout_s=timeout_s)
        loop = asyncio.get_running_loop()
        first = asyncio.create_task(log.append([RECORD]))
        libraries[0].answers = False
        await asyncio.sleep(0)
        start_s = loop.time()
        second = asyncio.create_task(log.append([RECORD]))
        await asyncio.sleep(timeout_s * 0.7)
        libraries[0].reports.pop(0)(None, Stored())  # room for the second, with 0.3 of its time
        await first
        with pytest.raises(ProblemError, match="not confirmed as stored"):
            await second
        return loop.time() - start_s

    assert asyncio.run(scene()) < timeout_s * 1.5


def test_what_never_fits_is_told_so(libraries: list[Library]) -> None:
    """A request beyond the queue's whole bound is refused for good, not asked to come again."""
    with pytest.raises(ProblemError, match=r"at most 100 records of 200 bytes .* send it in parts"):
        asyncio.run(new_log(max_bytes=200).append([RECORD]))

    assert libraries[0].reports == []


@pytest.mark.parametrize("error", [None, BROKEN])
def test_what_is_not_confirmed_is_counted(
    error: KafkaError | None, libraries: list[Library]
) -> None:
    """Each record of its request, where Kafka refuses it and where it says nothing in time."""
    log = new_log()

    def failures() -> float | None:
        return log._instruments.registry.get_sample_value("weir_ingest_delivery_failures_total")

    async def scene() -> None:
        assert await log.append([RECORD]) == {2: 7}
        assert failures() == 0
        libraries[0].answers = False
        opened = asyncio.create_task(log.append([RECORD, RECORD, RECORD]))
        await asyncio.sleep(0)
        for report in libraries[0].reports if error is not None else ():
            report(error, Stored())
        with pytest.raises(ProblemError, match="not confirmed as stored"):
            await opened

    asyncio.run(scene())
    assert failures() == 3


class TestBrokenProducer:
    @pytest.mark.parametrize("at", ["report", "produce"])
    def test_is_replaced(self, at: str, libraries: list[Library]) -> None:
        """Open requests are answered "not confirmed", a new producer takes the next."""

        async def scene() -> None:
            log = new_log()
            if at == "produce":
                libraries[0].fatal = BROKEN
            opened = asyncio.create_task(log.append([RECORD]))
            await asyncio.sleep(0)
            libraries[0].fatal = BROKEN
            with pytest.raises(
                ProblemError, match=r"not confirmed as stored.*(lost its tail|fatal error)"
            ):
                await opened
            async with asyncio.timeout(5):
                while len(libraries) < 2:  # noqa: ASYNC110 - the library tells nobody
                    await asyncio.sleep(0.001)
            assert log.is_stuck
            assert await log.append([RECORD]) == {2: 7}
            assert not log.is_stuck
            assert (log.unacknowledged, log.oldest_age_ms) == (0, 0)

        asyncio.run(scene())
        assert libraries[0].purged

    def test_a_late_report_of_it_is_no_news(self, libraries: list[Library]) -> None:
        """What the broken producer still reports on closes nothing twice."""

        async def scene() -> None:
            log = new_log()
            opened = asyncio.create_task(log.append([RECORD, RECORD]))
            await asyncio.sleep(0)
            libraries[0].fatal = BROKEN
            with pytest.raises(ProblemError):
                await opened
            for report in libraries[0].reports:
                report(None, Stored())
            assert log.unacknowledged == 0

        asyncio.run(scene())

    def test_other_errors_are_the_librarys(
        self, libraries: list[Library], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An error that the library will mend itself leaves the producer in its place."""

        async def scene() -> None:
            log = new_log()
            errors = iter([KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))])
            poll = libraries[0].poll

            def shaky(timeout_s: float) -> None:
                for error in errors:
                    raise error
                poll(timeout_s)

            monkeypatch.setattr(libraries[0], "poll", shaky)
            assert await log.append([RECORD]) == {2: 7}

        asyncio.run(scene())
        assert len(libraries) == 1
