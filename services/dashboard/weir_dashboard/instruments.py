"""What the dashboard measures of itself. Labels come from closed sets."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram
from weir import metrics

requests = Counter(
    metrics.DASHBOARD_REQUESTS, "Requests of the API, by route and status.", ["route", "status"]
)
refused = Counter(metrics.DASHBOARD_REFUSED, "Refusals, by code.", ["code"])
sockets = Gauge(metrics.DASHBOARD_SOCKETS, "Live sockets that are open.")
sockets_closed = Counter(
    metrics.DASHBOARD_SOCKETS_CLOSED, "Live sockets that the server closed, by code.", ["code"]
)
feeds = Gauge(metrics.DASHBOARD_FEEDS, "Different queries that the hub knows.")
frames = Counter(metrics.DASHBOARD_FRAMES, "Frames of query feeds written, by kind.", ["kind"])
held_back = Counter(
    metrics.DASHBOARD_FRAMES_HELD_BACK,
    "Frames not written now, because of the client's pace or because it is full.",
)
evaluation_seconds = Histogram(
    metrics.DASHBOARD_EVALUATION_SECONDS,
    "Time to answer a query again, reading of panes included.",
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
)
processed_through = Gauge(
    metrics.DASHBOARD_PROCESSED_THROUGH,
    "Received time up to which all events are counted, seconds since the epoch.",
)
