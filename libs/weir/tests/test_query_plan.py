"""Plans: windows, panes, versions, and refusals that say what fits."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from weir.event_time import format_time
from weir.panes import ceil_to
from weir.problems import ProblemError, Reason
from weir.query import Plan, Served, Version, parse_query, plan
from weir.query.states import NOT_KEPT, final_to, window_states

from .query_world import NOW_MS, PANE_MS, facts, metric, served

MINUTE = 60_000
HOUR = 60 * MINUTE
USUAL = {"10s": "24h", "1m": "7d", "1h": "90d"}


def planned(change: dict[str, Any] | None = None, metrics: Any = None) -> Plan:
    """Return the plan of a query about the one metric."""
    asked = {"metric": "latency", "aggregate": "count", **(change or {})}
    return plan(parse_query(asked), metrics or served(), facts())


def refused(change: dict[str, Any], metrics: Any = None) -> ProblemError:
    """Return the refusal of a query about the one metric."""
    with pytest.raises(ProblemError) as caught:
        planned(change, metrics)
    return caught.value


def pane_ms(made: Plan) -> int:
    """Return the length of the panes that a plan reads."""
    return made.lines[0].readings[0].pane_ms


class TestWindows:
    def test_the_default(self) -> None:
        """Left out, windows are tumbling, 1/120 of the last hour, aligned to the epoch."""
        windows = planned().windows
        assert (windows.length_ms, windows.step_ms, windows.count) == (30_000, 30_000, 120)
        assert windows.last_end_ms % 30_000 == 0
        assert windows.last_end_ms - 30_000 <= NOW_MS < windows.last_end_ms

    def test_the_default_step_is_whole_panes(self) -> None:
        """1/120 of 50 minutes is 25 s, rounded up to panes of 10 s."""
        assert planned({"range": {"last": "50m"}}).windows.step_ms == 30_000

    def test_an_instant_within_a_pane(self) -> None:
        """A span from one instant to another grows to whole panes and aligns to its start."""
        from_ms = NOW_MS - HOUR
        span = {"from": from_ms + 1, "to": from_ms + MINUTE - 1}
        windows = planned({"range": span, "step": "20s"}).windows
        start = from_ms // PANE_MS * PANE_MS
        assert list(windows.ends_ms) == [start + 20_000 * i for i in (1, 2, 3)]

    @pytest.mark.parametrize("at", [0, 123, 59_999])
    @pytest.mark.parametrize("step", [None, "6h", "1d"])
    def test_an_instant_long_ago(self, at: int, step: str | None) -> None:
        """Only panes of hours are kept so long: the span begins at the edge of one."""
        begin_ms = NOW_MS - 30 * 24 * HOUR + at
        change = {"range": {"from": begin_ms, "to": NOW_MS}, **({"step": step} if step else {})}
        made = planned(change, served(keep=USUAL))
        (reading,) = made.readings
        assert pane_ms(made) == HOUR
        assert NOT_KEPT not in window_states(reading, facts())
        assert made.windows.start_ms == begin_ms // HOUR * HOUR

    def test_an_instant_long_ago_by_short_steps(self) -> None:
        """Who asks for steps that no kept panes have is told how long those are kept."""
        begin_ms = NOW_MS // MINUTE * MINUTE - 48 * HOUR + 2 * PANE_MS
        span = {"from": begin_ms, "to": begin_ms + 40 * HOUR}
        made = planned({"range": span, "step": "20s"}, served(keep=USUAL))
        assert made.windows.start_ms == begin_ms
        assert pane_ms(made) == PANE_MS
        assert [note.code for note in made.notes] == ["not_kept"]

    def test_by_default_nothing_of_a_span_is_cut(self) -> None:
        """The last window reaches behind the end; with a step that was asked for it is told."""
        span = {"from": NOW_MS - 10 * 24 * HOUR, "to": NOW_MS}
        made = planned({"range": span}, served(keep=USUAL))
        assert made.windows.last_end_ms >= NOW_MS > made.windows.last_end_ms - 3 * HOUR
        assert made.notes[0].code == "coarser"

        made = planned({"range": span, "step": "7h"}, served(keep=USUAL))
        assert made.windows.last_end_ms < NOW_MS
        assert made.notes[0].code == "cut"
        left_ms = made.windows.last_end_ms
        assert f"from {format_time(left_ms)} to {format_time(NOW_MS)}" in made.notes[0].message
        window = {"kind": "tumbling", "length": "7h"}
        assert planned({"range": span, "window": window}, served(keep=USUAL)).notes == made.notes

    @pytest.mark.parametrize(
        ("last", "offset", "step_ms"),
        [("1h", "1d", MINUTE), ("12h", "2w", HOUR), ("24h", "1w", HOUR)],
    )
    def test_the_default_step_is_kept_as_long_ago_as_is_compared(
        self, last: str, offset: str, step_ms: int
    ) -> None:
        """Panes of the last hour's default step would be gone a day before."""
        asked = {"range": {"last": last}, "compare": [offset]}
        made = planned(asked, served(keep=USUAL))
        assert made.windows.step_ms == step_ms
        for reading in made.readings:
            assert NOT_KEPT not in window_states(reading, facts())

    @pytest.mark.parametrize("last", ["1h", "11h"])
    def test_a_comparison_leaves_twelve_windows(self, last: str) -> None:
        """A week ago there are hours alone: few points of both say less than many of the one."""
        made = planned({"range": {"last": last}, "compare": ["1w"]}, served(keep=USUAL))
        assert made.windows.count >= 60
        assert [note.code for note in made.notes] == ["not_kept"]

    def test_the_default_step_is_kept_as_long_ago_as_what_was_before(self) -> None:
        """Who is new is asked of the three days before each window."""
        side = {"metric": "latency", "aggregate": "theta"}
        expr = {"op": "only_left", "left": side, "right": {**side, "before": "3d"}}
        asked = {"expr": expr, "range": {"last": "1h"}}
        made = plan(parse_query(asked), served(keep=USUAL), facts())
        assert made.windows.step_ms == MINUTE
        assert all(NOT_KEPT not in window_states(one, facts()) for one in made.readings)

    @pytest.mark.parametrize(
        ("change", "pointer", "says"),
        [
            ({"window": {"kind": "sliding", "length": "15s"}}, "/window/length", "10s or 20s"),
            ({"step": "25s"}, "/step", "20s or 30s"),
            ({"compare": ["61s"]}, "/compare/0", "1m or 1m10s"),
            (
                {"window": {"kind": "tumbling", "length": "1m"}, "step": "30s"},
                "/step",
                "the length of tumbling windows",
            ),
            ({"window": {"kind": "hopping", "length": "30s"}, "step": "30s"}, "/step", "shorter"),
            (
                {"range": {"from": NOW_MS - 13_000, "to": NOW_MS - 4_000}, "step": "1m"},
                "/step",
                "at most the range, 10s",
            ),
        ],
    )
    def test_refusals(self, change: dict[str, Any], pointer: str, says: str) -> None:
        """Lengths that do not fit are refused at their place, with what would fit."""
        problem = refused(change)
        assert problem.reason == Reason.QUERY_INVALID
        assert problem.errors[0]["pointer"] == pointer
        assert says in problem.message

    def test_too_many_points(self) -> None:
        """Over 11,000 points the step that fits is named, and it does fit."""
        problem = refused({"range": {"last": "2d"}, "step": "10s"})
        assert problem.reason == Reason.QUERY_TOO_LARGE
        assert problem.message == (
            "query must have at most 11,000 points a series, got 17,280; a step of 20s fits"
        )
        assert planned({"range": {"last": "2d"}, "step": "20s"}).windows.count == 8640

    @pytest.mark.parametrize(
        ("change", "what"),
        [
            (
                {
                    "window": {"kind": "sliding", "length": "36500d10s"},
                    "step": "1d",
                    "range": {"last": "1d"},
                },
                "100,000 steps a window, got 315,360,001",
            ),
            (
                {"window": {"kind": "tumbling", "length": "36500d"}, "range": {"last": "1d"}},
                "100,000 panes to read, got ",
            ),
            (
                {
                    "window": {"kind": "sliding", "length": "10000d"},
                    "step": "20000d",
                    "range": {"from": NOW_MS, "to": 2**53},
                },
                "panes to read, got ",
            ),
        ],
    )
    def test_more_panes_than_memory_holds(self, change: dict[str, Any], what: str) -> None:
        """What would be too much is counted and refused, without a list of it."""
        tracemalloc.start()
        try:
            problem = refused(change)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert problem.reason == Reason.QUERY_TOO_LARGE
        assert what in problem.message
        assert peak < 5_000_000

    def test_a_long_window_of_short_steps(self) -> None:
        """Windows longer than anything is kept are planned from the panes that are there."""
        made = planned({"window": {"kind": "sliding", "length": "300d"}, "step": "1d"})
        assert pane_ms(made) == MINUTE
        assert len(made.keys) == made.readings[0].pane_count <= 24 * 60 + 2 * 24 * 60

    @pytest.mark.parametrize("by_s", [-10, 0, 10])
    def test_the_size_named_as_fitting_fits(self, by_s: int) -> None:
        """A window of 100,000 steps is planned, one step more is refused."""
        length = f"{1_000_000 + by_s}s"
        change = {"window": {"kind": "sliding", "length": length}, "step": "10s"}
        asked = {**change, "range": {"last": "1m"}}
        if by_s <= 0:
            assert planned(asked).windows.length_ms == (1_000_000 + by_s) * 1000
        else:
            assert refused(asked).message.endswith(
                "take a step of at least 20s and a length that is a multiple of it"
            )


