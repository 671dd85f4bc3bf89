"""What a mend says to write: the code in it, told from its words, and whether it is taken."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from weir.definitions.aggregates import parse_aggregate
from weir.expressions import ExpressionError, Kind
from weir.expressions.parse import parse_kind
from weir.expressions.quotes import without_texts

_PART: Final = r"(?:'(?:[^']|'')*'|\"[^\"]*\"|[^'\";])"
_WRITE: Final = re.compile(rf"(?:^|[;,?] (?:or )?)write ({_PART}+)")
_INSTEAD: Final = re.compile(r",? or (?=\")|, or ")
# Words behind the code: where it goes, and for what.
_BEHIND: Final = re.compile(
    r"$| (?:for|of|without|if|to ask|in place|between (?!\d))|, (?:in which|which|not|as in)|: "
)
# Something that is named by what it is, and not by how it is written.
_WORDS: Final = re.compile(
    r"(?:a|an|one|of|the|them|both|\d(?: to \d| or more)? operands?|leave|read|use|and or or)\b|\\"
)
_PLACES: Final = (
    *("{}", "data.a {}", "data.a {} 1", "data.a = 1 {} data.b = 2", "{} data.a", "{}(data.a)"),
)
_READERS: Final[tuple[Callable[[str], object], ...]] = (
    *(partial(parse_kind, kind=kind, written=True) for kind in Kind),
    parse_aggregate,
)


def codes_of(mend: str) -> list[str]:
    """Return what a mend says to write, as far as that is code and not cut."""
    said = [part for clause in _WRITE.findall(mend) for part in _INSTEAD.split(clause)]
    codes = [_code(part) for part in said if not _WORDS.match(part)]
    return [code for code in codes if "…" not in code and code != "'"]


def _code(said: str) -> str:
    """Return what stands before the first word that is no code, and in no bracket."""
    plain = without_texts(said)
    ends = (found.start() for found in _BEHIND.finditer(plain))
    whole = (end for end in ends if plain.count("(", 0, end) == plain.count(")", 0, end))
    code = said[: next(whole, len(said))]
    return re.sub('^"(.*)"$', r"\1", code)


def can_be_written(code: str) -> bool:
    """Tell whether code is an expression of any kind, a part of one, or an aggregate."""
    in_place = (place.replace("{}", code) for place in _PLACES)
    return any(_is_taken(text, read) for text in in_place for read in _READERS)


def _is_taken(text: str, read: Callable[[str], object]) -> bool:
    try:
        read(text)
    except ExpressionError:
        return False
    return True
