"""An audit without servers: what it is asked, and what a log and a store would say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
from weir_analytics.jobs.task import Progress
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
