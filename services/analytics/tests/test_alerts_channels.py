"""The outbox on a real log: what it goes on with, and when it ends."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog
from alerts_job import SECRET, Receiver
from msgspec.structs import replace
from prometheus_client import REGISTRY
from weir.alerts.messages import trial_message
from weir.alerts.records import Cursor, Look, Message, Record, Trial
from weir.clock import SystemClock
from weir.definitions.records import Edit, delete_record, put_record
from weir.kafka import Kafka
from weir_analytics.alerts.channels.answer import Answer
from weir_analytics.alerts.channels.sender import AT_ONCE, Sender
from weir_analytics.alerts.journal import Journal
from weir_analytics.alerts.line import FIRST_PAUSE_S, GIVE_UP_MS
from weir_analytics.alerts.outbox import OUTCOMES, Outbox
from weir_analytics.alerts.settings import Settings
from weir_local.kafka import Broker
from weir_local.testing import running_broker
from weir_reading.catalog import Catalog
from weir_reading.follower import Record as Written

pytestmark = [pytest.mark.kafka]

TENANT = "default"
HOOK = (TENANT, "hook")
FENCE = 5
HOUR_MS = 3_600_000
DELAY_S = 5
"""The most by which a receiver that hangs may delay another one."""


class Ahead(SystemClock):
    """The clock, moved.

    Attributes:
        ahead_ms: By how much.
        stands_s: Where its seconds stand; None while they go on.
    """

    ahead_ms = 0
    stands_s: float | None = None

    def now_ms(self) -> int:
        """Return the moved time."""
        return super().now_ms() + self.ahead_ms

    def monotonic_s(self) -> float:
        """Return the moved seconds; positive, also of a machine that was just started."""
        if self.stands_s is not None:
            return self.stands_s
        return super().monotonic_s() + 2 * GIVE_UP_MS / 1000 + self.ahead_ms / 1000


class Told:
    """What Prometheus is told of messages, since this was made."""

    def __init__(self) -> None:
        self._before = self._now()

    def since(self) -> dict[str, float]:
        """Return what has been added, but for zeros."""
        added = {name: n - self._before[name] for name, n in self._now().items()}
        return {name: n for name, n in added.items() if n}

    def _now(self) -> dict[str, float]:
        outcomes = {one: ("weir_alerts_messages_total", {"outcome": one}) for one in OUTCOMES}
        series: dict[str, tuple[str, dict[str, str]]] = {
            **outcomes,
            "repeats": ("weir_alerts_message_repeats_total", {}),
            "timed": ("weir_alerts_delivery_seconds_count", {}),
        }
        found = {name: REGISTRY.get_sample_value(*one) for name, one in series.items()}
        assert None not in found.values()
        return {name: n or 0.0 for name, n in found.items()}


class Post:
    """An outbox of this process with channels that are webhooks, and the log that it works on."""

    def __init__(self, broker: Broker, folder: Path, urls: Mapping[str, str]) -> None:
        (folder / "hook").write_text(SECRET)
        settings = Settings(
            kafka_bootstrap=broker.bootstrap,
            redis_url="redis://127.0.0.1:9",
            secrets_dir=folder,
            allowed_hosts=("127.0.0.0/8",),
        )
        catalog = Catalog()
        for offset, (name, url) in enumerate(urls.items()):
            webhook = {"url": url, "secret": "secret://hook"}
            text = json.dumps({"kind": "channel", "name": name, "webhook": webhook})
            record = put_record(Edit(TENANT, "channel", name, None, "ann", 0), text)
            catalog.take([Written(offset, record.key, record.value, 0)])
        self.catalog, self.clock = catalog, Ahead()
        self.journal = Journal(Kafka(broker.bootstrap), self.clock, self._on_read)
        self.outbox = Outbox(self.journal, catalog, settings, self.clock, lambda: None)

    async def begin(self) -> None:
        """Work from here on, as the job does after its start stands in the log."""
        await self.journal.follower.caught_up.wait()
        self.outbox.fence = FENCE
        self.outbox.wake()

    async def put(self, *numbers: str, alert: str = "", channel: str = "hook") -> None:
        """Let messages be due, each by its id; of one alert, or each of one of its own."""
        asked = [Trial(tenant=TENANT, id=number, channel=channel, by="ann") for number in numbers]
        notes = [replace(trial_message(one), kind="firing", rule=alert) for one in asked]
        if alert:
            notes = [replace(one, dedup_key=alert) for one in notes]
        made = [Message(notification=one, channels=[channel]) for one in notes]
        look = Look(
            fence=FENCE,
            tenant=TENANT,
            rule="r",
            vid=1,
            group=[],
            transitions=[],
            series=None,
            messages=made,
            at_ms=self.clock.now_ms(),
        )
        await self.write(look)

    async def write(self, record: Record) -> None:
        """Append a record, and read it back."""
        await self.journal.append([record])

    def _on_read(self) -> None:
        self.outbox.wake()


@asynccontextmanager
async def running(
    broker: Broker, folder: Path, receiver: Receiver, **others: str
) -> AsyncIterator[Post]:
    """Run an outbox for as long as the block lasts; other channels by name and address."""
    post = Post(broker, folder, {"hook": receiver.url, **others})
    post.journal.follower.start()
    try:
        yield post
    finally:
        await post.outbox.close()
        await post.journal.close()


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110  polled, as in every test
            await asyncio.sleep(0.02)
    assert holds(), what


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Return a broker of this test's own: who wrote last into its log counts."""
    with running_broker(tmp_path / "kafka") as broker:
        yield broker


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a receiver on loopback."""
    receiver = Receiver()
    yield receiver
    receiver.close()


def test_what_nobody_foresaw_stops_no_channel(
    broker: Broker, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged, the channel fails meanwhile, and its messages are sent after a pause."""
    real, broken = Sender.send, [RuntimeError("a secret"), RuntimeError("a secret")]

    async def breaking(*args: object) -> Answer:
        if broken:
            raise broken.pop()
        return await real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(Sender, "send", breaking)

    async def played() -> None:
        async with running(broker, tmp_path, receiver) as post:
            await post.begin()
            with structlog.testing.capture_logs() as logs:
                await post.put("a", "b")
                await until(lambda: bool(post.outbox.failing), "the channel fails")
                await until(lambda: receiver.calls == 2, "both are sent")
            await until(lambda: not post.journal.fold.due, "both are recorded")
            assert not post.outbox.failing
            told = [one for one in logs if one["event"] == "channel_broke"]
            assert [one["error"] for one in told] == ["RuntimeError"] * 2
            assert "a secret" not in str(told)

    asyncio.run(played())
    # Of two alerts: no order is promised.
    assert sorted(body["id"] for body in receiver.bodies) == ["a", "b"]


