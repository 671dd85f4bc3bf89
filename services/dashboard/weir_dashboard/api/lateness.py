"""How late each source's events are, so that an allowed lateness can be chosen from data."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Annotated

from fastapi import APIRouter, Query
from weir.lateness import Lateness
from weir_reading.accounts import HOUR_S, read_lateness

from weir_dashboard.api.read_models import LatenessTold, LateShare, SourceLateness
from weir_dashboard.context import Here, Who

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
ASKED_MS = (0, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY)
"""All of them edges of buckets, where counts are exact."""

router = APIRouter(tags=["flow"])


@router.get("/lateness")
async def lateness(
    here: Here, caller: Who, hours: Annotated[int, Query(ge=1, le=192)] = 24
) -> LatenessTold:
    """Return how late counted events were, by source: R minus event time.

    `late` says how many came later than each length: the most that would have been late with
    that `allowed_lateness`, whatever the panes. `p50_ms`, `p99_ms` and `max_ms` are
    edges of buckets, at or above the true value; null: more than 100 days.
    """
    through_ms = here.batches.processed_through_ms or here.clock.now_ms()
    last_s = through_ms // 1000 // HOUR_S * HOUR_S
    starts = range(last_s - (hours - 1) * HOUR_S, last_s + 1, HOUR_S)
    found = await read_lateness(here.queries.panes, starts, here.catalog.shards, caller.tenant)
    whole = reduce(add, found.values(), Lateness({}))
    return LatenessTold(
        from_ms=starts[0] * 1000,
        to_ms=through_ms,
        all=_told(None, whole),
        sources=[_told(source, one) for source, one in found.items()],
    )


def _told(source: str | None, late: Lateness) -> SourceLateness:
    shares = []
    for than_ms in ASKED_MS:
        n = late.later_than(than_ms)
        shares.append(LateShare(than_ms=than_ms, events=n, share=n / max(1, late.events)))
    return SourceLateness(
        source=source,
        events=late.events,
        late=shares,
        p50_ms=late.at_most_ms(0.5),
        p99_ms=late.at_most_ms(0.99),
        max_ms=late.at_most_ms(1.0),
    )
