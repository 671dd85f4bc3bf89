"""Answers as tables: a row for each window of each series."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from weir.live import Answer

# A spreadsheet takes text that begins so for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
# What of an answer is about all of it, and so on no line.
BESIDE = {
    "Weir-Fresh": "fresh",
    "Weir-Notes": "notes",
    "Weir-Of": "of",
    "Weir-Corrections": "corrections",
}
CELLS: Final = ("value", "low", "high", "count", "state")
CALENDAR_MS: Final = 146_097 * 86_400_000
"""400 years, after which dates repeat."""


def beside(answer: Answer) -> dict[str, str]:
    """Return the header fields of an answer as lines: how fresh it is, and what is to be known.

    Each is the member of the answer as JSON, in ASCII, as a header must be; of corrections only
    how many there are, since there may be hundreds.
    """
    told: dict[str, Any] = {field: answer[name] for field, name in BESIDE.items() if name in answer}
    if "Weir-Corrections" in told:
        told["Weir-Corrections"] = len(told["Weir-Corrections"])
    return {field: json.dumps(value, separators=(",", ":")) for field, value in told.items()}


def as_csv(answer: Answer) -> bytes:
    """Return an answer as CSV; text that a spreadsheet would run is escaped.

    A list of frequent texts has a line for each of them, `value` being how often it came. Of
    dimensions `other` and `nulls` say why a cell is empty that is no empty text: the line is of
    several series, or these dimensions are null, by name. Behind them stand the values of each
    time that the query compares with, `value_1w`.
    """
    series = answer["series"]
    dimensions = list(dict.fromkeys(name for one in series for name in one["by"]))
    texts = ["text"] if any("items" in one for one in series) else []
    empties = ["other", "nulls"] if any(one["by"] or _is_other(one) for one in series) else []
    offsets = dict.fromkeys(then["offset"] for one in series for then in one.get("compare") or ())
    earlier = [f"{name}_{offset}" for offset in offsets for name in CELLS]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["time", *map(_safe, dimensions), *texts, *CELLS, *empties, *earlier])
    for one, at, point in _points(answer):
        by = [_safe(point["by"].get(name)) for name in dimensions]
        behind = [*(_why_empty(one) if empties else []), *_compared(one, at)]
        for cells in _cells(point):
            writer.writerow([point["time"], *by, *cells, point["count"], point["state"], *behind])
    return out.getvalue().encode()


def _is_other(series: Mapping[str, Any]) -> bool:
    return bool(series.get("other"))


def _why_empty(series: Mapping[str, Any]) -> list[str]:
    nulls = [name for name, value in series["by"].items() if value is None]
    told = json.dumps(nulls, ensure_ascii=False) if nulls else ""
    return ["true" if _is_other(series) else "", told]


def _compared(series: Mapping[str, Any], at: int) -> list[Any]:
    return [then[name][at] for then in series.get("compare") or () for name in CELLS]


def _cells(point: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Return the value with its ends; of a list each text with those of its own."""
    if "items" not in point:
        yield [point.get(name) for name in ("value", "low", "high")]
    elif point["items"] is None:
        yield [""] * 4  # not known, which is another thing than an empty list
    else:
        yield from ([_safe(text), *cells] for text, *cells in point["items"])


def as_ndjson(answer: Answer) -> bytes:
    """Return an answer as one JSON object a line."""
    lines = (
        json.dumps({**point, **_besides(series, at)}, ensure_ascii=False)
        for series, at, point in _points(answer)
    )
    return "".join(f"{line}\n" for line in lines).encode()


def _besides(series: Mapping[str, Any], at: int) -> dict[str, Any]:
    """Return what only some lines have: that it is of `other`, and the times compared with."""
    then = [
        {"offset": one["offset"], **{name: one[name][at] for name in CELLS}}
        for one in series.get("compare") or ()
    ]
    found = {"other": True} if _is_other(series) else {}
    return {**found, "compare": then} if then else found


def _points(answer: Answer) -> Iterator[tuple[dict[str, Any], int, dict[str, Any]]]:
    """Yield each window of each series: the series, the window's place, and a line of it."""
    for series in answer["series"]:
        columns = [name for name in ("value", "low", "high", "count", "items") if name in series]
        for at, t_ms in enumerate(answer["t_ms"]):
            cells = {name: series[name][at] for name in columns}
            state = series["state"][at]
            yield series, at, {"time": _instant(t_ms), "by": series["by"], **cells, "state": state}


def _instant(t_ms: int) -> str:
    """Return ISO 8601; years beyond 1 to 9999, which Python does not know, in its long form."""
    try:
        return datetime.fromtimestamp(t_ms / 1000, UTC).isoformat()
    except (ValueError, OverflowError):
        calendars, rest_ms = divmod(t_ms, CALENDAR_MS)
    at = datetime.fromtimestamp(rest_ms / 1000, UTC)
    return f"{at.year + 400 * calendars:+07d}{at.isoformat()[4:]}"


def _safe(text: str | None) -> str:
    if text is None:
        return ""
    return "'" + text if text.startswith(FORMULA) else text
