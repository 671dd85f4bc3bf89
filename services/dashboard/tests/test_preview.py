"""A preview: what a metric makes of events as the live tail has them."""

from __future__ import annotations

from typing import Any

from weir.definitions.check import check
from weir.definitions.metric import Metric
from weir_dashboard.api.preview import try_one

ENTRY: dict[str, Any] = {
    **{"id": "1", "type": "t", "source": "s", "weirsource": "web", "subject": "ann"},
    **{"time_ms": 1_700_000_000_000, "data": '{"x": 2}', "cut": False},
    "attributes": {"partitionkey": "k", "traceparent": "00-4b", "sequence": 7, "sampled": True},
}


def metric(**members: Any) -> Metric:
    """Return a checked metric."""
    model = check("metric", "m", {"events": {"type": "t"}, **members}).model
    assert isinstance(model, Metric)
    return model


def test_extensions_are_read_as_they_were_stored() -> None:
    """What counts by, or measures, an extension attribute is shown as it will be counted."""
    by = ["extension.traceparent", "extension.sampled", "partitionkey"]
    found = try_one(metric(by=by, value="extension.sequence + data.x"), ENTRY)

    assert (found.matched, found.value) == (True, 9.0)
    assert found.series == {"traceparent": "00-4b", "sampled": "true", "partitionkey": "k"}


def test_no_member_of_an_entry_is_taken_for_an_attribute() -> None:
    """`cut` and the like are the tail's own: the event has no such extension."""
    assert not try_one(metric(where="extension.cut is not null"), ENTRY).matched
