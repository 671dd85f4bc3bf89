"""What a refusal of Redis says: of the server, or of what it was asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from redis.connection import DefaultParser
from redis.exceptions import ResponseError
from weir_analytics.panes.passing import is_outside
from weir_analytics.panes.shard_wire import (
    NotPermittedError,
    ShardWire,
    StoreError,
    WrongCommandError,
)


def refused(said: str) -> StoreError:
    """Return what the wire raises where a server says this of the first of two commands."""
    parser: Any = DefaultParser
    told = iter([parser.parse_error(said), b"OK"])

    def read_response() -> object:
        found = next(told)
        if isinstance(found, Exception):
            raise found
        return found

    wire = ShardWire("redis://nowhere")
    wire._connection = SimpleNamespace(read_response=read_response)
    with pytest.raises(StoreError) as raised:
        wire._replies(2)
    assert next(told, None) is None, "the connection is in step"
    assert isinstance(raised.value.__cause__, ResponseError)
    return raised.value


@pytest.mark.parametrize(
    "said",
    [
        "OOM command not allowed when used memory > 'maxmemory'.",
        "MISCONF Redis is configured to save RDB snapshots, but it is unable to persist to disk",
        "NOPERM User weir has no permissions to run the 'hset' command",
        "BUSY Redis is busy running a script",
        "NOREPLICAS Not enough good replicas to write.",
        "MASTERDOWN Link with MASTER is down",
    ],
)
def test_how_the_server_is_itself_is_no_versions_failure(said: str) -> None:
    """It is full, or cannot write its files: that passes, and is told as the store's."""
    found = refused(said)
    assert isinstance(found, NotPermittedError) is said.startswith("NOPERM")
    assert not isinstance(found, WrongCommandError)
    assert is_outside(found)


@pytest.mark.parametrize(
    "said",
    [
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        "ERR hash value is not an integer",
        "ERR unknown command 'NOSUCH'",
    ],
)
def test_what_a_key_holds_may_be_a_versions_failure(said: str) -> None:
    """Of that version's key: else it would hold up everybody for ever."""
    found = refused(said)
    assert type(found) is WrongCommandError
    assert str(found).startswith("redis refused to write: ")
    assert not is_outside(found)


@pytest.mark.parametrize(("timeout_s", "connects_s"), [(0.5, 0.5), (10.0, 5.0)])
def test_who_waits_little_for_answers_waits_no_longer_to_connect(
    timeout_s: float, connects_s: float
) -> None:
    """Nor does anybody wait as long to connect as for an answer that takes long."""
    settings = ShardWire("redis://127.0.0.1:1", timeout_s=timeout_s)._connection
    assert (settings.socket_timeout, settings.socket_connect_timeout) == (timeout_s, connects_s)
