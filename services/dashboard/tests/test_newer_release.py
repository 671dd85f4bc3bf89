"""What a newer release has written is told in words, and no number is made of the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from fastapi import FastAPI
from first_release import TOPICS, newer, redis_state
from websockets.frames import Close
from weir import names
from weir.clock import SystemClock
from weir.formats import NewerFormatError
from weir.kafka import Kafka
from weir_dashboard.api import corrections as corrections_api
from weir_dashboard.api import problems, query, status
from weir_dashboard.auth.callers import Caller
from weir_dashboard.change_quota import ChangeQuota
from weir_dashboard.context import Context
from weir_dashboard.definitions.catalog import Catalog
from weir_dashboard.definitions.writer import Expected, Writer
from weir_dashboard.live.alerts import AlertFeeds
from weir_dashboard.live.client import Client
from weir_dashboard.live.corrections import CorrectionFeeds
from weir_dashboard.live.hub import Hub
from weir_dashboard.live.pipeline import Warnings
from weir_dashboard.queries import Queries
from weir_dashboard.store.alerts import Alerts
from weir_dashboard.store.corrections import Corrections
from weir_reading.batches import Batches
from weir_reading.follower import Record
from weir_reading.panes import Panes

NOBODY: Any = None
NOWHERE = Kafka("127.0.0.1:1")
NO_QUOTA = ChangeQuota(0, SystemClock())
WORDS = "or below, got 3: a newer release"


def written(topic: str) -> list[Record]:
    """Return a topic's records, the first as a newer release would have written it."""
    found = [Record(at, key, value, 0) for at, (key, value) in enumerate(TOPICS[topic])]
    first = found[0]
    return [Record(0, first.key, newer(first.value), 0), *found[1:]]


def test_a_request_is_answered_503_with_the_reason() -> None:
    """As a problem, whichever route met it; the client is not to blame."""
    app = FastAPI()
    problems.install(app)

    @app.get("/")
    async def read() -> None:
        msg = f"mark {WORDS}"
        raise NewerFormatError(msg)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.get("/")

    answer = asyncio.run(ask())

    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert (told["code"], told["message"]) == ("not_available", f"mark {WORDS}")


def context() -> Any:
    """Return the parts of a dashboard that reaches nobody."""
    clock = SystemClock()
    batches, catalog = Batches(NOBODY, clock), Catalog()
    panes = Panes(NOBODY, batches, cache_bytes=1, query_bytes=1)
    named: Any = dict.fromkeys(Context.__dataclass_fields__)
    named |= {
        "clock": clock,
        "catalog": catalog,
        "batches": batches,
        "parts": SimpleNamespace(refused=None),
        "queries": Queries(NOBODY, catalog, NOBODY, clock, panes, NOBODY),
        "alerts": Alerts(NOWHERE, clock, NO_QUOTA),
        "corrections": Corrections(NOWHERE, clock),
    }
    return Context(**named)


def newer_batch(batches: Batches) -> None:
    """Have a newer release record a batch."""
    stream: Any = redis_state()[names.BATCHES]
    batches._take(newer(stream[b"1-5"]), (1, 5))


@pytest.mark.parametrize(
    ("meet", "words"),
    [
        (lambda here: here.catalog.take(written(names.DEFINITIONS)), "record 0 of weir.def"),
        (lambda here: newer_batch(here.batches), "batch record"),
        (lambda here: here.queries.panes.newer.meet(f"mark {WORDS}"), "mark"),
        (lambda here: here.alerts._take(written(names.ALERTS)), "record of weir.alerts"),
        (lambda here: here.corrections.take(written(names.CORRECTIONS)), "correction"),
    ],
)
def test_the_status_says_it(meet: Callable[[Any], None], words: str) -> None:
    """Whichever part has met it; nothing before."""
    here = context()
    assert status._said(here, None, 0).newer is None
    meet(here)

    told = status._said(here, None, 0).newer or ""
    assert told.startswith(words)
    assert WORDS in told


def test_nobody_waits_for_events_that_a_newer_release_counts() -> None:
    """When they are counted cannot be read; it is said at once."""
    here = context()
    newer_batch(here.batches)
    with pytest.raises(NewerFormatError, match=f"batch record must .* {WORDS}"):
        asyncio.run(query._counted(here, "0:5"))


class TestDefinitions:
    @pytest.fixture
    def catalog(self) -> Catalog:
        """Return what was folded, without the first record."""
        found = Catalog()
        found.take(written(names.DEFINITIONS))
        return found

    def test_a_query_is_refused_also_of_a_metric_that_is_not_known(self, catalog: Catalog) -> None:
        """404 would say that there is none."""
        queries = Queries(NOBODY, catalog, NOBODY, SystemClock(), NOBODY, NOBODY)
        with pytest.raises(
            NewerFormatError, match=f"^record 0 of weir.definitions must .* {WORDS}"
        ):
            asyncio.run(queries.ask("shop", {"metric": "orders"}))

    def test_nothing_is_written_on_top_of_them(self, catalog: Catalog) -> None:
        """Which version a change would be based on is not known."""
        writer = Writer(NOBODY, NOBODY, catalog, SystemClock(), NO_QUOTA)
        place = ("shop", "metric", "new")
        with pytest.raises(NewerFormatError, match=WORDS):
            asyncio.run(writer.put(place, "", by="a", expected=Expected(absent=True)))


