"""The quota of changes: by arithmetic, and over HTTP at every route that appends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.alerts.machine import Phase
from weir.clock import ManualClock
from weir.problems import ProblemError, Reason
from weir_dashboard.auth.scopes import APPENDING, TABLE
from weir_dashboard.change_quota import ChangeQuota, changes_in
from weir_local.waiting import wait_until
from weir_reading.appender import NotConfirmedError

from .channels import define_channel
from .conftest import Running
from .test_alerts import FIRING, Job, put_rule, rule_text
from .test_definition_apply import by_another, meddled
from .test_definition_plan import metric

PER_HOUR = 1_000
NEW = {"if-none-match": "*"}
BY = "by: [data.region]\n"


def refusal(quota: ChangeQuota, tenant: str, changes: int) -> ProblemError | None:
    """Return why a tenant may not make so many changes now, None if it may."""
    try:
        quota.check(tenant, changes)
    except ProblemError as problem:
        return problem
    return None


def take(quota: ChangeQuota, tenant: str, changes: int) -> None:
    """Count changes as appended."""
    with quota.taken(tenant, changes):
        pass


class TestChangeQuota:
    def test_an_hours_worth_at_once_then_as_it_comes_back(self) -> None:
        """The last change that fits is made, the next is refused until one has come back."""
        clock = ManualClock()
        quota = ChangeQuota(PER_HOUR, clock)
        take(quota, "a", 600)
        assert refusal(quota, "a", 400) is None
        take(quota, "a", 400)
        found = refusal(quota, "a", 1)
        assert found is not None
        assert (found.status, found.reason, found.retry_after_s) == (429, Reason.RATE_LIMITED, 4)
        assert found.message == (
            "a tenant must make at most 1000 changes an hour, got 1 more with 0 left; nothing is "
            "stored, send it again in 4 s"
        )
        clock.advance(3_599)
        assert refusal(quota, "a", 1) is not None
        clock.advance(1)
        assert refusal(quota, "a", 1) is None
        assert refusal(quota, "b", PER_HOUR) is None

    def test_who_asks_for_little_waits_less(self) -> None:
        """An apply that does not fit keeps nobody from taking an alert on."""
        quota = ChangeQuota(PER_HOUR, ManualClock())
        take(quota, "a", 900)
        found = refusal(quota, "a", 400)
        assert found is not None
        assert found.retry_after_s == 300 * 3_600 / PER_HOUR
        assert "got 400 more with 100 left" in found.message
        assert refusal(quota, "a", 100) is None

    def test_what_calms_has_a_reserve(self) -> None:
        """A key that takes all that comes back keeps nobody from deleting what it floods with."""
        clock = ManualClock()
        quota = ChangeQuota(PER_HOUR, clock)
        take(quota, "a", PER_HOUR)
        assert refusal(quota, "a", 1) is not None
        for _ in range(100):
            quota.check("a", 1, calms=True)
            take(quota, "a", 1)
        with pytest.raises(ProblemError) as caught:
            quota.check("a", 1, calms=True)
        assert caught.value.retry_after_s == 4
        # What comes back fills the reserve first.
        clock.advance(100 * 3_600)
        assert refusal(quota, "a", 1) is not None
        quota.check("a", 100, calms=True)

    def test_more_than_a_whole_bucket_is_taken_from_a_full_one(self) -> None:
        """Or it could never be; the debt is waited out."""
        clock = ManualClock()
        quota = ChangeQuota(60, clock)
        take(quota, "a", 1)
        found = refusal(quota, "a", 400)
        assert found is not None
        assert found.retry_after_s == 60
        clock.advance(60_000)
        assert refusal(quota, "a", 400) is None
        take(quota, "a", 400)
        found = refusal(quota, "a", 1)
        assert found is not None
        assert found.retry_after_s == 341 * 60

    @given(per_hour=st.integers(1, 100_000), taken=st.integers(0, 200_000), asked=st.integers(1))
    def test_what_is_told_is_enough(self, per_hour: int, taken: int, asked: int) -> None:
        """Who waits as long as was said is not refused; a second earlier they are."""
        clock = ManualClock()
        quota = ChangeQuota(per_hour, clock)
        take(quota, "a", taken)
        found = refusal(quota, "a", asked)
        if found is None:
            return
        wait_s = found.retry_after_s or 0
        clock.advance((wait_s - 1) * 1_000)
        assert refusal(quota, "a", asked) is not None
        clock.advance(1_000)
        assert refusal(quota, "a", asked) is None

    def test_what_was_not_confirmed_does_not_count(self) -> None:
        """An outage of Kafka's locks nobody out who sends again; any other fault counts."""
        quota = ChangeQuota(PER_HOUR, ManualClock())
        with suppress(NotConfirmedError), quota.taken("a", PER_HOUR):
            assert refusal(quota, "a", 1) is not None
            raise NotConfirmedError
        assert refusal(quota, "a", PER_HOUR) is None
        with suppress(TimeoutError), quota.taken("a", PER_HOUR):
            raise TimeoutError
        assert refusal(quota, "a", 1) is not None

    def test_a_long_change_counts_as_several(self) -> None:
        """One for every 4,096 bytes begun, an empty one as one."""
        sizes = (0, 1, 4_096, 4_097, 40_960)
        assert [changes_in([b"x" * size]) for size in sizes] == [1, 1, 1, 2, 10]
        assert changes_in([b"x"] * 500) == 500

    def test_it_is_told(self) -> None:
        """How many are left, and when there is one again."""
        quota = ChangeQuota(PER_HOUR, ManualClock())
        take(quota, "a", 2)
        assert quota.fields("a") == {
            "ratelimit-policy": '"changes";q=1000;w=3600',
            "ratelimit": '"changes";r=998;t=0',
        }
        take(quota, "a", 999)
        assert quota.fields("a")["ratelimit"] == '"changes";r=0;t=8'

    def test_without_a_quota_nothing_is_counted(self) -> None:
        """0 changes an hour is no quota: no refusal and no field."""
        quota = ChangeQuota(0, ManualClock())
        take(quota, "a", 10**9)
        assert refusal(quota, "a", 10**9) is None
        assert quota.fields("a") == {}


