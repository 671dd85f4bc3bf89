"""Whose job has the next slice: tenants take turns, whatever their jobs have to do. Pure.

A tenant's jobs are done one after the other, those that do not read the log first. The audits
that nobody asked for are together as one tenant is, with a smaller share. Who comes later has
missed nothing: it begins where those stand that had the fewest turns.

What a job has read stays with it between its turns, and takes memory. So few are under way at
once, and share what one alone might take; a further one waits until one of them ends. A job in
its last attempt has all the turns of those that read the log: then only it is to blame.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from weir.definitions.jobs import JobAsked

from weir_analytics.jobs.open_jobs import is_quick, reads_the_log
from weir_analytics.jobs.schedule import BY as SCHEDULE

# Processes that may end while they work on a job.
MOST_ATTEMPTS: Final = 3
SHARES: Final = (0.5, 0.25, 0.25)
"""What each of those under way at once may hold of what all of them may; the largest first."""
SCHEDULED_COSTS: Final = 8
"""So many turns of a person's jobs go for one of an audit that nobody asked for."""


def is_scheduled(one: JobAsked) -> bool:
    """Tell whether nobody asked for a job."""
    return one.definition.by == SCHEDULE


class Party(NamedTuple):
    """Who takes turns: a tenant with what its people ask for, or all audits of the schedule."""

    is_schedule: bool
    tenant: str

    @classmethod
    def of(cls, one: JobAsked) -> Party:
        """Return whose turn a job has."""
        scheduled = is_scheduled(one)
        return cls(scheduled, "" if scheduled else one.definition.tenant)


@dataclass(frozen=True)
class Standing:
    """What a process knows of open jobs, by their vids.

    Attributes:
        under_way: Those that hold what they have read.
        waits: Those that wait for something.
        begun_here: Those that this process has begun.
    """

    under_way: Collection[int] = ()
    waits: Collection[int] = ()
    begun_here: Collection[int] = ()


def may_go_on(found: Sequence[JobAsked], standing: Standing) -> list[JobAsked]:
    """Return the jobs that may have a slice: as many as may be under way, and no others.

    What one that waits holds is given to one that need not.
    """
    readers = [one for one in found if reads_the_log(one)]
    ready = [one for one in readers if one.definition.vid not in standing.waits]
    under_way = [one for one in ready if one.definition.vid in standing.under_way]
    last = [one for one in (*under_way, *ready) if _is_last_attempt(one, standing.begun_here)]
    if not last and len(under_way) < len(SHARES):
        return list(found)
    vids = {one.definition.vid for one in last[:1] or under_way}
    return [one for one in found if not reads_the_log(one) or one.definition.vid in vids]


def _is_last_attempt(one: JobAsked, begun_here: Collection[int]) -> bool:
    if one.report is None:
        return False
    is_another = one.definition.vid not in begun_here
    return one.report.attempts + is_another >= MOST_ATTEMPTS


@dataclass
class Turns:
    """How many turns everybody has had who has something to do now."""

    _had: dict[Party, int] = field(default_factory=dict)

    def next(self, ready: Sequence[JobAsked]) -> JobAsked | None:
        """Return the job of those that need not wait whose turn it is; None if there is none.

        Args:
            ready: In the order of `open_jobs`, which decides within a tenant and between equals.
        """
        for one in ready:
            if is_quick(one):
                return one
        parties = list(dict.fromkeys(map(Party.of, ready)))
        start = min((self._had[one] for one in parties if one in self._had), default=0)
        self._had = {one: self._had.get(one, start) for one in parties}
        turn = min(parties, key=lambda one: (self._had[one], one.is_schedule), default=None)
        mine = (one for one in ready if Party.of(one) == turn)
        return min(mine, key=reads_the_log, default=None)

    def took(self, one: JobAsked) -> None:
        """Note that a job had a turn."""
        party = Party.of(one)
        if party in self._had:
            self._had[party] += SCHEDULED_COSTS if party.is_schedule else 1