class Picky(Receiver):
    """Fails at some messages, by their id."""

    fails_at: tuple[str, ...] = ()
    failed = 0

    def take(self, headers: dict[str, str], body: bytes) -> int:
        """Take one call; return what to answer."""
        if json.loads(body)["id"] in self.fails_at:
            self.failed += 1
            return 500
        return super().take(headers, body)

    @property
    def ids(self) -> list[str]:
        """Return what arrived, in order."""
        return [body["id"] for body in self.bodies]


def numbers_due(post: Post) -> set[str]:
    """Return the ids of the messages that wait for their outcome."""
    return {number for _, number, _ in post.journal.fold.due}


def test_what_a_receiver_cannot_take_holds_up_its_alert_alone(
    broker: Broker, tmp_path: Path
) -> None:
    """Others pass it; its end waits, also in the next job, until it has arrived."""
    picky = Picky()
    picky.fails_at = ("fired",)

    async def played() -> None:
        async with running(broker, tmp_path, picky) as post:
            await post.begin()
            await post.put("fired", "resolved", alert="bad")
            await post.put("a", alert="a")
            await post.put("b", alert="b")
            # Each of an alert of its own: no order is promised between them.
            await until(lambda: sorted(picky.ids) == ["a", "b"], "the others")
            await post.put("c", alert="c")
            await until(lambda: picky.ids[2:] == ["c"], "what comes later")
            # What has arrived and is not recorded yet would be sent again by the next job.
            await until(lambda: numbers_due(post) == {"fired", "resolved"}, "the rest recorded")
        async with running(broker, tmp_path, picky) as post:
            await post.begin()
            await until(lambda: bool(post.outbox.failing), "the channel fails")
            await post.put("d", alert="d")
            await until(lambda: picky.ids[2:] == ["c", "d"], "what the next job has")
            picky.fails_at = ()
            await until(lambda: not post.journal.fold.due, "all is recorded")

    try:
        asyncio.run(played())
    finally:
        picky.close()
    assert picky.ids[2:] == ["c", "d", "fired", "resolved"]


