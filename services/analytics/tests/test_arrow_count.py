"""A task that counts: whose records are, what it holds, and that pieces count as the whole."""

from __future__ import annotations

import gc
import json
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from weir import names
from weir_analytics.panes import arrow_choice, arrow_count, arrow_metrics
from weir_analytics.panes.accounts import GAP, LATE, LATE_ROWS
from weir_analytics.panes.arrow_account import Words
from weir_analytics.panes.arrow_count import CountTask
from weir_analytics.panes.arrow_judge import or_else
from weir_analytics.panes.arrow_members import decoded_bytes
from weir_analytics.panes.arrow_plan import ArrowPlan, Told, make_plan, read_told
from weir_analytics.panes.dispose import TAKES, DisposeTask
from weir_analytics.panes.erased import Erased
from weir_analytics.panes.inbox import Inbox
from weir_analytics.panes.kinds import Kind
from weir_analytics.panes.places import places_of
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.versions import Version, versions_from_json, versions_to_json

from .log_frames import HORIZONS, NOW_MS, batch_of, event
from .test_plan import metric, plan_of

Parts = dict[tuple[Any, ...], tuple[Any, ...]]
VALUED = metric(
    value="data.x", by=["data.k"], aggregates=["count", "sum", "min", "max", "distinct(data.k)"]
)


def taken(task: CountTask, dispose: DisposeTask, values: list[bytes], refused: list[str]) -> None:
    """Let a task take events, and behind them refused records of some tenants."""
    size, first = len(values) + len(refused), dispose._reading._next.get(0, 0)
    found, identity, _times = places_of([*values, *[b"{"] * len(refused)], [True] * size)
    kind = np.where(found, int(Kind.EVENT), int(Kind.REFUSED)).astype(np.int8)
    given = [*[None] * len(values), *[b"{"] * len(refused)]
    reason = f"{names.HEADER_REASON.encode().hex()}={b'invalid_json'.hex()}"
    headers = [
        *[None] * len(values),
        *(f"{reason},{names.HEADER_TENANT.encode().hex()}={t.encode().hex()}" for t in refused),
    ]
    columns: dict[str, pa.Array] = {
        "partition": pa.array([0] * size, pa.int32()),
        "offset": pa.array(range(first, first + size), pa.int64()),
        "at_ms": pa.array([NOW_MS] * size, pa.int64()),
        "kind": pa.array(kind),
        "identity": identity,
        "given": pa.array(given, pa.binary()),
        "headers": pa.array(headers, pa.string()),
    }
    fates = dispose.answer(*(columns[name] for name in TAKES))
    given_values = [*values, *[b"{"] * len(refused)]
    task.take(columns["partition"], columns["offset"], columns["kind"], fates, given_values)


def parts_of(plan: ArrowPlan, batches: list[pa.RecordBatch]) -> Parts:
    """Return what the writer makes of the rows of a task."""
    inbox = Inbox(versions_from_json(versions_to_json(plan.versions)))
    for one in batches:
        inbox.take(one)
    return {
        (p.vid, p.res_s, p.start_s, p.series): (p.row.n, p.row.sum, p.row.min, p.row.max)
        for p in inbox.parts()
    }


def arrow(*metrics: Any, **given: Any) -> ArrowPlan:
    """Return a plan in Arrow."""
    plan = plan_of(*metrics, **given)
    assert isinstance(plan, ArrowPlan)
    return plan


@pytest.mark.parametrize("tenant", ["default", "acme", "zeta"])
@pytest.mark.parametrize("refused", [["acme"], ["acme", "b", "default"], ["default"], []])
def test_records_are_their_own_tenants(tenant: str, refused: list[str], tmp_path: Path) -> None:
    """Of a tenant whose name is the default one, too, beside refused records of others."""
    plan, batch = arrow(), batch_of(tmp_path, 1 + len(refused), copies="none", dry=True)
    task = CountTask(plan.told, plan.outputs, batch)
    taken(task, DisposeTask(batch), [event("e", tenant=tenant)], refused)
    parts = parts_of(plan, list(task.rows()))

    ledger = {series: row[0] for (vid, _r, _s, series), row in parts.items() if vid == -1}
    wanted = {f"={tenant}|=web|=counted": 1}
    for one in refused:
        wanted[f"={one}|=kafka|=quarantined"] = refused.count(one)
    assert ledger == wanted


