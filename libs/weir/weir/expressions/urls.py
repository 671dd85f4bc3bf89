"""What the functions on URLs mean: RFC 3986 cut at its delimiters, and nothing decoded.

They are lenient on purpose: what browsers send has spaces, brackets and letters that
the RFC does not allow, and a strict reader would know nothing of such a page.
"""

from __future__ import annotations

import re
from typing import Final

from weir.expressions.texts import lower

SCHEME: Final = "[A-Za-z][A-Za-z0-9+.-]*:"
"""How a URL begins, as a pattern that Python and Java understand alike."""


def host(text: str) -> str | None:
    """Return the host of a URL, A-Z as a-z, without user and port; None if it names none."""
    _scheme, authority, _rest = _cut(text)
    if authority is None:
        return None
    name = authority.rpartition("@")[2]
    if name.startswith("["):
        inner, closed, _port = name.partition("]")
        return lower(inner) + closed if closed and len(inner) > 1 else None
    return lower(name.partition(":")[0]) or None


def path(text: str) -> str:
    """Return the path of a URL, or of a reference without scheme and host; it may be empty."""
    return _cut(text)[2].partition("#")[0].partition("?")[0]


def query(text: str, name: str) -> str | None:
    """Return the first value of a parameter, as it stands there; None if there is none."""
    _before, _mark, asked = text.partition("#")[0].partition("?")
    for pair in asked.split("&"):
        found, equals, value = pair.partition("=")
        if equals and found == name:
            return value
    return None


def _cut(text: str) -> tuple[str, str | None, str]:
    """Return scheme, authority (None without `//`) and what follows."""
    scheme = re.match(SCHEME, text)
    rest = text[scheme.end() :] if scheme else text
    if not rest.startswith("//"):
        return scheme[0] if scheme else "", None, rest
    found = re.search("[/?#]", rest[2:])
    end = len(rest) if found is None else found.start() + 2
    return scheme[0] if scheme else "", rest[2:end], rest[end:]
