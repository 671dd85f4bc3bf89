"""The functions of the language: what each takes, gives and means.

A function is one line here and one in the engine's table; a test holds the two
lists equal. None depends on a locale, a version of Unicode, a time zone, a clock or
chance, and none gives a text much longer than those that it is given: what a chain
of them makes of an event is bounded by the event's size (see `growth` in `parse.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from weir.expressions import agents, calculations, texts, times, urls
from weir.expressions.numbers import number_text
from weir.expressions.tree import Kind

MAX_PADDED: Final = 256
MAX_DIGITS: Final = 15
MAX_JOINED: Final = 8
"""How many texts of an event one text may be joined of."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What an operand must be that is said in the definition, and not read from events.

    Attributes:
        required: In words.
        holds: Whether a literal is so.
    """

    required: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand: its kind, and the rule of a literal if it must be one."""

    kind: Kind
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A function.

    Attributes:
        takes: Its operands; the last `optional` of them may be left out.
        gives: Kind of the result.
        apply: Its meaning; never called with a null.
        example: How it is written, for errors and docs.
        optional: How many may be left out.
        repeats: Whether the last operand may come again and again.
    """

    takes: tuple[Operand, ...]
    gives: Kind
    apply: Callable[..., Any]
    example: str
    optional: int = 0
    repeats: bool = False


def _whole(least: int, most: int) -> Rule:
    def holds(value: Any) -> bool:
        return isinstance(value, float) and value.is_integer() and least <= value <= most

    required = f"a whole number from {least} to {most}"
    return Rule(required if most < texts.REST else f"a whole number from {least} on", holds)


def _place(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer() and 0 < abs(value) <= texts.REST


def _one_of(values: tuple[str, ...]) -> Rule:
    return Rule(f"one of {', '.join(values)}", lambda value: value in values)


_SOME_TEXT: Final = Rule("a text of at least one character", lambda value: value != "")

_T, _N = Operand(Kind.TEXT), Operand(Kind.NUMBER)
_SOME: Final = Operand(Kind.TEXT, _SOME_TEXT)
_PARAMETER: Final = Operand(
    Kind.TEXT,
    Rule("the name of a parameter, without & = #", lambda v: bool(v) and not set("&=#") & set(v)),
)
_ANY_TEXT: Final = Operand(Kind.TEXT, Rule("a text", lambda _value: True))
_FROM_1: Final = Operand(Kind.NUMBER, _whole(1, texts.REST))
_COUNT: Final = Operand(Kind.NUMBER, _whole(0, texts.REST))
_PADDED: Final = Operand(Kind.NUMBER, _whole(0, MAX_PADDED))
_DIGITS: Final = Operand(Kind.NUMBER, _whole(0, MAX_DIGITS))
_PLACE: Final = Operand(Kind.NUMBER, Rule("a whole number, not 0", _place))
_UNIT: Final = Operand(Kind.TEXT, _one_of(times.UNITS))


def _text(
    example: str,
    apply: Callable[..., Any],
    *takes: Operand,
    optional: int = 0,
    repeats: bool = False,
) -> Function:
    return Function(takes, Kind.TEXT, apply, example, optional, repeats)


def _number(
    example: str, apply: Callable[..., Any], *takes: Operand, optional: int = 0
) -> Function:
    return Function(takes, Kind.NUMBER, apply, example, optional)


def _test(example: str, apply: Callable[..., Any], *takes: Operand) -> Function:
    return Function(takes, Kind.BOOL, apply, example)


TO_TEXT: Final = "to_text"
"""Of a number; of a truth it is said by another node."""

_OF_TEXT: Final = {
    "lower": _text("lower(data.code)", texts.lower, _T),
    "upper": _text("upper(data.code)", texts.upper, _T),
    "trim": _text("trim(data.code)", texts.trim, _T, _SOME, optional=1),
    "ltrim": _text("ltrim(data.code, '0')", texts.ltrim, _T, _SOME, optional=1),
    "rtrim": _text("rtrim(data.code)", texts.rtrim, _T, _SOME, optional=1),
    "lpad": _text("lpad(data.code, 8, '0')", texts.lpad, _T, _PADDED, _SOME, optional=1),
    "rpad": _text("rpad(data.code, 8)", texts.rpad, _T, _PADDED, _SOME, optional=1),
    "substr": _text("substr(data.code, 1, 2)", texts.substr, _T, _FROM_1, _COUNT, optional=1),
    "left": _text("left(data.code, 2)", texts.left, _T, _COUNT),
    "right": _text("right(data.code, 2)", texts.right, _T, _COUNT),
    "concat": _text("concat(data.first, ' ', data.last)", texts.concat, _T, repeats=True),
    "replace": _text("replace(data.code, '-', '')", str.replace, _T, _SOME, _ANY_TEXT),
    "split_part": _text("split_part(data.code, '-', 1)", texts.split_part, _T, _SOME, _PLACE),
    "url_host": _text("url_host(data.url)", urls.host, _T),
    "url_path": _text("url_path(data.url)", urls.path, _T),
    "url_query": _text("url_query(data.url, 'utm_source')", urls.query, _T, _PARAMETER),
    "ua_browser": _text("ua_browser(data.agent)", agents.browser, _T),
    "ua_os": _text("ua_os(data.agent)", agents.os, _T),
    "ua_device": _text("ua_device(data.agent)", agents.device, _T),
    "length": _number("length(data.code)", lambda t: float(len(t)), _T),
    "position": _number("position('-' in data.code)", texts.position, _T, _T),
    "to_number": _number("to_number(data.size)", texts.to_number, _T),
    "to_time": _number("to_time(data.ordered_at)", times.to_time, _T),
    "starts_with": _test("starts_with(data.code, 'A')", str.startswith, _T, _T),
    "ends_with": _test("ends_with(data.code, 'A')", str.endswith, _T, _T),
    "contains": _test("contains(data.code, 'A')", str.__contains__, _T, _T),
}
_OF_NUMBERS: Final = {
    TO_TEXT: _text("to_text(data.total)", number_text, _N),
    "abs": _number("abs(data.change)", abs, _N),
    "sign": _number("sign(data.change)", calculations.sign, _N),
    "round": _number("round(data.price, 2)", calculations.rounded, _N, _DIGITS, optional=1),
    "floor": _number("floor(data.price)", calculations.floor, _N),
    "ceil": _number("ceil(data.price)", calculations.ceil, _N),
    "sqrt": _number("sqrt(data.area)", calculations.sqrt, _N),
    "exp": _number("exp(data.x)", calculations.exp, _N),
    "ln": _number("ln(data.size)", calculations.ln, _N),
    "log10": _number("log10(data.size)", calculations.log10, _N),
    "power": _number("power(data.width, 2)", calculations.power, _N, _N),
    "year": _number("year(time)", times.year, _N),
    "month": _number("month(time)", times.month, _N),
    "day": _number("day(time)", times.day, _N),
    "day_of_week": _number("day_of_week(time)", times.day_of_week, _N),
    "hour": _number("hour(time)", times.hour, _N),
    "minute": _number("minute(time)", times.minute, _N),
    "date_trunc": _number("date_trunc('day', time)", times.date_trunc, _UNIT, _N),
}
FUNCTIONS: Final[dict[str, Function]] = {**_OF_TEXT, **_OF_NUMBERS}

APPROXIMATED: Final = frozenset(("exp", "ln", "log10", "power"))
"""Where Python and Spark may differ in the last digit of a double."""

COALESCE, LEAST, GREATEST = "coalesce", "least", "greatest"
CHOOSING: Final = (COALESCE, LEAST, GREATEST)
"""Functions of operands of any one kind that pass over nulls: the first, least or greatest."""

IF, NULLIF, MOD, AGE = "if", "nullif", "mod", "age"
ARRAY_LENGTH, HAS = "array_length", "has"
SAID_OTHERWISE: Final = {
    IF: "if(data.paid, data.total, 0)",
    NULLIF: "nullif(data.total, 0)",
    MOD: "mod(data.total, 10)",
    AGE: "age(data.created_ms)",
    ARRAY_LENGTH: "array_length(data.items)",
    HAS: "has(data.tags, 'eu')",
}
"""Functions that other nodes of the tree say -> how each is written."""

NAMES: Final = (*FUNCTIONS, *CHOOSING, *SAID_OTHERWISE)

ALIASES: Final = {
    **{"lcase": "lower", "ucase": "upper", "startswith": "starts_with", "endswith": "ends_with"},
    **{"len": "length", "char_length": "length", "character_length": "length"},
    **{"substring": "substr", "strpos": "position", "ceiling": "ceil", "pow": "power"},
    **{"ifnull": COALESCE, "nvl": COALESCE, "iff": IF, "array_contains": HAS},
}
"""Other names that SQL knows."""
