"""The end of a decision to adopt a log: the next start has used it, or there was no need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from weir.definitions.jobs import JobAsked
from weir.event import DEFAULT_TENANT

from weir_analytics.jobs.task import Outcome, Progress, RefusedError
from weir_analytics.panes.cycle import Cycle


class AdoptTask:
    """The end of a decision: the driver counts, so it was used, or there is no need of it."""

    goes_on: ClassVar = False

    def __init__(self, asked: JobAsked) -> None:
        self.stopping = False
        self._asked = asked
        self._given_up: Outcome = {}

    @property
    def progress(self) -> Progress:
        """Return that there is one thing to do."""
        return Progress(0, 1)

    def facts(self, cycle: Cycle) -> Mapping[str, Any]:
        """Refuse: a driver that counts has nothing to adopt.

        Raises:
            RefusedError: Always. A decision that lay there for a later fault would be one
                that nobody has made.
        """
        del cycle
        if self._asked.definition.tenant != DEFAULT_TENANT:
            msg = f"adopt must come from the tenant {DEFAULT_TENANT}: the log is everybody's"
        else:
            msg = "the driver counts, there is nothing to adopt; ask when it has ended with FOREIGN"
        raise RefusedError(msg)

    def begin(self, cycle: Cycle, facts: Mapping[str, Any]) -> None:
        """Take what the start has recorded."""
        del cycle
        self._given_up = facts.get("given_up", {})

    def step(self, cycle: Cycle, is_over: Callable[[], bool]) -> Outcome | None:
        """End at once: the start has done it."""
        del cycle, is_over
        return {"given_up": self._given_up}

    def close(self) -> None:
        """Hold nothing."""
