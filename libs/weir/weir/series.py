"""Series: how a set of dimension values is written, hashed and given to a shard.

A series text is what Redis stores as a series' name, so it can be read by a person and
compared byte for byte: the values of the metric's `by` in order, each `~` for null,
else `=` and the text, joined by `|`. No two sets of values have the same text, long
ones apart, where MD5 tells them from each other. The text `*` is the row `other` of a
capped metric; no set of values is written so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

OTHER: Final = "*"
OTHER_ID: Final = b"\x00\x00"
"""The field of the row `other` in every pane; of all others `names` tells the series."""
MAX_BYTES: Final = 256
KEPT_CHARACTERS: Final = 64
_NULL = "~"
_CUT = "…"


def encode_series(values: Sequence[str | None]) -> str:
    """Return the text of a series; one over 256 bytes is cut and ends in its MD5.

    Args:
        values: The dimension values in the order of the metric's `by`; none for a
            metric without dimensions, whose one series has the empty text.
    """
    return cut_text("|".join(map(encode_value, values)))


def encode_value(value: str | None) -> str:
    """Return a dimension's part of the text of a series."""
    return _NULL if value is None else "=" + _escaped(value)


def cut_text(text: str) -> str:
    """Return a text as it is stored and shown: one over 256 bytes is cut and ends in its MD5.

    So are series and the texts of a list of the most frequent; what a set counts stays whole.
    """
    # Four bytes a character at most: the usual short text needs no encoding to be measured.
    if len(text) * 4 <= MAX_BYTES:
        return text
    raw = text.encode()
    if len(raw) <= MAX_BYTES:
        return text
    return text[:KEPT_CHARACTERS] + _CUT + hashlib.md5(raw, usedforsecurity=False).hexdigest()


def decode_series(text: str) -> tuple[str | None, ...]:
    """Return the dimension values that a series text stands for.

    A text that was cut for its length gives back what is left of it: fewer values than
    the metric has dimensions, the last one ending in `…` and the MD5. `fit` fills it up.

    Raises:
        ValueError: If the text is that of no series, or of `other`, which has no values.
    """
    if not text:
        return ()
    return tuple(_value(part, text) for part in _parts(text))


def fit(values: tuple[str | None, ...], dimensions: int) -> tuple[str | None, ...]:
    """Return exactly as many values as there are dimensions.

    A cut text has lost its last values; they become the digest's text, the same for all
    that were lost, so that two long series never look like one.
    """
    if len(values) == dimensions:
        return values
    last = values[-1] if values else None
    return (*values[:dimensions], *[last] * (dimensions - len(values)))


def first_value(text: str) -> str:
    """Return the first value of a series text; "" where there is none.

    In the system metrics it says whose the series is. An owner's name holds nothing that is
    escaped, so what is before the first bar is all of it.
    """
    return text.split("|", 1)[0].removeprefix("=")


def may_be_cut(value: str) -> bool:
    """Return whether a value may be what is left of a longer one; false where it is whole."""
    return _CUT in value


def series_digest(text: str) -> bytes:
    """Return the 16 bytes that a series is found by in Redis."""
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()


def shard_of(digest: bytes, shards: int) -> int:
    """Return the shard of a series: the digest's first 4 bytes, big-endian, mod `shards`."""
    return int.from_bytes(digest[:4], "big") % shards


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("|", "\\|")


def _parts(text: str) -> list[str]:
    if "\\" not in text:
        return text.split("|")
    parts, current, escaped = [], [], False
    for character in text:
        if escaped:
            current.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == "|":
            parts.append("".join(current))
            current = []
        else:
            current.append(character)
    return [*parts, "".join(current)]


def _value(part: str, text: str) -> str | None:
    if part.startswith("="):
        return part[1:]
    # A long text may be cut right behind a null, which leaves the digest without a value.
    if part == _NULL:
        return None
    if part.startswith((_NULL, _CUT)) and _CUT in part:
        return part.removeprefix(_NULL)
    msg = f'series text must have "~" or "=" before each value, got "{text[:KEPT_CHARACTERS]}"'
    raise ValueError(msg)
