"""Slips of the pen: what makes a text no expression, where it stands, and how it is mended.

The text is read from left to right as values with operators between them, which is all that
it takes to see that one is missing, that brackets do not close, or that a sign is of another
language. It is only asked about texts that were refused: it allows nothing and forbids nothing.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import Final

from weir.expressions.errors import ExpressionError, not_allowed, wrong
from weir.expressions.functions import ALIASES, FUNCTIONS, IF, NAMES, SAID_OTHERWISE
from weir.expressions.quotes import quote_within, slip_of_quotes, without_comments
from weir.expressions.slip_words import (
    ABSENT,
    BEFORE,
    ELSEWHERE,
    OPERATORS,
    SIGNS,
    UNSAID,
    WORDS,
)
from weir.problems import MAX_ECHO

_SIGNS: Final = "|".join(map(re.escape, sorted((*SIGNS, *OPERATORS), key=len, reverse=True)))
_TOKEN: Final = re.compile(
    rf"""\s*(?:
        (?P<text>'(?:[^']|'')*')
      | (?P<name>"(?:[^"]|"")*")
      | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<word>[^\W\d]\w*)
      | (?P<sign>{_SIGNS}|\S)
    )""",
    re.VERBOSE,
)
_DISTINCT: Final = re.compile(
    r"(?<![.\w])is(?P<negated>\s+not)?\s+distinct\b(?:\s+from\b)?", re.IGNORECASE
)
_OPENING: Final = {"(": ")", "[": "]"}
_SIDE_BY_SIDE: Final = "put what joins or compares them between: and, or, =, <, +, ||"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """What it says, in small letters; empty of a text and a quoted name."""
        return self.text.lower() if self.kind in ("word", "sign") else ""

    @property
    def end(self) -> int:
        """The character behind it."""
        return self.at + len(self.text)


@dataclass(slots=True)
class _Opened:
    """A bracket or a `case` that is open, and of a call its name and its operands so far."""

    token: _Token
    call: str = ""
    operands: int = 1


def slip_of(text: str) -> ExpressionError | None:
    """Return what is wrong with a text that is no expression, None if that is not seen here."""
    tokens = map(_token, _TOKEN.finditer(without_comments(text)))
    return slip_of_quotes(text) or _Reading(text, list(tokens)).slip()


def _token(found: re.Match[str]) -> _Token:
    kind = str(found.lastgroup)
    return _Token(kind, found[kind], found.start(kind))


@dataclass(slots=True)
class _Reading:
    """One reading of a text, token by token.

    Attributes:
        text: The text.
        tokens: What it is made of, without comments.
        before: The token before the one that is read, None at the start.
        opened: Brackets and `case`s that are open, the inner ones last.
        between: How many `between` still want their `and`.
    """

    text: str
    tokens: list[_Token]
    before: _Token | None = None
    opened: list[_Opened] = field(default_factory=list)
    between: int = 0

    def slip(self) -> ExpressionError | None:
        """Return the first slip of the text, None if there is none."""
        wanted = True
        for token in self.tokens:
            after = self._first(token) if wanted else self._next(token)
            if isinstance(after, ExpressionError):
                return after
            wanted, self.before = after, token
        if wanted:
            return self._missing(None)
        return self._unclosed()

    # ── where a value is wanted; what is returned tells whether one still is ────

    def _first(self, token: _Token) -> bool | ExpressionError:
        before = self.before.word if self.before else ""
        if token.kind in ("text", "number", "name"):
            return False
        if before == ".":
            return False if token.kind == "word" or token.word == "*" else self._nameless(token)
        if token.word in ("not", "-", "+", "!", "distinct") or token.word in ABSENT:
            return self._distinct(token) if token.word == "distinct" else True
        if token.word == "case" or token.word in _OPENING:
            self._open(token)
            return True
        if token.word == ")" and self.opened and self.opened[-1].call and before == "(":
            return self._close(token)
        if token.word == "*" and before == "(":
            return False
        if token.word == "when" and before == "case":
            return True
        if token.kind == "word" and token.word not in WORDS:
            return False
        return self._missing(token)

    def _distinct(self, token: _Token) -> ExpressionError:
        for asked in _DISTINCT.finditer(self.text):
            if asked.start() < token.at < asked.end():
                sign = "=" if asked["negated"] else "!="
                mend = f"write {sign}; whether something is null asks is null"
                return not_allowed(asked[0], mend, asked.start())
        mend = "leave it out; distinct(data.user) is an aggregate of a metric"
        return not_allowed(token.text, mend, token.at)

    def _nameless(self, token: _Token) -> ExpressionError:
        mend = "write one name behind each point: data.cart.total"
        return wrong(token.text, "a name", mend, token.at)

    def _missing(self, token: _Token | None) -> ExpressionError:
        """Return the error of a place at which a value is missing, before a token or the end."""
        at = token.at if token else (self.before.end if self.before else len(self.text))
        got = token.text if token else ""
        behind = self.before.text if self.before else ""
        twice = token is not None and self.before is not None and token.kind == "sign"
        together = f"{behind}{got}" if twice else ""
        if together in OPERATORS:
            mend = f"write {together} without a blank in it"
        elif token is not None and token.word in SIGNS and token.word not in OPERATORS:
            return not_allowed(token.text, SIGNS[token.word], token.at)
        elif token is not None and self.before is not None and token.word != ")":
            mend = f"write a value between {behind} and {got}, or leave one of the two out"
        else:
            mend = f"write a value there, or leave {behind or got} out"
        required = f"a value behind {behind}" if behind else "a value"
        return wrong(got, required, mend, at)

    # ── where an operator is wanted ─────────────────────────────────────────────

    def _next(self, token: _Token) -> bool | ExpressionError:
        before = self.before
        if token.word in _OPENING:
            if before is not None and (before.kind == "word" or token.word == "["):
                self._open(token)
                return True
            return self._side_by_side(token)
        if token.word in (")", "]"):
            return self._close(token)
        if token.word == ",":
            return self._comma(token)
        if token.word in ("when", "then", "else", "end"):
            return self._of_case(token)
        if token.word in ("isnull", "notnull"):
            return False
        if token.word == "not":
            return False
        if token.word == "or" and self.between:
            return wrong(token.text, "and", "write both ends: between 1 and 5", token.at)
        if token.word in WORDS or token.word in OPERATORS:
            self.between += (token.word == "between") - (token.word == "and" and self.between > 0)
            return True
        return self._unlisted(token)

    def _comma(self, token: _Token) -> bool | ExpressionError:
        if not self.opened or self.opened[-1].token.word == "case":
            mend = "write and between two conditions; a list stands in brackets: in (1, 2)"
            return wrong(token.text, "one expression", mend, token.at)
        self.opened[-1].operands += 1
        return True

    def _of_case(self, token: _Token) -> bool | ExpressionError:
        if not any(one.token.word == "case" for one in self.opened):
            mend = "begin with case: case when data.a > 1 then 2 else 3 end"
            return wrong(token.text, "an operator", mend, token.at)
        if self.opened[-1].token.word != "case":
            return self._close_first(token)
        if token.word == "end":
            self.opened.pop()
            return False
        return True

    def _open(self, token: _Token) -> None:
        before = self.before
        is_call = token.word == "(" and before is not None and before.kind == "word"
        named = before.word if is_call and before and before.word not in WORDS else ""
        self.opened.append(_Opened(token, named))

    def _close(self, token: _Token) -> bool | ExpressionError:
        last = self.opened[-1] if self.opened else None
        if last is None:
            opening = next(sign for sign, end in _OPENING.items() if end == token.text)
            mend = f"leave it out, or open it with {opening} in front"
            return wrong(token.text, "the end of the expression", mend, token.at)
        if _OPENING.get(last.token.word) != token.text:
            return self._close_first(token)
        self.opened.pop()
        if last.call == IF and last.operands not in (2, 3):
            mend = f"{IF} takes 2 or 3 operands, and there is {last.operands}"
            return wrong(token.text, f"like {SAID_OTHERWISE[IF]}", mend, token.at)
        return False

    def _close_first(self, token: _Token) -> ExpressionError:
        """Return the error of what ends more than what was opened last."""
        last = self.opened[-1].token
        wanted = _OPENING.get(last.word, "end")
        mend = f"close the {last.text} at character {last.at + 1} with {wanted} first"
        return wrong(token.text, wanted, mend, token.at)

    def _unclosed(self) -> ExpressionError | None:
        at = self.before.end if self.before else 0
        if self.between:
            mend = "write both ends: between 1 and 5"
            return wrong("", "and, and the upper end", mend, at)
        if not self.opened:
            return None
        last = self.opened[-1].token
        wanted = _OPENING.get(last.word, "end")
        mend = f"close the {last.text} at character {last.at + 1} with {wanted}"
        return wrong("", wanted, mend, at)

    # ── what is none of the language's operators ────────────────────────────────

    def _unlisted(self, token: _Token) -> bool | ExpressionError:
        if token.word == "as" and self.opened and self.opened[-1].call in ("cast", "try_cast"):
            return True
        before = self.before
        if before and before.kind == "text" and before.end == token.at and token.kind != "sign":
            return quote_within(self.text, before.at, before.end)
        if token.kind != "sign" and token.kind != "word":
            return self._side_by_side(token)
        if token.word in SIGNS:
            return not_allowed(token.text, SIGNS[token.word], token.at)
        if token.word in UNSAID:
            return not_allowed(token.text, UNSAID[token.word], token.at)
        if token.kind == "sign":
            return not_allowed(token.text, f"leave it out; {ELSEWHERE}", token.at)
        name = ALIASES.get(token.word, token.word)
        if name in NAMES:
            mend = f"{name} is a function: {name}({self._value()}, …)"
            return wrong(token.text, "an operator", mend, token.at)
        near = difflib.get_close_matches(token.word, WORDS, n=1)
        if near:
            return wrong(token.text, "an operator", f'did you mean "{near[0]}"?', token.at)
        return self._side_by_side(token)

    def _side_by_side(self, token: _Token) -> ExpressionError:
        """Return the error of two values without anything between them."""
        mend = _SIDE_BY_SIDE
        before = self.before
        name = ALIASES.get(before.word, before.word) if before else ""
        if name in BEFORE:
            mend = BEFORE[name]
        elif name in NAMES:
            example = FUNCTIONS[name].example if name in FUNCTIONS else SAID_OTHERWISE.get(name)
            mend = f"{name} takes its operands in brackets: {example or f'{name}(data.a, data.b)'}"
        elif before is not None and (before.kind, token.kind) == ("text", "text"):
            mend = "put || between two texts to join them, or a comma between two operands"
        elif before is not None and before.kind == "number" and before.end == token.at:
            mend = "write a number with digits, a point and an exponent only: 1000, 12.5, 1e6"
        elif before is not None and {before.kind, token.kind} == {"word"} and token.word != "data":
            name = f'data."{before.text} {token.text}"'
            mend += f"; a name with a blank stands in double quotes: {name}"
        return wrong(token.text, "an operator", mend, token.at)

    def _value(self) -> str:
        """Return the path before the token that is read, as it was typed."""
        before = self.before
        end = before.end if before else 0
        found = re.search(r"[\w.\"\[\]]+$", self.text[max(0, end - MAX_ECHO) : end])
        return found[0] if found else "data.a"
