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
    """Looks once a round, without the turn: a shard that a batch has written to keeps its mark.

    Only a newer driver deletes one, and whoever that one has fenced ends with this as well. What is
    less than all of a shard, such as the last seconds before a failover, the next batch meets.
    """

    def __init__(self, shards: Shards, cycle: Cycle) -> None:
        self._shards, self._cycle = shards, cycle

    def prepare(self) -> None:
        """Look.

        Raises:
            VerdictError: LOST if a shard has no mark, though batches of this life are committed.
            NewerFormatError: If a newer release wrote one.
        """
        if not self._cycle.commits:
            return
        try:
            marks = self._shards.read_marks()
        except (RedisError, StoreError):
            return  # that it is away the next batch finds out, and waits for it
        if lost := [shard for shard, mark in enumerate(marks) if mark is None]:
            msg = f"every shard must have the mark of the last batch, shards {lost} have none"
            raise VerdictError(Verdict.LOST, msg)

    def step(self, cycle: Cycle) -> Step:  # noqa: ARG002  all was done without the turn
        """Do nothing."""
        return Step.IDLE
