"""What an answer holds: no more after hours of being watched, and nothing once it is given."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import FunctionType
from typing import Any

import pytest
from weir.query import Evaluator, Facts, Plan, grouping, parse_query, plan
from weir.query import evaluate as evaluating
from weir.query.facts import Version
from weir.query.grouping import Grouping
from weir.query.windowed import Windowed
from weir.rows import Row

from .query_world import NOW_MS, facts, metric, served
from .test_query_others import SERVED

LATENCY = {"metric": "latency", "aggregate": "count"}
ERRORS, REQUESTS = ({"metric": name, "aggregate": "count"} for name in ("errors", "requests"))
SHARE = {"expr": {"op": "share", "left": ERRORS, "right": REQUESTS}}
TOP = {"by": ["region", "route"], "limit": {"top": 1, "other": True}}
WINDOW = {"range": {"last": "2m"}, "step": "10s"}
SLIDING = {**WINDOW, "window": {"kind": "sliding", "length": "40s"}}
QUERIES = [
    {**LATENCY, **WINDOW},
    {**LATENCY, **TOP, **WINDOW},
    {**LATENCY, **TOP, **SLIDING, "where": [["region", "=", "a"]]},
    {**LATENCY, **TOP, **SLIDING, "compare": ["5m"]},
    {**SHARE, **TOP, **SLIDING},
]


def at(asked: dict[str, Any], step: int) -> tuple[Plan, Facts]:
    """Return the plan and the facts so many steps of ten seconds from now."""
    now_ms = NOW_MS + step * 10_000
    then = replace(facts(), now_ms=now_ms, processed_through_ms=now_ms, rev=5 + step)
    return plan(parse_query(asked), {**SERVED, **served()}, then), then


def watched(asked: dict[str, Any], steps: int) -> Evaluator:
    """Return an evaluator that was watched for some steps, over panes with a row `other`.

    Each hour has a region of its own; the others have a row in every pane.
    """
    evaluator = Evaluator(at(asked, 0)[0])
    for step in range(steps):
        made, then = at(asked, step)
        evaluator.advance(made)
        regions = ("a", "b", f"h{step // 360}")
        rows = {f"={name}|=/pay": Row(1 + n) for n, name in enumerate(regions)} | {"*": Row(9)}
        missing = evaluator.missing()
        evaluator.update({key: None if key[2] % 70 == 0 else rows for key in missing}, then)
        # A pane that loses its rows, as one does whose subject is erased.
        if missing and step % 7 == 0:
            evaluator.update({max(missing): None}, then)
    return evaluator


def held(of: object) -> int:
    """Return how many objects can be reached from one, without code and types."""
    seen: set[int] = set()
    left = [of]
    while left:
        one = left.pop()
        if id(one) in seen or (isinstance(one, type | FunctionType) and not closed(one)):
            continue
        seen.add(id(one))
        left += closed(one) if isinstance(one, FunctionType) else gc.get_referents(one)
    return len(seen)


def closed(of: object) -> list[object]:
    """Return what a function has closed over."""
    cells = of.__closure__ if isinstance(of, FunctionType) else None
    return [cell.cell_contents for cell in cells or ()]


@pytest.mark.parametrize("asked", QUERIES, ids=str)
def test_who_watches_for_long_needs_no_more_memory(asked: dict[str, Any]) -> None:
    """What a window said is forgotten once it is out of the range, whatever it was asked for."""
    minutes, hour = held(watched(asked, 60)), held(watched(asked, 420))
    assert hour < 1.1 * minutes + 50


@pytest.mark.parametrize("asked", QUERIES, ids=str)
def test_what_was_answered_is_freed_at_once(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    """It holds nothing that holds it: a collector of cycles may come late, and it is megabytes."""
    made: list[weakref.ref[Windowed]] = []

    class Seen(Windowed):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(weakref.ref(self))

    monkeypatch.setattr(evaluating, "Windowed", Seen)
    gc.collect()
    gc.disable()
    try:
        evaluator = watched(asked, 20)
        assert any(ref() is not None for ref in made)
        del evaluator
        assert [ref for ref in made if ref() is not None] == []
    finally:
        gc.enable()


def test_series_that_come_and_go_are_not_all_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose group is forgotten is found again."""
    monkeypatch.setattr(grouping, "MOST_KNOWN", 10)
    found = Grouping(Version(vid=7, number=3, metric=metric()), ["region"], [])
    of: Callable[[int], Any] = lambda n: found.of(f"=r{n}|=/pay")  # noqa: E731
    assert [of(n) for n in [*range(25), 3]] == [(True, (f"r{n}",)) for n in [*range(25), 3]]
    assert len(found._known) <= 10
