"""What the benchmarks of the engine are checked by: a recount, phases that add up, a fair peer."""

from __future__ import annotations

import json
import re
from array import array
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import contest
import cpu
import engine
import flink
import flink_peer
import flink_sql
import growth
import marks
import phases
import pytest
import report
from bars import Reached, judge
from shares import Estimates
from weir.event import placed
from weir.sketches import HLL_LG_K
from workload import BEYOND, Drawn, Truth, check, draw, record_of, recount, wanted

RESULT = {
    "name": "flink",
    "at_ms": 0,
    "commit": "abc",
    "machine": {"cpu": "A", "cores": 2, "memory_gib": 1.0, "system": "Linux"},
    "settings": {},
}


def event(number: int, **said: Any) -> Drawn:
    """Return an event; what is not said is the same for all."""
    usual = Drawn(number, "type.0", "r1", "/api/1", "prod", 200, 1.5, 70, "u1")
    return usual._replace(**said)


class TestRecount:
    """The recount that ends a benchmark if a contestant counts wrongly."""

    def test_a_filtered_metric_takes_what_passes(self) -> None:
        """Metric 3 wants events of its type, of production and with a status below 500."""
        ours = {"type": "type.3"}
        events = [
            event(0, **ours),
            event(1, **ours, env="test"),
            event(2, **ours, status=500),
            event(3, **ours, latency_ms=2.5),
            event(4),
        ]
        found = recount(events, wanted(4, sketches=True))
        assert found[3].values.tolist() == [1.5, 2.5]
        assert found[3].users == {"u1"}
        assert found[0].values.tolist() == [70.0]
        assert found[1].values.tolist() == []

    @pytest.mark.parametrize(
        ("name", "wrong", "complaint"),
        [
            ("count", 99, "count must be 100, got 99"),
            ("sum", 5050.1, "sum must be 5050"),
            ("max", 101.0, "least and most"),
            ("distinct", 90.0, "distinct must be about 100, got 90.0"),
            ("p95", 92.0, "p95 must be of rank 0.95"),
        ],
    )
    def test_each_total_is_looked_at(self, name: str, wrong: float, complaint: str) -> None:
        """One that is off ends the benchmark, and the text names the metric."""
        truth = Truth(array("d", range(1, 101)), {f"u{n}" for n in range(100)})
        said = {
            "count": 100,
            "sum": 5050.0,
            "min": 1.0,
            "max": 100.0,
            "distinct": 97.0,
            "p95": 95.0,
        }
        metric = wanted(1, sketches=True)
        check("engine", [said], [truth], metric)
        with pytest.raises(SystemExit, match=f"engine, metric m0: .*{re.escape(complaint)}"):
            check("engine", [said | {name: wrong}], [truth], metric)

    def test_an_estimate_is_measured_in_promised_bounds(self) -> None:
        """Three standard errors of a distinct count, and 1.33 % of rank."""
        truth = Truth(array("d", range(1, 10_001)), {f"u{n}" for n in range(1_000)})
        off = truth.off({"distinct": 1_048.0, "p95": 9_500.0})
        assert off == {"distinct": pytest.approx(1.0), "p95": 0.0}
        off = truth.off({"distinct": 952.0, "p95": 9_367.0})
        assert off == {"distinct": pytest.approx(1.0), "p95": pytest.approx(1.0)}
        assert truth.off({"distinct": 1_000.0, "p95": 9_634.0})["p95"] == pytest.approx(
            1.0, abs=0.02
        )

    def test_a_truth_may_grow(self) -> None:
        """What was sorted once is sorted again when more has come."""
        truth = Truth(array("d", [1.0, 2.0]), {"u"})
        assert truth.off({"distinct": 1.0, "p95": 2.0})["p95"] == 0
        truth.values.extend([3.0] * 98)
        assert truth.off({"distinct": 1.0, "p95": 2.0})["p95"] > BEYOND
        assert truth.off({"distinct": 1.0, "p95": 3.0})["p95"] == 0

    def test_too_many_beyond_the_bound_end_the_benchmark(self) -> None:
        """One run that is a little off may be chance; in run after run it is not."""
        truth = Truth(array("d", range(1, 1_001)), {f"u{n}" for n in range(100)})
        said = {"count": 1_000, "sum": 500_500.0, "min": 1.0, "max": 1_000.0, "distinct": 100.0}
        metrics, estimates = wanted(1, sketches=True), Estimates()
        for _ in range(5):
            check("Flink", [said | {"p95": 950.0}], [truth], metrics, estimates)
        check("Flink", [said | {"p95": 930.0}], [truth], metrics, estimates)
        check("Flink", [said | {"p95": 930.0}], [truth], metrics, estimates)
        too_few = r"Flink: p95 must be within its bound in 99% of trials, was in 5 of 8"
        with pytest.raises(SystemExit, match=too_few):
            check("Flink", [said | {"p95": 930.0}], [truth], metrics, estimates)
        assert estimates.count("distinct") == 1, "the same number of the same users is one trial"

    def test_events_are_those_of_their_seed(self) -> None:
        """Two draws are the same; of ten combinations all ten are met, and no more."""
        events = list(draw(500, 10))
        assert events == list(draw(500, 10))
        assert len({(one.region, one.route, one.status) for one in events}) == 10

    def test_a_record_is_as_ingest_writes_it(self) -> None:
        """Its time stands at the fixed place, and its data are the fields as drawn."""
        drawn = next(draw(1, 200))
        value = record_of(drawn, 1_700_000_000_123).value
        assert placed(value).time_ms == 1_700_000_000_123
        data = json.loads(value)["data"]
        assert (data["region"], data["bytes"], data["user"]) == (
            drawn.region,
            drawn.bytes,
            drawn.user,
        )


