"""Channels by Apprise: what a service gets, what is told of it, and whom it may not call."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

import msgspec
import pytest
from apprise.manager_plugins import NotificationManager
from apprise_service import Service
from weir.alerts.records import Notification
from weir_analytics.alerts.channels import by_apprise
from weir_analytics.alerts.channels.answer import NOT_ALLOWED, Answer
from weir_analytics.alerts.channels.apprise_process import redacted
from weir_analytics.alerts.channels.apprise_request import Outcome, Request
from weir_analytics.alerts.channels.schemes import ALLOWED, REFUSED, refusal

LOOPBACK = ("127.0.0.1",)


@pytest.fixture
def service() -> Iterator[Service]:
    """Return a service on loopback."""
    service = Service()
    yield service
    service.close()


def note(**members: Any) -> Notification:
    """Return a message."""
    given = {
        "id": "ntf_1",
        "kind": "firing",
        "verdict": "provisional",
        "dedup_key": "k",
        "tenant": "default",
        "rule": "slow",
        "rule_version": 1,
        "labels": {"region": "eu"},
        "severity": "high",
        "title": "Slow: p95 617 ms > 400 ms in eu",
        "text": "11,402 events, exact.",
        "links": {"alert": "https://weir.example.com/alerts/k"},
    }
    return Notification(**{**given, **members})


def call(url: str, *, allowed: tuple[str, ...] = LOOPBACK, message: Any = None) -> Answer:
    """Send a message."""
    return asyncio.run(by_apprise.call(url, message or note(), allowed))


@pytest.mark.thorough
class TestService:
    def test_gets_the_message(self, service: Service) -> None:
        """Title, text, severity, labels and link; its type follows the severity."""
        found = call(f"json://127.0.0.1:{service.port}/hook")

        assert (found.delivered, found.why) == (True, "")
        (body,) = service.bodies
        assert body["title"] == "Slow: p95 617 ms > 400 ms in eu"
        assert body["message"].splitlines() == [
            "11,402 events, exact.",
            "Severity: high",
            "region: eu",
            "Alert: https://weir.example.com/alerts/k",
        ]
        assert body["type"] == "failure"

    @pytest.mark.parametrize(
        ("status", "final"), [(404, True), (401, True), (429, False), (503, False)]
    )
    def test_what_it_answers_decides(self, service: Service, status: int, final: bool) -> None:
        """As with a webhook: 4xx but 408 and 429 are for good; and it is told in words."""
        service.statuses.append(status)
        found = call(f"json://127.0.0.1:{service.port}/hook")

        assert (found.status, found.delivered, found.final) == (status, False, final)
        assert f"error={status}" in found.why

    def test_nobody_listens(self) -> None:
        """It is tried again, and told without the address."""
        found = call("json://user:passw0rd@127.0.0.1:9/t0ken")

        assert (found.status, found.final) == (None, False)
        assert "Connection error" in found.why
        assert "127.0.0.1" not in found.why

    def test_a_mail_arrives(self) -> None:
        """Over SMTP, as one plain text with the title as its subject."""
        with mail_server() as server:
            url = f"mailto://127.0.0.1:{server.server_address[1]}/"
            found = call(url + "?from=weir@example.com&to=ops@example.com&format=text")

        assert found.delivered, found.why
        (mail,) = server.mails
        assert "Subject: Slow: p95 617 ms" in mail
        assert "11,402 events, exact." in mail


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (note(severity="critical"), "failure"),
        (note(severity="low"), "warning"),
        (note(severity="info"), "info"),
        (note(kind="amended"), "failure"),
        (note(kind="no_data"), "warning"),
        (note(kind="resolved"), "success"),
        (note(kind="withdrawn"), "success"),
        (note(kind="ended"), "success"),
        (note(kind="test"), "info"),
    ],
)
def test_type(message: Notification, kind: str) -> None:
    """Bad news by its severity; an end is good news."""
    assert by_apprise.type_of(message) == kind


def test_the_process_knows_of_which_alert_a_message_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """And whether it ends it."""
    asked: list[Request] = []

    async def noted(request: bytes) -> Outcome:
        asked.append(msgspec.json.decode(request, type=Request))
        return Outcome(taken=True)

    monkeypatch.setattr(by_apprise, "_outcome", noted)
    for kind in ("firing", "amended", "resolved", "withdrawn", "ended"):
        call("json://127.0.0.1", message=note(kind=kind))

    assert [one.key for one in asked] == ["k"] * 5
    assert [one.is_end for one in asked] == [False, False, True, True, True]


def test_values_of_events_mention_nobody() -> None:
    """Whoever sends events chooses the values of dimensions, and must not call out a channel."""
    for text in ("@everyone", "<!channel>", "<@U123>", "@Here"):
        assert by_apprise.plain(text) != text
        assert by_apprise.plain(text).replace("\u200b", "") == text
    assert by_apprise.plain("ops@example.com < 3") == "ops@example.com < 3"


@pytest.mark.thorough
class TestGuard:
    @pytest.mark.parametrize(
        "url",
        [
            "json://{}/hook",
            "xml://{}/hook",
            "form://{}/hook",
            "apprise://{}/token",
            "gotify://{}/t0kent0kent0ken",
            "ntfy://{}/topic",
            "mmost://{}/3ccdd113474722377935511fc85d3dd4",
            "matrix://user:password@{}/room",
            "rsyslog://{}",
            "irc://{}/channel",
            "mailto://{}/?from=a@example.com&to=b@example.com",
            "mailto://example.com/?smtp=127.0.0.1&from=a@example.com&to=b@example.com",
        ],
    )
    def test_inward_addresses_are_not_called(self, service: Service, url: str) -> None:
        """Whatever speaks to a host of the URL's choice speaks to public ones only."""
        found = call(url.format(f"127.0.0.1:{service.port}"), allowed=())

        assert (found.why, found.final) == (NOT_ALLOWED, True), url
        assert service.bodies == []

    @pytest.mark.parametrize("host", ["localhost", "0x7f000001", "127.1", "[::ffff:127.0.0.1]"])
    def test_by_no_spelling(self, service: Service, host: str) -> None:
        """What counts is the address that the connection goes to."""
        found = call(f"json://{host}:{service.port}/hook", allowed=())

        assert not found.delivered
        assert service.bodies == []

    def test_a_host_that_is_allowed_by_name(self, service: Service) -> None:
        """Its address is not allowed by itself."""
        url = f"json://localhost:{service.port}/hook"
        assert call(url, allowed=("localhost",)).delivered
        by_address = url.replace("localhost", "127.0.0.1")
        assert call(by_address, allowed=("localhost",)).why == NOT_ALLOWED

    def test_a_redirect_inwards(self, service: Service) -> None:
        """Libraries that follow it meet the same rule."""
        inner = Service(host="127.0.0.2")
        service.statuses.append(302)
        service.redirect = f"http://127.0.0.2:{inner.port}/"
        try:
            found = call(f"json://127.0.0.1:{service.port}/hook?redirect=yes")
        finally:
            inner.close()

        assert not found.delivered
        assert inner.bodies == []

    def test_what_is_local_is_refused(self) -> None:
        """Neither a socket nor a program nor a desktop of the machine."""
        for url in ("syslog://", "dbus://", "windows://"):
            found = call(url)
            assert not found.delivered
            assert found.final or "no URL that Apprise reads" in found.why

    def test_a_secret_that_is_no_url(self) -> None:
        """It is told as that, without saying it, and tried again once somebody has mended it."""
        found = call("c2VjcmV0IGtleQ==")

        assert found.why == "the secret holds no URL that Apprise reads"
        assert not found.final


