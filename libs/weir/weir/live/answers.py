"""Answers and deltas as they stand on the wire, and how a delta is applied.

A client folds deltas into its answer with `apply`; the browser does the same in
TypeScript. Both rest on three laws, which the tests hold: applying a delta twice
changes nothing more; a delta made from an older revision than the client's is as
good as one made from its own; an answer kept up by deltas equals a fresh one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired

from typing_extensions import TypedDict

# The columns of a series that have one cell for each `t_ms`.
COLUMNS = ("value", "low", "high", "count", "items")


# What late events changed in one window of one series. `is` is a keyword of
# Python, hence the form.
Correction = TypedDict(
    "Correction",
    {
        "t_ms": int,
        "k": int,
        "was": float | None,
        "was_low": float | None,
        "was_high": float | None,
        "is": float | None,
        "is_low": float | None,
        "is_high": float | None,
        "events": int,
        "late_ms": int,
    },
)


class SeriesName(TypedDict):
    """A series that the client has not seen: its number, dimensions and colour."""

    k: int
    by: dict[str, str | None]
    slot: int
    other: NotRequired[bool]


class SeriesDelta(TypedDict):
    """The cells of one series for every `t_ms` that the delta lists."""

    k: int
    value: NotRequired[list[float | None]]
    low: NotRequired[list[float | None]]
    high: NotRequired[list[float | None]]
    count: NotRequired[list[int | None]]
    items: NotRequired[list[Any]]
    state: str
    compare: NotRequired[list[dict[str, Any]]]


_Removed = TypedDict("_Removed", {"del": list[int]})


class Delta(_Removed):
    """What changed in an answer after revision `prev`, up to revision `rev`.

    `first_t_ms` is the oldest window that still belongs to the answer: as time goes
    on, a client drops what lies before it. `of`, `notes` and `corrections` come only when
    they changed, and then whole.
    """

    epoch: int
    prev: int
    rev: int
    final_to_ms: int | None
    first_t_ms: int | None
    t_ms: list[int]
    add: list[SeriesName]
    series: list[SeriesDelta]
    of: NotRequired[int]
    corrections: NotRequired[list[Correction]]
    notes: NotRequired[list[Any]]


# An answer of DASHBOARD 5, as JSON. The query engine owns its shape; the live
# protocol looks only at the members named in this module.
Answer = dict[str, Any]
Cell = tuple[Any, ...]


def columns_of(series: dict[str, Any]) -> list[tuple[tuple[str, ...], Any]]:
    """Return the columns of a series, each with the path it is found under."""
    found: list[tuple[tuple[str, ...], Any]] = [
        ((name,), series[name]) for name in COLUMNS if name in series
    ]
    found.append((("state",), series["state"]))
    for at, earlier in enumerate(series.get("compare") or ()):
        named = ("compare", str(at))
        found += [
            ((*named, name), earlier[name]) for name in (*COLUMNS, "state") if name in earlier
        ]
    return found


def cells_of(series: dict[str, Any]) -> list[Cell]:
    """Return one tuple a window: everything the series says about it."""
    return list(zip(*(column for _, column in columns_of(series)), strict=True))


def with_cells(series: dict[str, Any], cells: list[Cell]) -> dict[str, Any]:
    """Return the series with its columns replaced by `cells`; names stay."""
    kept = {name: value for name, value in series.items() if name != "compare"}
    if "compare" in series:
        kept["compare"] = [dict(earlier) for earlier in series["compare"]]
    for at, (path, _) in enumerate(columns_of(series)):
        column: Any = [cell[at] for cell in cells]
        if path[-1] == "state":
            column = "".join(column)
        place = kept["compare"][int(path[1])] if path[0] == "compare" else kept
        place[path[-1]] = column
    return kept


def unknown_cell(series: dict[str, Any]) -> Cell:
    """Return the cell of a window about which nothing has been said."""
    return tuple("p" if path[-1] == "state" else None for path, _ in columns_of(series))


def finalized(state: str, t_ms: list[int], final_to_ms: int | None) -> str:
    """Return the states with every `p` up to `final_to_ms` turned into `f`."""
    if final_to_ms is None or "p" not in state:
        return state
    return "".join(
        "f" if letter == "p" and t <= final_to_ms else letter
        for letter, t in zip(state, t_ms, strict=True)
    )


def apply(answer: Answer, delta: Delta) -> Answer:
    """Return the answer after a delta; both arguments stay as they are.

    Raises:
        ValueError: If the delta begins after what the answer holds (a hole: resume),
            or belongs to another epoch.
    """
    if delta["epoch"] != answer["epoch"] or delta["prev"] > answer["rev"]:
        msg = (
            f"delta must start at or before revision {answer['epoch']}/{answer['rev']}, "
            f"got {delta['epoch']}/{delta['prev']}; resume or take a snapshot"
        )
        raise ValueError(msg)
    if delta["rev"] <= answer["rev"]:
        return answer
    times = _times_after(answer["t_ms"], delta)
    gone = set(delta["del"])
    known = {s["k"]: s for s in answer["series"] if s["k"] not in gone}
    changed = {s["k"]: s for s in delta["series"]}
    for name in delta["add"]:
        shape = changed[name["k"]]
        empty = with_cells({**shape, **name}, [unknown_cell(dict(shape))] * len(answer["t_ms"]))
        known.setdefault(name["k"], empty)
    series = [
        _series_after(old, changed.get(k), (answer["t_ms"], times), delta)
        for k, old in known.items()
    ]
    after = {**answer, "rev": delta["rev"], "t_ms": times, "series": series}
    after["final_to_ms"] = delta["final_to_ms"]
    after["corrections"] = still_told(delta.get("corrections", answer["corrections"]), times)
    if "of" in delta:
        after["of"] = delta["of"]
    if "notes" in delta:
        after["notes"] = delta["notes"]
    return after


def _times_after(t_ms: list[int], delta: Delta) -> list[int]:
    first = delta["first_t_ms"]
    if first is None:
        return []
    return [t for t in sorted({*t_ms, *delta["t_ms"]}) if t >= first]


def _series_after(
    old: dict[str, Any],
    new: SeriesDelta | None,
    times: tuple[list[int], list[int]],
    delta: Delta,
) -> dict[str, Any]:
    cells = dict(zip(times[0], cells_of(old), strict=True))
    if new is not None:
        cells.update(zip(delta["t_ms"], cells_of(dict(new)), strict=True))
    nothing = unknown_cell(old)
    after = with_cells(old, [cells.get(t, nothing) for t in times[1]])
    after["state"] = finalized(after["state"], times[1], delta["final_to_ms"])
    return after


def still_told(corrections: Sequence[Correction], t_ms: Sequence[int]) -> list[Correction]:
    """Return the corrections of windows that are still in an answer."""
    return [one for one in corrections if t_ms and one["t_ms"] >= t_ms[0]]


def same(one: Answer, other: Answer) -> bool:
    """Tell whether two answers say the same, whatever the order of their series."""

    def said(answer: Answer) -> dict[str, Any]:
        rest = {k: v for k, v in answer.items() if k not in {"series", "fresh", "rev"}}
        return {**rest, "series": {s["k"]: s for s in answer["series"]}}

    return said(one) == said(other)
