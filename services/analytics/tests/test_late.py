"""Late events in one pass: how late each source's were, and who sent those that may correct."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
from weir import names
from weir.lateness import DAY, EDGES_MS, HOUR, MINUTE
from weir.series import encode_series
from weir_analytics.panes.accounts import LATENESS, TYPE_LATENESS
from weir_analytics.panes.arrow_plan import make_plan
from weir_analytics.panes.inbox import MAX_LATE
from weir_analytics.panes.outcome import outcome_of
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.versions import Version

from .log_frames import (
    EVENT,
    HORIZONS,
    NOW_MS,
    batch_of,
    counted,
    event,
    log_of,
    open_shards,
    run_batch,
)
from .test_plan import BEYOND_MS, metric, panes_in, plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .log_frames import Record

pytestmark = [pytest.mark.spark, pytest.mark.redis]


def late(event_id: str, late_ms: int, event_type: str = "t") -> Record:
    """Return an event received some time after it happened."""
    return event(event_id, NOW_MS - late_ms, event_type), EVENT, NOW_MS


class TestLateness:
    def test_every_counted_event_is_in_the_bucket_of_its_lateness(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """On each edge and one beyond it; what is no counted event is not there."""
        edges = [ms for ms in EDGES_MS if ms < 50 * DAY]
        ages = [-HOUR, *edges, *(ms + 1 for ms in edges)]
        log = [late(str(i), age) for i, age in enumerate(ages)]
        log += [late("0", MINUTE), late("old", BEYOND_MS + 1), (b"{", EVENT, NOW_MS)]
        batch = batch_of(tmp_path, len(log), redis_url=redis_url, copies="none")
        open_shards(redis_url, batch)
        run_batch(spark, log_of(spark, log), plan_of(columns=columns), batch)

        hour = NOW_MS // HOUR * 3_600
        panes = {key: rows for key, rows in panes_in(redis_url).items() if key[0] == LATENESS}
        expected: Counter[str] = Counter()
        for age in ages:
            expected[next(f"=acme|=web|={edge}" for edge in EDGES_MS if age <= edge)] += 1
        assert {k: {s: r.n for s, r in v.items()} for k, v in panes.items()} == {
            (LATENESS, 3600, hour): expected
        }

    def test_so_it_is_of_each_type(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """Whatever a type is called, and how many received minutes its events came in."""
        told = {("t", HOUR): 2, ("t", 0): 1, ("a|b\\c", MINUTE): 3, ("ä" * 90, MINUTE): 1}
        log: list[Record] = [
            (event(f"{kind}{age}{n}", NOW_MS - age + n * MINUTE, kind), EVENT, NOW_MS + n * MINUTE)
            for (kind, age), count in told.items()
            for n in range(count)
        ]
        log = sorted([*log, late("t00", 0), (b"{", EVENT, NOW_MS)], key=lambda record: record[2])
        batch = batch_of(tmp_path, len(log), redis_url=redis_url, copies="none")
        open_shards(redis_url, batch)
        run_batch(spark, log_of(spark, log), plan_of(columns=columns), batch)

        hour = NOW_MS // HOUR * 3_600
        rows = panes_in(redis_url)[TYPE_LATENESS, 3600, hour]
        assert {series: row.n for series, row in rows.items()} == {
            encode_series(("acme", "web", str(age), kind)): n for (kind, age), n in told.items()
        }
        with redis.Redis.from_url(redis_url) as client:
            for vid in (LATENESS, TYPE_LATENESS):
                listed = client.smembers(names.listed_key(0, vid, "acme"))
                assert listed == set(client.hkeys(names.names_key(0, vid)))


class TestSenders:
    def test_only_what_is_late_is_told(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """Of each tenant what fell into panes of its own that were final; no duplicates."""
        start_s = NOW_MS // 1000 - 70  # where a pane of ten seconds ends that is final by now
        edge = [
            (event(name, at_ms, kind, tenant), EVENT, NOW_MS)
            for name, at_ms, kind, tenant in (
                ("ahead", start_s * 1000, "t", "acme"),
                ("on", start_s * 1000 - 1, "other", "acme"),
                ("on", start_s * 1000 - 1, "other", "acme"),
                ("day", NOW_MS - DAY, "t", "acme"),
                ("day-2", NOW_MS - DAY + 9_999, "t", "acme"),
                ("ahead", NOW_MS, "t", "strict"),
                ("on", NOW_MS - 1, "t", "strict"),
                ("day", NOW_MS - DAY, "t", "nobody"),
            )
        ]
        batch = batch_of(
            tmp_path, len(edge), redis_url=redis_url, copies="none", final_through_ms=NOW_MS
        )
        open_shards(redis_url, batch)
        versions = [
            Version(vid, tenant, "m", ((res_s, 90 * 86_400),), lateness_ms=lateness_s * 1000)
            for vid, tenant, res_s, lateness_s in (
                (1, "acme", 10, 70),
                (2, "acme", 60, 61),
                (3, "strict", 1, 0),
            )
        ]
        plan = make_plan([Counted(v, metric()) for v in versions], (HORIZONS,), columns=columns)
        outcome = outcome_of(run_batch(spark, log_of(spark, edge), plan, batch), {})

        day_s, minute_s = (NOW_MS - DAY) // 1000, NOW_MS // 60_000 * 60
        assert set(outcome.late) == {
            ("acme", "web", "other", start_s - 10, minute_s, 1),
            ("acme", "web", "t", day_s, minute_s, 2),
            ("strict", "web", "t", NOW_MS // 1000 - 1, minute_s, 1),
        }

    def test_who_sent_what_a_version_counted_is_told_by_series(
        self, spark: SparkSession, redis_url: str, tmp_path: Path
    ) -> None:
        """Not of whom `where` leaves out, nor of another series, though all are of one pane."""
        at_ms = NOW_MS - HOUR

        def sent(event_id: str, source: str, k: str, x: int = 5, y: object = 1) -> Record:
            return event(event_id, at_ms, source=source, k=k, x=x, y=y), EVENT, NOW_MS

        log = [
            *(sent(f"w{n}", "web", "a") for n in range(3)),
            sent("w0", "web", "a"),
            sent("w-b", "web", "b"),
            sent("app", "app", "b"),
            sent("low", "low", "a", x=1),
            sent("bad", "bad", "a", y="no number"),
            (event("prompt", source="on_time", k="a", x=5, y=1), EVENT, NOW_MS),
        ]
        batch = batch_of(
            tmp_path, len(log), redis_url=redis_url, copies="none", final_through_ms=NOW_MS
        )
        open_shards(redis_url, batch)
        chosen = metric(by=["data.k"], where="data.x > 3", value="data.y")
        # In the second one's panes nothing is late.
        versions = [
            Version(vid, "acme", "m", ((10, 90 * 86_400),), lateness_ms=lateness_s * 1000)
            for vid, lateness_s in ((1, 30), (2, HOUR // 1000))
        ]
        plan = make_plan([Counted(version, chosen) for version in versions], (HORIZONS,))
        outcome = outcome_of(run_batch(spark, log_of(spark, log), plan, batch), {})

        place = (at_ms // 10_000 * 10, NOW_MS // 60_000 * 60)
        assert set(outcome.late_rows) == {
            ("acme", 1, "web", "=a", *place, 3),
            ("acme", 1, "web", "=b", *place, 1),
            ("acme", 1, "app", "=b", *place, 1),
        }
        assert {row[1] for row in outcome.late} == {"web", "app", "low", "bad"}

    def test_of_a_tenant_with_too_many_no_row_is_told(
        self, spark: SparkSession, redis_url: str, tmp_path: Path
    ) -> None:
        """Some are worth nothing without the others; another tenant's are told."""
        log = [
            (event(f"e{n}", NOW_MS - HOUR, k=f"k{n}"), EVENT, NOW_MS)
            for n in range(MAX_LATE * 3 // 4)
        ]
        log.append((event("e", NOW_MS - HOUR, tenant="zeta", k="k"), EVENT, NOW_MS))
        batch = batch_of(
            tmp_path, len(log), redis_url=redis_url, copies="none", final_through_ms=NOW_MS
        )
        open_shards(redis_url, batch)
        versions = [
            Version(vid, tenant, "m", ((10, 90 * 86_400),), max_series=MAX_LATE)
            for vid, tenant in ((1, "acme"), (2, "acme"), (3, "zeta"))
        ]
        by_k = metric(by=["data.k"])
        plan = make_plan([Counted(version, by_k) for version in versions], (HORIZONS,))
        (report,) = run_batch(spark, log_of(spark, log), plan, batch)

        assert report.late_rows_cut == ["acme"]
        place = ((NOW_MS - HOUR) // 10_000 * 10, NOW_MS // 60_000 * 60)
        assert report.late_rows == [("zeta", 3, "web", "=k", *place, 1)]

    def test_without_late_events_nothing_is_told(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """An ordinary batch, with metrics and without, carries nothing of it; nor does a lane."""
        prompt, old = ([one("1"), one("2")] for one in (counted, partial(late, late_ms=DAY)))
        for place, plan, log, final_through_ms in (
            ("a", plan_of(metric(), columns=columns), prompt, NOW_MS),
            ("b", plan_of(columns=columns), old, NOW_MS),
            ("c", plan_of(metric(), columns=columns), old, None),
        ):
            batch = batch_of(
                tmp_path / place, 2, redis_url=redis_url, final_through_ms=final_through_ms
            )
            open_shards(redis_url, batch)
            (report,) = run_batch(spark, log_of(spark, log), plan, batch)
            assert (report.late, report.late_rows) == ([], [])
            assert "late_left_out" not in report.work
