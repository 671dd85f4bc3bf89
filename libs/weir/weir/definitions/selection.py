"""Which events a metric counts: by type and by source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field

from weir.definitions.base import Model
from weir.definitions.faults import fault

MAX_TYPES: Final = 32


def _listed(value: Any) -> Any:
    """Take one text for a list of one, and a list of JSON for a tuple."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _checked_type(pattern: str) -> str:
    if not pattern or "*" in pattern[:-1] or len(pattern) > 256:
        raise fault(
            required='an event type, a prefix ending in "*", or "*" alone',
            mend='write the type as it is sent: "com.acme.order", or "com.acme.*"',
        )
    return pattern


TypePattern = Annotated[str, AfterValidator(_checked_type)]
SourceName = Annotated[str, Field(min_length=1, max_length=256)]


class Selection(Model):
    """The events of a metric.

    Attributes:
        type: Types; one ending in `*` stands for every type that begins so.
        source: Names of sources as the credentials give them (`weirsource`);
            empty: every source.
    """

    type: Annotated[
        tuple[TypePattern, ...], BeforeValidator(_listed), Field(min_length=1, max_length=MAX_TYPES)
    ]
    source: Annotated[
        tuple[SourceName, ...], BeforeValidator(_listed), Field(max_length=MAX_TYPES)
    ] = ()

    @property
    def exact_types(self) -> tuple[str, ...]:
        """The types that are named in full."""
        return tuple(t for t in self.type if not t.endswith("*"))

    @property
    def type_prefixes(self) -> tuple[str, ...]:
        """The beginnings of the others, without the `*`; an empty one is every type."""
        return tuple(t[:-1] for t in self.type if t.endswith("*"))

    def matches(self, event: Mapping[str, Any]) -> bool:
        """Tell whether an event is of the types and from a source of the metric."""
        return self.matches_type(str(event.get("type", ""))) and (
            not self.source or event.get("weirsource") in self.source
        )

    def matches_type(self, event_type: str) -> bool:
        """Tell whether events of a type are of the metric, whatever their source."""
        return event_type in self.exact_types or event_type.startswith(self.type_prefixes)
