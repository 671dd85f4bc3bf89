"""What jobs decide: which panes are looked at, what differs, what a mended record is."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import datasketches as ds
import pytest
from weir import names
from weir.admission import Admitted, Refused
from weir.definitions.check import check
from weir.definitions.fold import Definitions
from weir.definitions.job import Replay
from weir.definitions.jobs import JobReport, JobState, job_named, job_record
from weir.definitions.metric import Metric
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    OpenLane,
    TakeOver,
    activation_record,
    lane_record,
    put_record,
    start_record,
    takeover_record,
)
from weir.event import identity_digest
from weir.frequent import Texts
from weir.further import Further, Last
from weir.rows import Row
from weir.series import OTHER, series_digest, shard_of
from weir.sets import Theta
from weir_analytics.jobs.compare import compare
from weir_analytics.jobs.count_again import mending
from weir_analytics.jobs.erase import EraseTask, Tenants
from weir_analytics.jobs.mended import Whole, is_wanted, mended, whole_of
from weir_analytics.jobs.open_jobs import open_jobs
from weir_analytics.jobs.recount import Exact
from weir_analytics.jobs.sample import PaneAt, chain_of, draw, draw_places, panes_of
from weir_analytics.jobs.task import NotNowError

HOUR_MS = 3_600_000
LOG = "events"
TEXT = """
kind: metric
name: amount
events: {type: t}
value: data.x
by: [data.k]
aggregates: [count, sum, p95, "distinct(data.u)"]
keep: {10s: 1h, 1m: 7d}
"""
OTHERS = TEXT.replace("amount", "others")
ERASE = f'{{"do": {{"job": "erase", "subject_hash": "{"0" * 64}"}}}}'
PANE = PaneAt(5, 60, 1_200)
CROWD = [f"=s{i}" for i in range(40)]


def metric() -> Metric:
    """Return the metric that is audited."""
    model = check("metric", "amount", TEXT).model
    assert isinstance(model, Metric)
    return model


def exact(*values: float, members: int = 0) -> Exact:
    """Return what was counted of a series."""
    return Exact(len(values), list(values), {f"u{i}" for i in range(members)})


def row(*values: float, members: int = 0) -> Row:
    """Return the row that a faultless engine would serve."""
    kll = ds.kll_doubles_sketch(200)
    for value in values:
        kll.update(value)
    hll = ds.hll_sketch(12, ds.HLL_8)
    for i in range(members):
        hll.update(f"u{i}")
    packed = bytes(hll.serialize_compact()) if members else None
    return Row(len(values), sum(values), min(values), max(values), packed, bytes(kll.serialize()))


def differences(served: dict[str, Row], counted: dict[str, Exact]) -> list[tuple[str, str]]:
    """Return series and field of what differs, over two shards."""
    shards: list[dict[str, Row]] = [{}, {}]
    for series, found in served.items():
        shards[shard_of(series_digest(series), 2)][series] = found
    return [(d.series, d.field) for d in compare(metric(), 3, PANE, shards, counted)]


def further_metric() -> Metric:
    """Return a metric that keeps all further members."""
    wanted = 'aggregates: [count, sum, stddev, last, "top(data.p, 2)", "theta(data.u)"]'
    text = TEXT.replace(TEXT.splitlines()[6], wanted)
    model = check("metric", "amount", text).model
    assert isinstance(model, Metric)
    return model


def top_of(*texts: str) -> Texts:
    """Return a sketch of frequent texts."""
    sketch = ds.frequent_strings_sketch(10)
    for text in texts:
        sketch.update(text)
    return Texts(len(texts), bytes(sketch.serialize()))


def theta_of(*texts: str) -> Theta:
    """Return a sketch of a set."""
    sketch = ds.update_theta_sketch(12)
    for text in texts:
        sketch.update(text)
    return Theta(12, bytes(sketch.compact().serialize()))


class TestCompare:
    def test_what_is_right_differs_in_nothing(self) -> None:
        """Exact parts and sketches of thousands of values, whose estimates are off a little."""
        many = [float(i) for i in range(5_000)]
        served = {"=a": row(*many, members=3_000), "=b": row(0.1, 0.2, members=2)}
        counted = {"=a": exact(*many, members=3_000), "=b": exact(0.1, 0.2, members=2)}
        assert differences(served, counted) == []

    @pytest.mark.parametrize(
        ("served", "counted", "field"),
        [
            (row(1.0, 2.0, members=2), exact(1.0, members=2), "n"),
            (row(1.0, 2.0, members=2), exact(1.0, 3.0, members=2), "sum"),
            (row(2.0, 2.0, members=2), exact(1.0, 3.0, members=2), "min"),
            (row(1.0, 2.0, members=2), exact(0.0, 3.0, members=2), "max"),
            (row(1.0, 2.0, members=2), exact(1.0, 2.0, members=3), "distinct"),
            (row(1.0, 2.0, members=2), exact(1.0, 2.0, members=1), "distinct"),
        ],
    )
    def test_each_field_is_compared(self, served: Row, counted: Exact, field: str) -> None:
        """One field that is wrong is named, whatever the others say."""
        assert ("=a", field) in differences({"=a": served}, {"=a": counted})

    def test_a_sketch_that_lacks_values_differs(self) -> None:
        """The number of values in a sketch is exact, its estimates are not."""
        served = row(1.0, 2.0, members=2)
        served.kll = row(1.0, members=2).kll
        assert differences({"=a": served}, {"=a": exact(1.0, 2.0, members=2)}) == [("=a", "values")]

    def test_a_percentile_far_from_the_truth_differs(self) -> None:
        """A sketch of other values, as many, is beyond twice its bound."""
        served = row(*map(float, range(5_000)), members=2)
        served.kll = row(*[float(i % 100) for i in range(5_000)]).kll
        counted = exact(*map(float, range(5_000)), members=2)
        assert differences({"=a": served}, {"=a": counted}) == [("=a", "p95")]

    def test_what_few_metrics_ask_for_is_compared(self) -> None:
        """Spread, newest value, set and frequent texts: right, and each of them wrong."""
        model = further_metric()
        exact_ = Exact(3, [1.0, 2.0, 6.0], last=(9, b"i" * 16, 6.0, 6.0))
        exact_.in_set, exact_.texts = {"a", "b"}, Counter(a=2, b=1)
        right = Further(14.0, Last(9, b"i" * 16, 6.0), top_of("a", "a", "b"), theta_of("a", "b"))

        def fields(**wrong: Any) -> list[str]:
            found = Row(3, 9.0, 1.0, 6.0, further=replace(right, **wrong))
            shards: list[dict[str, Row]] = [{"": found}]
            return [d.field for d in compare(model, 1, PANE, shards, {"": exact_})]

        assert fields() == []
        assert fields(spread=14.1) == ["spread"]
        assert fields(spread=math.nan) == ["spread"]
        assert fields(last=Last(8, b"i" * 16, 6.0)) == ["last"]
        assert fields(top=top_of("a", "b")) == ["top"]
        assert fields(top=top_of("a", "b", "b")) == ["top"]
        assert fields(theta=theta_of("a", "b", "c")) == ["theta"]
        assert fields(theta=None, top=None, spread=None, last=None) == [
            "spread",
            "last",
            "theta",
            "top",
        ]

    def test_both_ways_round(self) -> None:
        """A series that is not served, and one that is not in the log."""
        assert differences({}, {"=a": exact(1.0)}) == [("=a", "n")]
        assert differences({"=a": row(1.0)}, {}) == [("=a", "n")]

    def test_what_has_no_row_of_its_own_is_other(self) -> None:
        """In a capped pane the rest is compared together, in its own shard."""
        shards = capped()
        assert told(shards) == []
        shards[0][OTHER] = row(*[1.0] * (shards[0][OTHER].n - 1), members=1)
        assert told(shards) == [(OTHER, "n")]

    def test_who_has_a_row_is_compared_too(self) -> None:
        """The smallest digests of each shard do, no fewer and no more and no others."""
        shards = capped()
        (least, *_), (greatest,) = shards[0], by_digest(0)[3:4]
        shards[0][greatest] = shards[0].pop(least)
        assert sorted(told(shards)) == sorted([(least, "n"), (greatest, "n")])
        shards = capped(limit=2)
        assert len(told(shards)) == 4
        assert told([{s: row(1.0, members=1) for s in by_digest(n)} for n in (0, 1)]) != []

    def test_an_unsure_event_may_have_made_a_series(self) -> None:
        """Then it has a row in place of another one; else the pane is as without it."""
        least = by_digest(0)[0]
        unsure = {least: Exact(unsure=1)}
        assert told(capped(), unsure) == []
        shards = capped()
        shards[0] = capped(limit=4)[0]
        del shards[0][least]
        assert told(shards, unsure) == []


def by_digest(shard: int) -> list[str]:
    """Return the series of a crowded pane in a shard, in the order in which they get rows."""
    inside = (s for s in CROWD if shard_of(series_digest(s), 2) == shard)
    return sorted(inside, key=series_digest)


def capped(limit: int = 3) -> list[dict[str, Row]]:
    """Return a pane of 40 series, of which so many have a row in each of two shards."""
    shards = []
    for shard in (0, 1):
        own, rest = by_digest(shard)[:limit], by_digest(shard)[limit:]
        rows = {series: row(1.0, members=1) for series in own}
        shards.append(rows | {OTHER: row(*[1.0] * len(rest), members=1)})
    return shards


def told(shards: list[dict[str, Row]], more: dict[str, Exact] | None = None) -> list[Any]:
    """Return series and field of what differs in the crowded pane of a metric with 6 series."""
    model = metric().model_copy(update={"max_series": 6})
    counted = {series: exact(1.0, members=1) for series in CROWD} | (more or {})
    return [(d.series, d.field) for d in compare(model, 3, PANE, shards, counted)]


def folded(*records: tuple[bytes, bytes]) -> Definitions:
    """Return the fold of some records."""
    fold = Definitions()
    for offset, (key, value) in enumerate(records):
        assert fold.apply(offset, key, value) is not None
    return fold


def two_versions() -> Definitions:
    """Return a metric whose second version serves from 1 200 s on."""
    first, second = (
        Counting(vid, "default", "amount", number, {0: begin}, after=after, cut=cut)
        for vid, number, begin, after, cut in (
            (1, 1, 0, None, None),
            (3, 2, 50, 1, {10: 1_200, 60: 1_200}),
        )
    )
    return folded(
        start_record(DriverStart("i", 2, "start"), at_ms=0),
        put_record(Edit("default", "metric", "amount", None, "test", 0), TEXT),
        activation_record(first, op="start", fence=0, at_ms=0),
        put_record(Edit("default", "metric", "amount", 1, "test", 0), TEXT),
        activation_record(second, op="start", fence=0, at_ms=0),
    )


def filled(*more: tuple[bytes, bytes]) -> Definitions:
    """Return a metric that was activated in a log, and filled from offset 3 of it."""
    begun = Counting(1, "default", "amount", 1, {0: 50}, fills=True, topic_id=LOG)
    lane = OpenLane("backfill", LOG, {0: 3}, {0: 50, 1: 20}, (1,))
    return folded(
        start_record(DriverStart("i", 2, "start"), at_ms=0),
        put_record(Edit("default", "metric", "amount", None, "test", 0), TEXT),
        activation_record(begun, op="start", fence=0, at_ms=0),
        lane_record(lane, fence=0, at_ms=0),
        takeover_record(TakeOver(1, None, {0: 55}, None, topic_id=LOG), fence=0, at_ms=0),
        *more,
    )


class TestSample:
    def test_a_pane_belongs_to_the_version_that_serves_it(self) -> None:
        """Before the cut it is the predecessor's, from there on the successor's."""
        chain = chain_of(two_versions(), "default", "amount", LOG)
        at = [1_195_000, 1_200_000]
        panes = panes_of(chain, at, since_ms=0, through_ms=1_300_000)
        assert panes == [
            PaneAt(1, 10, 1_190),
            PaneAt(1, 60, 1_140),
            PaneAt(3, 10, 1_200),
            PaneAt(3, 60, 1_200),
        ]
        assert [dict(version.begin) for version in chain] == [{0: 50}, {0: 0}]

    def test_what_the_log_or_the_store_no_longer_has_is_left_out(self) -> None:
        """Both edges: the first whole pane is in, one that expires is out."""
        chain = chain_of(two_versions(), "default", "amount", LOG)
        assert panes_of(chain, [1_190_000], since_ms=1_190_000, through_ms=1_200_000) == [
            PaneAt(1, 10, 1_190)
        ]
        over_ms = 1_200_000 + HOUR_MS
        assert panes_of(chain, [1_195_000], since_ms=0, through_ms=over_ms) == [
            PaneAt(1, 60, 1_140)
        ]
        assert PaneAt(1, 10, 1_190) in panes_of(
            chain, [1_195_000], since_ms=0, through_ms=over_ms - 1
        )

    def test_a_pane_is_kept_as_long_as_its_own_version_keeps_it(self) -> None:
        """The successor's longer keep does not bring back what the store has let go of."""
        new, old = chain_of(two_versions(), "default", "amount", LOG)
        keep = dict.fromkeys(new.metric.keep, 90 * HOUR_MS)
        longer = replace(new, metric=new.metric.model_copy(update={"keep": keep}))
        at, over_ms = [1_190_000, 1_210_000], 1_300_000 + 2 * HOUR_MS
        found = panes_of([longer, old], at, since_ms=0, through_ms=over_ms)
        assert [pane for pane in found if pane.res_s == 10] == [PaneAt(3, 10, 1_210)]
        older = replace(old, metric=longer.metric)
        found = panes_of([new, older], at, since_ms=0, through_ms=over_ms)
        assert [pane for pane in found if pane.res_s == 10] == []

    def test_a_version_that_a_lane_filled_is_counted_from_where_that_began(self) -> None:
        """The offsets of its activation say from where live counting did."""
        begins = [dict(version.begin) for version in chain_of(filled(), "default", "amount", LOG)]
        assert begins == [{0: 3, 1: 0}]

    def test_a_lane_of_another_log_has_filled_nothing(self) -> None:
        """Its offsets are not of this one, whichever versions it names."""
        lane = OpenLane("backfill", "other", {0: 0}, {0: 50, 2: 20}, (1,))
        fold = filled(lane_record(lane, fence=0, at_ms=0))
        begins = [dict(version.begin) for version in chain_of(fold, "default", "amount", LOG)]
        assert begins == [{0: 3, 1: 0}]

    def test_offsets_of_a_log_that_was_given_up_mean_nothing(self) -> None:
        """After `adopt` of a log made anew all of it is counted, so all of it is recounted."""
        begins = [dict(version.begin) for version in chain_of(filled(), "default", "amount", "new")]
        assert begins == [{}]

    def test_what_had_ended_in_a_log_that_was_given_up_counts_nothing(self) -> None:
        """A version that was stopped there is not counted in the one that took its place."""
        stop = Counting(1, "default", "amount", 1, {0: 60}, topic_id=LOG)
        fold = filled(activation_record(stop, op="stop", fence=0, at_ms=0))

        def ends(topic_id: str) -> list[object]:
            return [version.finish for version in chain_of(fold, "default", "amount", topic_id)]

        assert ends(LOG) == [{0: 60}]
        assert ends("new") == [{}]

    def test_places_of_the_log_are_drawn_by_how_many_records_there_are(self) -> None:
        """An empty partition has none, and a seed draws the same."""
        start, end = {0: 10, 1: 5}, {0: 20, 1: 5, 2: 1_000}
        drawn = draw_places(7, start, end, 400)
        assert drawn == draw_places(7, start, end, 400) != draw_places(8, start, end, 400)
        assert all(start.get(p, 0) <= n < end[p] for p, n in drawn)
        assert 0 < sum(p == 0 for p, _n in drawn) < 20
        assert {p for p, _n in drawn} == {0, 2}
        assert draw_places(7, end, end, 5) == []

    def test_a_seed_draws_the_same(self) -> None:
        """So an audit that begins again after a crash looks at the same panes."""
        drawn = draw(7, 1_000, 2_000, 50)
        assert drawn == draw(7, 1_000, 2_000, 50) != draw(8, 1_000, 2_000, 50)
        assert all(1_000 <= at < 2_000 for at in drawn)


