"""The query engine equals a plain recount of the events, whatever way they came."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weir.frequent import without
from weir.query import Answer, Evaluator, Facts, Plan, answer, parse_query, plan
from weir.query.answer import AnsweredSeries
from weir.rows import Row
from weir.series import OTHER, encode_series

from .query_world import (
    NOW_MS,
    PANE_MS,
    Event,
    Panes,
    Span,
    facts,
    matches,
    recount,
    recount_top,
    recounted_state,
    served,
)

BACK_MS = 12 * 60_000
VALUES = ("count", "sum", "avg", "min", "max", "stddev", "last", "p50", "p95", "distinct", "theta")
AGGREGATES = (*VALUES, "top")
ROUNDED = ("sum", "avg", "stddev")


def events_of(seed: int) -> list[Event]:
    """Return some events: none, a few, or enough to fill every pane."""
    rng = random.Random(seed)  # noqa: S311
    whole = rng.random() < 0.5
    return [
        Event(
            at_ms=rng.randint(NOW_MS - BACK_MS, NOW_MS + 20_000),
            region=rng.choice(["eu", "us", None]),
            route=rng.choice(["/pay", "/cart|x", None]),
            value=float(rng.randint(-1000, 1000)) if whole else rng.uniform(-1e6, 1e6),
            user=f"u{rng.randint(0, 30)}",
        )
        for _ in range(rng.choice([0, 3, 40, 150]))
    ]


events = st.integers(0, 2**32).map(events_of)
conditions = st.one_of(
    st.tuples(st.just("region"), st.sampled_from(["=", "!="]), st.sampled_from(["eu", None])),
    st.tuples(st.just("route"), st.just("in"), st.just(["/pay", None])),
)


@st.composite
def queries(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a query over the last minutes or a span, with any kind of window."""
    step = draw(st.integers(1, 12)) * PANE_MS
    length = draw(st.integers(1, 24)) * PANE_MS
    kind = draw(st.sampled_from(["tumbling", "hopping", "sliding"]))
    if kind == "tumbling":
        length = step
    elif kind == "hopping":
        length = max(length, step + PANE_MS)
    asked: dict[str, Any] = {
        "metric": "latency",
        "aggregate": draw(st.sampled_from(AGGREGATES)),
        "window": {"kind": kind, "length": f"{length}ms"},
        "step": f"{step}ms",
        "by": draw(st.sampled_from([[], ["region"], ["route", "region"], ["data.route"]])),
        "where": draw(st.lists(conditions, max_size=2)),
        "range": {"last": f"{draw(st.integers(1, 90)) * PANE_MS}ms"},
    }
    if draw(st.booleans()):
        from_ms = NOW_MS - draw(st.integers(12, 90)) * PANE_MS
        asked["range"] = {"from": from_ms, "to": from_ms + draw(st.integers(12, 60)) * PANE_MS}
    return asked


