"""What one metric makes of one event: used, not matched, or quarantined for it.

This is the meaning that the engine's columns must equal, and what previews show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, cast

from weir.expressions.dimension import Dimension
from weir.expressions.evaluate import evaluate
from weir.expressions.numbers import scalar_text
from weir.expressions.paths import Path
from weir.expressions.tree import Node, paths_of
from weir.problems import Reason
from weir.series import encode_series

MAX_VALUE: Final = 1e100
"""The largest magnitude of a value: a pane adds up 1e200 of them before it overflows."""


class Uses(Protocol):
    """The part of a metric that says what it makes of an event."""

    @property
    def where_tree(self) -> Node | None:
        """The condition, None if every selected event matches."""
        ...

    @property
    def value_tree(self) -> Node | None:
        """What is measured, None if events are only counted."""
        ...

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """What splits it into series."""
        ...

    @property
    def distinct_path(self) -> Path | None:
        """Whose values are counted distinct, None if nobody asks."""
        ...

    @property
    def members(self) -> tuple[Path, ...]:
        """Whose texts some sketch takes, that of the distinct count among them."""
        ...

    def selects(self, event: Mapping[str, Any]) -> bool:
        """Tell whether an event is of the types and the source of the metric."""
        ...


@dataclass(frozen=True, slots=True)
class Used:
    """The event counts for this metric.

    Attributes:
        series: Text of the series it belongs to (`weir.series`).
        value: What is measured; None for a metric without `value`.
        distinct: What the distinct count sees; None: nothing, or nothing asked.
    """

    series: str
    value: float | None
    distinct: str | None


@dataclass(frozen=True, slots=True)
class NotMatched:
    """The event is of another type or source, or `where` is false or null."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The metric matches the event but cannot use it; the event still counts elsewhere."""

    reason: Reason


Outcome: TypeAlias = Used | NotMatched | Quarantined


def use(metric: Uses, event: Mapping[str, Any]) -> Outcome:
    """Return what a metric makes of an event.

    Args:
        metric: The metric.
        event: The decoded JSON of a record of `weir.events`; of duplicate members
            the last one, as every decoder of Weir does.
    """
    where = metric.where_tree
    if not metric.selects(event) or (where is not None and evaluate(where, event) is not True):
        return NotMatched()
    value = None
    if metric.value_tree is not None:
        value = cast("float | None", evaluate(metric.value_tree, event))
        fault = value_fault(metric.value_tree, value, event)
        if fault is not None:
            return Quarantined(fault)
    try:
        series = encode_series([one.read(event) for one in metric.dimensions])
        members = {path: scalar_text(path.read(event)) for path in metric.members}
    except TypeError:
        return Quarantined(Reason.VALUE_INVALID)
    counted = metric.distinct_path
    return Used(series, value, None if counted is None else members[counted])


def value_fault(tree: Node, value: float | None, event: Mapping[str, Any]) -> Reason | None:
    """Return why a value cannot be used, None if it can.

    A null is `value_missing` if anything that the expression reads is absent,
    else `value_invalid`: another JSON type, or a division by zero.
    """
    if value is not None:
        return Reason.VALUE_RANGE if abs(value) > MAX_VALUE else None
    absent = any(path.read(event) is None for path in paths_of(tree))
    return Reason.VALUE_MISSING if absent else Reason.VALUE_INVALID
