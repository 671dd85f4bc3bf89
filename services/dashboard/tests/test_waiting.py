"""Why a version of a metric is not counted yet: said where its author looks."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from weir.batches import LaneProgress
from weir.clock import ManualClock
from weir.definitions.budget import estimate
from weir.definitions.metric import Metric
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    NewRecord,
    TakeOver,
    activation_record,
    aside_record,
    put_record,
    start_record,
    takeover_record,
)
from weir_dashboard.api import definitions, metrics, status
from weir_dashboard.context import Context
from weir_dashboard.definitions.catalog import Catalog
from weir_dashboard.freshness import Fresh
from weir_dashboard.holding import Holding
from weir_dashboard.waiting import waits_for
from weir_reading.follower import Record
from weir_reading.served import served

MEMBERS = {"events": {"type": "t"}, "keep": {"10s": "1h"}}
TEXT = json.dumps(MEMBERS)
COST = estimate(Metric.model_validate({"name": "m", **MEMBERS})).memory_bytes
CALLER: Any = SimpleNamespace(tenant="a")
AWAY = Holding("driver_away", "no panes driver has been heard for 6 s")
BEYOND = f"/keep must be at most 0 bytes of panes, what is left of {COST}, got"


class World:
    """What a dashboard knows of the metrics of tenant `a`, without servers.

    Attributes:
        here: The parts of the service that are asked.
    """

    def __init__(self, *, dashboards: int = 10**12, drivers: int | None = COST) -> None:
        """Begin with a driver that has started.

        Args:
            dashboards: The bytes that the dashboard's own setting allows a tenant.
            drivers: The same of the driver's; None: a driver that does not say so.
        """
        self.catalog = Catalog()
        self.fresh = Fresh("live", 1, 1, 1)
        parts = SimpleNamespace(named=lambda _name: [], refused=None)
        named: Any = dict.fromkeys(Context.__dataclass_fields__)
        quiet = SimpleNamespace(newer=SimpleNamespace(why=None))
        named |= {
            "settings": SimpleNamespace(tenant_bytes=dashboards),
            "clock": ManualClock(),
            "catalog": self.catalog,
            "batches": SimpleNamespace(newest=None, newer=SimpleNamespace(why=None)),
            "parts": parts,
            "observer": SimpleNamespace(fresh=lambda: self.fresh),
            "queries": SimpleNamespace(panes=self),
            "alerts": quiet,
            "corrections": quiet,
        }
        self.newer = SimpleNamespace(why=None)
        self.here: Any = Context(**named)
        start = DriverStart("panes", 1, "start", tenant_bytes=drivers)
        self.fence = self.take(start_record(start, at_ms=0))

    async def all_names(self, vid: int, shard: int) -> set[str]:
        """Return the series of a version: none."""
        assert (vid >= 0, shard) == (True, 0)
        return set()

    def take(self, record: NewRecord) -> int:
        """Let the dashboard read a record; return its offset."""
        offset = self.catalog.folded.next_offset
        self.catalog.take([Record(offset, record.key, record.value, 0)])
        return offset

    def put(self, name: str, text: str = TEXT) -> int:
        """Write a version as any producer may; return its vid."""
        based_on = self.catalog.folded.version("a", "metric", name)
        return self.take(put_record(Edit("a", "metric", name, based_on, by="b", at_ms=0), text))

    def counting(self, vid: int, *, fills: bool = False, op: Any = "start") -> None:
        """Let the driver begin, or end, counting a version."""
        found = self.catalog.folded.by_vid(vid)
        assert found is not None
        said = Counting(vid, "a", found.name, found.version, {0: 1}, fills=fills)
        self.take(activation_record(said, op=op, fence=self.fence, at_ms=0))

    def progress(self, name: str) -> dict[str, Any]:
        """Return what `GET /definitions/metric/{name}/progress` says."""
        told = asyncio.run(definitions.get_progress("metric", name, self.here, CALLER))
        return told.model_dump(mode="json")

    def detail(self, name: str) -> dict[str, Any]:
        """Return what `GET /metrics/{name}` says."""
        return asyncio.run(metrics.get_metric(name, self.here, CALLER)).model_dump(mode="json")


class TestProgress:
    def test_a_version_beyond_the_tenants_budget(self) -> None:
        """What was required, what came and what to do; nothing once there is room."""
        world = World()
        first = world.put("first")
        world.counting(first)
        world.put("second")

        told = world.progress("second")
        assert (told["active"], told["serving"]) == (False, False)
        assert told["waits_for"] == (
            f'the panes driver does not begin it: {BEYOND} "{COST}"; lower max_series (1), '
            f"keep less, or ask for fewer or smaller sketches; or do so in first ({COST} bytes); "
            "once there is room it begins by itself"
        )
        world.counting(first, op="stop")
        assert BEYOND not in world.progress("second")["waits_for"]

    @pytest.mark.parametrize(
        ("dashboards", "drivers", "refused"),
        [(0, COST, False), (COST, 0, True), (0, None, True), (COST, None, False)],
    )
    def test_the_drivers_own_budget_counts(
        self, dashboards: int, drivers: int | None, refused: bool
    ) -> None:
        """It is the driver that refuses; one of an older release does not say its own."""
        world = World(dashboards=dashboards, drivers=drivers)
        world.put("m")
        assert ("/keep must be" in world.progress("m")["waits_for"]) is refused

    def test_a_version_whose_plan_is_made(self) -> None:
        """It may begin, and nothing is in its way: that takes seconds."""
        world = World()
        world.put("m")
        assert world.progress("m")["waits_for"].startswith("its plan is made")

    @pytest.mark.parametrize("fills", [True, False])
    def test_what_is_counted_waits_for_nothing(self, fills: bool) -> None:
        """Nor does what is being filled: `lanes` say how far that is."""
        world = World()
        world.counting(world.put("m"), fills=fills)
        told = world.progress("m")
        assert (told["active"], told["serving"]) == (True, not fills)
        assert told["waits_for"] is None

    @pytest.mark.parametrize("among", [False, True])
    def test_what_is_filled_says_why_its_lane_waits(self, among: bool) -> None:
        """In the words of the engine; while nothing is counted at all that is said first."""
        world = World()
        vid = world.put("m")
        world.counting(vid, fills=True)
        lane = LaneProgress(9, "backfill", vid, None, 40, 52, waits_for="TimeoutError: no")
        other = LaneProgress(8, "backfill", vid + 1, None, 40, 52, waits_for="of another")
        if among:
            lane = replace(lane, vid=vid + 2, vids=(vid + 3, vid))
        world.here.batches.newest = SimpleNamespace(lanes=[other, lane])
        told = world.progress("m")
        assert told["lanes"] == [{"lane": 9, "at": 40, "of": 52, "waits_for": "TimeoutError: no"}]
        assert told["waits_for"] == (
            "what fills it from the log waits: TimeoutError: no; it is tried again by itself, "
            "after up to five minutes each time, and live counting goes on meanwhile"
        )
        assert world.detail("m")["waiting"]["why"] == told["waits_for"]
        world.fresh = Fresh("stale", 1, 1, 1, since_ms=0, part="panes")
        assert world.progress("m")["waits_for"].startswith("the panes driver counts nothing now")
        world.fresh = Fresh("live", 1, 1, 1)
        world.here.batches.newest = SimpleNamespace(lanes=[replace(lane, waits_for=None)])
        assert world.progress("m")["waits_for"] is None

    def test_a_status_says_that_a_part_of_a_rebuild_waits(self) -> None:
        """It takes no turns with live counting then; what others fill is their own matter."""
        world = World()
        rebuild = LaneProgress(9, "rebuild", None, None, 40, 52, waits_for="no")
        done = LaneProgress(7, "rebuild", None, None, 52, 52, waits_for="it is done")
        fills = LaneProgress(8, "backfill", 3, None, 40, 52, waits_for="of a metric")
        world.here.batches.newest = SimpleNamespace(lanes=[fills, done, rebuild])
        said = status._said(world.here, None, 0)
        assert (said.lanes, said.waits) == ((), "no")
        lanes = [replace(one, waits_for=None) for one in (fills, rebuild)]
        world.here.batches.newest = SimpleNamespace(lanes=lanes)
        said = status._said(world.here, None, 0)
        assert (said.lanes, said.waits) == (("backfill", "rebuild"), None)

    def test_a_driver_that_does_not_count(self) -> None:
        """As one that ended because the state is another log's: its heartbeat is gone."""
        world = World()
        world.put("m")
        world.fresh = Fresh("stale", 1, 1, 1, since_ms=0, part="panes")
        told = world.progress("m")["waits_for"]
        assert told.startswith(
            "the panes driver counts nothing now: no panes driver has been heard"
        )

    def test_a_newer_version_that_cannot_be_used(self) -> None:
        """The version before is told, and beside it why there is no newer one."""
        world = World()
        world.counting(world.put("m"))
        vid = world.put("m", TEXT.replace("keep", "kepe"))
        told = world.progress("m")
        assert (told["version"], told["serving"], told["waits_for"]) == (1, True, None)
        assert (told["refused"]["version"], told["refused"]["offset"]) == (2, vid)
        assert 'must be a known member, got "kepe"' in told["refused"]["message"]

    def test_what_is_no_metric_waits_for_nothing(self) -> None:
        """Every other kind is in use at once."""
        world = World()
        text = json.dumps({"kind": "source", "name": "s"})
        world.take(put_record(Edit("a", "source", "s", None, by="b", at_ms=0), text))
        told = asyncio.run(definitions.get_progress("source", "s", world.here, CALLER))
        assert (told.active, told.waits_for, told.refused) == (True, None, None)