GUARDED = """
import os, socket, subprocess, sys
from weir_analytics.alerts.channels.addresses import Addresses
from weir_analytics.alerts.channels.guard import Guard

guard = Guard(Addresses(["10.1.2.3"]))
guard.install()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
tried = {
    "read": lambda: open("/etc/passwd"),
    "read by way of code": lambda: open(sys.prefix + "/../../../../../../../etc/passwd"),
    "write": lambda: open(sys.prefix + "/x", "w"),
    "program": lambda: subprocess.run(["true"]),
    "shell": lambda: os.system("true"),
    "local": lambda: socket.socket(socket.AF_UNIX).connect("/dev/log"),
    "name": lambda: socket.socket().connect(("localhost", 9)),
    "datagram": lambda: udp.sendto(b"x", ("127.0.0.1", 9)),
    "allowed datagram": lambda: udp.sendto(b"x", ("10.1.2.3", 9)),
    "code": lambda: open(os.__file__),
    "nothing": lambda: open(os.devnull),
}
for name, act in tried.items():
    try:
        act()
        print(name, "done")
    except PermissionError:
        print(name, "refused")
    except OSError:
        print(name, "done")
"""


def test_the_process_of_a_channel_can_do_little_else() -> None:
    """No file but code, no program, no local socket; and no address by a name."""
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-c", GUARDED], capture_output=True, text=True, check=True
    )

    told = dict(line.rsplit(" ", 1) for line in found.stdout.splitlines())
    assert [name for name, outcome in told.items() if outcome == "done"] == [
        *("allowed datagram", "code", "nothing"),
    ]
    assert len(told) == 11