class TestMending:
    AUDIT = '{"do": {"job": "audit", "mend": true}}'

    def fold(self, by: str) -> Definitions:
        """Return a metric whose second version somebody has made, and audits by two."""
        return folded(
            put_record(Edit("a", "metric", "amount", None, "test", 0), TEXT),
            put_record(Edit("a", "job", "nightly", None, "schedule", 0), self.AUDIT),
            put_record(Edit("a", "job", "asked", None, "key:1", 0), self.AUDIT),
            put_record(Edit("a", "job", "gone", None, "key:1", 0), ERASE),
            put_record(Edit("a", "metric", "amount", 1, by, 0), TEXT),
        )

    def told(self, fold: Definitions, job: str, vid: int = 4) -> tuple[list[int], list[str]]:
        """Return what a job counts again, and what it tells, of a metric that differs."""
        asked = fold.get("a", "job", job)
        assert asked is not None
        found = mending(fold, asked, {"amount": vid})
        return [one.vid for one in found.again], list(found.still)

    @pytest.mark.parametrize("mender", ["nightly", "asked"])
    def test_what_a_mend_has_made_is_told_and_not_mended_again(self, mender: str) -> None:
        """Else the log is counted again each night; whoever asks for it is obeyed."""
        fold = self.fold(f"job:{mender}")
        assert self.told(fold, "nightly") == ([], ["amount"])
        assert self.told(fold, "asked") == ([4], ["amount"])

    @pytest.mark.parametrize("by", ["key:1", "job:gone", "job:nobody"])
    def test_any_other_version_is_mended(self, by: str) -> None:
        """Also one that an erasure has made; but not one that is newer than what was seen."""
        assert self.told(self.fold(by), "nightly") == ([4], [])
        assert self.told(self.fold(by), "nightly", vid=0) == ([], [])


