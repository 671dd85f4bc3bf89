"""A transaction that Redis applies in part leaves no mark that says it is all there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import redis
from weir import names
from weir.commit import Fence, Verdict
from weir_analytics.panes import pane_merge, store
from weir_analytics.panes.store import ShardStore

from .shard_scene import PANE, job, part, raise_fence

pytestmark = pytest.mark.redis


def written_by_another(
    client: redis.Redis,
    shard: ShardStore,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[], None] = lambda: None,
    silent: Iterable[bool] = (),
) -> None:
    """Have somebody else write a pane between a commit's look and its transaction.

    Args:
        client: Of the same Redis.
        shard: Whose commit that is.
        monkeypatch: Takes it back.
        meanwhile: Done between the transaction and the look at the fence that follows it.
        silent: Of each such look, whether Redis does not answer it.
    """
    ask, merge, silences = shard._wire.ask, pane_merge.merge_pane, iter(silent)

    def asked(commands: Any, **more: Any) -> Any:
        if commands[0] == ("WATCH", names.fence_key(0)):
            meanwhile()
            if next(silences, False):
                msg = "no answer"
                raise redis.TimeoutError(msg)
        return ask(commands, **more)

    def merge_late(*arguments: object) -> object:
        client.set(names.pane_key(0, *PANE), "of somebody else")
        return merge(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(shard._wire, "ask", asked)
    monkeypatch.setattr(store, "merge_pane", merge_late)


@pytest.mark.parametrize("silences", [0, 2, 4])
def test_a_commit_that_redis_applies_in_part_leaves_no_mark(
    client: redis.Redis,
    shard: ShardStore,
    monkeypatch: pytest.MonkeyPatch,
    silences: int,
) -> None:
    """Redis takes the rest of a transaction not back: the shard is lost, and not just short.

    Also if it does not answer when the mark is to go; then whoever commits next finds that.
    """
    written_by_another(client, shard, monkeypatch, silent=[True] * silences)
    if silences == 4:
        with pytest.raises(redis.TimeoutError):
            shard.commit(job(0, 10), [part()])
        assert client.exists(names.mark_key(0)), "what says that all of it is there"

    done = shard.commit(job(0, 10), [part()])

    assert done.verdict is Verdict.LOST
    assert done.why.startswith("shard 0 is counted anew: redis applied a transaction but for")
    assert "WRONGTYPE" in done.why
    assert shard.commit(job(0, 10), []).verdict is Verdict.LOST
    assert shard.commit(job(10, 20), []).verdict is Verdict.LOST


def test_the_mark_of_a_younger_driver_stays(
    client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was paused in between has no right to the shard any more."""
    younger = Fence(8, "definitions")
    written_by_another(client, shard, monkeypatch, lambda: raise_fence(client, younger))

    assert shard.commit(job(0, 10), [part()]).verdict is Verdict.FENCED
    assert client.exists(names.mark_key(0))
    assert shard.commit(job(10, 20, fence=younger), []).verdict is Verdict.OK


def test_a_fence_that_is_raised_while_the_mark_goes(
    client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis refuses it, and the fence is looked at once more."""
    younger = Fence(8, "definitions")
    written_by_another(client, shard, monkeypatch)
    ask = shard._wire.ask

    def asked(commands: Any, **more: Any) -> Any:
        if ("DEL", names.mark_key(0)) in commands:
            raise_fence(client, younger)
        return ask(commands, **more)

    monkeypatch.setattr(shard._wire, "ask", asked)

    assert shard.commit(job(0, 10), [part()]).verdict is Verdict.FENCED
    assert client.exists(names.mark_key(0))
