"""What became of events of the tail, told to who could not take it at once."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from weir_dashboard.live.client import Subscription
from weir_dashboard.live.tail import OWED, Tails
from weir_dashboard.live.tail_filter import Filter

NOBODY: Any = None


class Watcher:
    """One who follows a tail, and may pause."""

    def __init__(self, tails: Tails) -> None:
        self.frames: list[dict[str, Any]] = []
        socket = SimpleNamespace(write=self._took)
        self.client = SimpleNamespace(socket=socket, hz=4, can_take=lambda _: True)
        subscription = Subscription(self.client, 1, "t1")  # type: ignore[arg-type]
        tails.join("t1", Filter(None), subscription, "shop")
        self.subscription = subscription

    def _took(self, frame: bytes) -> None:
        self.frames.append(json.loads(frame[frame.index(b"{") :]))

    def fates(self) -> list[str]:
        """Return the ids of events whose fate was told, in order."""
        return [fate["id"] for frame in self.frames for fate in frame["fates"]]

    def shown(self) -> int:
        """Return how many events were shown."""
        return sum(frame["shown"] for frame in self.frames)


def accepted(tails: Tails, *offsets: int) -> None:
    """Let ingest copy some events."""
    events = [{"id": f"e{n}", "at": [0, n]} for n in offsets]
    tails._take("shop", {b"e": json.dumps(events).encode()})


def counted(tails: Tails, *offsets: int) -> None:
    """Let a batch count some events."""
    record: Any = SimpleNamespace(fates=[(0, n, "counted", "", ()) for n in offsets])
    tails.on_batch(record)


def test_who_pauses_is_told_later() -> None:
    """Each fate once, to each; events of a pause are missed, as of any sample."""

    async def run() -> None:
        tails = Tails(NOBODY, lambda _: None)
        steady, pausing = Watcher(tails), Watcher(tails)
        accepted(tails, 1, 2)
        pausing.client.hz = 0
        counted(tails, 1)
        accepted(tails, 3)
        counted(tails, 2)
        assert pausing.fates() == []
        pausing.client.hz = 4
        counted(tails)
        assert pausing.fates() == ["e1", "e2"]
        counted(tails, 3)
        counted(tails)
        assert pausing.fates() == steady.fates() == ["e1", "e2", "e3"]
        assert (steady.shown(), pausing.shown()) == (3, 2)

    asyncio.run(run())


def test_what_is_owed_is_bounded_and_goes_with_who_leaves() -> None:
    """A tab that is paused for a night is owed those of its screen, which are the first."""

    async def run() -> None:
        tails = Tails(NOBODY, lambda _: None)
        steady, pausing = Watcher(tails), Watcher(tails)
        pausing.client.hz = 0
        feed = tails._feeds["t1"]
        for n in range(OWED + 7):
            feed.shown[0, n] = f"e{n}"
        counted(tails, *range(OWED + 7))
        assert len(steady.fates()) == OWED + 7
        pausing.client.hz = 4
        counted(tails)
        assert pausing.fates() == [f"e{n}" for n in range(OWED)]
        pausing.client.hz = 0
        accepted(tails, 9_000)
        counted(tails, 9_000)
        tails.leave(pausing.subscription)
        assert feed.owed == {}

    asyncio.run(run())
