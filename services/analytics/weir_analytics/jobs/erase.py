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
from weir.erasure import serving_now

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
        """Make the new versions that are missing; end when nothing older serves but panes without.

        It cannot be cancelled: what was erased once stays so.

        Raises:
            NotNowError: While it is not time for new versions, they are being filled, or names
                are taken out of older panes.
        """
        fold, tenant = cycle.stores.definitions.fold, self._asked.definition.tenant
        if not self._count_again(cycle, is_over):
            return None
        served, shards = serving_now(fold, tenant), cycle.settings.shards
        mine = fold.current(tenant, "metric")
        filling = {one.name for one in mine if _fills_for_an_erasure(fold, one)}
        behind = sorted(filling | {name for name, vid in served.items() if vid < self._vid})
        every = served.keys() | filling
        self._progress = Progress(len(every) - len(behind), len(every) + shards)
        if behind:
            raise NotNowError(_waits_for(fold, tenant, behind))
        done = sum(self._vid in vids for vids in redacted_in(cycle, [self._vid]))
        self._progress = Progress(len(served) + done, len(served) + shards)
        if done < shards:
            msg = "names in panes that are older than the log are being taken out"
            raise NotNowError(msg)
        return {"metrics": list(served)}

    def _count_again(self, cycle: Cycle, is_over: Callable[[], bool]) -> bool:
        """Make the new versions that are missing, if it is time for them; False: some are left."""
        fold, job = cycle.stores.definitions.fold, self._asked.definition
        mine = fold.current(job.tenant, "metric")
        missing = [one for one in mine if one.vid < self._vid and _is_newest(fold, one)]
        if not missing:
            return True
        now_ms = cycle.clock.now_ms()
        due_ms = counted_again_ms(fold, mine, now_ms, but=job.name) + self._every_ms
        if now_ms < due_ms:
            at = datetime.fromtimestamp(due_ms / 1000, UTC).isoformat(timespec="minutes")
            msg = f"metrics are counted again at {at}, for all erasures until then at once"
            raise NotNowError(msg)
        if any(_fills_for_an_erasure(fold, one) for one in missing):
            # Counted again before it has served, it would never serve.
            msg = "metrics are still being counted again for an erasure before this one"
            raise NotNowError(msg)
        for metric in missing:
            if is_over():
                return False
            count_again(cycle, metric, job)
        raise NotNowError(_being_counted(len(missing)))

    def close(self) -> None:
        """Hold nothing."""

    @property
    def _vid(self) -> int:
        return self._asked.definition.vid


def counted_again_ms(fold: Definitions, mine: Sequence[Definition], now_ms: int, but: str) -> int:
    """Return when metrics of a tenant were last counted again for another erasure; 0: never.

    Args:
        fold: The definitions.
        mine: The tenant's metrics in force.
        now_ms: What is said to be later than now was said by a clock that was wrong.
        but: The job that does not count.
    """
    each = (fold.history(one.tenant, "metric", one.name) for one in mine)
    made = (one for history in each for one in history if one.by != f"{BY}{but}")
    return max((one.at_ms for one in made if one.at_ms <= now_ms and _erases(fold, one)), default=0)


def _erases(fold: Definitions, version: Definition) -> bool:
    """Tell whether a version was made for an erasure."""
    if not version.by.startswith(BY):
        return False
    job = job_named(fold, version.tenant, version.by.removeprefix(BY))
    return job is not None and isinstance(job.model.do, Erase)


def _fills_for_an_erasure(fold: Definitions, version: Definition) -> bool:
    activation = fold.activations.get(version.vid)
    return activation is not None and not activation.serves and _erases(fold, version)


def _is_newest(fold: Definitions, metric: Definition) -> bool:
    """Tell whether a version can be followed: over one that cannot be read none is written."""
    return fold.version(metric.tenant, "metric", metric.name) == metric.version


def _waits_for(fold: Definitions, tenant: str, behind: Sequence[str]) -> str:
    """Return what is missing until some metrics are served without the subject."""
    for name in behind:
        found = fold.get(tenant, "metric", name)
        if found is None or not _is_newest(fold, found):
            return (
                f'metric "{name}" has a version that this release cannot read, so it cannot be '
                "counted again; write one that it can, or delete the metric"
            )
    return _being_counted(len(behind))


def _being_counted(metrics: int) -> str:
    return f"{metrics} {'metric is' if metrics == 1 else 'metrics are'} being counted again"
