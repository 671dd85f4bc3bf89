"""CloudEvents in binary mode: attributes in `ce-` headers, the body is the data.

It becomes the same JSON that a structured event has, and is judged as such.
"""

from __future__ import annotations

import base64
import json
import re

from weir.problems import ProblemError, Reason

from weir_ingest.head import Head
from weir_ingest.protocols.batch import Batch, BatchLimits
from weir_ingest.protocols.json_text import check_value, invalid_json, readable
from weir_ingest.protocols.media import is_json

NAME = "cloudevents-binary"

_REQUIRED = (b"ce-id", b"ce-source", b"ce-specversion", b"ce-type")
# The content type says it; the binding forbids to say it twice.
_NOT_FROM_HEADERS = frozenset({"datacontenttype", "data", "data_base64"})
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_QUOTED_PAIR = re.compile(rb"\\(.)", re.DOTALL)


def claims(head: Head) -> bool:
    """Say whether all four required attributes are in the headers."""
    return all(name in head.headers for name in _REQUIRED)


def read(head: Head, body: bytes, limits: BatchLimits) -> Batch:  # noqa: ARG001 - one event
    """Make one structured event of headers and body.

    Raises:
        ProblemError: 400 `invalid_json`, if the body claims to be JSON and is not.
    """
    attributes: dict[str, str] = {}
    for name, value in head.headers.items():
        attribute = name[3:].decode("ascii", "replace")
        if name.startswith(b"ce-") and attribute not in _NOT_FROM_HEADERS:
            attributes[attribute] = header_text(value)
    if b"content-type" in head.headers:
        attributes["datacontenttype"] = head.headers[b"content-type"].decode("latin-1")
    member = _data_member(head, body)
    text = json.dumps(attributes, ensure_ascii=False).encode()
    return Batch([text[:-1] + b"," + member + b"}"], NAME, strict=True, whole=True)


def _data_member(head: Head, body: bytes) -> bytes:
    if is_json(head.content_type):
        data = readable(body)
        why = check_value(data)  # the body must not reach past its own member
        if why is not None:
            raise invalid_json(why)
        return b'"data":' + data
    if head.content_type.startswith(b"text/"):
        try:
            return b'"data":' + json.dumps(body.decode(), ensure_ascii=False).encode()
        except UnicodeDecodeError:
            pass  # text of another charset is kept as bytes
    return b'"data_base64":"' + base64.b64encode(body) + b'"'


def header_text(value: bytes) -> str:
    """Return an attribute from a header: unquoted, then percent-decoded once.

    Valid `%XX` are decoded and a stray `%` stays, because the JavaScript SDK does
    not encode; what is not UTF-8 before decoding is that SDK's Latin-1.

    Raises:
        ProblemError: 400 `invalid_utf8`, if percent-decoding leaves no UTF-8.
    """
    if len(value) >= 2 and value[:1] == value[-1:] == b'"':
        value = _QUOTED_PAIR.sub(rb"\1", value[1:-1])
    try:
        value.decode()
    except UnicodeDecodeError:
        value = value.decode("latin-1").encode()
    try:
        return _PERCENT.sub(lambda m: bytes([int(m.group(1), 16)]), value).decode()
    except UnicodeDecodeError:
        message = "ce- headers must be UTF-8 after percent-decoding, got other bytes"
        raise ProblemError(400, Reason.INVALID_UTF8, message) from None
