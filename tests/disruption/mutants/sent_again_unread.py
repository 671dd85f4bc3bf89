"""D9: what got no answer is sent again without a look at the mark, as clients do by default."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from weir.commit import Attempt, ShardState, Verdict

TARGET = "weir_analytics.panes.store:ShardStore._try"

Try = Callable[..., Any]


def mutate(original: Try) -> Try:
    """Return a try that asks nothing once there was a silence."""

    def again(self: Any, job: Any, grouped: Any, tally: Any) -> Any:
        if not tally.silences:
            return original(self, job, grouped, tally)
        store = importlib.import_module("weir_analytics.panes.store")
        asked = store.decide
        vars(store)["decide"] = _always
        try:
            return original(self, job, grouped, tally)
        finally:
            vars(store)["decide"] = asked

    return again


def _always(_shard: ShardState, _mine: Attempt) -> Verdict:
    return Verdict.OK