def plugins() -> set[Any]:
    """Return all services of the installed Apprise."""
    manager: Any = NotificationManager
    return set(manager().plugins())


def schemes_of(plugin: Any) -> set[str]:
    """Return every scheme that a service goes by."""
    given = [plugin.protocol, plugin.secure_protocol]
    return {one for s in given for one in ([s] if isinstance(s, str) else s or ())}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestSchemes:
    def test_every_scheme_was_looked_at(self) -> None:
        """What a later Apprise brings is in neither list until somebody has decided."""
        known = {scheme for one in plugins() for scheme in schemes_of(one)}

        assert known - ALLOWED - REFUSED.keys() == set()
        assert (ALLOWED | REFUSED.keys()) - known == set()
        assert ALLOWED & REFUSED.keys() == set()

    def test_what_is_not_installed_is_not_allowed(self) -> None:
        """What Apprise cannot send here is refused with its reason, not tried for a day."""
        for plugin in plugins():
            if not plugin.enabled:
                assert schemes_of(plugin) <= REFUSED.keys(), plugin

    def test_an_unknown_one_is_refused(self) -> None:
        """And so is a service that goes by an unknown name besides a known one."""
        assert refusal(frozenset(("slack",))) == ""
        assert "not one that" in refusal(frozenset(("brandnew",)))
        assert "not one that" in refusal(frozenset(("slack", "brandnew")))
        assert "only the machine" in refusal(frozenset(("dbus",)))


def test_no_part_of_the_url_is_told() -> None:
    """Tokens, passwords and hosts are struck out, also where they are spelled otherwise."""
    url = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/?footer=p%40ss"
    said = "Failed at hooks/t1jj3t3l2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ with p@ss, error=404."

    assert redacted(said, url) == "Failed at hooks/***/***/*** with ***, error=404."
    assert len(redacted("x" * 1_000, url)) == 300


class _Mails(ThreadingTCPServer):
    """An SMTP server that takes every mail."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.mails: list[str] = []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __exit__(self, *args: object) -> None:
        self.shutdown()
        self.server_close()


class _Conversation(StreamRequestHandler):
    """One connection: greeting, envelope, data (RFC 5321)."""

    server: _Mails

    def handle(self) -> None:
        self.wfile.write(b"220 mail.example.com\r\n")
        while line := self.rfile.readline():
            word = line.split()[0].upper() if line.split() else b""
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                self.server.mails.append(self._data())
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")

    def _data(self) -> str:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.decode())
        return "".join(lines)


def mail_server() -> _Mails:
    """Return a server of mails on loopback."""
    return _Mails()