def test_what_is_sent_again_is_told(broker: Broker, receiver: Receiver, tmp_path: Path) -> None:
    """A receiver that answers with an error may have it all the same; it is delivered once."""
    receiver.statuses[:] = [500, 200]

    async def played() -> None:
        async with running(broker, tmp_path, receiver) as post:
            await post.begin()
            await post.put("fired", alert="k")
            await until(lambda: not post.journal.fold.due, "it is delivered")

    told = Told()
    asyncio.run(played())
    assert told.since() == {"delivered": 1, "timed": 1, "repeats": 1}


def test_a_receiver_that_refuses_fails(broker: Broker, receiver: Receiver, tmp_path: Path) -> None:
    """What it refuses for good is over, and the channel fails until something arrives."""
    receiver.statuses[:] = [404]

    async def played() -> None:
        async with running(broker, tmp_path, receiver) as post:
            await post.begin()
            await post.put("fired", alert="k")
            await until(lambda: not post.journal.fold.due, "the refusal is recorded")
            assert told.since() == {"refused": 1}
            assert post.outbox.failing == {HOOK: "answered 404"}
            await post.put("resolved", alert="k")
            await until(lambda: not post.journal.fold.due, "the end is recorded")
            assert post.outbox.failing == {}

    told = Told()
    asyncio.run(played())
    assert [body["id"] for body in receiver.bodies] == ["resolved"]
    assert told.since() == {"refused": 1, "delivered": 1, "timed": 1}


def test_a_receiver_that_hangs_delays_no_other(
    broker: Broker, receiver: Receiver, tmp_path: Path
) -> None:
    """However much is due for it, others have theirs at once."""

    async def played() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            async with running(broker, tmp_path, receiver, slow=url) as post:
                await post.begin()
                for n in range(20):
                    await post.put(f"s{n}", alert=f"s{n}", channel="slow")
                for n in range(5):
                    begun_s = time.monotonic()
                    await post.put(f"h{n}", alert=f"h{n}")
                    await until(lambda: len(receiver.bodies) == n + 1, "it arrives")  # noqa: B023
                    assert time.monotonic() - begun_s < DELAY_S

    asyncio.run(played())


def test_what_is_due_for_a_deleted_channel_is_refused(
    broker: Broker, receiver: Receiver, tmp_path: Path
) -> None:
    """It waits no more, and the channel fails no more; others have theirs."""

    async def played() -> None:
        async with running(broker, tmp_path, receiver, gone=receiver.url) as post:
            record = delete_record(Edit(TENANT, "channel", "gone", 1, "ann", 0))
            post.catalog.take([Written(2, record.key, record.value, 0)])
            await post.begin()
            await post.put("a", "b", channel="gone")
            await post.put("c")
            await until(lambda: not post.journal.fold.due, "nothing is due")
            found = [post.journal.channels.answer(one) for one in "abc"]
            assert [one.outcome for one in found if one] == ["refused", "refused", "delivered"]
            assert post.outbox.failing == {}

    asyncio.run(played())
    assert [body["id"] for body in receiver.bodies] == ["c"]


def test_what_is_a_day_old_is_given_up_without_a_call(broker: Broker, tmp_path: Path) -> None:
    """However little of it was ever tried; what came since is sent."""
    picky, ids = Picky(), tuple(f"old{n}" for n in range(20))
    picky.fails_at = ids

    async def played() -> None:
        async with running(broker, tmp_path, picky) as post:
            post.clock.ahead_ms = -GIVE_UP_MS - HOUR_MS
            await post.begin()
            await post.put(*ids)
            await until(lambda: picky.failed >= 4, "the first tries")
            post.clock.ahead_ms, failed = 0, picky.failed
            await post.put("new")
            await until(lambda: not post.journal.fold.due, "nothing is due")
            # Beside one that has failed, others of those sent at a time may have been under way.
            assert picky.failed < failed + AT_ONCE
            answers = (post.journal.channels.answer(one) for one in ids)
            found = [one for one in answers if one]
            assert [one.outcome for one in found] == ["given_up"] * len(ids)
            assert {one.why for one in found if not one.tries} == {"answered 500"}

    told = Told()
    try:
        asyncio.run(played())
    finally:
        picky.close()
    assert picky.ids == ["new"]
    since = told.since()
    assert (since["given_up"], since["delivered"], since["timed"]) == (len(ids), 1, 1)


