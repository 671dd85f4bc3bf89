"""What a soak has seen, row by row of RELIABILITY 7, and whether each row passes. No I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Any

from recount import DISPOSITIONS

# What benchmarks of the path to the screen reach (PERFORMANCE, P3), from the last event's
# acknowledgement; a soak judges it only while nothing is broken.
FRESH_P50_S, FRESH_P99_S = 0.8, 1.5
FRAME_GAP_S = 10.0
# D20: what comes in a burst is counted within so long.
BURST_FRESH_S = 10.0
PANES = 10_000
# A run this long has that many panes; a shorter one is only a try.
PANES_AFTER_MIN = 5.0
GROWTH_SHARE, GROWTH_BYTES = 0.01, 5_000_000
# Growth is judged from the first full hour on, and told from when every part is warm.
SETTLED_MIN, WARM_MIN = 60.0, 10.0
# So long after something is full, levels are judged: three thirds of ten minutes or more.
JUDGED_AFTER_MIN = 20.0
FLAT_SHARE = 0.05
# What is counted in pieces: a fault that ends moves some of them for a while.
PIECES_SHARE, PIECES = 0.1, 5.0
DEDUP, AN_ITEM = "dedup_entries", "dedup_entries_an_item"
# A horizon is some minutes, and the load within its first and last one is not even.
DEDUP_SHARE = 0.25
# Servers of others take what they are given; Redis holds more and more panes until `keep` is full.
SERVERS = frozenset({"redis", "kafka"})
# What a part may have more of, from when it is warm: each life of it warms up anew.
WARMING_SHARE = 0.5
PIECES_OF = ("sockets", "threads", "panes_threads", "panes_files", "checkpoint_files")


@dataclass
class Sample:
    """What was seen at the end of a minute.

    Attributes:
        minute: Minutes since the load began.
        rss: Resident bytes of each process: of the engine the driver, its JVM and its workers.
        flat: Figures that level off once `keep` and the horizon are full: Redis memory and
            keys, bytes a pane, dedup entries, checkpoint files, sockets, threads.
        sent: Items that were sent until then.
        slices: Slices of backfills and rebuilds until then.
    """

    minute: float
    rss: dict[str, int] = field(default_factory=dict)
    flat: dict[str, float] = field(default_factory=dict)
    sent: int = 0
    slices: int = 0


@dataclass
class Seen:
    """What a whole soak has seen.

    Attributes:
        minutes: How long it ran.
        pace: How much longer what is promised may take, on a machine that others use.
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
        burst_per_s, burst_fresh_s: Of each burst, what was taken in a second, and how long its
            last event took to be counted.
        frame_gap_s: Longest time without a frame while the dashboard served.
        batch_ms: Times of the batches.
        verdicts: Verdicts by name, of all starts and of all that ended a life.
        unexpected: Verdicts that no fault explains.
        errors: Events logged as errors that no fault explains.
        lag: Records that are not counted at the end.
        samples: By minute.
        due, delivered, repeated: Messages of alerts; `repeated` came more than once.
        latest_s: The longest time from due to delivered.
        episodes: How often the alarm must have fired, by what was sent.
        unlike: Of those the ones that nobody was told of, and what was told and never was.
        keep_min: From when on Redis is full: `keep`, and a day more.
        horizon_min: From when on dedup is full: the horizon.
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
    burst_per_s: list[int] = field(default_factory=list)
    burst_fresh_s: list[float] = field(default_factory=list)
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
    episodes: int = 0
    unlike: list[str] = field(default_factory=list)
    keep_min: float = SETTLED_MIN
    horizon_min: float = SETTLED_MIN


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
        _leaks(seen),
        _pieces(seen),
        _dedup(seen),
        _redis_keys(seen),
        _redis(seen),
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
    value: dict[str, Any] = {
        "frame_gap_s": round(seen.frame_gap_s, 2),
        "bursts_per_s": seen.burst_per_s,
        "bursts_fresh_s": seen.burst_fresh_s,
    }
    is_right = seen.frame_gap_s < FRAME_GAP_S * seen.pace
    is_right &= all(one < BURST_FRESH_S * seen.pace for one in seen.burst_fresh_s)
    for name, ages in (("revision", seen.fresh_s), ("frame", seen.frame_s)):
        p50, p99 = quantile(ages, 0.5), quantile(ages, 0.99)
        value |= {
            f"{name}_p50_s": rounded(p50),
            f"{name}_p99_s": rounded(p99),
            f"{name}_n": len(ages),
        }
        is_right &= p50 < FRESH_P50_S * seen.pace and p99 < FRESH_P99_S * seen.pace
    return Row("freshness while nothing is broken, frame gap", is_right, value)


