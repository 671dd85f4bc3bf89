"""Whether every shard still has its mark, looked at between batches.

A batch meets a shard that has lost its state, but where nobody sends, one comes with the ticks
only, every second or two; until then readers have nothing, and nothing of it is counted again.
"""

from __future__ import annotations

from redis.exceptions import RedisError
from weir.commit import Verdict

from weir_analytics.panes.between import Step
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.recovery import Shards, VerdictError
from weir_analytics.panes.shard_wire import StoreError


class LossWatch:
    """Looks once a round whether a start would find a shard lost: from S0 on each has a mark.

    What is less than all of a shard, such as the last seconds before a failover, the next batch
    meets.
    """

    def __init__(self, shards: Shards) -> None:
        """Prepare it.

        Args:
            shards: A way to them of its own, since the look holds no turn: a store that does not
                answer may make slices wait, but no batch. Closed by whoever made it.
        """
        self._shards = shards
        self._is_suspected = False

    def prepare(self) -> None:
        """Look.

        Raises:
            NewerFormatError: If a newer release wrote a mark.
        """
        self._is_suspected = bool(_lost(self._shards))

    def step(self, cycle: Cycle) -> Step:
        """Look again where something was missing, while no batch writes.

        A batch that Redis applied in part takes a mark away itself, and says why.

        Raises:
            VerdictError: LOST if a shard has no mark.
            NewerFormatError: As above.
        """
        if self._is_suspected and (lost := _lost(cycle.stores.shards)):
            msg = f"every shard must have the mark of the last batch, shards {lost} have none"
            raise VerdictError(Verdict.LOST, msg)
        return Step.IDLE


def _lost(shards: Shards) -> list[int]:
    """Return the shards without a mark; none if the store is away: that the next batch meets."""
    try:
        return [shard for shard, mark in enumerate(shards.read_marks()) if mark is None]
    except (RedisError, StoreError):
        return []
