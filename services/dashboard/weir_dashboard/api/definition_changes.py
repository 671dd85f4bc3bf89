"""What was changed of definitions, how versions differ, and the way back to an older one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response
from weir.definitions.base import DefinitionModel
from weir.definitions.check import check
from weir.definitions.diff import differences, text_diff
from weir.definitions.history import Definition
from weir.definitions.in_force import refusal
from weir.problems import ProblemError, Reason

from weir_dashboard.api.conditions import Condition
from weir_dashboard.api.definition_models import (
    DefinitionDiff,
    DiffQuery,
    MemberDiff,
    Refused,
    RollbackTo,
    StoredDefinition,
    TenantChange,
)
from weir_dashboard.api.definitions import (
    OWN_ROUTES,
    change_of,
    check_beside,
    check_route,
    told,
)
from weir_dashboard.api.models import Page
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who

MOST = 500


@dataclass(frozen=True)
class Newer:
    """The newer side of a comparison.

    Attributes:
        model: The definition.
        text: As it is written.
        called: How the difference calls it.
        version: Its number; None of a draft.
    """

    model: DefinitionModel
    text: str
    called: str
    version: int | None = None

    @classmethod
    def draft(cls, model: DefinitionModel, text: str) -> Newer:
        """Return what is not stored yet."""
        return cls(model, text, "draft")


Limit = Annotated[int, Query(ge=1, le=MOST)]
router = APIRouter(tags=["definitions"])


@router.get("/changes")
async def list_changes(
    here: Here, caller: Who, limit: Limit = 100, cursor: Annotated[int | None, Query(ge=0)] = None
) -> Page[TenantChange]:
    """List who changed which definition, newest first; of keys without their text."""
    found = [
        one for one in here.catalog.changes(caller.tenant) if cursor is None or one.vid < cursor
    ]
    items = [_tenant_change(one) for one in found[:limit]]
    return Page(items=items, next=str(items[-1].vid) if len(found) > limit else None)


@router.get("/definitions/refused")
async def list_refused(here: Here, caller: Who, limit: Limit = 100) -> Page[Refused]:
    """List the newest records that changed nothing, each with its reason."""
    found = here.catalog.passed_over.of(caller.tenant)
    return Page(
        items=[
            Refused(
                offset=one.offset,
                kind=one.kind,
                name=one.name,
                version=one.version,
                by=one.by,
                at_ms=one.at_ms,
                code=one.code,
                message=one.why,
            )
            for one in found[:limit]
        ]
    )


@router.post("/definitions/diff")
async def diff(body: DiffQuery, here: Here, caller: Who) -> DefinitionDiff:
    """Compare a text, or a version, with the version in force or another one."""
    if (body.text is None) == (body.version is None):
        msg = "a comparison must have one of text and version; give a draft's text or a number"
        raise ProblemError(422, Reason.REQUEST_INVALID, msg)
    if body.text is not None:
        new = _draft(here, caller, body, body.text)
    else:
        kind, name = _named(body)
        found = _version(here, caller, (kind, name), body.version or 0)
        new = Newer(found.model, found.text, f"version {found.version}", found.version)
    old = _old(here, caller, (new.model.kind, new.model.name), body.against)
    return difference(old, new)


@router.post("/definitions/{kind}/{name}/rollback")
async def rollback(
    kind: str,
    name: str,
    body: RollbackTo,
    here: Here,
    caller: Who,
    response: Response,
    expected: Condition,
) -> StoredDefinition:
    """Put an older version's text in force again, as a new version."""
    old = _version(here, caller, (kind, name), body.version)
    now = here.catalog.folded.get(caller.tenant, kind, name)
    if now is not None and now.text == old.text:
        msg = f"version {old.version} must differ from what is in force, got its very text"
        raise ProblemError(422, Reason.REQUEST_INVALID, f"{msg}; name another version")
    check_beside(here, caller, check(kind, name, old.text).model)
    version = await here.writer.put(
        (caller.tenant, kind, name), old.text, by=caller.name, expected=expected
    )
    response.headers["etag"] = f'"{version.version}"'
    return told(here, version)


def difference(old: Definition | None, new: Newer) -> DefinitionDiff:
    """Return how a definition differs from an older version, or from nothing."""
    found = differences(old.model.canonical() if old else {}, new.model.canonical())
    old_name = f"version {old.version}" if old else "nothing"
    return DefinitionDiff(
        kind=new.model.kind,
        name=new.model.name,
        old_version=old.version if old else None,
        new_version=new.version,
        same=old is not None and not found,
        text=text_diff(old.text if old else "", new.text, old_name=old_name, new_name=new.called),
        members=[MemberDiff(pointer=one.pointer, old=one.old, new=one.new) for one in found],
    )


def _draft(here: Context, caller: Caller, body: DiffQuery, text: str) -> Newer:
    """Return a draft that could be stored.

    Raises:
        ProblemError: As where it is stored.
    """
    model = check(body.kind, body.name, text).model
    check_route(model.kind)
    now = here.catalog.folded.get(caller.tenant, model.kind, model.name)
    if now is None or now.text.strip() != text.strip():
        check_beside(here, caller, model)
    return Newer.draft(model, text)


def _named(body: DiffQuery) -> tuple[str, str]:
    if not body.kind or not body.name:
        msg = "a version must be named by kind and name, got none; add both"
        raise ProblemError(422, Reason.REQUEST_INVALID, msg)
    return body.kind, body.name


def _old(
    here: Context, caller: Caller, place: tuple[str, str], number: int | None
) -> Definition | None:
    if number is not None:
        return _version(here, caller, place, number)
    return here.catalog.folded.get(caller.tenant, *place)


def _version(here: Context, caller: Caller, place: tuple[str, str], number: int) -> Definition:
    """Return a version that has a text that can be used.

    Raises:
        ProblemError: 404 if there is none of that number, 422 if it cannot be used.
    """
    kind, name = place
    check_route(kind)
    history = here.catalog.folded.history(caller.tenant, kind, name)
    found = next((one for one in history if one.version == number), None)
    if found is None:
        newest = f"the newest is {history[0].version}" if history else "there is none at all"
        msg = f"{kind} {name} must have a version {number}, got none; {newest}"
        raise ProblemError(404, Reason.NOT_FOUND, msg)
    problem = refusal(found)
    if problem is not None:
        raise problem
    if found.deleted:
        msg = f"version {number} of {kind} {name} must have a text, got its deletion"
        raise ProblemError(422, Reason.REQUEST_INVALID, f"{msg}; name the version before it")
    return found


def _tenant_change(version: Definition) -> TenantChange:
    change = change_of(version).model_dump()
    if version.kind in OWN_ROUTES:
        change["text"] = None
    return TenantChange(**change, kind=version.kind, name=version.name)