def _engine(seen: Seen) -> Row:
    value = {
        "batches": len(seen.batch_ms),
        "batch_p99_ms": rounded(quantile(seen.batch_ms, 0.99)),
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
        why = f"judged from two hours on, told after {WARM_MIN:g} minutes of warming up"
        told = {part: _drift(seen, part) for part in rss}
        return Row(figure, None, {"rss": rss, "growth_per_hour": told, "why": why})
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


def _drift(seen: Seen, part: str) -> int | None:
    """Return by how many bytes an hour a part grew since it was warm, by thirds of the run.

    None of a run without three samples since then. A part that was killed began anew: of
    thirds the medians are compared, which a single start does not move.
    """
    warm = [s for s in seen.samples if s.minute >= WARM_MIN and s.rss.get(part)]
    third = len(warm) // 3
    if not third:
        return None
    first, last = warm[:third], warm[-third:]
    hours = (median(s.minute for s in last) - median(s.minute for s in first)) / 60
    grown = median(s.rss[part] for s in last) - median(s.rss[part] for s in first)
    return round(grown / hours) if hours else None


def _leaks(seen: Seen) -> Row:
    """Judge what half an hour can tell of memory: one that leaks in minutes, not in hours."""
    samples = [replace(s, flat={part: float(n) for part, n in s.rss.items()}) for s in seen.samples]
    parts = sorted({part for s in samples for part in s.flat} - SERVERS)
    return _level(
        replace(seen, samples=samples),
        "no part's memory grows by half",
        parts,
        (WARM_MIN, "parts are warm"),
        (WARMING_SHARE, 0.0),
    )


def _pieces(seen: Seen) -> Row:
    """Judge what does not depend on how long anything is kept."""
    return _level(
        seen,
        "sockets, threads, open files, checkpoint files are flat",
        PIECES_OF,
        (WARM_MIN, "parts are warm"),
        (PIECES_SHARE, PIECES),
    )


def _dedup(seen: Seen) -> Row:
    """Judge what dedup holds of an item that came within the horizon: of bursts it holds more."""
    sent = {sample.minute: sample.sent for sample in seen.samples}
    samples = []
    for sample in seen.samples:
        flat = dict(sample.flat)
        items = sample.sent - sent.get(sample.minute - seen.horizon_min, 0)
        if items and DEDUP in flat:
            flat[AN_ITEM] = flat[DEDUP] / items
        samples.append(replace(sample, flat=flat))
    return _level(
        replace(seen, samples=samples),
        "dedup is flat",
        (AN_ITEM,),
        (seen.horizon_min, "the horizon is full"),
        (DEDUP_SHARE, 0.0),
    )


def _redis_keys(seen: Seen) -> Row:
    """Judge what a key holds: a pane that never stops growing shows long before `keep` is full."""
    return _level(
        seen,
        "Redis bytes a key are flat",
        ("bytes_per_key",),
        (WARM_MIN, "parts are warm"),
        (PIECES_SHARE, 0.0),
    )


def _redis(seen: Seen) -> Row:
    figure, names = "Redis memory and keys are flat", ("redis_bytes", "redis_keys")
    what = "keep is full, and the day for which Redis holds a pane beyond it,"
    return _level(seen, figure, names, (seen.keep_min, what), (FLAT_SHARE, 1.0))


def _level(
    seen: Seen,
    figure: str,
    names: Sequence[str],
    full: tuple[float, str],
    room: tuple[float, float],
) -> Row:
    """Judge whether figures have levelled off.

    Args:
        seen: The soak.
        figure: What the row is called.
        names: Of the samples' figures.
        full: From which minute on, and what is so from then on.
        room: By which share, and by how much besides, the last third may lie above the first.
    """
    told, (from_min, what) = _last(seen, names), full
    # As long again as it took, but not so long that a short run never gets there.
    needed_min = from_min + max(JUDGED_AFTER_MIN, from_min if from_min > SETTLED_MIN else 0.0)
    if seen.minutes < needed_min:
        why = f"judged from {needed_min:g} minutes on: {what} after {from_min:g}"
        return Row(figure, None, {**told, "why": why})
    # While a part is down its sockets and threads are not there. What is counted again has dedup
    # and files of its own, for the same horizon, until it is counted: by chance some of the last
    # minutes have more of that than the first.
    before = {after.minute: one.slices for one, after in pairwise(seen.samples)}
    whole = [
        s
        for s in seen.samples
        if s.minute >= from_min and all(s.rss.values()) and s.slices == before.get(s.minute, 0)
    ]
    thirds = {n: _thirds([s.flat[n] for s in whole if n in s.flat]) for n in names}
    missing = [name for name, found in thirds.items() if found is None]
    share, more = room
    grown = [
        name
        for name, found in thirds.items()
        if found is not None and found[1] > found[0] * (1 + share) + more
    ]
    levels = {name: found for name, found in thirds.items() if found is not None}
    value = {**told, "levels": levels, "grown": grown, "missing": missing}
    return Row(figure, not grown and not missing, value)


def _last(seen: Seen, names: Sequence[str]) -> dict[str, Any]:
    last = seen.samples[-1].flat if seen.samples else {}
    return {name: round(last[name], 1) for name in names if name in last}


def _thirds(amounts: Sequence[float]) -> tuple[float, float] | None:
    """Return the medians of the first and the last third; None of fewer than three."""
    third = len(amounts) // 3
    if not third:
        return None
    return round(median(amounts[:third]), 1), round(median(amounts[-third:]), 1)


def _alerts(seen: Seen) -> Row:
    value = {
        "due": seen.due,
        "delivered": seen.delivered,
        "duplicates": seen.repeated,
        "latest_s": round(seen.latest_s, 1),
        "episodes": seen.episodes,
        "unlike": seen.unlike[:3],
    }
    is_right = 0 < seen.due == seen.delivered and seen.episodes > 0 and not seen.unlike
    return Row("alerts due = delivered, as what was sent says", is_right, value)


def messages(due_ms: Mapping[str, float], came: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """Return how many messages of alerts were due and came, as a line tells it.

    Args:
        due_ms: By message, when it was due.
        came: Messages and when each came, in that order; one may come again.
    """
    first: dict[str, float] = {}
    for name, at_ms in came:
        first.setdefault(name, at_ms)
    late_ms = [first[name] - at_ms for name, at_ms in due_ms.items() if name in first]
    return {
        "due": len(due_ms),
        "delivered": len(late_ms),
        "duplicates": len(came) - len(first),
        "latest_s": round(max(late_ms, default=0.0) / 1000, 1),
    }


def account_of(served: Mapping[str, Any]) -> dict[str, Any]:
    """Return the account that a page of the ledger gives, as a line tells it.

    Args:
        served: The answer of `/ledger`. Minutes still in flight are counted and not compared.
    """
    names = ("received", *DISPOSITIONS)
    minutes = [one for one in served["items"] if any(one[name] for name in names)]
    closed = [one for one in minutes if not one["open"]]
    # After a loss of Redis nobody knows any more what was read of the log then.
    received = None if any(one["received"] is None for one in minutes) else 0
    return {
        "received": received if received is None else sum(one["received"] for one in minutes),
        **{name: sum(one[name] for one in minutes) for name in DISPOSITIONS},
        "minutes": len(closed),
        "minutes_that_differ": sum(bool(one["difference"]) for one in closed),
        "difference_of_batches": served["batches"]["difference"],
    }


def quantile(values: Sequence[float], q: float) -> float:
    """Return the value at a share of all, by rank; infinity of none."""
    if not values:
        return math.inf
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)]


def rounded(value: float) -> float | None:
    """Return a quantile as it is told, to three digits; None where nothing was seen."""
    return None if math.isinf(value) else round(value, 3)


def as_json(found: Sequence[Row]) -> dict[str, Any]:
    """Return the summary as one object."""
    return {"summary": [asdict(row) for row in found], "passes": passes(found)}
