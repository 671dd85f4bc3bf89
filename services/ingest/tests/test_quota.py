"""The quotas of tenants and keys: taken, refused and paid back, by arithmetic and over HTTP."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.clock import ManualClock
from weir.problems import ProblemError, Reason
from weir_ingest.keys import Keys, StoredKey
from weir_ingest.quota import Quota, Size
from weir_local.testing import running_broker

from .in_process import ARRIVED_MS, CALLER, HASH_KEY, KEY, Asked, Request, ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from tests.conftest import Ingest, LogReader

NOW_S = 1_000.0
WINDOW_S = 10


def key_of(tenant: str, key_id: str = "k1", **limits: Any) -> StoredKey:
    """Return a key that may send."""
    return replace(StoredKey(key_id, tenant, "", frozenset({"ingest"}), "web"), **limits)


def events(count: int) -> Size:
    """Return the size of a request with so many events, of a byte each."""
    return Size(count, count)


def refusal(quota: Quota, caller: StoredKey, now_s: float) -> ProblemError | None:
    """Return why somebody may not send now, None if they may."""
    try:
        quota.check(caller, now_s)
    except ProblemError as problem:
        return problem
    return None


def told(quota: Quota, caller: StoredKey, now_s: float) -> dict[str, str]:
    """Return the header fields."""
    return {name.decode(): value.decode() for name, value in quota.headers(caller, now_s)}


def test_what_all_tenants_may_send_is_known() -> None:
    """Of those with a key that may write now, however many keys they have; without a quota: any."""
    keys = Keys(b"key", ManualClock(1_000))
    write, read = frozenset({"ingest"}), frozenset({"read"})
    made = (("k1", "a", write), ("k2", "a", write), ("k1", "b", write), ("k3", "c", read))
    stored = [StoredKey(one, tenant, "", scopes, "web") for one, tenant, scopes in made]
    keys.replace([*stored, StoredKey("k4", "d", "", write, "web", expires_ms=1_000)])

    assert keys.tenants == 2
    assert (Quota(400).in_all(keys.tenants), Quota(0).in_all(keys.tenants)) == (800, None)


A, B = key_of("a"), key_of("b")


class TestQuotaOfATenant:
    def test_what_is_over_it_is_paid_back_by_waiting(self) -> None:
        """As long as anything is left a request is taken whole; then its debt is waited out."""
        quota = Quota(10)
        quota.take(A, events(99), NOW_S)
        assert refusal(quota, A, NOW_S) is None
        quota.take(A, events(21), NOW_S)
        found = refusal(quota, A, NOW_S)
        assert found is not None
        assert (found.status, found.reason, found.retry_after_s) == (429, "rate_limited", 2)
        assert found.message == (
            "a tenant must send at most 10 events a second, 100 in 10 s, and got them; nothing was "
            "stored, send again with the same ids in 2 s"
        )

        assert refusal(quota, A, NOW_S + 2) is not None
        assert refusal(quota, A, NOW_S + 2.001) is None

    def test_one_tenant_takes_nothing_from_another(self) -> None:
        """A tenant that is far over its quota waits, at most five seconds a time; others do not."""
        quota = Quota(10)
        quota.take(A, events(10_000), NOW_S)
        found = refusal(quota, A, NOW_S)

        assert found is not None
        assert found.retry_after_s == 5
        assert told(quota, A, NOW_S)["ratelimit"] == '"tenant";r=0;t=990'
        assert refusal(quota, B, NOW_S) is None

    def test_all_keys_of_a_tenant_share_it(self) -> None:
        """So does who sends without a key, by an app id."""
        quota = Quota(10)
        quota.take(A, events(110), NOW_S)

        for other in (key_of("a", "k2"), key_of("a", "")):
            assert refusal(quota, other, NOW_S) is not None

    def test_nothing_is_saved_up(self) -> None:
        """After a quiet hour there is as much as after ten seconds."""
        quota = Quota(10)
        quota.take(A, events(100), NOW_S)
        quota.take(A, events(100), NOW_S + 3_600)

        assert refusal(quota, A, NOW_S + 3_600) is not None

    def test_of_many_at_once_one_goes_over_it(self) -> None:
        """Requests that were let in together: the first may take too much, the next is refused."""
        quota = Quota(10)
        assert refusal(quota, A, NOW_S) is None
        quota.take(A, events(120), NOW_S)
        with pytest.raises(ProblemError, match="and got them"):
            quota.take(A, events(120), NOW_S)

        assert refusal(quota, A, NOW_S + 2.001) is None

    def test_what_is_given_back_can_be_sent(self) -> None:
        """As if it had never been taken; and never more than the whole."""
        quota = Quota(10)
        quota.take(A, events(120), NOW_S)
        quota.give_back(A, events(120), NOW_S + 1)

        assert told(quota, A, NOW_S + 1)["ratelimit"] == '"tenant";r=100;t=0'

    def test_it_is_told(self) -> None:
        """The fields name the quota of the window and what is left of it."""
        quota = Quota(10)
        quota.take(A, events(40), NOW_S)

        assert told(quota, A, NOW_S + 0.5) == {
            "ratelimit-policy": '"tenant";q=100;w=10',
            "ratelimit": '"tenant";r=65;t=0',
        }

    def test_without_a_quota_nothing_is_counted(self) -> None:
        """0 events a second is no quota: no refusal and no field."""
        quota = Quota(0)
        quota.take(A, events(10**9), NOW_S)

        assert refusal(quota, A, NOW_S) is None
        assert told(quota, A, NOW_S) == {}


class TestQuotasOfAKey:
    @pytest.mark.parametrize(
        ("limits", "size", "says"),
        [
            ({"events_per_s": 10}, Size(105, 1), "a key must send at most 10 events a second, 100"),
            ({"bytes_per_s": 10}, Size(1, 105), "a key must send at most 10 bytes a second, 100"),
        ],
    )
    def test_each_holds_by_itself(self, limits: dict[str, Any], size: Size, says: str) -> None:
        """Whose quota of what is spent is said; a key without has none, of the same tenant too."""
        quota, key = Quota(0), key_of("a", **limits)
        quota.take(key, size, NOW_S)

        found = refusal(quota, key, NOW_S)
        assert found is not None
        assert found.message.startswith(f"{says} in 10 s, and got them;")
        assert (found.status, found.retry_after_s) == (429, 1)
        assert refusal(quota, key, NOW_S + 0.5) is not None
        assert refusal(quota, key, NOW_S + 0.501) is None
        for other in (key_of("a", "k2", **limits), key_of("b", **limits), A):
            assert refusal(quota, other, NOW_S) is None

    def test_all_hold_together(self) -> None:
        """Whichever is spent refuses; of several that are spent the longest wait is told."""
        key = key_of("a", events_per_s=5, bytes_per_s=100)
        quota = Quota(10)
        quota.take(key, Size(60, 10), NOW_S)
        found = refusal(quota, key, NOW_S)
        assert found is not None
        assert (found.message[:33], found.retry_after_s) == ("a key must send at most 5 events ", 2)
        assert refusal(quota, A, NOW_S) is None  # 40 of the tenant's are left

        quota.take(A, events(50), NOW_S)  # 10 over: one second
        found = refusal(quota, key, NOW_S)
        assert found is not None
        assert (found.message[:33], found.retry_after_s) == ("a key must send at most 5 events ", 2)

        quota.take(A, events(45), NOW_S + 1.5)  # 40 over: four seconds
        found = refusal(quota, key, NOW_S + 1.5)
        assert found is not None
        assert found.message.startswith("a tenant must send at most 10 events")
        assert found.retry_after_s == 4

    def test_a_refusal_takes_nothing(self) -> None:
        """What the quota of a key refuses is not taken of the tenant's, nor the other way."""
        key = key_of("a", events_per_s=5, bytes_per_s=100)
        quota = Quota(10)
        quota.take(key, Size(60, 0), NOW_S)
        before = told(quota, key, NOW_S)
        with pytest.raises(ProblemError):
            quota.take(key, Size(10, 10), NOW_S)

        assert told(quota, key, NOW_S) == before

    def test_they_are_told_as_lists(self) -> None:
        """In one order: of bytes the unit is said; each with what is left of it."""
        key = key_of("a", events_per_s=5, bytes_per_s=100)
        quota = Quota(10)
        quota.take(key, Size(55, 400), NOW_S)

        assert told(quota, key, NOW_S) == {
            "ratelimit-policy": '"tenant";q=100;w=10, "key";q=50;w=10, '
            '"key-bytes";q=1000;qu="content-bytes";w=10',
            "ratelimit": '"tenant";r=45;t=0, "key";r=0;t=1, "key-bytes";r=600;t=0',
        }

    def test_another_quota_begins_anew(self) -> None:
        """A key whose definition says another one is not held to what it did under the old one."""
        quota = Quota(0)
        quota.take(key_of("a", events_per_s=5), events(60), NOW_S)

        assert refusal(quota, key_of("a", events_per_s=6), NOW_S) is None

    def test_who_is_quiet_is_forgotten(self) -> None:
        """Nothing is left of a key whose debt is paid, and a debt is not forgotten."""
        quota, key = Quota(10), key_of("a", events_per_s=5)
        quota.take(key, events(60), NOW_S)
        quota.forget(NOW_S + 2)
        assert refusal(quota, key, NOW_S + 2) is not None

        quota.forget(NOW_S + 12)
        assert quota._buckets == {}


