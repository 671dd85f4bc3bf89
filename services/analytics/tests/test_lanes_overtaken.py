"""What retention takes from a lane is said before the lane passes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest
from structlog.testing import capture_logs
from weir.clock import ManualClock
from weir.definitions.fold import Definitions
from weir.definitions.history import Horizons
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    NewRecord,
    OpenLane,
    TakeOver,
    activation_record,
    horizons_record,
    lane_record,
    put_record,
    start_record,
    takeover_record,
)
from weir.lanes import next_slice
from weir_analytics.panes import changes, lanes
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.between import BUSY
from weir_analytics.panes.due import Open
from weir_analytics.panes.holes import Met, OvertakenError
from weir_analytics.panes.lanes import Filler
from weir_analytics.panes.log_offsets import LogOffsets

HOUR_MS = 3_600_000
HORIZON_MS = HOUR_MS
HORIZONS = Horizons({}, HORIZON_MS, 400 * 24 * HOUR_MS, "events")
NOW_MS = 1_800_000_000_000
LEAD_MS = 23 * HOUR_MS
TEXT = "kind: metric\nname: m\nevents: {type: t}\nkeep: {10s: 1h}"


class Log(LogOffsets):
    """A log of one partition whose records were received a second after each other."""

    def __init__(self, start: int, end: int = 100) -> None:
        self._bounds = {0: start}, {0: end}

    def ends(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return both ends."""
        return self._bounds

    def start(self) -> dict[int, int]:
        """Return the first offset."""
        return self._bounds[0]

    def received_ms(self, partition: int, offset: int) -> int:
        """Return when a record was appended."""
        del partition
        return NOW_MS + offset * 1000