class TestPeer:
    """What Flink is asked."""

    def test_every_metric_is_one_query_of_one_job(self) -> None:
        """As many inserts as metrics, each over its own type, those with sketches with both."""
        metrics = wanted(20, sketches=True)
        statements = flink_sql.script("host:1", "t", {0: 5, 1: 7}, metrics).split("\n\n")
        inserts = [one for one in statements if one.startswith("INSERT")]
        assert len(inserts) == len(metrics)
        for one, insert in zip(metrics, inserts, strict=True):
            assert f"`type` = '{one.type}'" in insert
            assert ("hll(" in insert, "kll(" in insert) == (one.sketches, one.sketches)
            assert ("data.status < 500" in insert) == one.filtered
        assert "'partition:0,offset:5;partition:1,offset:7'" in "".join(statements)

    def test_its_sketches_are_as_large_as_ours(self) -> None:
        """The same k and lgK: a smaller sketch would be cheaper."""
        metric = wanted(1, sketches=True)[0].metric()
        folder = flink_peer.JAVA / "dev" / "weir" / "bench"
        assert f"int K = {metric.kll_k};" in (folder / "Kll.java").read_text()
        assert f"int LG_K = {HLL_LG_K};" in (folder / "Hll.java").read_text()

    def test_every_jar_is_locked(self) -> None:
        """Each line of the lock is a SHA-256 and a jar; Flink and its connector are among them."""
        lines = [line.split() for line in flink_peer.LOCK.read_text().splitlines()]
        locked = {line[1]: line[0] for line in lines if line[0] != "#"}
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in locked.values())
        pom = (Path(flink_peer.HERE) / "pom.xml").read_text()
        for name, version in re.findall(r"<artifactId>(.+)</artifactId>\s+<version>(.+)</", pom)[
            1:
        ]:
            if name != "maven-dependency-plugin":
                number = version.replace("${flink}", re.findall("<flink>(.+)</flink>", pom)[0])
                assert f"{name}-{number}.jar" in locked

    def test_every_run_is_checked_but_for_its_time(self) -> None:
        """The job over no events is not; what its time is ends before its panes are merged."""
        asked: list[tuple[int, bool]] = []

        class Program:
            """Counts what it is told to, and says so at its two moments."""

            def cpu_s(self) -> float:
                """Return the CPU of one job a moment."""
                return float(len(moments))

            def count(self, *told: Any, explained: bool, moment: Any) -> list[dict[str, Any]]:
                """Return the totals of as many events as the log holds."""
                total = sum(told[2].values())
                asked.append((total, explained))
                for _ in range(2):
                    moments.append(moment())
                moments.append(None)
                return [{"count": total, "sum": 70.0 * total, "min": 70.0, "max": 70.0}]

        moments: list[None] = []
        part = SimpleNamespace(pid=lambda: None)
        bench = SimpleNamespace(broker=SimpleNamespace(bootstrap="host:1", part=part))
        log, truth = contest.Log("t", {0: 4, 1: 4}), Truth(array("d", [70.0] * 8))
        metrics = wanted(1, sketches=False)
        peer = flink.Peer(cast("Any", bench), cast("Any", Program()), log, metrics, [truth])
        for _ in range(2):
            spent = peer.run()
            peer.check()
            assert (spent.events, spent.cpu_s) == (8, 0.0)
        assert asked == [(0, False), (8, True), (0, False), (8, False)]
        peer.truths = [Truth(array("d", [70.0] * 7 + [71.0]))]
        peer.run()
        with pytest.raises(SystemExit, match="Flink, metric m0: sum must be 561"):
            peer.check()

    def test_the_largest_log_is_the_bar(self) -> None:
        """Each size has its figure, with sketches and without; only of one something is asked."""
        made = flink.bars_of({"250000": of_flink(90), "1000000": of_flink(110)})
        own = [one for one in made if one["id"] == "P1"]
        assert [one["got"] for one in own] == [1.1, 2.2, 0.9, 1.8, 0.5]
        assert [bool(one["reach"]) for one in own] == [True, True, False, False, False]
        assert flink.asked([]).events[-1] == 2_000_000
        assert len(engine.SIZES) == 3

    def test_what_one_event_more_costs_stands_below_the_bar(self) -> None:
        """Without what a fresh job costs; nothing is asked of it, and one size has none."""
        made = flink.bars_of({"250000": of_flink(90), "1000000": of_flink(110)})
        told = made[2:4]
        assert [(one["id"], one["reach"], one["got"]) for one in told] == [
            ("P1 marginal", "", 0.75),
            ("P1 marginal", "", 0.75),
        ]
        assert (
            "with sketches, one event more, from 250,000 to 1,000,000: 8.0 µs (7.5 to"
            in (told[0]["what"])
        )
        assert "without sketches, one event more" in told[1]["what"]
        assert [one["id"] for one in flink.bars_of({"250000": of_flink(90)})] == ["P1"] * 3
        page = report.page([{**RESULT, "figures": {"bars": made, "notes": flink.NOTES}}], {})
        assert "| P1 marginal | engine over Flink SQL, " in page
        assert "P1 is no price of an event" in page


