"""A transaction that Redis applies in part leaves no mark that says it is all there, or says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs
from weir import names
from weir.commit import Fence, Verdict
from weir_analytics.panes import pane_merge, store
from weir_analytics.panes.commit_job import Limits
from weir_analytics.panes.shard_wire import WrongCommandError
from weir_analytics.panes.store import ShardStore, StoreError

from .shard_scene import PANE, START_S, VID, job, part, raise_fence, stored

pytestmark = pytest.mark.redis


def written_by_another(
    client: redis.Redis,
    shard: ShardStore,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[], object] = lambda: None,
    answers: Iterable[Exception] = (),
) -> None:
    """Have somebody else write a pane between a commit's look and its transaction.

    Args:
        client: Of the same Redis.
        shard: Whose commit that is.
        monkeypatch: Takes it back.
        meanwhile: Done between the transaction and the look at the fence that follows it.
        answers: What comes of such looks in place of an answer; then they are answered.
    """
    ask, merge, failures = shard._wire.ask, pane_merge.merge_pane, iter(answers)

    def asked(commands: Any, **more: Any) -> Any:
        if commands[0] == ("WATCH", names.fence_key(0)):
            meanwhile()
            if (failure := next(failures, None)) is not None:
                raise failure
        return ask(commands, **more)

    def merge_late(*arguments: object) -> object:
        client.set(names.pane_key(0, *PANE), "of somebody else")
        return merge(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(shard._wire, "ask", asked)
    monkeypatch.setattr(store, "merge_pane", merge_late)


@pytest.mark.parametrize("silences", [0, 2])
def test_a_commit_that_redis_applies_in_part_leaves_no_mark(
    client: redis.Redis,
    shard: ShardStore,
    monkeypatch: pytest.MonkeyPatch,
    silences: int,
) -> None:
    """Redis takes the rest of a transaction not back: the shard is lost, and not just short.

    Also if it does not answer at once when the mark is to go.
    """
    written_by_another(
        client, shard, monkeypatch, answers=[redis.TimeoutError("no answer")] * silences
    )

    with capture_logs() as told:
        done = shard.commit(job(0, 10), [part()])

    assert done.verdict is Verdict.LOST
    assert done.why.startswith("shard 0 is counted anew: redis applied a transaction but for")
    assert "WRONGTYPE" in done.why
    assert told[0]["mark"] == "gone", "a start finds it out"
    assert shard.commit(job(0, 10), []).verdict is Verdict.LOST
    assert shard.commit(job(10, 20), []).verdict is Verdict.LOST


@pytest.mark.parametrize("answer", [redis.TimeoutError("no answer"), StoreError("no permissions")])
def test_where_its_mark_stays_that_is_told(
    client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch, answer: Exception
) -> None:
    """Who raised that would be tried again by Spark, and take the mark's word for the batch."""
    written_by_another(client, shard, monkeypatch, answers=[answer] * 4)

    with capture_logs() as told:
        done = shard.commit(job(0, 10), [part()])

    assert [(line["event"], line["mark"]) for line in told] == [("shard_short", "stays")]
    assert done.verdict is Verdict.LOST
    assert done.why.startswith("shard 0 is counted anew: redis applied a transaction but for")
    assert done.is_short
    assert client.exists(names.mark_key(0))


@pytest.mark.parametrize(
    "key", [names.ids_key(0, VID), names.names_key(0, VID), names.listed_key(0, VID, "a")]
)
@pytest.mark.parametrize("moment", ["before its look", "after it"])
def test_ids_that_somebody_else_wrote_leave_a_commit_undone(
    client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch, key: str, moment: str
) -> None:
    """What gives ids is written with few commits, and not read with all of those."""
    ask = shard._wire.ask
    listing = {VID: Limits({60: 86_400}, listed=True)}

    def asked(commands: Any, **more: Any) -> Any:
        is_look = commands[0][0] == "WATCH" and commands[1][0] == "HLEN"
        if is_look if moment == "before its look" else commands[0] == ("MULTI",):
            client.set(key, "of somebody else")
        return ask(commands, **more)

    with monkeypatch.context() as patched:
        patched.setattr(shard._wire, "ask", asked)
        with pytest.raises(WrongCommandError, match="WRONGTYPE"):
            shard.commit(job(0, 10, limits=listing), [part(), part("=b")])

    client.delete(key)
    assert not client.keys(f"{names.shard_prefix(0)}p:*"), "nothing of it was written"
    assert shard.commit(job(0, 10), [part(), part("=b")]).verdict is Verdict.OK
    assert {series: row.n for series, row in stored(client).items()} == {"=a": 1, "=b": 1}


def test_what_is_watched_does_not_grow_with_panes(
    client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Devices that were away send days at once; watching each pane would hold Redis up."""
    ask, watched = shard._wire.ask, Counter[str]()

    def asked(commands: Any, **more: Any) -> Any:
        watched.update(key for name, *keys in commands if name == "WATCH" for key in keys)
        return ask(commands, **more)

    monkeypatch.setattr(shard._wire, "ask", asked)
    parts = [part(start_s=START_S + 60 * n) for n in range(300)]
    assert shard.commit(job(0, 10), parts).verdict is Verdict.OK
    assert len(client.keys(f"{names.shard_prefix(0)}p:*")) == 300
    assert not [key for key in watched if ":p:" in key]
    assert len(watched) < 10


def test_the_mark_of_a_younger_driver_stays(
    client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was paused in between has no right to the shard any more."""
    younger = Fence(8, "definitions")
    written_by_another(client, shard, monkeypatch, lambda: raise_fence(client, younger))

    done = shard.commit(job(0, 10), [part()])
    assert done.verdict is Verdict.FENCED
    assert "shard 0 may be short of batch 0" in done.why
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


def test_a_fence_that_is_gone_when_the_mark_is_to_go(
    client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start raises one, finds a mark that says all is there, and would believe it."""
    written_by_another(
        client, shard, monkeypatch, meanwhile=lambda: client.delete(names.fence_key(0))
    )

    done = shard.commit(job(0, 10), [part()])

    assert (done.verdict, done.is_short) == (Verdict.LOST, True)
    assert "WRONGTYPE" in done.why
    assert client.exists(names.mark_key(0))


@pytest.mark.parametrize(
    ("fence", "says"),
    [
        (b'{"fence":9,"topic_id":"another"}', "shard 0 may be short of batch 0"),
        (b'{"fence":9,"topic_id":"definitions","v":99}', "shard 0 may be short of batch 0"),
    ],
    ids=["of another log", "of a newer release"],
)
def test_who_has_to_stop_says_which_shard_is_short(
    client: redis.Redis,
    shard: ShardStore,
    monkeypatch: pytest.MonkeyPatch,
    fence: bytes,
    says: str,
) -> None:
    """The process ends by that, and nobody hears of it otherwise."""
    written_by_another(
        client, shard, monkeypatch, meanwhile=lambda: client.set(names.fence_key(0), fence)
    )

    done = shard.commit(job(0, 10), [part()])

    assert done.verdict is Verdict.FOREIGN
    assert says in done.why


def test_a_fence_that_is_none_hides_no_short_shard(
    client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else writes Weir's keys, so the fence may be next."""
    written_by_another(
        client, shard, monkeypatch, meanwhile=lambda: client.set(names.fence_key(0), b"none")
    )

    assert shard.commit(job(0, 10), [part()]).is_short
