"""Filters on dimensions: `=`, `!=`, `in`, `like`.

Null is a value that can be asked for (`["region", "=", null]`). As in expressions, `!=`
to a text does not hold for null, and neither does `like`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Value = str | None
Test = Callable[[Value], bool]


def test_of(op: str, wanted: Any) -> Test:
    """Return the test that a condition puts to a dimension's value."""
    if op == "in":
        return frozenset(wanted).__contains__
    if op == "like":
        pattern = _tokens(wanted)
        return lambda value: value is not None and _like(value, pattern)
    if op == "=":
        return lambda value: value == wanted
    if wanted is None:
        return lambda value: value is not None
    return lambda value: value is not None and value != wanted


def _tokens(pattern: str) -> list[str | int]:
    """Split a pattern: text as it is, 1 for `_` (one character), 0 for `%` (any text)."""
    tokens: list[str | int] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            tokens.append(next(characters, "\\"))
        else:
            tokens.append({"%": 0, "_": 1}.get(character, character))
    return tokens


def _like(text: str, pattern: list[str | int]) -> bool:
    """Match without a regular expression, whose time a hostile pattern could blow up.

    Only the last `%` is ever tried again, so the time is at most text times pattern.
    """
    at = place = 0
    restart, taken = -1, 0
    while at < len(text):
        token = pattern[place] if place < len(pattern) else None
        if token == 0:
            restart, taken = place, at
            place += 1
        elif token == 1 or token == text[at]:
            at += 1
            place += 1
        elif restart >= 0:
            place, taken = restart + 1, taken + 1
            at = taken
        else:
            return False
    return all(token == 0 for token in pattern[place:])