class TestWaitsFor:
    """The decision itself."""

    @pytest.mark.parametrize(
        ("code", "holds"),
        [
            ("driver_away", True),
            ("driver_waiting", True),
            ("batch_stuck", True),
            ("redis_away", True),
            ("redis_refuses", True),
            ("kafka_away", True),
            ("partition_without_leader", True),
            ("newer_release", True),
            ("quiet", False),
            ("rebuilding", False),
            ("ingest_away", False),
            ("hub_away", False),
            ("load", False),
            ("lanes_busy", False),
            ("catching_up", False),
        ],
    )
    def test_what_holds_a_version_up(self, code: str, holds: bool) -> None:
        """What lets no batch end; numbers may be old while versions begin."""
        world = World()
        vid = world.put("m")
        version = world.catalog.folded.by_vid(vid)
        assert version is not None
        told = waits_for(world.catalog.folded, version, COST, Holding(code, "so it is")) or ""
        assert ("so it is" in told) is holds

    def test_what_is_filled_is_held_up_too(self) -> None:
        """Its lane stands still; what serves already needs nobody."""
        world = World()
        filled, serving = world.put("filled"), world.put("serving")
        world.counting(filled, fills=True)
        world.counting(serving)
        fold = world.catalog.folded
        for vid, words in ((filled, AWAY.message), (serving, None)):
            version = fold.by_vid(vid)
            assert version is not None
            told = waits_for(fold, version, COST, AWAY)
            assert words in told if words is not None and told else told == words

    def test_a_budget_that_is_exceeded_is_told_first(self) -> None:
        """The driver that is away would not begin it either."""
        world = World(drivers=0)
        version = world.catalog.folded.by_vid(world.put("m"))
        assert version is not None
        assert "/keep must be" in (waits_for(world.catalog.folded, version, 0, AWAY) or "")

    @pytest.mark.parametrize("fills", [None, True])
    def test_a_version_that_was_set_aside(self, fills: bool | None) -> None:
        """Why, in the engine's own words; nothing of it once a plan can be made."""
        world = World()
        vid = world.put("m")
        if fills is not None:
            world.counting(vid, fills=fills)
        before = world.progress("m")["waits_for"]
        world.take(aside_record(vid, "ValueError: no", fence=world.fence, at_ms=0))
        assert world.progress("m")["waits_for"] == (
            "the panes driver has set it aside, since it cannot count it: ValueError: no; "
            "write it in another way, and report it; it is tried again when metrics change "
            "and when the driver starts"
        )
        world.take(aside_record(vid, None, fence=world.fence, at_ms=0))
        assert world.progress("m")["waits_for"] == before

    def test_a_version_that_is_left_out(self) -> None:
        """It was counted until no plan could be made of it; nothing is shown as if it still were.

        What it has is shown again once its successor has taken over what the log holds.
        """
        world = World()
        vid = world.put("m")
        world.counting(vid)
        folded = world.catalog.folded
        before = served(world.catalog, "a", "m")
        assert before is not None
        assert not before.newest.rebuilding
        world.take(aside_record(vid, "ValueError: no", fence=world.fence, at_ms=0))
        world.counting(vid, op="stop")
        told = world.progress("m")["waits_for"]
        assert told.startswith("the panes driver counts it no further, since it cannot count it")
        assert "ValueError: no; write it in another way" in told
        left = served(world.catalog, "a", "m")
        assert left is not None
        assert (left.newest.vid, left.newest.rebuilding) == (vid, True)

        again = world.put("m")
        world.counting(again, fills=True)
        waiting = served(world.catalog, "a", "m")
        assert waiting is not None
        assert (waiting.newest.vid, waiting.newest.rebuilding) == (vid, True)
        taken = TakeOver(again, vid, {0: 0}, {10: 60}, 0)
        world.take(takeover_record(taken, fence=world.fence, at_ms=0))
        assert folded.activations[again].serves
        done = served(world.catalog, "a", "m")
        assert done is not None
        assert [(one.vid, one.rebuilding) for one in done.versions] == [
            (vid, False),
            (again, False),
        ]

    def test_a_version_that_was_followed_by_one_of_another_release(self) -> None:
        """It is in force here again, and will not be begun a second time."""
        world = World()
        vid = world.put("m")
        world.counting(vid)
        world.put("m", TEXT.replace("keep", "kepe"))
        world.counting(vid, op="stop")
        told = world.progress("m")
        assert (told["version"], told["active"]) == (1, False)
        assert told["waits_for"].startswith("counting of it has ended")


