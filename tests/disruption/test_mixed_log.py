"""Millions of mixed events of two tenants, three kills and an empty Redis: difference 0.

`WEIR_EVENTS=120000` for a try.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest
import redis
from account import records_of
from confluent_kafka import Producer
from disruption.faults import bites, judged
from disruption.mixed import LATEST_MS, MixedLoad, await_end
from disruption.mixed import SOME as SOME_DEFINITION
from disruption.mixed_recount import (
    PANE_MS,
    SOME,
    SOME_AGGREGATES,
    SOME_PANES_MS,
    SPEC,
    Recount,
    compare_totals,
    compare_uses,
    recount,
)
from disruption.rig import PACE, Rig
from disruption.scene import await_new_result
from disruption.tenants import define_mixed, key_for
from recount import Api, compare, compare_ledger, panes_of

EVENTS = int(os.environ.get("WEIR_EVENTS") or 2_000_000)
# What a busy machine with two cores counts at least, twice: live, and again after the wipe.
SLOWEST_PER_S = 1_500
# A mutant shows itself in fewer lines.
OF_A_MUTANT = min(EVENTS, 120_000)
TENANTS = ("default", "acme")
# Parts of the load after which something happens. What a kill has done is compared before the
# wipe, after which all is counted anew; and the driver dies once more after that.
FAULTS = ((0.2, "panes"), (0.4, "wipe"), (0.6, "kafka"), (0.7, "panes"), (0.8, "ingest"))
FOREIGN = 100
FEW = 100_000  # lines; below it there are fewer panes than the soak asks for

pytestmark = [
    pytest.mark.stack,
    pytest.mark.disruption,
    pytest.mark.timeout(int(2 * PACE * (600 + EVENTS / SLOWEST_PER_S))),
]


@pytest.mark.parametrize(
    ("part", "mutant"),
    [("", ""), ("panes", "missing_mark_starts_here"), ("ingest", "dedup_without_tenant")],
    ids=["weir", "missing_mark_starts_here", "dedup_without_tenant"],
)
def test_a_mixed_log_with_kills_and_a_wipe_has_no_difference(
    tmp_path: Path, seed: int, part: str, mutant: str
) -> None:
    """Good, late, repeated and bad lines of two tenants: ledger and every pane are exact.

    Among the bad: what ingest refuses, what is older than anything counts, values that the metric
    cannot use, and bytes that another producer put into the log.
    """
    lines = (OF_A_MUTANT if mutant else EVENTS) // 2
    rig = Rig(
        tmp_path,
        seed,
        settings={
            "panes": {"WEIR_ANALYTICS_SHARDS": "2"},
            "alerts": {"WEIR_ALERTS_OWN_RULES": "false"},
        },
        mutants={part: mutant},
    )
    try:
        rig.start()
        keys = {"default": rig.key, "acme": key_for(rig, "acme")}
        for key in keys.values():
            define_mixed(rig, key)
            define_mixed(rig, key, SOME.name, SOME_DEFINITION)
        loads = [MixedLoad(rig.ingest_url, keys[tenant], seed, tenant, lines) for tenant in TENANTS]
        put_foreign_bytes(rig)
        with judged(mutant):
            break_under(rig, loads)
            assert_no_difference(rig, loads)
            assert "lost" in [line["verdict"] for line in rig.lines("panes", "reconciled")][1:]
    finally:
        rig.stop()


def whole_s(loads: list[MixedLoad]) -> float:
    """Return how long all lines of some loads may take to be sent and counted."""
    return PACE * (300 + sum(load.lines for load in loads) / SLOWEST_PER_S)


def put_foreign_bytes(rig: Rig) -> None:
    """Have another producer write what is no event."""
    producer = Producer({"bootstrap.servers": rig.kafka_bootstrap})
    for n in range(FOREIGN):
        producer.produce("weir.events", (b"\xff\xfe", b"{", b"[1,2]", b'{"n":1}')[n % 4], str(n))
    assert producer.flush(30) == 0


def foreign(load: MixedLoad) -> int:
    """Return how many records of a tenant's account another producer wrote."""
    return FOREIGN if load.tenant == "default" else 0