class Driver:
    """A filler of one lane from 10 to 60, and what definitions say."""

    def __init__(
        self, kind: Literal["backfill", "rebuild"], *, serves: bool, until_ms: int = 2 * NOW_MS
    ) -> None:
        self.fold = Definitions()
        vid = self._add(put_record(Edit("acme", "metric", "m", None, "test", 0), TEXT))
        self.start(0)
        self._add(horizons_record(HORIZONS, fence=self.fence, at_ms=0))
        begin = Counting(vid, "acme", "m", 1, {0: 60}, fills=True)
        self._add(activation_record(begin, op="start", fence=self.fence, at_ms=0))
        vids = (vid,) if kind == "backfill" else ()
        wanted = OpenLane(kind, "events", {0: 10}, {0: 60}, vids, until_ms=until_ms)
        lane = self._add(lane_record(wanted, fence=self.fence, at_ms=0))
        self.lane = self.fold.lanes[lane]
        if serves:
            taken = TakeOver(vid, None, {0: 60}, None)
            self._add(takeover_record(taken, fence=self.fence, at_ms=0))
        self.done: list[Any] = []

    def start(self, incomplete_before_ms: int) -> None:
        """Append a start record."""
        start = DriverStart("a", 1, "start", incomplete_before_ms=incomplete_before_ms)
        self.fence = self._add(start_record(start, at_ms=0))

    def _add(self, record: NewRecord) -> int:
        change = self.fold.apply(self.fold.next_offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
        return change.offset

    def slice(self, monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
        """Let the filler count a slice of what a log still has."""
        monkeypatch.setattr(lanes, "LogOffsets", lambda *_: log)
        plans: Any = SimpleNamespace(
            columns=False,
            plan_of=lambda _: "plan",
            is_made=lambda _: True,
            filling=lambda *_: "counting",
            rebuilding=lambda *_: "counting",
            erased=lambda *_: frozenset(),
        )
        clock = ManualClock(NOW_MS + 1_000_000)
        filler = Filler(plans, lambda *_: None, clock, 1_000, lambda: BUSY)  # type: ignore[arg-type]
        filler._open = {self.lane.name}
        filler.step(self._cycle())

    @property
    def stores(self) -> Any:
        """What a driver reads definitions from."""
        return SimpleNamespace(definitions=SimpleNamespace(fold=self.fold))

    def _cycle(self) -> Any:
        def following(
            _fold: Definitions, most: int, first: Mapping[int, int], _without: object
        ) -> object:
            return next_slice(self.lane, {0: {0: 10}}, most, None, first)

        book = SimpleNamespace(
            open=lambda _: [self.lane],
            needed=lambda _: [self.lane],
            next=following,
            beside=lambda *_: [],
            moved=lambda found, _: self.done.append(found),
        )
        return SimpleNamespace(
            stores=self.stores,
            footing=SimpleNamespace(events_id="events"),
            settings=SimpleNamespace(kafka=None),
            book=book,
            end={0: 60},
            through_ms=0,
            range_of=lambda *_: _batch(),
            evaluate=lambda *_: SimpleNamespace(received=0),
        )


def _batch() -> Any:
    return Batch(
        topic="t",
        topic_id="events",
        definitions_id="d",
        epoch=1,
        fence=1,
        number=-1,
        start={0: 10},
        end={0: 60},
        shards=1,
        horizons=(HORIZONS,),
        kafka_bootstrap="k",
        redis_url="r",
        dedup_dir="f",
    )


class TestRebuild:
    def test_the_lane_waits_until_readers_know(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A start record says so first; the slice after it passes what is gone, and tells it."""
        driver, log = Driver("rebuild", serves=True), Log(start=40)
        with pytest.raises(OvertakenError) as caught:
            driver.slice(monkeypatch, log)
        lacks_ms = NOW_MS + 40_000 + LEAD_MS + HORIZON_MS
        assert caught.value.incomplete_before_ms == lacks_ms
        assert driver.done == []
        driver.start(lacks_ms - 1)
        with pytest.raises(OvertakenError):
            driver.slice(monkeypatch, log)
        driver.start(lacks_ms)
        with capture_logs() as logs:
            driver.slice(monkeypatch, log)

        assert [found.there for found in driver.done] == [{0: 40}]
        assert [line["count"] for line in logs if line["event"] == "log_lost"] == [30]

    def test_a_log_that_reaches_back_holds_nothing_up(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Retention may have come as far as the lane's place, and took nothing from it."""
        driver = Driver("rebuild", serves=True)
        driver.slice(monkeypatch, Log(start=10))
        assert len(driver.done) == 1

    def test_a_log_without_a_record_asks_for_no_more_than_the_lane_held(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else each life would ask for a later instant than the one before."""
        driver = Driver("rebuild", serves=True, until_ms=NOW_MS + 70_000)
        with pytest.raises(OvertakenError) as caught:
            driver.slice(monkeypatch, Log(start=100))
        assert caught.value.incomplete_before_ms == NOW_MS + 70_000 + LEAD_MS + HORIZON_MS


class TestBackfill:
    def test_of_what_is_served_it_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """After a loss a version is filled anew, and its takeover has said what it says."""
        driver = Driver("backfill", serves=True, until_ms=0)
        with pytest.raises(OvertakenError, match=f"no longer has all of lane {driver.lane.offset}"):
            driver.slice(monkeypatch, Log(start=40))

    def test_a_version_that_does_not_serve_says_it_itself(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By its takeover; other metrics are as complete as they were."""
        driver = Driver("backfill", serves=False, until_ms=0)
        driver.slice(monkeypatch, Log(start=40))
        assert len(driver.done) == 1

    @pytest.mark.parametrize(
        ("start", "complete_from_ms"),
        [(10, 7), (11, NOW_MS + 11_000 + LEAD_MS + HORIZON_MS)],
    )
    def test_its_takeover_heeds_what_retention_took(
        self, monkeypatch: pytest.MonkeyPatch, start: int, complete_from_ms: int
    ) -> None:
        """Up to the lane's first record nothing; beyond it from the log's new start on."""
        monkeypatch.setattr(changes, "LogOffsets", lambda *_: Log(start))
        driver, anything = Driver("backfill", serves=False), cast("Any", None)
        made = changes.Changes(
            driver.stores,
            cast("Any", SimpleNamespace(kafka=None)),
            cast("Any", SimpleNamespace(events_id="events")),
            anything,
            ManualClock(NOW_MS),
            Open(),
        )
        lane = replace(driver.lane, complete_from_ms=7)
        known = made._complete_from_ms({lane.offset: lane})
        assert known == {lane.offset: complete_from_ms}


def test_what_was_met_is_what_the_next_start_says() -> None:
    """The latest instant of all; a hole is no part of it."""
    met = Met()
    assert met.take(OvertakenError(3, 20))
    assert met.take(OvertakenError(3, 10))
    assert (met.lacks_ms, met.lost) == (20, ())
    assert not met.take(OSError("redis is away"))
