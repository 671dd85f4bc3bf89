"""Erase: every metric of a tenant is counted anew without a subject, and takes over.

From where the erasure holds the driver has said with a batch (`panes/changes.py`); from
there on events about the subject are accounted as erased. What was counted of them before
goes with the versions that counted it: each metric gets a new one, filled from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weir.definitions.fold import Definitions
from weir.definitions.history import Definition
from weir.definitions.jobs import JobAsked

from weir_analytics.jobs.count_again import count_again
from weir_analytics.jobs.task import NotNowError, Outcome, Progress, RefusedError
from weir_analytics.panes.cycle import Cycle


class EraseTask:
    """An erasure that holds, until nothing is served any more that was counted before it."""

    def __init__(self, asked: JobAsked) -> None:
        self.stopping = False
        self._asked = asked
        self._progress = Progress(0, 1)

    @property
    def progress(self) -> Progress:
        """Return how many of the tenant's metrics are served without the subject."""
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
        """Make the new versions that are missing; end when all of them serve.

        It cannot be cancelled: what was erased once stays so.

        Raises:
            NotNowError: While they are being filled.
        """
        del is_over
        definitions = cycle.stores.definitions
        mine = definitions.fold.current(self._asked.definition.tenant, "metric")
        for metric in mine:
            if metric.vid < self._asked.definition.vid:
                count_again(cycle, metric, self._asked.definition)
        served = [one for one in mine if is_served_without(definitions.fold, one, self._vid)]
        self._progress = Progress(len(served), max(1, len(mine)))
        if len(served) < len(mine):
            msg = f"{len(mine) - len(served)} metrics are being counted again"
            raise NotNowError(msg)
        return {"metrics": [one.name for one in mine]}

    def close(self) -> None:
        """Hold nothing."""

    @property
    def _vid(self) -> int:
        return self._asked.definition.vid


def is_served_without(fold: Definitions, metric: Definition, vid: int) -> bool:
    """Tell whether a metric is served by a version that was made after an erasure.

    Args:
        fold: The definitions.
        metric: Its version in force.
        vid: The erasure's job.
    """
    activation = fold.activations.get(metric.vid)
    return metric.vid > vid and activation is not None and activation.serves
