"""Jobs: asked for here, done by the panes driver between live batches (DESIGN 6).

A job is a definition, so it stands in the log before the answer, and a driver that is
away finds it later. How far it is stands in Redis for a day, how it ended in the log
for ever. Asked again with the same `Idempotency-Key` it is the same job.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import string
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Header, Query
from pydantic import Field
from weir import names
from weir.definitions.base import NAME
from weir.definitions.check import check
from weir.definitions.job import MAX_AUDITED, MAX_SAMPLE, Audit, Erase, Job
from weir.definitions.jobs import KIND, JobAsked, JobState, job_named, jobs_of
from weir.erasure import subject_hash
from weir.event import DEFAULT_TENANT
from weir.problems import ProblemError, Reason, echo
from weir_reading.redis import read_text

from weir_dashboard.api.models import Name, Page, Sent, Told
from weir_dashboard.auth.callers import Caller
from weir_dashboard.auth.scopes import Scope
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.definitions.writer import Expected

_LETTERS = string.ascii_lowercase + string.digits
router = APIRouter(tags=["jobs"])

Instant = Annotated[str, Field(max_length=40, examples=["2027-01-31T18:00:00Z"])]


class AuditWanted(Sent):
    """Recount sampled panes from the log, and compare them with what is served."""

    metrics: Annotated[list[Name], Field(default_factory=list, max_length=MAX_AUDITED)]
    last: Annotated[str, Field(max_length=32, examples=["1h"])] = "1h"
    recent: Annotated[str, Field(max_length=32, examples=["24h"])] | None = None
    most_records: Annotated[int, Field(ge=1, lt=2**63)] | None = None
    sample: Annotated[int, Field(ge=1, le=MAX_SAMPLE)] = 20
    ledger: bool = False
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    mend: bool = False


class AuditAsked(AuditWanted):
    """The same, among other jobs."""

    job: Literal["audit"]


class ReplayFilter(Sent):
    """Which records of the quarantine: by why, from where and when they were received."""

    reason: Annotated[str, Field(max_length=64)] | None = None
    source: Annotated[str, Field(max_length=256)] | None = None
    since: Instant | None = None
    until: Instant | None = None


class ReplayWanted(Sent):
    """Put records that were quarantined whole back into the log, once each."""

    filter: ReplayFilter = ReplayFilter()
    dry_run: bool = False


class ReplayAsked(ReplayFilter):
    """The same, among other jobs."""

    job: Literal["replay"]
    dry_run: bool = False


class AdoptAsked(Sent):
    """Go on with a log to which the state does not belong, giving up what is gone."""

    job: Literal["adopt"]
    reason: Annotated[str, Field(min_length=1, max_length=1_000)]


class EraseAsked(Sent):
    """Count the events about a subject no more, and every metric anew without them."""

    job: Literal["erase"]
    subject: Annotated[str, Field(min_length=1, max_length=512)]


Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=255)]
JobWanted = Annotated[AuditAsked | ReplayAsked | AdoptAsked | EraseAsked, Body(discriminator="job")]


class JobProgress(Told):
    """How far a job is: `at` of `of` records."""

    at: int
    of: int


class JobTold(Told):
    """A job, where it stands, and with what it ended; `waits_for`: why it does not go on now."""

    id: str
    job: Literal["audit", "replay", "adopt", "erase"]
    state: JobState
    asked: dict[str, Any]
    by: str
    at_ms: int
    told_ms: int | None = None
    progress: JobProgress | None = None
    waits_for: str | None = None
    outcome: dict[str, Any] | None = None


@router.post("/jobs", status_code=202)
async def make_job(body: JobWanted, here: Here, caller: Who, key: Key = None) -> JobTold:
    """Ask for a job; it is done between live batches, jobs one after the other."""
    if isinstance(body, AdoptAsked):
        _check_adopting(caller)
    if isinstance(body, EraseAsked):
        _check_admin(caller, "erase")
        return await _made(here, caller, key, _to_erase(here, caller, body))
    return await _made(here, caller, key, body.model_dump(mode="json", exclude_none=True))


@router.post("/quarantine/replay", status_code=202)
async def replay_quarantine(
    body: ReplayWanted, here: Here, caller: Who, key: Key = None
) -> JobTold:
    """Ask for a replay of the quarantine."""
    given = body.filter.model_dump(mode="json", exclude_none=True)
    return await _made(here, caller, key, {"job": "replay", "dry_run": body.dry_run} | given)


@router.get("/audit")
async def list_audits(
    here: Here, caller: Who, limit: Annotated[int, Query(ge=1, le=500)] = 100
) -> Page[JobTold]:
    """List the tenant's audits with what they found, the newest first."""
    found = [one for one in _newest(here, caller) if isinstance(one.model.do, Audit)]
    return Page(items=[await _told(here, one, whole=False) for one in found[:limit]])


@router.post("/audit", status_code=202)
async def make_audit(body: AuditWanted, here: Here, caller: Who, key: Key = None) -> JobTold:
    """Ask for an audit."""
    given = body.model_dump(mode="json", exclude_none=True)
    return await _made(here, caller, key, {"job": "audit"} | given)


def _to_erase(here: Context, caller: Caller, body: EraseAsked) -> dict[str, Any]:
    """Return what is stored: whom it is about only by a keyed hash."""
    known = subject_hash(here.hash_key, caller.tenant, body.subject)
    return {"job": "erase", "subject_hash": known}


