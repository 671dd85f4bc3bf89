"""What a commit replaces it watches: all of a transaction is applied, or nothing of it.

Redis takes nothing back: of a transaction that meets a key of another type it applies the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis
from weir import names
from weir.commit import Verdict
from weir_analytics.panes.shard_wire import WrongCommandError
from weir_analytics.panes.store import ShardStore

from .shard_scene import PANE, START_S, VID, job, part, stored

pytestmark = pytest.mark.redis

KEYS = {
    "a pane": names.pane_key(0, *PANE),
    "the outbox": names.outbox_key(0),
    "ids of series": names.ids_key(0, VID),
    "names of series": names.names_key(0, VID),
}
Asked = Callable[[Any], bool]
MOMENTS: dict[str, Asked] = {
    "reads": lambda commands: commands[0][0] == "WATCH" and commands[1][0] == "MGET",
    "looks at ids": lambda commands: commands[0][0] == "WATCH" and commands[1][0] == "HLEN",
    "writes": lambda commands: commands[0] == ("MULTI",),
}


@pytest.fixture(params=MOMENTS)
def moment(request: pytest.FixtureRequest) -> Asked:
    """Return what tells the commands of one step of a commit."""
    return MOMENTS[request.param]


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_that_somebody_else_wrote_leaves_a_commit_undone(
    client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch, key: str, moment: Asked
) -> None:
    """Whenever it was written: before a commit looks, or between its look and its transaction."""
    ask = shard._wire.ask

    def asked(commands: Any, **more: Any) -> Any:
        if moment(commands):
            client.set(key, "of somebody else")
        return ask(commands, **more)

    parts = [part(), part("=b"), part(start_s=START_S + 60)]
    with monkeypatch.context() as patched:
        patched.setattr(shard._wire, "ask", asked)
        with pytest.raises(WrongCommandError, match="WRONGTYPE"):
            shard.commit(job(0, 10), parts)

    client.delete(key)
    assert not client.keys(f"{names.shard_prefix(0)}p:*"), "nothing of it was written"
    assert shard.commit(job(0, 10), parts).verdict is Verdict.OK
    assert {series: row.n for series, row in stored(client).items()} == {"=a": 1, "=b": 1}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_what_is_written_right_meanwhile_is_read_again(
    client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Whatever it is, what is replaced is what was read."""
    ask, left = shard._wire.ask, iter([True])

    def asked(commands: Any, **more: Any) -> Any:
        if commands[0] == ("MULTI",) and next(left, False):
            client.hset(key, b"\xff\xff\xff", b"of somebody else")
            client.hdel(key, b"\xff\xff\xff")
        return ask(commands, **more)

    monkeypatch.setattr(shard._wire, "ask", asked)
    done = shard.commit(job(0, 10), [part()])
    assert (done.verdict, done.work.tries) == (Verdict.OK, 2)
    assert {series: row.n for series, row in stored(client).items()} == {"=a": 1}
