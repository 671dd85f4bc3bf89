"""An edit as readers see it: the version before serves until the new one is filled."""

from __future__ import annotations

from typing import Any

import pytest
from weir.batches import LaneProgress
from weir.definitions.records import (
    Counting,
    DriverStart,
    OpenLane,
    TakeOver,
    activation_record,
    lane_record,
    start_record,
    takeover_record,
)
from weir.rows import Row

from .watching import METRIC, asked, ten_seconds_ago, total

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


class Versions:
    """What a driver says of a metric's versions."""

    def __init__(self, running: Any, name: str) -> None:
        self.running, self.name = running, name
        self.fence = running.record(start_record(DriverStart("a", 1, "start"), at_ms=0))

    def begin(self, vid: int, number: int, *, fills: bool) -> None:
        """Count a version from offset 100 on."""
        record = Counting(
            vid, "default", self.name, number, {0: 100}, from_start=not fills, fills=fills
        )
        self.running.record(activation_record(record, op="start", fence=self.fence, at_ms=0))

    def fill(self, vid: int) -> int:
        """Open a lane for a version; return its name."""
        lane = OpenLane("backfill", "events", {0: 0}, {0: 100}, (vid,))
        offset: int = self.running.record(lane_record(lane, fence=self.fence, at_ms=0))
        return offset

    def take_over(self, vid: int, after: int, at: int) -> None:
        """Let a version serve from an offset on."""
        taken = TakeOver(vid, after, {0: at}, {10: 0})
        self.running.record(takeover_record(taken, fence=self.fence, at_ms=0))


def test_the_version_before_serves_until_the_new_one_is_filled(
    running: Any, engine: Any, metric: tuple[str, int]
) -> None:
    """What queries answer, and what the page is told, change with one batch record."""
    name, old = metric
    versions, pane = Versions(running, name), (10, ten_seconds_ago(1))
    versions.begin(old, 1, fills=False)
    engine.commit({(old, *pane): {"=eu": Row(5)}}, ticks=1)
    text = METRIC.format(name=name) + "unit: ms\n"
    path, condition = f"/definitions/metric/{name}", {"if-match": '"1"'}
    with running.client() as http:
        assert http.put(path, json={"text": text}, headers=condition).status_code == 200
        new = running.dashboard.context.catalog.folded.get("default", "metric", name).vid
        versions.begin(new, 2, fills=True)
        lane = versions.fill(new)
        vids = (new + 1_001, new)
        filling = LaneProgress(lane, "backfill", new + 1_000, None, at=40, of=100, vids=vids)
        engine.commit({(new, *pane): {"=eu": Row(2)}}, ticks=1, lanes=[filling])

        assert total(http.post("/query", json=asked(name)).json(), "eu") == 5
        told = http.get(f"/metrics/{name}").json()
        assert (told["version"], told["unit"]) == (1, None)
        assert told["filling"] == {"version": 2, "instead": 1, "at": 40, "of": 100}
        progress = http.get(f"{path}/progress").json()
        assert (progress["active"], progress["serving"]) == (True, False)
        assert http.get(path).json()["state"] == "starting"

        versions.take_over(new, old, at=engine.offset + 1)
        assert http.get(f"/metrics/{name}").json()["version"] == 1  # no batch has come to it
        assert http.get(path).json()["state"] == "starting"
        engine.commit({(new, *pane): {"=eu": Row(3)}}, ticks=1, takeovers=[new])
        assert total(http.post("/query", json=asked(name)).json(), "eu") == 5
        told = http.get(f"/metrics/{name}").json()
        assert (told["version"], told["unit"], told["filling"]) == (2, "ms", None)
        assert http.get(path).json()["state"] == "serving"


def test_a_first_version_says_nothing_until_it_is_filled(
    running: Any, engine: Any, metric: tuple[str, int]
) -> None:
    """Half of the counts are not shown as all of them."""
    name, vid = metric
    versions, pane = Versions(running, name), (10, ten_seconds_ago(1))
    versions.begin(vid, 1, fills=True)
    versions.fill(vid)
    engine.commit({(vid, *pane): {"=eu": Row(5)}}, ticks=1)
    with running.client() as http:
        for series in http.post("/query", json=asked(name)).json()["series"]:
            assert set(series["state"]) == {"r"}
        assert http.get(f"/metrics/{name}").json()["filling"]["instead"] is None
