"""What the engine does not begin is what the API says does not begin."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from weir.clock import ManualClock
from weir.definitions.budget import estimate
from weir.definitions.fold import Definitions
from weir.definitions.history import Definition, Horizons
from weir.definitions.metric import Metric
from weir.definitions.records import (
    DriverStart,
    Edit,
    NewRecord,
    aside_record,
    horizons_record,
    put_record,
    start_record,
)
from weir_analytics.panes.changes import Changes
from weir_analytics.panes.due import Open
from weir_dashboard.waiting import PLANNED, waits_for

HORIZONS = Horizons({}, 1_000, 90_000, "events")
HOURS = (1, 2, 4)
MEMBERS = [{"events": {"type": "t"}, "keep": {"10s": f"{hours}h"}} for hours in HOURS]
LEAST = estimate(Metric.model_validate({"name": "m", **MEMBERS[0]})).memory_bytes


class Log:
    """A log of definitions that a driver appends to and a dashboard reads."""

    def __init__(self, tenant_bytes: int) -> None:
        """Begin with the start of a driver that goes by some budget."""
        self.fold = Definitions()
        self.take(start_record(DriverStart("a", 1, "start", tenant_bytes=tenant_bytes), at_ms=0))
        self.take(horizons_record(HORIZONS, fence=0, at_ms=0))

    def take(self, record: NewRecord) -> int:
        """Append a record; return its offset."""
        offset = self.fold.next_offset
        self.fold.apply(offset, *record)
        return offset

    def append_fenced(self, record: NewRecord, fence: int) -> int:
        """Append a driver's record."""
        assert fence == 0
        return self.take(record)


class WithoutLanes(Changes):
    """What begins versions in a driver that fills none: the log is not asked."""

    told: list[str | None]

    def _open_lanes(self) -> None:
        pass

    def _is_affordable(self, definition: Definition, fold: Definitions) -> bool:
        """Ask the API, too, by what is known when the engine decides."""
        begins = super()._is_affordable(definition, fold)
        if begins:
            self.told.append(waits_for(fold, definition, self.settings.tenant_bytes, None))
        return begins


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(HOURS), st.booleans()
        )
    ),
    st.integers(0, 8),
)
def test_the_api_refuses_what_the_engine_refuses(
    written: list[tuple[str, str, int, bool]], budget: int
) -> None:
    """Metrics and edits of two tenants: asked of each version when the engine decides on it."""
    tenant_bytes = budget * LEAST
    log = Log(tenant_bytes)
    start = log.fold.start()
    assert start is not None
    assert start.tenant_bytes == tenant_bytes
    stores: Any = SimpleNamespace(definitions=log)
    settings: Any = SimpleNamespace(
        tenant_bytes=tenant_bytes,
        horizon_ms=HORIZONS.horizon_ms,
        beyond_ms=HORIZONS.beyond_ms,
    )
    footing: Any = SimpleNamespace(fence=SimpleNamespace(fence=0), events_id="events")
    book: Any = SimpleNamespace(filled=lambda _fold: [])
    changes = WithoutLanes(stores, settings, footing, book, ManualClock(), Open())
    changes.told = []
    for tenant, name, hours, aside in written:
        based_on = log.fold.version(tenant, "metric", name)
        edit = Edit(tenant, "metric", name, based_on, by="b", at_ms=0)
        vid = log.take(put_record(edit, json.dumps(MEMBERS[HOURS.index(hours)])))
        if aside:
            log.take(aside_record(vid, "no plan", fence=0, at_ms=0))
        changes.record({0: 0}, had_events=True, through_s=0)

    assert set(changes.told) <= {PLANNED}
    for version in log.fold.metrics_to_start():
        why = waits_for(log.fold, version, tenant_bytes, None) or ""
        aside = log.fold.set_aside(version.vid) is not None
        begins = "has set it aside" if aside else "does not begin it: /keep must be at most"
        assert why.startswith(f"the panes driver {begins}")
