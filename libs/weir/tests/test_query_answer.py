"""Answers: what is said of a window, by hand-made panes with plain numbers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import datasketches as ds
import pytest
from weir.problems import ProblemError, Reason
from weir.query import Answer, Facts, PaneKey, Served, Version, answer, parse_query, plan
from weir.query.cells import Cell, combined
from weir.query.grouping import k_of
from weir.query.limits import check_series
from weir.rows import Row
from weir.sketches import Bounded

from .query_world import NOW_MS, PANE_MS, facts, metric, served

# The pane that is open now, and those before it.
OPEN_S = NOW_MS // PANE_MS * PANE_MS // 1000
ASKED: dict[str, Any] = {
    "metric": "latency",
    "aggregate": "count",
    "range": {"last": "40s"},
    "step": "10s",
}


def pane(back: int, **rows: int | Row) -> tuple[PaneKey, dict[str, Row]]:
    """Return a pane so many panes ago: region -> how many events, all of /pay."""
    named = {
        "*" if name == "other" else f"={name}|=/pay": row if isinstance(row, Row) else Row(row)
        for name, row in rows.items()
    }
    return (7, 10, OPEN_S - 10 * back), named


def answered(change: dict[str, Any], *panes: Any, of: Facts | None = None) -> Answer:
    """Return the answer to a query of the last four panes."""
    known = of or facts()
    return answer(plan(parse_query({**ASKED, **change}), served(), known), dict(panes), known)


def values(found: Answer, at: int = 0) -> list[float | None]:
    """Return the values of one series."""
    return [None if c.value is None else c.value.value for c in found.series[at].cells]


def users(*names: str) -> Row:
    """Return a row of events, one of each user."""
    sketch = ds.hll_sketch(12, ds.HLL_8)
    for name in names:
        sketch.update(name)
    return Row(len(names), hll=bytes(sketch.serialize_compact()))


class TestWindowsOfSeveralPanes:
    TWO = {"window": {"kind": "sliding", "length": "20s"}}  # noqa: RUF012  read only

    def test_counts_overlap(self) -> None:
        """Each pane counts in every window over it."""
        found = answered(self.TWO, pane(4, eu=1), pane(3, eu=2), pane(1, eu=4))
        assert values(found) == [3.0, 2.0, 4.0, 4.0]

    def test_distinct_users_of_two_panes(self) -> None:
        """A user of both panes counts once in their window."""
        panes = pane(3, eu=users("a", "b")), pane(2, eu=users("b", "c", "d"))
        found = answered({**self.TWO, "aggregate": "distinct"}, *panes)
        assert values(found) == [2.0, 4.0, 3.0, None]

    def test_windows_that_start_between_the_epochs_minutes(self) -> None:
        """Windows of a minute from 14:00:20 on count from 14:00:20 to 14:01:20."""
        from_ms = NOW_MS // 60_000 * 60_000 - 600_000 + 20_000
        span = {"range": {"from": from_ms, "to": from_ms + 120_000}, "step": "1m"}
        panes = {
            (7, 10, (from_ms + after) // 1000): {"~|~": Row(n)}
            for after, n in ((-10_000, 1), (0, 10), (50_000, 100), (60_000, 1000))
        }
        made = plan(parse_query({**ASKED, **span}), served(), facts())
        assert values(answer(made, panes, facts())) == [110.0, 1000.0]


class TestEmptyWindows:
    def test_no_events_are_a_known_zero_once_counted(self) -> None:
        """Windows that processed-through has passed count 0; the open one says nothing."""
        found = answered({}, pane(3, eu=5))
        assert values(found) == [5.0, 0.0, 0.0, None]
        assert [cell.events for cell in found.series[0].cells] == [5, 0, 0, None]

    def test_at_the_edge(self) -> None:
        """A window that ends exactly at processed-through is counted, a later one is not."""
        edge_ms = (OPEN_S - 10) * 1000
        assert values(answered({}, of=facts(edge_ms))) == [0.0, 0.0, None, None]
        assert values(answered({}, of=facts(edge_ms - 1))) == [0.0, None, None, None]

    def test_nothing_to_say_but_the_count(self) -> None:
        """Of no events there is no average, though it is known that there were none."""
        found = answered({"aggregate": "avg"}, pane(3, eu=Row(2, 6.0, 1.0, 5.0)))
        assert values(found) == [3.0, None, None, None]
        assert [cell.events for cell in found.series[0].cells] == [2, 0, 0, None]

    def test_without_filling(self) -> None:
        """`fill: none` leaves windows without events out of the line."""
        assert values(answered({"fill": "none"}, pane(3, eu=5))) == [5.0, None, None, None]

    def test_nothing_counted_yet(self) -> None:
        """Before anything is counted nothing is known, and nothing is final."""
        found = answered({}, of=facts(None))
        assert values(found) == [None] * 4
        assert (found.series[0].state, found.final_to_ms) == ("pppp", None)

    def test_of_a_group(self) -> None:
        """A series that is seen in one window is known to be 0 in the others."""
        found = answered({"by": ["region"]}, pane(3, eu=5), pane(1, us=2))
        assert [one.group for one in found.series] == [("eu",), ("us",)]
        assert [values(found, 0), values(found, 1)] == [[5, 0, 0, None], [0, 0, 2, None]]


class TestStates:
    def test_incomplete_says_what_is_left(self) -> None:
        """Incomplete windows have the value of what is left, and are never known to be 0."""
        found = answered({}, pane(3, eu=5), of=facts(incomplete_before_ms=OPEN_S * 1000 - 10_000))
        assert found.series[0].state == "iipp"
        assert values(found) == [5.0, None, 0.0, None]

    def test_a_version_that_began_in_the_middle(self) -> None:
        """Panes from before a version was counted are incomplete."""
        begun = Version(vid=7, number=3, metric=metric(), complete_from_ms=OPEN_S * 1000 - 10_000)
        made = plan(parse_query(ASKED), {"latency": Served((begun,))}, facts())
        assert answer(made, {}, facts()).series[0].state == "iipp"

    def test_a_version_that_has_not_taken_over(self) -> None:
        """Of a version that is still counted back nothing is said."""
        building = Version(vid=7, number=3, metric=metric(), rebuilding=True)
        made = plan(parse_query(ASKED), {"latency": Served((building,))}, facts())
        found = answer(made, dict([pane(3, eu=5)]), facts())
        assert found.series[0].state == "rrrr"
        assert values(found) == [None] * 4

    def test_final_to(self) -> None:
        """`final_to_ms` is the last pane edge that the allowed lateness has passed."""
        found = answered({"range": {"last": "3m"}}, of=facts(NOW_MS))
        assert found.final_to_ms == (NOW_MS - 60_000) // PANE_MS * PANE_MS
        for t, letter in zip(found.plan.windows.ends_ms, found.series[0].state, strict=True):
            assert letter == ("f" if t <= found.final_to_ms else "p")


class TestRate:
    def test_a_second(self) -> None:
        """A rate is the count divided by the window's seconds."""
        found = answered({"aggregate": "rate"}, pane(3, eu=5))
        assert values(found)[:3] == [0.5, 0.0, 0.0]

    def test_the_open_window_is_divided_by_what_is_counted_of_it(self) -> None:
        """A third of a minute with 20 events is one a second, not a third of one."""
        minute_s = NOW_MS // 60_000 * 60
        through = replace(facts((minute_s + 20) * 1000), now_ms=(minute_s + 50) * 1000)
        query = {"aggregate": "rate", "step": "1m", "range": {"last": "1m"}}
        made = plan(parse_query({**ASKED, **query}), served(), through)
        found = answer(made, {(7, 60, minute_s): {"~|~": Row(20)}}, through)
        assert values(found) == [1.0]

    @pytest.mark.parametrize("ahead_ms", [NOW_MS, NOW_MS - 93_000])
    @pytest.mark.parametrize("length_s", [10, 20, 60])
    def test_a_partition_that_lags_makes_no_rate_greater(
        self, length_s: int, ahead_ms: int
    ) -> None:
        """Others have counted minutes that processed-through has not reached: one a second."""
        through = facts(NOW_MS - 185_000)
        query = {"aggregate": "rate", "step": f"{length_s}s", "range": {"last": "5m"}}
        made = plan(parse_query({**ASKED, **query}), served(), through)
        panes = {
            (7, pane_s, start_s): {"~|~": Row(min(pane_s, ahead_ms // 1000 - start_s))}
            for pane_s in (10, 60)
            for start_s in range(NOW_MS // 60_000 * 60 - 600, ahead_ms // 1000, pane_s)
        }
        told = answer(made, panes, through)
        found, pane_s = values(told), made.lines[0].readings[0].pane_ms // 1000
        whole = [value for value in found if value == 1.0]
        assert len(whole) >= (ahead_ms - NOW_MS + 300_000) // (length_s * 1000) - 1
        # Of the window that the newest row is in, a part of a pane may be without events yet.
        rest = [at for at, value in enumerate(found) if value not in (1.0, None, 0.0)]
        assert len(rest) <= 1
        for at in rest:
            events = told.series[0].cells[at].events or 0
            assert events / (events + pane_s) < (found[at] or 0.0) <= 1.0

    def test_an_event_that_is_dated_ahead(self) -> None:
        """It is in a window that begins after now: divided by a pane at least."""
        minute_s = NOW_MS // 60_000 * 60
        query = {"aggregate": "rate", "step": "1m", "range": {"last": "1m"}}
        made = plan(parse_query({**ASKED, **query}), served(), facts(minute_s * 1000 - 500))
        early = replace(facts(minute_s * 1000 - 500), now_ms=minute_s * 1000 + 100)
        found = answer(made, {(7, 60, minute_s): {"~|~": Row(30)}}, early)
        assert values(found) == [3.0]

    @pytest.mark.parametrize("counted", [0, 2_000])
    def test_an_event_that_is_dated_ahead_within_the_open_window(self, counted: int) -> None:
        """One clock that is fast makes nobody's rate fall: no more time has passed."""
        minute_s = NOW_MS // 60_000 * 60
        of = replace(facts(minute_s * 1000 + 19_000), now_ms=minute_s * 1000 + 20_000)
        query = {"aggregate": "rate", "step": "1m", "range": {"last": "1m"}}
        made = plan(parse_query({**ASKED, **query}), served(keep={"10s": "1h"}), of)
        rows = {(7, 10, minute_s): counted, (7, 10, minute_s + 50): 1}
        panes = {key: {"~|~": Row(n)} for key, n in rows.items() if n}
        assert values(answer(made, panes, of)) == [(counted + 1) / 20]


class TestFew:
    def test_a_percentile_of_few_events(self) -> None:
        """A p99 of 12 events has a count and no value, and the answer says why."""
        sketch = ds.kll_doubles_sketch(800)
        for number in range(12):
            sketch.update(float(number))
        row = Row(12, 66.0, 0.0, 11.0, kll=bytes(sketch.serialize()))
        found = answered({"aggregate": "p99"}, pane(3, eu=row))
        assert found.series[0].cells[0] == Cell(12, None)
        assert [note.code for note in found.notes] == ["few"]
        assert values(answered({"aggregate": "p50"}, pane(3, eu=row)))[0] == 5.0


class TestCapped:
    def test_the_total_is_exact(self) -> None:
        """Without grouping, `other` is part of the total."""
        found = answered({}, pane(3, eu=5, other=7))
        assert values(found)[0] == 12.0
        assert [one.group for one in found.series] == [()]

    def test_a_series_without_a_row_is_unknown(self) -> None:
        """By all dimensions: a row of its own is exact, no row is unknown, never 0."""
        by = {"by": ["region", "route"]}
        found = answered(by, pane(3, eu=5, other=7), pane(2, us=1))
        assert [one.group for one in found.series] == [("eu", "/pay"), ("us", "/pay"), None]
        assert found.series[0].cells[0] == Cell(5, Bounded(5.0, 5.0, 5.0))
        assert [values(found, at) for at in range(3)] == [
            [5.0, 0.0, 0.0, None],
            [None, 1.0, 0.0, None],
            [7.0, 0.0, 0.0, None],
        ]
        assert [note.code for note in found.notes] == ["capped"]

    def test_one_unknown_pane_makes_the_window_unknown(self) -> None:
        """Of a series whose row is missing in one of two panes the sum is not known."""
        by = {"by": ["region", "route"], "window": {"kind": "sliding", "length": "20s"}}
        found = answered(by, pane(3, eu=5, other=7), pane(2, us=1, other=2), pane(1, eu=1))
        assert values(found, 0) == [5.0, None, None, 1.0]

    def test_a_group_of_series_may_have_more_in_other(self) -> None:
        """By one of two dimensions a count's high end holds all of `other`."""
        rows = {"eu": Row(5, 10.0, 1.0, 4.0), "other": Row(7, 7.0, 1.0, 1.0)}
        counted = answered({"by": ["region"]}, pane(3, **rows))
        assert counted.series[0].cells[0] == Cell(5, Bounded(5.0, 5.0, 12.0))
        averaged = answered({"by": ["region"], "aggregate": "avg"}, pane(3, **rows))
        assert averaged.series[0].cells[0] == Cell(5, None)

    @pytest.mark.parametrize("limit", [None, {"top": 1, "other": True}])
    def test_a_filter_cannot_judge_other(self, limit: dict[str, Any] | None) -> None:
        """All of `other` may be of the region that is asked for, or nothing of it."""
        change = {"by": ["region", "route"], "where": [["region", "in", ["eu", "us"]]]}
        found = answered({**change, "limit": limit}, pane(3, eu=5, us=2, other=7), pane(2, eu=1))
        assert found.series[-1].group is None
        first, second, *_ = found.series[-1].cells
        assert (first, second) == {
            False: (Cell(None, None), Cell(0, Bounded(0.0, 0.0, 0.0))),
            True: (Cell(2, Bounded(2.0, 2.0, 9.0)), Cell(0, Bounded(0.0, 0.0, 0.0))),
        }[limit is not None]


class TestLimit:
    PANES = (pane(3, a=1, b=2, c=3, d=4), pane(2, a=9), pane(1, a=4, b=1, c=3, d=2))

    def test_top_by_the_last_counted_window(self) -> None:
        """The largest values of the newest window that has ended are shown, largest first."""
        found = answered({"by": ["region"], "limit": {"top": 2}}, *self.PANES)
        assert [one.group for one in found.series] == [("a",), ("c",)]
        assert found.of == 4

    def test_the_rest_together(self) -> None:
        """`other` is the rest, merged."""
        limit = {"top": 2, "other": True}
        found = answered({"by": ["region"], "limit": limit}, *self.PANES)
        assert found.series[2].group is None
        assert values(found, 2) == [6.0, 0.0, 3.0, None]
        assert found.to_dict()["series"][2]["other"] is True

    def test_other_merges_sketches(self) -> None:
        """The distinct count of the rest is that of its union, not a sum."""
        rows = pane(1, a=users("x", "y", "z"), b=users("x", "y"), c=users("y"))
        limit = {"top": 1, "other": True}
        found = answered({"by": ["region"], "aggregate": "distinct", "limit": limit}, rows)
        assert values(found, 1)[2] == 2.0

    def test_too_many_series(self) -> None:
        """Over 500 series are refused, and told how many fit."""
        many = pane(1, **{f"r{i}": 1 for i in range(501)})
        with pytest.raises(
            ProblemError, match=r"at most 500 series, got 501; set limit\.top"
        ) as no:
            answered({"by": ["region"]}, many)
        assert no.value.reason == Reason.QUERY_TOO_LARGE
        assert len(answered({"by": ["region"], "limit": {"top": 500}}, many).series) == 500

    def test_too_many_values(self) -> None:
        """Over 200,000 values are refused, and told how many series fit."""
        check_series(277, 720)
        refusal = r"at most 200,000 values, got 200,160; set limit\.top to at most 277"
        with pytest.raises(ProblemError, match=refusal):
            check_series(278, 720)

    def test_comparisons_are_values(self) -> None:
        """What is compared counts: 60 series of 1,800 windows fit, not with one comparison."""
        many = pane(1, **{f"r{i}": 1 for i in range(60)})
        query = {"by": ["region"], "range": {"last": "5h"}, "compare": ["10m"]}
        with pytest.raises(ProblemError, match="at most 200,000 values, got 216,000"):
            answered(query, many)


class TestCompare:
    def test_the_same_windows_earlier(self) -> None:
        """Each point is compared with the point that long before, with a state of its own."""
        found = answered({"compare": ["2m"]}, pane(3, eu=5), pane(15, eu=2))
        earlier = found.series[0].compare[0]
        assert (earlier.offset, earlier.state) == ("2m", "ffff")
        assert [cell.events for cell in earlier.cells] == [2, 0, 0, 0]

    @pytest.mark.parametrize("limit", [None, {"top": 1, "other": True}])
    def test_a_series_that_is_gone_is_compared(self, limit: dict[str, Any] | None) -> None:
        """What came then and comes no more is why somebody compares."""
        asked = {"by": ["region"], "compare": ["2m"], "limit": limit}
        found = answered(asked, pane(3, a=5, b=1), pane(15, a=5, b=1, c=70))
        then = [one.compare[0].cells[0].events for one in found.series]
        assert then == ([5, 1, 70] if limit is None else [5, 71])
        assert [one.cells[0].events for one in found.series] == ([5, 1, 0] if not limit else [5, 1])

    def test_others_of_then_are_compared(self) -> None:
        """Then there were more series than the metric keeps, and now there are not."""
        by = ["region", "route"]
        found = answered({"by": by, "compare": ["2m"]}, pane(3, a=5), pane(15, a=5, other=9))
        assert [one.group for one in found.series] == [("a", "/pay"), None]
        assert [one.compare[0].cells[0].events for one in found.series] == [5, 9]

    def test_an_estimate_of_then_has_its_bounds_too(self) -> None:
        """Whoever reads "3 % more than last week" must see whether that lies within the error."""
        many = {"eu": users(*(f"u{n}" for n in range(3_000)))}
        change = {"aggregate": "distinct(subject)", "compare": ["2m"]}
        (series,) = answered(change, pane(15, **many)).to_dict()["series"]
        (then,) = series["compare"]
        assert then["count"] == [3_000, 0, 0, 0]
        assert then["low"][0] < 3_000 < then["high"][0]
        assert then["low"][0] <= then["value"][0] <= then["high"][0]


class TestExpression:
    def expr(self, op: str, **changes: Any) -> dict[str, Any]:
        """Return a query of events of eu and of all."""
        side = {"metric": "latency", "aggregate": "count"}
        left = {**side, "where": [["region", "=", "eu"]]}
        asked = {"op": op, "left": left, "right": side}
        return {"metric": None, "aggregate": None, "expr": asked, **changes}

    @pytest.mark.parametrize(
        ("op", "expected"), [("ratio", 0.25), ("difference", -6.0), ("share", 0.2)]
    )
    def test_arithmetic(self, op: str, expected: float) -> None:
        """Two aggregates are combined window by window; 0 / 0 is nothing."""
        found = answered(self.expr(op), pane(3, eu=2, us=6))
        assert values(found)[0] == expected
        assert values(found)[1] == (0.0 if op == "difference" else None)

    @pytest.mark.parametrize(
        ("errors", "requests", "other"),
        [
            # x has a row of its own on one side and is in `other` on the other one.
            ({"x": 50, "a": 1}, {"a": 100, "other": 50}, None),
            ({"x": 50, "other": 3}, {"a": 100, "other": 50}, None),
            ({"a": 1, "other": 5}, {"a": 100, "other": 50}, 0.1),
        ],
    )
    def test_others_of_two_sides(
        self, errors: dict[str, int], requests: dict[str, int], other: float | None
    ) -> None:
        """They are combined where they are of the same series on both sides, else not."""
        named = [{"metric": name, "aggregate": "count"} for name in ("errors", "requests")]
        expr = {"op": "ratio", "left": named[0], "right": named[1]}
        query = {**ASKED, "metric": None, "aggregate": None, "expr": expr}
        kept = {
            name: Served((Version(vid=vid, number=1, metric=metric(name=name)),))
            for name, vid in (("errors", 7), ("requests", 8))
        }
        made = plan(parse_query({**query, "by": ["region", "route"]}), kept, facts())
        (key, left), (_, right) = pane(3, **errors), pane(3, **requests)
        found = answer(made, {key: left, (8, *key[1:]): right}, facts())
        assert found.series[-1].group is None
        assert values(found, len(found.series) - 1)[0] == other

    def test_names(self) -> None:
        """The answer says what was divided by what."""
        said = answered(self.expr("ratio")).to_dict()["metric"]
        assert said["name"] == "latency.count / latency.count"
        assert (said["version"], said["unit"]) == (None, "")

    @pytest.mark.parametrize(("right", "unit"), [("rate", "/s"), ("count", "")])
    def test_a_difference_has_the_unit_of_both(self, right: str, unit: str) -> None:
        """Events a second less events are neither."""
        query = self.expr("difference")
        query["expr"]["left"] |= {"aggregate": "rate"}
        query["expr"]["right"] = query["expr"]["right"] | {"aggregate": right}
        assert answered(query).to_dict()["metric"]["unit"] == unit

    @pytest.mark.parametrize("op", ["ratio", "difference", "share"])
    def test_bounds_hold_all_that_the_operands_allow(self, op: str) -> None:
        """Every pair of values within the operands' bounds stays within the result's."""
        left, right = Bounded(5.0, 2.0, 9.0), Bounded(4.0, 3.0, 8.0)
        found = combined(op, Cell(1, left), Cell(1, right)).value
        assert found is not None
        for a in left:
            for b in right:
                exact = {"ratio": a / b, "difference": a - b, "share": a / (a + b)}[op]
                assert found.low <= exact <= found.high

    def test_a_divisor_that_may_be_zero(self) -> None:
        """No ratio is said where the divisor's bounds hold 0, and none is infinite."""
        maybe = Cell(3, Bounded(1.0, 0.0, 2.0))
        assert combined("ratio", Cell(1, Bounded(1.0, 1.0, 1.0)), maybe) == Cell(3, None)
        huge, tiny = Bounded(1e300, 1e300, 1e300), Bounded(1e-300, 1e-300, 1e-300)
        assert combined("ratio", Cell(1, huge), Cell(1, tiny)) == Cell(1, None)


class TestJson:
    def test_the_shape_of_the_contract(self) -> None:
        """An answer has the members of the API's page, one cell for each `t_ms`."""
        found = answered({"by": ["region"], "compare": ["1m"]}, pane(3, eu=5)).to_dict()
        assert json.loads(json.dumps(found, allow_nan=False)) == found
        assert found["metric"] == {
            "name": "latency",
            "version": 3,
            "unit": "",
            "resolution_ms": 10_000,
            "lateness_ms": 60_000,
        }
        assert (found["epoch"], found["rev"], found["of"]) == (1, 5, 1)
        assert found["fresh"] == {"status": "live", "processed_through_ms": NOW_MS}
        (series,) = found["series"]
        assert series["by"] == {"region": "eu"}
        assert {len(series[name]) for name in ("value", "low", "high", "count", "state")} == {4}
        assert series["compare"][0]["offset"] == "1m"

    def test_slots_come_from_outside(self) -> None:
        """Colour slots are given by series text."""
        found = answered({"by": ["region"]}, pane(3, eu=5)).to_dict({"=eu": 17})
        assert found["series"][0]["slot"] == 17

    def test_k_is_the_same_everywhere(self) -> None:
        """The number of a series follows from its values alone, and fits a double."""
        assert k_of(("eu", None)) == k_of(("eu", None)) != k_of((None, "eu"))
        assert k_of(("eu",)) < 2**53
        assert (k_of(()), k_of(None)) == (0, 1)

    def test_always_finite(self) -> None:
        """A sum that has overflowed is not said."""
        row = Row(2, math.inf, 1e308, 1e308)
        assert values(answered({"aggregate": "sum"}, pane(3, eu=row)))[0] is None
