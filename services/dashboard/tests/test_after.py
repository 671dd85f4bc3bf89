"""Read your own writes: a query with `after` answers when those events are counted, not before."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from msgspec.structs import replace
from weir.batches import BatchRecord, LaneProgress
from weir.rows import Row
from weir_dashboard.api import query
from weir_dashboard.api.query import BEYOND_MS, covers
from weir_local.waiting import wait_until
from weir_reading.batches import Recount

from .conftest import Engine
from .watching import asked, ten_seconds_ago, total

if TYPE_CHECKING:
    from .conftest import Running


def record(
    to_offsets: dict[int, int] | None = None, through_ms: int = 1, *lanes: LaneProgress
) -> BatchRecord:
    """Return a record that ends, unless told otherwise, at 10 in partition 0 and at 20 in 1."""
    return BatchRecord(
        epoch=1,
        batch=0,
        rev=1,
        shards=1,
        processed_through_ms=through_ms,
        at_ms=1,
        from_offsets={},
        to_offsets=to_offsets or {0: 10, 1: 20},
        lanes=list(lanes),
    )


LOST_MS = 1_000_000
REBUILD = LaneProgress(lane=7, kind="rebuild", vid=None, shard=0, at=3, of=9, until_ms=LOST_MS)
OLDER = replace(REBUILD, until_ms=0)
BACKFILL = LaneProgress(lane=8, kind="backfill", vid=1, shard=None, at=3, of=9)


class TestCovers:
    @pytest.mark.parametrize(
        ("wanted", "counted"),
        [({}, True), ({0: 9, 1: 19}, True), ({0: 10}, False), ({1: 20}, False), ({2: 0}, False)],
    )
    def test_the_end_of_a_batch_is_exclusive(self, wanted: dict[int, int], counted: bool) -> None:
        """An offset is counted once a batch ends beyond it, in a partition that it knows."""
        assert covers([record()], wanted, None) is counted

    def test_what_is_counted_again_is_not_there_yet(self) -> None:
        """Live counting is beyond it, but a rebuild is not; a backfill is of another version."""
        recount = Recount(LOST_MS)
        assert not covers([], {0: 1}, None)
        assert not covers([record()], {0: 1}, recount)
        assert not covers([record(None, LOST_MS + BEYOND_MS, REBUILD)], {0: 1}, recount)
        assert covers([record(None, 1, BACKFILL)], {0: 1}, None)

    @pytest.mark.parametrize("lane", [REBUILD, OLDER])
    @pytest.mark.parametrize("short_ms", [0, 1])
    def test_what_came_after_a_loss_is_there_while_the_rest_is_counted_again(
        self, lane: LaneProgress, short_ms: int
    ) -> None:
        """From where every event of the request came later than all that a rebuild counts."""
        clear_ms = LOST_MS + BEYOND_MS - short_ms
        records = [
            record({0: 10, 1: 20}, LOST_MS, lane),
            record({0: 12, 1: 20}, clear_ms, lane),
            record({0: 15, 1: 22, 2: 3}, clear_ms, lane),
        ]
        is_told = lane is REBUILD and not short_ms
        places = {
            (0, 11): False,  # at most a minute after the loss: one of its request may be before
            (0, 12): True,
            (0, 14): True,
            (0, 15): False,  # not counted yet
            (1, 19): False,
            (1, 20): True,
            (2, 0): True,  # of a partition that was not there at the loss
        }
        for (partition, offset), counted in places.items():
            wanted = {partition: offset}
            assert covers(records, wanted, Recount(LOST_MS)) is (counted and is_told), wanted
        assert not covers(records, {0: 12, 1: 19}, Recount(LOST_MS))


class Asking:
    """A query that waits, on a thread of its own."""

    def __init__(self, running: Running, body: dict[str, Any]) -> None:
        self.answer: httpx.Response | None = None
        self._running, self._body = running, body
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()
        turns = running.dashboard.context.turns
        wait_until(lambda: sum(turns._waiting.values()) > 0, timeout_s=10, what="it to wait")

    def _ask(self) -> None:
        with self._running.client() as http:
            self.answer = http.post("/query", json=self._body)

    def told(self) -> dict[str, Any]:
        """Return what it was answered with."""
        self._thread.join(15)
        assert self.answer is not None
        found: dict[str, Any] = self.answer.json()
        return found


@pytest.mark.kafka
@pytest.mark.redis
class TestAfter:
    def test_it_answers_with_the_events_and_not_without(
        self, running: Running, engine: Engine, metric: tuple[str, int]
    ) -> None:
        """What is committed before the last of them is no reason to answer."""
        name, vid = metric
        pane = (vid, 10, ten_seconds_ago(1))
        engine.commit({pane: {"=eu": Row(1)}}, received=1)
        asking = Asking(running, asked(name, after="0:4"))
        engine.commit({pane: {"=eu": Row(3)}}, received=3)
        assert asking.answer is None
        engine.commit({pane: {"=eu": Row(1)}}, received=1)

        assert total(asking.told(), "eu") == 5

    def test_a_recount_does_not_answer_early(
        self, running: Running, engine: Engine, metric: tuple[str, int]
    ) -> None:
        """After a loss lanes count the log again; only when all is back is it counted."""
        name, vid = metric
        pane = (vid, 10, ten_seconds_ago(1))
        through_ms = engine.commit({pane: {"=eu": Row(4)}}, received=4).processed_through_ms
        running.redis.flushall()
        again = Engine(running, reason="lost")
        batches = running.dashboard.context.batches
        wait_until(lambda: batches.epoch == again.epoch, timeout_s=10, what="the loss seen")
        asking = Asking(running, asked(name, after="0:3"))
        lane = LaneProgress(lane=7, kind="rebuild", vid=None, shard=None, at=1, of=4)
        again.commit(received=4, through_ms=through_ms, lanes=[lane])
        assert asking.answer is None
        again.commit({pane: {"=eu": Row(4)}}, through_ms=through_ms + 60_000)

        assert total(asking.told(), "eu") == 4

    def test_a_recount_holds_up_nothing_that_came_after_it(
        self, running: Running, engine: Engine, metric: tuple[str, int]
    ) -> None:
        """What is sent long after a loss is answered while lanes count what lies before."""
        name, vid = metric
        pane = (vid, 10, ten_seconds_ago(1))
        lost_ms = (ten_seconds_ago() - 300) * 1000
        engine.commit(received=4, through_ms=lost_ms)
        running.redis.flushall()
        again = Engine(running, reason="lost")
        batches = running.dashboard.context.batches
        wait_until(lambda: batches.epoch == again.epoch, timeout_s=10, what="the loss seen")
        lane = LaneProgress(
            lane=7, kind="rebuild", vid=None, shard=None, at=1, of=4, until_ms=lost_ms
        )
        again.commit(received=4, through_ms=lost_ms + BEYOND_MS, lanes=[lane])
        asking = Asking(running, asked(name, after="0:4"))
        again.commit({pane: {"=eu": Row(1)}}, received=1, lanes=[lane])

        assert total(asking.told(), "eu") == 1

    def test_waits_are_bounded(
        self,
        running: Running,
        engine: Engine,
        metric: tuple[str, int],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """In time, by 504 with what to do; and in number."""
        monkeypatch.setattr(query, "TIMEOUT_S", 5.0)
        engine.commit(received=1)
        waiting = [Asking(running, asked(metric[0], after="0:99")) for _ in range(6)]
        turns = running.dashboard.context.turns
        wait_until(lambda: sum(turns._waiting.values()) == 6, timeout_s=5, what="all to wait")
        with running.client() as http:
            seventh = http.post("/query", json=asked(metric[0], after="0:99"))

        assert (seventh.status_code, seventh.json()["code"]) == (429, "rate_limited")
        assert {one.told()["code"] for one in waiting} == {"not_counted_yet"}
        assert waiting[0].answer is not None
        assert waiting[0].answer.headers["retry-after"] == "1"
        assert not turns._waiting

    def test_who_goes_away_waits_no_longer(
        self,
        running: Running,
        engine: Engine,
        metric: tuple[str, int],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Else a page that was left and opened again would be refused for what it left."""
        monkeypatch.setattr(query, "TIMEOUT_S", 600.0)
        engine.commit(received=1)
        turns = running.dashboard.context.turns
        for _ in range(2):
            with running.client() as http, pytest.raises(httpx.ReadTimeout):
                http.post("/query", json=asked(metric[0], after="0:99"), timeout=0.5)
        wait_until(lambda: not turns._waiting, timeout_s=10, what="nobody to wait")
