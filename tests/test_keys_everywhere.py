"""API keys from the dashboard that makes them to the ingest that takes them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from weir_local.testing import TestStack

pytestmark = pytest.mark.stack

BATCH = [{"type": "dev.keys", "id": str(number), "data": {}} for number in range(30)]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestStack]:
    """Return a dashboard and an ingest; nothing is counted."""
    stack = TestStack(tmp_path_factory.mktemp("keys"))
    try:
        stack.start(("dashboard", "ingest"))
        yield stack
    finally:
        stack.stop()


def made(stack: TestStack, path: str = "/keys", **members: Any) -> dict[str, Any]:
    """Make a key; return the answer."""
    told: dict[str, Any] = stack.api("POST", path, members).body
    return told


def sent(stack: TestStack, key: dict[str, Any], events: Any = BATCH[:1]) -> httpx.Response:
    """Send events with a key."""
    headers = {"Authorization": f"Bearer {key['key']}"}
    return httpx.post(f"{stack.ingest_url}/v1/events", json=events, headers=headers, timeout=30)


def await_taken(stack: TestStack, key: dict[str, Any]) -> None:
    """Return once ingest knows a key."""
    stack.wait_until(lambda: sent(stack, key, []).status_code == 200, "ingest to know the key")


def last_used_ms(stack: TestStack, key: dict[str, Any]) -> int | None:
    """Return when a key was last used, as it is listed."""
    (found,) = (one for one in stack.api("GET", "/keys").body["items"] if one["id"] == key["id"])
    at_ms: int | None = found["last_used_ms"]
    return at_ms


def test_its_quotas_hold_at_ingest(both: TestStack) -> None:
    """Told with each answer, and in force for this key alone."""
    limited = made(both, scopes=["ingest"], events_per_s=2, bytes_per_s=1_000)
    other = made(both, scopes=["ingest"])
    await_taken(both, limited)
    await_taken(both, other)
    assert sent(both, limited, BATCH).status_code == 200

    over = sent(both, limited)
    assert (over.status_code, over.json()["code"]) == (429, "rate_limited")
    assert over.json()["detail"].startswith("a key must send at most 2 events a second")
    assert over.headers["ratelimit-policy"] == (
        '"key";q=20;w=10, "key-bytes";q=10000;qu="content-bytes";w=10'
    )
    assert 1 <= int(over.headers["retry-after"]) <= 5
    assert sent(both, other).status_code == 200
    assert "ratelimit" not in sent(both, other).headers


def test_one_that_is_replaced_ends_at_ingest(both: TestStack) -> None:
    """After the overlap, and at once without one; then it is as wrong as any."""
    old = made(both, scopes=["ingest"])
    await_taken(both, old)
    new = made(both, f"/keys/{old['id']}/rotate", overlap="3s")
    await_taken(both, new)
    assert sent(both, old).status_code == 200
    both.wait_until(lambda: sent(both, old).status_code == 401, "the end of the old key")
    assert time.time() * 1000 >= new["old_expires_ms"]
    assert sent(both, old).json() == sent(both, {"key": "nonsense"}).json()
    assert sent(both, new).status_code == 200

    last = made(both, f"/keys/{new['id']}/rotate", overlap="0s")
    both.wait_until(lambda: sent(both, new).status_code == 401, "the end of the second key")
    await_taken(both, last)


def test_what_comes_to_ingest_is_a_use(both: TestStack) -> None:
    """The list of the dashboard tells it, also of a key that opens nothing there."""
    key = made(both, scopes=["ingest"])
    assert last_used_ms(both, key) is None
    begun_ms = time.time() * 1000
    await_taken(both, key)
    both.wait_until(lambda: last_used_ms(both, key) is not None, "the use noted")
    assert begun_ms <= (last_used_ms(both, key) or 0) <= time.time() * 1000
