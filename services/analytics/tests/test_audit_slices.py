"""What an audit does in one slice: a place of the log, or as many panes as there is time for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException
from weir.clock import ManualClock
from weir.commit import Offsets
from weir.definitions.fold import Definitions
from weir.definitions.history import Definition
from weir.definitions.job import Audit
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    NewRecord,
    activation_record,
    put_record,
    start_record,
)
from weir.rows import Row
from weir_analytics.jobs import audit, reading, span
from weir_analytics.jobs.audit import AuditTask
from weir_analytics.jobs.log_records import Gap, LogRecord, Passage
from weir_analytics.jobs.sample import Audited, PaneAt
from weir_analytics.jobs.span import Span
from weir_analytics.jobs.task import NotNowError, Progress, RefusedError
from weir_analytics.jobs.was_served import OwnSeries, Reader, Seen

from .conftest import settings_for

LOG = "log"
NOW_MS = 2_000_000_000_000
DAY_MS = 86_400_000
TEXT = "kind: metric\nname: {}\nevents: {{type: t}}\nkeep: {{10s: {}}}\n"


def over() -> bool:
    """End a slice: there is time for one thing."""
    return True


class Glances(Reader):
    """A reader that has time for two panes a slice, and notes what it is asked for."""

    def __init__(self, *_: Any) -> None:
        self.begun: list[str] = []
        self.dropped: list[Seen] = []
        self.looks: list[Sequence[PaneAt]] = []
        self.is_counted = True
        self.rows: dict[str, Row] = {}

    def close(self) -> None:
        """Hold nothing."""

    def begin(
        self, name: str, chain: Sequence[Audited], left: int, owner: str | None = None
    ) -> Seen:
        """Note that a metric is begun."""
        self.begun.append(f"{name}/{left}")
        return Seen(name, tuple(chain), None if owner is None else OwnSeries(owner))

    def drop(self, seen: Seen) -> None:
        """Note that one is let go."""
        self.dropped.append(seen)

    def look(
        self, _: Any, seen: Seen, panes: Sequence[PaneAt], is_over: Callable[[], bool] = over
    ) -> bool | None:
        """Take two panes."""
        assert is_over()
        if not self.is_counted:
            return None
        self.looks.append(panes)
        seen.panes |= {pane: [self.rows] for pane in panes[:2]}
        seen.ends |= {pane: {0: 100} for pane in panes[:2]}
        return len(panes) <= 2


class Steps:
    """A walk of one step."""

    progress = Progress(1, 1)

    def __init__(self) -> None:
        self.is_closed = False

    def each(self, take: Callable[[Sequence[Any]], None], _is_over: object) -> bool:
        """Give out nothing that is of the sample."""
        take(())
        return True

    def close(self) -> None:
        """Close it."""
        self.is_closed = True


class Passed(Passage):
    """A passage that finds gaps."""

    def __init__(self, gaps: Sequence[Gap]) -> None:
        super().__init__()
        self._found = list(gaps)

    def records(self, messages: Iterable[Any]) -> Iterator[LogRecord]:
        """Find them with the first records."""
        self.gaps += self._found
        self._found.clear()
        return super().records(messages)


class World:
    """An audit of metrics of `acme`, without servers.

    Attributes:
        reads: The places of the log that were read, and how much of it from there on.
        asked_ms: The instants whose places in the log were asked for.
        away: How many of these questions, the next ones, are not answered.
        walked: From where to where the log was read.
        whole_ms: From when on the log has all of a pane.
        taken: Up to where retention has taken the log.
        gaps: What each time through the log passes over.
        hours_of_log: How long ago the first of its hundred records was received; the second half
            of them came within the last day.
        is_even: Whether those came evenly, or all of them when it began.
        more: How many records have come since.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fold, self.reads = Definitions(), list[tuple[int, int]]()
        self.asked_ms, self.away, self.more = list[int](), 0, 0
        self.walked: list[tuple[Offsets, Offsets]] = []
        self.whole_ms, self.hours_of_log, self.is_even = 0, 1_000, False
        self.taken, self.gaps = 0, list[Gap]()
        self.fence = self.add(start_record(DriverStart("a", 1, "start", events_id=LOG), at_ms=0))
        self.settings = settings_for(folder)
        log = SimpleNamespace(
            ends=lambda: ({0: int(self.whole_ms > 0)}, {0: 100 + self.more}),
            start=lambda: {0: self.taken},
            at=self._at,
            oldest_ms=lambda _: NOW_MS - self.hours_of_log * 3_600_000,
            complete_from_ms=lambda *_: self.whole_ms,
        )
        monkeypatch.setattr(audit, "Reader", Glances)
        monkeypatch.setattr(audit, "LogOffsets", lambda *_, timeout_s: timeout_s and log)
        monkeypatch.setattr(audit, "Walk", self._walk)
        monkeypatch.setattr(reading, "Passage", lambda _begin: Passed(self.gaps))
        monkeypatch.setattr(audit, "event_time", self._event_time)
        monkeypatch.setattr(span, "longest_ms", lambda *_: 0)
        self.cycle: Any = SimpleNamespace(
            stores=SimpleNamespace(definitions=SimpleNamespace(fold=self.fold)),
            footing=SimpleNamespace(events_id=LOG, epoch=3),
            through_ms=NOW_MS,
            clock=ManualClock(),
        )

    def add(self, record: NewRecord) -> int:
        """Append a record; return its offset."""
        change = self.fold.apply(self.fold.next_offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
        return change.offset

    def metric(self, name: str, keep: str = "1h") -> int:
        """Let a version of a metric serve; return its vid."""
        number = self.fold.version("acme", "metric", name)
        edit = Edit("acme", "metric", name, number, "x", 0)
        vid = self.add(put_record(edit, TEXT.format(name, keep)))
        begun = Counting(vid, "acme", name, (number or 0) + 1, {0: 0}, topic_id=LOG)
        self.add(activation_record(begun, op="start", fence=self.fence, at_ms=0))
        return vid

    def task(self, *metrics: str, **also: Any) -> tuple[AuditTask, Glances]:
        """Return an audit, and its reader."""
        asked = Definition(7, "acme", "job", "j", 1, None, "put", "", "test", 0)
        task = AuditTask(self.settings, asked, Audit(metrics=metrics, **also))
        reader = task._reader
        assert isinstance(reader, Glances)
        return task, reader

    def span(self, task: AuditTask) -> Span:
        """Begin an audit, and return what it finds that it looks at."""
        task.begin(self.cycle, task.facts(self.cycle))
        for _ in range(50):
            if task._span is not None:
                return task._span
            before = len(self.asked_ms)
            assert task.step(self.cycle, over) is None
            assert len(self.asked_ms) <= before + 1, "a question a slice"
        pytest.fail("the log was asked for ever")

    def begun(self, *metrics: str, **also: Any) -> tuple[AuditTask, Glances]:
        """Return one that has begun, and has read all its places."""
        task, reader = self.task(*metrics, **also)
        self.span(task)
        while task._places:
            assert task.step(self.cycle, over) is None
        return task, reader

    def run(self, task: AuditTask) -> Mapping[str, Any]:
        """Run an audit from its beginning to its end."""
        self.span(task)
        return self.end(task)

    def end(self, task: AuditTask) -> Mapping[str, Any]:
        """Run one to its end."""
        for _ in range(1_000):
            outcome = task.step(self.cycle, over)
            if outcome is not None:
                task.close()
                return outcome
        pytest.fail("the audit did not end")

    def _walk(self, _kafka: Any, _topic: str, begin: Offsets, end: Offsets, _chunk: int) -> Steps:
        self.walked.append((begin, end))
        return Steps()

    def _at(self, at_ms: int, end: Offsets) -> Offsets:
        self.asked_ms.append(at_ms)
        if self.away:
            self.away -= 1
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if at_ms > NOW_MS:
            return dict.fromkeys(end, 100)
        first_ms = NOW_MS - self.hours_of_log * 3_600_000
        if self.is_even and at_ms >= NOW_MS - DAY_MS:
            return dict.fromkeys(end, 100 - (NOW_MS - at_ms) * 50 // DAY_MS)
        recent = 50 if at_ms > first_ms else 0
        return dict.fromkeys(end, recent if at_ms >= NOW_MS - DAY_MS else recent and 1)

    def _event_time(self, log: Any, offset: int, most: int, tenant: str) -> int | None:
        assert (log.partition, tenant) == (0, "acme")
        self.reads.append((offset, most))
        return None if offset % 2 else NOW_MS - 60_000 - offset


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
