"""How much one query may ask for, and the refusals that say so."""

from __future__ import annotations

import math
from typing import Final, NoReturn

from weir.definitions.durations import format_duration
from weir.panes import ceil_to, nearest_multiples
from weir.problems import ProblemError, Reason, echo

MAX_POINTS: Final = 11_000
MAX_SERIES: Final = 500
MAX_VALUES: Final = 200_000
MAX_PANES: Final = 100_000
# Steps, or divisors of a step, in one window: what a window is merged from.
MAX_BLOCKS: Final = 100_000
_READ_LESS: Final = "ask for a shorter range, or for lengths and steps that coarser panes divide"


def refuse(pointer: str, required: str, got: object, mend: str) -> NoReturn:
    """Refuse one member of a query.

    Raises:
        ProblemError: `query_invalid`, always.
    """
    place = {"pointer": pointer, "required": required, "got": echo(str(got)), "mend": mend}
    message = f'{pointer.strip("/")} must be {required}, got "{echo(str(got))}"; {mend}'
    raise ProblemError(422, Reason.QUERY_INVALID, message, (place,))


def _refuse_size(what: str, got: int, most: int, fits: str) -> NoReturn:
    message = f"query must have at most {most:,} {what}, got {got:,}; {fits}"
    raise ProblemError(422, Reason.QUERY_TOO_LARGE, message)


def check_multiple(pointer: str, length_ms: int, grain_ms: int) -> None:
    """Refuse a length that is not whole panes, naming the two nearest that are.

    Raises:
        ProblemError: `query_invalid`.
    """
    if length_ms % grain_ms == 0:
        return
    below, above = nearest_multiples(length_ms, grain_ms)
    nearest = " or ".join(format_duration(near) for near in dict.fromkeys((below, above)))
    refuse(
        pointer,
        f"whole panes of {format_duration(grain_ms)}",
        format_duration(length_ms),
        f"the nearest are {nearest}" if " or " in nearest else f"the nearest is {nearest}",
    )


def check_points(count: int, span_ms: int, grain_ms: int) -> None:
    """Refuse more points a series than allowed, naming a step that fits.

    Raises:
        ProblemError: `query_too_large`.
    """
    if count > MAX_POINTS:
        step = format_duration(ceil_to(-(-span_ms // MAX_POINTS), grain_ms))
        _refuse_size("points a series", count, MAX_POINTS, f"a step of {step} fits")


def check_window(length_ms: int, step_ms: int, grain_ms: int) -> None:
    """Refuse windows that are merged from more parts than allowed, naming a step that fits.

    Raises:
        ProblemError: `query_too_large`.
    """
    parts = length_ms // math.gcd(length_ms, step_ms)
    if parts > MAX_BLOCKS:
        step = format_duration(ceil_to(-(-length_ms // MAX_BLOCKS), grain_ms))
        fits = f"take a step of at least {step} and a length that is a multiple of it"
        _refuse_size("steps a window", parts, MAX_BLOCKS, fits)


def check_panes(count: int) -> None:
    """Refuse to read more panes than allowed.

    Raises:
        ProblemError: `query_too_large`.
    """
    if count > MAX_PANES:
        _refuse_size("panes to read", count, MAX_PANES, _READ_LESS)


def check_bytes(count: int, most: int) -> None:
    """Refuse to hold more bytes of rows than allowed.

    Raises:
        ProblemError: `query_too_large`.
    """
    if count > most:
        _refuse_size("bytes of rows to read", count, most, _READ_LESS)


def check_series(count: int, points: int) -> None:
    """Refuse more series or values than allowed, naming how many fit.

    Raises:
        ProblemError: `query_too_large`.
    """
    fitting = min(MAX_SERIES, MAX_VALUES // max(1, points))
    fits = f"set limit.top to at most {fitting}, filter, or group by fewer dimensions"
    if count > MAX_SERIES:
        _refuse_size("series", count, MAX_SERIES, fits)
    if count * points > MAX_VALUES:
        fits += ", or take a longer step"
        _refuse_size("values", count * points, MAX_VALUES, fits)
