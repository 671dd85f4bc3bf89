"""Patterns of `like`, cut into the texts between their `%`."""

from __future__ import annotations

from typing import Final

from weir.expressions.errors import wrong

MAX_SEGMENTS: Final = 8


def segments_of(pattern: str, at: int | None = None, typed: str | None = None) -> tuple[str, ...]:
    r"""Return the texts between the `%` of a pattern; `\%`, `\_` and `\\` stand for the sign.

    The first and the last are anchored, and empty where the pattern begins or
    ends in `%`. A pattern without `%` is one segment.

    Args:
        pattern: The pattern.
        at: Where it stands in the expression, for the error.
        typed: How it is written there, if not as it is.

    Raises:
        ExpressionError: If it has `_`, a backslash before nothing, or too many `%`.
    """
    segments, escaped = [""], False
    for sign in pattern:
        if escaped or sign not in "\\%_":
            segments[-1] += sign
            escaped = False
        elif sign == "\\":
            escaped = True
        elif sign == "%":
            segments.append("")
        else:
            mend = "write \\_ for the sign itself, or use substr to test one place"
            raise wrong(typed or pattern, 'a pattern whose only wildcard is "%"', mend, at)
    if escaped:
        raise wrong(
            typed or pattern, "a sign after the backslash", "write \\\\ for a backslash", at
        )
    if len(segments) > MAX_SEGMENTS:
        raise wrong(
            typed or pattern, f'at most {MAX_SEGMENTS - 1} "%"', "use contains, joined with and", at
        )
    if len(segments) == 1:
        return (segments[0],)
    inner = [segment for segment in segments[1:-1] if segment]
    return (segments[0], *inner, segments[-1])
