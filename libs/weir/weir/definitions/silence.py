"""Silences: which alerts tell nobody, until when, and why. Who says so stands in the record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from weir.definitions.base import DefinitionModel, Name
from weir.definitions.conditions import Conditions
from weir.definitions.faults import fault

_MEND: Final = "write it like 2027-01-31T18:00:00Z"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# What is later in another zone could not be written as UTC.
_LAST_MS: Final = 253_370_764_800_000  # 9999-01-01


def instant_text(at_ms: int) -> str:
    """Return an instant as definitions write it: UTC, in whole seconds where it is on one."""
    exact = "milliseconds" if at_ms % 1000 else "seconds"
    at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec=exact)
    return at.replace("+00:00", "Z")


def _read(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None


def _instant(value: Any) -> int:
    # YAML knows instants, JSON has texts.
    at = value if isinstance(value, datetime) else _read(value)
    if at is None or at.tzinfo is None:
        raise fault(required="an instant with its zone", mend=_MEND)
    at_ms = round((at - _EPOCH).total_seconds() * 1000)
    if not 0 <= at_ms < _LAST_MS:
        raise fault(required="an instant of the years 1970 to 9998", mend=_MEND)
    return at_ms


Instant = Annotated[int, BeforeValidator(_instant), PlainSerializer(instant_text, return_type=str)]
"""A field written in ISO 8601 with a zone, and held as epoch milliseconds."""


class Silence(DefinitionModel):
    """A silence. It hides an alert for which all that it says holds.

    Attributes:
        rule: Alerts of this rule; None: of any.
        where: What their labels must be: dimensions and the rule's own.
        until: Up to when, as counting goes on: an event's received time.
        reason: Why, for people.
    """

    kind: Literal["silence"] = "silence"
    rule: Name | None = None
    where: Conditions = ()
    until: Instant
    reason: str = Field(default="", max_length=1_000)

    @model_validator(mode="after")
    def _of_something(self) -> Silence:
        if self.rule is None and not self.where:
            raise fault(
                required="a silence of a rule, or of labels",
                mend="write rule: slow_checkout, or where: \"region = 'eu'\"",
                got="neither, which would silence everything",
            )
        return self
