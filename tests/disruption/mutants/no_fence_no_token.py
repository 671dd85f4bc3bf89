"""D3: a shard takes a commit whoever sends it and whatever has moved meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weir.commit import Attempt, ShardState, Verdict

TARGET = "weir.commit:decide"

Decide = Callable[[ShardState, Attempt], Verdict]


def mutate(original: Decide) -> Decide:
    """Return a decision for which every fence and token is the writer's own."""

    def decide(shard: ShardState, mine: Attempt) -> Verdict:
        if shard.fence is None:
            return original(shard, mine)
        return original(replace(shard, fence=mine.fence, token=mine.token), mine)

    return decide
