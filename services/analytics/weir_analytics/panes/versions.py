"""Versions: which panes one version of a metric counts, and from where in the log.

A version counts the events whose offset lies in its span of the log, and of those
the panes on its side of the cuts to its predecessor and successor. All of it is
recorded in `weir.definitions`, so a batch that is run again, a rebuild and a recount
decide the same. The system metrics are versions like any other, with ids below zero.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from pyspark import TaskContext
from weir.commit import not_after

from weir_analytics.panes.accounts import (
    LATENESS,
    LEDGER,
    SYSTEM_RES_S,
    TYPE_LATENESS,
    TYPES,
    USE,
)
from weir_analytics.panes.batch import Offsets

PROPERTY = "weir.versions"
HOUR_S, DAY_S = 3_600, 86_400
# Of each tenant: a flood of types is its sender's alone.
MAX_TYPES = 5_000
# Rows of (source, type, edge) that a tenant has in an hour. A type has one for each edge at which
# its events came: most have two or three, and none more than 24.
MAX_TYPE_LATENESS = 5_000
# The ledger must show every tenant's every source: `other` would hide a difference.
UNCAPPED = 1 << 40

Cuts = Mapping[int, int]


@dataclass(frozen=True)
class Version:
    """What the engine has to know of a version besides its expressions.

    Attributes:
        keeps: (length, time kept) of each resolution in seconds, the finest first.
        begin: Events at or after these offsets count; a missing partition stands at 0.
        finish: Events at or after these no longer count; None: all do.
        cut_from: By resolution, the first pane that is this version's; others: all.
        cut_from_at: To events at or after these offsets that cut applies; {}: to all.
        cut_until: By resolution, the first pane that is its successor's; others: none.
        cut_until_at: The same for that cut.
        max_series: Most series of a pane with rows of their own.
        lateness_ms: Allowed lateness: a pane is final that long after its end.
        by_owner: Whether `max_series` is of each tenant, the first value of a series.
        listed: Whether each tenant's series are listed, so that its rows can be read alone.
        sketched: Aggregates that sketches answer, by the names they are asked by.
        gapped: Whether rows that name somebody erased are taken out of its panes, which the log
            no longer has: what it had of a series without a row is in `other` for good.
    """

    vid: int
    tenant: str
    name: str
    keeps: tuple[tuple[int, int], ...]
    begin: Offsets = field(default_factory=dict)
    finish: Offsets | None = None
    cut_from: Cuts = field(default_factory=dict)
    cut_from_at: Offsets = field(default_factory=dict)
    cut_until: Cuts = field(default_factory=dict)
    cut_until_at: Offsets = field(default_factory=dict)
    max_series: int = 1_000
    lateness_ms: int = 0
    by_owner: bool = False
    listed: bool = False
    sketched: tuple[str, ...] = ()
    gapped: bool = False

    @property
    def finest_s(self) -> int:
        """Length of the panes that Spark counts; the others are made of these."""
        return self.keeps[0][0]

    def panes(self, start_s: int, received_s: int) -> list[tuple[int, int]]:
        """Return (length, start) of the stored panes that a finest pane is part of.

        Args:
            start_s: Where the finest pane starts.
            received_s: Received minute of its events: what is older than a
                resolution is kept is not written there. Never the present: a
                rebuild tomorrow decides as today.
        """
        found: list[tuple[int, int]] = []
        for res_s, keep_s in self.keeps:
            pane_s = start_s - start_s % res_s
            if is_kept(pane_s, res_s, keep_s, received_s) and self.owns(res_s, pane_s):
                found.append((res_s, pane_s))
        return found

    def late_before_ms(self, final_through_ms: int) -> int:
        """Return before which instant events are late: their finest pane was final.

        A longer pane is final no earlier. The instant is an edge of finest panes, so the start of
        an event's pane may stand for its time.

        Args:
            final_through_ms: Up to where all was counted; see `pane_merge.is_corrected`.
        """
        finest_ms = self.finest_s * 1000
        return (final_through_ms - self.lateness_ms) // finest_ms * finest_ms

    def owns(self, res_s: int, pane_s: int) -> bool:
        """Tell whether a pane lies between the cuts of this version."""
        first, end = self.cut_from.get(res_s), self.cut_until.get(res_s)
        return (first is None or pane_s >= first) and (end is None or pane_s < end)

    def at(self, start: Offsets) -> Version:
        """Return the version as it counts a range: with the cuts that apply there.

        A range that begins before a takeover is counted as before it, so that a batch that is
        run again after one gives the same parts. What that leaves on the wrong side of a cut
        nobody reads.
        """
        first = self.cut_from if not_after(self.cut_from_at, start) else {}
        until = self.cut_until if not_after(self.cut_until_at, start) else {}
        if first is self.cut_from and until is self.cut_until:
            return self
        return replace(self, cut_from=first, cut_until=until)

    @cached_property
    def within(self) -> Version:
        """The version as it counts ranges that lie in its span: without that span.

        So the plan of such ranges can be made before anybody knows where the version begins.
        """
        return replace(self, begin={}, finish=None, cut_from_at={}, cut_until_at={})

    def covers(self, start: Offsets, end: Offsets) -> bool | None:
        """Tell whether a range of the log lies in the version's span; None: in part."""
        within = all(start.get(p, 0) >= self.begin.get(p, 0) for p in end)
        before = all(end[p] <= self.begin.get(p, 0) for p in end)
        if self.finish is not None:
            finish = self.finish
            within = within and all(end[p] <= finish.get(p, 0) for p in end)
            before = before or all(start.get(p, 0) >= finish.get(p, 0) for p in end)
        if before:
            return False
        return True if within else None


