"""Plans made ahead: a new version begins when its plan is ready, and no batch waits for that.

A plan that Spark has never run costs the first batch that uses it seconds: it is analysed,
written as Java, compiled, and interpreted until the machine's compiler comes round to it.
So the thread between batches makes the plan of what will be counted next and rehearses it
over the log's last records, for nothing, while live batches go on with the one they have.
Which offsets a version begins at is the driver's to choose; it chooses those after that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from weir.clock import Clock
from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.definitions.history import Definition

from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.plan import Plan
from weir_analytics.panes.plans import Counting, Plans

# Whoever waits longer begins without: nothing that goes wrong here keeps a metric from counting.
LONGEST_S: Final = 20.0


@dataclass
class Ahead:
    """The plan of the next live batches, as work between batches (see `between.Work`).

    Attributes:
        plans: Those of live batches. What is made here is found there.
        rehearse: Runs a plan for nothing.
    """

    plans: Plans
    rehearse: Callable[[Plan], None]
    clock: Clock
    _wanted: Counting | None = None
    _ready: frozenset[int] = frozenset()
    _seen_s: dict[int, float] = field(default_factory=dict)
    _waiting: FoldMemo[list[Definition]] = field(
        default_factory=lambda: FoldMemo(Definitions.metrics_to_start)
    )

    def may_begin(self, definition: Definition) -> bool:
        """Tell whether a version's plan is ready, or it has waited long enough."""
        vid, now_s = definition.vid, self.clock.monotonic_s()
        seen_s = self._seen_s.setdefault(vid, now_s)
        return vid in self._ready or now_s - seen_s > LONGEST_S

    def prepare(self) -> None:
        """Make the plan that is wanted, and rehearse it."""
        if self._wanted is None:
            return
        plan = self.plans.plan_of(self._wanted)
        self.rehearse(plan)
        self._ready |= {one.version.vid for one in self._wanted.versions}
        self._wanted = None

    def step(self, cycle: Cycle) -> bool:
        """Say what is wanted; the rest needs no turn."""
        waiting = self._waiting.of(cycle.stores.definitions.fold)
        if any(one.vid not in self._ready for one in waiting):
            self._wanted = self.plans.soon(cycle.end, cycle.through_ms // 1000)
        return False
