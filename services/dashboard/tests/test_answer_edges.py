"""When time alone changes an answer."""

from __future__ import annotations

import pytest
from weir.definitions.metric import Metric
from weir.query import Facts, Served, Version, parse_query, plan
from weir_dashboard.queries import _edges

MINUTE = 60_000
NOW_MS = 1_795_181_520_000


@pytest.mark.parametrize(("at_ms", "is_other"), [(-1, False), (0, True)])
def test_what_is_final_goes_by_each_version(at_ms: int, is_other: bool) -> None:
    """One that served before waits half a minute longer than a pane's edge for late events."""
    text = {"kind": "metric", "name": "m", "events": {"type": "t"}, "aggregates": ["count"]}
    old, new = (
        Metric.model_validate({**text, "resolution": "1m", "allowed_lateness": lateness})
        for lateness in ("1830s", "0s")
    )
    cut = dict.fromkeys((60, 3_600), (NOW_MS - 20 * MINUTE) // 1000)
    both = Served(
        (Version(vid=1, number=1, metric=old), Version(vid=2, number=2, metric=new, cut=cut))
    )

    def edges(through_ms: int) -> tuple[int, ...]:
        facts = Facts(epoch=1, rev=1, processed_through_ms=through_ms, now_ms=NOW_MS)
        asked = {"metric": "m", "aggregate": "count", "step": "1m"}
        return _edges(plan(parse_query(asked), {"m": both}, facts), facts)

    final_ms = NOW_MS + 30_000
    assert (edges(final_ms + at_ms) != edges(final_ms - 1_000)) is is_other
