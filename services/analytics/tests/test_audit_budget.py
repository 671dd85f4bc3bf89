"""How much of the log an audit reads, whatever it met on the way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaException
from weir.rows import Row
from weir_analytics.jobs import span

from .audit_scene import DAY_MS, NOW_MS, World, over


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return an installation with one metric."""
    found = World(tmp_path, monkeypatch)
    found.metric("m")
    return found


class TestTheBudget:
    """Of 100 records 50 came within the last day, and 49 within the hours of the log before."""

    SPAN: ClassVar[Mapping[str, Any]] = {"last": "400d", "recent": "1d", "sample": 40}

    def test_nothing_is_drawn_for_which_more_would_be_read(self, world: World) -> None:
        """A pane needs 23 hours, and the horizon, of the log before it."""
        world.metric("k", "9d")
        task, _ = world.task("k", **self.SPAN, most_records=106)
        assert world.span(task).bound == "last"
        task, reader = world.task("k", **self.SPAN, most_records=60)
        found = world.span(task)
        assert found.bound == "records"
        assert NOW_MS - DAY_MS <= found.begin_ms <= NOW_MS - DAY_MS + 60_000
        assert found.from_ms == found.begin_ms + 23 * 3_600_000 + 1_000
        assert found.starts_ms == (found.from_ms,) * 2
        while task._places:
            task.step(world.cycle, over)
        assert len(task._drawn(found)) == 40
        assert min(task._drawn(found)) >= found.from_ms
        task.step(world.cycle, over)
        assert min(pane.start_s for pane in reader.looks[0]) * 1_000 >= found.from_ms

    def test_what_somebody_asks_for_is_not_bounded(self, world: World) -> None:
        """However large the log is."""
        found = world.span(world.task("m", last="30d")[0])
        assert (found.begin_ms, found.bound) == (0, "last")
        assert found.from_ms == NOW_MS - 30 * DAY_MS

    def test_the_ledger_reaches_as_far_as_the_log_is_read(self, world: World) -> None:
        """A minute needs the horizon before it, and no clock's lead."""
        task, reader = world.task("m", **self.SPAN, ledger=True, most_records=60)
        found = world.span(task)
        while task._ledger is not None and not task._ledger.is_seen:
            task.step(world.cycle, over)
        starts_ms = [1_000 * pane.start_s for pane in reader.looks[0]]
        assert min(starts_ms) >= found.begin_ms + 1_000
        assert sum(start_ms < found.from_ms for start_ms in starts_ms) > 20

    def test_it_is_told_what_bounded_it_and_what_was_not_compared(self, world: World) -> None:
        """Where more came than may be read nothing is verified, and that is said."""
        task, _ = world.task("m", **self.SPAN, ledger=True, most_records=10)
        outcome = world.run(task)
        assert (outcome["verified"], outcome["bounded_by"]) == (None, "records")
        assert outcome["from_ms"] == outcome["to_ms"] == NOW_MS
        assert outcome["not_compared"] == ["m", "the ledger"]
        assert outcome["ledger"]["verified"] is None

    def test_one_that_begins_again_reads_no_more(self, world: World) -> None:
        """A day later, in another process: of what has come by then, and not from where it was."""
        facts = world.task("m", **self.SPAN, most_records=60)[0].facts(world.cycle)
        world.cycle.through_ms = NOW_MS + DAY_MS
        world.more = 50
        task, _ = world.task("m", **self.SPAN, most_records=60)
        task.begin(world.cycle, facts)
        while task._span is None:
            task.step(world.cycle, over)
        assert task._span.to_ms == NOW_MS + DAY_MS
        assert NOW_MS < task._span.begin_ms <= NOW_MS + 60_000

    def test_what_comes_while_it_waits_is_not_read_as_well(self, world: World) -> None:
        """A metric that is counted again is waited for, for a day: what has no room then goes."""
        world.is_even = True
        task, _ = world.begun("m", **self.SPAN, ledger=True, most_records=60)
        while task._left:
            task.step(world.cycle, over)
        assert task._ledger is not None
        minutes = task._ledger._seen
        assert minutes is not None
        (panes,), looked_at = task._seen, sorted(minutes.panes)
        panes.ends = {pane: {0: 130} for pane in panes.panes}
        world.more = 30
        outcome = world.end(task)
        assert [57 <= end[0] - begin[0] <= 60 for begin, end in world.walked] == [True, True]
        # The 30 that came leave room for at most as many of the day before, which took 0.6 of it.
        (metric,), ledger = outcome["metrics"], outcome["ledger"]
        assert (metric["panes"], metric["left_out"]) == (0, len(panes.left_out))
        assert ledger["minutes"] + ledger["left_out"] == len(looked_at)
        assert ledger["left_out"] > 5
        assert NOW_MS - 0.6 * DAY_MS <= ledger["from_ms"] <= NOW_MS - 0.4 * DAY_MS

    @pytest.mark.parametrize("answered", [1, 4])
    def test_a_part_of_the_log_that_does_not_answer_is_too_old(
        self, world: World, answered: int
    ) -> None:
        """Nothing is asked anew for it, and what is younger is audited."""
        task, _ = world.task("m", **self.SPAN, most_records=60)
        task.begin(world.cycle, task.facts(world.cycle))
        while len(world.asked_ms) < answered:
            task.step(world.cycle, over)
        before = list(world.asked_ms)
        world.away = 1
        while world.away:
            task.step(world.cycle, over)
        silent_ms = world.asked_ms[-1]
        assert silent_ms < min(before)
        while task._span is None:
            task.step(world.cycle, over)
        assert silent_ms < task._span.begin_ms <= min(before)
        assert world.asked_ms[: len(before)] == before
        assert min(world.asked_ms[len(before) + 1 :]) > silent_ms

    def test_where_nothing_is_known_yet_it_is_asked_again(self, world: World) -> None:
        """Then it is the log that is away, and no old part of it."""
        task, _ = world.task("m", **self.SPAN, most_records=60)
        task.begin(world.cycle, task.facts(world.cycle))
        task.step(world.cycle, over)
        world.away = 1
        with pytest.raises(KafkaException):
            task.step(world.cycle, over)
        assert world.span(task).begin_ms >= NOW_MS - DAY_MS

    @pytest.mark.parametrize(("events", "is_read"), [(600_000, True), (600_001, False)])
    def test_no_log_is_read_where_no_minute_can_be_held(
        self, world: World, monkeypatch: pytest.MonkeyPatch, events: int, is_read: bool
    ) -> None:
        """Of more events than all audits may hold; where no pane is drawn the ledger has all."""
        monkeypatch.setattr(span, "longest_ms", lambda *_: 2 * 3_600_000)
        task, reader = world.task("m", **self.SPAN, ledger=True, most_records=60)
        reader.rows = {"=acme|=web|=counted": Row(events)}
        outcome = world.run(task)
        assert outcome["metrics"][0]["panes"] == 0
        assert bool(world.walked) == is_read
        ledger = outcome["ledger"]
        minutes = ledger["minutes"], ledger["left_out"]
        assert minutes == ((max(minutes), 0) if is_read else (0, max(minutes)))
        assert ("the ledger" in outcome["not_compared"]) != is_read
