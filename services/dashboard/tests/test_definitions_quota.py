"""What a tenant's metrics cost together is asked where one is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from weir.definitions.check import check
from weir.definitions.fold import Definitions
from weir.problems import ProblemError, Reason
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
