"""Which versions a driver begins: those that their tenant may have."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs
from weir.clock import ManualClock
from weir.definitions.budget import estimate
from weir.definitions.fold import Definitions
from weir.definitions.history import Horizons
from weir.definitions.metric import Metric
from weir.definitions.records import (
    DriverStart,
    NewRecord,
    aside_record,
    horizons_record,
    start_record,
)
from weir.erasure import erasures
from weir_analytics.panes.changes import Changes
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
