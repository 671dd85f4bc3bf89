"""Timelines of alerts as real events: through ingest, Kafka, Spark, Redis and the alerts job.

A minute of a timeline lasts four seconds here; everything else is as its data say.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import weblog
from alerts_job import SECRET, Receiver
from timelines import START_MS, Timeline, play, timelines
from weir.clock import SystemClock
from weir_local.testing import TestStack

MINUTE_MS, SCALED_MS = 60_000, 4_000
CHOSEN = (
    "two episodes are two alerts",
    "no events are 0 where everything is counted, and 0 is below",
    "late events withdraw while it fires",
)

pytestmark = pytest.mark.stack


class Post(NamedTuple):
    """Events to send.

    Attributes:
        at_ms: When, by the clock.
        time_ms: Their own time.
        events: How many.
    """

    at_ms: int
    time_ms: int
    events: int


@dataclass
class Run:
    """One timeline under way."""

    name: str
    timeline: Timeline
    receiver: Receiver

    begin_ms: int = 0

    def here(self, at_ms: int) -> int:
        """Return an instant of the timeline by the clock."""
        return self.begin_ms + (at_ms - START_MS) * SCALED_MS // MINUTE_MS

    @property
    def told(self) -> list[dict[str, Any]]:
        """What its receiver was told of the timeline, each message once.

        When it is over no events come any more, and where that is below, it fires again.
        """
        last_ms = self.here(max(moment.at_ms for moment in self.timeline.moments))
        found = {body["id"]: body for body in self.receiver.bodies if body["at_ms"] <= last_ms}
        return list(found.values())


@pytest.fixture
def runs(stack: TestStack) -> Iterator[list[Run]]:
    """Return the timelines, each with a metric, a channel and a receiver of its own."""
    (stack.home.secrets / "test_hook").write_text(SECRET)
    known = {one.name: one for one in timelines()}
    names = [f"line_{uuid.uuid4().hex[:8]}" for _ in CHOSEN]
    runs = [Run(name, known[one], Receiver()) for name, one in zip(names, CHOSEN, strict=True)]
    for run in runs:
        define(stack, run)
    for run in runs:
        stack.await_whole(run.name, scaled(MINUTE_MS))
    yield runs
    for run in runs:
        run.receiver.close()


def define(stack: TestStack, run: Run) -> None:
    """Define what a timeline's rule needs."""
    hook = f'{{url: "{run.receiver.url}", secret: "secret://test_hook"}}'
    head = f"name: {run.name}\n"
    stack.define(
        "metric",
        run.name,
        f"kind: metric\n{head}events: {{type: {run.name}}}\naggregates: [count]\n"
        f"resolution: 1s\nallowed_lateness: {scaled(run.timeline.lateness_ms)}\n",
    )
    stack.define("channel", run.name, f"kind: channel\n{head}webhook: {hook}\n")


def watch(stack: TestStack, run: Run) -> None:
    """Define a timeline's rule: it looks at windows that end from now on."""
    rule, length = run.timeline.rule, scaled(MINUTE_MS)
    assert isinstance(rule.limit, float | int)
    stack.define(
        "rule",
        run.name,
        f"kind: rule\nname: {run.name}\nmetric: {run.name}\naggregate: count\n"
        f"window: {{length: {length}, step: {length}}}\n{rule.side}: {rule.limit:g}\n"
        f"for: {scaled(rule.hold)}\nroute: {{channels: [{run.name}]}}\n",
    )


def scaled(span_ms: int) -> str:
    """Return a duration of a timeline as it is here."""
    return f"{span_ms * SCALED_MS // MINUTE_MS // 1000}s"


def posts(run: Run) -> list[Post]:
    """Return what to send: a pane's events in its middle, late ones when the newest pane ends.

    By then rules have looked at the pane before that, also where a batch takes seconds.
    """
    found, held = [], dict[int, int]()
    for world, _ in play(run.timeline):
        newest_ms = max(world.panes)
        for end_ms, filled in world.panes.items():
            more = filled.events - held.get(end_ms, 0)
            held[end_ms] = filled.events
            before_ms = SCALED_MS // 2 if end_ms == newest_ms else 0
            if more:
                at_ms = run.here(newest_ms) - before_ms
                found.append(Post(at_ms, run.here(end_ms) - SCALED_MS // 2, more))
    return found


def send(stack: TestStack, run: Run, post: Post) -> None:
    """Send events."""
    head = {"specversion": "1.0", "source": f"/{run.name}", "type": run.name, "data": {}}
    told = {**head, "time": weblog.iso(post.time_ms)}
    some = [{**told, "id": f"{post.at_ms}-{post.time_ms}-{n}"} for n in range(post.events)]
    weblog.post(stack.ingest_url, stack.key, some)


def pause_until(at_ms: int) -> None:
    """Keep the pace of the events."""
    time.sleep(max(0.0, (at_ms - SystemClock().now_ms()) / 1000))


def test_three_timelines_as_real_events(stack: TestStack, runs: list[Run]) -> None:
    """Each tells what its data want, in their order, and nothing else."""
    clock = SystemClock()
    begin_ms = (clock.now_ms() // SCALED_MS + 2) * SCALED_MS
    for run in runs:
        run.begin_ms = begin_ms
    due = sorted((post, n) for n, run in enumerate(runs) for post in posts(run))
    pause_until(begin_ms - SCALED_MS + 200)
    for run in runs:
        watch(stack, run)
    assert clock.now_ms() < begin_ms - 1000, "rules must be defined before their first window ends"
    for post, n in due:
        pause_until(post.at_ms)
        send(stack, runs[n], post)
    for run in runs:
        wanted = [one.kind for one in run.timeline.told]
        stack.wait_until(lambda: len(run.told) >= len(wanted), f"{wanted} told", 60)  # noqa: B023
        assert_told(run)


def assert_told(run: Run) -> None:
    """Assert what one timeline has told."""
    wanted = run.timeline.told
    assert [body["kind"] for body in run.told] == [one.kind for one in wanted], run.timeline.name
    for body, one in zip(run.told, wanted, strict=True):
        if "value" in one.besides:
            assert body["value"] == one.besides["value"], (run.timeline.name, body)
        if "before" in one.besides:
            # Two batches may count the late events of one request: then what stood before the last
            # of them is what the first batch left, and that is still below.
            assert one.besides["before"] <= body["before"] < run.timeline.rule.limit, body
    assert run.receiver.forged == 0
