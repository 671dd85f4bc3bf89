"""Which versions a driver begins: those that their tenant may have."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs
from weir.clock import ManualClock
from weir.commit_found import LogBounds
from weir.definitions.budget import estimate
from weir.definitions.fold import Definitions
from weir.definitions.history import Horizons, Lane
from weir.definitions.metric import Metric
from weir.definitions.records import (
    DriverStart,
    NewRecord,
    aside_record,
    horizons_record,
    start_record,
)
from weir.erasure import erasures
from weir_analytics.panes import changes as changes_module
from weir_analytics.panes.changes import LONGEST_PAUSE_S, Changes
from weir_analytics.panes.due import Open

TEXT = json.dumps({"events": {"type": "t"}, "keep": {"10s": "1h"}})
HORIZONS = Horizons({}, 1_000, 90_000, "events")
COST = estimate(Metric.model_validate({"name": "m", **json.loads(TEXT)})).memory_bytes


class Log:
    """A log of definitions that holds what a driver appends."""

    def __init__(self) -> None:
        """Begin with a start record."""
        self.fold = Definitions()
        self._take(start_record(DriverStart("panes", 1, "start"), at_ms=0))
        self._take(horizons_record(HORIZONS, fence=0, at_ms=0))

    def append_fenced(self, record: NewRecord, fence: int) -> int:
        """Append a driver's record."""
        assert fence == 0
        return self._take(record)

    def put(self, tenant: str, name: str, kind: str = "metric", text: str = TEXT) -> int:
        """Write a definition as any producer may; return its vid."""
        fields = {"v": 1, "tenant": tenant, "kind": kind, "name": name, "version": 1}
        fields |= {"based_on": None, "op": "put", "text": text, "by": "b", "at_ms": 0}
        return self._take(
            NewRecord(f"{tenant}/{kind}/{name}".encode(), json.dumps(fields).encode())
        )

    def _take(self, record: NewRecord) -> int:
        offset = self.fold.next_offset
        done = self.fold.apply(offset, record.key, record.value)
        assert done is not None
        assert done.applied, done
        return offset


def changes(log: Log, tenant_bytes: int, horizon_ms: int = 1_000) -> Changes:
    """Return the changes of a driver that has counted nothing yet."""
    stores: Any = SimpleNamespace(definitions=log)
    settings: Any = SimpleNamespace(
        kafka=None,
        tenant_bytes=tenant_bytes,
        hash_key=b"k",
        horizon_ms=horizon_ms,
        beyond_ms=HORIZONS.beyond_ms,
    )
    footing: Any = SimpleNamespace(fence=SimpleNamespace(fence=0), events_id="events")
    book: Any = SimpleNamespace(filled=lambda _fold: [])
    return Changes(stores, settings, footing, book, ManualClock(), Open())


def test_what_exceeds_the_tenants_memory_does_not_begin() -> None:
    """Also where the API was not asked: the oldest begin, and the refusal is told once."""
    log = Log()
    first, second, third = log.put("a", "one"), log.put("a", "two"), log.put("a", "three")
    other = log.put("b", "one")
    made = changes(log, 2 * COST)

    with capture_logs() as told:
        made.record({0: 0}, had_events=False, through_s=0)
        made.record({0: 1}, had_events=False, through_s=0)

    assert set(log.fold.activations) == {first, second, other}
    refused = [line for line in told if line["event"] == "version_refused"]
    assert [line["vid"] for line in refused] == [third]
    assert f"must be at most 0 bytes of panes, what is left of {2 * COST}" in refused[0]["why"]


