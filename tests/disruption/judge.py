"""What is judged after a fault, and while it lasts: pure, so that each judgement is seen red.

`checker.py` reads what is judged here. What must not be is returned in words; nothing is wrong
where there are none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from account import LogRecord, epoch_ms

PaneKey = tuple[str, int]
Place = tuple[int, int]

# Within this long a stall must be told (I10).
TOLD_MS = 10_000
_ID = re.compile(rb'"id"\s*:\s*"([^"]*)"')


class Watch:
    """The counts that were served during a fault, look after look (I6).

    A pane's count never falls within an epoch, and is never more than what was sent of it. Nor does
    it become unknown while the numbers are said to be live, as at a takeover.
    """

    def __init__(self) -> None:
        self._seen: Mapping[PaneKey, int] = {}
        self._epoch = 0

    def take(
        self,
        epoch: int,
        found: Mapping[PaneKey, int],
        sent: Mapping[PaneKey, int],
        *,
        may_fall: bool = False,
        live: bool = True,
    ) -> list[str]:
        """Judge one look.

        Args:
            epoch: The epoch that was served.
            found: The counts, of panes of which one is known.
            sent: How many events were sent up to now that lie in each pane.
            may_fall: Whether the fault takes Redis back in time.
            live: Whether the numbers are said to be live.
        """
        wrong: list[str] = []
        if epoch == self._epoch and not may_fall:
            for key, count in self._seen.items():
                if found.get(key, count) < count:
                    wrong.append(f"pane {key} fell from {count} to {found[key]}")
            gone = sorted(self._seen.keys() - found.keys())
            if gone and live:
                wrong.append(f"{len(gone)} panes are unknown that were counted: {gone[:3]}")
        for key, count in found.items():
            if count > sent.get(key, 0):
                wrong.append(f"pane {key} has {count} events, {sent.get(key, 0)} were sent")
        # What a look could not tell, while the numbers were not live, is remembered: it comes back.
        before = self._seen if epoch == self._epoch and not may_fall else {}
        self._epoch, self._seen = epoch, {**before, **found}
        return wrong


def age_untold(fresh: Mapping[str, Any], asked_ms: int) -> list[str]:
    """Judge whether numbers that are old are called so, and since when (I10).

    Args:
        fresh: What an answer says of its freshness.
        asked_ms: When it was asked for, so before it was made.
    """
    through_ms, status = fresh["processed_through_ms"], fresh["status"]
    if through_ms is not None and asked_ms - through_ms <= TOLD_MS:
        return []
    if status == "rebuilding" or (status in ("behind", "stale") and fresh["since_ms"] is not None):
        return []
    age = "unknown" if through_ms is None else f"{asked_ms - through_ms} ms"
    return [f"numbers whose age is {age} are called {status}, since {fresh['since_ms']}"]


class Misplaced(NamedTuple):
    """An event that counts as it must not, or does not count; and that in words."""

    number: int
    words: str


def stored(
    numbers: Sequence[int], acknowledged: int, sent: int, *, first: int = 0
) -> list[Misplaced]:
    """Judge the events that count: each acknowledged one once, and no other (I1 to I3).

    Args:
        numbers: Of the events that count.
        acknowledged: How many were answered 2xx.
        sent: How many were sent at least once.
        first: The first that must be there: the log has lost those before it, or some of them.
    """
    times = Counter(numbers)
    wrong = [Misplaced(n, f"counts {many} times") for n, many in sorted(times.items()) if many > 1]
    wrong += [Misplaced(n, "does not count") for n in range(first, acknowledged) if n not in times]
    wrong += [Misplaced(n, "was not sent") for n in sorted(times) if not 0 <= n < sent]
    return wrong


class Trace(NamedTuple):
    """What is found of an event, place by place.

    Attributes:
        records: Its records in the log, each with what becomes of it by the rule alone.
        copies: Why a version could not use it, for each of its copies in quarantine.
        of_log: How many events of its pane count by the log; None: it is in no pane.
        in_redis: How many the pane has in Redis; None: nobody could look.
        served: How many the API answers with; None: nobody could ask.
    """

    records: Sequence[tuple[Place, str]]
    copies: Sequence[str] = ()
    of_log: int | None = None
    in_redis: int | None = None
    served: int | None = None


def where_it_stopped(found: Trace) -> str:
    """Return how far an event has come: log, quarantine, other disposition, Redis, API."""
    if not found.records:
        return "it is not in the log"
    at = ", ".join(f"{partition}:{offset}" for (partition, offset), _ in found.records)
    became = {disposition for _, disposition in found.records}
    if "quarantined" in became:
        return f"it is in the log as a refused item, at {at}"
    if "counted" not in became:
        return f"it is {' and '.join(sorted(became))}, at {at}"
    if found.copies:
        return f"its value is quarantined for {', '.join(sorted(set(found.copies)))}, at {at}"
    if found.of_log is not None and found.in_redis != found.of_log:
        return f"it counts, at {at}; Redis has {found.in_redis} of {found.of_log} of its pane"
    if found.of_log is not None and found.served != found.of_log:
        return f"Redis has all of its pane; the API says {found.served}, are {found.of_log}"
    return f"it counts, at {at}, and its pane is whole in Redis and in the API"


def refused(
    records: Iterable[LogRecord], prefix: str, acknowledged: Iterable[str], counted: Iterable[str]
) -> list[str]:
    """Judge the items that were accepted only to be quarantined (I1, I2).

    Each that was answered 2xx is in the log, as a refused item and never as an event; none of
    them counts.

    Args:
        records: The log.
        prefix: What the ids of all such items begin with.
        acknowledged: The ids of those that were answered 2xx.
        counted: The ids of all events that count.
    """
    as_refused: set[str] = set()
    as_event: set[str] = set()
    for record in records:
        found = _ID.search(record.value or b"")
        name = found.group(1).decode(errors="replace") if found else ""
        if name.startswith(prefix):
            (as_refused if "weir-reason" in record.headers else as_event).add(name)
    lost = (one for one in acknowledged if one not in as_refused)
    wrong = [f"refused item {one} is not in the log" for one in lost]
    wrong += [f"refused item {one} is in the log as an event" for one in sorted(as_event)]
    wrong += [f"refused item {one} counts" for one in counted if one.startswith(prefix)]
    return wrong


def copied(wrong: Collection[Place], copies: Iterable[LogRecord], vid: int) -> list[str]:
    """Judge the copies of events whose value a version could not use: of each, and of no other.

    Args:
        wrong: By partition and offset, the events that it could not use.
        copies: The quarantine; one that came again has the same origin.
        vid: The version.
    """
    left_out: dict[Place, int] = {}
    for copy in copies:
        if copy.headers.get("weir-version") == str(vid).encode():
            left_out[origin_of(copy)] = int(copy.headers.get("weir-left-out") or 0)
    missing = sorted(set(wrong) - left_out.keys())
    found = [
        f"event {place} could be used, and is quarantined"
        for place in sorted(left_out.keys() - set(wrong))
    ]
    if len(missing) > sum(left_out.values()):
        found.append(
            f"{len(missing)} whose value cannot be used have no copy, such as {missing[0]}"
        )
    return found


def origin_of(copy: LogRecord) -> Place:
    """Return the place in the log of what is copied in quarantine."""
    *_, partition, offset = bytes(copy.headers["weir-origin"]).decode().split("/")
    return int(partition), int(offset)


def unlisted(
    now: Counter[tuple[str, str]], before: Counter[tuple[str, str]], listed: Iterable[str]
) -> list[str]:
    """Judge what was logged as an error: only what a fault may bring about.

    Args:
        now: By part and event, how often.
        before: The same, before the fault.
        listed: The events that the fault may log.
    """
    allowed = set(listed)
    found = sorted(one for one in now - before if one[1] not in allowed)
    return [f"{part} logged {event}, which this fault does not list" for part, event in found]


def uncounted(
    differences: Sequence[str], status: str, *, is_filled: bool, lag: int | None
) -> list[str]:
    """Judge whether all of the log is counted, and what was lost counted again (I4, I16).

    Args:
        differences: Of the served ledger from the account of the log.
        status: What the numbers' freshness is called.
        is_filled: Whether the load's metric holds the log.
        lag: How many events are said to wait; None: nobody knows.
    """
    wrong = [f"ledger and log must agree: {one}" for one in differences]
    if not wrong and (status in ("rebuilding", "stale") or not is_filled):
        wrong = [f"what was lost must be counted again: {status}, filled: {is_filled}"]
    if not wrong and lag != 0:
        wrong = [f"no event must wait to be counted, told are {lag}"]
    return wrong


Offsets = Mapping[int, int]
"""Partition -> offset; a missing partition stands at 0."""


def taken(counted: Sequence[Offsets], begins: Offsets) -> list[dict[str, Any]]:
    """Return what a log that begins later has taken from what was not counted yet (I13).

    Args:
        counted: Up to where each shard has counted.
        begins: The first offset that each partition still has.

    Returns:
        As an adoption tells it: partition, first and last offset, the shards that lack them, count.
    """
    return _holes(
        (shard, p, end.get(p, 0), first)
        for shard, end in enumerate(counted)
        for p, first in begins.items()
    )


def given_up(counted: Sequence[Offsets]) -> list[dict[str, Any]]:
    """Return what was counted of a log that is another one now: all of it, told as by `taken`."""
    return _holes((shard, p, 0, n) for shard, end in enumerate(counted) for p, n in end.items())


def untold_loss(told: Iterable[Mapping[str, Any]], lost_ms: int) -> str:
    """Judge whether it was told before a loss that the log runs out; "" if it was.

    Args:
        told: The lines that say so.
        lost_ms: When the first event was lost, by the clock.
    """
    before_ms = [lost_ms - epoch_ms(line["at"]) for line in told]
    if not before_ms:
        return "it was not told at all"
    return "" if max(before_ms) > 0 else f"it was told {-max(before_ms)} ms after the loss"


def _holes(spans: Iterable[tuple[int, int, int, int]]) -> list[dict[str, Any]]:
    """Return spans of the log, (shard, partition, from, to), each once with its shards."""
    shards: dict[tuple[int, int, int], list[int]] = {}
    for shard, partition, first, end in spans:
        if first < end:
            shards.setdefault((partition, first, end - 1), []).append(shard)
    return [
        {"partition": p, "first": first, "last": last, "shards": who, "count": last - first + 1}
        for (p, first, last), who in sorted(shards.items())
    ]


def begun_anew(lanes: Mapping[int, tuple[int, int]], counted: Mapping[int, int]) -> list[str]:
    """Judge what was counted of lanes after the driver died in the middle of them (C11).

    Args:
        lanes: By lane, how many of its records were committed then, and how many it has.
        counted: By lane, how many records were counted after that.
    """
    return [
        f"lane {lane} stood at {at} of {of}, and {counted.get(lane, 0)} were counted after that"
        for lane, (at, of) in sorted(lanes.items())
        if at and counted.get(lane, 0) != of - at
    ]


def lead_of_one(batches: Sequence[Mapping[str, int]]) -> float:
    """Return how far one tenant was ahead of another at most while what waited was counted.

    Args:
        batches: How many events of each tenant they had, in order.

    Returns:
        After the batch at which they differ most, the difference of the parts that were done of
        what waited for each: 0 where all are as far after each batch, 1 where one is done before
        another begins.
    """
    waited = Counter[str]()
    for batch in batches:
        waited.update(batch)
    done, found = dict.fromkeys(waited, 0), 0.0
    for batch in batches:
        for tenant, events in batch.items():
            done[tenant] += events
        parts = [done[tenant] / waited[tenant] for tenant in waited]
        found = max(found, max(parts) - min(parts))
    return found
