"""The live socket: handshake, credentials, limits, heartbeat, tail, pipeline."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from pydantic import TypeAdapter
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol
from weir import names
from weir_dashboard.auth.callers import Caller, key_id_of
from weir_dashboard.auth.sessions import Sessions, digest
from weir_dashboard.live import hub
from weir_dashboard.live.feeds import EVERY_S
from weir_dashboard.live.messages import SENT
from weir_dashboard.live.tail import Tails
from weir_local.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
Open = Callable[..., Any]


class Client:
    """A client that checks each frame against the described messages."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def say(self, op: str, **members: Any) -> None:
        """Send a message."""
        self.socket.send(json.dumps({"op": op, **members}))

    def hear(self, *ops: str, timeout_s: float = 10) -> dict[str, Any]:
        """Return the next frame with one of these ops; heartbeats may lie between."""
        deadline = time.monotonic() + timeout_s
        while True:
            frame = json.loads(self.socket.recv(timeout=max(0.01, deadline - time.monotonic())))
            TypeAdapter(SENT[frame["op"]]).validate_python(frame)
            if frame["op"] in ops:
                return dict(frame)

    def close_code(self, timeout_s: float = 10) -> int:
        """Read until the server closes and return its code."""
        deadline = time.monotonic() + timeout_s
        with suppress(ConnectionClosed):
            while True:
                self.socket.recv(timeout=max(0.01, deadline - time.monotonic()))
        assert self.socket.close_code is not None
        return self.socket.close_code


@contextmanager
def dialed(running: Any, **options: Any) -> Iterator[Client]:
    """Return a client whose handshake is done."""
    socket = connect(
        running.live_url, subprotocols=[Subprotocol("weir.v1")], compression=None, **options
    )
    with socket:
        yield Client(socket)


@contextmanager
def greeted(running: Any, key: str | None = None) -> Iterator[Client]:
    """Return a client that has said hello."""
    with dialed(running) as client:
        client.say("hello", v=1, auth=key or running.key)
        client.hear("welcome")
        yield client


def signed_in(running: Any) -> str:
    """Return the cookie of a new session."""
    with running.client() as http:
        once = http.post("/session/once").json()["once"]
    with running.client("none") as http:
        del http.headers["authorization"]
        signed = http.post("/session", json={"once": once})
    return str(signed.headers["set-cookie"].split(";")[0])


class Gate:
    """A place where the service waits until the test lets it go on."""

    def __init__(self) -> None:
        """Be shut, and not reached yet."""
        self.reached, self.open = threading.Event(), threading.Event()

    async def wait(self) -> None:
        """Wait at it."""
        self.reached.set()
        await asyncio.to_thread(self.open.wait, 10)


