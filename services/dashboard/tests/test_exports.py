"""Exports: an answer as lines, one a point, of a list one a text."""

from __future__ import annotations

import json
from typing import Any

from weir_dashboard.api.exports import as_csv, as_ndjson, beside


def answer(**columns: Any) -> dict[str, Any]:
    """Return an answer with one series of two points."""
    series = {"by": {"region": "=eu"}, "count": [9, None], "state": "fp", **columns}
    return {"t_ms": [10_000, 20_000], "series": [series]}


def test_values_have_a_line_a_point() -> None:
    """Each point has its value and its ends; what is not known is empty."""
    lines = as_csv(answer(value=[4.5, None], low=[4.0, None], high=[5.0, None])).decode()
    assert lines.splitlines() == [
        "time,region,value,low,high,count,state",
        "1970-01-01T00:00:10+00:00,'=eu,4.5,4.0,5.0,9,f",
        "1970-01-01T00:00:20+00:00,'=eu,,,,,p",
    ]


def test_a_list_has_a_line_a_text() -> None:
    """Texts of clients are escaped as dimensions are; the last line bounds those not listed."""
    found = answer(items=[[["=1+1", 5, 4, 6], ["b", 4, 4, 4], [None, None, 0, 2]], None])
    assert as_csv(found).decode().splitlines() == [
        "time,region,text,value,low,high,count,state",
        "1970-01-01T00:00:10+00:00,'=eu,'=1+1,5,4,6,9,f",
        "1970-01-01T00:00:10+00:00,'=eu,b,4,4,4,9,f",
        "1970-01-01T00:00:10+00:00,'=eu,,,0,2,9,f",
        "1970-01-01T00:00:20+00:00,'=eu,,,,,,p",
    ]
    first, second = map(json.loads, as_ndjson(found).splitlines())
    assert first["items"][0] == ["=1+1", 5, 4, 6]
    assert second["items"] is None


def test_what_is_about_all_of_it_stands_beside() -> None:
    """How fresh, what is to be known, and how much was corrected, in what a header may hold."""
    found = answer(value=[1.0, 1.0])
    found |= {"fresh": {"status": "stale"}, "notes": [{"message": "é"}], "corrections": [{}, {}]}
    assert beside(found) == {
        "Weir-Fresh": '{"status":"stale"}',
        "Weir-Notes": '[{"message":"\\u00e9"}]',
        "Weir-Corrections": "2",
    }
