"""Definitions: read, checked, put, deleted; each edit is a new version."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response
from weir.batches import LaneProgress
from weir.definitions.base import DefinitionModel
from weir.definitions.check import check
from weir.definitions.history import Definition
from weir.definitions.in_force import refusal
from weir.problems import ProblemError, Reason
from weir_reading.served import serves

from weir_dashboard.api.beside import Beside
from weir_dashboard.api.conditions import Condition, IfMatch
from weir_dashboard.api.definition_models import (
    Change,
    DefinitionText,
    Draft,
    Progress,
    Refused,
    StoredDefinition,
    Validation,
)
from weir_dashboard.api.models import Page, ProblemPlace
from weir_dashboard.api.status import held
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.waiting import waits_for

# Written by routes of their own, which know what must not be seen or chosen.
OWN_ROUTES = frozenset({"job", "key", "member"})
router = APIRouter(tags=["definitions"])


@router.get("/definitions")
async def list_definitions(
    here: Here, caller: Who, kind: str | None = None
) -> Page[StoredDefinition]:
    """List the definitions in force, by kind and name."""
    found = here.catalog.folded.current(caller.tenant, kind)
    return Page(items=[told(here, v) for v in found if v.kind not in OWN_ROUTES])


@router.post("/definitions/validate")
async def validate(body: Draft, here: Here, caller: Who) -> Validation:
    """Check a draft without storing it: each error with its place and its mend."""
    try:
        checked = check(body.kind, body.name, body.text)
        check_route(checked.model.kind)
        check_beside(here, caller, checked.model)
    except ProblemError as problem:
        return refused_draft(body, problem)
    model, cost = checked.model, checked.estimate
    return Validation(
        ok=True,
        kind=model.kind,
        name=model.name,
        parsed=model.canonical(),
        estimate=None if cost is None else asdict(cost),
    )


@router.get("/definitions/{kind}/{name}")
async def get_definition(
    kind: str, name: str, here: Here, caller: Who, response: Response
) -> StoredDefinition:
    """Return a definition; its `ETag` is its version."""
    version = current(here, caller, kind, name)
    response.headers["etag"] = f'"{version.version}"'
    return told(here, version)


@router.get("/definitions/{kind}/{name}/history")
async def get_history(kind: str, name: str, here: Here, caller: Who) -> Page[Change]:
    """List all edits of a definition, the newest first; also of a deleted one."""
    found = [] if kind in OWN_ROUTES else here.catalog.folded.history(caller.tenant, kind, name)
    if not found:
        raise _unknown()
    return Page(items=[change_of(version) for version in found])


@router.get("/definitions/{kind}/{name}/progress")
async def get_progress(kind: str, name: str, here: Here, caller: Who) -> Progress:
    """Tell whether the version in force is counted, how far its lanes are, or why it waits."""
    version = current(here, caller, kind, name)
    activation = here.catalog.activation(version.vid)
    active = activation is not None or kind != "metric"
    serving = serves(here.catalog, activation) if activation is not None else active
    lanes = lanes_of(here, version)
    return Progress(
        kind=kind,
        name=name,
        version=version.version,
        active=active,
        serving=serving,
        from_start=activation is not None and activation.from_start,
        lanes=[
            {"lane": lane.lane, "at": lane.at, "of": lane.of, "waits_for": lane.waits_for}
            for lane in lanes
        ],
        waits_for=waiting_for(here, version),
        refused=_newer(here, version),
    )


@router.put("/definitions/{kind}/{name}")
async def put_definition(
    kind: str,
    name: str,
    body: DefinitionText,
    here: Here,
    caller: Who,
    response: Response,
    expected: Condition,
) -> StoredDefinition:
    """Store a definition as its next version, if the version it changes is the current one."""
    check_route(kind)
    model = check(kind, name, body.text).model
    check_beside(here, caller, model)
    version = await here.writer.put(
        (caller.tenant, model.kind, model.name), body.text, by=caller.name, expected=expected
    )
    response.headers["etag"] = f'"{version.version}"'
    response.status_code = 201 if version.version == 1 else 200
    return told(here, version)


@router.delete("/definitions/{kind}/{name}")
async def delete_definition(
    kind: str, name: str, here: Here, caller: Who, expected: IfMatch
) -> Change:
    """End a definition; its history stays, and so do the panes until they expire."""
    check_route(kind)
    version = await here.writer.delete(
        (caller.tenant, kind, name), by=caller.name, expected=expected
    )
    return change_of(version)


def change_of(version: Definition) -> Change:
    """Return an edit as lists show it."""
    problem = refusal(version)
    return Change(
        version=version.version,
        op="put" if version.op == "put" else "delete",
        text=version.text or None,
        by=version.by,
        at_ms=version.at_ms,
        vid=version.vid,
        refused=None if problem is None else problem.message,
    )


def current(here: Context, caller: Caller, kind: str, name: str) -> Definition:
    """Return the version in force.

    Raises:
        ProblemError: 404 if there is none, or a route of its own tells it.
    """
    version = here.catalog.folded.get(caller.tenant, kind, name)
    if version is None or kind in OWN_ROUTES:
        raise _unknown()
    return version


def refused_draft(draft: Draft, problem: ProblemError) -> Validation:
    """Return why a draft would not be stored, as the check tells it."""
    return Validation(
        ok=False,
        kind=draft.kind,
        name=draft.name,
        message=problem.message,
        code=problem.reason.value,
        errors=[ProblemPlace.model_validate(error) for error in problem.errors],
    )


def check_beside(here: Context, caller: Caller, model: DefinitionModel) -> None:
    """Check what a definition says of others, and what it costs beside them.

    Raises:
        ProblemError: As `Beside.check`.
    """
    Beside(here, caller).check(model)


def _unknown() -> ProblemError:
    return ProblemError(404, Reason.NOT_FOUND, "there is no such definition")


def check_route(kind: str) -> None:
    """Refuse a kind that has routes of its own.

    Raises:
        ProblemError: 422.
    """
    if kind in OWN_ROUTES:
        msg = f"a {kind} is not written as a definition; use /api/v1/{kind}s"
        raise ProblemError(422, Reason.DEFINITION_INVALID, msg)


def told(here: Context, version: Definition) -> StoredDefinition:
    """Return a version in force as answers show it."""
    activation = here.catalog.activation(version.vid)
    serving = activation is not None and serves(here.catalog, activation)
    state: Any = "stored" if version.kind != "metric" else "serving" if serving else "starting"
    return StoredDefinition(
        kind=version.kind,
        name=version.name,
        version=version.version,
        text=version.text,
        parsed=version.model.canonical(),
        by=version.by,
        at_ms=version.at_ms,
        vid=version.vid,
        state=state,
        refused=_newer(here, version),
    )


def waiting_for(here: Context, version: Definition) -> str | None:
    """Return why a version in force does not go on to serve; None if it serves, or does."""
    start = here.catalog.folded.start()
    drivers = start.tenant_bytes if start is not None else None
    # A driver of an older release does not say its own; both are meant to be the same.
    tenant_bytes = here.settings.tenant_bytes if drivers is None else drivers
    why = held(here, here.clock.now_ms(), here.observer.fresh())
    lane = next((one.waits_for for one in lanes_of(here, version) if one.waits_for), None)
    return waits_for(here.catalog.folded, version, tenant_bytes, why, lane)


def lanes_of(here: Context, version: Definition) -> list[LaneProgress]:
    """Return the lanes under way that fill a version."""
    newest = here.batches.newest
    return [lane for lane in (newest.lanes if newest else []) if lane.fills(version.vid)]


def _newer(here: Context, version: Definition) -> Refused | None:
    newest = here.catalog.folded.history(version.tenant, version.kind, version.name)[0]
    problem = refusal(newest)
    if problem is None:
        return None
    return Refused(
        offset=newest.vid,
        kind=newest.kind,
        name=newest.name,
        version=newest.version,
        by=newest.by,
        at_ms=newest.at_ms,
        code=problem.reason.value,
        message=problem.message,
    )
