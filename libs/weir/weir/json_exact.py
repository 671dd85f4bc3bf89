"""JSON read leniently but exactly: what msgspec alone would not notice.

Clients send `NaN`, `1e400`, 30-digit integers and lone surrogates. A parser that
rounds or drops them silently would make a number wrong without a trace. The scan
here costs a nanosecond a byte and finds nothing in nearly every text; only a hit
takes the exact path.

A text whose value JSON cannot hold is mended byte for byte: `NaN`, the
infinities and numbers beyond a double become `null`, everything else stays as
the client wrote it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from weir.problems import Reason
from weir.refusal import ItemRefusedError

MAX_DEPTH = 32
MAX_PARSED_DEPTH = 900
"""Deeper than this a parser may recurse out of its stack: refused by a byte scan."""

_MAX_NULLED_NAMES = 20
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_INT_MAX_DIGITS = 20

# Digits become 0 and both exponent signs e, so that two substring searches find
# every number that could be too long or too large, at memory speed.
_SHAPES = bytes.maketrans(b"123456789E", b"000000000e")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

# An unfinished string matches up to the end, so that no input is scanned twice.
_STRING = rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
_TOKEN = re.compile(
    _STRING + rb"|NaN|-?Infinity|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.DOTALL
)
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mended:
    """A text without surprises.

    Attributes:
        text: The JSON, equal to the client's but for what became null.
        nulled: Where `null` stands for a number that JSON cannot hold.
    """

    text: bytes
    nulled: tuple[str, ...] = ()


def is_plain(text: bytes) -> bool:
    """Say whether a text can hold nothing that needs the exact path.

    Plain is ASCII without a backslash, so every string in it is its own bytes,
    and no number in it has 20 digits or an exponent of three.
    """
    if not text.isascii() or b"\\" in text or b"\x7f" in text:
        return False
    return not _has_long_number(text)


def _has_long_number(text: bytes) -> bool:
    shape = text.translate(_SHAPES)
    return b"0" * _INT_MAX_DIGITS in shape or b"0e000" in shape or b"0e+000" in shape


def is_deeper(text: bytes, limit: int) -> bool:
    """Say whether brackets outside strings nest deeper than `limit`, without recursion."""
    if text.count(b"{") + text.count(b"[") <= limit:
        return False
    bare = re.sub(_STRING, b"", text, flags=re.DOTALL) if b'"' in text else text
    depth = 0
    for bracket in bare.translate(None, _NOT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > limit:
            return True
    return False


def check_utf8(text: bytes) -> None:
    """Refuse bytes that are not UTF-8.

    Raises:
        ItemRefusedError: `invalid_utf8`, with the position.
    """
    try:
        text.decode()
    except UnicodeDecodeError as error:
        message = f"text must be UTF-8, got byte 0x{text[error.start]:02x} at {error.start}"
        raise ItemRefusedError(Reason.INVALID_UTF8, message) from None


def mend(text: bytes) -> Mended:
    """Return a text as JSON can hold it, whatever it was.

    Does not check the grammar: that is the parser's work, before or after.

    Raises:
        ItemRefusedError: `invalid_utf8`, `invalid_unicode`, `number_range`.
    """
    check_utf8(text)
    if b"\\u" in text:
        _check_surrogates(text)
    lossy = False
    if _has_long_number(text) or b"NaN" in text or b"Infinity" in text:
        lossy = any(_is_lossy(token) for token in _TOKEN.findall(text))
    if not lossy:
        return Mended(text)
    mended = _TOKEN.sub(lambda m: b"null" if _is_lossy(m.group()) else m.group(), text)
    return Mended(mended, _nulled_names(text))


def parsable(text: bytes) -> bytes:
    """Return a text of the same length that a strict parser can split.

    Numbers that JSON does not have and halves of surrogate pairs are replaced in
    place, so that an array that holds one can be cut into its items, and each
    item of the original be judged by itself.
    """
    return _TOKEN.sub(_harmless, text)


def _harmless(match: re.Match[bytes]) -> bytes:
    token = match.group()
    if token[:1] == b'"':
        return _ESCAPE.sub(_harmless_escape, token) if b"\\u" in token else token
    if token[-1:] in b"Ny":
        return b"0." + b"0" * (len(token) - 2)
    return token


def _harmless_escape(match: re.Match[bytes]) -> bytes:
    return b"\\u0020" if match.group(1) else match.group()


def _check_surrogates(text: bytes) -> None:
    """Refuse a half of a surrogate pair that stands alone."""
    high_until = -1
    for match in _ESCAPE.finditer(text):
        code = int(match.group(1) or b"0", 16)
        is_low = 0xDC00 <= code <= 0xDFFF
        if is_low != (match.start() == high_until):
            break
        high_until = match.end() if 0xD800 <= code <= 0xDBFF else -1
        if high_until >= 0 and text[high_until : high_until + 2] != b"\\u":
            break
    else:
        return
    message = f"strings must be Unicode, got half of a surrogate pair at byte {match.start()}"
    raise ItemRefusedError(Reason.INVALID_UNICODE, message)


def _is_lossy(token: bytes) -> bool:
    """Say whether a token outside strings has no value in JSON.

    Raises:
        ItemRefusedError: `number_range`: an integer that 64 bits cannot hold.
    """
    if token[:1] == b'"':
        return False
    if token.lstrip(b"-").isdigit():
        if len(token) > _INT_MAX_DIGITS + 1 or not _INT_MIN <= int(token) <= _INT_MAX:
            message = f"integers must fit 64 bits, got one of {len(token)} digits; send it as text"
            raise ItemRefusedError(Reason.NUMBER_RANGE, message)
        return False
    return token[-1:] in b"Ny" or float(token) in (float("inf"), float("-inf"))


_GONE = object()


def _nulled_names(text: bytes) -> tuple[str, ...]:
    """Name the places of what became null, as paths below the top."""

    def read_float(token: str) -> Any:
        return _GONE if _is_lossy(token.encode()) else 0.0

    try:
        tree = json.loads(
            text, parse_constant=lambda _: _GONE, parse_float=read_float, parse_int=lambda _: 0
        )
    except ValueError:
        return ()  # not JSON anyway; the parser says so
    names: list[str] = []
    _walk(tree, "", names)
    return tuple(names[:_MAX_NULLED_NAMES])


def _walk(node: Any, path: str, names: list[str]) -> None:
    if node is _GONE:
        names.append(path.removeprefix(".") or "$")
    elif isinstance(node, dict):
        for key, value in node.items():
            _walk(value, f"{path}.{key}", names)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            _walk(value, f"{path}[{index}]", names)
