"""Aggregates by their names: what a query may ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from weir.definitions.aggregates import USUAL_TOP
from weir.query.aggregates import Aggregate, Count, Deviation, Extreme, Newest, Percentile, Sum
from weir.query.aggregates_of_texts import Distinct, Frequent, Members

PLAIN: Final[dict[str, Aggregate]] = {
    "count": Count(per_second=False),
    "rate": Count(per_second=True),
    "sum": Sum(average=False),
    "avg": Sum(average=True),
    "min": Extreme(largest=False),
    "max": Extreme(largest=True),
    "stddev": Deviation(),
    "last": Newest(),
    "distinct": Distinct(),
    "theta": Members(),
}
_PERCENTILE: Final = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)")
_TOP: Final = re.compile(r"top(?:\(.*?(?:,\s*(\d{1,3})\s*)?\))?", re.DOTALL)
ALWAYS: Final = ("count", "rate")
"""Kept with every row, so that they need no declaration."""


def aggregate_named(name: str) -> Aggregate | None:
    """Return the aggregate of a name such as `avg`, `p99` or `distinct`; None if unknown."""
    percentile = _PERCENTILE.fullmatch(name)
    if percentile and float(percentile[1]) > 0:
        # Read as a decimal: 99.9 / 100 is not the double nearest to 0.999.
        return Percentile(float(percentile[1] + "e-2"))
    top = _TOP.fullmatch(name)
    if top:
        return Frequent(int(top[1] or USUAL_TOP))
    return PLAIN.get(short_name(name))


def short_name(declared: str) -> str:
    """Return what a declared aggregate is asked by: `distinct(subject)` is `distinct`.

    A percentile has one name, however it is spelled: `p05` is `p5`.
    """
    percentile = _PERCENTILE.fullmatch(declared)
    return f"p{float(percentile[1]):g}" if percentile else declared.partition("(")[0]


def declared_as(asked: str, declared: Iterable[str]) -> str:
    """Return how a metric declares what is asked: a `top` has its length there."""
    return next((name for name in declared if short_name(name) == short_name(asked)), asked)