def of_flink(engine: float) -> dict[str, Any]:
    """Return what was measured of a size, the engine's pace as given."""
    paces = {"engine": engine, "flink": 100, "spark_read_and_parse": 50}
    paces |= {"engine_without_sketches": 2 * engine, "flink_without_sketches": 100}
    dear = {"median": 8.0, "min": 7.5, "max": 8.5}
    cheap = {"median": 6.0, "min": 5.5, "max": 6.5}
    return {
        name: {
            "per_cpu_s": {"median": n},
            "µs_of_one_more": dear if name.startswith("engine") else cheap,
        }
        for name, n in paces.items()
    }


class TestRounds:
    """Who runs when."""

    def test_all_are_warm_before_they_are_measured(self) -> None:
        """Ten rounds, whatever the floor is measured beside (docs/decisions/0036)."""
        assert contest.parser_of(None, events=1).parse_args([]).warm == 10
        assert flink.asked([]).warm == 10

    def test_what_all_runs_cost_is_no_part_of_one_event_more(self) -> None:
        """By size, from the rounds that both sizes had, and but for the smallest."""

        @dataclass
        class One:
            """Takes a second whatever comes, and 2 µs for an event; in the last round 4."""

            events: int
            runs: int = 0

            def run(self) -> contest.Spent:
                """Take that."""
                self.runs += 1
                each_s = 4e-6 if self.runs == 3 else 2e-6
                return contest.Spent(self.events, 1.0, 1 + self.events * each_s)

            def check(self) -> None:
                """Find nothing wrong."""

        found = contest.by_size(
            {n: {"a": One(n)} for n in (1_000_000, 250_000, 500_000)}, 3, warm=0
        )
        assert "µs_of_one_more" not in found["250000"]["a"]
        assert found["500000"]["a"]["µs_an_event"] == 4.0
        for n in ("500000", "1000000"):
            one_more = found[n]["a"]["µs_of_one_more"]
            assert (one_more["median"], one_more["min"]) == (2.0, 2.0)
        assert found["1000000"]["a"]["µs_of_one_more"]["max"] == 4.0

    def test_sizes_run_in_turn(self) -> None:
        """The largest is warm first; then all of them alternate, each with its own figures."""
        did: list[str] = []

        @dataclass
        class One:
            """Counts its events in no time."""

            name: str
            events: int

            def run(self) -> contest.Spent:
                """Take as many microseconds as it has events, twice as many in small logs."""
                did.append(f"{self.name}{self.events}")
                return contest.Spent(
                    self.events, 1.0, self.events * (2e-6 if self.events < 5 else 1e-6)
                )

            def check(self) -> None:
                """Note it."""
                did.append("checked")

        sizes = {n: {name: One(name, n) for name in "ab"} for n in (4, 8)}
        found = contest.by_size(sizes, 2, 3)
        ran = [one for one in did if one != "checked"]
        assert len(did) == 2 * len(ran)
        assert ran[:8] == ["a8", "a8", "a8", "b8", "b8", "b8", "a4", "b4"]
        assert ran[8:] == ["a4", "b4", "a8", "b8"] * 2
        assert found["4"]["a"]["µs_an_event"] == 2.0
        assert found["8"]["b"]["per_cpu_s"]["median"] == 1_000_000


