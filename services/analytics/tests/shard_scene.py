"""One shard on a real Redis, and what a writer commits to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import redis
from weir import names, rows
from weir.commit import Fence, Mark
from weir.rows import Row
from weir.series import OTHER, OTHER_ID
from weir_analytics.panes.commit_job import CommitJob, Limits, Pane, Part

FENCE = Fence(7, "definitions")
VID = 5
START_S = 2_000_000_000
PANE = Pane(VID, 60, START_S)


def job(begin: int, to: int, **changes: object) -> CommitJob:
    """Return the job of a range of partition 0."""
    made = CommitJob(
        shard=0,
        shards=1,
        fence=FENCE,
        epoch=7,
        batch=begin,
        topic_id="events",
        from_offsets={0: begin},
        to_offsets={0: to},
        limits={VID: Limits({60: 86_400})},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def part(series: str = "=a", value: float = 1.0, start_s: int = START_S) -> Part:
    """Return a part of one event."""
    return Part(VID, 60, start_s, series, Row(1, value, value, value))


def raise_fence(client: redis.Redis, fence: Fence) -> None:
    """Write a fence as a driver would."""
    client.set(names.fence_key(0), msgspec.json.encode(fence))


def set_mark(client: redis.Redis, end: dict[int, int], topic_id: str = "events") -> None:
    """Write a live mark as a driver would."""
    mark = Mark(epoch=7, batch=-1, topic_id=topic_id, end=end, shards=1)
    client.set(names.mark_key(0), msgspec.json.encode(mark))


def stored(client: redis.Redis, pane: Pane = PANE) -> dict[str, Row]:
    """Return the rows of a pane by series, read as a reader reads them."""
    texts: dict[Any, Any] = client.hgetall(names.names_key(0, pane.vid))
    texts[OTHER_ID] = OTHER.encode()
    packed: dict[Any, Any] = client.hgetall(names.pane_key(0, *pane))
    return {texts[number].decode(): rows.decode(row) for number, row in packed.items()}