Told = tuple[int, int, int, float, bool]


class TestLaws:
    """Of any requests at any times, beside a count by hand."""

    @given(
        sent=st.lists(
            st.tuples(
                st.integers(0, 2),  # whose
                st.integers(0, 80),  # events
                st.integers(0, 900),  # bytes
                st.floats(0, 6, width=16),  # seconds after the one before
                st.booleans(),  # whether it is stored
            ),
            max_size=40,
        )
    )
    def test_as_counted_by_hand(self, sent: list[Told]) -> None:
        """Taken is what finds something left of each quota; what is not stored leaves no trace."""
        callers = [
            key_of("a", "k1", events_per_s=3, bytes_per_s=50),
            key_of("a", "k2", bytes_per_s=20),
            key_of("b", "k1", events_per_s=4),
        ]
        limits = [{"t:a": 6, "e:0": 3, "b:0": 50}, {"t:a": 6, "b:1": 20}, {"t:b": 6, "e:2": 4}]
        rate = {name: per_s for some in limits for name, per_s in some.items()}
        left, now_s, quota = {name: 10.0 * per_s for name, per_s in rate.items()}, NOW_S, Quota(6)
        for who, count, content_bytes, pause_s, is_stored in sent:
            now_s += pause_s
            left = {n: min(10.0 * rate[n], had + pause_s * rate[n]) for n, had in left.items()}
            size, mine = Size(count, content_bytes), limits[who]
            if any(left[name] <= 0 for name in mine):
                with pytest.raises(ProblemError) as refused:
                    quota.take(callers[who], size, now_s)
                assert 1 <= (refused.value.retry_after_s or 0) <= 5
                continue
            quota.take(callers[who], size, now_s)
            if not is_stored:
                quota.give_back(callers[who], size, now_s)
                continue
            for name in mine:
                left[name] -= content_bytes if name.startswith("b") else count

    @given(
        bodies=st.lists(
            st.tuples(st.integers(1, 60), st.integers(1, 900), st.floats(0, 3, width=16)),
            min_size=1,
            max_size=40,
        )
    )
    def test_nobody_sends_more(self, bodies: list[tuple[int, int, float]]) -> None:
        """Over any time: ten seconds' worth, what came back meanwhile, and one request."""
        key = key_of("a", events_per_s=3, bytes_per_s=50)
        quota, now_s, got, largest = Quota(7), NOW_S, Size(0, 0), Size(0, 0)
        for count, content_bytes, pause_s in bodies:
            now_s += pause_s
            if refusal(quota, key, now_s) is None:
                quota.take(key, Size(count, content_bytes), now_s)
                got = Size(got.events + count, got.content_bytes + content_bytes)
                largest = Size(
                    max(largest.events, count), max(largest.content_bytes, content_bytes)
                )
        spans = WINDOW_S + now_s - NOW_S
        assert got.events <= 3 * spans + largest.events
        assert got.content_bytes <= 50 * spans + largest.content_bytes

    @given(
        spent=st.tuples(st.integers(0, 500), st.integers(0, 5_000)),
        passed_s=st.floats(0, 200, width=16),
    )
    def test_who_waits_as_long_as_told_may_send(
        self, spent: tuple[int, int], passed_s: float
    ) -> None:
        """What `t` says is enough, and a second less is not, unless it is the last one."""
        key = key_of("a", events_per_s=3, bytes_per_s=50)
        quota, now_s = Quota(7), NOW_S + passed_s
        quota.take(key, Size(*spent), NOW_S)
        waits = [int(one.rpartition("=")[2]) for one in _members(quota, key, now_s)]

        assert (refusal(quota, key, now_s) is None) == (max(waits) == 0)
        assert refusal(quota, key, now_s + max(waits) + 0.001) is None
        if max(waits) > 1:
            assert refusal(quota, key, now_s + max(waits) - 1) is not None