def break_under(rig: Rig, loads: list[MixedLoad]) -> None:
    """Send everything; meanwhile kill parts, empty Redis, and compare before that."""
    for load in loads:
        load.upto = 0.0
        load.start()
    try:
        for at, (part_of_load, fault) in enumerate(FAULTS, 1):
            # What may be sent while it lasts: a log that is complete before would prove nothing.
            upto = FAULTS[at][0] if at < len(FAULTS) else 1.0
            if fault == "wipe":
                for load in loads:
                    await_end([load], part_of_load, whole_s(loads))
                assert_no_difference(rig, loads)
            allow(loads, upto)
            await_end(loads, part_of_load, whole_s(loads))
            if fault == "wipe":
                await_new_result(rig, whole_s(loads))  # there is something to lose
                wipe(rig)
            else:
                kill(rig, fault)
        await_end(loads, 1.0, whole_s(loads))
    finally:
        for load in loads:
            load.stop()
    rig.revive()
    bites(any(load.unanswered for load in loads), "a request without an answer")


def allow(loads: list[MixedLoad], upto: float) -> None:
    """Let so large a part of the lines be sent."""
    for load in loads:
        load.upto = upto


def kill(rig: Rig, part: str) -> None:
    """Kill a part and start it again."""
    rig.kill(part)
    rig.restart(part)
    rig.revive()


def wipe(rig: Rig) -> None:
    """Empty Redis."""
    client = redis.Redis.from_url(rig.redis_url)
    client.flushall()
    client.close()


def assert_no_difference(rig: Rig, loads: list[MixedLoad]) -> None:
    """Assert that the log holds all that was accepted, and that what is served equals it."""
    await_new_result(rig, whole_s(loads))
    found = recount(records_of(rig.kafka_bootstrap))
    at_most_s = whole_s(loads)
    compared = sum(compare_served(rig, load, found[load.tenant], at_most_s) for load in loads)
    for load in loads:
        assert_log_holds(load, found[load.tenant])
    if min(load.lines for load in loads) >= FEW:
        assert compared >= 10_000
    told = {load.tenant: dict(found[load.tenant].account.totals) for load in loads}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    lines = sum(load.lines for load in loads)
    print(f"{lines} lines: {told}; {compared} values equal; recount {peak} MB")  # noqa: T201


def compare_served(rig: Rig, load: MixedLoad, counted: Recount, at_most_s: float) -> int:
    """Return how many values were compared once ledger and panes equal the recount."""
    api = Api(rig.dashboard_url, load.key)
    deadline_s = time.monotonic() + at_most_s
    while True:
        # After a wipe a version that was filled is filled once more when the ledger is whole.
        told = [api.call("GET", f"/definitions/metric/{one.name}/progress") for one in (SPEC, SOME)]
        ledger = compare_ledger(api, counted.account)
        is_filled = all(one["serving"] and not one["lanes"] for one in told)
        is_whole = is_filled and not ledger.mismatches
        if is_whole or time.monotonic() > deadline_s:
            break
        time.sleep(1)
    assert ledger.mismatches == [], f"ledger and log must agree: {ledger.mismatches[:3]}"
    uses = compare_uses(api, "mixed", counted.uses)
    assert uses.mismatches == []
    panes = compare_totals(api, counted.panes, SPEC, PANE_MS)
    assert panes.mismatches == [], f"panes must equal the recount: {panes.mismatches[:3]}"
    return panes.points + uses.points + compare_some(api, counted)


def compare_some(api: Api, counted: Recount) -> int:
    """Return how many values of a metric with all aggregates and two resolutions were compared."""
    points = 0
    for pane_ms in SOME_PANES_MS:
        result = compare(api, panes_of(counted.some, SOME, pane_ms), SOME, SOME_AGGREGATES, pane_ms)
        assert result.mismatches == []
        points += result.points
    return points


def assert_log_holds(load: MixedLoad, counted: Recount) -> None:
    """Assert that each event counts once, and that every line is in the log."""
    assert counted.seen[: load.events] == b"\x01" * load.events
    assert not any(counted.seen[load.events :])
    assert counted.log_records >= load.sent
    totals = counted.account.totals
    assert totals["counted"] >= load.events
    assert totals["duplicate"] >= load.kinds["again"]
    assert totals["quarantined"] >= load.kinds["bad"] + foreign(load)
    assert totals["beyond_horizon"] == load.kinds["old"]
    wrong = sum(tally["value_quarantined"] for tally in counted.uses.values())
    assert wrong == load.kinds["wrong"]
    oldest = min(start for start, _group in counted.panes)
    newest = max(start for start, _group in counted.panes)
    assert newest - oldest > LATEST_MS - 10 * PANE_MS