def test_each_route_that_writes_is_known_to_append_or_not() -> None:
    """A new one has to be put on one side."""
    writing = {route for route in TABLE if route[0] != "GET"}
    assert writing - APPENDING == {
        ("POST", "/query"),
        ("POST", "/silences/preview"),
        ("POST", "/rules/preview"),
        ("POST", "/backtest"),
        ("POST", "/definitions/validate"),
        ("POST", "/definitions/diff"),
        ("POST", "/definitions/plan"),
        ("POST", "/preview"),
        ("POST", "/lateness"),
        ("POST", "/session"),
        ("DELETE", "/session"),
        ("POST", "/session/once"),
    }


@contextmanager
def exhausted(running: Running, tenant: str) -> Iterator[None]:
    """Let a tenant be far over its quota for a while."""
    quota = running.dashboard.context.change_quota
    with suppress(NotConfirmedError), quota.taken(tenant, 10 * PER_HOUR):
        yield
        raise NotConfirmedError  # so that it is given back


def put(http: httpx.Client, name: str, rest: str = "", **condition: str) -> httpx.Response:
    """Put a metric, as a new one unless told otherwise."""
    body = {"text": metric(name, rest)["text"]}
    return http.put(f"/definitions/metric/{name}", json=body, headers=condition or NEW)


def applied(http: httpx.Client, *sent: tuple[str, str, int | None]) -> httpx.Response:
    """Apply metrics: their names, what more they say, and what they are based on."""
    definitions = [{**metric(name, rest), "based_on": based} for name, rest, based in sent]
    return http.post("/definitions/apply", json={"definitions": definitions})


