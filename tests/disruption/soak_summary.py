"""What a soak has seen, row by row of RELIABILITY 7, and whether each row passes. No I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

# What benchmarks of the path to the screen reach (PERFORMANCE, P3), from the last event's
# acknowledgement; a soak judges it only while nothing is broken.
FRESH_P50_S, FRESH_P99_S = 0.8, 1.5
FRAME_GAP_S = 10.0
PANES = 10_000
# A run this long has that many panes; a shorter one is only a try.
PANES_AFTER_MIN = 5.0
GROWTH_SHARE, GROWTH_BYTES = 0.01, 5_000_000
# Growth is told from the first full hour on.
SETTLED_MIN = 60.0
FLAT_SHARE = 0.05


@dataclass
class Sample:
    """What was seen at the end of a minute.

    Attributes:
        minute: Minutes since the load began.
        rss: Resident bytes of each part.
        flat: Figures that level off once `keep` and the horizon are full: Redis memory and
            keys, bytes a pane, dedup bytes, checkpoint files, sockets, threads.
    """

    minute: float
    rss: dict[str, int] = field(default_factory=dict)
    flat: dict[str, float] = field(default_factory=dict)


@dataclass
class Seen:
    """What a whole soak has seen.

    Attributes:
        minutes: How long it ran.
        pace: How much longer everything may take on a busy machine.
        sent: Items that were sent at least once, those that cannot be used among them.
        accepted: Items that were answered 2xx.
        refused: Requests that were answered anything else.
        unknown: Items whose last request had no 2xx.
        resent: Items that were sent once more after a request without a 2xx.
        in_log: Records of the log, ticks not among them.
        dispositions: How many became what, by the recount.
        quarantined: The same by reason, of those quarantined.
        difference: Minutes of the served ledger that differ from the recount.
        compared, mismatches: Panes held against the recount.
        wrong: What readers saw meanwhile that must not be.
        fresh_s: Ages from an acknowledgement to the revision that has it, while all was well.
        frame_s: The same to a frame of the live socket.
        frame_gap_s: Longest time without a frame while the dashboard served.
        batch_ms: Times of the batches.
        verdicts: Verdicts by name, of all starts and of all that ended a life.
        unexpected: Verdicts that no fault explains.
        errors: Events logged as errors that no fault explains.
        lag: Records that are not counted at the end.
        samples: By minute.
        due, delivered, repeated: Messages of alerts; `repeated` came more than once.
        latest_s: The longest time from due to delivered.
        keep_min: From when on all is full; None if that was not reached.
    """

    minutes: float
    pace: float = 1.0
    sent: int = 0
    accepted: int = 0
    refused: int = 0
    unknown: int = 0
    resent: int = 0
    in_log: int = 0
    dispositions: dict[str, int] = field(default_factory=dict)
    quarantined: dict[str, int] = field(default_factory=dict)
    difference: list[str] = field(default_factory=list)
    compared: int = 0
    mismatches: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    fresh_s: list[float] = field(default_factory=list)
    frame_s: list[float] = field(default_factory=list)
    frame_gap_s: float = 0.0
    batch_ms: list[float] = field(default_factory=list)
    verdicts: dict[str, int] = field(default_factory=dict)
    unexpected: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    lag: int = 0
    samples: list[Sample] = field(default_factory=list)
    due: int = 0
    delivered: int = 0
    repeated: int = 0
    latest_s: float = 0.0
    keep_min: float | None = None


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        figure: Which.
        passes: Whether it does; None where the run was too short to say.
        value: What was seen.
    """

    figure: str
    passes: bool | None
    value: dict[str, Any]


def rows(seen: Seen) -> list[Row]:
    """Return every row of the table."""
    return [
        _log(seen),
        _ledger(seen),
        _panes(seen),
        _freshness(seen),
        _engine(seen),
        _memory(seen),
        _flat(seen),
        _alerts(seen),
    ]


def passes(found: Sequence[Row]) -> bool:
    """Return whether no row fails."""
    return all(row.passes is not False for row in found)


def _log(seen: Seen) -> Row:
    most = seen.accepted + seen.unknown + seen.resent
    value = {
        name: getattr(seen, name)
        for name in ("sent", "accepted", "refused", "unknown", "resent", "in_log")
    }
    is_right = 0 < seen.accepted <= seen.in_log <= most
    return Row("accepted <= log <= accepted + unknown + resends", is_right, value)


def _ledger(seen: Seen) -> Row:
    value = {
        **seen.dispositions,
        "quarantined_by_reason": seen.quarantined,
        "difference": len(seen.difference),
        "first": seen.difference[:3],
    }
    is_whole = sum(seen.dispositions.values()) == seen.in_log
    return Row("difference = 0 in every minute", is_whole and not seen.difference, value)


