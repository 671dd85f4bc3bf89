"""Every path that takes events, and what is spoken there: a protocol is one file and one line."""

from __future__ import annotations

from weir_ingest import events
from weir_ingest.protocols import hec, otlp, posthog, remote_write, segment, snowplow, tinybird
from weir_ingest.wire import Page, Route, Wire

ROUTES: tuple[Route, ...] = (
    *events.ROUTES,
    *segment.ROUTES,
    *posthog.ROUTES,
    *hec.ROUTES,
    *otlp.ROUTES,
    *remote_write.ROUTES,
    *snowplow.ROUTES,
    *tinybird.ROUTES,
)

PAGES: tuple[Page, ...] = (*segment.PAGES, *posthog.PAGES, *hec.PAGES)

# Clients add a slash or leave one out, and take a redirection for success (INGEST 1.8).
_WIRES: dict[tuple[str, str], Wire] = {
    (path, method): route.wire
    for route in ROUTES
    for plain in route.paths
    for path in (plain, f"{plain}/")
    for method in route.methods
}


def wire_of(path: str, method: str) -> Wire | None:
    """Return what is spoken at a path, None where no events are taken."""
    return _WIRES.get((path, method))
