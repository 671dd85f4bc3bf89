"""Answers as tables: a row for each window of each series."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from weir.live import Answer

# A spreadsheet takes text that begins so for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
# What of an answer is about all of it, and so on no line.
BESIDE = {"Weir-Fresh": "fresh", "Weir-Notes": "notes", "Weir-Corrections": "corrections"}


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

    A list of frequent texts has a line for each of them, `value` being how often it came.
    """
    dimensions = list(dict.fromkeys(name for s in answer["series"] for name in s["by"]))
    texts = ["text"] if any("items" in series for series in answer["series"]) else []
    out = io.StringIO()
    writer = csv.writer(out)
    head = ["value", "low", "high", "count", "state"]
    writer.writerow(["time", *map(_safe, dimensions), *texts, *head])
    for point in _points(answer):
        by = [_safe(point["by"].get(name)) for name in dimensions]
        for cells in _cells(point):
            writer.writerow([point["time"], *by, *cells, point["count"], point["state"]])
    return out.getvalue().encode()


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
    lines = (json.dumps(point, ensure_ascii=False) for point in _points(answer))
    return "".join(f"{line}\n" for line in lines).encode()


def _points(answer: Answer) -> Iterator[dict[str, Any]]:
    for series in answer["series"]:
        columns = [name for name in ("value", "low", "high", "count", "items") if name in series]
        for at, t_ms in enumerate(answer["t_ms"]):
            time = datetime.fromtimestamp(t_ms / 1000, UTC).isoformat()
            cells = {name: series[name][at] for name in columns}
            yield {"time": time, "by": series["by"], **cells, "state": series["state"][at]}


def _safe(text: str | None) -> str:
    if text is None:
        return ""
    return "'" + text if text.startswith(FORMULA) else text
