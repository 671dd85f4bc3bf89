"""What queries and rules are told of counting, from definitions and batch records alike."""

from __future__ import annotations

from weir.query.facts import Facts

from weir_reading.batches import Batches
from weir_reading.catalog import Catalog


def facts_of(
    catalog: Catalog, batches: Batches, *, processed_through_ms: int | None, now_ms: int
) -> Facts:
    """Return how far counting has come; a pane is complete if both sources say so.

    The driver's start says what the log has lost; the batch records say what is not counted
    again yet.

    Args:
        catalog: What the definitions say.
        batches: What the batch records say.
        processed_through_ms: Received time up to which all events are counted, as far as who
            asks has come; None if nothing is known yet.
        now_ms: Where "the last hour" ends, and what decides which panes are kept.
    """
    return Facts(
        epoch=batches.epoch,
        rev=batches.rev,
        processed_through_ms=processed_through_ms,
        now_ms=now_ms,
        incomplete_before_ms=max(catalog.incomplete_before_ms, batches.incomplete_before_ms),
        rebuilding=batches.rebuilding,
    )
