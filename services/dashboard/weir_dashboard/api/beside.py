"""What a definition is judged by beside itself: the tenant's others, and what they cost.

Whoever writes one is judged beside what is in force. Several that come together are judged in
their order, each beside what is in force and those before it that may be written: a rule may
be on a metric that comes with it. That is what storing them one after the other would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from weir.alerts.watch import check_rule
from weir.definitions.base import DefinitionModel
from weir.definitions.budget import estimate
from weir.definitions.metric import Metric
from weir.definitions.quota import check_quota, current_costs
from weir.definitions.rule import Rule
from weir.query.facts import Served, Version
from weir_reading.served import Metrics

from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context


class Beside:
    """What stands beside a definition of one tenant."""

    def __init__(self, here: Context, caller: Caller) -> None:
        self._here, self._tenant = here, caller.tenant
        self._metrics = _Metrics(Metrics(here.catalog, caller.tenant))

    @cached_property
    def _costs(self) -> dict[str, int]:
        return current_costs(self._here.catalog.folded, self._tenant)

    def check(self, model: DefinitionModel) -> None:
        """Check what a definition says of others, and what it costs beside them.

        Raises:
            ProblemError: 404 `metric_unknown`, 422 `query_invalid`, `query_too_large` or
                `budget_exceeded`.
        """
        if isinstance(model, Metric):
            check_quota(model, self._costs, self._here.settings.tenant_bytes)
        if isinstance(model, Rule):
            check_rule(model, self._metrics, self._here.clock.now_ms())

    def add(self, model: DefinitionModel) -> None:
        """Let one that may be written stand beside those that come after it.

        Of a metric that is served the version before serves until the new one has taken over:
        a rule is judged by what serves, as it is where it is stored.
        """
        if isinstance(model, Metric):
            self._costs[model.name] = estimate(model).memory_bytes
            self._metrics.add(model)


class _Metrics(Mapping[str, Served]):
    """The metrics that are served, and those that come with what is judged."""

    def __init__(self, served: Metrics) -> None:
        self._served = served
        self._new: dict[str, Served] = {}

    def add(self, metric: Metric) -> None:
        if metric.name not in self._served:
            # It has no version yet; nothing is read by its number here.
            new = Version(vid=-1, number=1, metric=metric, rebuilding=True)
            self._new[metric.name] = Served((new,))

    def __getitem__(self, name: str) -> Served:
        new = self._new.get(name)
        return self._served[name] if new is None else new

    def __iter__(self) -> Iterator[str]:
        yield from self._new
        yield from self._served

    def __len__(self) -> int:
        return len(self._new) + len(self._served)
