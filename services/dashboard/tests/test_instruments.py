"""What Prometheus is told of the live sockets: how old frames are, and how long nothing came."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY
from weir.clock import ManualClock
from weir_dashboard import instruments
from weir_dashboard.live import hub as live_hub
from weir_dashboard.live.client import Client, Subscription
from weir_dashboard.live.feeds import Feeds
from weir_dashboard.live.hub import HEARTBEAT_S, Hub
from weir_dashboard.live.pipeline import Warnings

NOW_MS = 1_000_000


def value(series: str, **labels: str) -> float:
    """Return what a series says now."""
    found = REGISTRY.get_sample_value(series, labels)
    assert found is not None
    return found


class Socket:
    """A socket that takes everything."""

    unsent_bytes = 0

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, frame: bytes) -> None:
        """Keep a frame."""
        self.written.append(frame)


def answer(rev: int, through_ms: int | None) -> dict[str, Any]:
    """Return an answer without series."""
    fresh = {"processed_through_ms": through_ms, "status": "live"}
    return {"epoch": 1, "rev": rev, "fresh": fresh, "final_to_ms": None, "t_ms": [], "series": []}


@pytest.mark.parametrize(("through_ms", "ages"), [(NOW_MS - 1_500, [1.5]), (None, [])])
def test_frames_are_as_old_as_what_they_tell(through_ms: int | None, ages: list[float]) -> None:
    """Once for all who get it; nothing where no age is known, and nothing if nobody gets it."""
    asyncio.run(frames_are(through_ms, ages))


async def frames_are(through_ms: int | None, ages: list[float]) -> None:
    """Let two follow a feed."""
    feeds = Feeds(ManualClock(NOW_MS))

    async def answered() -> dict[str, Any]:
        return answer(7, through_ms)

    feed = feeds.open("q1", cast("Any", SimpleNamespace(answer=answered)))
    assert await feeds._take_answer(feed)
    sockets = [Socket(), Socket()]
    for socket in sockets:
        client = Client(cast("Any", socket), 0.0)
        feed.subscriptions.add(Subscription(client, 1, "q1"))
    count, total = "weir_dashboard_frame_age_seconds_count", "weir_dashboard_frame_age_seconds_sum"
    before = value(count), value(total)
    feeds.send(feed)
    feeds.send(feed)  # nothing is new

    assert [len(socket.written) for socket in sockets] == [1, 1]
    assert value(count) - before[0] == len(ages)
    assert value(total) - before[1] == pytest.approx(sum(ages))


def test_a_gap_is_from_heartbeat_to_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first has none before it; a loop that hangs is told with all of its seconds."""
    fresh = SimpleNamespace(status="live", part=None, processed_through_ms=NOW_MS)
    observer = cast("Any", SimpleNamespace(fresh=lambda: fresh))
    nothing = cast("Any", SimpleNamespace())
    monkeypatch.setattr(live_hub, "Pipelines", lambda *_: SimpleNamespace(beat=print))
    hub = Hub(
        observer=observer,
        feeds=nothing,
        tails=nothing,
        alerts=nothing,
        corrections=nothing,
        conversation=cast("Any", SimpleNamespace()),
        max_sockets=9,
        newer=lambda: (),
        warnings=Warnings,
    )
    monkeypatch.setattr(hub, "_heartbeat", lambda: b"")
    monkeypatch.setattr(hub, "_ping_s", float("inf"))
    count, total = "weir_dashboard_frame_gap_seconds_count", "weir_dashboard_frame_gap_seconds_sum"
    before = value(count), value(total)
    for now_s in (100.0, 100.0 + HEARTBEAT_S / 2, 100.0 + HEARTBEAT_S, 114.0):
        hub._beat(now_s)

    assert (value(count) - before[0], value(total) - before[1]) == (2, 14.0)


def test_threads_are_those_of_the_process() -> None:
    """Those of C libraries as well, which Python does not know of."""
    assert instruments.threads._name == "weir_dashboard_threads_count"
    assert value("weir_dashboard_threads_count") >= 1
