"""What wraps the JSON of PostHog's clients: forms, the query, base64, gzip (INGEST 4.3)."""

from __future__ import annotations

import base64
import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_from_bytes, quote_plus

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from weir_ingest.protocols.posthog_body import json_of

from .drawn import JSON
from .in_process import KEY, Request, ask
from .test_posthog import BEARER, EVENT, V1

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PLAIN = {"Content-Type": "text/plain"}
MIB = 1 << 20


def b64(text: bytes) -> bytes:
    """Return a text in base64."""
    return base64.b64encode(text)


def form(value: bytes, **more: str) -> bytes:
    """Return a form with `data`."""
    others = "".join(f"&{name}={quote_plus(text)}" for name, text in more.items())
    return f"data={quote_from_bytes(value, safe='')}{others}".encode()


def zipped(text: bytes) -> bytes:
    """Return a text in gzip."""
    return gzip.compress(text, mtime=0)


def url64(text: bytes) -> bytes:
    """Return a text in base64 of the other alphabet, without padding."""
    return base64.urlsafe_b64encode(text).rstrip(b"=")


WAYS: dict[str, Callable[[bytes], Request]] = {
    "json": lambda text: Request("/e/", text),
    "json under a form's type, as curl -d says": lambda text: Request("/e/", text, headers=FORM),
    "json under a byte order mark": lambda text: Request("/e/", b"\xef\xbb\xbf \n" + text),
    "posthog-js, best available": lambda text: Request("/e/", zipped(text), headers=PLAIN),
    "posthog-js of before": lambda text: Request(
        "/e/?ip=1&ver=1&compression=gzip-js", zipped(text), headers=PLAIN
    ),
    "posthog-js, a beacon": lambda text: Request(
        "/e/?compression=base64&beacon=1", form(b64(text)), headers=FORM
    ),
    "a form, base64 told in it": lambda text: Request(
        "/e/", form(b64(text), compression="base64"), headers=FORM
    ),
    "a form, data not first": lambda text: Request("/e/", b"ip=1&_=5&" + form(text), headers=FORM),
    "a form, nothing told": lambda text: Request("/e/", form(b64(text)), headers=FORM),
    "a form of JSON": lambda text: Request("/e/", form(text), headers=FORM),
    "a form of JSON with plus for a space": lambda text: Request(
        "/e/", b"data=" + quote_plus(text.decode()).encode(), headers=FORM
    ),
    "a form, base64 as it is, plus and all": lambda text: Request(
        "/e/", b"data=" + b64(text), headers=FORM
    ),
    "a form without its type": lambda text: Request("/e/", form(b64(text)), headers=PLAIN),
    "a form, gzip": lambda text: Request(
        "/e/", form(zipped(text), compression="gzip-js"), headers=FORM
    ),
    "a form, gzip in base64": lambda text: Request(
        "/e/", form(b64(zipped(text)), compression="gzip"), headers=FORM
    ),
    "a form, all of it in gzip": lambda text: Request(
        "/e/", zipped(form(b64(text))), headers={**FORM, "Content-Encoding": "gzip"}
    ),
    "base64 alone": lambda text: Request("/e/", b64(text), headers=PLAIN),
    "base64 in lines": lambda text: Request("/e/", base64.encodebytes(text), headers=PLAIN),
    "base64 of the other alphabet": lambda text: Request("/e/", url64(text), headers=PLAIN),
    "gzip, told": lambda text: Request("/e/", zipped(text), headers={"Content-Encoding": "gzip"}),
    "deflate": lambda text: Request(
        "/e/", zlib.compress(text), headers={"Content-Encoding": "deflate"}
    ),
    "zstd": lambda text: Request(
        "/e/", zstandard.compress(text), headers={"Content-Encoding": "zstd"}
    ),
    "the query": lambda text: Request(f"/e/?data={quote(text)}", method="GET"),
    "the query, base64": lambda text: Request(
        f"/e/?compression=base64&data={quote(b64(text))}", method="GET"
    ),
    "the query, base64 as it is": lambda text: Request(
        f"/e/?data={b64(text).decode()}&compression=base64", method="GET"
    ),
    "the query, gzip in base64": lambda text: Request(
        f"/e/?compression=gzip&data={quote(b64(zipped(text)))}", method="GET"
    ),
    "the query of a POST": lambda text: Request(
        f"/e/?data={quote(b64(text))}", headers={"Content-Length": "0"}
    ),
}


def shaped(events: list[dict[str, Any]]) -> bytes:
    """Return the JSON of a batch."""
    body = {"api_key": KEY, "batch": events, "sent_at": None}
    return json.dumps(body, ensure_ascii=False).encode()


class TestWays:
    @pytest.mark.parametrize("way", WAYS)
    def test_each_way_is_understood(self, way: str) -> None:
        """A batch is the same batch whatever it is wrapped in."""
        events = [{**EVENT, "properties": {"url": "/a?b=c&data=100%25+é", "\u00e9": "?>~"}}]

        asked = ask(WAYS[way](shaped(events)))

        assert (asked.status, asked.body) == (200, b'{"status":1}')
        assert [one["data"] for one in asked.events] == events

    @given(st.lists(st.dictionaries(st.text("pq"), JSON, max_size=3), max_size=3))
    def test_all_ways_are_one(self, properties: list[dict[str, Any]]) -> None:
        """Whatever a batch holds, each way makes the same events of it, with the same ids."""
        events = [{**EVENT, "uuid": str(n), "properties": p} for n, p in enumerate(properties)]
        text = shaped(events)

        found = [ask(way(text)).events for way in WAYS.values()]

        assert all([one["data"] for one in events_] == events for events_ in found)
        assert len({tuple(one["weirid"] for one in events_) for events_ in found}) == 1

    @given(st.binary(), st.sampled_from(["", "base64", "gzip", "gzip-js"]))
    def test_a_form_gives_back_any_bytes(self, value: bytes, compression: str) -> None:
        """Percent-encoding is undone byte for byte."""
        wanted = b"{" + value

        assert json_of(form(wanted), compression, MIB) == wanted

    @pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
    def test_codings_of_v1(self, coding: str) -> None:
        """v1 comes in each of the codings that its SDKs know."""
        body = json.dumps({"batch": [EVENT]}).encode()
        packed = {"gzip": zipped(body), "deflate": zlib.compress(body)}
        packed["zstd"] = zstandard.compress(body)
        headers = {**BEARER, "Content-Encoding": coding}

        asked = ask(Request(V1, packed[coding], headers=headers))

        assert asked.json == {"results": {EVENT["uuid"]: {"result": "ok"}}}


