"""What is wrong with an expression: where, what was required, what came, how to mend it."""

from __future__ import annotations

from weir.problems import MAX_ECHO, Reason, echo


class ExpressionError(Exception):
    """An expression that cannot be used.

    Attributes:
        reason: The code.
        required: What stands at this place in a right expression.
        got: The part of the text that is wrong, as it was typed; empty where something is missing.
        mend: What to do.
        at: Character of the text where it is, from 0; None if it is the whole text.
        text: The whole text, once the parser that read it has told; until then None.
    """

    def __init__(
        self, reason: Reason, required: str, got: str, mend: str, at: int | None = None
    ) -> None:
        self.reason = reason
        self.required = required
        self.got = echo(got)
        self.mend = mend
        self.at = at
        self.text: str | None = None
        place = "" if at is None else f" at character {at + 1}"
        came = f'"{self.got}"' if self.got else "nothing"
        super().__init__(f"must be {required}, got {came}{place}; {mend}")

    @property
    def excerpt(self) -> str | None:
        """The line of the text and below it `^` under the place; None if that is not known."""
        if self.text is None or self.at is None:
            return None
        return excerpt_of(self.text, self.at)


def excerpt_of(text: str, at: int) -> str:
    """Return the line of a text around a character, and below it `^` under that character.

    Of a long line 64 characters are shown, with `…` where it goes on.
    """
    start = text.rfind("\n", 0, at) + 1
    line, column = text[start:].partition("\n")[0], at - start
    first = max(0, min(column - MAX_ECHO // 2, len(line) - MAX_ECHO))
    shown = "".join(c if c.isprintable() else " " for c in line[first : first + MAX_ECHO])
    before, after = "…" if first else "", "…" if first + MAX_ECHO < len(line) else ""
    return f"{before}{shown}{after}\n{' ' * (len(before) + column - first)}^"


def moved(error: ExpressionError, by: int) -> ExpressionError:
    """Return the error of a part of a text as that of the whole, in which the part begins later."""
    at = by + (error.at or 0)
    return ExpressionError(error.reason, error.required, error.got, error.mend, at)


def wrong(got: str, required: str, mend: str, at: int | None = None) -> ExpressionError:
    """Return the error of an expression that says something it must not."""
    return ExpressionError(Reason.EXPRESSION_INVALID, required, got, mend, at)


def too_large(got: str, required: str, mend: str, at: int | None = None) -> ExpressionError:
    """Return the error of an expression beyond a limit."""
    return ExpressionError(Reason.EXPRESSION_TOO_LARGE, required, got, mend, at)


def not_allowed(got: str, mend: str, at: int | None = None) -> ExpressionError:
    """Return the error of a construct or function outside the allow-list."""
    required = "made of paths, literals, operators and the listed functions"
    return ExpressionError(Reason.FUNCTION_NOT_ALLOWED, required, got, mend, at)
