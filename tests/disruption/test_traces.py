"""What is looked up of an event that is missing: its own records, copies and pane, no others'."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from account import LogRecord
from disruption import traces
from disruption.judge import Trace
from load import TYPE

AT_MS = 1_800_000_000_000
RIG: Any = SimpleNamespace(seed=7)


def record(number: int, offset: int, *, tenant: str = "default", later_ms: int = 0) -> LogRecord:
    """Return the record of an event of the load, received and dated so much later."""
    event = {
        **{"id": f"7-{number}", "source": "/load", "type": TYPE, "weirtenant": tenant},
        "time": f"2027-01-15T08:00:{later_ms // 1000:02d}Z",
    }
    return LogRecord(0, offset, AT_MS + later_ms, {}, json.dumps(event).encode())


LOG = [
    *(record(1, 10), record(12, 11), record(1, 12), record(3, 13, later_ms=20_000)),
    record(1, 14, tenant="acme"),
]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a copy of the event at 0:13 in quarantine, one without a version, and two of a pane."""
    origin = {"weir-origin": b"weir.events/id/0/13", "weir-reason": b"value_invalid"}
    copies = [
        LogRecord(0, 0, AT_MS, {**origin, "weir-version": b"6"}, b""),
        LogRecord(0, 1, AT_MS, {"weir-origin": b"weir.events/id/0/10"}, b""),
    ]
    monkeypatch.setattr(traces, "read_log", lambda *_: copies)
    monkeypatch.setattr(RIG, "kafka_bootstrap", "nowhere", raising=False)
    monkeypatch.setattr(traces, "stored_of", lambda _rig, start_ms: 2 if start_ms == AT_MS else 0)
    monkeypatch.setattr(traces, "served_of", lambda _rig, start_ms: 1 if start_ms == AT_MS else 0)


def test_an_event_and_its_pane() -> None:
    """Event 12 is another one, and so is another tenant's event 1; both share nothing with it."""
    found = traces.trace_of(RIG, LOG, 1)
    assert found == Trace([((0, 10), "counted"), ((0, 12), "duplicate")], [], 2, 2, 1)


def test_a_copy_and_nothing() -> None:
    """A copy is of the event that was at its origin; an event that nobody sent is nowhere."""
    assert traces.trace_of(RIG, LOG, 3).copies == ["value_invalid"]
    assert traces.trace_of(RIG, LOG, 4) == Trace([], [])


def test_the_first_pane_that_lacks_one_is_told() -> None:
    """Of two panes the earlier is served short: an event of it is looked up."""
    events = [
        {"_time_ms": AT_MS + 20_000, "data": {"n": 3}},
        *({"_time_ms": AT_MS, "data": {"n": n}} for n in (1, 12)),
    ]
    assert traces.where_one_stopped(RIG, LOG, events) == (
        "of the pane of event 1: Redis has all of its pane; the API says 1, are 2"
    )
    assert "as many are served" in traces.where_one_stopped(RIG, LOG, [events[1]])
