"""How old the numbers are, and which part is to blame: one pure decision.

It looks at a few observations and names the root, not the symptom: with Kafka away,
counting stands still too, but it is Kafka that is told.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

# A number is live up to this age; a part that has not moved for this long is stale.
LIVE_MS = 5_000
STALE_MS = 6_000


@dataclass(frozen=True)
class Observed:
    """What the hub sees at one moment; all ages in milliseconds.

    Attributes:
        now_ms: The present, by the clock.
        processed_through_ms: Up to where all events are counted, or None.
        unmoved_ms: Since when processed-through stands still.
        since_ms: When it last moved, by the clock.
        redis_away_ms: Since when Redis does not answer; None if it does. Heartbeats are not
            to be had from then on, so nobody is blamed for theirs.
        kafka_away_ms: Since when no broker answers; None if one does.
        panes_age_ms: Age of the newest heartbeat of `panes`; None without one.
        panes_held: A partition holds processed-through, says `panes`.
        ingest_away_ms: Since when no `ingest` has said that it runs and can store.
        ingest_stalled: Ingest runs but cannot store, it says.
        hub_idle_ms: Since when the hub has not evaluated what is due.
        rebuilding: Share of a rebuild that is done, 0 to 1; None without one.
        received_ms: Newest received time known, or None.
        evaluated_ms: When the hub last evaluated, or None.
    """

    now_ms: int
    processed_through_ms: int | None = None
    unmoved_ms: int = 0
    since_ms: int = 0
    redis_away_ms: int | None = None
    kafka_away_ms: int | None = None
    panes_age_ms: int | None = None
    panes_held: bool = False
    ingest_away_ms: int = 0
    ingest_stalled: bool = False
    hub_idle_ms: int = 0
    rebuilding: float | None = None
    received_ms: int | None = None
    evaluated_ms: int | None = None


@dataclass(frozen=True)
class Fresh:
    """Freshness as it stands in heartbeats and answers.

    Attributes:
        status: `live`, `behind`, `stale` or `rebuilding`.
        processed_through_ms: Up to where all events are counted, or None.
        received_ms: Newest received time known, or None.
        evaluated_ms: When the hub last evaluated, or None.
        since_ms: Since when it is not live.
        part: Who is to blame: `ingest kafka panes redis hub`.
        progress: Of a rebuild, 0 to 1.
    """

    status: str
    processed_through_ms: int | None
    received_ms: int | None
    evaluated_ms: int | None
    since_ms: int | None = None
    part: str | None = None
    progress: float | None = None

    def body(self) -> dict[str, Any]:
        """Return the members as they stand on the wire."""
        return asdict(self)


def judge(seen: Observed) -> Fresh:
    """Return how fresh the numbers are."""
    part, away_ms = _culprit(seen)
    live = Fresh("live", seen.processed_through_ms, seen.received_ms, seen.evaluated_ms)
    if part is not None:
        return replace(live, status="stale", since_ms=seen.now_ms - away_ms, part=part)
    if seen.rebuilding is not None:
        return replace(live, status="rebuilding", progress=seen.rebuilding)
    if seen.processed_through_ms is None:
        return replace(live, status="stale", since_ms=seen.since_ms, part="panes")
    if seen.now_ms - seen.processed_through_ms > LIVE_MS:
        return replace(live, status="behind", since_ms=seen.processed_through_ms, part="panes")
    return live


def _culprit(seen: Observed) -> tuple[str | None, int]:
    """Return the part that has not moved for too long, the root first, and since when."""
    stood = seen.unmoved_ms >= STALE_MS
    if _gone(seen.redis_away_ms) or (stood and seen.redis_away_ms is not None):
        return "redis", seen.redis_away_ms or 0
    if _gone(seen.kafka_away_ms) or (stood and (seen.panes_held or seen.kafka_away_ms is not None)):
        return "kafka", max(seen.kafka_away_ms or 0, seen.unmoved_ms if stood else 0)
    if stood:
        return "panes", seen.unmoved_ms
    heard = seen.redis_away_ms is None
    if heard and (seen.ingest_stalled or _gone(seen.ingest_away_ms)):
        return "ingest", seen.ingest_away_ms
    if seen.hub_idle_ms >= STALE_MS:
        return "hub", seen.hub_idle_ms
    return None, 0


def _gone(away_ms: int | None) -> bool:
    return away_ms is not None and away_ms >= STALE_MS
