"""What a silence hides: messages of alerts, never the alerts themselves.

A silence is judged when a message is made, by processed-through as all that concerns alerts:
it hides what is found from its making to its end, as counting goes on. While counting is
behind, what it catches up with from before the silence was made is told, and what falls into
it is hidden also after its end. The outcome stands in the record of that look, so who reads
it later need not know the silence any more.

    firing, confirmed, amended, no data     held back, and recorded as such
    resolved, withdrawn, ended              told to whoever was told that it fires
    it still fires when its silence ends    told then, unless somebody has taken it on
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weir.definitions.history import Definition
from weir.definitions.silence import Silence
from weir.query.conditions import test_of


@dataclass(frozen=True, slots=True)
class Spell:
    """One version of a silence, and when it holds, by processed-through.

    Attributes:
        silence: It.
        from_ms: From when on: when it was written.
        to_ms: Before when: the next version was written; None if it is the newest.
    """

    silence: Silence
    from_ms: int
    to_ms: int | None = None

    def holds(self, through_ms: int) -> bool:
        """Tell whether this version is the one that holds."""
        return self.from_ms <= through_ms and (self.to_ms is None or through_ms < self.to_ms)


def spells(versions: Iterable[Definition]) -> list[Spell]:
    """Return when each version of a silence holds: none that was deleted meanwhile.

    A silence that is edited goes on: what it hid at an instant was said by the version before.

    Args:
        versions: The newest first.
    """
    found, to_ms = [], None
    for one in versions:
        if one.deleted:
            break
        if isinstance(one.readable, Silence):  # else the version before it goes on
            found.append(Spell(one.readable, one.at_ms, to_ms))
            to_ms = one.at_ms
    return found


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