async def _made(
    here: Context, caller: Caller, idempotency_key: str | None, given: dict[str, Any]
) -> JobTold:
    job_id = _id_of(caller, idempotency_key)
    model = check(KIND, job_id, {"do": given}).model
    text = json.dumps(model.canonical(), ensure_ascii=False)
    before = job_named(here.catalog.folded, caller.tenant, job_id)
    if before is not None:
        return await _same(here, before, model)
    place = caller.tenant, KIND, job_id
    await here.writer.put(place, text, by=caller.name, expected=Expected(absent=True))
    return await _told(here, _named(here, caller, job_id))


@router.get("/jobs")
async def list_jobs(
    here: Here, caller: Who, limit: Annotated[int, Query(ge=1, le=500)] = 100
) -> Page[JobTold]:
    """List the tenant's jobs, the newest first."""
    found = _newest(here, caller)[:limit]
    return Page(items=[await _told(here, one, whole=False) for one in found])


@router.get("/jobs/{id}")
async def get_job(id: str, here: Here, caller: Who) -> JobTold:  # noqa: A002  the API's word
    """Return a job with its progress or its outcome."""
    return await _told(here, _named(here, caller, id))


@router.delete("/jobs/{id}")
async def cancel_job(id: str, here: Here, caller: Who) -> JobTold:  # noqa: A002
    """Cancel a job that has not ended; what it has done stays."""
    found = _named(here, caller, id)
    if found.state.final:
        msg = f"the job is {found.state.value} already; there is nothing to cancel"
        raise ProblemError(409, Reason.ALREADY_ENDED, msg)
    if isinstance(found.model.do, Erase) and found.report is not None:
        msg = "the erasure holds already, and what was erased stays so"
        raise ProblemError(409, Reason.ALREADY_ENDED, msg)
    if found.model.do.job in ("adopt", "erase"):
        _check_admin(caller, f"cancelling {found.model.do.job}")
    expected = Expected(version=found.definition.version)
    await here.writer.delete((caller.tenant, KIND, id), by=caller.name, expected=expected)
    return await _told(here, _named(here, caller, id))


def _newest(here: Context, caller: Caller) -> list[JobAsked]:
    found = jobs_of(here.catalog.folded, caller.tenant)
    return sorted(found, key=lambda one: -one.definition.vid)


def _check_admin(caller: Caller, what: str) -> None:
    if Scope.ADMIN not in caller.scopes:
        msg = f"{what} needs the scope admin; ask somebody who has it"
        raise ProblemError(403, Reason.SCOPE_MISSING, msg)


def _check_adopting(caller: Caller) -> None:
    _check_admin(caller, "adopt")
    if caller.tenant != DEFAULT_TENANT:
        msg = f"adopt must come from the tenant {DEFAULT_TENANT}: the log is everybody's"
        raise ProblemError(403, Reason.SCOPE_MISSING, msg)


def _id_of(caller: Caller, idempotency_key: str | None) -> str:
    """Return a name nobody has; of a request that is repeated the one that it got."""
    if idempotency_key is None:
        return "j_" + "".join(secrets.choice(_LETTERS) for _ in range(12))
    said = f"{caller.tenant}\n{idempotency_key}".encode()
    return "k_" + hashlib.sha256(said).hexdigest()[:24]


async def _same(here: Context, before: JobAsked, model: object) -> JobTold:
    if before.model != model:
        msg = "the Idempotency-Key was used for another job; choose another one"
        raise ProblemError(422, Reason.REQUEST_INVALID, msg)
    return await _told(here, before)


def _named(here: Context, caller: Caller, job_id: str) -> JobAsked:
    known = NAME.fullmatch(job_id) is not None
    found = job_named(here.catalog.folded, caller.tenant, job_id) if known else None
    if found is None:
        msg = f'there is no job "{echo(job_id)}"; see /api/v1/jobs for those there are'
        raise ProblemError(404, Reason.NOT_FOUND, msg)
    return found


async def _told(here: Context, found: JobAsked, *, whole: bool = True) -> JobTold:
    """Return a job as it is told; of a list without what only Redis holds."""
    report = found.report
    ended = report is not None and report.state.final
    outcome = dict(report.outcome) if report is not None and ended else None
    live = await _live(here, found) if whole else {}
    return JobTold(
        id=found.definition.name,
        job=found.model.do.job,
        state=found.state,
        asked=_asked(found.model),
        by=found.definition.by,
        at_ms=found.definition.at_ms,
        told_ms=report.at_ms if report is not None else None,
        progress=JobProgress(at=live["at"], of=live["of"]) if live else None,
        waits_for=live.get("waits_for") if not ended else None,
        outcome=(live.get("outcome") or outcome) if ended else None,
    )


async def _live(here: Context, found: JobAsked) -> dict[str, Any]:
    """Return what the driver tells in Redis: progress, and the whole outcome for a day."""
    text = await read_text(here.redis, names.job_key(found.definition.vid))
    live: dict[str, Any] = json.loads(text) if text else {}
    return live


def _asked(model: Job) -> dict[str, Any]:
    asked: dict[str, Any] = model.do.model_dump(mode="json", exclude_none=True)
    return asked