class TestStarting:
    def test_nobody_is_sent_away_before_definitions_are_read(
        self, running: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Until then every key seems wrong: pages try again, and are not signed out."""
        caught_up = running.dashboard.follower.caught_up
        # The end is met again after each record, up to half a second after the first key.
        monkeypatch.setattr(caught_up, "set", lambda: None)
        caught_up.clear()
        try:
            with dialed(running) as client:
                client.say("hello", v=1, auth=running.key)
                assert client.close_code() == 1013
            with running.client() as http:
                for method, path in (("GET", "/session"), ("POST", "/query")):
                    refused = http.request(method, path, json={})
                    assert refused.status_code == 503
                    assert refused.json()["code"] == "log_unavailable"
                    assert refused.headers["retry-after"] == "1"
        finally:
            monkeypatch.undo()
            caught_up.set()
        with greeted(running):
            pass


class TestHandshake:
    @pytest.mark.parametrize(
        "origin",
        [
            "https://evil.example",
            "null",
            "http://localhost",
            "http://localhost:{port}.evil.example",
            "https://localhost:{port}",
        ],
    )
    def test_a_foreign_origin_is_refused_before_the_upgrade(
        self, running: Any, origin: str
    ) -> None:
        """Only an origin of the exact list may upgrade; a suffix or another port may not."""
        port = running.url.rsplit(":", 1)[1]
        with (
            pytest.raises(InvalidStatus) as refused,
            dialed(running, origin=Origin(origin.format(port=port))),
        ):
            pass
        assert refused.value.response.status_code == 403

    def test_a_query_in_the_address_is_refused(self, running: Any) -> None:
        """A credential in a URL ends in logs, so no query is taken at all."""
        with pytest.raises(InvalidStatus) as refused:
            connect(running.live_url + "?key=x", subprotocols=[Subprotocol("weir.v1")])
        assert refused.value.response.status_code == 404

    def test_own_origin_may_upgrade(self, running: Any) -> None:
        """The installation's own page gets its socket."""
        with dialed(running, origin=Origin(running.url)) as client:
            client.say("hello", v=1, auth=running.key)
            assert client.hear("welcome")["scopes"][0] == "admin"


class TestHello:
    def test_welcome_says_the_limits(self, running: Any) -> None:
        """A client learns who it is and what it may ask for; a heartbeat follows at once."""
        with dialed(running) as client:
            client.say("hello", v=1, auth=running.key)
            welcome = client.hear("welcome")
            assert welcome["key_id"] == key_id_of(running.key)
            assert welcome["limits"] == {
                "subscriptions": 64,
                "frame_bytes": 65536,
                "messages_per_s": 20,
                "hz": 4.0,
            }
            assert client.hear("heartbeat", timeout_s=1)["fresh"]["status"] == "stale"

    @pytest.mark.parametrize("auth", ["wk_aaaaaaaa_" + "x" * 43, "nonsense"])
    def test_a_wrong_key_closes(self, running: Any, auth: str) -> None:
        """A wrong key closes with 4401, whether its id is known or not."""
        with dialed(running) as client:
            client.say("hello", v=1, auth=auth)
            assert client.close_code() == 4401

    def test_no_hello_closes(self, running: Any) -> None:
        """Who says nothing for 5 s is closed with 4401."""
        with dialed(running) as client:
            assert client.close_code(timeout_s=8) == 4401

    def test_who_is_looked_up_for_long_is_not_sent_away(
        self, running: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A Redis that is slow to know a session signs nobody out."""
        headers = {"cookie": signed_in(running)}
        find = Sessions.find
        monkeypatch.setattr(hub, "HELLO_S", 2)

        async def find_late(sessions: Sessions, cookie: str) -> Caller:
            await asyncio.sleep(hub.HELLO_S + 2 * EVERY_S)
            return await find(sessions, cookie)

        monkeypatch.setattr(Sessions, "find", find_late)
        with dialed(running, additional_headers=headers, origin=Origin(running.url)) as client:
            client.say("hello", v=1)
            client.hear("welcome")

    @pytest.mark.parametrize(("failing", "code"), [("never ends", 1013), ("fails", 1011)])
    def test_who_cannot_be_looked_up_is_closed(
        self, running: Any, monkeypatch: pytest.MonkeyPatch, failing: str, code: int
    ) -> None:
        """Also where nobody has thought of why: else a page would wait for ever, as connected."""
        headers = {"cookie": signed_in(running)}
        monkeypatch.setattr(hub, "LOOKED_UP_S", 0.5)

        async def find(_sessions: Sessions, _cookie: str) -> Caller:
            if failing == "fails":
                raise AssertionError(failing)
            never: asyncio.Future[Caller] = asyncio.get_running_loop().create_future()
            return await never

        monkeypatch.setattr(Sessions, "find", find)
        with dialed(running, additional_headers=headers, origin=Origin(running.url)) as client:
            client.say("hello", v=1)
            assert client.close_code() == code

    @pytest.mark.parametrize("stored", [b"{", b"[]", b"{}", b"\xff", b"3"])
    def test_a_session_that_cannot_be_read_has_ended(self, running: Any, stored: bytes) -> None:
        """Its socket is closed as nobody's, and signing in again helps."""
        headers = {"cookie": signed_in(running)}
        value = headers["cookie"].split("=", 1)[1]
        running.redis.set(names.session_key(digest(value)), stored)
        with dialed(running, additional_headers=headers, origin=Origin(running.url)) as client:
            client.say("hello", v=1)
            assert client.close_code() == 4401
        with running.client("none") as http:
            del http.headers["authorization"]
            told = http.get("/session", headers=headers)
        assert (told.status_code, told.json()["signed_in"]) == (200, False)

    @pytest.mark.parametrize("gone_at", ["hello", "first message"])
    def test_nothing_is_left_of_who_goes_meanwhile(
        self, running: Any, monkeypatch: pytest.MonkeyPatch, gone_at: str
    ) -> None:
        """What they subscribed to before they were known would be told to nobody, for ever."""
        headers = {"cookie": signed_in(running)}
        hello, first = Gate(), Gate()
        find, open_tail = Sessions.find, Tails.open

        async def find_late(sessions: Sessions, cookie: str) -> Caller:
            await hello.wait()
            return await find(sessions, cookie)

        async def open_late(tails: Tails, tenant: str) -> None:
            await first.wait()
            await open_tail(tails, tenant)

        monkeypatch.setattr(Sessions, "find", find_late)
        monkeypatch.setattr(Tails, "open", open_late)
        own = Origin(running.url)
        with dialed(running, additional_headers=headers, origin=own) as client:
            client.say("hello", v=1)
            client.say("subscribe", id=1, to="tail")
            client.say("subscribe", id=2, to="alerts")
            assert hello.reached.wait(10)
            if gone_at == "first message":
                hello.open.set()
                assert first.reached.wait(10)
        live = running.dashboard.hub
        wait_until(lambda: not live.clients, timeout_s=10, what="the socket gone")
        hello.open.set()
        first.open.set()
        wait_until(lambda: not live._tasks, timeout_s=10, what="the messages handled")
        assert live._alerts._followers == {}

    def test_a_cookie_counts_only_with_an_origin(self, running: Any) -> None:
        """Without Origin no cookie counts; with the page's own it does."""
        headers = {"cookie": signed_in(running)}
        with dialed(running, additional_headers=headers) as client:
            client.say("hello", v=1)
            assert client.close_code() == 4401
        own = Origin(running.url)
        with dialed(running, additional_headers=headers, origin=own) as client:
            client.say("hello", v=1)
            client.hear("welcome")

    def test_a_revoked_key_closes_its_sockets(self, running: Any) -> None:
        """A key that is revoked closes the sockets that it opened, well within 60 s."""
        with running.client() as http:
            made = http.post("/keys", json={"scopes": ["read"]}).json()
            with greeted(running, made["key"]) as client:
                assert http.delete(f"/keys/{made['id']}").status_code == 200
                assert client.close_code() == 4401


class TestHostileFrames:
    @pytest.mark.parametrize(
        ("first", "code"),
        [
            ("not json", 4400),
            ("[]", 4400),
            ('{"op":"dance"}', 4400),
            ('{"op":"pace","hz":1}', 4400),
            (b"\x00\x01", 4400),
            ("[" * 5000, 4400),
            ('{"op":"hello","v":1,"auth":"' + "x" * 70_000 + '"}', 1009),
        ],
    )
    def test_what_is_no_message_closes(self, running: Any, first: str | bytes, code: int) -> None:
        """What is not JSON, of no known op, not hello first, or too large closes by its code."""
        with dialed(running) as client:
            client.socket.send(first)
            assert client.close_code() == code

    def test_invalid_utf8_closes(self, running: Any) -> None:
        """A text frame that is not UTF-8 closes with 1007."""
        with dialed(running) as client:
            client.socket.send(b"\xff\xfe", text=True)
            assert client.close_code() == 1007

    def test_a_wrong_member_is_refused_and_the_socket_stays(self, running: Any) -> None:
        """A message with an unknown member is answered by name, then life goes on."""
        with greeted(running) as client:
            client.say("subscribe", id=7, to="pipeline", tenant="other")
            refused = client.hear("error")
            assert (refused["id"], refused["problem"]["code"]) == (7, "unknown_field")
            client.say("subscribe", id=8, to="pipeline")
            assert client.hear("subscribed")["id"] == 8

    def test_the_65th_subscription_closes(self, running: Any) -> None:
        """64 subscriptions are served; one more closes with 4413."""
        with greeted(running) as client:
            for number in range(64):
                client.say("subscribe", id=number, to="pipeline")
                assert client.hear("subscribed")["id"] == number
            client.say("subscribe", id=64, to="pipeline")
            assert client.close_code() == 4413

    def test_a_flood_closes(self, running: Any) -> None:
        """More than 20 messages a second for five seconds close with 4429."""
        with greeted(running) as client:
            with suppress(ConnectionClosed):
                for _ in range(20_000):
                    client.say("pace", hz=1)
            assert client.close_code() == 4429

    def test_others_are_served_meanwhile(self, running: Any) -> None:
        """After all of that a well-behaved client is served."""
        with greeted(running) as client:
            client.say("subscribe", id=1, to="pipeline")
            names_seen = {part["name"] for part in client.hear("pipeline")["parts"]}
            assert "dashboard" in names_seen


class TestHeartbeat:
    def test_it_comes_every_two_seconds(self, running: Any) -> None:
        """Heartbeats come each 2 s, whatever else flows."""
        with greeted(running) as client:
            client.hear("heartbeat")

            def gap_s() -> float:
                begun = time.monotonic()
                client.hear("heartbeat")
                return time.monotonic() - begun

            # A machine that others use may hold any one of them up.
            assert any(gap_s() < 3 and gap_s() < 3 for _ in range(5))

    def test_it_becomes_live_and_names_what_stalls(self, running: Any, engine: Any) -> None:
        """It is live while time goes on; when ingest's heartbeat ends, ingest is named."""
        key = names.part_key("ingest", "one")

        def beat() -> bool:
            at_ms = int(time.time() * 1000) + 2_000
            return bool(running.redis.set(key, json.dumps({"at_ms": at_ms, "status": "ok"}), ex=30))

        with greeted(running) as client:
            wait_until(
                lambda: beat() and engine.commit() and self._fresh(client) == ("live", None),
                timeout_s=30,
                what="live",
            )
            running.redis.delete(key)
            wait_until(
                lambda: engine.commit() and self._fresh(client) == ("stale", "ingest"),
                timeout_s=30,
                what="stale since ingest stopped",
            )

    def _fresh(self, client: Client) -> tuple[str, str | None]:
        fresh = client.hear("heartbeat")["fresh"]
        return fresh["status"], fresh["part"]


class TestNewerRelease:
    def test_open_sockets_end_with_the_reason(self, running: Any) -> None:
        """As requests do: who comes back is refused what cannot be known, and gets the rest."""
        newer = running.dashboard.context.alerts.newer
        why = "record of weir.alerts must be of format version 1 or below, got 2: a newer release"
        with greeted(running) as client, dialed(running) as silent:
            client.say("subscribe", id=1, to="alerts")
            client.hear("subscribed")
            newer.meet(why)
            try:
                bye = client.hear("goodbye", timeout_s=3)
                assert (bye["code"], bye["reason"]) == (1013, why)
                assert client.close_code() == 1013
                assert client.socket.close_reason == why
                # Who was told nothing yet need not come again.
                silent.say("hello", v=1, auth=running.key)
                silent.hear("heartbeat")
                silent.say("subscribe", id=1, to="alerts")
                problem = silent.hear("error")["problem"]
                assert (problem["code"], problem["message"]) == ("not_available", why)
                silent.say("subscribe", id=2, to="pipeline")
                assert silent.hear("subscribed")["id"] == 2
            finally:
                newer.why = None


class TestTail:
    def test_an_event_is_shown_and_then_its_fate(self, running: Any, engine: Any) -> None:
        """A sampled event reaches the client at once; its fate follows with the batch."""
        with greeted(running) as client:
            client.say("subscribe", id=1, to="tail", filter={"type": "order.*"})
            key = client.hear("subscribed")["key"]
            self._sample(running, self._event("o-1", "order.placed", 11))
            shown = client.hear("tail")
            assert (shown["key"], shown["shown"]) == (key, 1)
            assert shown["events"][0]["id"] == "o-1"
            engine.commit(fates=[(0, 11, "counted", None, [("latency", "value_invalid")])])
            (fate,) = client.hear("tail")["fates"]
            assert (fate["id"], fate["fate"]) == ("o-1", "counted")
            assert fate["refused"] == [{"metric": "latency", "code": "value_invalid"}]

    def test_the_filter_hides_the_rest(self, running: Any) -> None:
        """Type, field and text must all hold; what does not match is only counted."""
        with greeted(running) as client:
            wanted = {"type": "order.*", "where": [["data.total", ">", 10]], "text": "web"}
            client.say("subscribe", id=1, to="tail", filter=wanted)
            client.hear("subscribed")
            rows = [
                ("a", "order.placed", {"total": 5, "by": "web"}),
                ("b", "page.seen", {"total": 50, "by": "web"}),
                ("c", "order.placed", {"total": 50, "by": "app"}),
                ("d", "order.placed", {"total": "50", "by": "web"}),
                ("e", "order.placed", {"total": 50, "by": "web"}),
            ]
            events = [
                {**self._event(name, kind, at), "data": json.dumps(data)}
                for at, (name, kind, data) in enumerate(rows)
            ]
            self._sample(running, *events)
            shown = client.hear("tail")
            assert [event["id"] for event in shown["events"]] == ["e"]
            assert shown["of"] == 5

    def test_it_needs_its_scope(self, running: Any) -> None:
        """Contents of events are not opened by `read` alone."""
        with greeted(running, running.key_for("default", ["read"])) as client:
            client.say("subscribe", id=3, to="tail")
            assert client.hear("error")["problem"]["code"] == "scope_missing"

    def test_another_tenant_sees_nothing(self, running: Any) -> None:
        """A tenant's tail shows its own events only."""
        with greeted(running, running.key_for("other", ["read", "tail"])) as client:
            client.say("subscribe", id=1, to="tail")
            client.hear("subscribed")
            self._sample(running, self._event("mine", "x", 1))
            self._sample(running, self._event("theirs", "x", 1), tenant="other")
            assert [e["id"] for e in client.hear("tail")["events"]] == ["theirs"]

    def test_who_was_erased_is_not_shown(self, running: Any) -> None:
        """Ingest may have copied the event before or after; how many came stays as it is."""
        tenant = "forgets_tails"
        running.erase(tenant, "jane")
        with greeted(running, running.key_for(tenant, ["read", "tail"])) as client:
            client.say("subscribe", id=1, to="tail")
            client.hear("subscribed")
            about = {**self._event("hers", "x", 1), "subject": "jane"}
            others = {**self._event("his", "x", 2), "subject": "joe"}
            self._sample(running, about, others, tenant=tenant)
            shown = client.hear("tail")

        assert [event["id"] for event in shown["events"]] == ["his"]
        assert shown["of"] == 2

    def _event(self, event_id: str, kind: str, offset: int) -> dict[str, Any]:
        return {
            "id": event_id,
            "type": kind,
            "source": "urn:x",
            "weirsource": "http",
            "received_ms": 1,
            "time_ms": 1,
            "subject": None,
            "at": [0, offset],
            "data": '{"a":"web"}',
            "cut": False,
        }

    def _sample(self, running: Any, *events: dict[str, Any], tenant: str = "default") -> None:
        fields = {"e": json.dumps(events), "of": str(len(events))}
        running.redis.xadd(names.tail_key(tenant), fields)