class TestPanesRead:
    def test_exactly_those_of_the_windows(self) -> None:
        """The keys are the panes that some window covers, as Redis names them."""
        made = planned({"range": {"last": "1m"}, "step": "30s"})
        start_s = made.windows.start_ms // 1000
        assert made.keys == {(7, 10, start_s + 10 * i) for i in range(6)}

    def test_coarser_panes_where_the_finer_are_gone(self) -> None:
        """Beyond the hour that panes of 10 s are kept, those of a minute are read, and said."""
        made = planned({"range": {"last": "6h"}, "step": "5m"})
        assert pane_ms(made) == MINUTE
        assert [note.code for note in made.notes] == ["coarser"]
        assert "panes of 10s are kept for 1h" in made.notes[0].message

    def test_windows_that_coarser_panes_cannot_make(self) -> None:
        """Windows of 30 s stay windows of 30 s; the oldest are not kept, and that is said."""
        made = planned({"range": {"last": "2h"}, "step": "30s"})
        assert pane_ms(made) == PANE_MS
        assert [note.code for note in made.notes] == ["not_kept"]
        assert len(made.keys) < 2 * 360

    def test_comparison_reads_the_same_windows_earlier(self) -> None:
        """An offset moves every window back, here into panes that only minutes keep."""
        made = planned({"range": {"last": "10m"}, "step": "1m", "compare": ["3h"]})
        earlier = made.lines[1].readings[0]
        assert earlier.windows.last_end_ms == made.windows.last_end_ms - 3 * HOUR
        assert earlier.pane_ms == MINUTE