def _panes(seen: Seen) -> Row:
    least = PANES if seen.minutes >= PANES_AFTER_MIN else 1
    value = {
        "compared": seen.compared,
        "least": least,
        "mismatches": len(seen.mismatches),
        "first": seen.mismatches[:3],
        "seen_by_readers": seen.wrong[:3],
    }
    is_right = seen.compared >= least and not seen.mismatches and not seen.wrong
    return Row("panes equal the recount", is_right, value)


def _freshness(seen: Seen) -> Row:
    value: dict[str, Any] = {"frame_gap_s": round(seen.frame_gap_s, 2)}
    is_right = seen.frame_gap_s < FRAME_GAP_S * seen.pace
    for name, ages in (("revision", seen.fresh_s), ("frame", seen.frame_s)):
        p50, p99 = quantile(ages, 0.5), quantile(ages, 0.99)
        value |= {f"{name}_p50_s": _told(p50), f"{name}_p99_s": _told(p99), f"{name}_n": len(ages)}
        is_right &= p50 < FRESH_P50_S * seen.pace and p99 < FRESH_P99_S * seen.pace
    return Row("freshness while nothing is broken, frame gap", is_right, value)


def _engine(seen: Seen) -> Row:
    value = {
        "batches": len(seen.batch_ms),
        "batch_p99_ms": _told(quantile(seen.batch_ms, 0.99)),
        "verdicts": seen.verdicts,
        "without_a_fault": seen.unexpected[:3],
        "errors": seen.errors[:3],
        "lag_at_the_end": seen.lag,
    }
    is_right = not (seen.unexpected or seen.errors or seen.lag) and bool(seen.batch_ms)
    return Row("verdicts, lag", is_right, value)


def _memory(seen: Seen) -> Row:
    rss = seen.samples[-1].rss if seen.samples else {}
    figure = "growth of memory an hour"
    if seen.minutes < 2 * SETTLED_MIN:
        return Row(figure, None, {"rss": rss, "why": "under two hours"})
    growth = {part: _growth(seen, part) for part in rss}
    told = {part: round(grown) for part, (grown, _) in growth.items()}
    is_right = bool(growth) and all(
        grown <= max(GROWTH_BYTES, GROWTH_SHARE * first) for grown, first in growth.values()
    )
    return Row(figure, is_right, {"rss": rss, "growth_per_hour": told})


def _growth(seen: Seen, part: str) -> tuple[float, float]:
    """Return by how many bytes an hour a part grew after its first hour, and from what."""
    found = [(s.minute, s.rss[part]) for s in seen.samples if s.minute >= SETTLED_MIN]
    found = [one for one in found if one[1]]
    (first_min, first), (last_min, last) = found[0], found[-1]
    hours = max((last_min - first_min) / 60, 1e-9)
    return (last - first) / hours, first


def _flat(seen: Seen) -> Row:
    last = seen.samples[-1].flat if seen.samples else {}
    told = {name: round(amount, 1) for name, amount in last.items()}
    figure = "Redis, dedup, checkpoint, sockets, threads are flat"
    if seen.keep_min is None or seen.minutes < 2 * seen.keep_min:
        return Row(figure, None, {**told, "why": "keep and horizon are not full yet"})
    full = [s.flat for s in seen.samples if s.minute >= seen.keep_min]
    grown = [name for name in last if _grows([one[name] for one in full if name in one])]
    return Row(figure, not grown, {**told, "grown": grown})


def _grows(amounts: Sequence[float]) -> bool:
    """Return whether the last third lies above the first by more than it may."""
    third = max(1, len(amounts) // 3)
    first, last = sum(amounts[:third]) / third, sum(amounts[-third:]) / third
    return last > first * (1 + FLAT_SHARE) + 1


def _alerts(seen: Seen) -> Row:
    value = {
        "due": seen.due,
        "delivered": seen.delivered,
        "duplicates": seen.repeated,
        "latest_s": round(seen.latest_s, 1),
    }
    return Row("alerts due = delivered", 0 < seen.due == seen.delivered, value)


def quantile(values: Sequence[float], q: float) -> float:
    """Return the value at a share of all, by rank; infinity of none."""
    if not values:
        return math.inf
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)]


def _told(value: float) -> float | None:
    return None if math.isinf(value) else round(value, 3)


def as_json(found: Sequence[Row]) -> dict[str, Any]:
    """Return the summary as one object."""
    return {"summary": [asdict(row) for row in found], "passes": passes(found)}
