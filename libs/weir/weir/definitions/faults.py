"""How a validator says what is wrong: with a code, and with the mend."""

from __future__ import annotations

from pydantic_core import PydanticCustomError

from weir.expressions.errors import ExpressionError
from weir.problems import Reason

FAULT = "weir"


def fault(
    *, required: str, mend: str, reason: Reason = Reason.DEFINITION_INVALID, got: str | None = None
) -> PydanticCustomError:
    """Return the error of a field; `check.py` adds the place.

    Args:
        required: What the field must be, as it follows "must be".
        mend: What to do.
        reason: The code.
        got: What came, where that is not simply the field's value.
    """
    context = {"required": required, "mend": mend, "reason": reason.value, "got": got or ""}
    return PydanticCustomError(FAULT, "must be {required}", context)


def expression_fault(error: ExpressionError) -> PydanticCustomError:
    """Return the error of a field that holds an expression."""
    place = "" if error.at is None else f" (character {error.at + 1})"
    return fault(
        required=error.required, mend=error.mend, reason=error.reason, got=error.got + place
    )
