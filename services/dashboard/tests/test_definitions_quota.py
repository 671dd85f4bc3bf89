"""What a tenant's metrics cost together is asked where one is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from weir.definitions.check import check
from weir.definitions.fold import Definitions
from weir.problems import ProblemError, Reason
from weir_dashboard.api.beside import Beside
from weir_dashboard.api.definitions import check_beside


def test_a_metric_beyond_the_tenants_memory_is_refused() -> None:
    """By the setting, before anything is written; what is smaller is taken."""
    catalog = SimpleNamespace(folded=Definitions())
    here: Any = SimpleNamespace(catalog=catalog, settings=SimpleNamespace(tenant_bytes=20_000))
    caller: Any = SimpleNamespace(tenant="a")

    def asked(keep: str) -> None:
        text = f"events: {{type: t}}\nkeep: {{10s: {keep}}}"
        check_beside(here, caller, check("metric", "m", text).model)

    asked("1h")
    with pytest.raises(ProblemError, match="what is left of 20000") as caught:
        asked("2h")
    assert caught.value.reason is Reason.BUDGET_EXCEEDED


def test_metrics_that_come_together_share_what_is_left() -> None:
    """What one takes is not there for those after it; one that takes less leaves more."""
    catalog = SimpleNamespace(folded=Definitions())
    here: Any = SimpleNamespace(catalog=catalog, settings=SimpleNamespace(tenant_bytes=20_000))
    beside = Beside(here, SimpleNamespace(tenant="a"))  # type: ignore[arg-type]

    def taken(name: str, keep: str) -> None:
        model = check("metric", name, f"events: {{type: t}}\nkeep: {{10s: {keep}}}").model
        beside.check(model)
        beside.add(model)

    taken("first", "1h")
    with pytest.raises(ProblemError, match="or do so in first"):
        taken("second", "30m")
    taken("first", "30m")
    taken("second", "30m")
