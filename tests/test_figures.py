"""What Weir tells Prometheus of itself goes on with what is done to it, and is true at rest."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError

import pytest
import weblog
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol
from weir.clock import SystemClock
from weir_local.client import ApiError
from weir_local.testing import TestStack

METRIC = """
kind: metric
name: {name}
events: {{type: {name}}}
aggregates: [count]
resolution: 1s
"""
EVENTS = 20
LATELY_S = 30

pytestmark = pytest.mark.stack


@pytest.fixture
def name(stack: TestStack) -> str:
    """Return the name of a metric."""
    name = f"told_{uuid.uuid4().hex[:6]}"
    stack.define("metric", name, METRIC.format(name=name))
    stack.await_whole(name, "10s")
    return name


def send(stack: TestStack, name: str) -> int:
    """Post some events, and return how many bytes their data has."""
    now_ms = SystemClock().now_ms()
    head = {"specversion": "1.0", "source": "/told", "type": name, "time": weblog.iso(now_ms)}
    data = {"text": "x" * 200}
    weblog.post(
        *(stack.ingest_url, stack.key),
        [{**head, "id": f"{name}-{now_ms}-{n}", "data": data} for n in range(EVENTS)],
    )
    return EVENTS * 200


def test_ingest(stack: TestStack, name: str) -> None:
    """Requests and their bytes, samples for the live tail; nothing is held once all is answered."""
    before = stack.figures("ingest")
    size = send(stack, name)
    with pytest.raises(HTTPError, match="401"):
        weblog.post(stack.ingest_url, "wk_nobody_nothing", [])

    def is_told() -> bool:
        now = stack.figures("ingest")
        went_on = grown(before, now)
        return (
            went_on('weir_ingest_requests_total{status="200"}') >= 1
            and went_on('weir_ingest_requests_total{status="401"}') >= 1
            and went_on('weir_ingest_refused_total{code="unauthorized"}') >= 1
            and went_on("weir_ingest_body_bytes_total") >= size
            and went_on("weir_ingest_tail_events_total") >= 1
            and now["weir_ingest_keys_count"] >= 1
            and now["weir_ingest_threads_count"] >= 1
            and now["weir_ingest_in_flight_bytes"] == 0
            and now["weir_ingest_unacknowledged_records"] == 0
        )

    stack.wait_until(is_told, "the figures of ingest")


def test_the_engine(stack: TestStack, name: str) -> None:
    """Its epoch, and a clock that the broker shares."""
    now = stack.figures("panes")
    assert now["weir_panes_epoch_count"] == stack.query(asked(name))["epoch"]
    assert abs(now["weir_panes_broker_clock_ahead_seconds"]) < 5
    assert now["weir_panes_changed_spans_total"] >= 0


def test_alerts(stack: TestStack) -> None:
    """Rules are evaluated up to lately; nothing is wrong with the ledger, nothing is recounted."""

    def is_told() -> bool:
        now = stack.figures("alerts")
        late_s = SystemClock().now_ms() / 1000 - now["weir_alerts_processed_through_seconds"]
        return (
            late_s < LATELY_S
            and now["weir_alerts_ledger_difference_count"] == 0
            and now["weir_alerts_recounting_count"] == 0
            and now["weir_alerts_redis_memory_bytes"] > 0
            and now["weir_alerts_redis_keys_count"] > 0
            and all(
                now[f"weir_alerts_{one}"] >= 0
                for one in (
                    "due_count",
                    "oldest_due_seconds",
                    "failing_channels_count",
                    "rules_refused_count",
                )
            )
        )

    stack.wait_until(is_told, "the figures of alerts")


def test_the_dashboard(stack: TestStack, name: str) -> None:
    """Requests, refusals, sockets, the queries that are followed, and the frames of them."""
    before = stack.figures("dashboard")
    with pytest.raises(ApiError) as refused:
        stack.query(asked("nothing_like_it"))
    assert refused.value.status == 404
    with followed(stack, asked(name)):
        send(stack, name)

        def is_told() -> bool:
            now = stack.figures("dashboard")
            went_on = grown(before, now)
            late_s = SystemClock().now_ms() / 1000 - now["weir_dashboard_processed_through_seconds"]
            return (
                went_on('weir_dashboard_refused_total{code="metric_unknown"}') >= 1
                and sum_of(now, "weir_dashboard_requests_total{")
                > sum_of(before, "weir_dashboard_requests_total{")
                and now["weir_dashboard_sockets_count"] >= 1
                and now["weir_dashboard_feeds_count"] >= 1
                and now["weir_dashboard_panes_kept_bytes"] > 0
                and went_on('weir_dashboard_frames_total{kind="snapshot"}') >= 1
                and went_on('weir_dashboard_frames_total{kind="delta"}') >= 1
                and went_on("weir_dashboard_evaluation_seconds_count") >= 1
                and went_on("weir_dashboard_frame_age_seconds_count") >= 1
                and went_on("weir_dashboard_frame_gap_seconds_count") >= 1
                and went_on("weir_dashboard_frames_held_back_total") >= 0
                and now["weir_dashboard_log_left_seconds"] > 0
                and not math.isnan(now["weir_dashboard_log_kept_seconds"])
                and late_s < LATELY_S
            )

        stack.wait_until(is_told, "the figures of the dashboard", 60)
    with socket_of(stack) as socket:
        socket.send("no JSON")
        with pytest.raises(ConnectionClosed):
            socket.recv(10)
    closed = 'weir_dashboard_sockets_closed_total{code="4400"}'
    stack.wait_until(
        lambda: grown(before, stack.figures("dashboard"))(closed) >= 1, "the socket it closed"
    )


# ── what is done, and how it is looked at ───────────────────────────────────


def asked(metric: str) -> dict[str, Any]:
    """Return a query that each second answers anew."""
    return {
        **{"metric": metric, "aggregate": "count", "by": [], "step": "1s"},
        "window": {"kind": "tumbling", "length": "1s"},
        "range": {"last": "1m"},
    }


@contextmanager
def socket_of(stack: TestStack) -> Iterator[ClientConnection]:
    """Open a live socket."""
    url = stack.dashboard_url.replace("http", "ws") + "/api/v1/live"
    with connect(
        url, subprotocols=[Subprotocol("weir.v1")], compression=None, max_queue=None
    ) as socket:
        yield socket


@contextmanager
def followed(stack: TestStack, query: dict[str, Any]) -> Iterator[None]:
    """Follow a query live."""
    with socket_of(stack) as socket:
        socket.send(json.dumps({"op": "hello", "v": 1, "auth": stack.key}))
        socket.send(
            json.dumps({"op": "subscribe", "id": 1, "to": "query", "query": query, "from": None})
        )
        yield


def grown(before: dict[str, float], now: dict[str, float]) -> Callable[[str], float]:
    """Return who says by how much a series went on; one with labels begins with its first."""
    return lambda series: now.get(series, 0.0) - before.get(series, 0.0)


def sum_of(figures: dict[str, float], begin: str) -> float:
    """Return the sum of all series of one name."""
    return sum(value for series, value in figures.items() if series.startswith(begin))
