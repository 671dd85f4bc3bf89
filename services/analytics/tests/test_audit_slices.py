"""What an audit does in one slice: a place of the log, or as many panes as there is time for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from weir_analytics.jobs.log_records import Gap
from weir_analytics.jobs.sample import PaneAt
from weir_analytics.jobs.task import NotNowError, RefusedError

from .audit_scene import DAY_MS, NOW_MS, World, over


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return an installation with one metric."""
    found = World(tmp_path, monkeypatch)
    found.metric("m")
    return found


class TestPlaces:
    def test_one_is_read_a_slice(self, world: World) -> None:
        """None before it is recorded that the job has begun; and never more than the log has."""
        task, reader = world.task("m")
        places = world.span(task).places
        assert (len(places), world.reads) == (10, [])
        for n in range(1, 11):
            assert task.step(world.cycle, over) is None
            assert (len(world.reads), reader.looks) == (n, [])
        assert all(offset + most == 100 for offset, most in world.reads)
        assert {offset for offset, _ in world.reads} == {n for _, n in places}

        assert task.step(world.cycle, over) is None
        starts = {pane.start_s for pane in reader.looks[0]}
        for offset, _ in world.reads:
            at_s = (NOW_MS - 60_000 - offset) // 10_000 * 10
            assert (at_s in starts) or offset % 2
        assert len(world.reads) == 10

    def test_after_a_crash_the_sample_is_drawn_with_the_same_seed(self, world: World) -> None:
        """What it is drawn from is found anew; here nothing has changed."""
        looks: list[Sequence[PaneAt]] = []
        for _ in range(2):
            task, reader = world.begun("m")
            task.step(world.cycle, over)
            looks += reader.looks
        assert looks[0] == looks[1]

    def test_one_of_the_release_before_goes_on(self, world: World) -> None:
        """It has recorded more, of the log as that was then."""
        task, reader = world.task("m")
        facts = {"from_ms": 1, "to_ms": 2, "begin_ms": 3, "places": [[0, 7]], "starts_ms": [1]}
        task.begin(world.cycle, {**task.facts(world.cycle), **facts})
        while not reader.looks:
            task.step(world.cycle, over)
        assert task._span is not None
        assert (task._span.to_ms, len(world.reads)) == (NOW_MS, 10)


