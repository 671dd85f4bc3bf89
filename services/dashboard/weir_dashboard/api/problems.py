"""Every refusal as problem+json, also those that the framework makes."""

from __future__ import annotations

from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from redis.exceptions import RedisError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from weir.problems import ProblemError, Reason, echo

from weir_dashboard import instruments
from weir_dashboard.auth.guard import store_unavailable

log = structlog.get_logger()
# As servers call it in their logs; no client sees it.
CLIENT_GONE = 499
_BY_STATUS = {404: Reason.NOT_FOUND, 405: Reason.METHOD_NOT_ALLOWED}


def problem_response(problem: ProblemError) -> Response:
    """Return the answer of a refusal."""
    instruments.refused.labels(problem.reason.value).inc()
    headers = {}
    if problem.retry_after_s is not None:
        headers["retry-after"] = str(problem.retry_after_s)
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse(
        problem.body(), problem.status, headers, media_type="application/problem+json"
    )


def install(app: FastAPI) -> None:
    """Let the app answer every error as a problem."""

    @app.exception_handler(ProblemError)
    async def refused(_: Request, problem: ProblemError) -> Response:
        return problem_response(problem)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        wrong = Reason.REQUEST_INVALID
        if request.url.path.endswith("/query"):
            wrong = Reason.QUERY_INVALID
        return problem_response(invalid_request(error.errors(), wrong))

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Response:
        # The framework wraps what happens while it reads a body.
        if isinstance(error.__cause__, ProblemError):
            return problem_response(error.__cause__)
        reason = _BY_STATUS.get(error.status_code, Reason.INVALID_JSON)
        return problem_response(ProblemError(error.status_code, reason, echo(str(error.detail))))

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=CLIENT_GONE)

    @app.exception_handler(RedisError)
    async def store(_: Request, error: RedisError) -> Response:
        log.warning("store_failed", error=type(error).__name__)
        return problem_response(store_unavailable())

    @app.exception_handler(Exception)
    async def internal(request: Request, error: Exception) -> Response:
        log.error("request_failed", method=request.method, exc_info=error)
        msg = "the server failed on this request; the fault is logged, not yours"
        return problem_response(ProblemError(500, Reason.INTERNAL, msg))


def invalid_request(errors: Any, wrong: Reason = Reason.REQUEST_INVALID) -> ProblemError:
    """Return the refusal of a request that does not fit its model."""
    first = errors[0]
    if first["type"] == "json_invalid":
        at = first["loc"][-1]
        msg = f"the body must be JSON, it breaks off at character {at}"
        return ProblemError(400, Reason.INVALID_JSON, msg)
    unknown = [e for e in errors if e["type"] == "extra_forbidden"]
    reason = Reason.UNKNOWN_FIELD if unknown else wrong
    first = unknown[0] if unknown else first
    what = "is unknown" if unknown else "is invalid"
    msg = f'member "{echo(_pointer(first)[1:])}" {what}: {echo(first["msg"])}'
    return ProblemError(422, reason, msg, tuple(_place(e) for e in errors[:20]))


def _pointer(error: Any) -> str:
    return "/" + "/".join(str(part) for part in error["loc"] if part != "body")


def _place(error: Any) -> dict[str, str]:
    unknown = error["type"] == "extra_forbidden"
    return {
        "pointer": echo(_pointer(error)),
        "required": "no such member" if unknown else error["msg"],
        "got": echo(str(error.get("input", ""))),
        "mend": "remove it" if unknown else "correct it as required",
    }
