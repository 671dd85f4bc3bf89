"""What is wrong with an expression: where, what was required, what came, how to mend it."""

from __future__ import annotations

from weir.problems import Reason, echo


class ExpressionError(Exception):
    """An expression that cannot be used.

    Attributes:
        reason: The code.
        required: What stands at this place in a right expression.
        got: The part of the text that is wrong.
        mend: What to do.
        at: Character of the text where it is, from 0; None if only `got` tells.
    """

    def __init__(
        self, reason: Reason, required: str, got: str, mend: str, at: int | None = None
    ) -> None:
        self.reason = reason
        self.required = required
        self.got = echo(got)
        self.mend = mend
        self.at = at
        place = "" if at is None else f" at character {at + 1}"
        super().__init__(f'must be {required}, got "{self.got}"{place}; {mend}')


def wrong(got: str, required: str, mend: str, at: int | None = None) -> ExpressionError:
    """Return the error of an expression that says something it must not."""
    return ExpressionError(Reason.EXPRESSION_INVALID, required, got, mend, at)


def too_large(got: str, required: str, mend: str) -> ExpressionError:
    """Return the error of an expression beyond a limit."""
    return ExpressionError(Reason.EXPRESSION_TOO_LARGE, required, got, mend)


def not_allowed(got: str, mend: str, at: int | None = None) -> ExpressionError:
    """Return the error of a construct or function outside the allow-list."""
    required = "made of paths, literals, operators and the listed functions"
    return ExpressionError(Reason.FUNCTION_NOT_ALLOWED, required, got, mend, at)
