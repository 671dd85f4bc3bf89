"""Which versions a driver begins: those that their tenant may have."""

from __future__ import annotations

import json
from dataclasses import replace
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
        asked: How often that was tried.
    """

    asked, is_away = 0, True

    def bounds(self, topic_id: str) -> LogBounds:
        """Return both ends: the beginning is gone."""
        return LogBounds(topic_id, {0: 10}, {0: 40})

    def first_received_ms(self, *_: object) -> int:
        """Read the first record."""
        self.asked += 1
        if self.is_away:
            msg = "the log did not answer within 15 s"
            raise TimeoutError(msg)
        return 0

    def at(self, *_: object) -> dict[int, int]:
        """Return the place of an instant."""
        return {0: 12}

    def complete_from_ms(self, *_: object) -> int:
        """Return from when on panes are complete."""
        return 7


def test_an_old_log_that_cannot_be_read_holds_up_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The history of a new version waits for it; each batch would wait 15 s to ask for it."""
    log, old = Log(), OldLog()
    monkeypatch.setattr(changes_module, "LogOffsets", lambda *_: old)
    vid = log.put("a", "one")
    made = changes(log, COST)
    clock: Any = made.clock
    asked = list[int]()
    with capture_logs() as told:
        for batch in range(2_000):
            before = old.asked
            made.record({0: 20 + batch}, had_events=True, through_s=0)
            if old.asked > before:
                asked.append(batch)
            clock.advance(1_000)
    assert log.fold.lanes == {}
    assert asked[:5] == [0, 1, 3, 7, 15]
    assert asked[-1] - asked[-2] == LONGEST_PAUSE_S
    waits = [line for line in told if line["event"] == "old_log_not_read"]
    assert (len(waits), waits[0]["what"]) == (len(asked), "lanes")

    old.is_away = False
    clock.advance(1_000 * round(LONGEST_PAUSE_S))
    made.record({0: 9_000}, had_events=True, through_s=0)
    (lane,) = log.fold.lanes.values()
    assert (lane.vids, lane.start, lane.complete_from_ms) == ((vid,), {0: 12}, 7)
    made.record({0: 9_001}, had_events=True, through_s=0)
    assert len(log.fold.lanes) == 1


def test_a_takeover_that_waits_for_an_old_log_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Retention came into its lane: from when on it is complete has to be asked."""
    log, old = Log(), OldLog()
    monkeypatch.setattr(changes_module, "LogOffsets", lambda *_: old)
    vids = [log.put("a", "one"), log.put("b", "two")]
    made = changes(log, COST)
    old.is_away = False
    made.record({0: 20}, had_events=True, through_s=0)
    (lane,) = log.fold.lanes.values()
    other = replace(lane, offset=99)
    away = {lane.offset}

    def complete(of: Any) -> int:
        if of.offset in away:
            msg = "the log did not answer within 15 s"
            raise TimeoutError(msg)
        return 7

    monkeypatch.setattr(made, "_complete_from_ms", complete)
    waiting = [(lane, vids[0]), (other, vids[1])]

    def filled(fold: Definitions) -> list[tuple[Lane, int]]:
        return [one for one in waiting if not fold.activations[one[1]].serves]

    monkeypatch.setattr(made.book, "filled", filled)
    made.record({0: 21}, had_events=True, through_s=0)
    assert [log.fold.activations[vid].serves for vid in vids] == [False, True]
    away.clear()
    made.record({0: 22}, had_events=True, through_s=0)
    assert not log.fold.activations[vids[0]].serves, "a batch does not ask each time"
    made.clock.advance(1_000)  # type: ignore[attr-defined]
    made.record({0: 23}, had_events=True, through_s=0)
    assert log.fold.activations[vids[0]].serves
