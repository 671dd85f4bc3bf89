"""One whole pass over finite logs: what is in Redis afterwards, and the account of all."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
from weir import names, rows
from weir.definitions.history import Horizons
from weir.definitions.metric import Metric
from weir.erasure import subject_hash
from weir.rows import Row
from weir.series import OTHER
from weir.sketches import distinct_in, hll_union
from weir_analytics.panes.accounts import LEDGER, TYPES, USE
from weir_analytics.panes.arrow_plan import AnyPlan, make_plan
from weir_analytics.panes.erased import Erased
from weir_analytics.panes.outcome import outcome_of
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.versions import Version

from .log_frames import (
    EVENT,
    HORIZONS,
    NOW_MS,
    SAMPLED,
    TICK,
    batch_of,
    counted,
    event,
    log_of,
    open_shards,
    run_batch,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.redis]

BEYOND_MS = HORIZONS.beyond_ms
NOW_S = NOW_MS // 1000

Panes = dict[tuple[int, int, int], dict[str, rows.Row]]


def metric(**members: Any) -> Metric:
    """Return a checked metric."""
    given = {"kind": "metric", "name": "m", "events": {"type": "t"}, "aggregates": ["count"]}
    return Metric.model_validate(given | members)


def plan_of(
    *metrics: Metric, guarded: bool = False, shards: int = 1, columns: bool = False, **spans: Any
) -> AnyPlan:
    """Return the plan of metrics of tenant `acme`, with ids from 1 on."""
    found = [
        Counted(
            Version(
                vid,
                "acme",
                m.name,
                tuple((r // 1000, k // 1000) for r, k in m.keep_ms.items()),
                max_series=m.max_series,
                **spans,
            ),
            m,
        )
        for vid, m in enumerate(metrics, 1)
    ]
    return make_plan(found, (HORIZONS,), guarded=guarded, shards=shards, columns=columns)


def panes_in(url: str, shards: int = 1) -> Panes:
    """Return every pane of Redis: (version, length, start) -> series -> row."""
    client: Any = redis.Redis.from_url(url)
    found: Panes = {}
    for shard in range(shards):
        for key in client.keys(f"{names.shard_prefix(shard)}p:*"):
            vid, res_s, start_s = (int(x) for x in key.decode().split(":")[-3:])
            texts = client.hgetall(names.names_key(shard, vid))
            pane = found.setdefault((vid, res_s, start_s), {})
            for short, packed in client.hgetall(key).items():
                series = OTHER if short == b"\0\0" else texts[short].decode()
                pane[series] = rows.merge(pane.get(series, Row(0)), rows.decode(packed))
    client.close()
    return found


def ledger(panes: Panes) -> Counter[str]:
    """Return events by disposition, over all minutes and sources."""
    tally: Counter[str] = Counter()
    for (vid, _res, _start), series in panes.items():
        for text, row in series.items():
            if vid == LEDGER:
                tally[text.rpartition("|=")[2]] += row.n
    return tally


class TestPass:
    def test_events_become_panes_of_every_resolution(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """Each event is in the pane of its time and series, at each kept resolution."""
        m = metric(
            value="data.x",
            by=["data.k"],
            aggregates=["count", "sum", "min", "max", "p50", "distinct(data.u)"],
            keep={"10s": "1h", "1m": "1d"},
        )
        base = NOW_MS - NOW_MS % 60_000
        log = [
            counted("1", base, x=1, k="a", u="p"),
            counted("2", base + 9_999, x=3, k="a", u="q"),
            counted("3", base + 10_000, x=5, k="a", u="q"),
            counted("4", base + 10_000, x=7, k="b|c", u="q"),
        ]
        batch = batch_of(tmp_path, 4, redis_url=redis_url)
        open_shards(redis_url, batch)
        run_batch(spark, log_of(spark, log), plan_of(m, columns=columns), batch)
        panes = panes_in(redis_url)

        first = panes[1, 10, base // 1000]["=a"]
        assert (first.n, first.sum, first.min, first.max) == (2, 4.0, 1.0, 3.0)
        assert panes[1, 10, base // 1000 + 10]["=b\\|c"].n == 1
        minute = panes[1, 60, base // 1000]["=a"]
        assert (minute.n, minute.sum, minute.min, minute.max) == (3, 9.0, 1.0, 5.0)
        assert minute.hll is not None
        assert minute.kll is not None
        assert ledger(panes) == {"counted": 4}
        assert panes[TYPES, 60, base // 1000] == {"=acme|=web|=t": rows.Row(4)}
        assert panes[USE, 60, base // 1000] == {"=1|=used": rows.Row(4)}

    def test_the_empty_text_is_a_distinct_value(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """Of "", a text and null two are counted; of "" alone, one."""
        users: list[str | None] = ["", "u", None, ""]
        log = [counted(str(i), k="a", u=user) for i, user in enumerate(users)]
        log.append(counted("alone", k="b", u=""))
        batch = batch_of(tmp_path, 5, redis_url=redis_url)
        open_shards(redis_url, batch)
        m = metric(by=["data.k"], aggregates=["distinct(data.u)"])
        run_batch(spark, log_of(spark, log), plan_of(m, columns=columns), batch)
        pane = panes_in(redis_url)[1, 10, NOW_S - NOW_S % 10]

        assert {
            text: distinct_in(hll_union([row.hll or b""])).value for text, row in pane.items()
        } == {"=a": 2, "=b": 1}

    def test_each_event_is_too_old_by_the_horizon_of_its_place(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """A batch that was planned before a change, and runs again, lies on both sides of it."""
        earlier = Horizons({}, HORIZONS.horizon_ms, 10_000)
        later = Horizons({0: 2}, HORIZONS.horizon_ms, 30_000)
        ages_ms = (10_000, 10_001, 10_001, 30_000, 30_001)
        log = [(event(str(n), NOW_MS - age), EVENT, NOW_MS) for n, age in enumerate(ages_ms)]
        batch = batch_of(tmp_path, len(log), redis_url=redis_url, horizons=(earlier, later))
        open_shards(redis_url, batch)
        run_batch(spark, log_of(spark, log), make_plan((), batch.horizons, columns=columns), batch)

        assert ledger(panes_in(redis_url)) == {"counted": 3, "beyond_horizon": 2}

    def test_received_is_the_sum_of_the_dispositions(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """Every record but ticks leaves by exactly one disposition; the sum is what came."""
        old_ms = NOW_MS - BEYOND_MS - 1
        log = [
            counted("1", x=1),
            counted("1", x=1),
            (event("2", old_ms, x=1), EVENT, NOW_MS),
            (None, TICK, NOW_MS),
            (event("3", x=1)[:-5], EVENT, NOW_MS),
            counted("4", x="no number"),
            counted("5", event_type="other", x=1),
        ]
        batch = batch_of(tmp_path, 7, redis_url=redis_url, copies="none")
        open_shards(redis_url, batch)
        plan = plan_of(metric(value="data.x", aggregates=["sum"]), columns=columns)
        (report,) = run_batch(spark, log_of(spark, log), plan, batch)
        panes = panes_in(redis_url)

        assert ledger(panes) == {
            "counted": 3,
            "duplicate": 1,
            "quarantined": 1,
            "beyond_horizon": 1,
        }
        assert sum(n for _series, _minute, n in report.ledger) == 6
        assert report.progress == [(0, NOW_MS, 7)]
        minute = NOW_S - NOW_S % 60
        assert {s: r.n for s, r in panes[USE, 60, minute].items()} == {
            "=1|=used": 1,
            "=1|=value_quarantined": 1,
        }

    def test_what_a_record_says_of_its_owner_stops_nothing(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """Tenants and sources of other producers, in values or headers, never break the account."""
        strange = ["x" * 300, "a\x01b", "\x01", "A|b\\", "", "acme\n", "é" * 130, "|" * 128, "good"]
        log = [counted(str(i), tenant=tenant) for i, tenant in enumerate(strange)]
        for text in strange:
            said = [("weir-tenant", text.encode()), ("weir-source", text.encode())]
            log.append((b"{", [("weir-reason", b"invalid_json"), *said], NOW_MS))
        batch = batch_of(tmp_path, len(log), redis_url=redis_url, copies="none")
        open_shards(redis_url, batch)
        reports = run_batch(spark, log_of(spark, log), plan_of(metric(), columns=columns), batch)
        outcome = outcome_of(reports, {})

        wanted = {
            ("default", "web"): (8, 0),
            ("default", "kafka"): (0, 8),
            ("good", "web"): (1, 0),
            ("good", "good"): (0, 1),
        }
        if columns:
            # Here the sign that divides the fields divides what was said, into names of nobody;
            # the other way asks `owner` of what the record said.
            wanted |= {("default", "web"): (6, 0), ("a", "b"): (1, 0), ("default", "kafka"): (1, 8)}
        owners = {(o.tenant, o.source): (o.counted, o.quarantined) for o in outcome.ledger}
        assert owners == wanted
        assert ledger(panes_in(redis_url)) == {"counted": 9, "quarantined": 9}

    def test_a_batch_that_runs_again_changes_nothing(
        self, spark: SparkSession, redis_url: str, tmp_path: Path
    ) -> None:
        """The second run of a batch finds its own mark, and every pane stays as it is."""
        batch = batch_of(tmp_path, 2, redis_url=redis_url)
        open_shards(redis_url, batch)
        log, plan = log_of(spark, [counted("1"), counted("2")]), plan_of(metric())
        first = run_batch(spark, log, plan, batch)
        before = panes_in(redis_url)
        second = run_batch(spark, log, plan, batch)

        assert [r.verdicts for r in (*first, *second)] == [{0: "ok"}, {0: "done"}]
        assert panes_in(redis_url) == before

    def test_shards_hold_together_what_one_shard_holds(
        self, spark: SparkSession, redis_url: str, tmp_path: Path
    ) -> None:
        """Over three shards the panes are those of one shard."""
        log = log_of(spark, [counted(str(i), k=str(i % 7)) for i in range(50)])
        plan = plan_of(metric(by=["data.k"]))
        found = []
        for shards in (1, 3):
            client = redis.Redis.from_url(redis_url)
            client.flushall()
            client.close()
            batch = batch_of(tmp_path / str(shards), 50, redis_url=redis_url, shards=shards)
            open_shards(redis_url, batch)
            reports = run_batch(spark, log, plan, batch)
            assert {s for r in reports for s in r.verdicts} == set(range(shards))
            found.append(panes_in(redis_url, shards))

        assert all(panes == found[0] for panes in found[1:])

    def test_a_version_counts_only_its_span_of_the_log(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """Events before the activation offsets, or at the end, are not the version's."""
        batch = batch_of(tmp_path, 4, redis_url=redis_url)
        open_shards(redis_url, batch)
        log = log_of(spark, [counted(str(i)) for i in range(4)])
        plan = plan_of(metric(), guarded=True, begin={0: 1}, finish={0: 3}, columns=columns)
        run_batch(spark, log, plan, batch)

        assert panes_in(redis_url)[1, 10, NOW_S - NOW_S % 10][""].n == 2

    def test_cut_divides_the_panes_of_two_versions(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """No pane holds events of two versions, and none is lost between them."""
        base_s = NOW_S - NOW_S % 60
        cut = {10: base_s + 10, 60: base_s + 60, 3600: base_s}
        batch = batch_of(tmp_path, 3, redis_url=redis_url)
        open_shards(redis_url, batch)
        log = [counted(str(i), base_s * 1000 + i * 10_000) for i in range(3)]
        m = metric(keep={"10s": "1h", "1m": "1d"})
        plan = plan_of(m, m)
        old = replace(plan.versions[0], cut_until=cut)
        new = replace(plan.versions[1], cut_from=cut)
        plan = make_plan([Counted(old, m), Counted(new, m)], (HORIZONS,), columns=columns)
        run_batch(spark, log_of(spark, log), plan, batch)
        panes = {k: v[""].n for k, v in panes_in(redis_url).items() if k[0] > 0}

        assert panes == {
            (1, 10, base_s): 1,
            (1, 60, base_s): 3,
            (2, 10, base_s + 10): 1,
            (2, 10, base_s + 20): 1,
        }

    def test_what_no_resolution_keeps_is_accounted_for(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """An event older than a resolution is kept is left out there; in all, it is said."""
        m = metric(keep={"10s": "1h", "1m": "1d"})
        log = [
            (event("1", NOW_MS - 2 * 3_600_000), EVENT, NOW_MS),
            (event("2", NOW_MS - 48 * 3_600_000), EVENT, NOW_MS),
        ]
        batch = batch_of(tmp_path, 2, redis_url=redis_url)
        open_shards(redis_url, batch)
        run_batch(spark, log_of(spark, log), plan_of(m, columns=columns), batch)
        panes = panes_in(redis_url)

        assert {k[1]: v[""].n for k, v in panes.items() if k[0] == 1} == {60: 1}
        minute = NOW_S - NOW_S % 60
        assert {s: r.n for s, r in panes[USE, 60, minute].items()} == {
            "=1|=used": 1,
            "=1|=pane_not_kept": 1,
        }

    def test_fates_of_sampled_events_are_reported(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """What became of an event of the live tail comes back with the batch."""
        log = [(event("1", x="?"), SAMPLED, NOW_MS), (event("1", x=1), SAMPLED, NOW_MS)]
        batch = batch_of(tmp_path, 2, redis_url=redis_url, copies="none")
        open_shards(redis_url, batch)
        plan = plan_of(metric(value="data.x", aggregates=["sum"]), columns=columns)
        (report,) = run_batch(spark, log_of(spark, log), plan, batch)

        assert sorted(report.fates) == [(0, 0, "counted", None), (0, 1, "duplicate", None)]
        assert report.codes == [(0, 0, 1, "value_invalid")]

    def test_who_was_erased_later_is_given_to_no_version_again(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """The account of a range that is counted again stays as it was, but for their use."""
        key, m = b"key", metric(by=["data.k"])
        people = ("before", "later", "other")
        hashes = {who: subject_hash(key, "acme", who) for who in people}
        gone = Erased(
            frozenset({("acme", hashes["before"])}), key, frozenset({("acme", hashes["later"])})
        )
        version = Version(1, "acme", "m", ((10, 3_600),))
        plan = make_plan([Counted(version, m)], (HORIZONS,), erased=gone, columns=columns)
        log = [(event(who, subject=who, k=who), EVENT, NOW_MS) for who in people]
        batch = batch_of(tmp_path, len(log), redis_url=redis_url)
        open_shards(redis_url, batch)
        run_batch(spark, log_of(spark, log), plan, batch)
        panes = panes_in(redis_url)

        assert set(panes[1, 10, NOW_S]) == {"=other"}
        assert ledger(panes) == {"erased": 1, "counted": 2}

    def test_prefixes_and_tenants(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """A metric on a prefix counts every such type, and only of its own tenant."""
        log = [
            counted("1", event_type="shop.a"),
            counted("2", event_type="shop.b"),
            counted("3", event_type="t"),
            counted("4", event_type="shop.a", tenant="other"),
        ]
        batch = batch_of(tmp_path, 4, redis_url=redis_url)
        open_shards(redis_url, batch)
        metrics = [metric(events={"type": t}) for t in ("shop.*", ["shop.a", "t"], "*")]
        run_batch(spark, log_of(spark, log), plan_of(*metrics, columns=columns), batch)
        start = NOW_S - NOW_S % 10

        assert [panes_in(redis_url)[v, 10, start][""].n for v in (1, 2, 3)] == [2, 2, 3]