def test_an_erasure_holds_before_a_later_version_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in between, the version would count live what the erasure comes to hold for later."""
    log = Log()
    erase = json.dumps({"do": {"job": "erase", "subject_hash": "0" * 64}})
    job, vid = log.put("a", "j", "job", erase), log.put("a", "one")
    made = changes(log, 2 * COST)
    real = log.append_fenced

    def killed(record: NewRecord, fence: int) -> int:
        monkeypatch.setattr(log, "append_fenced", real)
        real(record, fence)
        raise ConnectionError

    monkeypatch.setattr(log, "append_fenced", killed)
    with pytest.raises(ConnectionError):
        made.record({0: 4}, had_events=True, through_s=0)
    assert [one.vid for one in erasures(log.fold)] == [job]
    assert vid not in log.fold.activations


def test_changed_horizons_hold_from_where_counting_has_come_to() -> None:
    """Once recorded they are the driver's; what lies before is counted by those before."""
    log = Log()
    made = changes(log, COST, horizon_ms=2_000)
    with capture_logs() as told:
        made.record({0: 4, 1: 6}, had_events=True, through_s=0)
        made.record({0: 9, 1: 9}, had_events=True, through_s=0)

    assert list(log.fold.horizons) == [HORIZONS, Horizons({0: 4, 1: 6}, 2_000, 90_000, "events")]
    changed = [line for line in told if line["event"] == "setting_changed"]
    assert [(one["name"], one["before"], one["now"]) for one in changed] == [
        ("horizon_ms", 1_000, 2_000)
    ]


def test_partitions_that_are_added_are_recorded_and_told() -> None:
    """By whichever driver counts them first: what another one has met is in the log."""
    log = Log()
    with capture_logs() as told:
        changes(log, COST).record({0: 4, 1: 6}, had_events=True, through_s=0)
        grown = dict.fromkeys(range(4), 9)
        for _ in range(2):
            changes(log, COST).record(grown, had_events=True, through_s=0)

    assert [one.partitions for one in log.fold.spreads] == [2, 4]
    added = [line for line in told if line["event"] == "partitions_added"]
    assert [(one["partitions"], one["dedup_gap_ms"]) for one in added] == [([2, 3], 1_000)]


@pytest.mark.parametrize("had_events", [False, True])
def test_what_was_set_aside_does_not_begin(
    monkeypatch: pytest.MonkeyPatch, had_events: bool
) -> None:
    """By the record that its author reads, whatever this process knows; the others begin."""
    log = Log()
    bad, good = log.put("a", "bad"), log.put("a", "good")
    log._take(aside_record(bad, "no plan", fence=0, at_ms=0))
    made = changes(log, 2 * COST)
    monkeypatch.setattr(made, "_open_lanes", lambda: None)
    made.record({0: 0}, had_events=had_events, through_s=0)
    assert set(log.fold.activations) == {good}
    log._take(aside_record(bad, None, fence=0, at_ms=0))
    made.record({0: 1}, had_events=had_events, through_s=0)
    assert set(log.fold.activations) == {good, bad}


def test_without_its_plan_a_version_begins_not_even_before_the_first_event() -> None:
    """It might be one of which none can be made."""
    log = Log()
    vid = log.put("a", "one")
    made = changes(log, COST)
    ready: set[int] = set()
    gate: Any = made.gate
    gate.may_begin = lambda definition: definition.vid in ready
    made.record({0: 0}, had_events=False, through_s=0)
    assert not log.fold.activations
    ready.add(vid)
    made.record({0: 0}, had_events=False, through_s=0)
    assert set(log.fold.activations) == {vid}