def _members(quota: Quota, key: StoredKey, now_s: float) -> list[str]:
    return told(quota, key, now_s)["ratelimit"].split(", ")


BODY = b'{"type":"t","id":"1","data":{}}\n{"type":"t","id":"2","data":{}}\n'


class TestOverHttp:
    """All but Kafka is the real thing."""

    def sending(self, body: bytes, limits: dict[str, Any], **changes: Any) -> Asked:
        """Return the answer to a body that comes with a key with limits."""
        clock = changes.setdefault("clock", ManualClock(ARRIVED_MS))
        keys = Keys(HASH_KEY, clock)
        keys.replace([replace(CALLER, **limits)])
        keys.ready = True
        sent = changes.pop("headers", {})
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/x-ndjson"}
        return ask(Request("/v1/events", body, headers={**headers, **sent}), keys=keys, **changes)

    def test_bytes_are_those_of_the_decoded_body(self) -> None:
        """However small they came."""
        body = BODY * 40
        answer = self.sending(
            gzip.compress(body),
            {"bytes_per_s": 1_000, "events_per_s": 10},
            headers={"Content-Encoding": "gzip"},
        )

        assert answer.json["accepted"] == 80
        assert answer.headers["ratelimit-policy"] == (
            '"key";q=100;w=10, "key-bytes";q=10000;qu="content-bytes";w=10'
        )
        left = 10_000 - len(body)
        assert answer.headers["ratelimit"] == f'"key";r=20;t=0, "key-bytes";r={left};t=0'

    def test_who_is_over_is_refused_before_the_body_is_read(self) -> None:
        """Nothing is stored, whatever the body is; once it is paid back it is."""
        quota, clock = Quota(0), ManualClock(ARRIVED_MS)
        limits = {"bytes_per_s": 5}
        assert self.sending(BODY, limits, quota=quota, clock=clock).status == 200
        unreadable = {"Content-Type": "application/cloudevents+json"}
        over = self.sending(b"\xff", limits, quota=quota, clock=clock, headers=unreadable)

        assert (over.status, over.json["code"], over.records) == (429, "rate_limited", [])
        assert over.json["detail"].startswith("a key must send at most 5 bytes a second, 50 in")
        assert over.headers["retry-after"] == "3"
        assert over.headers["ratelimit"] == '"key-bytes";r=0;t=3'
        clock.advance(3_000)
        assert self.sending(BODY, limits, quota=quota, clock=clock).status == 200

    @pytest.mark.parametrize(
        ("body", "status"),
        [(b'{"type":', 400), (b"[]", 200), (BODY, 503)],
    )
    def test_what_is_not_stored_does_not_count(self, body: bytes, status: int) -> None:
        """A body refused whole, one without events, and an outage of Kafka's."""
        failure = ProblemError(503, Reason.LOG_UNAVAILABLE, "away") if status == 503 else None
        kind = {"Content-Type": "application/json"} if status < 503 else {}
        limits = {"bytes_per_s": 10, "events_per_s": 1}
        answer = self.sending(body, limits, failure=failure, headers=kind, quota=Quota(1))

        assert answer.status == status
        left = '"tenant";r=10;t=0, "key";r=10;t=0, "key-bytes";r=100;t=0'
        assert answer.headers["ratelimit"] == left

    def test_who_is_not_let_in_is_told_no_quota(self) -> None:
        """A wrong key has none."""
        wrong = {"Authorization": f"Bearer {KEY[:-1]}x"}
        answer = self.sending(BODY, {"bytes_per_s": 10}, headers=wrong, quota=Quota(1))

        assert answer.status == 401
        assert "ratelimit" not in answer.headers


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
    body = json.dumps([{"type": "t", "id": str(n), "data": {}} for n in range(60)]).encode()
    reader = reader_of(kafka)
    mark = reader.ends()
    first: list[httpx.Response] = []

    def overtaken() -> Iterator[bytes]:
        yield body[:9]
        first.append(httpx.post(ingest.url, content=body, headers=ingest.authorization))
        yield body[9:]

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
    assert wait_for(lambda: (ingest.post(body).status_code == 200) or None)
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
        batch = json.dumps([{"type": "t", "id": str(n), "data": {}} for n in range(25)]).encode()
        for body in (b"nonsense", b'{"type":', b"\xff"):
            refused = ingest.post(body, content_type="application/cloudevents+json")
            assert (refused.status_code, left(refused)) == (400, "r=20;t=0")
        broker.kill()
        for _ in range(2):
            away = ingest.post(batch, origin="https://shop.example")
            assert (away.status_code, left(away)) == (503, "r=20;t=0")
        assert "ratelimit-policy" in away.headers["access-control-expose-headers"]
