"""Exports: an answer as lines, one a point, of a list one a text."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from weir_dashboard.api.exports import as_csv, as_ndjson, beside


def answer(**columns: Any) -> dict[str, Any]:
    """Return an answer with one series of two points."""
    series = {"by": {"region": "=eu"}, "count": [9, None], "state": "fp", **columns}
    return {"t_ms": [10_000, 20_000], "series": [series]}


def test_values_have_a_line_a_point() -> None:
    """Each point has its value and its ends; what is not known is empty."""
    lines = as_csv(answer(value=[4.5, None], low=[4.0, None], high=[5.0, None])).decode()
    assert lines.splitlines() == [
        "time,region,value,low,high,count,state,other,nulls",
        "1970-01-01T00:00:10+00:00,'=eu,4.5,4.0,5.0,9,f,,",
        "1970-01-01T00:00:20+00:00,'=eu,,,,,p,,",
    ]


def test_why_a_dimension_is_empty() -> None:
    """Null, an empty text and what stands for several series are three things, in CSV too."""
    of = {"value": [1.0], "low": [1.0], "high": [1.0], "count": [1], "state": "f"}
    named = [{"a": None, "b": ""}, {"a": "", "b": None}, {"a": None, "b": None}]
    series = [*({"by": by, **of} for by in named), {"by": {}, "other": True, **of}]
    found = as_csv({"t_ms": [0], "series": series}).decode()
    rows = list(csv.DictReader(io.StringIO(found)))
    assert {(row["a"], row["b"]) for row in rows} == {("", "")}
    assert [row["nulls"] for row in rows] == ['["a"]', '["b"]', '["a", "b"]', ""]
    assert [row["other"] for row in rows] == ["", "", "", "true"]


def test_without_dimensions_there_is_nothing_to_tell_apart() -> None:
    """The lines are as short as they can be."""
    lines = as_csv(answer(by={}, value=[1.0, 2.0], low=[1.0, 2.0], high=[1.0, 2.0])).decode()
    assert lines.splitlines()[:2] == [
        "time,value,low,high,count,state",
        "1970-01-01T00:00:10+00:00,1.0,1.0,1.0,9,f",
    ]


def test_what_it_is_compared_with_stands_behind() -> None:
    """Columns for each earlier time, in the order of the answer."""
    now = {"value": [4.5, None], "low": [4.5, None], "high": [4.5, None]}
    then = {"value": [3.5, 1.0], "low": [3.0, 1.0], "high": [4.0, 1.0], "count": [2, 1]}
    compare = [{"offset": "1d", **then, "state": "ff"}, {"offset": "1w", **then, "state": "fi"}]
    lines = as_csv(answer(by={}, **now, compare=compare)).decode()
    assert lines.splitlines() == [
        "time,value,low,high,count,state,value_1d,low_1d,high_1d,count_1d,state_1d,"
        "value_1w,low_1w,high_1w,count_1w,state_1w",
        "1970-01-01T00:00:10+00:00,4.5,4.5,4.5,9,f,3.5,3.0,4.0,2,f,3.5,3.0,4.0,2,f",
        "1970-01-01T00:00:20+00:00,,,,,p,1.0,1.0,1.0,1,f,1.0,1.0,1.0,1,i",
    ]


@pytest.mark.parametrize(
    ("t_ms", "told"),
    [
        (253_402_300_799_000, "9999-12-31T23:59:59+00:00"),
        (253_402_300_800_000, "+010000-01-01T00:00:00+00:00"),
        (253_402_300_800_000 + 59 * 86_400_000, "+010000-02-29T00:00:00+00:00"),
        (-62_135_596_800_000, "0001-01-01T00:00:00+00:00"),
        (-62_135_596_800_001, "+000000-12-31T23:59:59.999000+00:00"),
        (-62_135_596_800_000 - 367 * 86_400_000, "-000001-12-31T00:00:00+00:00"),
        (2**53, "+287396-10-12T08:59:00.992000+00:00"),
    ],
)
def test_instants_beyond_the_calendar(t_ms: int, told: str) -> None:
    """ISO 8601 has years beyond those that Python knows, as a query may ask for them."""
    line = as_csv({**answer(value=[1.0, 1.0]), "t_ms": [t_ms, 0]}).decode().splitlines()[1]
    assert line.split(",")[0] == told
    first, _ = map(json.loads, as_ndjson({**answer(), "t_ms": [t_ms, 0]}).splitlines())
    assert first["time"] == told


def test_a_list_has_a_line_a_text() -> None:
    """Texts of clients are escaped as dimensions are; the last line bounds those not listed."""
    found = answer(items=[[["=1+1", 5, 4, 6], ["b", 4, 4, 4], [None, None, 0, 2]], None])
    assert as_csv(found).decode().splitlines() == [
        "time,region,text,value,low,high,count,state,other,nulls",
        "1970-01-01T00:00:10+00:00,'=eu,'=1+1,5,4,6,9,f,,",
        "1970-01-01T00:00:10+00:00,'=eu,b,4,4,4,9,f,,",
        "1970-01-01T00:00:10+00:00,'=eu,,,0,2,9,f,,",
        "1970-01-01T00:00:20+00:00,'=eu,,,,,,p,,",
    ]
    first, second = map(json.loads, as_ndjson(found).splitlines())
    assert first["items"][0] == ["=1+1", 5, 4, 6]
    assert second["items"] is None


def test_lines_of_json_tell_others_and_earlier_times() -> None:
    """As the answer does, with the values of the one window."""
    of = {
        "value": [1.0, 2.0],
        "low": [1.0, 2.0],
        "high": [1.0, 2.0],
        "count": [1, 2],
        "state": "ff",
    }
    found = answer(**of, compare=[{"offset": "1w", **of}])
    found["series"].append({"by": {}, "other": True, **of})
    lines = [json.loads(line) for line in as_ndjson(found).splitlines()]
    then = {"offset": "1w", "value": 2.0, "low": 2.0, "high": 2.0, "count": 2, "state": "f"}
    assert lines[1]["compare"] == [then]
    assert [line.get("other") for line in lines] == [None, None, True, True]
    assert "compare" not in lines[2]


def test_what_is_about_all_of_it_stands_beside() -> None:
    """How fresh, what is to be known, and how much was corrected, in what a header may hold."""
    found = answer(value=[1.0, 1.0])
    found |= {"fresh": {"status": "stale"}, "notes": [{"message": "é"}], "corrections": [{}, {}]}
    found["of"] = 431
    assert beside(found) == {
        "Weir-Fresh": '{"status":"stale"}',
        "Weir-Notes": '[{"message":"\\u00e9"}]',
        "Weir-Of": "431",
        "Weir-Corrections": "2",
    }
