"""The ops port: what a probe is told."""

from __future__ import annotations

import asyncio

import httpx
from prometheus_client import CollectorRegistry, Gauge
from starlette.applications import Starlette
from weir_service.probes import probes


def ask(app: Starlette, path: str, accept: str = "*/*") -> httpx.Response:
    """Return what a probe is answered."""

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://ops") as client:
            return await client.get(path, headers={"accept": accept})

    return asyncio.run(asked())


def test_a_reason_is_told_while_there_is_one() -> None:
    """503 with the reason in words, 200 otherwise; alive and ready are apart."""
    reasons: dict[str, str | None] = {"ready": "still reading", "alive": None}
    app = probes(lambda: reasons["ready"], not_alive=lambda: reasons["alive"])
    ready, alive = ask(app, "/readyz"), ask(app, "/livez")
    assert (ready.status_code, ready.text) == (503, "still reading\n")
    assert (alive.status_code, alive.text) == (200, "ok\n")
    reasons.update(ready=None, alive="stuck")
    ready, alive = ask(app, "/readyz"), ask(app, "/livez")
    assert (ready.status_code, ready.text) == (200, "ok\n")
    assert (alive.status_code, alive.text) == (503, "stuck\n")


def test_figures_are_brought_up_to_date_before_they_are_shown() -> None:
    """And in the format that is asked for; nothing else is served."""
    registry = CollectorRegistry()
    gauge = Gauge("weir_waiting", "What waits.", registry=registry)
    app = probes(lambda: None, observe=lambda: gauge.set(7), registry=registry)
    plain = ask(app, "/metrics")
    assert "weir_waiting 7.0" in plain.text
    assert plain.headers["content-type"].startswith("text/plain")
    asked = ask(app, "/metrics", "application/openmetrics-text; version=1.0.0")
    assert asked.headers["content-type"].startswith("application/openmetrics-text")
    assert asked.text.endswith("# EOF\n")
    assert ask(app, "/v1/events").status_code == 404