class OldLog:
    """A log of which the first record that is still there cannot be read, for as long as it says.

    Attributes:
        first: The first offset that is still there.
        asked_ms: When that was tried, in vain or not.
        is_away: Whether it is in vain.
    """

    def __init__(self, clock: ManualClock, takes_ms: int = 15_000) -> None:
        self.first, self.asked_ms, self.is_away = 10, list[int](), True
        self._clock, self._takes_ms = clock, takes_ms

    def start(self) -> dict[int, int]:
        """Return where it begins: the beginning is gone."""
        return {0: self.first}

    def ends(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return both ends."""
        return self.start(), {0: 40}

    def bounds(self, topic_id: str) -> LogBounds:
        """Return both ends."""
        return LogBounds(topic_id, *self.ends())

    def first_received_ms(self, *_: object) -> int:
        """Read the first record."""
        self.asked_ms.append(self._clock.now_ms())
        if self.is_away:
            self._clock.advance(self._takes_ms)
            msg = "the log did not answer within 15 s"
            raise TimeoutError(msg)
        return 0

    def at(self, *_: object) -> dict[int, int]:
        """Return the place of an instant."""
        return {0: 12}

    def complete_from_ms(self, *_: object) -> int:
        """Return from when on panes are complete."""
        self.first_received_ms()
        return 7


def with_old_log(
    monkeypatch: pytest.MonkeyPatch, log: Log, takes_ms: int = 15_000
) -> tuple[Changes, OldLog]:
    """Return the changes of a driver, and the log that it asks."""
    made = changes(log, 3 * COST)
    clock: Any = made.clock
    old = OldLog(clock, takes_ms)
    monkeypatch.setattr(changes_module, "LogOffsets", lambda *_: old)
    return made, old


@pytest.mark.parametrize(
    ("takes_ms", "pauses_s"), [(0, [1, 2, 4, 8, 16]), (15_000, [60, 120, 240, 300, 300])]
)
def test_an_old_log_that_cannot_be_read_holds_up_few_batches(
    monkeypatch: pytest.MonkeyPatch, takes_ms: int, pauses_s: list[int]
) -> None:
    """The history of a new version waits for it; so does a batch, each time that it asks."""
    log = Log()
    vid = log.put("a", "one")
    made, old = with_old_log(monkeypatch, log, takes_ms)
    clock: Any = made.clock
    with capture_logs() as told:
        for batch in range(2_000):
            made.record({0: 20 + batch}, had_events=True, through_s=0)
            clock.advance(1_000)
    assert log.fold.lanes == {}
    waits = [line for line in told if line["event"] == "old_log_not_read"]
    assert (len(waits), waits[0]["what"]) == (len(old.asked_ms), "lanes")
    assert [line["pause_s"] for line in waits][:5] == pauses_s
    found = [later - at - takes_ms for at, later in pairwise(old.asked_ms)]
    assert found[:5] == [1_000 * pause_s for pause_s in pauses_s]
    assert found[-1] == 1_000 * LONGEST_PAUSE_S

    old.is_away = False
    clock.advance(1_000 * round(LONGEST_PAUSE_S))
    made.record({0: 9_000}, had_events=True, through_s=0)
    (lane,) = log.fold.lanes.values()
    assert (lane.vids, lane.start, lane.complete_from_ms) == ((vid,), {0: 12}, 7)
    made.record({0: 9_001}, had_events=True, through_s=0)
    assert len(log.fold.lanes) == 1


def test_takeovers_that_wait_for_an_old_log_ask_it_one_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Retention came into their lanes: a batch waits for it once. What begins later waits not."""
    log = Log()
    vids = [log.put("a", "one"), log.put("b", "two"), log.put("c", "three")]
    made, old = with_old_log(monkeypatch, log)
    clock: Any = made.clock
    old.is_away = False
    made.record({0: 20}, had_events=True, through_s=0)
    (lane,) = log.fold.lanes.values()
    later = replace(lane, offset=98, start={0: 15})
    waiting = [(lane, vids[0]), (replace(lane, offset=97), vids[1]), (later, vids[2])]

    def filled(fold: Definitions) -> list[tuple[Lane, int]]:
        return [one for one in waiting if not fold.activations[one[1]].serves]

    def serve() -> list[bool]:
        return [log.fold.activations[vid].serves for vid in vids]

    monkeypatch.setattr(made.book, "filled", filled)
    old.first, old.is_away, old.asked_ms = 15, True, []
    made.record({0: 21}, had_events=True, through_s=0)
    assert (serve(), len(old.asked_ms)) == ([False, False, True], 1)
    old.is_away = False
    clock.advance(59_999)
    made.record({0: 22}, had_events=True, through_s=0)
    assert (serve(), len(old.asked_ms)) == ([False, False, True], 1)
    clock.advance(1)
    made.record({0: 23}, had_events=True, through_s=0)
    assert (serve(), len(old.asked_ms)) == ([True, True, True], 2)
