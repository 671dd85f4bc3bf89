"""The framework's app behind the hot route: OpenAPI, other methods, unknown paths."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from weir.problems import ProblemError, Reason

from weir_ingest import openapi
from weir_ingest.answers import Answer, problem_answer
from weir_ingest.cors import options_answer
from weir_ingest.head import Head, Receive, Scope, Send

EVENTS_PATHS = ("/v1/events", "/v1/events/")
EVENTS_METHODS = ("POST", "PUT")


class _Handed(Response):
    """A response that another ASGI callable makes."""

    def __init__(self, app: Any) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def build_api(accept: Any) -> FastAPI:
    """Return the app.

    Args:
        accept: The hot route. Requests reach it before the framework; the routes
            here document it and hand on what comes this way.
    """
    app = FastAPI(
        title="Weir ingest",
        description="Send events. An answer 200 means that Kafka has acknowledged them.",
        version="1",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )

    async def post_events() -> Response:
        """Store events; the answer names the items that could not be used."""
        return _Handed(accept)

    async def options_events(request: Request) -> Response:
        """Answer a browser's preflight or a webhook's handshake."""
        return _respond(options_answer(Head(request.scope, 0)))

    async def head_events() -> Response:
        """Answer a sender's health check."""
        return Response(status_code=200)

    extra = {"requestBody": openapi.BODY, "parameters": openapi.PARAMETERS}
    app.post(EVENTS_PATHS[0], responses=openapi.responses(), openapi_extra=extra)(post_events)
    for path in EVENTS_PATHS:
        app.api_route(path, methods=[*EVENTS_METHODS], include_in_schema=False)(post_events)
        app.options(path, include_in_schema=False)(options_events)
        app.head(path, include_in_schema=False)(head_events)
    app.add_exception_handler(HTTPException, _refuse)
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        problem = ProblemError(
            405, Reason.METHOD_NOT_ALLOWED, f"method {request.method} is not allowed here; use POST"
        )
    else:
        problem = ProblemError(404, Reason.NOT_FOUND, "there is nothing here; send to /v1/events")
    return _respond(problem_answer(problem))


def _respond(answer: Answer) -> Response:
    response = Response(answer.body, status_code=answer.status)
    response.raw_headers = answer.headers
    return response
