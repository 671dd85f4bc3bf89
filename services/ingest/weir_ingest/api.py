"""The framework's app behind the hot route: OpenAPI, other methods, unknown paths."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from weir.problems import ProblemError, Reason

from weir_ingest.accept import Accept
from weir_ingest.answers import Answer, problem_answer
from weir_ingest.cors import cors_headers, options_answer
from weir_ingest.head import Head, Receive, Scope, Send
from weir_ingest.routes import PAGES, ROUTES
from weir_ingest.wire import Page, Route


class _Handed(Response):
    """A response that another ASGI callable makes."""

    def __init__(self, app: Any) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def build_api(accept: Accept) -> FastAPI:
    """Return the app.

    Args:
        accept: What answers requests that carry events. They reach it before the
            framework; the routes here document it and hand on what comes this way.
    """
    app = FastAPI(
        title="Weir ingest",
        description="Send events. A success means that Kafka has acknowledged them.",
        version="1",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )

    async def options_events(request: Request) -> Response:
        """Answer a browser's preflight or a webhook's handshake."""
        return _respond(options_answer(Head(request.scope, 0)))

    async def head_events() -> Response:
        """Answer a sender's health check."""
        return Response(status_code=200)

    for route in ROUTES:
        for path in route.paths:
            document(app, route, path, accept)
            for spelled in (path, f"{path}/"):
                app.options(spelled, include_in_schema=False)(options_events)
                if "HEAD" not in route.methods:
                    app.head(spelled, include_in_schema=False)(head_events)
    for page in PAGES:
        for spelled in (page.path, f"{page.path}/"):
            app.options(spelled, include_in_schema=False)(options_events)
            for method in page.methods:
                app.add_api_route(
                    spelled,
                    _answering(page),
                    methods=[method],
                    include_in_schema=spelled == page.path,
                    summary=page.answer.__doc__,
                    operation_id=_operation(method, spelled),
                )
    app.add_exception_handler(HTTPException, _refuse)
    return app


def _answering(page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        head = Head(request.scope, 0)
        found = page.answer(head, **request.path_params)
        origin = head.headers.get(b"origin")
        if origin is not None:
            found.headers.extend(cors_headers(origin))
        return _respond(found)

    return answer


def document(app: FastAPI, route: Route, path: str, accept: Accept) -> None:
    """Put a path that takes events into the OpenAPI document, by its first method."""

    async def post_events() -> Response:
        return _Handed(partial(accept, route.wire))

    said = dict(route.wire.document)
    responses = said.pop("responses", None)
    app.add_api_route(
        path,
        post_events,
        methods=[route.methods[0]],
        operation_id=_operation(route.methods[0], path),
        responses=responses,
        openapi_extra=said,
    )


def _operation(method: str, path: str) -> str:
    """Return an id that no other operation of the document has."""
    return f"{method.lower()}{re.sub('[^A-Za-z0-9]+', '_', path)}"


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