class TestWhatIsDrawn:
    def test_half_is_of_the_last_day_and_half_of_all_that_the_log_holds(self, world: World) -> None:
        """However long it is; of a span of its own everything is drawn evenly."""
        task, _reader = world.task("m", last="400d", recent="1d", sample=400)
        found = world.span(task)
        assert found.starts_ms == (NOW_MS - DAY_MS, NOW_MS - 1_000 * 3_600_000)
        places = [offset for _, offset in found.places]
        assert len(places) == 16
        assert sum(offset >= 50 for offset in places) >= 8
        assert any(offset < 50 for offset in places)

        ages_h = [(NOW_MS - at_ms) / 3_600_000 for at_ms in task._drawn(found)]
        assert len(ages_h) == 400
        assert sum(age <= 24 for age in ages_h) >= 200
        for older in range(24, 1_000, 122):
            assert any(older <= age < older + 122 for age in ages_h), f"none {older} h old"

    def test_nothing_is_drawn_that_the_log_does_not_hold_whole(self, world: World) -> None:
        """Nor what retention may take meanwhile; a log that has lost everything gives none."""
        also = {"last": "400d", "recent": "1d", "sample": 40}
        world.whole_ms = NOW_MS - 2 * DAY_MS
        found = world.span(world.task("m", **also)[0])
        oldest_ms = world.whole_ms + DAY_MS // 4
        assert found.starts_ms == (NOW_MS - DAY_MS, oldest_ms)
        assert found.from_ms == oldest_ms
        world.whole_ms = NOW_MS - 4 * 3_600_000
        found = world.span(world.task("m", **also)[0])
        assert found.starts_ms == (NOW_MS - 3 * 3_600_000,) * 2, "a quarter of what is left"
        world.whole_ms = NOW_MS + DAY_MS
        found = world.span(world.task("m", **also)[0])
        assert (found.starts_ms, found.places) == ((NOW_MS, NOW_MS), ())

    def test_the_ledger_is_looked_at_before_the_metrics(self, world: World) -> None:
        """In the minutes of the same instants, some a slice; then the metrics have their turn."""
        task, reader = world.begun("m", ledger=True)
        while task._left:
            assert task.step(world.cycle, over) is None
        assert reader.begun == ["/4", "m/1"]
        minutes = [look for look in reader.looks if look[0].vid == -1]
        assert len(minutes) > 1
        assert {pane.start_s % 60 for look in minutes for pane in look} == {0}
        assert task._span is not None
        instants = {at_ms // 60_000 * 60 for at_ms in task._drawn(task._span)}
        assert {pane.start_s for pane in minutes[0]} <= instants


class TestRetention:
    """What is gone by the time it is read."""

    def test_only_what_lacks_it_is_left_out(self, world: World) -> None:
        """The rest is compared, of metrics and of the ledger; and both numbers are told."""
        gone_ms = NOW_MS - 3 * 3_600_000
        world.gaps, world.taken = [Gap(0, 5, gone_ms - 23 * 3_600_000)], 6
        world.metric("k", "9d")
        task, _ = world.task("k", last="6h", sample=100, ledger=True)
        outcome = world.run(task)
        (metric,), ledger = outcome["metrics"], outcome["ledger"]
        seen = [1_000 * pane.start_s for pane in task._seen[0].panes]
        lost = [start_ms for start_ms in seen if start_ms <= gone_ms + 1_000]
        assert 0 < len(lost) < len(seen)
        assert (metric["panes"], metric["overtaken"]) == (len(seen) - len(lost), len(lost))
        assert metric["left_out"] == 0
        assert (ledger["overtaken"], ledger["minutes"] > 0) == (0, True)
        assert outcome["not_compared"] == []

    def test_a_hole_that_was_always_there_costs_nothing(self, world: World) -> None:
        """As a transaction leaves one: the log begins before it."""
        world.gaps, world.taken = [Gap(0, 5, NOW_MS)], 5
        task, _ = world.task("m", last="6h")
        (metric,) = world.run(task)["metrics"]
        assert (metric["panes"] > 0, metric["overtaken"]) == (True, 0)

    def test_what_was_gone_before_it_was_read_is_left_out(self, world: World) -> None:
        """Between the look at what is served and the first record hours may lie."""
        world.metric("k", "9d")
        task, _ = world.begun("k", last="6h", sample=100)
        while task._left:
            task.step(world.cycle, over)
        world.whole_ms = NOW_MS - 3 * 3_600_000
        (metric,) = world.end(task)["metrics"]
        starts_ms = [1_000 * pane.start_s for pane in task._seen[0].panes]
        assert 0 < metric["overtaken"] == sum(at_ms < world.whole_ms for at_ms in starts_ms)
        assert metric["panes"] + metric["overtaken"] == len(starts_ms)

    def test_where_nothing_is_left_it_is_refused(self, world: World) -> None:
        """And the error says what to do."""
        world.gaps, world.taken = [Gap(0, 5, None)], 6
        task, _ = world.task("m", last="6h", ledger=True)
        with pytest.raises(
            RefusedError, match=r"retention has taken something of all its \d+ panes"
        ):
            world.run(task)


class TestPanes:
    def test_the_next_slice_goes_on_behind_them(self, world: World) -> None:
        """Until all were looked at; then the next metric."""
        world.metric("n")
        task, reader = world.begun("m", "n")
        while task._left:
            assert task.step(world.cycle, over) is None
        assert reader.begun == ["m/2", "n/1"]
        of_m = [look for look in reader.looks if look[0].vid == reader.looks[0][0].vid]
        assert len(of_m) > 3
        for before, after in pairwise(of_m):
            assert list(after) == list(before[2:])
        assert [len(seen.panes) for seen in task._seen] == [len(of_m[0])] * 2

    def test_while_they_are_counted_again_what_was_taken_stays(self, world: World) -> None:
        """The job waits, and goes on from there."""
        task, reader = world.begun("m")
        task.step(world.cycle, over)
        reader.is_counted = False
        with pytest.raises(NotNowError, match="panes of m are being counted again"):
            task.step(world.cycle, over)
        reader.is_counted = True
        task.step(world.cycle, over)
        assert list(reader.looks[1]) == list(reader.looks[0][2:])
        assert reader.dropped == []

    def test_once_others_serve_a_metric_it_is_looked_at_anew(self, world: World) -> None:
        """Which version a pane is of is decided for all of them at once."""
        task, reader = world.begun("m")
        task.step(world.cycle, over)
        second = world.metric("m")
        task.step(world.cycle, over)
        assert reader.begun == ["m/1", "m/1"]
        assert [len(seen.panes) for seen in reader.dropped] == [2]
        assert {pane.vid for pane in reader.looks[1]} == {second}

    def test_what_is_no_longer_kept_is_not_looked_at(self, world: World) -> None:
        """The next slice may be an hour later."""
        task, reader = world.begun("m")
        task.step(world.cycle, over)
        world.cycle.through_ms = NOW_MS + 3_600_000
        task.step(world.cycle, over)
        assert len(reader.looks[0]) > 2
        assert list(reader.looks[1]) == []

    def test_a_metric_that_is_asked_for_twice_is_looked_at_once(self, world: World) -> None:
        """Its events would be counted twice, and every pane would differ."""
        task, reader = world.begun("m", "m")
        while task._left:
            task.step(world.cycle, over)
        assert reader.begun == ["m/1"]
