"""D20 of RELIABILITY 3: what waited is caught up, in bounded batches and for all tenants alike.

Bursts, a flood of keys, and a tenant beyond its quota are here too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from account import records_of
from disruption.brokers import log_ends
from disruption.checker import RECOVERY_S
from disruption.faults import bites, broken, with_mutant
from disruption.judge import lead_of_one
from disruption.mixed import MixedLoad
from disruption.mixed_recount import PANE_MS, SPEC, compare_totals, recount
from disruption.rig import PACE, Rig, promised_s
from disruption.scene import PATIENCE_S, Scene, await_new_result, time_left_s
from disruption.tenants import define_mixed, key_for
from load import TYPE, Load
from recount import Api, compare_ledger
from weir import names
from weir.batches import FIELD, BatchRecord, decode
from weir.clock import SystemClock

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(3600)]

FLOOD = f"""
kind: metric
name: flood
events: {{type: {TYPE}}}
by: [data.n]
aggregates: [count]
resolution: 10s
max_series: 50
"""
MOST = 2_000
BOUNDED = {"WEIR_ANALYTICS_MAX_RECORDS": str(MOST)}


@with_mutant("no_bound_of_a_batch")
def test_a_burst_after_an_outage(tmp_path: Path, seed: int, mutant: str) -> None:
    """D20: what waited is counted in bounded batches; a flood of keys keeps its totals."""
    with broken(tmp_path, seed, mutant, settings={"panes": BOUNDED}) as here:
        rig = here.rig
        rig.define("metric", "flood", FLOOD)
        here.more(200)
        await_new_result(rig)
        rig.kill("panes")
        here.load.batch, usual = 500, here.load.batch
        here.more(10_000)
        here.load.batch = usual
        before = len(rig.lines("panes", "batch"))
        rig.restart("panes")
        await_new_result(rig, PATIENCE_S)
        lines = rig.lines("panes", "batch")[before:]
        sizes = [line["received"] + line["ticks"] for line in lines]
        bites(sum(sizes) >= 10_000, "ten thousand events that waited")
        assert max(sizes) <= MOST + 4, "a batch must be bounded"
        if not mutant:
            assert_totals_of_flood(here)


class Keyed(Load):
    """A load whose events all have one key while there is one, and so lie in one partition."""

    partition_key = ""

    def event(self, n: int, time_text: str) -> dict[str, Any]:
        """Return event n."""
        event = super().event(n, time_text)
        return {**event, "partitionkey": self.partition_key} if self.partition_key else event


@with_mutant("newest_time_serves")
def test_one_partition_lags(tmp_path: Path, seed: int, mutant: str) -> None:
    """D20, I11: what waits in one partition holds processed-through, however far the others are.

    A batch has of each partition the same part of what waits there: most of one, from the first
    seconds of an outage, and of the others what came later.
    """
    with broken(tmp_path, seed, mutant, settings={"panes": BOUNDED}, kind=Keyed) as here:
        rig = here.rig
        here.more(200)
        await_new_result(rig)
        rig.kill("panes")
        revision = newest_revision(rig)
        lagging, ends = flood_one_partition(here)
        here.more(2_000)
        rig.restart("panes")
        await_new_result(rig, PATIENCE_S)
        apart = [
            record.rev
            for record in records_since(rig, revision)
            if all((to < ends[p]) == (p == lagging) for p, to in record.to_offsets.items())
        ]
        bites(len(apart) > 2, "batches that end in the flood of one partition, behind it in others")


def flood_one_partition(here: Scene) -> tuple[int, dict[int, int]]:
    """Have what waits be in one partition; return which, and where each ended then."""
    load, before = here.load, log_ends(here.rig)
    assert isinstance(load, Keyed)
    load.partition_key, load.batch, usual = "one", 500, load.batch
    here.more(WAITING)
    load.partition_key, load.batch = "", usual
    ends = log_ends(here.rig)
    return max(ends, key=lambda p: ends[p] - before[p]), ends


# Of what waited for each tenant, by which part one may be ahead of another after any batch.
LEAD = 0.3
WAITING = 12_000


def test_two_tenants_catch_up_side_by_side(tmp_path: Path, seed: int) -> None:
    """D20: after an outage no tenant waits until another is done, and both get every pane.

    It has no mutant: nothing of Weir's own decides it. Spark shares a batch among partitions by
    what waits in each, and events of every tenant are in all of them.
    """
    with broken(tmp_path, seed, "", settings={"panes": BOUNDED}) as here:
        rig = here.rig
        other = MixedLoad(rig.ingest_url, key_for(rig, "acme"), seed, "acme", WAITING, batch=100)
        define_mixed(rig, other.key)
        here.more(200)
        await_new_result(rig)
        other.upto = 0.0
        other.start()
        rig.kill("panes")
        revision = newest_revision(rig)
        for step in range(10):
            other.upto = (step + 1) / 10
            here.more(1_000)
        rig.wait_until(lambda: other.is_done, "all lines of the other", PATIENCE_S)
        here.load.pause()
        rig.restart("panes")
        await_new_result(rig, PATIENCE_S)
        batches = list(received_since(rig, revision))
        whole = [sum(batch.get(tenant, 0) for batch in batches) for tenant in ("default", "acme")]
        bites(min(whole) >= 10_000 and len(batches) > 8, "batches of what waited for both")
        found = lead_of_one(batches)
        assert found < LEAD, f"tenants must catch up together, one was ahead by {found:.2f}"
        here.load.resume()
        api, counted = Api(rig.dashboard_url, other.key), recount(records_of(rig.kafka_bootstrap))
        wrong = compare_ledger(api, counted["acme"].account).mismatches
        wrong += compare_totals(api, counted["acme"].panes, SPEC, PANE_MS).mismatches
        assert wrong == [], f"ledger and panes of the other must equal the recount: {wrong[:3]}"


def newest_revision(rig: Rig) -> tuple[int, int]:
    """Return epoch and number of the last batch that was recorded."""
    *_, last = records_since(rig, (0, 0))
    return last.epoch, last.rev


def received_since(rig: Rig, revision: tuple[int, int]) -> Iterator[dict[str, int]]:
    """Yield of each batch since a revision, how many events it received, by tenant."""
    for record in records_since(rig, revision):
        found: dict[str, int] = {}
        for row in record.ledger:
            events = row.counted + row.duplicate + row.quarantined + row.beyond_horizon + row.erased
            found[row.tenant] = found.get(row.tenant, 0) + events
        if found:
            yield found


def records_since(rig: Rig, revision: tuple[int, int]) -> Iterator[BatchRecord]:
    """Yield the records of batches after a revision, in order."""
    client: Any = redis.Redis.from_url(rig.redis_url)
    entries = client.xrange(names.BATCHES)
    client.close()
    for _name, fields in entries:
        record = decode(fields[FIELD])
        if isinstance(record, BatchRecord) and (record.epoch, record.rev) > revision:
            yield record


# RELIABILITY 3: some ten minutes, a minute of ten times the load, a million keys.
AWAY_S = float(os.environ.get("WEIR_AWAY_S") or 600)
BURST_S, BURST, KEYS = 60.0, 10, 1_000_000
# Records of a batch (`max_records`).
MOST_BY_DEFAULT = 200_000
FRESH_S = promised_s(10.0)


@pytest.mark.alone
@with_mutant("no_bound_of_a_batch")
def test_ten_minutes_away_and_a_million_keys(tmp_path: Path, seed: int, mutant: str) -> None:
    """D20: what waited is caught up while ten times the load comes; then numbers stay fresh.

    A copy without a bound is away for a minute: so much already is more than it may take at once.
    """
    away_s, most = (60.0, MOST) if mutant else (AWAY_S, MOST_BY_DEFAULT)
    bound = {"panes": {"WEIR_ANALYTICS_MAX_RECORDS": str(most)}}
    # No sketches: of a minute of ten times the load the recount would sort 300,000 values, one by
    # one, and how fresh numbers are is judged here beside a million keys.
    with broken(tmp_path, seed, mutant, settings=bound, sketched=False) as here:
        rig = here.rig
        rig.define("metric", "flood", FLOOD)
        here.more(200)
        await_new_result(rig)
        rig.kill("panes")
        acknowledged = here.load.acknowledged
        here.pass_time(SystemClock().monotonic_s() + away_s)
        bites(here.load.acknowledged > acknowledged, "events that waited")
        catch_up_in_a_burst(here, most)
        clock, ages_s = SystemClock(), list[float]()
        until_s, keys = clock.monotonic_s() + BURST_S, round(KEYS * AWAY_S / 600)

        def is_over() -> bool:
            ages_s.append(age_s(rig))
            return clock.monotonic_s() > until_s and here.load.acknowledged > keys

        here.load.batch *= BURST
        rig.wait_until(is_over, "the burst", 10 * BURST_S * PACE)
        here.load.batch //= BURST
        assert max(ages_s) < FRESH_S, f"numbers must stay fresh, were {max(ages_s):.1f} s old"
        assert_totals_of_flood(here)


def catch_up_in_a_burst(here: Scene, most: int) -> None:
    """Start the driver while a burst begins; both are caught up, in batches of so many at most.

    The burst lasts a minute from when the driver is ready; numbers are fresh soon after it.
    """
    rig = here.rig
    before = len(rig.lines("panes", "batch"))
    here.load.batch *= BURST
    bites(age_s(rig) > FRESH_S, "numbers that are old when the burst begins")
    rig.restart("panes")
    here.pass_time(SystemClock().monotonic_s() + BURST_S)
    here.load.batch //= BURST
    over = here.now()
    await_new_result(rig, RECOVERY_S, since=over)
    left_s = time_left_s(SystemClock().monotonic_s() - over.at_s, RECOVERY_S, "fresh numbers")
    rig.wait_until(lambda: rig.fresh()["status"] == "live", "fresh numbers", left_s)
    lines = rig.lines("panes", "batch")[before:]
    largest = max(line["received"] + line["ticks"] for line in lines)
    assert largest <= most + 4, f"a batch must be bounded, one had {largest} records"


def age_s(rig: Rig) -> float:
    """Return how old the numbers are."""
    status = rig.api("GET", "/status").body
    return float(status["now_ms"] - status["fresh"]["processed_through_ms"]) / 1000


def assert_totals_of_flood(here: Scene) -> None:
    """Assert that a metric with a series for each event is capped, and its totals exact."""
    here.load.pause()
    await_new_result(here.rig)
    here.rig.wait_until(
        lambda: here.rig.api("GET", "/definitions/metric/flood/progress").body["serving"],
        "the metric",
        PATIENCE_S,
    )
    assert here.rig.api("GET", "/metrics/flood").body["capped"]
    here.rig.wait_until(lambda: total(here, "flood") == total(here, "load"), "equal totals")
    assert total(here, "flood") >= here.load.acknowledged


def total(here: Scene, metric: str) -> int:
    """Return how many events a metric holds of the last hour."""
    asked = {
        "metric": metric,
        "aggregate": "count",
        "window": {"kind": "tumbling", "length": "10s"},
        "step": "10s",
        "by": [],
        "range": {"last": "1h"},
    }
    return sum(
        count or 0 for series in here.rig.query(asked)["series"] for count in series["count"]
    )


@pytest.mark.alone
@with_mutant("one_quota_for_all")
def test_a_tenant_beyond_its_quota(tmp_path: Path, seed: int, mutant: str) -> None:
    """D20: it gets 429 before the log, for a minute; the other one's panes stay fresh."""
    settings = {"ingest": {"WEIR_INGEST_QUOTA_EVENTS_PER_S": "1000"}}
    with broken(tmp_path, seed, mutant, part="ingest", settings=settings) as here:
        rig, clock = here.rig, SystemClock()
        flood = MixedLoad(rig.ingest_url, key_for(rig, "acme"), seed, "acme", 200_000, batch=500)
        here.more(200)
        await_new_result(rig)
        # By moment: what was acknowledged, and what is served `FRESH_S` later.
        sent, behind = list[tuple[float, int]](), list[tuple[int, int]]()
        until_s = clock.monotonic_s() + BURST_S

        def is_over() -> bool:
            now_s = clock.monotonic_s()
            sent.append((now_s, here.load.acknowledged))
            old = [count for at_s, count in sent if at_s <= now_s - FRESH_S]
            if old and (served := total(here, "load")) < old[-1]:
                behind.append((served, old[-1]))
            return now_s > until_s and flood.unanswered >= 20

        refused = len(here.load.refusals)
        flood.start()
        rig.wait_until(is_over, "a minute of a flood that is refused", 3 * BURST_S * PACE)
        flood.stop()
        bites(flood.unanswered, "429")
        others = {one.status for one in here.load.refusals[refused:]}
        assert others == set(), f"no other tenant may be refused, was by {others}"
        assert behind == [], f"the other's panes must be of the last {FRESH_S:g} s: {behind[:3]}"
        # What was refused is not in the log: of each request all or nothing.
        found = recount(records_of(rig.kafka_bootstrap))["acme"]
        assert found.log_records == flood.sent
