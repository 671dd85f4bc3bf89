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
from weir import names
from weir.clock import SystemClock
from weir.formats import NewerFormatError
from weir.kafka import Kafka
from weir_dashboard.api import corrections as corrections_api
from weir_dashboard.api import problems, query, status
from weir_dashboard.context import Context
from weir_dashboard.definitions.catalog import Catalog
from weir_dashboard.definitions.writer import Expected, Writer
from weir_dashboard.live.alerts import AlertFeeds
from weir_dashboard.live.corrections import CorrectionFeeds
from weir_dashboard.queries import Queries
from weir_dashboard.store.alerts import Alerts
from weir_dashboard.store.corrections import Corrections
from weir_reading.batches import Batches
from weir_reading.follower import Record
from weir_reading.panes import Panes

NOBODY: Any = None
NOWHERE = Kafka("127.0.0.1:1")
WORDS = "must be of format version 1 or below, got 2: a newer release"


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
        "queries": Queries(NOBODY, catalog, NOBODY, clock, panes),
        "alerts": Alerts(NOWHERE, clock),
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
    with pytest.raises(NewerFormatError, match=f"batch record {WORDS}"):
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
        queries = Queries(NOBODY, catalog, NOBODY, SystemClock(), NOBODY)
        with pytest.raises(NewerFormatError, match=f"^record 0 of weir.definitions {WORDS}"):
            asyncio.run(queries.ask("shop", {"metric": "orders"}))

    def test_nothing_is_written_on_top_of_them(self, catalog: Catalog) -> None:
        """Which version a change would be based on is not known."""
        writer = Writer(NOBODY, NOBODY, catalog, SystemClock())
        place = ("shop", "metric", "new")
        with pytest.raises(NewerFormatError, match=WORDS):
            asyncio.run(writer.put(place, "", by="a", expected=Expected(absent=True)))


class TestAlerts:
    def test_neither_list_nor_feed_is_made_of_the_rest(self) -> None:
        """An alert that is not there looks like one that does not fire."""
        alerts = Alerts(NOWHERE, SystemClock())
        feeds = AlertFeeds(alerts.listing, NOBODY, lambda: True)
        alerts._take(written(names.ALERTS))

        with pytest.raises(NewerFormatError, match=f"^record of weir.alerts {WORDS}"):
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
        with pytest.raises(NewerFormatError, match=f"^correction {WORDS}"):
            asyncio.run(corrections_api.list_corrections(cast("Any", here), cast("Any", caller)))
        with pytest.raises(NewerFormatError, match=WORDS):
            feeds.join("shop", NOBODY)
