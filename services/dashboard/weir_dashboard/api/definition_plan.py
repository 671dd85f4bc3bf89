"""What storing several definitions would do: each judged and compared, and nothing stored."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from fastapi import APIRouter
from weir.definitions.check import check
from weir.problems import ProblemError, Reason

from weir_dashboard.api.beside import Beside
from weir_dashboard.api.definition_changes import Newer, difference
from weir_dashboard.api.definition_models import NamedText, Plan, Planned, PlanQuery
from weir_dashboard.api.definitions import check_route, refused_draft
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who

router = APIRouter(tags=["definitions"])


@router.post("/definitions/plan")
async def plan(body: PlanQuery, here: Here, caller: Who) -> Plan:
    """Tell of several definitions what storing them in their order would do; nothing is stored.

    Each is judged beside what is in force and those before it that would be accepted, so a
    rule may come with its metric. One that is in force word for word is not judged again.
    """
    _check_once(body.definitions)
    beside, items = Beside(here, caller), []
    for one in body.definitions:
        items.append(_planned(here, caller, beside, one))
        # Reading a text takes milliseconds, and there may be hundreds: others have their turn.
        await asyncio.sleep(0)
    return Plan(items=items)


def _check_once(definitions: list[NamedText]) -> None:
    seen: set[tuple[str, str]] = set()
    for one in definitions:
        if (one.kind, one.name) in seen:
            msg = f"each definition must come once, got {one.kind}/{one.name} twice"
            raise ProblemError(422, Reason.REQUEST_INVALID, f"{msg}; send one of them")
        seen.add((one.kind, one.name))


def _planned(here: Context, caller: Caller, beside: Beside, one: NamedText) -> Planned:
    old = here.catalog.folded.get(caller.tenant, one.kind, one.name)
    try:
        check_route(one.kind)
        checked = check(one.kind, one.name, one.text)
        if old is None or old.text.strip() != one.text.strip():
            beside.check(checked.model)
    except ProblemError as problem:
        return Planned(**refused_draft(one, problem).model_dump())
    beside.add(checked.model)
    model, cost = checked.model, checked.estimate
    return Planned(
        ok=True,
        kind=model.kind,
        name=model.name,
        parsed=model.canonical(),
        estimate=None if cost is None else asdict(cost),
        diff=difference(old, Newer.draft(model, one.text)),
    )
