"""What late events changed in the windows of an answer, against the answer from before them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from weir.corrections import CorrectionRecord, Figures
from weir.query import Answer, Served, Version, answer, parse_query, plan
from weir.query.corrected import MOST, corrected

from .query_world import NOW_MS, PANE_MS, Event, Panes, facts, metric, served

LATENESS_MS = 60_000
# All windows up to there are final.
TO_MS = (NOW_MS - 2 * LATENESS_MS) // 60_000 * 60_000
FROM_MS = TO_MS - 12 * PANE_MS

SKETCHED = ("p50", "p95", "distinct", "theta")

events = st.builds(
    Event,
    at_ms=st.integers(FROM_MS, TO_MS - 1),
    region=st.sampled_from(["eu", "us", None]),
    route=st.sampled_from(["/a", "/b"]),
    value=st.integers(-50, 50).map(float),
    user=st.sampled_from("abc"),
)
queries = st.fixed_dictionaries(
    {
        "aggregate": st.sampled_from(
            ["count", "rate", "sum", "avg", "min", "max", "stddev", "last", *SKETCHED, "top"]
        ),
        "by": st.sampled_from([[], ["region"], ["region", "route"]]),
        "where": st.sampled_from([[], [["route", "=", "/a"]]]),
        "window": st.sampled_from(
            [
                {"kind": "tumbling", "length": "10s"},
                {"kind": "tumbling", "length": "30s"},
                {"kind": "sliding", "length": "40s"},
            ]
        ),
    }
)


def asked(query: dict[str, Any]) -> Any:
    """Return the plan of a query over the windows that are final."""
    whole = {"metric": "latency", "step": query["window"]["length"], **query}
    if query["window"]["kind"] == "sliding":
        whole["step"] = "20s"
    whole["range"] = {"from": FROM_MS, "to": TO_MS}
    return plan(parse_query(whole), served(), facts())


def late(panes: Panes, batch: list[Event], number: int) -> list[CorrectionRecord]:
    """Count late events and return the records that the engine publishes of them."""
    before = {key: dict(rows) for key, rows in panes.held.items()}
    found = []
    for key in sorted(panes.count(batch)):
        for series, row in panes.held[key].items():
            was = before.get(key, {}).get(series)
            if was != row:
                vid, res_s, start_s = key
                found.append(
                    CorrectionRecord(
                        epoch=1,
                        batch=number,
                        tenant="t",
                        metric="latency",
                        version=3,
                        vid=vid,
                        res_s=res_s,
                        start_s=start_s,
                        series=series,
                        was=None if was is None else Figures.of(was, SKETCHED),
                        now=Figures.of(row, SKETCHED),
                        received_ms=NOW_MS,
                        final_ms=(start_s + res_s) * 1000 + LATENESS_MS,
                    )
                )
    return found


def cells(found: Answer) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Return count, value and its ends by window and series of an answer; of a list the count."""
    told = found.to_dict()
    numbers = ("value", "low", "high")
    return {
        (t, one["k"]): (one["count"][at], *(one[n][at] if n in one else None for n in numbers))
        for one in told["series"]
        for at, t in enumerate(told["t_ms"])
    }


@given(queries, st.lists(events, max_size=30), st.lists(st.lists(events, max_size=5), max_size=3))
@settings(max_examples=150, deadline=None)
def test_before_and_now_are_what_the_answers_say(
    query: dict[str, Any], early: list[Event], batches: list[list[Event]]
) -> None:
    """Of each window that changed, once; of none that did not."""
    panes, made = Panes(), asked(query)
    panes.count(early)
    before = cells(answer(made, panes.held, facts()))
    records = [late(panes, batch, number) for number, batch in enumerate(batches)]
    found = answer(made, panes.held, facts())
    now = cells(found)

    newest_first = list(itertools.chain(*reversed(records)))
    told = {(one["t_ms"], one["k"]): one for one in corrected(made, found.series, newest_first)}

    changed = {place for place in now if now[place][0] != before.get(place, (0, None))[0]}
    assert set(told) == changed
    for place, one in told.items():
        n, value, *_ends = now[place]
        n_before, value_before, *ends_before = before.get(place, (0, None, None, None))
        assert one["events"] == (n or 0) - (n_before or 0)
        assert one["is"] == value
        if query["aggregate"] not in SKETCHED:
            assert one["was_low"] == one["was"] == one["was_high"]
        if query["aggregate"] in ("count", "rate", "sum"):
            assert one["was"] == pytest.approx(value_before or 0)
        elif query["aggregate"] == "avg":
            assert one["was"] == (None if not n_before else pytest.approx(value_before))
        elif query["aggregate"] != "top":
            # Of one pane of one series it is known, else not.
            is_pane = query["window"]["length"] == "10s"
            is_known = is_pane and query["by"] == ["region", "route"] and n_before
            assert one["was"] == (value_before if is_known else None)
            assert [one["was_low"], one["was_high"]] == (ends_before if is_known else [None] * 2)
        else:
            assert one["was"] is one["is"] is None


