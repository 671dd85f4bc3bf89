"""Webhooks: how they are signed, and which addresses are not called."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from alerts_job import SECRET, Receiver
from weir.clock import SystemClock
from weir_analytics.alerts.channels.addresses import NotAllowedError
from weir_analytics.alerts.channels.answer import NOT_ALLOWED, Answer
from weir_analytics.alerts.channels.webhook import Caller, signed

INWARD = [
    "http://127.0.0.1/",
    "http://localhost/",
    "http://LOCALHOST:80/",
    "http://127.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.000.000.001/",
    "http://127.0.0.1./",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[::a9fe:a9fe]/",
    "http://[::8.8.8.8]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[::ffff:0:808:808]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25lo]/",
    "http://[fc00::1]/",
    "http://[fd12:3456::1]/",
    "http://[fec0::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[ff02::1]/",
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/",
    "http://100.64.0.1/",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://168.63.129.16/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://example.com@127.0.0.1/",
    "http://user:pass@example.com/",
    "ftp://127.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
]


def call(caller: Caller, url: str) -> Answer:
    """Call once and close."""

    async def once() -> Answer:
        try:
            now_s = SystemClock().now_ms() // 1000
            return await caller.call(url, b"{}", signed("ntf_1", now_s, b"{}", [SECRET]))
        finally:
            await caller.close()

    async def bounded() -> Answer:
        async with asyncio.timeout(20):
            return await once()

    return asyncio.run(bounded())


class KeptOpen:
    """Takes calls, and keeps each connection open for the next.

    Attributes:
        hosts: Of each call, the host that it was for.
        connections: Where those who called did so from.
    """

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.connections: set[tuple[str, int]] = set()
        kept = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                kept.hosts.append(self.headers["host"])
                kept.connections.add(self.client_address)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self) -> int:
        """Return where it listens."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a receiver on loopback."""
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.mark.parametrize("url", INWARD)
def test_inward_addresses_are_not_called(url: str) -> None:
    """Row 11: loopback, link-local, private, metadata: refused, or no address at all."""

    async def checked() -> None:
        caller = Caller([])
        try:
            await caller.check(url)
        finally:
            await caller.close()

    with pytest.raises((NotAllowedError, OSError, httpx.InvalidURL)):
        asyncio.run(checked())


def test_a_refusal_is_final() -> None:
    """A call that is not allowed is not tried again."""
    found = call(Caller([]), "http://127.0.0.1:9/")

    assert (found.status, found.why, found.final) == (None, NOT_ALLOWED, True)


def test_nobody_hears_of_a_refused_call(receiver: Receiver) -> None:
    """No connection is opened to an address that is not allowed."""
    port = receiver.url.rpartition(":")[2]
    for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0x7f000001"):
        call(Caller([]), f"http://{host}:{port}")

    assert receiver.calls == 0


def test_what_is_allowed_is_called(receiver: Receiver) -> None:
    """An operator may name hosts, addresses and networks of their own."""
    for allowed in ("127.0.0.1", "127.0.0.0/8"):
        assert call(Caller([allowed]), receiver.url).delivered
    by_name = receiver.url.replace("127.0.0.1", "localhost")
    assert call(Caller(["localhost"]), by_name).delivered
    assert not call(Caller(["10.0.0.0/8", "example.com"]), receiver.url).delivered


def test_a_name_is_judged_by_every_address_that_it_has() -> None:
    """Row 12: the address that is called is the one that was checked, never looked up again."""

    async def checked() -> str:
        caller = Caller(["127.0.0.0/8", "::1"])
        try:
            target, host = await caller.check("http://localhost:8080/path?x=1")
        finally:
            await caller.close()
        assert host == "localhost:8080"
        return str(target)

    assert asyncio.run(checked()) in (
        "http://127.0.0.1:8080/path?x=1",
        "http://[::1]:8080/path?x=1",
    )

    async def half_allowed() -> None:
        caller = Caller(["::1"])
        try:
            await caller.check("http://127.0.0.1/")
        finally:
            await caller.close()

    with pytest.raises(NotAllowedError):
        asyncio.run(half_allowed())


