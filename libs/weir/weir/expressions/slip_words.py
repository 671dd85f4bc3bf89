"""Words and signs that stand between values, and what to write for those that do not."""

from __future__ import annotations

from typing import Final

OPERATORS: Final = frozenset(
    ("=", "==", "!=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", ".")
)
"""Signs that may stand behind a value."""

WORDS: Final = frozenset(
    (
        *("and", "or", "is", "in", "like", "ilike", "between"),
        *("when", "then", "else", "end", "from", "for", "escape"),
    )
)
"""Words that may stand behind a value, and never are one."""

ABSENT: Final = frozenset(("both", "leading", "trailing"))
"""Words before the first operand of `trim`, which are none."""

ELSEWHERE: Final = "operators are = != < <= > >= + - * / % || and or in like between is"

_POWER: Final = "write power(data.a, 2)"
_NO_BITS: Final = "numbers have no bits here; write and or or between conditions"
_LIKE: Final = "write like 'a%', in which % stands for any characters"
_MEMBER: Final = "name the member with points: data.cart.total"
_IF: Final = "write if(data.paid, data.total, 0)"

SIGNS: Final = {
    **{"&&": "write and", "&": _NO_BITS, "|": "write or; two texts are joined by ||"},
    **{"^": _POWER, "**": _POWER, "//": "write floor(data.a / 2)"},
    **{"=>": "write >=", "=<": "write <=", "><": "write !=", "===": "write =", "!==": "write !="},
    **{"<=>": "write =; whether something is null asks is null", ":=": "write =", "!": "write not"},
    **{"<<": _NO_BITS, ">>": _NO_BITS, "~": _LIKE, "=~": _LIKE, "!~": "write not like 'a%'"},
    **{"->": _MEMBER, "->>": _MEMBER, "?.": _MEMBER, ":": _MEMBER},
    "::": "write to_number(data.size) for a number out of a text, to_text(data.total) for a text",
    **{"?": _IF, "??": "write coalesce(data.a, 0)"},
    **{"≥": "write >=", "≤": "write <=", "≠": "write !=", "\N{MINUS SIGN}": "write -"},
    **{"\N{EN DASH}": "write -", "\N{MULTIPLICATION SIGN}": "write *", "÷": "write /"},
    **dict.fromkeys(("$", "@"), "name a member of the event: data.amount"),
    "{": "a list stands in round brackets: in (1, 2)",
}
"""Sign of another language -> what to write in its place."""

BEFORE: Final = {
    "interval": "a length of time is a number of milliseconds: age(data.ms) > 86400000",
    **dict.fromkeys(("date", "timestamp"), "write to_time('2026-01-31') for an instant"),
}
"""Word before a text in SQL -> what to write in place of both."""

QUOTES: Final = ("\N{LEFT SINGLE QUOTATION MARK}", "\N{RIGHT SINGLE QUOTATION MARK}", *"“”„")
"""Quotes of a typesetter, which are none."""

UNSAID: Final = {
    **dict.fromkeys(("rlike", "regexp", "matches", "similar", "glob", "match"), _LIKE),
    **dict.fromkeys(("equals", "eq"), "write ="),
    **{"ne": "write !=", "gt": "write >", "ge": "write >=", "lt": "write <", "le": "write <="},
    **{"div": "write floor(data.a / 2)", "xor": "write (data.a = 1) != (data.b = 2)"},
    "over": "leave it out: an expression sees one event",
    "as": "leave it out: only a dimension is given a name, behind the whole of it",
    "collate": "leave it out: text is compared by code point, or in small letters by lower(data.a)",
    "at": "leave it out: times are milliseconds in UTC, hour(time + 3600000) is of another zone",
}
"""Word of another language -> what to write in its place."""
