"""Why records and values could not be used: counted in the same pass, and told by closed sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from weir.batches import BatchRecord
from weir.commit import Verdict
from weir.problems import Reason
from weir_analytics.panes.cycle import Done
from weir_analytics.panes.ops import Figures, answer
from weir_analytics.panes.outcome import Outcome, outcome_of
from weir_analytics.panes.quarantine import OTHER, listed
from weir_analytics.panes.vitals import Vitals
from weir_analytics.panes.writer import Report

from .log_frames import NOW_MS, TICK, batch_of, counted, log_of, open_shards, run_batch
from .test_plan import metric, plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .log_frames import Record


def refused(reason: str) -> Record:
    """Return what ingest writes of an item that cannot be used."""
    return b"{", [("weir-reason", reason.encode())], NOW_MS


@pytest.mark.spark
@pytest.mark.redis
def test_every_record_that_nobody_can_use_has_its_reason(
    spark: SparkSession, redis_url: str, tmp_path: Path
) -> None:
    """By reason they add up to what the ledger has; a metric's values are counted apart."""
    log: list[Record] = [
        refused("invalid_json"),
        refused("invalid_json"),
        refused("id_invalid"),
        refused("of_somebody_else"),
        (b"junk", [], NOW_MS),
        (None, TICK, NOW_MS),
        counted("1", x=1),
        counted("2", x="seven"),
        counted("3", x=1e101),
        counted("4"),
        counted("5"),
    ]
    plan = plan_of(metric(value="data.x"), metric(name="other", value="data.x"))
    batch = batch_of(tmp_path, len(log), redis_url=redis_url, copies="none")
    open_shards(redis_url, batch)
    outcome = outcome_of(run_batch(spark, log_of(spark, log), plan, batch), {})

    assert outcome.reasons == {"invalid_json": 2, "id_invalid": 1, OTHER: 1, "not_an_event": 1}
    assert sum(outcome.reasons.values()) == outcome.events["quarantined"] == 5
    assert outcome.events["counted"] == 5
    assert outcome.unused == {"value_invalid": 2, "value_range": 2, "value_missing": 4}


def test_reports_add_up() -> None:
    """Whatever task met them, and through the text that tasks tell."""
    reports = [
        Report({0: "ok"}, reasons={"id_invalid": 1}, unused={"value_range": 2}),
        Report({1: "ok"}, reasons={"id_invalid": 3, "too_deep": 1}),
    ]
    outcome = outcome_of([Report.from_json(one.to_json()) for one in reports], {})

    assert outcome.reasons == {"id_invalid": 4, "too_deep": 1}
    assert outcome.unused == {"value_range": 2}


def test_what_another_producer_calls_a_reason_is_no_label() -> None:
    """A label of its own for each text would be a series of its own in Prometheus."""
    assert {listed(reason) for reason in Reason} == set(Reason)
    assert listed("of_somebody_else") == OTHER


def told(figures: Figures) -> dict[str, float]:
    """Return what `/metrics` says, but for zeros."""
    lines = answer("/metrics", Vitals(), figures)[2].decode().splitlines()
    found = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(n) for name, n in found if float(n) and "_created" not in name}


def test_figures_have_them() -> None:
    """Each under its reason; all reasons are there from 0."""
    figures = Figures()
    text = answer("/metrics", Vitals(), figures)[2].decode()
    assert 'weir_panes_quarantined_total{reason="too_deep"} 0.0' in text
    assert 'weir_panes_values_refused_total{reason="value_missing"} 0.0' in text
    counted_ = {"reasons": {"too_deep": 2, OTHER: 1}, "unused": {"value_missing": 3}}
    outcome = Outcome(Verdict.OK, 0, {}, (), (), {}, **cast("Any", counted_))
    figures.tell(Done(cast("Any", None), outcome, empty_record(), 0.1), Vitals())

    found = told(figures)
    assert found['weir_panes_quarantined_total{reason="too_deep"}'] == 2
    assert found['weir_panes_quarantined_total{reason="other"}'] == 1
    assert found['weir_panes_values_refused_total{reason="value_missing"}'] == 3


def test_audits_tell_what_they_compared() -> None:
    """Panes and differences of an audit; another job's outcome says neither."""
    figures = Figures()
    figures.audited({"replayed": 3})
    figures.audited({"error": "why"})
    assert "weir_panes_audited_total" not in told(figures)
    metrics = [{"metric": "a", "panes": 40}, {"metric": "b", "panes": 2}]
    figures.audited({"metrics": metrics, "differences": [], "differences_in_all": 7})
    figures.audited({"metrics": metrics, "differences": [], "differences_in_all": 0})

    found = told(figures)
    assert found["weir_panes_audited_total"] == 84
    assert found["weir_panes_audit_mismatches_total"] == 7


def empty_record() -> BatchRecord:
    """Return the record of a batch without events."""
    return BatchRecord(
        epoch=1,
        batch=0,
        rev=1,
        shards=1,
        from_offsets={},
        to_offsets={},
        processed_through_ms=0,
        at_ms=0,
        held_by=None,
        received=0,
        ticks=0,
        ledger=[],
        changed=[],
        lanes=[],
        takeovers=[],
        activations=[],
        fates=[],
        outbox={},
    )
