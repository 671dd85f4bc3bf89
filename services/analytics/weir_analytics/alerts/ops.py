"""The ops port: /livez, /readyz, /metrics. Nothing else is served there."""

from __future__ import annotations

from collections.abc import Callable

import prometheus_client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route


def ops_app(is_alive: Callable[[], bool], is_ready: Callable[[], bool]) -> Starlette:
    """Return the app of the ops port."""

    def answer(ok: bool, otherwise: str) -> Response:
        return PlainTextResponse("ok\n" if ok else otherwise, 200 if ok else 503)

    async def livez(_: Request) -> Response:
        return answer(is_alive(), "rules have not been looked at for a minute\n")

    async def readyz(_: Request) -> Response:
        return answer(is_ready(), "weir.alerts has not been read to its end yet\n")

    async def metrics(_: Request) -> Response:
        body = prometheus_client.generate_latest()
        return Response(body, headers={"content-type": prometheus_client.CONTENT_TYPE_LATEST})

    routes = [Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", metrics)]
    return Starlette(routes=routes)
