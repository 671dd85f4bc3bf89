"""What the API takes and gives of definitions: texts, versions, differences, previews."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from weir.definitions.bundles import MOST

from weir_dashboard.api.models import ProblemPlace, Sent, Told

MOST_PLANNED = MOST
"""Definitions that are judged in one request: as many as a bundle can store."""


class DefinitionText(Sent):
    """The text of a definition, YAML 1.2 or JSON."""

    text: Annotated[str, Field(max_length=262_144)]


class Draft(DefinitionText):
    """The text of a definition that is not stored yet."""

    kind: str | None = None
    name: str | None = None


class Refused(Told):
    """A record of `weir.definitions` that every reader passes over, and why.

    `version` is the number that it takes all the same; null if it takes none. What was in
    force before it stays in force.
    """

    offset: int
    kind: str
    name: str
    version: int | None
    by: str
    at_ms: int
    code: str
    message: str


class StoredDefinition(Told):
    """A stored definition: the version in force.

    `refused`: a newer version that readers pass over, which somebody wrote past this API.
    """

    kind: str
    name: str
    version: int
    text: str
    parsed: dict[str, Any]
    by: str
    at_ms: int
    vid: int
    state: Literal["serving", "starting", "stored"]
    refused: Refused | None = None


class Change(Told):
    """One edit of a definition; `refused` says why readers pass it over, if they do."""

    version: int
    op: Literal["put", "delete"]
    text: str | None
    by: str
    at_ms: int
    vid: int
    refused: str | None = None


class TenantChange(Change):
    """One edit of any definition; of a key without its text."""

    kind: str
    name: str


class RollbackTo(Sent):
    """The version whose text is to be in force again, as a new version."""

    version: Annotated[int, Field(ge=1, lt=2**31)]


class DiffQuery(Sent):
    """What is compared: a text, or a version, with the version in force or another."""

    kind: str | None = None
    name: str | None = None
    text: Annotated[str, Field(max_length=262_144)] | None = None
    version: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    against: Annotated[int, Field(ge=1, lt=2**31)] | None = None


class MemberDiff(Told):
    """A member that differs: its place, and what it was and is; null where it is not there."""

    pointer: str
    old: Any
    new: Any


class DefinitionDiff(Told):
    """How two texts of a definition differ.

    `same`: they mean the same, whatever their comments and order. `text` is a unified diff,
    empty where not a letter differs; `old_version` is null where there is none yet.
    """

    kind: str
    name: str
    old_version: int | None
    new_version: int | None
    same: bool
    text: str
    members: list[MemberDiff]


class Progress(Told):
    """How far the version of a definition that is in force is in use.

    `active`: it is counted live (metrics), or in use at once (all other kinds). `waits_for`: why
    it is not counted, or its lanes stand still, and what to do; null while it goes on, or serves.
    `refused`: a newer version that readers pass over.
    """

    kind: str
    name: str
    version: int
    active: bool
    serving: bool
    from_start: bool
    lanes: list[dict[str, Any]] = []  # noqa: RUF012  pydantic copies it
    waits_for: str | None = None
    refused: Refused | None = None


class Validation(Told):
    """What the check says about a draft."""

    ok: bool
    kind: str | None = None
    name: str | None = None
    parsed: dict[str, Any] | None = None
    message: str | None = None
    code: str | None = None
    errors: list[ProblemPlace] = []  # noqa: RUF012  pydantic copies it
    estimate: dict[str, Any] | None = None


class NamedText(Draft):
    """The text of a definition, and which one it is."""

    kind: str
    name: str


class PlanQuery(Sent):
    """Definitions that are to be stored in this order."""

    definitions: Annotated[list[NamedText], Field(min_length=1, max_length=MOST_PLANNED)]


class Planned(Validation):
    """What storing one of them would do; `diff` with what is in force, null if it is refused."""

    diff: DefinitionDiff | None = None


class Plan(Told):
    """What storing definitions would do, in the order in which they came."""

    items: list[Planned]


class BasedText(NamedText):
    """The text of a definition, and the version that it changes; null if it is not there."""

    based_on: Annotated[int, Field(ge=1, lt=2**31)] | None


class ApplyQuery(Sent):
    """Definitions that are to be stored together, all of them or none."""

    definitions: Annotated[list[BasedText], Field(min_length=1, max_length=MOST_PLANNED)]


class AppliedDefinition(StoredDefinition):
    """A definition that is now in force; `unchanged`: its text means what was there before."""

    outcome: Literal["created", "updated", "unchanged"]


class Applied(Told):
    """What is in force of each definition, in the order in which they came."""

    items: list[AppliedDefinition]


class PreviewQuery(DefinitionText):
    """A metric draft to be tried on the newest events of the tail."""

    last: Annotated[int, Field(ge=1, le=200)] = 200


class LatenessQuery(DefinitionText):
    """A metric draft of whose events it is asked how late they are."""

    hours: Annotated[int, Field(ge=1, le=192)] = 24


class PreviewEvent(Told):
    """What the draft makes of one event."""

    id: str
    type: str
    time_ms: int | None
    matched: bool
    value: float | None = None
    series: dict[str, str | None] | None = None
    reason: str | None = None


class Preview(Told):
    """What the draft makes of the newest events, newest first, and in all."""

    seen: int
    matched: int
    refused: int
    events: list[PreviewEvent]