class TestVersions:
    CUT_S = (NOW_MS - 20 * MINUTE) // 60_000 * 60

    def two(self, **changes: Any) -> dict[str, Served]:
        """Return a metric whose second version took over 20 minutes ago."""
        old = Version(vid=7, number=1, metric=metric(**changes))
        cut = {10: self.CUT_S, 60: self.CUT_S}
        return {"latency": Served((old, Version(vid=9, number=2, metric=metric(), cut=cut)))}

    def test_each_pane_belongs_to_one(self) -> None:
        """Panes before the cut are the old version's, from the cut on the new one's."""
        made = planned({"range": {"last": "40m"}, "step": "1m"}, self.two())
        old = {start for vid, _, start in made.keys if vid == 7}
        new = {start for vid, _, start in made.keys if vid == 9}
        assert max(old) < self.CUT_S == min(new)
        assert len(old) + len(new) == 40

    def test_panes_that_were_left_to_nobody_are_not_read(self) -> None:
        """Before the cut of the oldest one: it leaves them out, and who counted them is gone."""
        newest = self.two()["latency"].versions[1]
        made = planned({"range": {"last": "40m"}, "step": "1m"}, {"latency": Served((newest,))})

        assert min(start for _, _, start in made.keys) == self.CUT_S
        (reading,) = made.readings
        assert window_states(reading, facts())[0] == NOT_KEPT

    def test_one_alone(self) -> None:
        """A version that is asked for by number has all panes to itself."""
        made = planned({"version": 2, "range": {"last": "40m"}, "step": "1m"}, self.two())
        assert {vid for vid, _, _ in made.keys} == {9}

    def test_a_longer_keep_brings_back_nothing(self) -> None:
        """What the version before has forgotten is not kept, however long the new one keeps."""
        known = self.two(keep={"10s": "25m", "1m": "25m"})
        made = planned({"range": {"last": "40m"}, "step": "1m"}, known)
        (reading,) = made.readings
        states = window_states(reading, facts())
        assert (states[:14], states[-1]) == (NOT_KEPT * 14, "p")
        assert "n" not in states[15:]
        assert min(start for _, _, start in made.keys) * 1000 >= NOW_MS - 26 * MINUTE
        assert [note.code for note in made.notes] == ["not_kept"]
        assert "version 1 of latency are kept for 25m only" in made.notes[0].message

    def test_a_shorter_keep_is_that_of_all(self) -> None:
        """The version before kept its panes longer: nobody keeps them now."""
        old = Version(vid=7, number=1, metric=metric())
        cut = {10: self.CUT_S, 60: self.CUT_S}
        new = Version(vid=9, number=2, metric=metric(keep={"10s": "25m", "1m": "25m"}), cut=cut)
        made = planned({"range": {"last": "40m"}, "step": "1m"}, {"latency": Served((old, new))})
        assert window_states(made.readings[0], facts())[:14] == NOT_KEPT * 14

    @pytest.mark.parametrize("keep", [{"10s": "1h"}, {"10s": "1h", "1m": "25m"}])
    def test_panes_that_the_version_before_has_are_read(self, keep: dict[str, str]) -> None:
        """It has no panes of minutes so long ago: those of ten seconds reach farther."""
        made = planned({"range": {"last": "40m"}, "step": "1m"}, self.two(keep=keep))
        assert pane_ms(made) == 10_000
        assert NOT_KEPT not in window_states(made.readings[0], facts())
        assert made.notes == ()

    def test_of_what_reaches_equally_far_the_longest_is_read(self) -> None:
        """A new version has longer panes, and its cut is on another edge of each length."""
        cut_s = (NOW_MS // 1000 - 7 * 86_400) // 60 * 60 + 20
        cut = {10: cut_s, 60: ceil_to(cut_s, 60), 3_600: ceil_to(cut_s, 3_600)}
        old = Version(vid=7, number=1, metric=metric(keep={"10s": "24h"}))
        keep = {"10s": "24h", "1m": "90d", "1h": "300d"}
        new = Version(vid=9, number=2, metric=metric(keep=keep), cut=cut)
        asked = {"range": {"last": "90d"}, "step": "6h"}
        assert pane_ms(planned(asked, {"latency": Served((old, new))})) == HOUR

    @pytest.mark.parametrize(("lateness", "letter"), [("1h", "p"), ("10m", "f")])
    def test_each_is_final_when_it_waits_no_longer(self, lateness: str, letter: str) -> None:
        """A version before that waits an hour still takes late events as a matter of course."""
        known = self.two(allowed_lateness=lateness)
        made = planned({"range": {"last": "40m"}, "step": "1m"}, known)
        (reading,) = made.readings
        states = window_states(reading, facts())
        assert states[0] == letter
        final_ms = final_to(reading, facts())
        assert final_ms is not None
        through = [end for end in reading.windows.ends_ms if end <= final_ms]
        assert states == "f" * len(through) + "p" * (len(states) - len(through))
        # Of those alone that begin behind its panes it is not asked.
        later = planned({"range": {"last": "10m"}, "step": "1m"}, known).readings[0]
        assert window_states(later, facts())[0] == "f"

    @pytest.mark.parametrize("aggregate", ["distinct", "theta", "top"])
    def test_texts_of_another_path_are_left_out(self, aggregate: str) -> None:
        """Who came and what they looked at are no set; `top` of another length is the same."""
        declared = ["distinct(data.page)", "theta(data.page)", "top(data.page, 3)"]
        asked = {"aggregate": aggregate, "range": {"last": "40m"}, "step": "1m"}
        made = planned(asked, self.two(aggregates=declared))
        assert {vid for vid, _, _ in made.keys} == {9}
        assert [note.code for note in made.notes] == ["version_differs"]
        declared = ["distinct(subject)", "theta(subject)", "top(subject, 7)"]
        assert planned(asked, self.two(aggregates=declared)).notes == ()

    @pytest.mark.parametrize(
        ("change", "codes"),
        [
            ({"where": "data.ms > 5"}, ["version_differs"]),
            ({"value": "data.s"}, ["version_differs"]),
            ({"events": {"type": "page"}}, ["version_differs"]),
            ({"value": " data.ms", "max_series": 3}, []),
        ],
    )
    def test_who_counts_otherwise_is_told(self, change: dict[str, Any], codes: list[str]) -> None:
        """Panes of both are shown side by side, and it is said from when on they mean another."""
        made = planned({"range": {"last": "40m"}, "step": "1m"}, self.two(**change))
        assert {vid for vid, _, _ in made.keys} == {7, 9}
        assert [note.code for note in made.notes] == codes
        asked = {"range": {"last": "10m"}, "step": "1m"}
        assert planned(asked, self.two(**change)).notes == ()

    def test_one_that_cannot_answer(self) -> None:
        """Panes of a version without the dimension are left out, and that is said."""
        asked = {"by": ["route"], "range": {"last": "40m"}, "step": "1m"}
        made = planned(asked, self.two(by=["data.region"]))
        assert {vid for vid, _, _ in made.keys} == {9}
        assert [note.code for note in made.notes] == ["version_differs"]


class TestNames:
    @pytest.mark.parametrize(
        ("change", "pointer", "says"),
        [
            ({"aggregate": "p90"}, "/aggregate", "count, rate, sum, avg, min, max, p50, p95, p99"),
            ({"aggregate": "median"}, "/aggregate", '"median"'),
            ({"aggregate": "distinct(data.page)"}, "/aggregate", "distinct(subject)"),
            ({"aggregate": "count(distinct subject)"}, "/aggregate", "count, rate, sum"),
            ({"aggregate": "sum(data.ms)"}, "/aggregate", "count, rate, sum"),
            ({"aggregate": "count("}, "/aggregate", '"count("'),
            ({"aggregate": "top(data.page)"}, "/aggregate", "top(subject, 3)"),
            ({"aggregate": "top(subject, 50)"}, "/aggregate", "top(subject, 3)"),
            ({"by": ["country"]}, "/by", "region, route"),
            ({"where": [["country", "=", "x"]]}, "/where", "region, route"),
        ],
    )
    def test_refusals(self, change: dict[str, Any], pointer: str, says: str) -> None:
        """What the metric does not keep is refused with what it keeps."""
        problem = refused(change)
        assert (problem.reason, problem.errors[0]["pointer"]) == (Reason.QUERY_INVALID, pointer)
        assert says in problem.message

    @pytest.mark.parametrize(
        "asked",
        ["distinct(subject)", "distinct( subject )", "top", "top(subject)", "top(subject,3)"],
    )
    def test_an_aggregate_in_full(self, asked: str) -> None:
        """Whoever says of which path is understood, if it is that one."""
        assert planned({"aggregate": asked}).keys

    @pytest.mark.parametrize("side", ["left", "right"])
    def test_a_refusal_of_a_side_says_which(self, side: str) -> None:
        """Of the two aggregates of an expression it points at the wrong one."""
        sides = {name: {"metric": "latency", "aggregate": "count"} for name in ("left", "right")}
        sides[side]["aggregate"] = "median"
        problem = refused({"metric": None, "aggregate": None, "expr": {"op": "ratio", **sides}})
        assert problem.errors[0]["pointer"] == f"/expr/{side}/aggregate"

    @pytest.mark.parametrize("change", [{"metric": "other"}, {"version": 2}])
    def test_unknown(self, change: dict[str, Any]) -> None:
        """A metric or version that is not served is 404."""
        problem = refused(change)
        assert (problem.status, problem.reason) == (404, Reason.METRIC_UNKNOWN)

    @pytest.mark.parametrize(
        ("declared", "asked"), [("p05", "p5"), ("p5", "p05"), ("p50", "p50.0")]
    )
    def test_both_spellings_of_a_percentile(self, declared: str, asked: str) -> None:
        """A percentile is found however the definition or the query spells it."""
        assert planned({"aggregate": asked}, served(aggregates=[declared])).keys

    def test_both_names_of_a_dimension(self) -> None:
        """`data.region` may be written `region`."""
        planned({"by": ["region"], "where": [["data.route", "=", None]]})
