"""Erase: every metric of a tenant is counted anew without a subject, and takes over.

From where the erasure holds the driver has said with a batch (`panes/changes.py`); from
there on events about the subject are accounted as erased. What was counted of them before
goes with the versions that counted it: each metric gets a new one, filled from the log, at
most once in `erase_hours` for all erasures together. What older versions keep serving, since
the log is too short for it, loses the names (`panes/redaction.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from weir.definitions.fold import Definitions
from weir.definitions.history import Definition
from weir.definitions.job import Erase
from weir.definitions.jobs import JobAsked, job_named
from weir.erasure import is_served_without

from weir_analytics.jobs.count_again import BY, count_again
from weir_analytics.jobs.task import NotNowError, Outcome, Progress, RefusedError
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.redaction import redacted_in
from weir_analytics.settings import Settings

HOUR_MS: Final = 3_600_000


class EraseTask:
    """An erasure that holds, until nothing is served any more that was counted before it."""

    def __init__(self, settings: Settings, asked: JobAsked) -> None:
        self.stopping = False
        self._asked = asked
        self._every_ms = settings.erase_hours * HOUR_MS
        self._progress = Progress(0, 1)

    @property
    def progress(self) -> Progress:
        """Return how many metrics are served without the subject, then of how many shards."""
        return self._progress

    def facts(self, cycle: Cycle) -> Mapping[str, Any]:
        """Refuse: from where it holds is said with a batch.

        Raises:
            RefusedError: Always.
        """
        del cycle
        msg = "an erasure must hold from the end of a batch, which was not said; ask again"
        raise RefusedError(msg)

    def begin(self, cycle: Cycle, facts: Mapping[str, Any]) -> None:
        """Need nothing else: what is left to do stands in the definitions."""

    def step(self, cycle: Cycle, is_over: Callable[[], bool]) -> Outcome | None:
        """Make the new versions that are missing; end when all of them serve, and nothing else.

        It cannot be cancelled: what was erased once stays so.

        Raises:
            NotNowError: While it is not time for new versions, they are being filled, or names
                are taken out of older panes.
        """
        del is_over
        fold = cycle.stores.definitions.fold
        mine = fold.current(self._asked.definition.tenant, "metric")
        self._count_again(cycle, mine)
        served = [one for one in mine if is_served_without(fold, one, self._vid)]
        shards = cycle.settings.shards
        self._progress = Progress(len(served), len(mine) + shards)
        if len(served) < len(mine):
            msg = f"{len(mine) - len(served)} metrics are being counted again"
            raise NotNowError(msg)
        done = sum(self._vid in vids for vids in redacted_in(cycle))
        self._progress = Progress(len(mine) + done, len(mine) + shards)
        if done < shards:
            msg = "names in panes that are older than the log are being taken out"
            raise NotNowError(msg)
        return {"metrics": [one.name for one in mine]}

    def _count_again(self, cycle: Cycle, mine: Sequence[Definition]) -> None:
        """Make the new versions that are missing, if it is time for them."""
        fold, job = cycle.stores.definitions.fold, self._asked.definition
        missing = [metric for metric in mine if metric.vid < self._vid]
        if not missing:
            return
        due_ms = counted_again_ms(fold, mine, but=job.name) + self._every_ms
        if cycle.clock.now_ms() < due_ms:
            at = datetime.fromtimestamp(due_ms / 1000, UTC).isoformat(timespec="minutes")
            msg = f"metrics are counted again at {at}, for all erasures until then at once"
            raise NotNowError(msg)
        for metric in missing:
            count_again(cycle, metric, job)

    def close(self) -> None:
        """Hold nothing."""

    @property
    def _vid(self) -> int:
        return self._asked.definition.vid


def counted_again_ms(fold: Definitions, mine: Sequence[Definition], but: str) -> int:
    """Return when metrics of a tenant were last counted again for another erasure; 0: never.

    Args:
        fold: The definitions.
        mine: The tenant's metrics in force.
        but: The job that does not count.
    """
    known = {but: False}

    def erases(version: Definition) -> bool:
        name = version.by.removeprefix(BY)
        if name not in known:
            job = job_named(fold, version.tenant, name)
            known[name] = job is not None and isinstance(job.model.do, Erase)
        return version.by.startswith(BY) and known[name]

    each = (fold.history(one.tenant, "metric", one.name) for one in mine)
    return max((one.at_ms for history in each for one in history if erases(one)), default=0)
