"""System metrics, read while others read them too."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import redis
from weir import names, rows
from weir.clock import SystemClock
from weir.rows import Row
from weir.series import encode_series, first_value
from weir_reading import accounts
from weir_reading.accounts import MINUTE_S, TYPES_VID, read_accounts
from weir_reading.batches import Batches
from weir_reading.panes import DECODED_AT_ONCE, Panes
from weir_service.redis import connect

TYPES = DECODED_AT_ONCE + 1
NEW = (TYPES + 1).to_bytes(2, "big")


@pytest.fixture
def client(redis_url: str) -> Any:
    """Return a client of a server with so many types in one minute that a thread is needed."""
    found: Any = redis.Redis.from_url(redis_url)
    ids = [n.to_bytes(2, "big") for n in range(1, TYPES + 1)]
    texts = {
        short: encode_series(["acme", "web", f"t{at}"]) for at, short in enumerate([*ids, NEW])
    }
    found.hset(names.names_key(0, TYPES_VID), mapping=texts)
    packed = dict.fromkeys(ids, rows.encode(Row(3)))
    found.hset(names.pane_key(0, TYPES_VID, MINUTE_S, 0), mapping=packed)
    return found


@pytest.mark.redis
@pytest.mark.usefixtures("client")
def test_names_that_others_ask_for_meanwhile_disturb_no_thread(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a thread goes through is its own: a type that is new to another request is not in it."""
    is_at_work, go_on = threading.Event(), threading.Event()

    def owner_of(text: str) -> str:
        is_at_work.set()
        assert go_on.wait(10)
        return first_value(text)

    async def found() -> int:
        store = connect(redis_url, None)
        panes = Panes(store, Batches(store, SystemClock()), cache_bytes=2**20, query_bytes=2**20)
        try:
            reading = asyncio.create_task(read_accounts(panes, TYPES_VID, [0], 1, "acme"))
            assert await asyncio.to_thread(is_at_work.wait, 10)
            await panes.names(TYPES_VID, 0, [NEW])
            go_on.set()
            return len(await reading)
        finally:
            go_on.set()
            await store.aclose()

    monkeypatch.setattr(accounts, "first_value", owner_of)
    assert asyncio.run(found()) == TYPES
