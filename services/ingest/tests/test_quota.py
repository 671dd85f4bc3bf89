"""The quota of a tenant: taken, refused and paid back, by arithmetic and over HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest
from weir.problems import ProblemError
from weir_ingest.keys import Keys, StoredKey
from weir_ingest.quota import Quota
from weir_local.testing import running_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from tests.conftest import Ingest, LogReader

NOW_S = 1_000.0


def refusal(quota: Quota, tenant: str, now_s: float) -> ProblemError | None:
    """Return why a tenant may not send now, None if it may."""
    try:
        quota.check(tenant, now_s)
    except ProblemError as problem:
        return problem
    return None


def test_what_all_tenants_may_send_is_known() -> None:
    """Of those with a key that may write, however many keys they have; without a quota: any."""
    keys = Keys(b"key")
    write, read = frozenset({"ingest"}), frozenset({"read"})
    made = (("k1", "a", write), ("k2", "a", write), ("k1", "b", write), ("k3", "c", read))
    keys.replace(StoredKey(one, tenant, "", scopes, "web") for one, tenant, scopes in made)

    assert keys.tenants == 2
    assert (Quota(400).in_all(keys.tenants), Quota(0).in_all(keys.tenants)) == (800, None)


class TestQuota:
    def test_what_is_over_it_is_paid_back_by_waiting(self) -> None:
        """As long as anything is left a request is taken whole; then its debt is waited out."""
        quota = Quota(10)
        quota.take("a", 99, NOW_S)
        assert refusal(quota, "a", NOW_S) is None
        quota.take("a", 21, NOW_S)
        found = refusal(quota, "a", NOW_S)
        assert found is not None
        assert (found.status, found.reason, found.retry_after_s) == (429, "rate_limited", 2)
        assert "at most 10 events a second, 100 in 10 s, and got them" in found.message

        assert refusal(quota, "a", NOW_S + 2) is not None
        assert refusal(quota, "a", NOW_S + 2.001) is None

    def test_one_tenant_takes_nothing_from_another(self) -> None:
        """A tenant that is far over its quota waits, at most five seconds a time; others do not."""
        quota = Quota(10)
        quota.take("a", 10_000, NOW_S)
        found = refusal(quota, "a", NOW_S)

        assert found is not None
        assert found.retry_after_s == 5
        assert dict(quota.headers("a", NOW_S))[b"ratelimit"] == b'"tenant";r=0;t=990'
        assert refusal(quota, "b", NOW_S) is None

    def test_nothing_is_saved_up(self) -> None:
        """After a quiet hour there is as much as after ten seconds."""
        quota = Quota(10)
        quota.take("a", 100, NOW_S)
        quota.take("a", 100, NOW_S + 3_600)

        assert refusal(quota, "a", NOW_S + 3_600) is not None

    def test_of_many_at_once_one_goes_over_it(self) -> None:
        """Requests that were let in together: the first may take too much, the next is refused."""
        quota = Quota(10)
        assert refusal(quota, "a", NOW_S) is None
        quota.take("a", 120, NOW_S)
        with pytest.raises(ProblemError, match="and got them"):
            quota.take("a", 120, NOW_S)

        assert refusal(quota, "a", NOW_S + 2.001) is None

    def test_what_is_given_back_can_be_sent(self) -> None:
        """As if it had never been taken; and never more than the whole."""
        quota = Quota(10)
        quota.take("a", 120, NOW_S)
        quota.give_back("a", 120, NOW_S + 1)

        assert dict(quota.headers("a", NOW_S + 1))[b"ratelimit"] == b'"tenant";r=100;t=0'

    def test_it_is_told(self) -> None:
        """The fields name the quota of the window and what is left of it."""
        quota = Quota(10)
        quota.take("a", 40, NOW_S)
        told = dict(quota.headers("a", NOW_S + 0.5))

        assert told[b"ratelimit-policy"] == b'"tenant";q=100;w=10'
        assert told[b"ratelimit"] == b'"tenant";r=65;t=0'

    def test_without_a_quota_nothing_is_counted(self) -> None:
        """0 events a second is no quota: no refusal and no field."""
        quota = Quota(0)
        quota.take("a", 10**9, NOW_S)

        assert refusal(quota, "a", NOW_S) is None
        assert quota.headers("a", NOW_S) == []


@pytest.mark.kafka
def test_over_quota(
    kafka: str,
    start_ingest: Callable[..., Ingest],
    new_key: Callable[..., str],
    wait_for: Callable[..., Any],
    reader_of: Callable[[str], LogReader],
) -> None:
    """Row 26: 429 with Retry-After and RateLimit before anything is read; others go on.

    A request that was let in and overtaken while its body came is refused as a whole.
    """
    ingest = start_ingest(kafka, new_key(kafka, tenant="quota"), quota_events_per_s="1")
    wait_for(ingest.is_ready)
    # What is over the quota takes most of a minute to be paid back: longer than this test.
    events = json.dumps([{"type": "t", "id": str(n), "data": {}} for n in range(60)]).encode()
    reader = reader_of(kafka)
    mark = reader.ends()
    first: list[httpx.Response] = []

    def overtaken() -> Iterator[bytes]:
        yield events[:9]
        first.append(httpx.post(ingest.url, content=events, headers=ingest.authorization))
        yield events[9:]

    late = ingest.post(overtaken())
    assert (late.status_code, late.json()["code"]) == (429, "rate_limited")
    (taken,) = first
    assert len(reader.since(mark)) == 60
    assert (taken.status_code, taken.json()["accepted"]) == (200, 60)
    assert taken.headers["ratelimit-policy"] == '"tenant";q=10;w=10'
    assert taken.headers["ratelimit"].startswith('"tenant";r=0;t=')

    over = ingest.post(b"not even json")
    assert (over.status_code, over.json()["code"]) == (429, "rate_limited")
    assert 1 <= int(over.headers["retry-after"]) <= 5
    assert over.headers["ratelimit"].startswith('"tenant";r=0;t=')

    ingest.key = new_key(kafka, tenant="quota2")
    assert wait_for(lambda: (ingest.post(events).status_code == 200) or None)
    ingest.stop()


def left(answer: httpx.Response) -> str:
    """Return what an answer says is left of the quota."""
    return answer.headers["ratelimit"].partition(";")[2]


@pytest.mark.kafka
def test_what_is_not_stored_does_not_count(
    tmp_path: Path,
    start_ingest: Callable[..., Ingest],
    new_key: Callable[..., str],
    wait_for: Callable[..., Any],
) -> None:
    """A body refused whole and an outage of Kafka's take nothing of the quota."""
    with running_broker(tmp_path) as broker:
        ingest = start_ingest(
            broker.bootstrap,
            new_key(broker.bootstrap),
            quota_events_per_s="2",
            delivery_timeout_s="1",
        )
        wait_for(ingest.is_ready)
        events = json.dumps([{"type": "t", "id": str(n), "data": {}} for n in range(25)]).encode()
        for body in (b"nonsense", b'{"type":', b"\xff"):
            refused = ingest.post(body, content_type="application/cloudevents+json")
            assert (refused.status_code, left(refused)) == (400, "r=20;t=0")
        broker.kill()
        for _ in range(2):
            away = ingest.post(events, origin="https://shop.example")
            assert (away.status_code, left(away)) == (503, "r=20;t=0")
        assert "ratelimit-policy" in away.headers["access-control-expose-headers"]
