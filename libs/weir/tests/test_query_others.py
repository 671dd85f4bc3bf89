"""`other` of an expression: known where both sides' hold the same series, and kept up."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from weir.query import Answer, Evaluator, PaneKey, Served, Version, answer, parse_query, plan
from weir.query.grouping import REST
from weir.rows import Row

from .query_world import NOW_MS, PANE_MS, facts, metric

OPEN_S = NOW_MS // PANE_MS * PANE_MS // 1000
METRICS = {"errors": 7, "requests": 8}
SERVED = {
    name: Served((Version(vid=vid, number=1, metric=metric(name=name)),))
    for name, vid in METRICS.items()
}
NAMED = ("a", "b", "c")
# Of one pane of one metric: which regions have a row, and whether there are more in `other`.
sides = st.tuples(st.sets(st.sampled_from(NAMED)), st.booleans())


def rows_of(own: set[str], *, is_capped: bool) -> dict[str, Row]:
    """Return the rows of a pane: so many events as the place of the region says, of others nine."""
    rows = {f"={name}|=/pay": Row(1 + NAMED.index(name)) for name in own}
    return {**rows, "*": Row(9)} if is_capped else rows


@given(
    panes=st.lists(st.tuples(sides, sides), min_size=6, max_size=6),
    length=st.sampled_from([10, 20, 40]),
    top=st.sampled_from([None, 1, 2]),
    order=st.randoms(use_true_random=False),
)
@settings(max_examples=150, deadline=None)
def test_others_are_known_where_they_are_the_same(
    panes: list[Any], length: int, top: int | None, order: random.Random
) -> None:
    """A series that is shown is in neither side's `other`, or nothing is said of that."""
    named = [{"metric": name, "aggregate": "count"} for name in METRICS]
    asked = {
        "expr": {"op": "share", "left": named[0], "right": named[1]},
        "by": ["region", "route"],
        "window": {"kind": "sliding", "length": f"{length}s"},
        "step": "10s",
        "range": {"last": "40s"},
        "limit": None if top is None else {"top": top, "other": True},
    }
    made = plan(parse_query(asked), SERVED, facts())
    held: dict[PaneKey, dict[str, Row]] = {
        (vid, 10, OPEN_S - 10 * back): rows_of(own, is_capped=capped)
        for back, both in enumerate(panes)
        for vid, (own, capped) in zip(METRICS.values(), both, strict=True)
    }
    found = answer(made, held, facts())
    assert kept_up(Evaluator(made), held, order).to_dict() == found.to_dict()

    shown = {one.group[0] for one in found.series if one.group}
    others = next((one for one in found.series if one.group is REST), None)
    for at, end_ms in enumerate(made.windows.ends_ms):
        within = range((end_ms // 1000 - length), end_ms // 1000, 10)
        told = [both for start_s in within for both in panes_at(panes, start_s)]
        is_same = all(not capped or shown <= own for own, capped in told)
        if others is not None:
            assert (others.cells[at].events is not None) <= is_same


def panes_at(panes: list[Any], start_s: int) -> Any:
    """Return both sides of the pane that starts there; none before those that there are."""
    back = (OPEN_S - start_s) // 10
    return panes[back] if 0 <= back < len(panes) else ()


def kept_up(
    evaluator: Evaluator, held: dict[PaneKey, dict[str, Row]], order: random.Random
) -> Answer:
    """Return the answer of one that is told of panes one by one, of each by way of others."""
    evaluator.update(dict.fromkeys(evaluator.missing()), facts())
    keys = list(held)
    for _time in range(2):
        order.shuffle(keys)
        for key in keys:
            evaluator.update({key: {"*": Row(order.randint(1, 9))}}, facts())
            found = evaluator.update({key: held[key]}, facts())
    return found
