"""What late events changed in the windows of an answer, against the answer from before them."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from weir.corrections import CorrectionRecord, Figures
from weir.definitions.durations import parse_duration_ms
from weir.query import Answer, PaneKey, Served, Version, answer, parse_query, plan
from weir.query.corrected import MOST, corrected
from weir.query.grouping import REST, Group, k_of
from weir.rows import Row, merge

from .query_world import NOW_MS, PANE_MS, Event, Panes, facts, matches, metric, served

LATENESS_MS = 60_000
# All windows up to there are final.
TO_MS = (NOW_MS - 2 * LATENESS_MS) // 60_000 * 60_000
FROM_MS = TO_MS - 12 * PANE_MS

Place = tuple[int, Group]
SKETCHED = ("p50", "p95", "distinct", "theta")

events = st.builds(
    Event,
    # Few panes, so that what is drawn meets in them.
    at_ms=st.integers(FROM_MS, FROM_MS + 4 * PANE_MS - 1),
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
        "limit": st.sampled_from([None, *({"top": 1, "other": other} for other in (True, False))]),
    }
)
capped = st.frozensets(
    st.sampled_from([(region, route) for region in ("eu", "us", None) for route in ("/a", "/b")])
)


def asked(query: dict[str, Any]) -> Any:
    """Return the plan of a query over the windows that are final."""
    whole = {"metric": "latency", "step": query["window"]["length"], **query}
    if query["window"]["kind"] == "sliding":
        whole["step"] = "20s"
    whole["range"] = {"from": FROM_MS, "to": TO_MS}
    return plan(parse_query(whole), served(), facts())


def late(
    panes: Panes, batch: list[Event], number: int, *, shard: int = 0
) -> list[CorrectionRecord]:
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
                        shard=shard,
                    )
                )
    return found


class Shards:
    """Two shards, each with the series of one route and a row `*` of those beyond the cap."""

    def __init__(self, beyond: Collection[tuple[str | None, str | None]]) -> None:
        self._of = {route: Panes(beyond=beyond) for route in ("/a", "/b")}

    def count(self, batch: list[Event], number: int) -> list[CorrectionRecord]:
        """Count events and return what is published of them where they are late."""
        return [
            record
            for shard, (route, panes) in enumerate(self._of.items())
            for record in late(panes, [e for e in batch if e.route == route], number, shard=shard)
        ]

    def held(self) -> dict[PaneKey, dict[str, Row]]:
        """Return the panes as they are read: shards together."""
        found: dict[PaneKey, dict[str, Row]] = {}
        for panes in self._of.values():
            for key, of in panes.held.items():
                rows = found.setdefault(key, {})
                for text, row in of.items():
                    rows[text] = merge(rows[text], row) if text in rows else row
        return found


def cells(found: Answer) -> dict[Place, tuple[Any, ...]]:
    """Return count, value and its ends by window and series of an answer; of a list the count."""
    numbers = ("value", "low", "high")
    series = zip(found.series, found.to_dict()["series"], strict=True)
    return {
        (t, of.group): (one["count"][at], *(one[n][at] if n in one else None for n in numbers))
        for of, one in series
        for at, t in enumerate(found.plan.windows.ends_ms)
    }


@dataclass
class Plainly:
    """Which events an answer tells of, by window and series: gone through one by one."""

    query: dict[str, Any]
    beyond: Collection[tuple[str | None, str | None]]
    shown: set[Group]

    def of(self, place: Place, events: list[Event]) -> list[Event]:
        """Return those that are told there."""
        return [e for e in self._within(place, events) if self._is_told(place[1], e)]

    def unassigned(self, place: Place, events: list[Event]) -> list[Event]:
        """Return those of `*` that may belong there, too, for all that is known."""
        if not self.query["where"] and (place[1] is REST or not self.query["by"]):
            return []
        return [e for e in self._within(place, events) if self._is_beyond(e)]

    def belongs(self, group: Group, event: Event) -> bool:
        """Tell whether an event is of a group, capped or not."""
        if not matches(event, self.query["where"]):
            return False
        named = self._named(event)
        return named not in self.shown if group is REST else named == group

    def _within(self, place: Place, events: list[Event]) -> list[Event]:
        begin_ms = place[0] - parse_duration_ms(self.query["window"]["length"])
        return [e for e in events if begin_ms <= e.at_ms < place[0]]

    def _is_told(self, group: Group, event: Event) -> bool:
        if self._is_beyond(event):
            return not self.query["where"] and (group is REST or not self.query["by"])
        return self.belongs(group, event)

    def _is_beyond(self, event: Event) -> bool:
        return (event.region, event.route) in self.beyond

    def _named(self, event: Event) -> tuple[str | None, ...]:
        return tuple(getattr(event, name) for name in self.query["by"])


@given(
    queries,
    capped,
    st.lists(events, max_size=30),
    st.lists(st.lists(events, max_size=5), max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_before_and_now_are_what_the_answers_say(
    query: dict[str, Any],
    beyond: frozenset[tuple[str | None, str]],
    early: list[Event],
    batches: list[list[Event]],
) -> None:
    """Of each window that changed, once; of none that did not."""
    shards, made = Shards(beyond), asked(query)
    shards.count(early, 0)
    before = cells(answer(asked({**query, "limit": None}), shards.held(), facts()))
    records = [shards.count(batch, number) for number, batch in enumerate(batches)]
    found = answer(made, shards.held(), facts())
    now, groups = cells(found), {one.group for one in found.series}
    plainly = Plainly(query, beyond, groups)

    newest_first = list(itertools.chain(*reversed(records)))
    k_to_group = {k_of(group): group for group in groups}
    told = {
        (one["t_ms"], k_to_group[one["k"]]): one
        for one in corrected(made, found.series, newest_first)
    }

    counted_before = {place: plainly.of(place, early) for place in now}
    assert set(told) == {p for p in now if now[p][0] not in (None, len(counted_before[p]))}
    for place, one in told.items():
        n, *value_and_ends = now[place]
        assert one["events"] == n - len(counted_before[place])
        assert [one["is"], one["is_low"], one["is_high"]] == value_and_ends
        check_was(one, place, plainly, early, before)


def check_was(
    one: dict[str, Any],
    place: Place,
    plainly: Plainly,
    early: list[Event],
    before: dict[Place, tuple[Any, ...]],
) -> None:
    """Hold what a window was against the events from before, and the answer from before."""
    query, counted = plainly.query, plainly.of(place, early)
    values = [event.value for event in counted]
    was, low, high = one["was"], one["was_low"], one["was_high"]
    if query["aggregate"] in ("count", "rate"):
        seconds = parse_duration_ms(query["window"]["length"]) / 1000
        per = seconds if query["aggregate"] == "rate" else 1
        assert was == low == pytest.approx(len(counted) / per)
        unassigned = plainly.unassigned(place, early)
        belonging = [e for e in unassigned if plainly.belongs(place[1], e)]
        assert high >= (len(counted) + len(belonging)) / per - 1e-9
        assert high == low or one["is"] is not None
    elif query["aggregate"] in ("sum", "avg"):
        is_known = one["is"] is not None and (counted or query["aggregate"] == "sum")
        divisor = len(counted) if query["aggregate"] == "avg" else 1
        assert was == low == high
        assert was == (pytest.approx(sum(values) / divisor) if is_known else None)
    elif query["aggregate"] == "top":
        assert was is low is high is one["is"] is None
    else:
        # Of one pane of one series it is known, else not.
        is_pane = query["window"]["length"] == "10s" and place[1] is not REST
        is_known = is_pane and query["by"] == ["region", "route"] and counted
        assert (was, low, high) == (before[place][1:] if is_known else (None,) * 3)


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

    def test_others_are_not_what_one_of_them_was(self) -> None:
        """By a limit: the one that had late events says nothing of the greatest of the rest."""
        query = self.QUERY | {"aggregate": "max", "by": ["region", "route"]}
        made, panes = asked(query | {"limit": {"top": 1, "other": True}}), Panes()
        values = {"eu": 200.0, "us": 100.0, None: 5.0}
        late(panes, [Event(FROM_MS, region, "/a", value) for region, value in values.items()], 0)
        records = late(panes, [Event(FROM_MS, None, "/a", 6.0)], 1)

        (one,) = corrected(made, answer(made, panes.held, facts()).series, records)
        assert (one["was"], one["was_low"], one["is"]) == (None, None, 100.0)

    def test_the_others_of_all_shards_are_not_what_those_of_one_were(self) -> None:
        """By a cap: each shard has a row `*`, and one of them changed."""
        query = self.QUERY | {"aggregate": "max", "by": ["region", "route"], "limit": None}
        made, shards = asked(query), Shards([("eu", "/a"), ("eu", "/b")])
        shards.count([Event(FROM_MS, "eu", "/a", 100.0), Event(FROM_MS, "eu", "/b", 5.0)], 0)
        records = shards.count([Event(FROM_MS, "eu", "/b", 6.0)], 1)

        (one,) = corrected(made, answer(made, shards.held(), facts()).series, records)
        assert (one["was"], one["was_low"], one["is"]) == (None, None, 100.0)

    def test_a_count_of_a_capped_series_was_as_uncertain(self) -> None:
        """What is in `*` may have belonged to it then as now."""
        made, shards = asked(self.QUERY | {"limit": None}), Shards([("eu", "/b")])
        shards.count([Event(FROM_MS, "eu", "/a", 1.0), Event(FROM_MS, "eu", "/b", 1.0)] * 2, 0)
        records = shards.count([Event(FROM_MS, "eu", "/a", 1.0)], 1)

        (one,) = corrected(made, answer(made, shards.held(), facts()).series, records)
        assert (one["was"], one["was_low"], one["was_high"]) == (2.0, 2.0, 4.0)

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

    @pytest.mark.parametrize("moved", ["left", "right"])
    def test_a_window_of_an_expression_is_the_one_that_is_answered(self, moved: str) -> None:
        """Also where a side looks at what was before: then it is final only with the other side."""
        length = {"window": self.QUERY["window"], "step": "10s"}
        sides = {name: {"metric": "latency", "aggregate": "count"} for name in ("left", "right")}
        sides[moved]["before"] = "30s"
        query = {"expr": {"op": "difference", **sides}, "by": [], **length}
        query["range"] = {"from": FROM_MS + 4 * PANE_MS, "to": TO_MS}
        made, panes = plan(parse_query(query), served(), facts()), Panes()
        # In the span before three windows, and in no window itself.
        (record,) = (
            r
            for r in late(panes, [Event(FROM_MS + 3 * PANE_MS, "eu", "/a", 1.0)], 0)
            if r.res_s == 10
        )
        series = answer(made, panes.held, facts()).series

        ends_ms = [FROM_MS + at * PANE_MS for at in (7, 6, 5)]
        for at, told_of in ((0, 3), (PANE_MS, 2), (2 * PANE_MS, 1), (3 * PANE_MS, 0)):
            for short_ms in (0, 1):
                received_ms = ends_ms[0] + LATENESS_MS - at - short_ms
                told = corrected(made, series, [replace(record, received_ms=received_ms)])
                expected = ends_ms[3 - max(0, told_of - short_ms) :]
                assert [one["t_ms"] for one in told] == expected
                assert {one["events"] for one in told} <= {1}

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