class TestDetail:
    def test_an_edit_that_does_not_begin(self) -> None:
        """The version before is shown, and the page says what the edit waits for."""
        world = World()
        world.counting(world.put("m"))
        world.put("m", TEXT.replace("1h", "2h"))
        told = world.detail("m")
        assert (told["version"], told["filling"]) == (1, None)
        assert (told["waiting"]["version"], told["waiting"]["instead"]) == (2, 1)
        assert f"/keep must be at most {COST} bytes" in told["waiting"]["why"]

    def test_a_first_version_that_does_not_begin(self) -> None:
        """Nothing is shown instead."""
        world = World(drivers=0)
        world.put("m")
        told = world.detail("m")["waiting"]
        assert (told["version"], told["instead"]) == (1, None)
        assert "/keep must be at most 0 bytes" in told["why"]

    def test_a_newer_version_that_cannot_be_used(self) -> None:
        """Why, and that the version before goes on."""
        world = World()
        world.counting(world.put("m"))
        world.put("m", TEXT.replace("keep", "kepe"))
        told = world.detail("m")["waiting"]
        assert (told["version"], told["instead"]) == (2, 1)
        assert 'must be a known member, got "kepe"' in told["why"]

    @pytest.mark.parametrize("fills", [True, False])
    def test_what_is_counted_waits_for_nothing(self, fills: bool) -> None:
        """`filling` says the rest."""
        world = World()
        world.counting(world.put("m"), fills=fills)
        told = world.detail("m")
        assert told["waiting"] is None
        assert (told["filling"] is not None) is fills
