"""What holds the numbers back, in words: one pure decision beside `freshness`.

Freshness says that numbers are old and which part is to blame; this says why, as far as
the part has told, and what is lost if nobody does anything. It never contradicts
freshness: it only explains what that has judged. Numbers that cannot be read have no age.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from weir.log_left import LogLeft, read_quarantine_told
from weir_reading.parts import Part

from weir_dashboard.freshness import STALE_MS, Fresh

BUSY = 0.9
QUIET_MS = 60_000


@dataclass(frozen=True)
class Said:
    """What is known beside freshness.

    Attributes:
        now_ms: The present.
        panes: The newest heartbeat's detail of `panes`; None without one for 6 s.
        busy: Its share of time at work, 0 to 1.
        in_per_s: Events that it counts in a second.
        refused: Redis answers, but writes nothing.
        lanes: Kinds of lanes under way (`backfill`, `rebuild`), from the newest batch.
        waits: Why a rebuild among them does not go on now; None: all do.
        newer: What a newer release has written that this one cannot read; None: nothing.
    """

    now_ms: int
    panes: dict[str, Any] | None
    busy: float | None = None
    in_per_s: float | None = None
    refused: bool = False
    lanes: Sequence[str] = field(default_factory=tuple)
    waits: str | None = None
    newer: str | None = None


@dataclass(frozen=True)
class Holding:
    """Why numbers are not at the present.

    Attributes:
        code: From a closed set, for machines.
        message: A sentence, for people.
    """

    code: str
    message: str


def holding(fresh: Fresh, said: Said) -> Holding | None:
    """Return what holds the numbers back; None if nothing does."""
    if said.newer is not None:
        return Holding("newer_release", said.newer)
    if fresh.status == "live":
        return _quiet(fresh, said)
    if fresh.status == "rebuilding":
        words = f"what was lost is counted again from the log: {fresh.progress or 0:.0%} done"
        if said.waits is not None:
            words += f"; a part of it waits: {said.waits}; it is tried again by itself"
        return Holding("rebuilding", words)
    if fresh.part in _GONE:
        return _GONE[fresh.part]
    if fresh.part == "ingest":
        words = "ingest is not running, or cannot store: numbers are right, but nothing new comes"
        return Holding("ingest_away", words)
    return _kafka(said) if fresh.part == "kafka" else _panes(fresh, said)


_GONE = {
    "redis": Holding(
        "redis_away",
        "Redis does not answer; events are kept in the log and counted once it is back",
    ),
    "hub": Holding("hub_away", "this dashboard has not answered what is due; counting goes on"),
}


def _quiet(fresh: Fresh, said: Said) -> Holding | None:
    if fresh.received_ms is None or said.now_ms - fresh.received_ms < QUIET_MS:
        return None
    silent = _length(said.now_ms - fresh.received_ms)
    return Holding("quiet", f"nothing has been sent for {silent}; all that came is counted")


def _kafka(said: Said) -> Holding:
    partition = (said.panes or {}).get("held_by")
    if partition is not None:
        words = f"partition {partition} of the log has no leader; all numbers wait for it"
        return Holding("partition_without_leader", words)
    return Holding("kafka_away", "Kafka does not answer; clients are told to send again")


def _panes(fresh: Fresh, said: Said) -> Holding:
    if said.refused:
        words = "Redis answers but writes nothing: it is full, or its disk is; give it more room"
        return Holding("redis_refuses", words)
    if said.panes is None:
        words = "no panes driver has been heard for 6 s; events are kept in the log"
        return Holding("driver_away", words)
    doing, trouble = said.panes.get("doing"), said.panes.get("trouble")
    if doing not in (None, "counting"):
        why = f": {trouble}" if trouble else ""
        return Holding("driver_waiting", f"the panes driver is {doing}{why}")
    if said.panes.get("held_by") is not None:
        return _kafka(said)
    if fresh.status == "stale":
        since = _length(said.now_ms - fresh.since_ms) if fresh.since_ms else "some time"
        return Holding("batch_stuck", f"the driver runs, but no batch has ended for {since}")
    return _behind(said)


def _behind(said: Said) -> Holding:
    waiting = int((said.panes or {}).get("lag_records") or 0)
    if said.lanes:
        kinds = " and ".join(sorted({f"a {kind}" for kind in said.lanes}))
        words = f"{kinds} from the log takes turns with live counting; {waiting:,} records wait"
        return Holding("lanes_busy", words)
    rate = f"{said.in_per_s:,.0f} a second" if said.in_per_s else "slowly"
    if (said.busy or 0) >= BUSY:
        words = f"the driver is at work all the time, counting {rate}; {waiting:,} records wait"
        return Holding("load", words)
    return Holding("catching_up", f"the driver catches up, counting {rate}; {waiting:,} wait")


def _length(ms: int) -> str:
    seconds = max(0, ms) // 1000
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7_200 else f"{seconds // 3600} h"


@dataclass(frozen=True)
class LogHeld:
    """How long the log still holds what is not counted.

    Attributes:
        left_ms: For how long; None: for ever, or not known.
        partition: Where it ends first.
        kept_ms: How long it keeps what comes now; None: for ever, or not known.
        oldest_ms: When its oldest record was appended.
        warning: What is going to be lost, and what to do; None while there is time.
    """

    left_ms: int | None
    partition: int | None
    kept_ms: int | None
    oldest_ms: int | None
    warning: str | None


def log_held(left: LogLeft | None) -> LogHeld:
    """Return what is told of the log; None: nothing is known of it."""
    left = left or LogLeft()
    warning = None
    if left.is_short:
        lost = f"are deleted in {_length(left.ms)}" if left.ms else "may be deleted at any time"
        if left.is_gone:
            lost = "have been deleted, and more may be at any time"
        waiting = "a backfill or rebuild has" if left.is_lane else "are"
        warning = (
            f"events of partition {left.partition} that {waiting} not counted yet {lost}: "
            "let counting go on, or raise retention.ms and retention.bytes of weir.events"
        )
    return LogHeld(left.ms, left.partition, left.kept_ms, left.oldest_ms, warning)


@dataclass(frozen=True)
class QuarantineHeld:
    """How long `weir.quarantine` still holds what no replay has looked into.

    Attributes:
        left_ms: For how long; None: nothing waits, or it is kept for ever, or not known.
        kept_ms: How long it keeps what comes now; None: the same.
        warning: What is going to be deleted, and what to do; None while there is time.
    """

    left_ms: int | None
    kept_ms: int | None
    warning: str | None


def quarantine_held(left: LogLeft | None) -> QuarantineHeld:
    """Return what is told of quarantine; None: nothing is known of it."""
    left = left or LogLeft()
    warning = None
    if left.is_short:
        lost = f"are deleted in {_length(left.ms)}" if left.ms else "may be deleted at any time"
        warning = (
            f"events in quarantine that no replay has looked into {lost}: weir replay puts back "
            "what can be used by now; to wait for a fix, raise retention.ms and retention.bytes "
            "of weir.quarantine"
        )
    return QuarantineHeld(left.ms, left.kept_ms, warning)


def quarantine_seen(panes: Sequence[Part], now_ms: int) -> QuarantineHeld:
    """Return what the newest heartbeat of `panes` says of quarantine, if it speaks for it."""
    newest = newest_of(panes, now_ms)
    return quarantine_held(read_quarantine_told(newest.detail if newest is not None else None))


def newest_of(panes: Sequence[Part], now_ms: int) -> Part | None:
    """Return the newest heartbeat of `panes` that is not too old to speak for it."""
    return panes[0] if panes and now_ms - panes[0].at_ms < STALE_MS else None
