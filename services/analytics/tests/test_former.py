"""What a driver says that may not delete the executors of its former life, or cannot ask."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from weir.clock import ManualClock
from weir_analytics.panes import former
from weir_analytics.panes.former import FormerError, access, delete_former

from .test_pods import settings

POD = {"metadata": {"name": "weir-0a1b2c-exec-1"}}


@contextmanager
def api(
    answers: list[tuple[int, list[object]]],
) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield the address of a server with these answers, one after the other, and what came."""
    came: list[tuple[str, str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            parts = urlsplit(self.path)
            (selector,) = parse_qs(parts.query)["labelSelector"]
            came.append((self.command, parts.path, selector))
            assert self.headers["Authorization"] == "Bearer the token"
            status, items = answers.pop(0)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps({"items": items, "message": "as it is"}).encode())

        def do_GET(self) -> None:
            self.answer()

        def do_DELETE(self) -> None:
            self.answer()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"k8s://http://127.0.0.1:{server.server_address[1]}", came
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the account's token where the variable of Spark's client says."""
    (tmp_path / "token").write_text("the token\n")
    monkeypatch.setenv("KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN", str(tmp_path / "token"))


def test_it_waits_until_they_are_gone(tmp_path: Path) -> None:
    """Only pods of a driver of this pod's name are asked for, deleted, and looked for again."""
    with api([(200, [POD]), (200, []), (200, [POD]), (200, [])]) as (master, came):
        delete_former(settings(tmp_path, master=master), ManualClock(), threading.Event())

    path = "/api/v1/namespaces/numbers/pods"
    assert came == [
        (method, path, "weir/driver=weir-analytics-0") for method in ("GET", "DELETE", "GET", "GET")
    ]


def test_nothing_is_deleted_where_nothing_is_left(tmp_path: Path) -> None:
    """The first life of a driver only looks."""
    with api([(200, [])]) as (master, came):
        delete_former(settings(tmp_path, master=master), ManualClock(), threading.Event())

    assert [method for method, _, _ in came] == ["GET"]


def test_those_that_stay_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is lost ends no pod: the driver goes on after their grace."""
    monkeypatch.setattr(former, "GONE_WITHIN_S", -1.0)
    with api([(200, [POD]), (200, []), (200, [POD])]) as (master, came):
        delete_former(settings(tmp_path, master=master), ManualClock(), threading.Event())

    assert len(came) == 3


def test_a_refusal_is_told_in_words(tmp_path: Path) -> None:
    """Who may not delete says so, with what the API answered and what to do."""
    with (
        api([(200, [POD]), (403, [])]) as (master, _),
        pytest.raises(FormerError) as refusal,
    ):
        delete_former(settings(tmp_path, master=master), ManualClock(), threading.Event())

    assert str(refusal.value).startswith(
        "executors of a former driver must be deleted before others are made, got from"
        f" {master.removeprefix('k8s://')}/api/v1/namespaces/numbers/pods: 403 "
    )
    assert '"message": "as it is"' in str(refusal.value)
    assert str(refusal.value).endswith(
        "; let the driver's account list and delete pods, and its pod reach the API"
    )


@pytest.mark.parametrize(("missing", "what"), [("token", "token"), ("", "Connection refused")])
def test_an_api_out_of_reach_is_told(tmp_path: Path, missing: str, what: str) -> None:
    """Neither a missing token nor a closed port is a traceback."""
    if missing:
        (tmp_path / missing).unlink()
    told = settings(tmp_path, master="k8s://http://127.0.0.1:1")

    with pytest.raises(FormerError, match=what):
        delete_former(told, ManualClock(), threading.Event())


def test_a_ca_that_is_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the API has TLS, the CA beside the token vouches for it, and nothing else."""
    (tmp_path / "ca.crt").write_text("nothing")
    monkeypatch.setenv("KUBERNETES_CERTS_CA_FILE", str(tmp_path / "ca.crt"))

    with pytest.raises(FormerError, match=r"kubernetes\.default\.svc:443/api/v1"):
        delete_former(settings(tmp_path), ManualClock(), threading.Event())


def test_the_pods_own_account_is_the_default(tmp_path: Path) -> None:
    """Without variables token and CA are where a kubelet puts them; the API has TLS."""
    found = access(settings(tmp_path, master="k8s://api.example:6443"), {})

    assert found.url == "https://api.example:6443/api/v1/namespaces/numbers/pods"
    folder = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    assert (found.token, found.ca) == (folder / "token", folder / "ca.crt")
