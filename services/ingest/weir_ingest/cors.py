"""Browsers from other origins, and the webhook handshake (INGEST 3.3, 4.1).

A key in the request is what allows it, never a cookie, so any origin may send;
it is mirrored, because `*` is not valid together with credentials.
"""

from __future__ import annotations

from weir_ingest.answers import Answer, Headers
from weir_ingest.head import Head

# `SP-Anonymous` is Snowplow's; `X-Retry-Count` Segment's.
_ALLOWED_HEADERS = (
    b"authorization, content-type, content-encoding, idempotency-key, x-retry-count, sp-anonymous"
)
_METHODS = b"GET, POST, PUT"
_MAX_AGE_S = b"3600"
_EXPOSED = b"weir-position, retry-after, ratelimit, ratelimit-policy"


def cors_headers(origin: bytes) -> Headers:
    """Return the headers that let a page of `origin` read the answer."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-credentials", b"true"),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"origin"),
    ]


def options_answer(head: Head) -> Answer:
    """Answer OPTIONS: a browser's preflight, or a webhook asking for consent.

    Consent is in the headers. The callback address that a webhook may name is
    never called: that would let anybody make us send requests.
    """
    headers: Headers = [(b"allow", b"POST, PUT, OPTIONS, HEAD")]
    origin = head.headers.get(b"origin")
    if origin is not None and b"access-control-request-method" in head.headers:
        headers += [
            *cors_headers(origin),
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", _ALLOWED_HEADERS),
            (b"access-control-max-age", _MAX_AGE_S),
        ]
        return Answer(204, b"", headers)
    asked = head.headers.get(b"webhook-request-origin")
    if asked is not None:
        headers.append((b"webhook-allowed-origin", asked))
        if b"webhook-request-rate" in head.headers:
            headers.append((b"webhook-allowed-rate", b"*"))
    return Answer(200, b"", [*headers, (b"content-length", b"0")])
