"""Whether every shard still has its mark, looked at between batches.

A batch meets a shard that has lost its state, but where nobody sends, one comes with the ticks
only, every second or two; until then readers have nothing, and nothing of it is counted again.
"""

from __future__ import annotations

from weir.commit import Verdict

from weir_analytics.panes.between import Step
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.recovery import Shards, VerdictError


class LossWatch:
    """Looks once a round whether a start would find a shard lost: from S0 on each has a mark.

    What is less than all of a shard, such as the last seconds before a failover, the next batch
    meets. While the store is away, or slow, it looks more and more seldom (`Between`): slices wait
    for the look.
    """

    def __init__(self, shards: Shards) -> None:
        """Prepare it.

        Args:
            shards: A way to them of its own, that waits little: no batch may wait for a store that
                does not answer. Closed by whoever made it.
        """
        self._shards = shards
        self._is_suspected = False

    def prepare(self) -> None:
        """Look; nothing is held meanwhile.

        Raises:
            RedisError: If the store is away.
            StoreError: If it refuses.
            NewerFormatError: If a newer release wrote a mark.
        """
        self._is_suspected = False  # of before, should this look fail
        self._is_suspected = bool(self._lost())

    def step(self, cycle: Cycle) -> Step:
        """Look again where something was missing, while no batch writes.

        A batch that Redis applied in part takes a mark away itself, and says why. And the server
        that was asked may be one that is asked no more, so the connection is another.

        Raises:
            VerdictError: LOST if a shard has no mark; FENCED if that is the work of a newer driver.
            RedisError, StoreError, NewerFormatError: As above.
        """
        if not self._is_suspected:
            return Step.IDLE
        self._shards.close()
        if lost := self._lost():
            self._shards.check_fence(cycle.footing.fence)
            msg = f"every shard must have its live mark between batches, shards {lost} have none"
            raise VerdictError(Verdict.LOST, msg)
        return Step.IDLE

    def _lost(self) -> list[int]:
        return [shard for shard, mark in enumerate(self._shards.read_marks()) if mark is None]