class LatePanes(NamedTuple):
    """Which events are late for some version of a tenant, and by what panes they are told.

    Attributes:
        finest_s: Length of the shortest panes that one of the versions has.
        before_ms: Those that happened before this are.
    """

    finest_s: int
    before_ms: int

    def start_s(self, at_s: int) -> int | None:
        """Return where the pane of an event starts if it is late; None: it is not."""
        return at_s - at_s % self.finest_s if at_s * 1000 < self.before_ms else None


def late_panes(
    versions: Iterable[Version], final_through_ms: int | None
) -> Mapping[str, LatePanes]:
    """Return which events are late, by tenant: what one defines decides nothing of another's.

    Args:
        versions: The versions of a batch; those of the system are nobody's.
        final_through_ms: Processed-through of the batch before. None: nothing is late.
    """
    if final_through_ms is None:
        return {}
    own: dict[str, list[Version]] = defaultdict(list)
    for version in versions:
        if version.vid >= 0:
            own[version.tenant].append(version)
    return {
        tenant: LatePanes(
            min(version.finest_s for version in found),
            max(version.late_before_ms(final_through_ms) for version in found),
        )
        for tenant, found in own.items()
    }


def is_kept(pane_s: int, res_s: int, keep_s: int, received_s: int) -> bool:
    """Tell whether a pane is still kept for events of a received minute."""
    return received_s <= pane_s + res_s + keep_s


LEDGER_KEPT_S = 8 * DAY_S
SYSTEM = (
    Version(LEDGER, "", "ledger", ((SYSTEM_RES_S, LEDGER_KEPT_S),), max_series=UNCAPPED),
    Version(TYPES, "", "types", ((SYSTEM_RES_S, DAY_S),), max_series=MAX_TYPES, by_owner=True),
    Version(USE, "", "use", ((SYSTEM_RES_S, 8 * DAY_S),), max_series=UNCAPPED),
    # By the hour: who chooses an allowed lateness looks at days.
    # Both are listed: whoever writes a definition asks for them again and again, and of days.
    Version(LATENESS, "", "lateness", ((HOUR_S, 8 * DAY_S),), max_series=UNCAPPED, listed=True),
    Version(
        TYPE_LATENESS,
        "",
        "lateness by type",
        ((HOUR_S, 8 * DAY_S),),
        max_series=MAX_TYPE_LATENESS,
        by_owner=True,
        listed=True,
    ),
)

LISTED = frozenset(version.vid for version in SYSTEM if version.listed)


def versions_to_json(versions: Sequence[Version]) -> str:
    """Return versions as one line of text, for the tasks of a batch."""
    return json.dumps([asdict(version) for version in versions])


@lru_cache(maxsize=4)
def versions_from_json(text: str) -> Mapping[int, Version]:
    """Read what `versions_to_json` wrote, and add the system metrics; by id."""
    versions = [version_of(fields) for fields in json.loads(text)]
    return {version.vid: version for version in (*SYSTEM, *versions)}


def current_versions() -> Mapping[int, Version]:
    """Return the versions that the running task's batch counts, by id."""
    context = TaskContext.get()
    text = context.getLocalProperty(PROPERTY) if context is not None else None
    return versions_from_json(text or "[]")


def version_of(fields: dict[str, Any]) -> Version:
    """Return a version of what `asdict` and JSON have made of it."""
    for name in ("begin", "finish", "cut_from", "cut_from_at", "cut_until", "cut_until_at"):
        if fields[name] is not None:
            fields[name] = {int(k): v for k, v in fields[name].items()}
    fields["keeps"] = tuple((int(r), int(k)) for r, k in fields["keeps"])
    fields["sketched"] = tuple(fields["sketched"])
    return Version(**fields)
