"""API keys over HTTP and the socket: those that expire, are replaced, and when they were used."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from weir import names
from weir.definitions.key import SCOPES
from weir_dashboard.live import hub
from weir_local.waiting import wait_until

from .conftest import Running
from .test_live_socket import dialed, greeted

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
SOON_S = 1.5


def soon() -> dict[str, str]:
    """Return the member of a key that expires in a moment."""
    return {"expires": datetime.fromtimestamp(time.time() + SOON_S, UTC).isoformat()}


def made(running: Running, *scopes: str, **members: Any) -> dict[str, Any]:
    """Make a key; return the answer."""
    with running.client() as http:
        answer = http.post("/keys", json={"scopes": scopes or ["read"], **members})
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    return told


def listed(running: Running) -> dict[str, dict[str, Any]]:
    """Return the keys by id."""
    with running.client() as http:
        return {one["id"]: one for one in http.get("/keys").json()["items"]}


class TestExpired:
    def test_it_is_refused_as_a_wrong_one(self, running: Running) -> None:
        """At its instant; it stays listed until it is revoked."""
        key = made(running, **soon())
        with running.client(key["key"]) as http:
            assert http.get("/metrics").status_code == 200
            wait_until(
                lambda: http.get("/metrics").status_code != 200, timeout_s=10, what="its end"
            )
            assert time.time() * 1000 >= key["expires_ms"]
            ended = http.get("/metrics")
            signing_in = http.post("/session", json={"key": key["key"]})
        with running.client("wk_aaaaaaaa_" + "x" * 43) as http:
            wrong = http.get("/metrics")
        assert (ended.status_code, ended.json()) == (401, wrong.json())
        assert (signing_in.status_code, signing_in.json()) == (401, wrong.json())
        assert listed(running)[key["id"]]["expires_ms"] == key["expires_ms"]

    def test_its_sessions_end(self, running: Running) -> None:
        """Who signed in with it is nobody then."""
        key = made(running, **soon())
        url = f"{running.url}/api/v1/session"
        signed = httpx.post(url, json={"key": key["key"]})
        cookie = {"cookie": signed.headers["set-cookie"].split(";")[0]}
        assert httpx.get(url, headers=cookie).json()["key_id"] == key["id"]
        wait_until(
            lambda: not httpx.get(url, headers=cookie).json()["signed_in"],
            timeout_s=10,
            what="the end of the session",
        )

    def test_its_sockets_are_closed(
        self, running: Running, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They are looked at again at least three times in 60 s; a new one is refused."""
        assert hub.RECHECK_S <= 20
        monkeypatch.setattr(hub, "RECHECK_S", 0.2)
        key = made(running, **soon())
        with greeted(running, key["key"]) as client:
            assert client.close_code() == 4401
        with dialed(running) as client:
            client.say("hello", v=1, auth=key["key"])
            assert client.close_code() == 4401

    @pytest.mark.parametrize(
        "member", [{"expires": "soon"}, {"expires": "2020-01-01T00:00:00Z"}, {"bytes_per_s": 0}]
    )
    def test_what_is_no_end_and_no_limit(self, running: Running, member: dict[str, Any]) -> None:
        """422 with the place."""
        with running.client() as http:
            refused = http.post("/keys", json={"scopes": ["read"], **member})
        assert (refused.status_code, refused.json()["code"]) == (422, "request_invalid")
        assert refused.json()["errors"][0]["pointer"] == f"/{next(iter(member))}"


