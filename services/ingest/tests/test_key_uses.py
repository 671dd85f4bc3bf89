"""Which requests count as uses of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from weir.clock import ManualClock
from weir_ingest.keys import Keys, StoredKey
from weir_ingest.quota import Quota, Size
from weir_service.last_used import LastUsed

from .in_process import ARRIVED_MS, CALLER, HASH_KEY, KEY, Request, ask

if TYPE_CHECKING:
    from redis.asyncio import Redis

EVENT = b'{"type":"t","id":"1","data":{}}'


def noted(token: str, body: bytes = EVENT, path: str = "/v1/events", **parts: Any) -> list[str]:
    """Return which keys are noted of a request, and at its arrival alone."""
    clock = ManualClock(ARRIVED_MS)
    used = LastUsed(cast("Redis", None), clock)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    ask(Request(path, body, headers=headers), last_used=used, clock=clock, **parts)
    assert set(used._pending.values()) <= {ARRIVED_MS}
    assert {tenant for tenant, _ in used._pending} <= {CALLER.tenant}
    return [key_id for _, key_id in used._pending]


@pytest.mark.parametrize("body", [EVENT, b'{"type":', b"[]"])
def test_a_key_that_is_let_in(body: bytes) -> None:
    """Whatever becomes of what it brings."""
    assert noted(KEY, body) == [CALLER.id]


def test_one_over_its_quota() -> None:
    """Somebody uses it, and nobody is to take it for forgotten."""
    quota = Quota(1)
    quota.take(CALLER, Size(20, 20), 0.0)
    assert noted(KEY, quota=quota) == [CALLER.id]


def test_one_that_is_read_in_the_body() -> None:
    """As Segment's SDKs send it."""
    body = b'{"writeKey":"%s","event":"e","userId":"u"}' % KEY.encode()
    assert noted("", body, "/v1/track") == [CALLER.id]


@pytest.mark.parametrize("token", ["", f"{KEY[:-1]}x", "nonsense"])
def test_no_other(token: str) -> None:
    """Nothing is noted of what nobody has made."""
    assert noted(token) == []


def test_an_app_id_is_no_key() -> None:
    """Who sends without a key leaves no note."""
    clock = ManualClock(ARRIVED_MS)
    keys = Keys(HASH_KEY, clock)
    nobody = StoredKey("", "acme", CALLER.hash, CALLER.scopes, "web")
    keys.replace([nobody])
    keys._seen = {KEY.encode(): nobody}
    keys.ready = True
    used = LastUsed(cast("Redis", None), clock)
    headers = {"Authorization": f"Bearer {KEY}"}
    answer = ask(Request("/v1/events", EVENT, headers=headers), keys=keys, last_used=used)

    assert answer.status == 200
    assert used._pending == {}
