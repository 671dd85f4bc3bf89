"""The ops port: /livez, /readyz, /metrics. Nothing else is served there.

Ready means that definitions were read to their end once. Redis may be away: then the
service must stay ready, because it has to say that the numbers are stale.
"""

from __future__ import annotations

from collections.abc import Callable

import prometheus_client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route


def ops_app(is_ready: Callable[[], bool]) -> Starlette:
    """Return the app of the ops port."""

    async def livez(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        ready = is_ready()
        text = "ok\n" if ready else "definitions have not been read to their end yet\n"
        return PlainTextResponse(text, 200 if ready else 503)

    async def metrics(request: Request) -> Response:
        encode, content_type = prometheus_client.exposition.choose_encoder(
            request.headers.get("accept", "")
        )
        body = encode(prometheus_client.REGISTRY)
        return Response(body, headers={"content-type": content_type})

    routes = [Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", metrics)]
    return Starlette(routes=routes)