def asked_of_each_route(running: Running, http: httpx.Client) -> dict[tuple[str, str], Any]:
    """Make something of each kind; return of each route that appends a request that would."""
    assert put(http, "counted", BY).status_code == 201
    assert put(http, "counted", f"{BY}unit: ms\n", **{"if-match": '"1"'}).status_code == 200
    alert = Job(running, put_rule(running, "flooded", rule_text("flooded", "counted"))).tell(
        FIRING, phase=Phase.FIRING
    )
    define_channel(
        running, "hook", webhook={"url": "https://example.com/x", "secret": "secret://hook"}
    )
    silence = {"rule": "flooded", "for": "1h"}
    made = http.post("/silences", json=silence).json()["name"]
    job = http.post("/jobs", json={"job": "audit"}).json()["id"]
    key = {"label": "more", "scopes": ["read"], "source": "http"}
    key_id = http.post("/keys", json=key).json()["id"]
    taken_on = f"/alerts/{alert}/acknowledgement"
    assert http.post(taken_on, json={}).status_code == 200
    place, second = "/definitions/metric/counted", {"if-match": '"2"'}
    changed = [{**metric("counted", f"{BY}unit: s\n"), "based_on": 2}]
    return {
        ("POST", "/alerts/{id}/acknowledgement"): (taken_on, {}, {}),
        ("DELETE", "/alerts/{id}/acknowledgement"): (taken_on, None, {}),
        ("POST", "/silences"): ("/silences", silence, {}),
        ("DELETE", "/silences/{name}"): (f"/silences/{made}", None, {}),
        ("POST", "/channels/{name}/test"): ("/channels/hook/test", {}, {}),
        ("POST", "/definitions/apply"): ("/definitions/apply", {"definitions": changed}, {}),
        ("POST", "/definitions/{kind}/{name}/rollback"): (
            f"{place}/rollback",
            {"version": 1},
            second,
        ),
        ("PUT", "/definitions/{kind}/{name}"): (
            place,
            {"text": metric("counted", BY)["text"]},
            second,
        ),
        ("DELETE", "/definitions/{kind}/{name}"): (place, None, second),
        ("POST", "/quarantine/replay"): ("/quarantine/replay", {}, {}),
        ("POST", "/audit"): ("/audit", {}, {}),
        ("POST", "/jobs"): ("/jobs", {"job": "audit"}, {}),
        ("DELETE", "/jobs/{id}"): (f"/jobs/{job}", None, {}),
        ("POST", "/keys"): ("/keys", key, {}),
        ("POST", "/keys/{id}/rotate"): (f"/keys/{key_id}/rotate", {}, {}),
        ("DELETE", "/keys/{id}"): (f"/keys/{key_id}", None, {}),
    }


def left(answer: httpx.Response) -> int:
    """Return how many changes an answer says are left."""
    return int(answer.headers["ratelimit"].split(";")[1].removeprefix("r="))


