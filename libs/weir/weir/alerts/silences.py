"""What a silence hides: messages of alerts, never the alerts themselves.

A silence is judged when a message is made, by processed-through as all that concerns alerts:
a job that was away for an hour hides what it would have hidden then. So the outcome stands
in the record of that look, and who reads it later need not know the silence any more.

    firing, confirmed, amended, no data     held back, and recorded as such
    resolved, withdrawn, ended              told to whoever was told that it fires
    it still fires when its silence ends    told then, unless somebody has taken it on
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weir.definitions.silence import Silence
from weir.query.conditions import test_of


def hides(silence: Silence, rule: str, labels: Mapping[str, str | None], through_ms: int) -> bool:
    """Tell whether a silence hides messages of an alert.

    Args:
        silence: The silence.
        rule: The alert's rule.
        labels: Values of the rule's dimensions, and the rule's own labels.
        through_ms: Processed-through.
    """
    if through_ms >= silence.until or silence.rule not in (None, rule):
        return False
    return all(test_of(one.op, one.value)(_label(labels, one.dimension)) for one in silence.where)


def hiding(
    silences: Iterable[Silence], rule: str, labels: Mapping[str, str | None], through_ms: int
) -> list[str]:
    """Return the names of the silences that hide messages of an alert."""
    return [one.name for one in silences if hides(one, rule, labels, through_ms)]


def _label(labels: Mapping[str, str | None], name: str) -> str | None:
    """Return a label's value; of `data.region` also by its short name."""
    return labels[name] if name in labels else labels.get(f"data.{name}")
