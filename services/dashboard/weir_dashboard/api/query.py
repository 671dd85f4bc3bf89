"""Queries over HTTP: one question, one answer, as JSON, CSV or NDJSON."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from pydantic import Field
from weir.batches import BatchRecord
from weir.position import parse_position
from weir.problems import ProblemError, Reason
from weir.query.model import Query
from weir_reading.batches import Recount

from weir_dashboard.api.exports import as_csv, as_ndjson, beside
from weir_dashboard.api.read_models import Answer
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.turns import TIMEOUT_S, while_there

POLL_S = 0.05
# Ingest answers a request within 5 s, and the clocks of brokers differ by less than the rest.
BEYOND_MS = 60_000
EXPORTS = {"text/csv": as_csv, "application/x-ndjson": as_ndjson}
router = APIRouter(tags=["read"])


Position = Annotated[
    str, Field(max_length=20_000, description='The "position" of an answer of ingest.')
]


class Asked(Query):
    """A query; over HTTP it may also say after which events it wants to be answered."""

    after: Position | None = None  # type: ignore[assignment]  # the engine never sees it


@router.post(
    "/query",
    responses={200: {"content": {"text/csv": {}, "application/x-ndjson": {}}}},
    response_model=Answer,
    response_model_exclude_unset=True,
)
async def query(
    request: Request, body: Asked, here: Here, caller: Who, accept: Annotated[str, Header()] = "*/*"
) -> Any:
    """Answer a query; with `after`, once those events are counted (at most 10 s).

    As lines, what is about all of it stands in the header fields `Weir-Fresh`, `Weir-Notes`,
    `Weir-Of` (as in JSON) and `Weir-Corrections` (how many).
    """
    answer = await while_there(request, _answered(here, caller, body))
    wanted = next((kind for kind in EXPORTS if kind in accept), None)
    if wanted is None:
        return answer
    return Response(EXPORTS[wanted](answer), media_type=wanted, headers=beside(answer))


async def _answered(here: Context, caller: Caller, body: Asked) -> dict[str, Any]:
    who = caller.session or caller.key_id
    if body.after is not None:
        with here.turns.waiting(who):
            await _counted(here, body.after)
    asked = body.model_dump(mode="json", by_alias=True, exclude={"after"}, exclude_unset=True)
    question, _ = await here.queries.ask(caller.tenant, asked, here.turns.pool)
    answer: dict[str, Any] = await here.turns.take(who, question.answer())
    return answer


async def _counted(here: Context, position: str) -> None:
    """Wait until the events up to a position are counted.

    Raises:
        ProblemError: 422 for what is no position, 504 `not_counted_yet` after 10 s.
        NewerFormatError: If a newer release counts: when it does cannot be read.
    """
    try:
        wanted = parse_position(position)
    except ValueError as error:
        raise ProblemError(422, Reason.QUERY_INVALID, str(error)) from None
    deadline_s = here.clock.monotonic_s() + TIMEOUT_S
    while not covers(here.batches.records, wanted, here.batches.recount):
        here.batches.newer.check()
        if here.clock.monotonic_s() >= deadline_s:
            msg = (
                "these events are stored but not counted within 10 s; ask again with the same after"
            )
            raise ProblemError(504, Reason.NOT_COUNTED_YET, msg, retry_after_s=1)
        await asyncio.sleep(POLL_S)


def covers(
    records: Sequence[BatchRecord], wanted: Mapping[int, int], recount: Recount | None
) -> bool:
    """Tell whether the events of a request are in the panes, by the position it was answered.

    Not by the ends of the newest batch alone: after a loss, live counting goes on beyond what
    is being counted again. What came a minute later is of live counting alone. An offset does
    not say when it came, so there must be a batch from then that ends before it; and a position
    names the last of a request's events, so the others came within that minute at most.

    Args:
        records: Those of the present epoch that are kept, oldest first.
        wanted: The highest offset by partition.
        recount: What is counted again; None for nothing.
    """
    if not records or any(records[-1].to_offsets.get(p, 0) <= n for p, n in wanted.items()):
        return False
    if recount is None:
        return True
    if any(lane.kind == "rebuild" and not lane.until_ms for lane in records[-1].lanes):
        return False  # a release that did not tell until when
    clear_ms = recount.to_ms + BEYOND_MS
    clear = next((one.to_offsets for one in records if one.processed_through_ms >= clear_ms), None)
    return clear is not None and all(n >= clear.get(p, 0) for p, n in wanted.items())