@st.composite
def known(draw: st.DrawFn) -> Facts:
    """Draw how far counting has come and what is known to be wrong."""
    spans: tuple[Span, ...] = ()
    if draw(st.booleans()):
        begin = NOW_MS - draw(st.integers(1, 100)) * PANE_MS
        spans = (Span(begin, begin + draw(st.integers(1, 20)) * PANE_MS),)
    return facts(
        draw(st.none() | st.integers(NOW_MS - 600_000, NOW_MS + 1000)),
        incomplete_before_ms=draw(st.sampled_from([0, NOW_MS // PANE_MS * PANE_MS - 300_000])),
        rebuilding=spans,
    )


def batches_of(seen: Sequence[Event], order: random.Random) -> list[list[Event]]:
    """Return the events in another order, cut into batches anywhere."""
    shuffled = list(seen)
    order.shuffle(shuffled)
    batches: list[list[Event]] = [[]]
    for event in shuffled:
        if order.random() < 0.3:
            batches.append([])
        batches[-1].append(event)
    return batches


def check(got: Answer, seen: Sequence[Event], asked: dict[str, Any], of: Facts) -> None:
    """Compare every cell of an answer with the recount."""
    names = [name.removeprefix("data.") for name in asked["by"]]
    used = [event for event in seen if matches(event, asked["where"])]
    windows = got.plan.windows
    pane_ms = got.plan.lines[0].readings[0].pane_ms
    shown = {one.group: one for one in got.series}
    for t, at in zip(windows.ends_ms, range(windows.count), strict=True):
        begin = t - windows.length_ms
        state = recounted_state(begin, t, pane_ms, of)
        for group, series in shown.items():
            within = [
                event
                for event in used
                if begin <= event.at_ms < t
                and tuple(getattr(event, name) for name in names) == group
            ]
            assert series.state[at] == state
            check_cell(series.cells[at], within, (asked["aggregate"], state, t), of)
    reached = {
        tuple(getattr(event, name) for name in names)
        for event in used
        if any(t - windows.length_ms <= event.at_ms < t for t in windows.ends_ms)
    }
    if "n" not in recounted_state(windows.start_ms, windows.last_end_ms, pane_ms, of):
        assert reached | shown.keys() == shown.keys()
        assert shown.keys() - {()} <= reached


def check_cell(cell: Any, within: Sequence[Event], when: tuple[str, str, int], of: Facts) -> None:
    """Compare one cell with the events that it should be made of."""
    aggregate, state, t = when
    through = of.processed_through_ms
    if state in "nr":
        assert cell == (None, None, None)
    elif within and aggregate == "top":
        assert (cell.events, cell.value) == (len(within), None)
        assert AnsweredSeries((), [cell], "f", listed=True).to_dict((), 0)["items"] == [
            recount_top(within, 3)
        ]
    elif within:
        exact = recount(aggregate, within)
        assert cell.events == len(within)
        assert (cell.value is None) == (exact is None)
        if exact is not None:
            scale = sum(abs(event.value) for event in within)
            slack = 1e-9 * scale if aggregate in ROUNDED else 0
            assert cell.value.low - slack <= exact <= cell.value.high + slack
            assert cell.value.value == pytest.approx(exact, rel=1e-9, abs=slack)
    elif state in "pf" and through is not None and t <= through:
        assert cell.events == 0
        assert (cell.value is not None) == (aggregate in ("count", "sum"))
        assert cell.value in (None, (0.0, 0.0, 0.0))
    else:
        assert cell == (None, None, None)


def planned(asked: dict[str, Any], of: Facts) -> Plan:
    """Return the plan of a query about the one metric."""
    return plan(parse_query(asked), served(), of)


class TestRecount:
    @given(
        seen=events,
        asked=queries(),
        of=known(),
        order=st.randoms(use_true_random=False),
    )
    @settings(max_examples=60, deadline=None)
    def test_every_cell(
        self, seen: list[Event], asked: dict[str, Any], of: Facts, order: random.Random
    ) -> None:
        """Answered once or kept up batch by batch, each cell equals the recount.

        Batches come in any order, so late events are among them; the evaluator must end
        where a fresh answer stands.
        """
        panes = Panes()
        made = planned(asked, of)
        evaluator = Evaluator(made)
        evaluator.update(dict.fromkeys(evaluator.missing()), of)
        got = evaluator.update({}, of)
        for batch in batches_of(seen, order):
            changed = panes.count(batch)
            got = evaluator.update({key: panes.held[key] for key in changed}, of)

        check(got, seen, asked, of)
        once = answer(made, panes.held, of)
        check(once, seen, asked, of)
        assert [one.group for one in got.series] == [one.group for one in once.series]

    @given(
        seen=events,
        asked=queries(),
        moves=st.lists(st.integers(0, 240_000), min_size=1, max_size=4),
    )
    @settings(max_examples=30, deadline=None)
    def test_moving_on(self, seen: list[Event], asked: dict[str, Any], moves: list[int]) -> None:
        """An evaluator that follows time reads only new panes, and equals the recount."""
        asked = {**asked, "range": {"last": "10m"}}
        panes = Panes()
        panes.count(seen)
        of = facts()
        evaluator = Evaluator(planned(asked, of))
        for move in moves:
            panes_read = {key: panes.held.get(key) for key in evaluator.missing()}
            check(evaluator.update(panes_read, of), seen, asked, of)
            of = Facts(epoch=1, rev=6, processed_through_ms=NOW_MS, now_ms=of.now_ms + move)
            evaluator.advance(planned(asked, of))
        fresh = Evaluator(planned(asked, of))
        assert evaluator.missing() <= fresh.missing()

    @pytest.mark.parametrize("window", [{"length": "10s"}, {"length": "30s"}])
    @pytest.mark.parametrize("by", [[], ["region"]])
    @pytest.mark.parametrize("moved", [False, True])
    def test_a_name_that_was_erased_is_gone_at_once(
        self, window: dict[str, Any], by: list[str], moved: bool
    ) -> None:
        """From the lists of an evaluator that goes on, although no count of theirs changes."""
        begin_ms = (NOW_MS - BACK_MS) // 60_000 * 60_000
        asked: dict[str, Any] = {"metric": "latency", "aggregate": "top", "by": by, "step": "10s"}
        asked["range"] = {"from": begin_ms, "to": begin_ms + 60_000}
        asked["window"] = {"kind": "sliding", **window}
        panes, of = Panes(), facts()
        users = [("eu", "ann"), ("eu", "jane"), ("us", "jane"), (None, "joe")]
        panes.count(Event(begin_ms + 15_000, region, "/a", 1.0, user) for region, user in users)
        made = planned(asked, of)
        evaluator = Evaluator(made)
        before = evaluator.update(panes.held, of)
        rewritten = {key: erased(rows, "jane", moved=moved) for key, rows in panes.held.items()}

        got = evaluator.update(rewritten, of)

        assert "'jane'" in str(before.to_dict())
        assert "'jane'" not in str(got.to_dict())
        assert got.to_dict() == answer(made, rewritten, of).to_dict()


def erased(rows: dict[str, Row], name: str, *, moved: bool) -> dict[str, Row]:
    """Return rows that name somebody no more, as the engine rewrites them.

    Args:
        rows: By series.
        name: Who was erased.
        moved: Whether the series of eu names somebody, too, and goes into `*`.
    """
    found: dict[str, Row] = {}
    for text, row in rows.items():
        further = row.further
        assert further is not None
        assert further.top is not None
        top = without(further.top, lambda one: one == name)
        into = OTHER if moved and text == encode_series(("eu", "/a")) else text
        found[into] = replace(row, further=replace(further, top=top))
    return found
