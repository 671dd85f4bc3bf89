"""Sets and lists in queries: who is new, who came back, what comes most often."""

from __future__ import annotations

from typing import Any

import datasketches as ds
import pytest
from weir.frequent import Texts
from weir.further import Further
from weir.problems import ProblemError
from weir.query import Answer, Facts, PaneKey, Served, Version, answer, parse_query, plan
from weir.rows import Row
from weir.sets import Theta

from .query_world import NOW_MS, facts, metric

# The open pane, and the three before it.
OPEN_S = NOW_MS // 10_000 * 10
SIDE = {"metric": "latency", "aggregate": "theta"}
ASKED = {"window": {"kind": "tumbling", "length": "10s"}, "step": "10s", "range": {"last": "40s"}}
Panes = dict[PaneKey, dict[str, Row]]


def theta(users: set[str], lg_k: int = 12) -> Theta:
    """Return the stored set of some users."""
    sketch = ds.update_theta_sketch(lg_k)
    for user in users:
        sketch.update(user)
    return Theta(lg_k, bytes(sketch.compact().serialize()))


def top(**counts: int) -> Row:
    """Return the row of events with these texts."""
    sketch = ds.frequent_strings_sketch(10)
    for text, count in counts.items():
        sketch.update(text, count)
    n = sum(counts.values())
    return Row(n, further=Further(top=Texts(n, bytes(sketch.serialize()))))


def panes(*back: set[str], region: str = "eu", vid: int = 7) -> Panes:
    """Return panes of users: the newest counted one last."""
    return {
        (vid, 10, OPEN_S - 10 * at): {
            f"={region}|=/pay": Row(len(users), further=Further(theta=theta(users)))
        }
        for at, users in enumerate(reversed(back), 1)
        if users
    }


def asked(op: str, held: Panes, left: Any = (), right: Any = (), **more: Any) -> Answer:
    """Return the answer to a query of two sets."""
    expr = {"op": op, "left": {**SIDE, **dict(left)}, "right": {**SIDE, **dict(right)}}
    return answered({"expr": expr, **more}, held)


def answered(query: dict[str, Any], held: Panes, of: Facts | None = None) -> Answer:
    """Return the answer about `latency` and, of the same shape, `other`."""
    of = of or facts()
    known = {
        name: Served((Version(vid=vid, number=1, metric=metric(name=name)),))
        for name, vid in (("latency", 7), ("other", 8))
    }
    return answer(plan(parse_query({**ASKED, **query}), known, of), held, of)


def sizes(found: Answer, at: int = 0) -> list[float | None]:
    """Return the values of one series."""
    return [None if cell.value is None else cell.value.value for cell in found.series[at].cells]


class TestNewAndReturning:
    HELD = panes({"a", "b"}, {"b", "c"}, {"a", "c", "d"})

    def test_new_are_those_who_were_not_there_before(self) -> None:
        """Against the 20 s before each window: a is new, left out once, and not new again."""
        found = asked("only_left", self.HELD, right={"before": "20s"})
        assert sizes(found)[:3] == [2.0, 1.0, 1.0]
        assert found.series[0].cells[1].value == (1.0, 1.0, 1.0)

    def test_returning_are_those_who_were(self) -> None:
        """The overlap with the span before holds the others."""
        assert sizes(asked("overlap", self.HELD, right={"before": "20s"}))[:3] == [0.0, 1.0, 2.0]
        assert sizes(asked("overlap", self.HELD, right={"before": "10s"}))[:3] == [0.0, 1.0, 1.0]

    def test_the_span_before_ends_where_the_window_begins(self) -> None:
        """With sliding windows of 20 s the span before does not reach into them."""
        window = {"window": {"kind": "sliding", "length": "20s"}}
        found = asked("only_left", self.HELD, right={"before": "10s"}, **window)
        # {a,b}; {a,b,c}; {a,b,c,d} without {a,b}; {a,c,d} without {b,c}
        assert sizes(found) == [2.0, 3.0, 2.0, 2.0]

    def test_the_answer_says_what_was_compared(self) -> None:
        """The name tells both sides and the span."""
        said = asked("only_left", self.HELD, right={"before": "7m"}).to_dict()["metric"]
        assert said["name"] == "latency.theta without latency.theta in the 7m before"
        assert said["unit"] == ""

    def test_what_is_not_kept_is_said(self) -> None:
        """A span before that reaches beyond what is kept is noted, and its windows are `n`."""
        found = asked("only_left", self.HELD, right={"before": "2d"})
        assert "not_kept" in [note.code for note in found.notes]
        assert set(found.series[0].state) == {"n"}