class TestUnreadable:
    @pytest.mark.parametrize(
        ("request_", "status", "code", "detail"),
        [
            (
                Request("/e/?compression=lz64", form(b"N4Ig"), headers=FORM),
                *(415, "unsupported_encoding"),
                'compression must be base64, gzip or gzip-js, got "lz64"',
            ),
            (
                Request("/e/", form(b"N4Ig", compression="lz-string"), headers=FORM),
                *(415, "unsupported_encoding"),
                'compression must be base64, gzip or gzip-js, got "lz-string"',
            ),
            (
                Request("/e/", b'data={"a":"100%"}', headers=FORM),
                *(400, "bad_encoding"),
                "data must be percent-encoded, got a percent sign alone at byte 9; write it as %25",
            ),
            (
                Request("/e/", form(b64(zipped(b"{}")[:-3])), headers=FORM),
                *(400, "bad_encoding"),
                "body must be whole in its content-encoding; it ends early",
            ),
            (Request("/e/", form(b64(b"nothing")), headers=FORM), 400, "invalid_json", "body must"),
            (
                Request("/e/", form(b"eyJhI"), headers=FORM),
                400,
                "invalid_json",
                "body must be JSON",
            ),
            (Request("/e/", b"ip=1&ver=2", headers=FORM), 400, "invalid_json", "body must be JSON"),
            (Request("/e/", form(b64(b"{\xff")), headers=FORM), 400, "invalid_utf8", "text must"),
            (Request("/e/", b"data=", headers=FORM), 400, "invalid_json", "body must be JSON"),
            (
                Request("/e/?data=", method="GET"),
                400,
                "empty_body",
                "body must hold events, or dat",
            ),
            (Request("/e/", method="GET"), 400, "empty_body", "body must hold events, or data of"),
            (
                Request("/e/", headers={"Content-Length": "0", "Content-Encoding": "deflate"}),
                *(400, "empty_body"),
                "body must hold events, or data of the query or a form must, got none",
            ),
            (Request("/e/", zipped(b"")), 400, "empty_body", "body must hold events, or data of"),
            (
                Request("/e/", b"{}", headers={"Content-Encoding": "br"}),
                *(415, "unsupported_encoding"),
                "content-encoding must be one of gzip, zstd, deflate",
            ),
        ],
        ids=str,
    )
    def test_what_cannot_be_read(
        self, request_: Request, status: int, code: str, detail: str
    ) -> None:
        """It is refused, with what was required and what came."""
        asked = ask(request_)

        assert (asked.status, asked.json["code"], asked.records) == (status, code, [])
        assert asked.json["detail"].startswith(detail)


_BOMB = zipped(b"[" + b" " * (200 * MIB))


class TestBounds:
    @pytest.mark.parametrize(
        "wrap",
        [
            lambda bomb: Request("/e/", bomb),
            lambda bomb: Request("/e/", form(bomb), headers=FORM),
            lambda bomb: Request("/e/", form(b64(bomb)), headers=FORM),
            lambda bomb: Request("/e/", b64(bomb), headers=PLAIN),
            lambda bomb: Request("/e/", zipped(bomb), headers={"Content-Encoding": "gzip"}),
            lambda bomb: Request("/e/", zipped(form(bomb)), headers=FORM),
        ],
    )
    def test_bombs(self, wrap: Callable[[bytes], Request]) -> None:
        """What unfolds beyond the limit is refused wherever it stands, and held nowhere."""
        request = wrap(_BOMB)
        tracemalloc.start()

        asked = ask(request)

        _, most_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (asked.status, asked.json["code"]) == (413, "decompressed_too_large")
        assert most_bytes < 100 * MIB

    @pytest.mark.parametrize("limit", [1_000, 999])
    def test_edge(self, limit: int) -> None:
        """The data within a form may be as large as a body may be, and no larger."""
        text = shaped([{**EVENT, "properties": {"a": "x" * 500}}])
        text += b" " * (1_000 - len(text))

        asked = ask(Request("/e/", form(zipped(text)), headers=FORM), max_decoded_bytes=limit)

        assert asked.status == (200 if limit == 1_000 else 413)

    @pytest.mark.parametrize(
        "body",
        [
            b"data=" + b"%41" * 6 * MIB,
            b"data=" + b"%" * 19 * MIB,
            b"&" * 19 * MIB,
            b"data=" + b"=" * 19 * MIB,
            b"A" * 19 * MIB,
            b"+ " * 9 * MIB,
            b"[" + b"{}," * 6 * MIB,
            b'[{"a":' + b'"",' * 6 * MIB,
        ],
        ids=lambda body: body[:8].decode(),
    )
    def test_nothing_takes_long(self, body: bytes) -> None:
        """The oddest body of the largest size is refused soon."""
        start_s = time.process_time()

        asked = ask(Request("/e/", zipped(body), headers=FORM))

        assert asked.status in (400, 401)
        assert time.process_time() - start_s < 1