@pytest.mark.kafka
@pytest.mark.redis
class TestOverHttp:
    def test_every_route_that_appends_is_refused_over_it(self, running: Running) -> None:
        """429 with when to come again, and nothing is appended; only a key is revoked even then."""
        context = running.dashboard.context
        with running.client() as http:
            asked = asked_of_each_route(running, http)
            assert set(asked) == APPENDING
            revoked, _, _ = asked.pop(("DELETE", "/keys/{id}"))
            read, told = running.dashboard.follower.next_offset, context.alerts.follower.next_offset
            with exhausted(running, "default"):
                for (method, route), (path, body, headers) in asked.items():
                    # A key and the end of another one are two.
                    more = 2 if route.endswith("/rotate") else 1
                    answer = http.request(method, path, json=body, headers=headers)
                    assert answer.status_code == 429, (method, path, answer.text)
                    assert answer.headers["content-type"] == "application/problem+json"
                    problem = answer.json()
                    assert (problem["code"], problem["title"]) == ("rate_limited", "Rate limited")
                    wait_s = answer.headers["retry-after"]
                    assert problem["detail"].startswith(
                        "a tenant must make at most 1000 changes an hour, "
                        f"got {more} more with 0 left;"
                    )
                    assert problem["detail"].endswith(f"send it again in {wait_s} s")
                    # What calms waits a tenth of an hour less.
                    assert int(wait_s) > 9 * 3_600 - 360 - 60
                    assert answer.headers["ratelimit-policy"] == '"changes";q=1000;w=3600'
                    assert answer.headers["ratelimit"].startswith('"changes";r=0;t=')
                assert http.delete(revoked).status_code == 200
            # Places in the log are given one after the other: only the revocation took one.
            assert put(http, "next").json()["vid"] == read + 1
            taken_on, _, _ = asked["DELETE", "/alerts/{id}/acknowledgement"]
            assert http.delete(taken_on).status_code == 200
            assert context.alerts.follower.next_offset == told + 1

    def test_a_key_is_revoked_by_one_request_alone(self, running: Running) -> None:
        """It is never refused by the quota, so many at once must not append a record each."""
        with running.client() as http, ThreadPoolExecutor(8) as pool:
            made = http.post(
                "/keys", json={"label": "eight", "scopes": ["read"], "source": "http"}
            ).json()
            before = running.dashboard.follower.next_offset
            answers = list(pool.map(lambda _: http.delete(f"/keys/{made['id']}"), range(8)))
            codes = sorted(answer.status_code for answer in answers)
            assert codes[0] == 200
            assert set(codes[1:]) <= {404, 409}
            assert put(http, "after_eight").json()["vid"] == before + 1

    def test_one_tenant_takes_nothing_from_another(self, running: Running) -> None:
        """Nor from what is only read or checked, nor from what changes nothing."""
        scopes = ["read", "define"]
        keys = [running.key_for(tenant, scopes) for tenant in ("flooding", "calm")]
        with running.client(keys[0]) as flooding, running.client(keys[1]) as calm:
            assert applied(flooding, ("same", "", None)).status_code == 200
            with exhausted(running, "flooding"):
                assert put(flooding, "more").status_code == 429
                assert applied(flooding, ("same", "# again\n", None)).status_code == 200
                plan = {"definitions": [metric("more")]}
                checked = flooding.post("/definitions/plan", json=plan)
                assert (checked.status_code, "ratelimit" in checked.headers) == (200, False)
                assert flooding.get("/definitions").status_code == 200
                assert put(calm, "more").status_code == 201
            assert put(flooding, "more").status_code == 201

    def test_only_what_is_appended_counts(self, running: Running) -> None:
        """A change of each definition; not what means the same, is refused or does not hold."""
        with running.client(running.key_for("counting", ["read", "define"])) as http:
            before = left(applied(http, ("one", "", None)))
            two = applied(http, ("one", "unit: ms\n", 1), ("two", "", None))
            # A change comes back every 3.6 s.
            assert before - 2 <= left(two) <= before - 1
            for _ in range(20):
                assert applied(http, ("one", "unit: ms\n", 2)).status_code == 200
                assert put(http, "one").status_code == 412
                assert put(http, "bad", "max_serieses: 5\n").status_code == 422
                last = applied(http, ("one", "unit: s\n", 1))
                assert last.status_code == 409
            assert left(last) >= left(two)

    def test_it_comes_back(self, running: Running) -> None:
        """Who waits as long as is said is not refused any more."""
        clock, quota = running.dashboard.context.clock, running.dashboard.context.change_quota
        with running.client(running.key_for("waiting", ["define"])) as http:
            take(quota, "waiting", left(put(http, "first")) + 1)
            began_s = clock.monotonic_s()
            refused = put(http, "second")
            assert refused.status_code == 429
            wait_s = int(refused.headers["retry-after"])
            assert 1 <= wait_s <= math.ceil(2 * 3_600 / PER_HOUR)
            wait_until(
                lambda: put(http, "second").status_code == 201, timeout_s=wait_s + 10, what="stored"
            )
            assert clock.monotonic_s() - began_s > wait_s - 1

    def test_a_bundle_that_others_come_between_is_not_refused_half_way(
        self, running: Running
    ) -> None:
        """Each time that it is written counts, and the next request waits."""
        quota = running.dashboard.context.change_quota
        between = [by_another("between_them", None)]
        with running.client(running.key_for("bundling", ["define"])) as http:
            take(quota, "bundling", left(put(http, "first")) - 3)
            with meddled(running, lambda times: ([], between[times // 2 :])) as meddling:
                answer = applied(http, ("second", "", None), ("third", "", None))
            assert (answer.status_code, meddling.times) == (200, 3)
            assert left(answer) == 0
            refused = put(http, "fourth")
            assert refused.status_code == 429
            # Six of the three that were left: a change comes back every 3.6 s.
            assert int(refused.headers["retry-after"]) > 3_600 / PER_HOUR
