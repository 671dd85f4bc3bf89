"""Answers that differ at a revision that was told already."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from weir.clock import ManualClock
from weir_dashboard.live.feeds import Feeds


def answer(rev: int, state: str) -> dict[str, Any]:
    """Return an answer with one window of one series."""
    value = None if state == "r" else 1.0
    numbers = {name: [value] for name in ("value", "low", "high", "count")}
    series = {"k": 0, "by": {}, "slot": 0, **numbers}
    return {
        "metric": {"name": "m", "version": 1},
        "epoch": 1,
        "rev": rev,
        "final_to_ms": None,
        "t_ms": [10_000],
        "of": 1,
        "notes": [],
        "corrections": [],
        "series": [{**series, "state": state}],
        "fresh": {},
    }


class Asked:
    """A question whose answers are given; no batch changes any of its panes."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self._answers = list(answers)

    async def answer(self) -> dict[str, Any]:
        """Return the next one."""
        return self._answers.pop(0)

    def is_due(self, _record: object) -> bool:
        """Return that nothing changed."""
        return False


def test_it_is_told_with_the_next_batch() -> None:
    """A metric serves from batch 7 on, which was evaluated before its takeover was read."""
    asyncio.run(told_later())


async def told_later() -> None:
    """Evaluate three times: at revision 7, at 7 once more, and at 8."""
    feeds = Feeds(ManualClock(0))
    asked = Asked(answer(7, "r"), answer(7, "f"), answer(8, "f"), answer(9, "f"))
    feed = feeds.open("q1", cast("Any", asked))
    for state in ("r", "r", "f"):
        assert feed.dirty
        feed.dirty = False
        assert await feeds._take_answer(feed)
        assert feed.track is not None
        assert feed.track.answer["series"][0]["state"] == state
        if state == "r" and not feed.withheld:
            feeds.evaluate_all()
        else:
            feeds.on_batch(cast("Any", object()))
    assert not feed.dirty
