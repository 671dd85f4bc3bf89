"""The functions of the language: what each takes, gives and means.

A function is one line here and one in the engine's table; a test holds the two
lists equal. None enlarges its input, none depends on a locale, a version of
Unicode, a clock or chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from weir.expressions.tree import Kind

_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_INT64: Final = (-(2**63), 2**63 - 1)
REST: Final = 2**31 - 1
"""The length that `substr` takes when none is given."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function.

    Attributes:
        takes: Kinds of the operands; the last `optional` of them may be left out.
        gives: Kind of the result.
        apply: Its meaning; never called with a null.
        literal_from: Operands from this place on must be literal whole numbers.
        optional: How many may be left out.
        example: How it is written, for errors and docs.
    """

    takes: tuple[Kind, ...]
    gives: Kind
    apply: Callable[..., Any]
    example: str
    literal_from: int = 99
    optional: int = 0


def _substr(text: str, start: float, length: float = REST) -> str:
    begin = int(start) - 1
    return text[begin : begin + int(length)]


def _whole(number: int) -> float:
    # A 64-bit integer, as Spark's: beyond it the nearest one.
    return float(min(max(number, _INT64[0]), _INT64[1]))


_TEXT, _NUMBER, _BOOL = Kind.TEXT, Kind.NUMBER, Kind.BOOL

FUNCTIONS: Final[dict[str, Function]] = {
    "lower": Function((_TEXT,), _TEXT, lambda t: t.translate(_LOWER), "lower(data.code)"),
    "upper": Function((_TEXT,), _TEXT, lambda t: t.translate(_UPPER), "upper(data.code)"),
    "length": Function((_TEXT,), _NUMBER, lambda t: float(len(t)), "length(data.code)"),
    "substr": Function(
        (_TEXT, _NUMBER, _NUMBER), _TEXT, _substr, "substr(data.code, 1, 2)", 1, optional=1
    ),
    "starts_with": Function((_TEXT, _TEXT), _BOOL, str.startswith, "starts_with(data.code, 'A')"),
    "ends_with": Function((_TEXT, _TEXT), _BOOL, str.endswith, "ends_with(data.code, 'A')"),
    "contains": Function((_TEXT, _TEXT), _BOOL, str.__contains__, "contains(data.code, 'A')"),
    "abs": Function((_NUMBER,), _NUMBER, abs, "abs(data.change)"),
    "round": Function((_NUMBER,), _NUMBER, lambda x: float(round(x)), "round(data.price)"),
    "floor": Function((_NUMBER,), _NUMBER, lambda x: _whole(math.floor(x)), "floor(data.price)"),
    "ceil": Function((_NUMBER,), _NUMBER, lambda x: _whole(math.ceil(x)), "ceil(data.price)"),
}
COALESCE: Final = "coalesce"
"""The one function with operands of any one kind, and the one that is asked about nulls."""

NAMES: Final = (*FUNCTIONS, COALESCE)
