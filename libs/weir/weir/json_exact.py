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
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from math import isnan
from typing import Any

from weir.problems import Reason
from weir.refusal import ItemRefusedError

MAX_DEPTH = 32
MAX_PARSED_DEPTH = 900
"""Deeper than this a parser may recurse out of its stack: refused by a byte scan."""

_MAX_NULLED_NAMES = 20
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_INT_MAX_DIGITS = 20

# Digits become 0 and both exponent signs e, so that a few substring searches find
# every number that could be too long or too large, at memory speed.
_SHAPES = bytes.maketrans(b"123456789E", b"000000000e")
_LONG, _LONG_BELOW_ZERO = b"0" * _INT_MAX_DIGITS, b"-" + b"0" * (_INT_MAX_DIGITS - 1)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

# An unfinished string matches up to the end, so that no input is scanned twice.
_STRING = rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
_STRINGS = re.compile(rb"(" + _STRING + rb")", re.DOTALL)
# Stands for a string while numbers are looked at; JSON has it nowhere.
_PLACE = b"\0"
# One match runs over all numbers that 64 bits and a double hold, up to the next that
# they may not: a call of Python for each number would cost half a second a megabyte.
_SHORT = rb"-?[0-9]{1,18}+(?:\.[0-9]{1,18}+)?+(?:[eE][+-]?[0-9]{1,2}+)?+(?![0-9.eE])"
_DOUBTFUL = re.compile(
    rb"(?:" + _SHORT + rb"|[^0-9\-]++|-(?![0-9]))*+"
    rb"(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|\Z)"
)
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_HALF = re.compile(_HIGH + rb"(?!" + _LOW + rb")|(?<!" + _HIGH + rb")" + _LOW)


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
    and no number in it has 20 digits, below zero 19, or an exponent of three.
    """
    if not text.isascii() or b"\\" in text or b"\x7f" in text:
        return False
    return not _has_long_number(text)


def _has_long_number(text: bytes) -> bool:
    shape = text.translate(_SHAPES)
    return _LONG in shape or _LONG_BELOW_ZERO in shape or b"0e000" in shape or b"0e+000" in shape


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
    if text.isascii():
        return
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
    if not _has_long_number(text) and b"NaN" not in text and b"Infinity" not in text:
        return Mended(text)
    if _PLACE in text:
        return Mended(text)  # not JSON anyway; the parser says so
    apart = _STRINGS.split(text)
    outside, strings = _PLACE.join(apart[::2]), [*apart[1::2], b""]
    marked = _with_nan(outside)
    if b"NaN" not in marked:
        return Mended(text)
    nulled = _nan_names(_together(marked, strings))
    return Mended(_together(marked.replace(b"NaN", b"null"), strings), nulled)


def _with_nan(outside: bytes) -> bytes:
    """Write NaN for every number that JSON cannot hold."""
    text = outside.replace(b"-Infinity", b"NaN").replace(b"Infinity", b"NaN")
    if not _has_long_number(text):
        return text
    kept, at = [], 0
    for match in _DOUBTFUL.finditer(text):
        token = match.group(1)
        if token and _is_lossy(token):
            kept.append(text[at : match.start(1)])
            at = match.end()
    return b"NaN".join([*kept, text[at:]])


def _together(outside: bytes, strings: list[bytes]) -> bytes:
    return b"".join(chain.from_iterable(zip(outside.split(_PLACE), strings, strict=True)))


def parsable(text: bytes) -> bytes:
    """Return a text of the same length that a strict parser can split.

    Numbers that JSON does not have and escapes that may be halves of surrogate
    pairs are replaced in place, in strings too, so that an array that holds one can
    be cut into its items, and each item of the original be judged by itself. Escaped
    backslashes go first: what then is a backslash begins an escape.
    """
    for old, new in (
        (b"\\\\", b"__"),
        (b"\\u", b"__"),
        (b"NaN", b"0.0"),
        (b"Infinity", b"0.000000"),
    ):
        text = text.replace(old, new)
    return text


def _check_surrogates(text: bytes) -> None:
    """Refuse a half of a surrogate pair that stands alone."""
    match = _LONE_HALF.search(text.replace(b"\\\\", b"__"))
    if match is not None:
        message = f"strings must be Unicode, got half of a surrogate pair at byte {match.start()}"
        raise ItemRefusedError(Reason.INVALID_UNICODE, message)


def _is_lossy(token: bytes) -> bool:
    """Say whether a number is beyond a double.

    Raises:
        ItemRefusedError: `number_range`: an integer that 64 bits cannot hold.
    """
    if token.lstrip(b"-").isdigit():
        if len(token) > _INT_MAX_DIGITS + 1 or not _INT_MIN <= int(token) <= _INT_MAX:
            message = f"integers must fit 64 bits, got one of {len(token)} digits; send it as text"
            raise ItemRefusedError(Reason.NUMBER_RANGE, message)
        return False
    return float(token) in (float("inf"), float("-inf"))


def _nan_names(text: bytes) -> tuple[str, ...]:
    """Name the first places of NaN, as paths below the top."""
    try:
        tree = json.loads(text)
    except ValueError:
        return ()  # not JSON anyway; the parser says so
    return tuple(islice(_nan_paths(tree, ""), _MAX_NULLED_NAMES))


def _nan_paths(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, float):
        if isnan(node):
            yield path.removeprefix(".") or "$"
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _nan_paths(value, f"{path}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _nan_paths(value, f"{path}[{index}]")