class TestTold:
    QUERY: dict[str, Any] = {  # noqa: RUF012
        "aggregate": "count",
        "by": ["region"],
        "where": [],
        "window": {"kind": "tumbling", "length": "10s"},
    }

    def _told(self, query: dict[str, Any], batch: list[Event], **changes: Any) -> list[Any]:
        panes = Panes()
        made = asked(query)
        records = late(panes, batch, 0)
        records = [replace(one, **changes) for one in records]
        return corrected(made, answer(made, panes.held, facts()).series, records)

    def test_how_late_the_latest_came(self) -> None:
        """After the end of its pane."""
        (one,) = self._told(self.QUERY, [Event(FROM_MS, "eu", "/a", 1.0)])
        assert one["late_ms"] == NOW_MS - FROM_MS - PANE_MS

    def test_what_was_corrected_twice_was_what_it_was_first(self) -> None:
        """Also a greatest value, of which no record says what it grew by."""
        query = self.QUERY | {"aggregate": "max", "by": ["region", "route"]}
        panes, made = Panes(), asked(query)
        batches = [[Event(FROM_MS, "eu", "/a", value)] for value in (1.0, 2.0, 3.0)]
        _final, first, second = (late(panes, batch, at) for at, batch in enumerate(batches))
        found = answer(made, panes.held, facts())

        (one,) = corrected(made, found.series, [*second, *first])
        assert (one["was"], one["is"], one["events"]) == (1.0, 3.0, 2)

    def test_a_series_that_is_not_shown_is_told_with_the_others(self) -> None:
        """Under the number of `other`; where that is left out nothing is."""
        batch = [Event(FROM_MS, "eu", "/a", 1.0)] * 3 + [Event(FROM_MS, "us", "/a", 1.0)]
        both = [
            [one["events"] for one in self._told(self.QUERY | {"limit": limit}, batch)]
            for limit in ({"top": 1, "other": True}, {"top": 1, "other": False})
        ]
        assert [sorted(events) for events in both] == [[1, 3], [3]]

    def test_a_window_that_was_still_provisional_was_not_corrected(self) -> None:
        """A pane may be final while the longer window that it lies in is not."""
        query = self.QUERY | {"window": {"kind": "tumbling", "length": "1m"}}
        end_ms = FROM_MS // 60_000 * 60_000 + 60_000
        batch = [Event(FROM_MS, "eu", "/a", 1.0)]
        windows = [self._told(query, batch, received_ms=end_ms + at) for at in (59_999, 60_000)]
        assert [len(told) for told in windows] == [0, 1]

    def test_of_many_windows_the_newest_are_told(self) -> None:
        """Bounded, however much came late."""
        batch = [
            Event(TO_MS - 1 - at * PANE_MS, str(region), "/a", 1.0)
            for at in range(12)
            for region in range(25)
        ]
        told = self._told(self.QUERY, batch)
        assert len(told) == MOST
        assert min(one["t_ms"] for one in told) > TO_MS - 9 * PANE_MS

    def test_of_an_expression_the_events_are_told(self) -> None:
        """Of both sides, once where they read the same panes; not what it was before."""
        window = {"window": self.QUERY["window"], "step": "10s"}
        left, right = ({"metric": name, "aggregate": "count"} for name in ("latency", "other"))
        both = Served((Version(vid=8, number=1, metric=metric(name="other")),))
        known = {**served(), "other": both}
        panes = Panes()
        records = late(panes, [Event(FROM_MS, "eu", "/a", 1.0)] * 2, 0)
        others = Panes(vid=8)
        records += late(others, [Event(FROM_MS, "eu", "/a", 1.0)] * 3, 0)
        held = {**panes.held, **others.held}
        asked_for = (((left, left), 2, 1), ((left, right), 5, 2 / 3), ((right, left), 5, 3 / 2))
        for sides, events, ratio in asked_for:
            expr = {"op": "ratio", "left": sides[0], "right": sides[1]}
            span = {"range": {"from": FROM_MS, "to": TO_MS}}
            made = plan(parse_query({"expr": expr, "by": [], **window, **span}), known, facts())
            (one,) = corrected(made, answer(made, held, facts()).series, records)
            assert (one["events"], one["was"], one["is"]) == (events, None, ratio)