class TestErasing:
    HOUR_MS = 3_600_000

    def again(self, hours: int, now_ms: int, *, own: bool = False) -> list[str]:
        """Return what an erasure appends at an instant, 0 being when another one's was made."""
        by = "job:mine" if own else "job:before"
        fold = folded(
            put_record(Edit("a", "metric", "amount", None, "test", 0), TEXT),
            put_record(Edit("a", "job", "before", None, "key:1", 0), ERASE),
            put_record(Edit("a", "metric", "amount", 1, by, 1_000 * self.HOUR_MS), TEXT),
            put_record(Edit("a", "metric", "others", None, "test", 0), OTHERS),
            put_record(Edit("a", "job", "mine", None, "key:1", 0), ERASE),
        )
        appended: list[str] = []
        definitions = SimpleNamespace(fold=fold, append=lambda r: appended.append(r.key.decode()))
        cycle: Any = SimpleNamespace(
            stores=SimpleNamespace(definitions=definitions),
            settings=SimpleNamespace(shards=1, erase_hours=hours),
            clock=SimpleNamespace(now_ms=lambda: 1_000 * self.HOUR_MS + now_ms),
        )
        asked = job_named(fold, "a", "mine")
        assert asked is not None
        with pytest.raises(NotNowError) as caught:
            EraseTask(cycle.settings, asked, Tenants()).step(cycle, lambda: False)
        return [*appended, str(caught.value)]

    def test_erasures_of_a_day_are_counted_together(self) -> None:
        """One may wait, and says until when; the next time is for all that came meanwhile."""
        assert self.again(24, 24 * self.HOUR_MS - 1) == [
            "metrics are counted again at 1970-02-12T16:00+00:00, for all erasures until then "
            "at once"
        ]
        metrics = ["a/metric/amount", "a/metric/others"]
        counted = [*metrics, "2 metrics are being counted again"]
        assert self.again(24, 24 * self.HOUR_MS) == counted
        assert self.again(0, 1) == counted

    def waits_for(self, *records: tuple[bytes, bytes]) -> tuple[list[str], str]:
        """Return what an erasure at offset 3 appends, and what it waits for, a week later."""
        fold = folded(
            start_record(DriverStart("i", 1, "start"), at_ms=0),
            put_record(Edit("a", "metric", "amount", None, "test", 0), TEXT),
            activation_record(Counting(1, "a", "amount", 1, {0: 0}), op="start", fence=0, at_ms=0),
            put_record(Edit("a", "job", "mine", None, "key:1", 0), ERASE),
            put_record(Edit("a", "job", "before", None, "key:1", 0), ERASE),
            *records,
        )
        appended: list[str] = []
        definitions = SimpleNamespace(fold=fold, append=lambda r: appended.append(r.key.decode()))
        cycle: Any = SimpleNamespace(
            stores=SimpleNamespace(definitions=definitions),
            settings=SimpleNamespace(shards=1, erase_hours=0),
            clock=SimpleNamespace(now_ms=lambda: 7 * 24 * self.HOUR_MS),
        )
        asked = job_named(fold, "a", "mine")
        assert asked is not None
        with pytest.raises(NotNowError) as caught:
            EraseTask(cycle.settings, asked, Tenants()).step(cycle, lambda: False)
        return appended, str(caught.value)

    def test_what_fills_for_another_erasure_is_not_begun_anew(self) -> None:
        """Slower to fill than erasures come, it would never serve."""
        begun = Counting(2, "a", "amount", 2, {0: 9}, after=1, fills=True)
        fold = folded(
            put_record(Edit("a", "job", "before", None, "key:1", 0), ERASE),
            put_record(Edit("a", "metric", "amount", None, "test", 0), TEXT),
            put_record(Edit("a", "metric", "amount", 1, "job:before", 0), TEXT),
            start_record(DriverStart("i", 4, "start"), at_ms=0),
            activation_record(begun, op="start", fence=3, at_ms=0),
            put_record(Edit("a", "job", "mine", None, "key:1", 0), ERASE),
        )
        cycle: Any = SimpleNamespace(
            stores=SimpleNamespace(definitions=SimpleNamespace(fold=fold)),
            settings=SimpleNamespace(shards=1, erase_hours=0),
            clock=SimpleNamespace(now_ms=lambda: self.HOUR_MS),
        )
        asked = job_named(fold, "a", "mine")
        assert asked is not None
        with pytest.raises(NotNowError, match="still being counted again for an erasure before"):
            EraseTask(cycle.settings, asked, Tenants()).step(cycle, lambda: False)

    def test_over_a_version_that_cannot_be_read_nothing_is_written(self) -> None:
        """It would conflict, again and again; whoever follows the job is told what to do."""
        newer = put_record(Edit("a", "metric", "amount", 1, "newer", 0), "kind: metric\nfrom: 2030")
        appended, why = self.waits_for(newer)
        assert appended == []
        assert why.startswith('metric "amount" has a version that this release cannot read')

    def test_what_is_counted_again_is_waited_for(self) -> None:
        """The version before serves until then."""
        assert self.waits_for() == (["a/metric/amount"], "1 metric is being counted again")

    def test_it_does_not_wait_for_what_it_made_itself(self) -> None:
        """A crash between two metrics leaves some to be made."""
        assert "a/metric/others" in self.again(24, 1, own=True)


