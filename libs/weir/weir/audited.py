"""What the outcome of an audit says that it did not compare, and why. Pure.

Light on purpose: the command line reads outcomes, too, and starts without the schema of
definitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

LEDGER: Final = "the ledger"
"""What `not_compared` calls it; no metric is called so."""


class Bound(StrEnum):
    """Why an audit does not reach further back."""

    LAST = "last"
    """No more was asked for."""
    RETENTION = "retention"
    """The log, or what is served, has no older panes whole."""
    RECORDS = "records"
    """More of the log would be read than may be, or it does not say how much."""


class Lack(StrEnum):
    """Why an audit compared nothing of something, or not all of its sample."""

    LEFT_OUT = "left_out"
    """There was no room for panes."""
    OVERTAKEN = "overtaken"
    """Retention took something of its panes before they were read."""
    NOT_DRAWN = "not_drawn"
    """No pane was drawn from as far back as the audit reaches: see its `Bound`."""
    FAILED = "failed"
    """The audit ended without an outcome."""


def bound_of(outcome: Mapping[str, Any]) -> Bound | None:
    """Return why an audit does not reach further back; None where another release knows more."""
    said = outcome.get("bounded_by")
    return Bound(said) if said in set(Bound) else None


def lack_of(told: Mapping[str, Any]) -> Lack | None:
    """Return what an outcome lacks of a metric, or of the ledger; None where it lacks nothing."""
    if told.get("left_out"):
        return Lack.LEFT_OUT
    if told.get("overtaken"):
        return Lack.OVERTAKEN
    return None if _compared(told) else Lack.NOT_DRAWN


def not_compared(outcome: Mapping[str, Any]) -> dict[str, Lack]:
    """Return of what an audit compared nothing, and why."""
    told = dict(_told(outcome))
    names = outcome.get("not_compared", ())
    return {name: lack_of(told.get(name, {})) or Lack.NOT_DRAWN for name in names}


def compared_in_part(outcome: Mapping[str, Any]) -> list[str]:
    """Return of what an audit compared some of the sample and not all."""
    return [name for name, told in _told(outcome) if _compared(told) and lack_of(told)]


def _compared(told: Mapping[str, Any]) -> int:
    """Return how many panes, or minutes, were compared."""
    found: int = told.get("panes") or told.get("minutes") or 0
    return found


def _told(outcome: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for told in outcome.get("metrics", ()):
        yield told["metric"], told
    if ledger := outcome.get("ledger"):
        yield LEDGER, ledger
