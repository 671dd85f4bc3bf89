"""A log counted with Arrow and by columns of Spark: the same panes, and the same account of all.

Drawn logs hold what `drawn_log.py` has, and besides: sources, subjects that were erased, types
of a prefix, sampled events, events of other producers, and records that only look like events.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from weir import names
from weir.admission import Admitted, Terms, admit
from weir.erasure import subject_hash
from weir.event import TIME_END, VALUE_PREFIX, placed
from weir.series import OTHER, series_digest
from weir_analytics.panes.arrow_count import count_log
from weir_analytics.panes.arrow_plan import AnyPlan, ArrowPlan, make_plan
from weir_analytics.panes.batch import PROPERTY, Batch
from weir_analytics.panes.commit_job import Bound, Correction, decode_entry
from weir_analytics.panes.corrections import Arrival, CountedSenders, Senders
from weir_analytics.panes.dataflow import panes_of
from weir_analytics.panes.decode import classify
from weir_analytics.panes.dispose import dispose
from weir_analytics.panes.erased import Erased
from weir_analytics.panes.inbox import Inbox, Unusable
from weir_analytics.panes.outcome import processed_through
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.versions import Version, versions_from_json, versions_to_json

from . import drawn_log
from .drawn_log import BASE_MS, METRIC, PARTITIONS, REFUSED, SHARDS, Log
from .log_frames import EVENT, HORIZONS, NOW_MS, SAMPLED, TICK, Record, event, log_of
from .test_measures import MORE, logs
from .test_plan import Panes, ledger, metric, panes_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from weir.definitions.metric import Metric

pytestmark = [pytest.mark.spark, pytest.mark.redis]

LOGS = logs(1)
NUMBERS = (
    *range(LOGS),
    *(pytest.param(n, marks=pytest.mark.disruption) for n in range(LOGS, LOGS + MORE)),
)
KEY = b"key"
TENANTS, TYPES = ("acme", "acme", "zeta", "other"), ("t", "t", "u", "shop.a", "shop.b")
SUBJECTS = (None, None, "here", "gone", "later")
# What follows the fixed places in records that only look like events, or are odd ones.
FORGED = (
    b"no json}",
    b'","type":"t"}',
    b'","weirtenant":"acme","weirsource":"web","data":{"x":1,"k":"k1"}}',
    b'","type":"t","weirtenant":"acme","data":{"x":1,"k":"k1","u":"u1"}}',
    b'","type":7,"weirtenant":"acme","weirsource":"web","data":{"x":1}}',
    b'","type":"t","weirtenant":true,"weirsource":"web","data":{"x":1}}',
    b'","type":null,"weirtenant":"acme","weirsource":"web"}',
    *(
        b'","type":"t","weirtenant":"acme","weirsource":"web","data":' + data + b"}"
        for data in (b"5", b'"a"', b"[1]", b"null", b"{}", b'{"x":7,"x":"a","k":1}')
    ),
)
# What another producer forged so that a reader of JSON decides: Python's takes all or nothing,
# the JVM's what it could read, and it writes whatever stands in an attribute as a text.
APART = (
    *(
        b'","type":' + kind + b',"weirtenant":"acme","weirsource":"web","data":{"x":1}}'
        for kind in (b"1.5", b'["t"]', b'{"a":1}')
    ),
    b'","type":"t","weirtenant":["acme"],"weirsource":"web","data":{"x":1}}',
    *(
        b'","type":"t","weirtenant":"acme","weirsource":"web","data":' + data + b"}"
        for data in (
            *(b'{"x":NaN}', b'{"z":01,"x":1}', b'{"x":"\\ud800"}', b'{"x":1}}'),
            b'{"x":1}} {"a":1',
        )
    ),
)
FOREIGN = b'{"specversion":"1.0","id":"%d","source":"s","type":"t","data":{"x":1,"k":"k1","u":"a"}}'


def draw(rng: random.Random, events: int = 300) -> Log:
    """Return the records of each partition, in order."""
    log: Log = [[] for _ in range(PARTITIONS)]
    sent: list[tuple[int, Record]] = []
    now_ms = BASE_MS
    for n in range(events):
        now_ms += 3_000_000 if rng.random() < 0.01 else rng.choice([0, 0, 1, 400, 1_500, -2_000])
        chance = rng.random()
        if sent and chance < 0.1:
            partition, (value, headers, _at_ms) = rng.choice(sent)
            log[partition].append((value, headers, now_ms))
            continue
        partition = n % PARTITIONS
        sent.append((partition, _record(rng, n, now_ms)))
        log[partition].append(sent[-1][1])
    return log


def _record(rng: random.Random, n: int, now_ms: int) -> Record:
    chance = rng.random()
    if chance < 0.04:
        return b"{", REFUSED, now_ms
    if chance < 0.07:
        return None, TICK, now_ms
    if chance < 0.15:
        return (
            rng.choice((FOREIGN % n, FOREIGN % (n // 20), b"{", None)),
            rng.choice(([], EVENT)),
            now_ms,
        )
    if chance < 0.23:
        head = event(f"e{n}", now_ms)[:TIME_END]
        return head + rng.choice(FORGED), rng.choice((EVENT, SAMPLED)), now_ms
    return _event(rng, n, now_ms), rng.choice((EVENT, EVENT, SAMPLED)), now_ms


def _event(rng: random.Random, n: int, now_ms: int) -> bytes:
    lag_ms = rng.choice([0, 0, 0, 5_000, 90_000, 3 * 3_600_000, -20_000, 30 * 86_400_000])
    subject = rng.choice(SUBJECTS)
    if rng.random() < 0.06:
        # Of nobody: see `test_who_was_erased_is_so_however_old_the_event`.
        lag_ms, subject = 500 * 86_400_000, None
    at_ms = now_ms - lag_ms
    at_ms -= at_ms % rng.choice([1, 1_000])
    bad: Sequence[Any] = drawn_log.BAD
    x = rng.choice(bad) if rng.random() < 0.1 else rng.randint(-4_000, 4_000) / 4
    k = rng.choice((None, 7, True, {"a": 1})) if rng.random() < 0.05 else f"k{rng.randrange(9)}"
    item: dict[str, Any] = {
        **{"specversion": "1.0", "id": f"e{n}", "source": "s", "type": rng.choice(TYPES)},
        "time": datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(),
        "data": {"x": x, "k": k, "u": f"u{rng.randrange(60)}"},
    }
    item |= {} if subject is None else {"subject": subject}
    terms = Terms(rng.choice(TENANTS), rng.choice(("web", "app")), max(at_ms, 0), "test")
    found = admit(json.dumps(item).encode(), 0, terms)
    assert isinstance(found, Admitted)
    return found.value


COMPUTED = "upper(data.k) || case when data.x > 2 then '|' || subject else '' end as kind"


def counted(rng: random.Random, log: Log) -> list[Counted]:
    """Return versions that share dimensions, with drawn spans of the log and sides of cuts."""
    by_k: dict[str, Any] = {
        "value": "data.x",
        "by": ["data.k"],
        "aggregates": ["sum", "min", "max"],
    }
    half = {p: rng.randint(len(of) // 4, len(of) * 3 // 4) for p, of in enumerate(log)}
    times_ms = sorted(at_ms for of in log for _value, _headers, at_ms in of)
    cut = {s: times_ms[len(times_ms) // 2] // (s * 1000) * s for s in (10, 60)}
    short = {"keep": {"10s": "1h", "1m": "1d"}}
    given: list[tuple[str, Metric, dict[str, Any]]] = [
        ("acme", METRIC, {}),
        ("acme", metric(events={"type": "*"}, **by_k), {}),
        ("acme", metric(where="data.x > 0 and data.k != 'k3'", **by_k), {"begin": half}),
        ("acme", metric(events={"type": ["t", "u"], "source": ["app"]}, **by_k), {"finish": half}),
        ("zeta", metric(events={"type": ["shop.*", "t"]}, by=["data.k", "subject"]), {}),
        ("zeta", metric(events={"type": "*"}, by=["data.k", COMPUTED, "data.x as n"]), {}),
        ("acme", metric(**short, **by_k), {"cut_until": cut}),
        ("acme", metric(**short, **by_k), {"cut_from": cut, "lateness_ms": 60_000}),
        ("default", metric(events={"type": "*"}, by=["source"]), {}),
    ]
    return [
        Counted(
            Version(
                vid,
                tenant,
                one.name,
                tuple((r // 1000, k // 1000) for r, k in one.keep_ms.items()),
                max_series=one.max_series,
                **spans,
            ),
            one,
        )
        for vid, (tenant, one, spans) in enumerate(given, 1)
    ]


def erased() -> Erased:
    """Return who was erased, and who later: in one tenant each, and in another the other way."""
    known = {(t, s): (t, subject_hash(KEY, t, s)) for t in TENANTS for s in ("gone", "later")}
    now = frozenset({known["acme", "gone"], known["zeta", "later"]})
    return Erased(now, KEY, frozenset({known["acme", "later"], known["zeta", "gone"]}))


def bounds(rng: random.Random, log: Log) -> tuple[Bound, ...]:
    """Return bounds of the panes with most events, as if a batch before had told them."""
    values = [
        value for of in log for value, _headers, _at_ms in of if value and VALUE_PREFIX in value
    ]
    times_s = [placed(value).time_ms // 1000 for value in values]
    return tuple(
        Bound(vid, start_s, series_digest(f"=k{rng.randrange(9)}").hex())
        for vid, res_s in ((1, 1), (2, 10), (4, 10))
        for start_s, _n in Counter(at_s // res_s * res_s for at_s in times_s).most_common(8)
    )


def told(counting: drawn_log.Counting) -> list[dict[str, Any]]:
    """Return what the tasks of each batch told, without what they cost, or columns cannot tell.

    Who sent what a version counted: that is held to the corrections, see `check_senders`.
    """
    found = []
    for one in counting.outcomes:
        of = {**vars(one), "work": None, "late": sorted(one.late), "bounds": sorted(one.bounds)}
        del of["late_rows"], of["late_rows_cut"]
        of["fates"] = [(*fate[:4], sorted(fate[4])) for fate in one.fates]
        found.append(of)
    return found


def check_senders(counting: drawn_log.Counting, batch: Batch, counted: Sequence[Counted]) -> int:
    """Hold who sent late events to what the last batch's rows gained; return in how many panes.

    All that the rows of a final pane gained came late. So the rows of Arrow's tasks add up to it,
    row by row where none was merged into another, and possible senders sent no less.
    """
    boxes = {
        shard: [decode_entry(text) for text in counting.client.hvals(names.outbox_key(shard))]
        for shard in range(SHARDS)
    }
    arrival = Arrival.of(batch, counting.outcomes[-1])
    rows = [
        (shard, entry, one)
        for shard, entries in boxes.items()
        for entry in entries
        if entry.batch == batch.number
        for one in entry.corrections
    ]
    exact, possible = CountedSenders(arrival, rows), Senders(arrival.late)
    metrics = {one.version.vid: (one.version.tenant, one.metric) for one in counted}
    panes: dict[tuple[int, int, int], dict[str, list[Correction]]] = {}
    for _shard, _entry, one in rows:
        pane = panes.setdefault((one.vid, one.res_s, one.start_s), {})
        pane.setdefault(one.series, []).append(one)
    for place, pane in panes.items():
        gained = {series: sum(map(gain, found)) for series, found in pane.items()}
        one = next(iter(pane.values()))[0]
        assert sum(possible.of(*metrics[one.vid], one).events.values()) >= sum(gained.values())
        if isinstance(counting.plan, ArrowPlan):
            late = {series: exact.of(*metrics[one.vid], of[0]) for series, of in pane.items()}
            sent = {s: 0 if of is None else of.events.total() for s, of in late.items()}
            assert sum(sent.values()) == sum(gained.values()), place
            assert OTHER in pane or sent == gained, place
    return len(panes)


def gain(one: Correction) -> int:
    """Return by how many events a row changed."""
    return (one.now.n if one.now else 0) - (one.was.n if one.was else 0)


def copies_of(
    spark: SparkSession, counting: drawn_log.Counting, plan: AnyPlan
) -> dict[Unusable, int]:
    """Return which records of the whole log a writer would copy, and for whom."""
    ends = {p: len(of) for p, of in enumerate(counting.log)}
    batch = counting.batch(9, dict.fromkeys(ends, 0), ends)
    batch = replace(batch, dedup_dir=batch.dedup_dir + "/copies")
    spark.sparkContext.setLocalProperty(PROPERTY, batch.to_json())
    records = classify(log_of(spark, *counting.log))
    if isinstance(plan, ArrowPlan):
        rows = records.mapInArrow(partial(count_log, plan.told, plan.outputs), plan.schema)
    else:
        rows = panes_of(dispose(records), plan)
    inbox = Inbox(versions_from_json(versions_to_json(plan.versions)))
    for one in rows.toArrow().to_batches():
        inbox.take(one)
    return Counter(inbox.copies.chosen())


@pytest.mark.parametrize("number", NUMBERS)
def test_both_ways_count_the_same(
    spark: SparkSession, redis_url: str, tmp_path: Path, seed: int, number: int
) -> None:
    """Panes of every version, ledger, fates, codes, progress, late events, reasons, copies."""
    # The first is always the same, and known to hold everything that is compared.
    rng = random.Random(f"{seed}-ways-{number}" if number else "ways")  # noqa: S311
    log = draw(rng)
    versions, full = counted(rng, log), bounds(rng, log)
    ends = {p: len(of) for p, of in enumerate(log)}
    half = {p: rng.randint(0, n) if number else n // 2 for p, n in ends.items()}
    found: list[tuple[Panes, list[dict[str, Any]], Mapping[Unusable, int]]] = []
    corrected: list[int] = []
    for columns in (False, True):
        plan = make_plan(
            versions, (HORIZONS,), guarded=True, erased=erased(), shards=SHARDS, columns=columns
        )
        assert isinstance(plan, ArrowPlan) != columns
        counting = drawn_log.Counting(spark, redis_url, tmp_path / str(columns), plan, log)
        for at, (start, end) in enumerate(((dict.fromkeys(ends, 0), half), (half, ends))):
            through_ms = processed_through(counting.outcomes[-1].received_ms, end, 0) if at else 0
            batch = replace(
                counting.batch(at, start, end), bounds=full, final_through_ms=through_ms or None
            )
            assert counting.count(batch) == {"ok"}
        corrected.append(check_senders(counting, batch, versions))
        panes = panes_in(redis_url, SHARDS)
        found.append((panes, told(counting), copies_of(spark, counting, plan)))
    (panes, told_by, copies), (other, told_by_columns, copies_by_columns) = found

    assert told_by == told_by_columns
    assert corrected[0] == corrected[1]
    assert copies == copies_by_columns
    drawn_log.assert_alike(panes, other)
    if number:
        return
    assert corrected[0] > 30
    assert any(OTHER in rows for (vid, _res_s, _start_s), rows in panes.items() if vid == 2)
    assert {vid for vid, _res_s, _start_s in panes} >= set(range(1, len(versions) + 1))
    fates = ("counted", "duplicate", "quarantined", "beyond_horizon", "erased")
    assert min(ledger(panes)[fate] for fate in fates) > 0


def test_who_was_erased_is_so_however_old_the_event(
    spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
) -> None:
    """An event about somebody erased is accounted for as such, also beyond the horizon."""
    old_ms = NOW_MS - HORIZONS.beyond_ms - 1
    log: Log = [[(event("1", old_ms, subject="gone"), EVENT, NOW_MS)], [], []]
    plan = make_plan((), (HORIZONS,), erased=erased(), shards=SHARDS, columns=columns)
    panes = drawn_log.Counting(spark, redis_url, tmp_path, plan, log).at_once()

    assert ledger(panes) == {"erased": 1}


def test_what_the_two_readers_of_json_take_for_an_event(
    spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
) -> None:
    """Forged records of which the ways differ, as a fact: ingest writes none of them.

    With Arrow no part of a record that is no JSON counts. A number beyond doubles and bytes that
    are no UTF-8 make a record no less an event, in both ways, whether or not a metric reads them.
    """
    told = b'","type":"t","weirtenant":"acme","weirsource":"web","data":{'
    unread = [told + rest for rest in (b'"z":1e400,"x":1}}', b'"x":1e400}}', b'"x":"\xff"}}')]
    heads = [event(f"e{n}")[:TIME_END] for n in range(len(APART) + len(unread))]
    forged = zip(heads, (*APART, *unread), strict=True)
    log: Log = [[(head + rest, SAMPLED, NOW_MS) for head, rest in forged], [], []]
    version = Version(1, "acme", "m", ((10, 3_600),))
    plan = make_plan(
        [Counted(version, metric(value="data.x"))], (HORIZONS,), shards=SHARDS, columns=columns
    )
    counting = drawn_log.Counting(spark, redis_url, tmp_path, plan, log)
    counting.at_once()
    (outcome,) = counting.outcomes

    said = ("counted", None) if columns else ("quarantined", "not_an_event")
    assert [fate[2:4] for fate in outcome.fates] == [
        *[said] * len(APART),
        *[("counted", None)] * len(unread),
    ]
