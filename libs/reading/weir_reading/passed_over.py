"""Records of `weir.definitions` that changed nothing, each with its reason.

Any producer may append to the topic, so readers check what they read and go on. What was
passed over is logged once and kept here, within a bound, for whoever looks for it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from typing import Final

import structlog
from weir.definitions.history import Definition
from weir.definitions.in_force import refusal
from weir.definitions.outcomes import Change, Outcome
from weir.problems import Reason

from weir_reading.follower import Record

KEPT: Final = 1_000

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Passed:
    """One such record.

    Attributes:
        offset: Where it stands in the topic.
        at_ms: When the log took it.
        tenant: Whose it would have been, by its key; empty if that says nothing.
        kind: Likewise.
        name: Likewise.
        version: The number it takes; None if it takes none.
        by: Who wrote it, by its own word; empty if it does not say.
        code: Why, as a code.
        why: Why, in words.
    """

    offset: int
    at_ms: int
    tenant: str
    kind: str
    name: str
    version: int | None
    by: str
    code: str
    why: str


class PassedOver:
    """The newest records that were passed over."""

    def __init__(self) -> None:
        self._found: deque[Passed] = deque(maxlen=KEPT)

    def of(self, tenant: str) -> list[Passed]:
        """Return those of a tenant, the newest first."""
        return [one for one in reversed(self._found) if one.tenant == tenant]

    def take(self, record: Record, change: Change) -> None:
        """Note what became of a record, and log it if it was passed over."""
        for found in passed(record, change):
            self._found.append(found)
            if found.code == Reason.VERSION_CONFLICT:
                # Of two writers at the same time one loses and is told so: that is no fault.
                log.info("definition_passed_over", **asdict(found))
            else:
                log.error("definition_passed_over", **asdict(found))


def passed(record: Record, change: Change) -> list[Passed]:
    """Return what was passed over with a record: itself, and what a bundle held until then."""
    lost = [
        _of_version(one.version, record, Reason.VERSION_CONFLICT, one.why, None)
        for one in change.lost
    ]
    refused = [
        _of_version(one, record, problem.reason, problem.message, one.version)
        for one in change.versions
        if (problem := refusal(one)) is not None
    ]
    is_told = any(one.version.vid == record.offset for one in change.lost)
    alone = None if is_told else _alone(record, change)
    return [*lost, *refused, *([] if alone is None else [alone])]


def _of_version(
    one: Definition, record: Record, code: Reason, why: str, version: int | None
) -> Passed:
    return Passed(one.vid, record.at_ms, *one.place, version, one.by, code.value, why)


def _alone(record: Record, change: Change) -> Passed | None:
    """Return a record that made nothing as one that was passed over; None of a driver's."""
    if change.applied or change.outcome in (Outcome.FENCED, Outcome.HELD):
        return None
    if change.outcome is Outcome.CONFLICT:
        code, why = Reason.VERSION_CONFLICT, f"another change came first: {change.note}"
    else:
        code, why = Reason.DEFINITION_INVALID, _WORDS[change.outcome] + change.note
    return Passed(record.offset, record.at_ms, *_place(record.key), None, "", code.value, why)


_WORDS: Final = {
    Outcome.UNKNOWN: "the record must be of a format that this release reads, got ",
    Outcome.UNREADABLE: "the record must be a change of a definition, got ",
}


def _place(key: bytes) -> tuple[str, str, str]:
    tenant, _, rest = key.decode("utf-8", "replace").partition("/")
    kind, _, name = rest.partition("/")
    return (tenant, kind, name) if name else ("", "", "")