def test_who_was_taken_over_from_sends_no_more(
    broker: Broker, receiver: Receiver, tmp_path: Path
) -> None:
    """What it would record is passed over, so it would send one message again and again."""
    receiver.statuses[:] = [503]

    async def played() -> None:
        async with running(broker, tmp_path, receiver) as post:
            await post.begin()
            # However long it takes to record that another job has started, no pause ends before.
            post.clock.stands_s = post.clock.monotonic_s()
            await post.put("a")
            await until(lambda: receiver.calls == 1, "the first try")
            later = Cursor(fence=FENCE + 1, tenant=TENANT, settled_ms={1: 0})
            await post.write(later)
            now_ms = SystemClock().now_ms()
            trial = Trial(tenant=TENANT, id="t", channel="hook", by="ann", at_ms=now_ms)
            await post.write(trial)
            post.clock.stands_s = None
            # Longer than the pause after a first try, in which it would try again.
            await asyncio.sleep(2 * FIRST_PAUSE_S)
            assert list(post.journal.fold.due) == [(TENANT, "a", "hook")]

    asyncio.run(played())
    assert receiver.calls == 1


def test_since_when_a_channel_fails(broker: Broker, receiver: Receiver, tmp_path: Path) -> None:
    """From its first failure on, also for a job that begins after it, until it works."""
    receiver.is_down = True

    async def played() -> None:
        begun_ms = SystemClock().now_ms()
        async with running(broker, tmp_path, receiver) as post:
            assert post.outbox.oldest_due_ms() is None
            await post.begin()
            await post.put("a")
            await until(lambda: bool(post.journal.channels.standing(*HOOK).outcome), "recorded")
            assert post.outbox.failing == {HOOK: "answered 503"}
            since_ms = post.journal.channels.standing(*HOOK).failing_ms
            oldest_ms = post.outbox.oldest_due_ms()
            assert since_ms is not None
            assert oldest_ms is not None
            assert begun_ms <= oldest_ms <= since_ms
        async with running(broker, tmp_path, receiver) as post:
            await post.begin()
            await post.put("b")
            await until(lambda: bool(post.outbox.failing), "the channel fails")
            assert post.outbox.failing_since_ms == {HOOK: since_ms}
            assert post.outbox.oldest_due_ms() == oldest_ms
            receiver.is_down = False
            await until(lambda: not post.journal.fold.due, "both are delivered")
            assert (post.outbox.failing, post.outbox.failing_since_ms) == ({}, {})
            assert post.outbox.oldest_due_ms() is None

    asyncio.run(played())


def test_a_test_is_as_old_as_it_has_been_known(
    broker: Broker, receiver: Receiver, tmp_path: Path
) -> None:
    """The clock of who asked says nothing, but of tests from before this job began."""
    now_ms = SystemClock().now_ms()
    before = {"long ago": now_ms - HOUR_MS, "just before": now_ms, "ahead": now_ms + HOUR_MS}

    async def played() -> None:
        async with running(broker, tmp_path, receiver) as post:
            for number, at_ms in before.items():
                await post.write(trial(number, at_ms))
            await post.begin()
            await post.write(trial("behind", now_ms - HOUR_MS))
            await until(lambda: set(post.journal.fold.trials) == {"long ago"}, "tests")

    asyncio.run(played())
    assert sorted(body["id"] for body in receiver.bodies) == ["ahead", "behind", "just before"]


def trial(number: str, at_ms: int) -> Trial:
    """Return a test of the channel that somebody asks for."""
    return Trial(tenant=TENANT, id=number, channel="hook", by="ann", at_ms=at_ms)