class TestProfile:
    """Where CPU and time are said to go."""

    def test_a_sample_is_of_what_ran(self) -> None:
        """The sign nearest to the leaf decides, though the aggregate pulled it all."""
        task = "[t];a/Executor$TaskRunner.run;b/ObjectAggregationIterator.processInputs"
        assert cpu.phase_of(f"{task};c/JacksonParser.parse;java/lang/String.hash") == "parse JSON"
        assert cpu.phase_of(f"{task};java/util/HashMap.get") == "aggregate"
        assert cpu.phase_of("[t];java/lang/Thread.run") == "rest of the JVM"

    def test_what_grows_with_the_series_is_told(self) -> None:
        """Of the fewest and the most, whatever their order, and what only one of them has."""
        found = {
            1_000: {"by_phase": {"commit": 2.5, "rows": 1.0, "broker": 0.5}},
            1: {"by_phase": {"commit": 0.5, "rows": 1.0, "plan": 0.25}},
            200: {"by_phase": {"commit": 9.0}},
        }
        assert cpu.grown(found) == {"commit": 2.0, "broker": 0.5, "plan": -0.25}

    def test_phases_add_up_to_the_batch(self) -> None:
        """Nothing between the first instant of a batch and its last is left out or told twice."""
        steps = [
            marks.Mark(end=40, wall=10, cpu=1, step="read"),
            marks.Mark(end=55, wall=5, cpu=1, step="dispose"),
            marks.Mark(end=60, wall=2, cpu=1, step="runs"),
            marks.Mark(end=85, wall=5, cpu=1, step="take"),
            marks.Mark(end=88, wall=2, cpu=1, step="merge"),
            marks.Mark(end=99, wall=9, cpu=1, step="commit"),
            marks.Mark(end=110, wall=90, cpu=1, step="job"),
            marks.Mark(end=125, wall=5, cpu=1, step="record"),
        ]
        batch = marks.Mark(end=130, wall=130, cpu=9, step="batch")
        found = phases.phases_of(batch, steps)
        assert found is not None
        assert sum(found.values()) == pytest.approx(130 / 1e6)
        assert found["parse, match, aggregate"] == pytest.approx(20 / 1e6)
        assert phases.phases_of(batch, steps[:-1]) is None
        known = {*found, *phases.AROUND.values()}
        assert known == phases.BUDGET_MS.keys(), "each phase has a budget, and no other"

    def test_a_phase_beyond_its_budget_misses_its_bar(self) -> None:
        """And only that; the budgets leave two fifths of P3's median to all other parts."""
        assert 1.5 * sum(phases.BUDGET_MS.values()) <= 0.65 * 800
        ms = {phase: {"p50": float(budget)} for phase, budget in phases.BUDGET_MS.items()}
        ms["commit to Redis"] = {"p50": 25.1}
        told = phases.bars({"ms": ms, "all of foreachBatch": {"p99": 500.0}})
        verdicts = {one["what"]: judge(one["reach"], one["got"]).reached for one in told}
        missed = [what for what, reached in verdicts.items() if reached is Reached.MISSED]
        assert missed == ["commit to Redis"]
        assert set(verdicts.values()) == {Reached.MISSED, Reached.YES}


PER_CPU_S = {
    1: {"median": 50_000.0, "min": 40_000.0, "max": 62_500.0},
    10: {"median": 20_000.0, "min": 20_000.0, "max": 20_000.0},
}


