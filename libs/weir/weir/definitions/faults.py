"""How a validator says what is wrong: with a code, and with the mend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticCustomError

from weir.expressions.errors import ExpressionError, excerpt_of
from weir.problems import Reason

FAULT = "weir"


def fault(
    *,
    required: str,
    mend: str,
    reason: Reason = Reason.DEFINITION_INVALID,
    got: str | None = None,
    place: Mapping[str, Any] | None = None,
) -> PydanticCustomError:
    """Return the error of a field; `check.py` adds the place.

    Args:
        required: What the field must be, as it follows "must be".
        mend: What to do.
        reason: The code.
        got: What came, where that is not simply the field's value.
        place: `at`, a character of `text`, which is the field's value or a part of it.
    """
    context = {"required": required, "mend": mend, "reason": reason.value, "got": got or ""}
    context |= place or {}
    return PydanticCustomError(FAULT, "must be {required}", context)


def expression_fault(error: ExpressionError) -> PydanticCustomError:
    """Return the error of a field that holds an expression."""
    place = None if error.at is None else {"at": error.at, "text": error.text or ""}
    return fault(
        required=error.required, mend=error.mend, reason=error.reason, got=error.got, place=place
    )


def place_in(value: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return where in the value of a field the fault of an expression is; nothing if unknown.

    Returns:
        `at`, the character from 0, and `excerpt`, the line with `^` below that character.
    """
    if "at" not in context or not isinstance(value, str):
        return {}
    # What stands in brackets, as in `distinct(data.a)`, was read by itself.
    start = max(value.find(context["text"]), 0)
    at = start + context["at"]
    return {"at": at, "excerpt": excerpt_of(value, at)}