class TestOrder:
    def test_a_tenant_with_many_jobs_delays_another_by_one(self) -> None:
        """Adopt first, then what is begun, then the tenant whose last job ended first."""
        audit, adopt = '{"do": {"job": "audit"}}', '{"do": {"job": "adopt", "reason": "x"}}'
        asked = [("a", audit), ("a", audit), ("a", audit), ("b", audit), ("a", adopt)]
        jobs = [
            put_record(Edit(tenant, "job", f"j{i}", None, "test", 0), text)
            for i, (tenant, text) in enumerate(asked)
        ]
        start = start_record(DriverStart("i", 1, "start"), at_ms=0)

        def order(*reports: JobReport) -> list[int]:
            said = [job_record(report, fence=0) for report in reports]
            return [one.definition.vid for one in open_jobs(folded(start, *jobs, *said))]

        assert order() == [5, 1, 2, 3, 4]
        assert order(JobReport(1, JobState.DONE, 7)) == [5, 4, 2, 3]
        begun = JobReport(2, JobState.RUNNING, 8)
        assert order(JobReport(1, JobState.DONE, 7), begun) == [5, 2, 4, 3]


def copy(value: bytes, *, tenant: str = "acme", source: str = "web") -> Whole:
    """Return a copy of a record that could not be used."""
    return Whole("weir.events/2/7", tenant, source, "time_invalid", 1_800_000_000_000, value, False)


