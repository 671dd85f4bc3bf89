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
from functools import cache, cached_property, partial
from typing import Any, ClassVar, Final

from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
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


class Tenant:
    """What all erasures of a tenant ask of the definitions as they are; found when asked for."""

    def __init__(self, fold: Definitions, name: str) -> None:
        self._fold = fold
        self._name = name

    @cached_property
    def metrics(self) -> list[Definition]:
        """Those in force, by name."""
        return self._fold.current(self._name, "metric")

    @cached_property
    def counted_again(self) -> list[Definition]:
        """The versions of them, in force or not, that erasures made; the latest first."""
        each = (self._fold.history(self._name, "metric", one.name) for one in self.metrics)
        made = [one for history in each for one in history if one.by.startswith(BY)]
        authors = {one.by: one for one in made}
        erases = {by for by, one in authors.items() if _erases(self._fold, one)}
        return sorted((one for one in made if one.by in erases), key=lambda one: -one.at_ms)

    @cached_property
    def served(self) -> dict[str, int]:
        """The newest version that serves, by metric."""
        return serving_now(self._fold, self._name)

    @cached_property
    def filling(self) -> set[str]:
        """The metrics whose version in force is being filled for an erasure."""
        return {one.name for one in self.metrics if _fills_for_an_erasure(self._fold, one)}


class Tenants:
    """Tenants by the definitions as they are: looked at once, however many erasures wait.

    Those of a day wait for the same instant, and each is asked again until then.
    """

    def __init__(self) -> None:
        self._memo = FoldMemo(lambda fold: cache(partial(Tenant, fold)))

    def of(self, fold: Definitions, name: str) -> Tenant:
        """Return a tenant."""
        return self._memo.of(fold)(name)


class EraseTask:
    """An erasure that holds, until nothing is served any more that was counted before it."""

    goes_on: ClassVar = False

    def __init__(self, settings: Settings, asked: JobAsked, tenants: Tenants) -> None:
        self.stopping = False
        self._asked = asked
        self._tenants = tenants
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
        fold, name = cycle.stores.definitions.fold, self._asked.definition.tenant
        if not self._count_again(cycle, is_over):
            return None
        tenant, shards = self._tenants.of(fold, name), cycle.settings.shards
        served = tenant.served
        late = {metric for metric, vid in served.items() if vid < self._vid}
        behind = sorted(tenant.filling | late)
        every = served.keys() | tenant.filling
        self._progress = Progress(len(every) - len(behind), len(every) + shards)
        if behind:
            raise NotNowError(_waits_for(fold, name, behind))
        done = sum(self._vid in vids for vids in redacted_in(cycle, [self._vid]))
        self._progress = Progress(len(served) + done, len(served) + shards)
        if done < shards:
            msg = "names in panes that are older than the log are being taken out"
            raise NotNowError(msg)
        return {"metrics": list(served)}

    def _count_again(self, cycle: Cycle, is_over: Callable[[], bool]) -> bool:
        """Make the new versions that are missing, if it is time for them; False: some are left."""
        fold, job = cycle.stores.definitions.fold, self._asked.definition
        tenant = self._tenants.of(fold, job.tenant)
        older = (one for one in tenant.metrics if one.vid < self._vid)
        missing = [one for one in older if _is_newest(fold, one)]
        if not missing:
            return True
        now_ms = cycle.clock.now_ms()
        due_ms = counted_again_ms(tenant, now_ms, but=job.name) + self._every_ms
        if now_ms < due_ms:
            at = datetime.fromtimestamp(due_ms / 1000, UTC).isoformat(timespec="minutes")
            msg = f"metrics are counted again at {at}, for all erasures until then at once"
            raise NotNowError(msg)
        if any(one.name in tenant.filling for one in missing):
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


def counted_again_ms(tenant: Tenant, now_ms: int, but: str) -> int:
    """Return when metrics of a tenant were last counted again for another erasure; 0: never.

    Args:
        tenant: Whose.
        now_ms: What is said to be later than now was said by a clock that was wrong.
        but: The job that does not count.
    """
    others = (one for one in tenant.counted_again if one.by != f"{BY}{but}")
    return next((one.at_ms for one in others if one.at_ms <= now_ms), 0)


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
