"""One request to ingest, over a socket: what is sent, and what an answer means."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from weir.clock import SystemClock
from weir_cli.api import Answer
from weir_cli.sending import sender
from weir_cli.sending.pacing import Waits
from weir_cli.sending.posting import ELSEWHERE, Fate, Ingest, Tried, meant
from weir_cli.sending.sender import STOPPING, Apart
from weir_local.ports import free_port

from .ingesting import Log, serving
from .sending import Told

PAGES: tuple[Any, ...] = ("<html>", None, [], {}, 2)
BODY = b'{"type":"a","id":"1","data":{}}\n'


def ok(accepted: Any = 1, quarantined: Any = 0, **more: Any) -> Answer:
    """Return an answer with 200."""
    return Answer(200, {"accepted": accepted, "quarantined": quarantined, **more})


class TestMeanings:
    @pytest.mark.parametrize(
        ("answer", "fate"),
        [
            (ok(2), Fate.STORED),
            (ok(1, 1, items=[{"index": 0, "code": "x"}]), Fate.STORED),
            *((ok(n), Fate.UNKNOWN) for n in (0, 1, 3)),
            (ok(1, 1), Fate.UNKNOWN),
            (ok("2"), Fate.UNKNOWN),
            (ok(2, None), Fate.UNKNOWN),
            *((Answer(200, body), Fate.UNKNOWN) for body in PAGES),
            (Answer(204, ""), Fate.UNKNOWN),
            *((Answer(status, {}), Fate.LATER) for status in (408, 429)),
            *((Answer(status, {}), Fate.UNKNOWN) for status in (500, 502, 503, 504)),
            *((Answer(status, {}), Fate.REFUSED) for status in (301, 400, 401, 403, 404, 415, 499)),
            (Answer(413, {}), Fate.TOO_LARGE),
        ],
    )
    def test_of_two_events(self, answer: Answer, fate: Fate) -> None:
        """Stored is what is told of each event; a page of something else has stored nothing."""
        assert meant(answer, 2).fate is fate

    def test_a_page_of_something_else(self) -> None:
        """It says what to look at."""
        tried = meant(Answer(200, "<html>"), 2)
        assert (tried.why, tried.mend, tried.answer) == (
            "answered 200 without what became of 2 events",
            ELSEWHERE,
            None,
        )


class TestRequests:
    def test_what_is_sent(self) -> None:
        """NDJSON at the one path, with the key and what makes it safe to send again."""
        with serving() as served:
            tried = Ingest(f"{served.url}/", "wk_key").post(BODY, 1, "again")
        assert tried.fate is Fate.STORED
        assert served.paths == ["/v1/events"]
        (sent,) = served.headers
        assert sent["authorization"] == "Bearer wk_key"
        assert sent["content-type"] == "application/x-ndjson"
        assert sent["idempotency-key"] == '"again"'
        assert served.log.identities == {("urn:weir:src:s", "1"): 1}

    def test_what_is_refused(self) -> None:
        """With ingest's own words, and how long it asks to wait."""
        with serving(Log(always="503")) as served:
            served.fields = {"Retry-After": "3"}
            tried = Ingest(served.url, "wk_key").post(BODY, 1, "k")
        assert (tried.fate, tried.why, tried.pause_s) == (Fate.UNKNOWN, "answered 503", 3.0)
        assert (tried.code, tried.answer and tried.answer.sentence) == ("x", "come later")

    def test_a_redirect(self) -> None:
        """It is not followed: that would carry the key there."""
        with serving(Log(always="302")) as served:
            served.fields = {"Location": f"{served.url}/elsewhere"}
            tried = Ingest(served.url, "wk_key").post(BODY, 1, "k")
        assert (tried.fate, served.paths) == (Fate.REFUSED, ["/v1/events"])
        assert tried.answer is not None
        assert tried.answer.location == f"{served.url}/elsewhere"

    @pytest.mark.parametrize(("fault", "stored"), [("lost", 0), ("unheard", 1)])
    def test_no_answer(self, fault: str, stored: int) -> None:
        """Whether it is stored nobody knows."""
        with serving(Log([fault])) as served:
            tried = Ingest(served.url, "wk_key").post(BODY, 1, "k")
        assert (tried.fate, tried.answer, tried.pause_s) == (Fate.UNKNOWN, None, 0.0)
        assert tried.why.startswith(("broke off (", "could not be reached ("))
        assert len(served.log.events) == stored

    @pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
    def test_nobody_there(self, host: str) -> None:
        """Nothing was sent, so nothing is stored."""
        tried = Ingest(f"http://{host}:{free_port()}", "wk_key").post(BODY, 1, "k")
        assert tried.fate is Fate.LATER
        assert tried.why.startswith("could not be reached (")

    def test_an_answer_that_breaks_off(self) -> None:
        """Half an answer says nothing."""
        with raw_answers(
            b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + b'{"accepted":1'
        ) as url:
            tried = Ingest(url, "wk_key").post(BODY, 1, "k")
        assert (tried.fate, tried.why[:10]) == (Fate.UNKNOWN, "broke off ")
        with raw_answers(b"nonsense\r\n\r\n") as url:
            assert Ingest(url, "wk_key").post(BODY, 1, "k").fate is Fate.UNKNOWN


@contextmanager
def raw_answers(answer: bytes) -> Iterator[str]:
    """Serve some bytes as the answer to everything."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(answer)
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class TestApart:
    def test_what_it_answers_and_raises(self) -> None:
        """As if it were sent here."""
        told = list[str]()
        waits = Waits(SystemClock())

        def post(body: bytes, events: int, key: str) -> Tried:
            return Tried(Fate.LATER, json.dumps([body.decode(), events, key]))

        def fails(_body: bytes, _events: int, _key: str) -> Tried:
            raise ZeroDivisionError

        tried = Apart(post, waits, Told(told))(b"b", 2, "k")
        assert tried.why == '["b", 2, "k"]'
        with pytest.raises(ZeroDivisionError):
            Apart(fails, waits, Told(told))(b"", 0, "")
        assert told == []

    def test_ctrl_c_waits_for_the_answer(self) -> None:
        """What is on its way is confirmed if it can be."""
        told, waits = list[str](), Waits(SystemClock())
        waits.is_stopped = True
        answered = threading.Event()

        def post(_body: bytes, _events: int, _key: str) -> Tried:
            answered.wait(10)
            return Tried(Fate.STORED, "answered 200")

        class Answering(Told):
            def tell(self, text: str) -> None:
                super().tell(text)
                answered.set()

        assert Apart(post, waits, Answering(told))(b"", 0, "").fate is Fate.STORED
        assert told == [STOPPING]

    def test_but_not_for_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Then it is not known."""
        monkeypatch.setattr(sender, "STOP_S", 0.1)
        told, waits = list[str](), Waits(SystemClock())
        waits.is_stopped = True
        held = threading.Event()

        def post(_body: bytes, _events: int, _key: str) -> Tried:
            held.wait(10)
            return Tried(Fate.STORED, "answered 200")

        tried = Apart(post, waits, Told(told))(b"", 0, "")
        held.set()
        assert (tried.fate, tried.why) == (Fate.UNKNOWN, "did not answer before it was stopped")