class TestMended:
    def test_an_event_comes_back_with_its_own_time_and_identity(self) -> None:
        """Tenant and source are those of the credential that it came by."""
        text = (
            b'{"specversion":"1.0","id":"a","source":"s","type":"t","time":"2027-01-15T07:00:00Z"}'
        )
        found = mended(copy(text))
        assert isinstance(found, Admitted)
        assert found.digest == identity_digest("acme", "s", "a")
        assert found.time_ms == 1_799_996_400_000
        assert b'"weirsource":"web"' in found.value

    def test_a_clients_item_is_read_as_it_was(self) -> None:
        """A call of Segment's that is mended comes back as that call, by the mapping it names."""
        text = b'{"event":"e","userId":"u","messageId":"m","properties":{"a":1}}'
        found = mended(replace(copy(text), mapped="segment.track"))
        assert isinstance(found, Admitted)
        assert (b'"type":"dev.weir.segment.track"' in found.value, found.key) == (True, b"u")
        assert found.digest == identity_digest("acme", "urn:weir:src:web", "m")
        by_type = mended(replace(copy(text), mapped="segment"))
        assert isinstance(by_type, Refused)
        assert by_type.detail.startswith("type must be one of track")

    def test_a_mapping_of_a_newer_release_is_passed_over(self) -> None:
        """An item that names one that is not known is read as any other."""
        assert mended(replace(copy(b'{"plan":"pro"}'), mapped="later")) == mended(
            copy(b'{"plan":"pro"}')
        )

    def test_what_has_no_id_or_time_gets_the_same_ones_each_time(self) -> None:
        """Made of its origin, and of when it was received."""
        found = mended(copy(b'{"plan":"pro"}'))
        assert isinstance(found, Admitted)
        assert found == mended(copy(b'{"plan":"pro"}'))
        assert found.time_ms == 1_800_000_000_000

    def test_what_another_producer_wrote_is_judged_as_such(self) -> None:
        """It must be a CloudEvent by itself."""
        found = mended(copy(b'{"plan":"pro"}', tenant="default", source="kafka"))
        assert isinstance(found, Refused)
        assert found.reason == "not_an_event"

    def test_copies_of_whole_records_only(self) -> None:
        """Not what one metric could not use, nor the note that a record was put back."""
        headers: dict[str, bytes | None] = {
            names.HEADER_ORIGIN: b"weir.events/2/7",
            names.HEADER_AT: b"5",
            names.HEADER_TENANT: b"acme",
            names.HEADER_REASON: b"too_deep",
        }
        found = whole_of(headers, b"x")
        assert found == Whole("weir.events/2/7", "acme", "", "too_deep", 5, b"x", False)
        mapped = whole_of(headers | {names.HEADER_MAPPING: b"segment"}, b"x")
        assert mapped == replace(found, mapped="segment")
        assert found is not None
        for said, left_out in ((b"12345", 12_345), (b"many", 0), (b"9" * 5_000, 0)):
            more = whole_of(headers | {names.HEADER_LEFT_OUT: said}, b"x")
            assert more == replace(found, left_out=left_out)
        assert whole_of(headers | {names.HEADER_VERSION: b"7"}, b"x") is None
        assert whole_of(headers | {names.HEADER_REPLAYED: b"7"}, None) is None
        assert whole_of({}, b"x") is None

    def test_only_what_was_asked_for(self) -> None:
        """By reason, source and time, and never another tenant's."""
        found = copy(b"x")
        at_ms = found.at_ms
        assert is_wanted(Replay(), "acme", found)
        assert not is_wanted(Replay(), "other", found)
        assert not is_wanted(Replay(reason="too_deep"), "acme", found)
        assert not is_wanted(Replay(source="app"), "acme", found)
        for since, until, wanted in (
            (at_ms, at_ms + 1, True),
            (at_ms + 1, at_ms + 2, False),
            (at_ms - 1, at_ms, False),
        ):
            asked = Replay().model_copy(update={"since": since, "until": until})
            assert is_wanted(asked, "acme", found) is wanted