def test_in_pieces_it_counts_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few records are counted, and rows leave, at once."""
    values = [event(f"e{i}", NOW_MS + i * 700, x=i, k=f"k{i % 3}") for i in range(90)]
    metrics = [VALUED, metric(name="b", where="data.x > 10 and data.k like 'k%'")]
    plan, batch = arrow(*metrics), batch_of(tmp_path, 90, copies="none", dry=True)

    def counted(slices: int) -> Parts:
        task, dispose = CountTask(plan.told, plan.outputs, batch), DisposeTask(batch)
        batches: list[pa.RecordBatch] = []
        for at in range(0, 90, 90 // slices):
            taken(task, dispose, values[at : at + 90 // slices], [])
            if task.is_full:
                batches += task.rows()
        batches += task.rows()
        assert max(map(len, batches)) <= arrow_metrics.ROWS_AT_ONCE
        return parts_of(plan, batches)

    whole = counted(1)
    monkeypatch.setattr(arrow_count, "AT_ONCE", 20)
    monkeypatch.setattr(arrow_count, "ROWS_AT_ONCE", 4)
    monkeypatch.setattr(arrow_metrics, "ROWS_AT_ONCE", 4)
    monkeypatch.setattr(arrow_choice, "MOST_BYTES", 40)
    monkeypatch.setattr(arrow_metrics, "MOST_BYTES", 40)
    assert counted(9) == whole
    assert sum(row[0] for (vid, *_), row in whole.items() if vid == 1) == 3 * 90


@pytest.mark.parametrize("slices", [1, 4])
@pytest.mark.parametrize("most", [1, 3, 40])
def test_events_that_a_metric_cannot_use_are_few_rows(
    slices: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong path makes all unusable: those that are copied have a row each, all others one.

    What the writer copies, counts, and says is missing is as if each had a row.
    """
    # Of two types: what a metric selects of several is in the log's order, too.
    values = [event(f"e{i}", event_type=f"t{i % 2}", x="a" if i % 4 else None) for i in range(40)]
    one = metric(value="data.x", events={"type": "t*"}, aggregates=["count", "sum"])
    plan, batch = arrow(one), batch_of(tmp_path, 40, copies="none", dry=True)

    def written(at_most: int) -> tuple[list[tuple[str, int]], Inbox]:
        monkeypatch.setattr(arrow_metrics, "MAX_COPIES", at_most)
        task, dispose = CountTask(plan.told, plan.outputs, batch), DisposeTask(batch)
        batches: list[pa.RecordBatch] = []
        for at in range(0, 40, 40 // slices):
            taken(task, dispose, values[at : at + 40 // slices], [])
            batches += task.rows()
        inbox = Inbox(versions_from_json(versions_to_json(plan.versions)))
        inbox.copies.most = most
        for rows in batches:
            inbox.take(rows)
        own = [
            (series.split("\x01")[0], offset)
            for rows in batches
            for vid, series, offset in zip(
                *(rows[name].to_pylist() for name in ("vid", "series", "start_s")), strict=True
            )
            if vid == 1
        ]
        return own, inbox

    (few, found), (each, wanted) = written(most), written(40)
    size = 40 // slices
    pieces = [range(at, at + size) for at in range(0, 40, size)]
    missing = [[n for n in piece if n % 4 == 0] for piece in pieces]
    invalid = [[n for n in piece if n % 4] for piece in pieces]
    lowest = {("value_missing", n) for piece in missing for n in piece[:most]}
    lowest |= {("value_invalid", n) for piece in invalid for n in piece[:most]}
    assert {(code, offset) for code, offset in few if offset >= 0} == lowest
    assert found.copies.chosen() == wanted.copies.chosen()
    assert found.copies.left_out() == wanted.copies.left_out() == 40 - most
    assert found.unused == wanted.unused == {"value_invalid": 30, "value_missing": 10}
    assert len(each) == 40
    assert len(few) - len(lowest) == sum(len(p) > most for p in (*missing, *invalid))


@pytest.mark.parametrize(("final_through_ms", "late"), [(None, 0), (NOW_MS, 20)])
def test_what_one_metric_is_strict_about_is_late_in_no_other(
    final_through_ms: int | None, late: int, tmp_path: Path
) -> None:
    """Beside a metric of whose panes each is final as it ends, others' events leave no more rows.

    Of the strict one a row for each pane, and where nothing is a correction none.
    """
    values = [event(f"e{i}", NOW_MS - i * 500, tenant=t) for i in range(40) for t in ("a", "z")]
    counted = [Counted(Version(1, "a", "strict", ((1, 3_600),)), metric())]
    counted += [
        Counted(
            Version(vid, tenant, "m", ((10, 3_600),), lateness_ms=60_000), metric(by=["data.k"])
        )
        for vid, tenant in enumerate(("a", "z") * 10, 2)
    ]
    plan = make_plan(counted, (HORIZONS,))
    assert isinstance(plan, ArrowPlan)
    batch = batch_of(tmp_path, 80, copies="none", dry=True, final_through_ms=final_through_ms)
    task = CountTask(plan.told, plan.outputs, batch)
    taken(task, DisposeTask(batch), values, [])
    rows = [row for found in task.rows() for row in found.to_pylist()]

    told = {vid: [row for row in rows if row["vid"] == vid] for vid in (LATE, LATE_ROWS)}
    assert {vid: len(found) for vid, found in told.items()} == {LATE: late, LATE_ROWS: late}
    assert {row["series"].split(GAP)[0] for row in told[LATE]} <= {"a"}
    assert {row["series"].split(GAP)[0] for row in told[LATE_ROWS]} <= {"1"}


def test_a_task_leaves_nothing_for_the_collector_of_cycles(tmp_path: Path) -> None:
    """What was read of events goes with them, also where a condition is true of all of them."""
    batch = batch_of(tmp_path, 9, copies="none", dry=True)
    plan = arrow(
        VALUED, metric(name="all", where="data.x >= 0"), metric(name="b", where="data.x > 3")
    )
    task = CountTask(plan.told, plan.outputs, batch)
    gc.collect()
    gc.disable()
    try:
        taken(task, DisposeTask(batch), [event(f"e{i}", x=i, k="a") for i in range(9)], [])
        held = weakref.ref(task._members)
        assert len(list(task.rows())) == 1
        assert held() is None
    finally:
        gc.enable()


def test_a_foreign_event_beside_those_of_ingest(tmp_path: Path) -> None:
    """Its time is that of what ingest would have written, the others' stand at their places."""
    plan, batch = arrow(metric(name="m")), batch_of(tmp_path, 3, copies="none", dry=True)
    at = datetime.fromtimestamp((NOW_MS - 60_000) / 1000, UTC).isoformat()
    foreign = json.dumps(
        {"specversion": "1.0", "id": "f", "source": "/f", "type": "t", "time": at}
    ).encode()
    values = [event("a", NOW_MS), foreign, event("b", NOW_MS - 120_000)]
    found, identity, times_ms = places_of(values)
    kind = np.where(found, int(Kind.EVENT), int(Kind.FOREIGN)).astype(np.int8)
    columns: dict[str, pa.Array] = {
        "partition": pa.array([0] * 3, pa.int32()),
        "offset": pa.array(range(3), pa.int64()),
        "at_ms": pa.array([NOW_MS] * 3, pa.int64()),
        "kind": pa.array(kind),
        "identity": identity,
        "given": pa.array([None, foreign, None], pa.binary()),
        "headers": pa.array([None, "", None], pa.string()),
    }
    fates = DisposeTask(batch).answer(*(columns[name] for name in TAKES))
    for given in (times_ms, None):
        task = CountTask(plan.told, plan.outputs, batch)
        task.take(columns["partition"], columns["offset"], columns["kind"], fates, values, given)
        assert task._times_ms[0].tolist() == [NOW_MS, NOW_MS - 60_000, NOW_MS - 120_000]
        ledger = {
            p[3]: row[0] for p, row in parts_of(plan, list(task.rows())).items() if p[0] == -1
        }
        assert ledger == {"=acme|=web|=counted": 2, "=default|=kafka|=counted": 1}


def test_brackets_weigh_more_than_texts() -> None:
    """Values full of lists and objects fill a task sooner than texts of the same length."""
    text, lists = b'{"x":"' + b"a" * 300 + b'"}', b'{"x":[' + b"[]," * 99 + b"[]]}"
    assert decoded_bytes([text]) < 2 * len(text)
    assert decoded_bytes([lists]) > 20 * len(lists)
    assert decoded_bytes([]) == 0


def test_what_tasks_are_told_comes_back() -> None:
    """Versions, metrics, whom nobody may count, horizons by offset: as text and back."""
    plan = arrow(VALUED, metric(name="b", where="data.x > 1"), guarded=True, shards=3)
    told = read_told(plan.told)
    gone = Erased(frozenset({("a", "h")}), b"k", frozenset({("b", "i"), ("a", "j")}))
    other = Told(told.counted, False, gone, (({}, 5), ({0: 7, 3: 9}, 8)), 2)

    assert tuple(one.version for one in told.counted) == plan.versions
    assert told.counted[0].metric.canonical() == VALUED.canonical()
    assert (told.guarded, told.erased, told.shards) == (True, None, 3)
    assert Told.from_json(other.to_json()) == other
    assert "6b" not in repr(other)


def test_no_text_is_told_twice() -> None:
    """Words hold each text once, so that equal ones have one code."""
    words = or_else(Words(np.array([0, -1, -1], np.int32), ["x"]), {1: "x"}, "y")
    assert words.texts == ["x", "y"]
    assert words.codes.tolist() == [0, 0, 1]
