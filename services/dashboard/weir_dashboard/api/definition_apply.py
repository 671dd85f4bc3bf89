"""Several definitions stored together: all of them, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter
from weir.definitions.history import Definition
from weir.problems import ProblemError

from weir_dashboard.api.beside import Beside
from weir_dashboard.api.definition_models import (
    Applied,
    AppliedDefinition,
    ApplyQuery,
    BasedText,
)
from weir_dashboard.api.definition_plan import Judged, check_once, judge
from weir_dashboard.api.definitions import told
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.definitions.writer import Put

router = APIRouter(tags=["definitions"])


@router.post("/definitions/apply")
async def apply(body: ApplyQuery, here: Here, caller: Who) -> Applied:
    """Store several definitions as their next versions, all of them or none.

    Each is judged as `plan` does, in their order: a rule may come with its metric. One that
    means what is in force makes no version, whatever it is based on: so a request whose
    answer was lost may be sent again.
    """
    check_once(body.definitions)
    found = await _judged(here, caller, body.definitions)
    changed = [
        Put(
            (caller.tenant, one.kind, one.name),
            one.text,
            one.based_on,
            f"/definitions/{at}/based_on",
        )
        for at, (one, judged) in enumerate(zip(body.definitions, found, strict=True))
        if not judged.same
    ]
    made = {one.place: one for one in await here.writer.put_all(changed, by=caller.name)}
    pairs = zip(body.definitions, found, strict=True)
    places = [((caller.tenant, one.kind, one.name), judged.old) for one, judged in pairs]
    return Applied(items=[_applied(here, made.get(place), old) for place, old in places])


def _applied(here: Context, made: Definition | None, old: Definition | None) -> AppliedDefinition:
    outcome: Literal["created", "updated", "unchanged"]
    outcome = "unchanged" if made is None else "created" if old is None else "updated"
    stored = made or old
    assert stored is not None  # noqa: S101  what made no version was there
    return AppliedDefinition(outcome=outcome, **told(here, stored).model_dump())


@dataclass(frozen=True)
class _Refused:
    at: int
    title: str
    problem: ProblemError

    def places(self) -> list[dict[str, Any]]:
        """Return what is wrong, each place as it stands in the request."""
        here = f"/definitions/{self.at}"
        if not self.problem.errors:
            mend = "mend it, or leave it out"
            return [
                {
                    "pointer": here,
                    "required": self.problem.message,
                    "got": self.title,
                    "mend": mend,
                }
            ]
        return [{**one, "pointer": f"{here}{one['pointer']}"} for one in self.problem.errors]


async def _judged(here: Context, caller: Caller, definitions: Sequence[BasedText]) -> list[Judged]:
    """Judge all; raise one problem that names each that is refused."""
    beside, found, refused = Beside(here, caller), list[Judged](), list[_Refused]()
    for at, one in enumerate(definitions):
        try:
            found.append(judge(here, caller, beside, one))
        except ProblemError as problem:
            refused.append(_Refused(at, f"{one.kind}/{one.name}", problem))
        # Reading a text takes milliseconds, and there may be hundreds: others have their turn.
        await asyncio.sleep(0)
    if refused:
        raise _refusal(refused, len(definitions))
    return found


def _refusal(refused: Sequence[_Refused], of: int) -> ProblemError:
    first = refused[0]
    statuses = {one.problem.status for one in refused}
    status = first.problem.status if len(statuses) == 1 else int(HTTPStatus.UNPROCESSABLE_ENTITY)
    msg = (
        f"nothing is stored, since {len(refused)} of {of} definitions cannot be; "
        f"{first.title}: {first.problem.message}"
    )
    errors = tuple(place for one in refused for place in one.places())
    return ProblemError(status, first.problem.reason, msg, errors)