class Socket:
    """A socket that keeps what is written and how it was closed."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed: list[tuple[int, str]] = []

    def write(self, frame: bytes) -> None:
        """Keep a frame."""
        self.written.append(frame)

    def close(self, code: int, reason: str) -> None:
        """Keep how it was closed."""
        Close(code, reason).serialize()  # raises if the reason is longer than a frame has room for
        self.closed.append((code, reason))


class TestOpenSockets:
    """When the hub ends them; `test_live_socket.py` shows it on a real one."""

    LONG = f"record 1 of weir.definitions {WORDS} of Weir wrote it; run that release again, or ü"

    def hub(self, met: set[str]) -> Hub:
        """Return a hub of a dashboard that has met something."""
        return Hub(
            observer=NOBODY,
            feeds=NOBODY,
            tails=NOBODY,
            alerts=NOBODY,
            corrections=NOBODY,
            conversation=cast("Any", SimpleNamespace()),
            max_sockets=9,
            newer=lambda: met,
            warnings=Warnings,
        )

    def open(self, hub: Hub, *, greeted: bool = True) -> Socket:
        """Return a socket that the hub has."""
        socket: Any = Socket()
        caller = Caller("shop", frozenset({"read"}), "key") if greeted else None
        hub.clients[socket] = Client(socket, 0.0, caller)
        return cast("Socket", socket)

    def test_those_that_were_told_something_end_once(self) -> None:
        """With all of the reason; later ones, and those without a caller, go on."""
        hub = self.hub({self.LONG})
        told, asking = self.open(hub), self.open(hub, greeted=False)
        hub._end_before_newer(0.0)
        later = self.open(hub)
        hub._end_before_newer(1_000.0)

        assert (len(told.closed), asking.closed, later.closed) == (1, [], [])
        assert self.LONG.encode() in told.written[0]
        code, reason = told.closed[0]
        assert code == 1013
        assert self.LONG.startswith(reason)
        assert len(reason) > 100

    def test_nothing_met_ends_nothing(self) -> None:
        """Nor does what is forgotten again."""
        met: set[str] = set()
        hub = self.hub(met)
        socket = self.open(hub)
        hub._end_before_newer(0.0)
        assert socket.closed == []

    def test_each_reason_ends_them(self) -> None:
        """A socket may follow alerts while definitions cannot be read; then those cannot either."""
        met = {"definitions"}
        hub = self.hub(met)
        hub._end_before_newer(0.0)
        socket = self.open(hub)
        met.add("alerts")
        hub._end_before_newer(1_000.0)
        assert socket.closed == [(1013, "alerts")]

    def test_one_that_comes_and_goes_does_not_end_them_again_and_again(self) -> None:
        """As marks do while another release begins: four looks a second, an end in 40 s."""
        met: set[str] = set()
        hub, ended = self.hub(met), 0
        for look in range(1_600):
            socket = self.open(hub)
            met ^= {"marks"}
            hub._end_before_newer(look / 4)
            ended += len(socket.closed)
            hub.clients.clear()
        assert 2 <= ended <= 20


class TestAlerts:
    def test_neither_list_nor_feed_is_made_of_the_rest(self) -> None:
        """An alert that is not there looks like one that does not fire."""
        alerts = Alerts(NOWHERE, SystemClock(), NO_QUOTA)
        feeds = AlertFeeds(alerts.listing, NOBODY, lambda: True)
        alerts._take(written(names.ALERTS))

        with pytest.raises(NewerFormatError, match=f"^record of weir.alerts must .* {WORDS}"):
            assert alerts.listing
        with pytest.raises(NewerFormatError, match=WORDS):
            feeds.join("shop", NOBODY)


class TestCorrections:
    def test_neither_list_nor_feed_is_made_of_the_rest(self) -> None:
        """What is known of the others stays."""
        kept = Corrections(NOWHERE, SystemClock())
        feeds = CorrectionFeeds(kept, NOBODY, lambda: True)
        kept.take([*written(names.CORRECTIONS), Record(1, *TOPICS[names.CORRECTIONS][0], 0)])

        assert len(kept.newest("shop")) == 1
        here, caller = SimpleNamespace(corrections=kept), SimpleNamespace(tenant="shop")
        with pytest.raises(NewerFormatError, match=f"^correction must .* {WORDS}"):
            asyncio.run(corrections_api.list_corrections(cast("Any", here), cast("Any", caller)))
        with pytest.raises(NewerFormatError, match=WORDS):
            feeds.join("shop", NOBODY)
