"""What the dashboard measures of itself. Labels come from closed sets."""

from __future__ import annotations

import psutil
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
panes_kept = Gauge(
    metrics.DASHBOARD_PANES_KEPT, "About how much memory the decoded panes that are kept take."
)
frames = Counter(metrics.DASHBOARD_FRAMES, "Frames of query feeds written, by kind.", ["kind"])
held_back = Counter(
    metrics.DASHBOARD_FRAMES_HELD_BACK,
    "Frames not written now, because of the client's pace or because it is full.",
)
frame_age_seconds = Histogram(
    metrics.DASHBOARD_FRAME_AGE_SECONDS,
    "Age of processed-through when frames of a query feed are written: what was acknowledged "
    "before that is in them.",
    buckets=(0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 30, 120, 600),
)
frame_gap_seconds = Histogram(
    metrics.DASHBOARD_FRAME_GAP_SECONDS,
    "Time between two heartbeats: for no longer does a live socket that keeps up hear nothing.",
    buckets=(0.5, 1, 2, 2.5, 3, 5, 10, 30, 60),
)
threads = Gauge(metrics.DASHBOARD_THREADS, "Threads of the process.")
threads.set_function(psutil.Process().num_threads)
evaluation_seconds = Histogram(
    metrics.DASHBOARD_EVALUATION_SECONDS,
    "Time to answer a query again, reading of panes included.",
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
)
log_left = Gauge(
    metrics.DASHBOARD_LOG_LEFT,
    "For how long the log still holds what is not counted, driver or not; +Inf: for ever; "
    "NaN: not known yet.",
)
log_left.set(float("nan"))
log_kept = Gauge(
    metrics.DASHBOARD_LOG_KEPT,
    "For how long the log keeps what comes now; +Inf: for ever; NaN: not known yet.",
)
log_kept.set(float("nan"))
processed_through = Gauge(
    metrics.DASHBOARD_PROCESSED_THROUGH,
    "Received time up to which all events are counted, seconds since the epoch.",
)
