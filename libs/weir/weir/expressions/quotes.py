"""Quotes and comments of a text: where each begins and ends, and what is wrong if one does not.

They are found where sqlglot finds them: what stands within is never taken for a fault of what is
around it. A text that was refused may have a quote too many or too few; which one that is tells
what stands on both sides of each, from left to right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from weir.expressions.errors import ExpressionError, wrong
from weir.expressions.slip_words import QUOTES, WORDS
from weir.problems import MAX_ECHO

# A quote that is written twice is a part of the text, so what is left open goes on to the end.
_BEGIN: Final = re.compile(
    r"""(?P<quoted>'(?:[^']|'')*+'?|"(?:[^"]|"")*+"?)|(?P<line>--[^\n\r]*)|/\*\+?|\{\#"""
)
_ENDS: Final = {"/*": "*/", "/*+": "*/", "{#": "#}"}
_TYPESET: Final = re.compile(f"[{''.join(QUOTES)}]")
_WORD: Final = re.compile(r"\w+")
# What stands before a quote that opens a text, and seldom before one within it.
_BEFORE_A_TEXT: Final = re.compile(r"[\s=<>(,|+]")


@dataclass(frozen=True, slots=True)
class _Span:
    """What a text or a name in quotes, or a comment, takes of the whole.

    Attributes:
        sign: What it begins with.
        start: Where.
        end: The character behind it.
        closes: Whether its end is there; only the last one's can be missing.
    """

    sign: str
    start: int
    end: int
    closes: bool

    @property
    def is_comment(self) -> bool:
        """Whether it is one, and nothing in quotes."""
        return self.sign not in ("'", '"')


def without_texts(text: str) -> str:
    """Return a text with blanks in place of comments and of what stands in quotes that close."""
    return _blank(text, (span for span in _spans(text) if span.is_comment or span.closes))


def without_comments(text: str) -> str:
    """Return a text with blanks in place of its comments."""
    return _blank(text, (span for span in _spans(text) if span.is_comment))


def slip_of_quotes(text: str) -> ExpressionError | None:
    """Return what is wrong with quotes and comments of a text, None if all are right and close."""
    spans = list(_spans(text))
    opened = spans[-1].start if spans and not spans[-1].closes else len(text)
    typeset = _typeset(text, opened)
    if opened == len(text):
        return typeset
    fault = _unpaired(text, spans)
    # The end of a text that begins as it must is often the typesetter's.
    if typeset is not None and (fault.at == opened or (typeset.at or 0) < (fault.at or 0)):
        return typeset
    return fault


def quote_within(text: str, start: int, end: int) -> ExpressionError:
    """Return the error of a quote that ends what starts as a text, and was meant to be part of it.

    Args:
        text: The whole.
        start: Where the text starts.
        end: The character behind the quote.
    """
    word = _WORD.match(text, end)
    doubled = f"{text[start:end]}'{word[0] if word else ''}'"
    mend = "double a quote within a text: "
    mend += doubled if len(doubled) <= MAX_ECHO and doubled.isprintable() else "'it''s'"
    return wrong(text[end - 1 :], "the end of the text", mend, end - 1)


def _spans(text: str) -> Iterator[_Span]:
    """Yield what stands in quotes or is a comment, from left to right."""
    at = 0
    while found := _BEGIN.search(text, at):
        start, at = found.span()
        sign, closes = found[0], True
        if found["line"]:
            sign = "--"
        elif found["quoted"]:
            sign = sign[0]
            closes = text.count(sign, start, at) % 2 == 0
        else:
            end = _comment_end(text, at, sign)
            closes, at = end is not None, len(text) if end is None else end
        yield _Span(sign, start, at, closes)


def _comment_end(text: str, at: int, sign: str) -> int | None:
    """Return the character behind a comment, None if it is left open.

    Comments nest as sqlglot nests them: not in a hint, and not at once behind the sign.

    Args:
        text: The whole.
        at: The character behind the sign that it begins with.
        sign: That sign.
    """
    end, depth = _ENDS[sign], 1
    while at < len(text):
        if text.startswith(end, at):
            depth -= 1
            if depth == 0:
                return at + len(end)
        at += 1
        if sign != "/*+" and text.startswith(sign, at):
            depth += 1
            at += len(sign)
    return None


def _blank(text: str, spans: Iterable[_Span]) -> str:
    shown = list(text)
    for span in spans:
        shown[span.start : span.end] = " " * (span.end - span.start)
    return "".join(shown)


def _typeset(text: str, opened: int) -> ExpressionError | None:
    """Return the error of the first quote of a typesetter; one in a word of an open text is none.

    Args:
        text: The whole.
        opened: Where the text that is left open starts.
    """
    for found in _TYPESET.finditer(without_texts(text)):
        at = found.start()
        in_a_word = text[at - 1 : at].isalnum() and text[at + 1 : at + 2].isalnum()
        if at < opened or not in_a_word:
            return wrong(
                text[at:], "a text in single quotes", f"write ' in place of {found[0]}", at
            )
    return None


def _unpaired(text: str, spans: list[_Span]) -> ExpressionError:
    """Return the error of a text of which the last span is left open."""
    for span in spans[:-1] if not spans[-1].is_comment else ():
        behind = _WORD.match(text, span.end) if span.sign == "'" else None
        if behind is None or behind[0].lower() in WORDS:
            continue
        if _BEFORE_A_TEXT.match(text, span.end - 2):
            return _open(text, span)
        return quote_within(text, span.start, span.end)
    return _open(text, spans[-1])


def _open(text: str, span: _Span) -> ExpressionError:
    kind, end = ("comment", _ENDS[span.sign]) if span.is_comment else ("text", span.sign)
    mend = f"close the {kind} with {end}"
    return wrong(text[span.start :], f"a {kind} that ends in {end}", mend, span.start)
