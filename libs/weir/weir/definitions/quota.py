"""What the metrics of a tenant may cost together.

A definition is in force whatever it costs: another budget must not end what is counted. So
this is asked where a metric is written, and where the engine begins to count a version,
since any producer may append to the topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weir.definitions.budget import Estimate, estimate
from weir.definitions.check import definition_problem
from weir.definitions.fold import Definitions
from weir.definitions.metric import Metric
from weir.problems import ProblemError, Reason

_NAMED: Final = 3


def check_quota(metric: Metric, others: Mapping[str, int], tenant_bytes: int) -> Estimate:
    """Return what a metric costs at most, beside a tenant's others.

    Args:
        metric: The metric.
        others: The tenant's metrics by name, that one included if it is there already, and how
            many bytes each takes at most.
        tenant_bytes: What all of them may take together.

    Raises:
        ProblemError: 422 `budget_exceeded`.
    """
    cost = estimate(metric)
    taken = {name: size for name, size in others.items() if name != metric.name}
    left = max(0, tenant_bytes - sum(taken.values()))
    # Of a tenant that has too much already each edit that takes no more is one for the better.
    if cost.memory_bytes > max(left, others.get(metric.name, 0)):
        error = {
            "pointer": "/keep",
            "required": f"at most {left} bytes of panes, what is left of {tenant_bytes}",
            "got": str(cost.memory_bytes),
            "mend": _mend(cost, taken),
        }
        raise definition_problem([error], Reason.BUDGET_EXCEEDED)
    return cost


def quota_refusal(
    definitions: Definitions, tenant: str, metric: Metric, tenant_bytes: int
) -> ProblemError | None:
    """Return why a metric may not begin beside what its tenant has counted; None if it may.

    The engine begins nothing that this refuses, and the API tells by it why nothing begins.
    """
    try:
        check_quota(metric, counted_costs(definitions, tenant), tenant_bytes)
    except ProblemError as problem:
        return problem
    return None


def current_costs(definitions: Definitions, tenant: str) -> dict[str, int]:
    """Return a tenant's metrics in force by name, and how many bytes each takes at most."""
    found = definitions.current(tenant, "metric")
    return {one.name: estimate(one.metric).memory_bytes for one in found if one.metric}


def counted_costs(definitions: Definitions, tenant: str) -> dict[str, int]:
    """Return the same of those that are counted; of two versions of one the dearer."""
    costs: dict[str, int] = {}
    for one in definitions.metrics_active():
        if one.definition.tenant == tenant:
            size = estimate(one.metric).memory_bytes
            costs[one.definition.name] = max(size, costs.get(one.definition.name, 0))
    return costs


def _mend(cost: Estimate, others: Mapping[str, int]) -> str:
    mend = f"lower max_series ({cost.series}), keep less, or ask for fewer or smaller sketches"
    dearest = sorted(others, key=lambda name: (-others[name], name))[:_NAMED]
    if dearest:
        mend += f"; or do so in {', '.join(f'{name} ({others[name]} bytes)' for name in dearest)}"
    return mend