class TestTwoMetrics:
    @pytest.mark.parametrize(("op", "size"), [("overlap", 2.0), ("only_left", 1.0), ("union", 5.0)])
    def test_exactly_while_sets_are_small(self, op: str, size: float) -> None:
        """Of {a, b, c} and {b, c, d, e} everything is exact, with both ends on it."""
        held = panes({"a", "b", "c"}) | panes({"b", "c", "d", "e"}, vid=8)
        found = asked(op, held, right={"metric": "other"})
        assert found.series[0].cells[2].value == (size, size, size)
        assert found.series[0].cells[2].events == 7

    def test_each_side_has_its_filter_and_dimensions_unite(self) -> None:
        """A side's own `where` holds for it alone; without grouping its series are united."""
        held = panes({"a", "b"})
        for key, rows in panes({"b", "c"}, region="us").items():
            held[key] |= rows
        eu = {"where": [["region", "=", "eu"]]}
        assert sizes(asked("only_left", held, right=eu))[2] == 1.0
        assert sizes(asked("union", held, right=eu))[2] == 3.0
        assert sizes(asked("overlap", held, by=["region"]), at=1)[2] == 2.0

    def test_a_window_without_events_is_the_empty_set(self) -> None:
        """Nothing overlaps with nobody; a side that is not known leaves nothing to say."""
        held = panes({"a"})
        found = asked("overlap", held, right={"metric": "other"})
        assert sizes(found) == [0.0, 0.0, 0.0, None]
        through = facts(OPEN_S * 1000 - 15_000)
        expr = {"op": "only_left", "left": SIDE, "right": {**SIDE, "metric": "other"}}
        assert sizes(answered({"expr": expr}, held, through))[2] is None

    @pytest.mark.parametrize("op", ["overlap", "only_left", "union"])
    def test_large_sets_are_within_their_bounds(self, op: str) -> None:
        """Of 30,000 and 30,000 users with 20,000 in common the exact size is within the ends."""
        one, two = ({f"u{i}" for i in range(at, at + 30_000)} for at in (0, 10_000))
        held = panes(one) | panes(two, vid=8)
        cell = asked(op, held, right={"metric": "other"}).series[0].cells[2]
        exact = {"overlap": one & two, "only_left": one - two, "union": one | two}[op]
        assert cell.value is not None
        assert cell.value.low <= len(exact) <= cell.value.high
        assert 0.7 * len(exact) < cell.value.low < cell.value.high < 1.3 * len(exact)

    def test_other_of_a_capped_metric_is_not_known(self) -> None:
        """Who else belongs to a group nobody knows, so of its set nothing is said."""
        held = panes({"a", "b"})
        for rows in held.values():
            rows["*"] = Row(5, further=Further(theta=theta({"x", "y"})))
        assert sizes(asked("overlap", held, by=["region"]))[2] is None
        assert sizes(asked("overlap", held))[2] == 4.0


class TestTop:
    def test_the_list_with_its_bounds(self) -> None:
        """Texts come with count and ends; how often others came at most stands last."""
        held = {(7, 10, OPEN_S - 10): {"=eu|=/pay": top(a=5, b=9, c=5, d=2)}}
        (series,) = answered({"metric": "latency", "aggregate": "top"}, held).to_dict()["series"]
        assert series["items"][2] == [
            ["b", 9, 9, 9],
            ["a", 5, 5, 5],
            ["c", 5, 5, 5],
            [None, None, 0, 2],
        ]
        assert series["items"][:2] == [[], []]
        assert series["items"][3] is None
        assert series["count"][2] == 21
        assert not {"value", "low", "high"} & set(series)

    def test_series_and_windows_unite(self) -> None:
        """Over dimensions and panes counts add up, and groups are ranked by events."""
        held = {
            (7, 10, OPEN_S - 20): {"=eu|=/pay": top(a=5, b=9)},
            (7, 10, OPEN_S - 10): {"=eu|=/pay": top(a=6), "=us|=/pay": top(c=30)},
        }
        query = {
            "metric": "latency",
            "aggregate": "top",
            "window": {"kind": "sliding", "length": "20s"},
        }
        (total,) = answered(query, held).to_dict()["series"]
        assert total["items"][2] == [["c", 30, 30, 30], ["a", 11, 11, 11], ["b", 9, 9, 9]]
        ranked = answered({**query, "by": ["region"], "limit": {"top": 1, "other": True}}, held)
        assert [one.group for one in ranked.series] == [("us",), None]
        assert ranked.to_dict()["series"][1]["items"][2] == [["a", 11, 11, 11], ["b", 9, 9, 9]]

    def test_bounds_hold_when_counters_go(self) -> None:
        """Of 5,000 texts in room for 768 every count is within its ends, listed or not."""
        counts = {f"t{i}": 1 + 3000 // (i + 1) for i in range(5000)}
        held = {(7, 10, OPEN_S - 10): {"=eu|=/pay": top(**counts)}}
        (series,) = answered({"metric": "latency", "aggregate": "top"}, held).to_dict()["series"]
        *listed, (_text, _count, _low, most) = series["items"][2]
        assert [text for text, *_ in listed] == ["t0", "t1", "t2"]
        for text, _count, low, high in listed:
            assert low <= counts.pop(text) <= high
        assert max(counts.values()) <= most < 1200


class TestRefusals:
    @pytest.mark.parametrize(
        ("query", "words"),
        [
            (
                {
                    "expr": {
                        "op": "overlap",
                        "left": SIDE,
                        "right": {**SIDE, "aggregate": "distinct"},
                    }
                },
                'overlap of two sets, got "distinct"; declare theta',
            ),
            (
                {"expr": {"op": "ratio", "left": SIDE, "right": {**SIDE, "aggregate": "top"}}},
                'an expression of numbers, got "top"',
            ),
            (
                {"metric": "latency", "aggregate": "top", "compare": ["1w"]},
                "compare must be left out with top",
            ),
            (
                {"expr": {"op": "overlap", "left": SIDE, "right": {**SIDE, "before": "15s"}}},
                'before must be whole panes of 10s, got "15s"; the nearest are 10s or 20s',
            ),
        ],
    )
    def test_what_does_not_fit(self, query: dict[str, Any], words: str) -> None:
        """What is no set cannot be compared, what is a list is no number."""
        with pytest.raises(ProblemError) as caught:
            answered(query, {})
        assert words in str(caught.value)
