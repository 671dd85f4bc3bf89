"""What storing several definitions would do: each judged and compared, and nothing stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from fastapi import APIRouter
from weir.definitions.check import Checked, check
from weir.definitions.history import Definition
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
    rule may come with its metric. One that means what is in force is not judged again.
    """
    check_once(body.definitions)
    beside, items = Beside(here, caller), []
    for one in body.definitions:
        items.append(_planned(here, caller, beside, one))
        # Reading a text takes milliseconds, and there may be hundreds: others have their turn.
        await asyncio.sleep(0)
    return Plan(items=items)


def check_once(definitions: Sequence[NamedText]) -> None:
    """Refuse definitions of which one comes twice.

    Raises:
        ProblemError: 422.
    """
    seen: set[tuple[str, str]] = set()
    for one in definitions:
        if (one.kind, one.name) in seen:
            msg = f"each definition must come once, got {one.kind}/{one.name} twice"
            raise ProblemError(422, Reason.REQUEST_INVALID, f"{msg}; send one of them")
        seen.add((one.kind, one.name))


@dataclass(frozen=True)
class Judged:
    """A definition that may be stored beside those before it.

    Attributes:
        checked: The definition, and what it costs.
        old: What is in force; None if nothing is.
        same: Both mean the same.
    """

    checked: Checked
    old: Definition | None
    same: bool


def judge(here: Context, caller: Caller, beside: Beside, one: NamedText) -> Judged:
    """Judge a definition, and let it stand beside those that come after it.

    Raises:
        ProblemError: As where it is stored alone.
    """
    check_route(one.kind)
    old = here.catalog.folded.get(caller.tenant, one.kind, one.name)
    checked = check(one.kind, one.name, one.text)
    same = old is not None and old.model.canonical() == checked.model.canonical()
    if not same:
        beside.check(checked.model)
    beside.add(checked.model)
    return Judged(checked, old, same)


def _planned(here: Context, caller: Caller, beside: Beside, one: NamedText) -> Planned:
    try:
        judged = judge(here, caller, beside, one)
    except ProblemError as problem:
        return Planned(**refused_draft(one, problem).model_dump())
    model, cost = judged.checked.model, judged.checked.estimate
    return Planned(
        ok=True,
        kind=model.kind,
        name=model.name,
        parsed=model.canonical(),
        estimate=None if cost is None else asdict(cost),
        diff=difference(judged.old, Newer.draft(model, one.text)),
    )
