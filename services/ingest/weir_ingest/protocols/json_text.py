"""JSON bodies: one value or an array, cut into items without reading them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import takewhile

import msgspec
from weir import json_exact
from weir.event import MAX_RECORD_BYTES
from weir.problems import ProblemError, Reason
from weir.refusal import ItemRefusedError

from weir_ingest.protocols.batch import too_many_events

_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_VALUE = msgspec.json.Decoder(msgspec.Raw)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NAME_AT = re.compile(rb'[\s{,]*("(?:[^"\\]|\\.)*+")\s*:\s*', re.DOTALL)
# A step of Python for each takes a microsecond and more.
_MAX_MEMBERS = 100_000
_AFTER_VALUE = re.compile(rb"\s*[,}]")
_BETWEEN = re.compile(rb"[\s,]*+")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_PLACE = re.compile(r" \(byte (\d+)\)")
_quote = json.JSONEncoder(ensure_ascii=False).encode


def readable(body: bytes) -> bytes:
    """Return a body that may be given to a parser, without a byte order mark.

    Raises:
        ProblemError: 400 `invalid_utf8`.
    """
    body = body.removeprefix(b"\xef\xbb\xbf")
    try:
        json_exact.check_utf8(body)
    except ItemRefusedError as error:
        raise ProblemError(400, error.reason, str(error)) from None
    return body


def check_depth(event: bytes) -> None:
    """Refuse one event that nests deeper than a parser's stack; a too large one is no matter.

    Raises:
        ProblemError: 400 `too_deep`.
    """
    small = len(event) <= MAX_RECORD_BYTES
    if small and json_exact.is_deeper(event, json_exact.MAX_PARSED_DEPTH):
        raise _too_deep()


def check_value(text: bytes) -> str | None:
    """Return None if a text is one JSON value, else why not.

    Raises:
        ProblemError: 400 `too_deep`, where a parser runs out of stack.
    """
    try:
        _VALUE.decode(text)
    except msgspec.DecodeError:
        pass
    except RecursionError:
        raise _too_deep() from None
    else:
        return None
    try:
        _VALUE.decode(json_exact.parsable(text))
    except (msgspec.DecodeError, RecursionError) as error:
        return _fault(error, text)
    return None


def split_array(body: bytes, limit: int) -> list[bytes]:
    """Return the elements of an array, each as its own bytes.

    Raises:
        ProblemError: 400 `invalid_json`, with the byte's position, or `too_deep`;
            413 `too_many_events`, before the rest is read.
    """
    try:
        return [bytes(raw) for raw in _elements(body, limit)]
    except msgspec.DecodeError:
        pass
    except RecursionError:
        raise _too_deep() from None
    harmless = json_exact.parsable(body)
    try:
        elements = _elements(harmless, limit)
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


def split_values(body: bytes) -> Iterator[bytes]:
    """Return one after another the values that a body holds, each as its own bytes.

    White space and commas may stand between them, or nothing. UTF-8 and escapes are not checked.

    Raises:
        ProblemError: 400 `invalid_json`, with the byte's position, or `too_deep`, in place of
            the value that is none.
    """
    text, at = memoryview(body), _after(_BETWEEN, body, 0)
    while at < len(body):
        try:
            end = _end_of_first(text, at)
        except msgspec.DecodeError:
            text = memoryview(json_exact.parsable(body))
            end = _end_in_harmless(text, at)
        yield body[at:end].rstrip()
        at = _after(_BETWEEN, body, end)


def split_object(body: bytes) -> dict[str, bytes]:
    """Return the members of an object, each value as its own bytes; of a name twice the last.

    Raises:
        ProblemError: 400 `invalid_json`, with the byte's position, or `too_deep`; 413
            `too_many_events`, if one with numbers that JSON does not have is of too many members
            to be read by hand.
    """
    try:
        return {name: bytes(raw) for name, raw in _MEMBERS.decode(body).items()}
    except msgspec.DecodeError:
        pass
    except RecursionError:
        raise _too_deep() from None
    harmless = json_exact.parsable(body)
    try:
        members = {name: bytes(raw) for name, raw in _MEMBERS.decode(harmless).items()}
    except (msgspec.DecodeError, RecursionError) as error:
        raise invalid_json(_fault(error, body)) from None
    found: dict[str, bytes] = {}
    at = seen = 0
    while (name_at := _NAME_AT.match(harmless, at)) is not None:
        seen += 1
        if seen > _MAX_MEMBERS:
            message = (
                f"an object must have at most {_MAX_MEMBERS} members, got more; send it in parts"
            )
            raise ProblemError(413, Reason.TOO_MANY_EVENTS, message)
        start = name_at.end()
        likely = members[msgspec.json.decode(name_at.group(1), type=str)]
        at = _end_of_value(harmless, start, likely)
        found[_name(body[slice(*name_at.span(1))])] = body[start:at]
    return found


def text_of(value: bytes | None) -> bytes:
    """Return a text of a body, empty if it is none."""
    if value is not None and value[:1] == b'"':
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(value, type=str).encode()
    return b""


def _name(text: bytes) -> str:
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.DecodeError as error:
        raise invalid_json(str(error)) from None


def join_object(members: Mapping[str, bytes]) -> bytes:
    """Return the object of some members, each value as its own bytes."""
    inner = b",".join(msgspec.json.encode(name) + b":" + value for name, value in members.items())
    return b"{%b}" % inner


def quoted(text: bytes) -> bytes:
    """Return bytes as a text in JSON, each of them as it is: it is UTF-8 only if they are."""
    return _quote(text.decode("latin-1")).encode("latin-1")


def _end_of_value(text: bytes, start: int, likely: bytes) -> int:
    """Return where a value ends that most likely is the one given: of a name twice it is not."""
    end = start + len(likely)
    if text.startswith(likely, start) and _AFTER_VALUE.match(text, end):
        return end
    return start + len(text[start : _end_of_first(memoryview(text), start)].rstrip())


def _end_in_harmless(text: memoryview, at: int) -> int:
    try:
        return _end_of_first(text, at)
    except msgspec.DecodeError as error:
        place = _PLACE.search(str(error))
        byte = at + int(place[1]) if place else len(text)
        why = f"{_PLACE.sub('', str(error))} (byte {byte})"
        raise invalid_json(why) from None


def _end_of_first(text: memoryview, at: int) -> int:
    """Return where the value at a place ends, white space behind it included.

    The parser reads one value and says where something follows: so each value is read once, and
    nothing is made of it.
    """
    try:
        _VALUE.decode(text[at:])
    except RecursionError:
        raise _too_deep() from None
    except msgspec.DecodeError as error:
        follows = _TRAILING.search(str(error))
        if follows is None:
            raise
        return at + int(follows[1]) - 1
    return len(text)


def _after(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _elements(body: bytes, limit: int) -> Iterable[msgspec.Raw]:
    if body.count(b",") < limit:
        return _LIST.decode(body)
    try:
        found = decoder_of_at_most(limit).decode(body)
    except msgspec.ValidationError:
        if body.lstrip()[:1] == b"[":
            raise too_many_events(limit) from None
        raise
    return takewhile(lambda raw: raw is not msgspec.UNSET, msgspec.structs.astuple(found))


@lru_cache
def decoder_of_at_most(limit: int) -> msgspec.json.Decoder[msgspec.Struct]:
    """Return a decoder of arrays that stops at one element too many.

    A bound of a list's length is checked after all of it was read: ten million
    elements are a gigabyte. A struct read from an array has an end. Making its
    type takes a tenth of a second.
    """
    fields = [(f"e{n}", msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for n in range(limit)]
    return msgspec.json.Decoder(
        msgspec.defstruct("Bounded", fields, array_like=True, forbid_unknown_fields=True)
    )


def invalid_json(why: str) -> ProblemError:
    """Return the refusal of a body that is no JSON."""
    return ProblemError(400, Reason.INVALID_JSON, f"body must be JSON; {why}")


def _too_deep() -> ProblemError:
    message = f"data must nest at most {json_exact.MAX_DEPTH} deep, got far more"
    return ProblemError(400, Reason.TOO_DEEP, message)


def _fault(error: Exception, text: bytes) -> str:
    """Return what the parser says; of a text that is cut, where it ends."""
    return str(error) if "(byte" in str(error) else f"{error} (byte {len(text)})"
