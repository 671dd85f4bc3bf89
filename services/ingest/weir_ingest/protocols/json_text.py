"""JSON bodies: one value or an array, cut into items without reading them."""

from __future__ import annotations

import msgspec
from weir import json_exact
from weir.problems import ProblemError, Reason
from weir.refusal import ItemRefusedError

_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_VALUE = msgspec.json.Decoder(msgspec.Raw)


def readable(body: bytes) -> bytes:
    """Return a body that may be given to a parser, without a byte order mark.

    Raises:
        ProblemError: 400 `invalid_utf8`, or `too_deep` beyond what a parser can
            take without running out of stack.
    """
    body = body.removeprefix(b"\xef\xbb\xbf")
    try:
        json_exact.check_utf8(body)
    except ItemRefusedError as error:
        raise ProblemError(400, error.reason, str(error)) from None
    if json_exact.is_deeper(body, json_exact.MAX_PARSED_DEPTH):
        message = f"data must nest at most {json_exact.MAX_DEPTH} deep, got far more"
        raise ProblemError(400, Reason.TOO_DEEP, message)
    return body


def check_value(text: bytes) -> str | None:
    """Return None if a text is one JSON value, else why not."""
    try:
        _VALUE.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    else:
        return None
    try:
        _VALUE.decode(json_exact.parsable(text))
    except (msgspec.DecodeError, RecursionError) as error:
        return _fault(error, text)
    return None


def split_array(body: bytes) -> list[bytes]:
    """Return the elements of an array, each as its own bytes.

    Raises:
        ProblemError: 400 `invalid_json`, with the byte's position.
    """
    try:
        return [bytes(raw) for raw in _LIST.decode(body)]
    except (msgspec.DecodeError, RecursionError):
        pass
    harmless = json_exact.parsable(body)
    try:
        elements = _LIST.decode(harmless)
    except (msgspec.DecodeError, RecursionError) as error:
        raise invalid_json(_fault(error, body)) from None
    items, at = [], 0
    for raw in elements:
        # Only white space and a comma lie between two elements, so the first
        # place where the bytes occur is the element itself.
        start = harmless.index(raw, at)
        at = start + len(bytes(raw))
        items.append(body[start:at])
    return items


def invalid_json(why: str) -> ProblemError:
    """Return the refusal of a body that is no JSON."""
    return ProblemError(400, Reason.INVALID_JSON, f"body must be JSON; {why}")


def _fault(error: Exception, text: bytes) -> str:
    """Return what the parser says; of a text that is cut, where it ends."""
    return str(error) if "(byte" in str(error) else f"{error} (byte {len(text)})"
