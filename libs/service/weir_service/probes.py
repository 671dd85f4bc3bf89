"""/livez, /readyz and /metrics, on a port of their own, so that no public route shows them.

Not alive means that only a restart helps. Not ready means that callers should be sent
elsewhere: being without Kafka or Redis is neither, where a process can still say so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import prometheus_client
import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

Reason = Callable[[], str | None]


def probes(
    not_ready: Reason,
    *,
    not_alive: Reason = lambda: None,
    observe: Callable[[], None] = lambda: None,
    registry: CollectorRegistry = prometheus_client.REGISTRY,
) -> Starlette:
    """Return the app of the ops port.

    Args:
        not_ready: Returns why the process is not ready, in words; None if it is.
        not_alive: Returns why it should be restarted; None if it should not.
        observe: Brings the gauges up to date before they are shown.
        registry: The figures to show.
    """

    def answer(reason: str | None) -> Response:
        return PlainTextResponse(f"{reason or 'ok'}\n", 503 if reason else 200)

    async def livez(_: Request) -> Response:
        return answer(not_alive())

    async def readyz(_: Request) -> Response:
        return answer(not_ready())

    async def metrics(request: Request) -> Response:
        observe()
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    routes = [Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", metrics)]
    return Starlette(routes=routes)


class Server(uvicorn.Server):
    """A server that leaves signals to others: a process has several, and one end."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Capture none."""
        return nullcontext()

    def stop(self) -> None:
        """Stop serving."""
        self.should_exit = True


def serve_probes(app: Starlette, host: str, port: int) -> tuple[Server, asyncio.Task[None]]:
    """Serve the ops port beside everything else; await the task after `stop`."""
    server = Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
    )
    return server, asyncio.create_task(server.serve())