class TestRotate:
    def test_clients_change_over(self, running: Running) -> None:
        """Both keys work for the overlap; the answer shows the new one once, and what ends when."""
        old = made(running, label="shop", events_per_s=5, bytes_per_s=7)
        before_ms = time.time() * 1000
        with running.client() as http:
            answer = http.post(f"/keys/{old['id']}/rotate", json={"overlap": "2h"})
        new = answer.json()

        assert answer.status_code == 201
        assert new["old_id"] == old["id"]
        assert 0 <= new["old_expires_ms"] - 7_200_000 - before_ms < 60_000
        told = {name: new[name] for name in ("label", "scopes", "source", "events_per_s")}
        assert told == {name: old[name] for name in told}
        for key in (old, new):
            with running.client(key["key"]) as http:
                assert http.get("/metrics").status_code == 200
        found = listed(running)
        assert found[old["id"]]["expires_ms"] == new["old_expires_ms"]
        assert found[new["id"]]["expires_ms"] is None
        assert "key" not in found[new["id"]]

    def test_without_a_body(self, running: Running) -> None:
        """It is a day then."""
        old = made(running)
        with running.client() as http:
            new = http.post(f"/keys/{old['id']}/rotate").json()
        assert abs(new["old_expires_ms"] - time.time() * 1000 - 86_400_000) < 60_000

    def test_at_once(self, running: Running) -> None:
        """The old one is refused as soon as the new one is shown; its sockets are closed."""
        old = made(running)
        with running.client() as http, greeted(running, old["key"]) as client:
            new = http.post(f"/keys/{old['id']}/rotate", json={"overlap": "0s"}).json()
            assert client.close_code() == 4401
        for key, status in ((old, 401), (new, 200)):
            with running.client(key["key"]) as http:
                assert http.get("/metrics").status_code == status

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            ({"overlap": "31d"}, "for at most 30d, got 31d"),
            ({"overlap": "long"}, 'member "overlap" is invalid: must be a duration'),
            ({"overlap": 3}, 'member "overlap" is invalid: must be a duration'),
            ({"scopes": ["admin"]}, 'member "scopes" is unknown'),
        ],
    )
    def test_what_is_no_rotation(self, running: Running, body: Any, says: str) -> None:
        """422, and the key is as it was."""
        old = made(running)
        with running.client() as http:
            refused = http.post(f"/keys/{old['id']}/rotate", json=body)
        assert refused.status_code == 422
        assert says in refused.json()["message"]
        assert listed(running)[old["id"]]["expires_ms"] is None

    def test_who_may(self, running: Running) -> None:
        """With `admin` and each scope of the key; another tenant's is not there."""
        old = made(running, "read", "define")
        path = f"/keys/{old['id']}/rotate"
        for tenant, scopes, status in (
            ("default", ["read", "define"], 403),
            ("default", ["admin", "read"], 403),
            ("another", list(SCOPES), 404),
            ("default", ["admin", "read", "define"], 201),
        ):
            with running.client(running.key_for(tenant, scopes)) as http:
                assert http.post(path, json={}).status_code == status, scopes


class TestLastUsed:
    def test_each_way_to_come_in_is_a_use(self, running: Running) -> None:
        """A request, a sign-in, a socket; to within a minute. Before the first it is not known."""
        keys = [made(running) for _ in range(4)]
        begun_ms = time.time() * 1000
        with running.client(keys[0]["key"]) as http:
            http.get("/metrics")
        httpx.post(f"{running.url}/api/v1/session", json={"key": keys[1]["key"]})
        with greeted(running, keys[2]["key"]):
            pass

        def used() -> list[int | None]:
            found = listed(running)
            return [found[key["id"]]["last_used_ms"] for key in keys]

        wait_until(lambda: None not in used()[:3], timeout_s=20, what="the uses noted")
        *known, unused = used()
        assert unused is None
        for at_ms in known:
            assert begun_ms <= (at_ms or 0) <= time.time() * 1000

    def test_what_is_stored(self, running: Running) -> None:
        """Ids and instants of a tenant's own keys, for so long; no secret."""
        with running.client() as http:
            http.get("/keys")
        name, key_id = names.used_key("default"), running.key.split("_")[1]
        wait_until(lambda: bool(running.redis.hget(name, key_id)), timeout_s=20, what="the use")
        stored: Any = running.redis.hgetall(name)
        assert all(len(field) == 8 and value.isdigit() for field, value in stored.items())
        assert 0 < running.redis.ttl(name) <= 400 * 86_400

    def test_what_a_wiped_store_has_lost(self, running: Running) -> None:
        """Of a key that was used nothing is known, and it is as good as before."""
        key = made(running)

        def last_used_ms() -> int | None:
            with running.client(key["key"]) as http:
                assert http.get("/metrics").status_code == 200
            at_ms: int | None = listed(running)[key["id"]]["last_used_ms"]
            return at_ms

        wait_until(lambda: last_used_ms() is not None, timeout_s=20, what="the use noted")
        running.redis.delete(names.used_key("default"))
        assert last_used_ms() is None