class TestGrowth:
    """A cost that bends, and a result that is measured in pieces."""

    def test_costs_are_of_an_event_and_of_a_match(self) -> None:
        """Ten matches cost 50 µs together: 5 each, and 3.33 for each that is not the first.

        Of a hundred, those that are not among the ten cost more.
        """
        sizes = growth.sizes(growth.asked(["--only", "matches"]))["matches"]
        found = growth.costs(
            PER_CPU_S | {100: {"median": 2_000, "min": 1_000, "max": 4_000}}, sizes
        )
        assert found["1"] == {
            "µs_an_event": 20.0,
            "min": 16.0,
            "max": 25.0,
            "µs_a_match": 20.0,
            "of_the_smallest": 1.0,
        }
        assert found["10"]["µs_a_match"] == 5.0
        assert found["10"]["µs_a_match_more"] == 3.333
        assert found["100"]["µs_a_match_more"] == 5.0

    def test_one_thing_grows_at_a_time(self) -> None:
        """However many definitions there are, their series are as many together."""
        sizes = growth.sizes(growth.asked([]))["definitions"]
        assert [n * size.combinations for n, size in sizes.items()] == [200] * 3
        assert [(size.metrics, size.types, size.matching) for size in sizes.values()] == [
            (n, n, 1) for n in (1, 10, 100)
        ]

    def test_the_bar_is_the_dearest_size(self) -> None:
        """By the event, and of definitions that all match by the match."""
        sizes = growth.sizes(growth.asked(["--definitions", "1", "10", "--matches", "1", "10"]))
        (by_event,) = growth.bars("definitions", growth.costs(PER_CPU_S, sizes["definitions"]))
        assert (by_event["got"], by_event["what"][:36]) == (
            "150.0 %",
            "growth of the cost of an event, 1 to",
        )
        (by_match,) = growth.bars("matches", growth.costs(PER_CPU_S, sizes["matches"]))
        assert by_match["got"] == "0.0 %"

    def test_one_more_match_has_a_bar_of_its_own(self) -> None:
        """A match among many is cheap for what all share; one more may be dear all the same."""
        found = {
            "1": {"µs_a_match": 20.0},
            "10": {"µs_a_match": 5.0, "µs_a_match_more": 3.0},
            "100": {"µs_a_match": 4.7, "µs_a_match_more": 4.5},
        }
        shared, more = growth.bars("matches", found)
        assert (shared["got"], more["got"]) == ("0.0 %", "50.0 %")
        assert judge(more["reach"], more["got"]).reached is Reached.MISSED
        assert more["what"].endswith("(3.0 µs from 1 to 10, 4.5 µs from 10 to 100)")
        assert growth.DEFAULTS["matches"] == [1, 10, 100]

    def test_what_matches_much_is_warmed_by_fewer_events(self) -> None:
        """As much work before as the others have."""
        options = growth.asked(["--only", "matches", "--warm-events", "1000"])
        sizes = growth.sizes(options)["matches"]
        warmed = [growth.warm_events(size, options) for size in sizes.values()]
        assert warmed == [1_000, 1_000, 100]

    def test_all_of_it_takes_no_longer_than_ninety_minutes(self) -> None:
        """As far as can be told beforehand."""
        options = growth.asked([])
        seconds = [growth.expected_s(of, options) for of in growth.sizes(options).values()]
        assert sum(seconds) <= 90 * 60

    def test_axes_that_were_not_measured_stay(self) -> None:
        """Each keeps its own commit; one that is measured anew replaces its own piece alone."""
        sizes = growth.sizes(growth.asked([]))
        found = growth.costs(PER_CPU_S, {n: sizes["matches"][n] for n in (1, 10)})

        def one(commit: str) -> dict[str, Any]:
            return {"made": {"commit": commit}, "settings": {"rounds": 5}, "sizes": found}

        pieces, figures = growth.merged(None, {"series": one("abc"), "matches": one("abc")})
        assert list(pieces) == ["series", "matches"]
        before = {"pieces": pieces, "figures": figures}
        pieces, figures = growth.merged(before, {"events": one("def"), "matches": one("def")})
        commits = {axis: piece["commit"] for axis, piece in pieces.items()}
        assert commits == {"events": "def", "series": "abc", "matches": "def"}
        assert len(figures["bars"]) == 3, "of two sizes one more match cannot have grown"

    def test_how_long_it_takes_is_said(self) -> None:
        """Fewer rounds take less, and each axis has its own."""
        options = growth.asked(["--only", "events", "series"])
        sizes = growth.sizes(options)
        assert list(sizes) == ["events", "series"]
        usual = growth.expected_s(sizes["events"], options)
        options.rounds = 1
        assert growth.expected_s(sizes["events"], options) < usual