@pytest.mark.parametrize(
    ("status", "delivered", "final"),
    [
        (200, True, False),
        (204, True, False),
        (301, False, True),
        (302, False, True),
        (400, False, True),
        (401, False, True),
        (408, False, False),
        (410, False, True),
        (429, False, False),
        (500, False, False),
        (503, False, False),
    ],
)
def test_answers(status: int, delivered: bool, final: bool, receiver: Receiver) -> None:
    """2xx is delivered; 3xx and 4xx but 408 and 429 are final; the rest is tried again."""
    receiver.statuses.append(status)
    found = call(Caller(["127.0.0.1"]), receiver.url)

    assert (found.status, found.delivered, found.final) == (status, delivered, final)
    assert receiver.calls == 1


def test_a_connection_is_for_one_host() -> None:
    """Two names at one address: what is for the second never goes where the first was checked."""
    kept = KeptOpen()

    async def both() -> list[Answer]:
        caller = Caller(["127.0.0.1", "localhost"])
        try:
            return [
                await caller.call(f"http://{host}:{kept.port}/", b"{}", {})
                for host in ("127.0.0.1", "localhost")
            ]
        finally:
            await caller.close()

    try:
        answers = asyncio.run(both())
    finally:
        kept.close()
    assert [one.status for one in answers] == [200, 200]
    assert kept.hosts == [f"127.0.0.1:{kept.port}", f"localhost:{kept.port}"]
    assert len(kept.connections) == 2


def test_nobody_listens() -> None:
    """A refused connection is tried again."""
    found = call(Caller(["127.0.0.1"]), "http://127.0.0.1:9/")

    assert (found.status, found.final) == (None, False)
    assert found.why == "nothing could be reached there"


def test_signature() -> None:
    """Standard Webhooks: `v1,` and the HMAC-SHA256 of id.timestamp.body; two secrets, two marks."""
    other = "whsec_" + base64.b64encode(b"another of 24 bytes too!").decode()
    found = signed("ntf_1", 1_700_000_000, b'{"a":1}', [SECRET, other])
    marks = [
        hmac.new(key, b'ntf_1.1700000000.{"a":1}', hashlib.sha256).digest()
        for key in (b"a secret of 24 bytes, 24", b"another of 24 bytes too!")
    ]

    assert found == {
        "webhook-id": "ntf_1",
        "webhook-timestamp": "1700000000",
        "webhook-signature": " ".join(f"v1,{base64.b64encode(m).decode()}" for m in marks),
    }


@pytest.mark.parametrize("secret", ["not base64!", "géheim"])
def test_a_secret_that_is_none(secret: str) -> None:
    """A secret that is no base64 is told, without saying it."""
    with pytest.raises(ValueError, match="must be base64") as caught:
        signed("ntf_1", 1, b"", [secret])
    assert secret not in str(caught.value)


@pytest.mark.parametrize("prefix", ["", "whsec_"])
def test_a_secret_that_is_too_short(prefix: str) -> None:
    """With an empty key anybody could sign; what is required is what the standard asks for."""
    for count in (0, 1, 23):
        short = prefix + base64.b64encode(b"x" * count).decode()
        with pytest.raises(ValueError, match=rf"at least 24 bytes in base64, got {count};"):
            signed("ntf_1", 1, b"", [SECRET, short])
    assert signed("ntf_1", 1, b"", [prefix + base64.b64encode(b"x" * 24).decode()])


def test_a_name_server_that_hangs_holds_up_its_own_host_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More hosts hang than the loop has threads for look-ups, and each is asked for once."""
    asyncio.run(hosts_that_hang(monkeypatch))


async def hosts_that_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call twenty hosts whose names do not resolve, and one that is well beside them."""
    receiver, resolve = Receiver(), socket.getaddrinfo
    answers, asked = threading.Event(), list[str]()

    def slow(host: str, *args: Any, **options: Any) -> Any:
        asked.append(host)
        if host.endswith(".invalid"):
            answers.wait(20)
        return resolve(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    caller = Caller(["localhost"])
    hosts = [f"h{number}.invalid" for number in range(20)]
    hanging = [asyncio.create_task(caller.call(f"https://{host}/", b"", {})) for host in hosts * 2]
    try:
        await asyncio.sleep(0)
        url = receiver.url.replace("127.0.0.1", "localhost")
        async with asyncio.timeout(5):
            answer = await caller.call(url, b"{}", {})
        assert answer.status == 401
        assert sorted(asked) == sorted([*hosts, "localhost"])
    finally:
        answers.set()
        told = await asyncio.gather(*hanging)
        await caller.close()
        receiver.close()
    assert {one.why for one in told} == {"its host name does not resolve"}
