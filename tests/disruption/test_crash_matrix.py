"""Each crash point, killed, broken by an error, and held up, three times over (RELIABILITY 2.5).

One stack for a turn: what one point leaves behind is what the next begins with. The kills of a
first turn are in every run of `make test` (`test_crash_points.py`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from disruption.alarm import await_recorded
from disruption.rig import INTERRUPTED
from disruption.scene import (
    PATIENCE_S,
    Scene,
    await_new_result,
    processed_through_ms,
    scene,
)
from disruption.test_crash_points import lose_the_tail_of_redis
from equality import edit_load
from weir.clock import SystemClock

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(3600)]

TURNS = 3
INGEST = ("C1", "C2")
# C3 is on the way up, C11 in a backfill, before and after the record of its takeover; the others
# are reached with each batch.
LANE = ("C11", "C11-filled", "C11-taken")
ENGINE = ("C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", *LANE)
ALERTS = ("C12-stored", "C12-sent")
ONCE = ("C3", *LANE, *ALERTS)
# An error that no code knows ends a request, a thread or the process: that is told.
OF_RAISE = (
    "Exception in ASGI application\n",  # what uvicorn says of a request, answered by 500
    "batch_failed",
    "cannot_go_on",
    "channel_broke",
    "thread_died",
    "traceback",
    "work_failed",  # of what is done between batches, such as a slice of a backfill (C11)
    INTERRUPTED,
)


@pytest.mark.parametrize("turn", range(TURNS))
@pytest.mark.parametrize("action", ["kill", "raise", "sleep"])
def test_every_crash_point(tmp_path: Path, seed: int, action: str, turn: int) -> None:
    """C1 to C12: whatever happens there, the numbers equal the recount.

    On a stack of its own: each backfill counts all of the log, and that of ten such tests is long.
    """
    chance = random.Random(f"{seed}-{action}-{turn}")  # noqa: S311
    errors = OF_RAISE if action == "raise" else ()
    with scene(tmp_path, seed + turn, links=("panes-redis",)) as here:
        here.define_alarm()
        strike_all(here, chance, action, errors)


def strike_all(here: Scene, chance: random.Random, action: str, errors: Sequence[str]) -> None:
    """Strike each point once, in a drawn order of its part's, and hold all against the recount."""
    # What is counted again hides what was wrong: so all is compared before that.
    with here.watched(errors):
        for part, points in (("ingest", INGEST), ("panes", ENGINE), ("alerts", ALERTS)):
            for point in chance.sample(points, len(points)):
                at = 1 if point in ONCE else chance.randint(1, 4)
                strike(here, part, f"{point}:{action}@{at}")
            here.heal()
            await_recovery(here)
        here.more(100)
    # A driver that is alive meets a Redis that is away.
    met = errors if action == "kill" else (*errors, INTERRUPTED)
    with here.watched(met, redis_goes_back=True):
        lose_the_tail_of_redis(here, action)
        await_recovery(here)
        here.rig.kill("panes")
        here.wipe()
        strike(here, "panes", f"C11:{action}@1")
        here.heal()
        await_recovery(here)
        here.more(100)


def strike(here: Scene, part: str, fail: str) -> None:
    """Have a part reach a point, and assert that it did what was ordered there."""
    rig = here.rig
    rig.forget(fail)
    if part == "alerts":
        await_end_of_alarm(here)
    told = len(here.receiver.bodies)
    rig.kill(part)
    if fail.startswith("C11"):
        edit_load(rig)
    rig.arm(part, fail)
    rig.stack.launch(part)
    here.load.resume()
    rig.wait_until(lambda: rig.has_bitten(fail), f"{part} at {fail}", PATIENCE_S)
    if ":kill@" in fail:
        rig.await_end(part, PATIENCE_S)
    if part == "alerts":
        await_message(here, told, fail)
    if ":kill@" in fail:
        return
    # Nobody starts it with the order again, where an error has ended it.
    rig.arm(part)
    if part == "panes":
        await_recovery(here)


def await_message(here: Scene, told: int, fail: str) -> None:
    """C12: what is due is sent by whoever goes on; sent and not noted, again, under one key."""

    def firing() -> list[dict[str, Any]]:
        return [body for body in here.receiver.bodies[told:] if body["kind"] == "firing"]

    is_unnoted = fail.startswith("C12-sent") and ":sleep@" not in fail
    if ":kill@" in fail:
        assert len(firing()) == int(is_unnoted), f"sent until {fail}, got {firing()}"
    here.heal()
    least, what = (2, "the message again") if is_unnoted else (1, "the message")
    here.rig.wait_until(lambda: len(firing()) >= least, what, PATIENCE_S)
    assert len({body["dedup_key"] for body in firing()}) == 1


def await_end_of_alarm(here: Scene) -> None:
    """Let the alarm end: what makes it fire again reaches the points of a message."""
    here.heal()
    here.load.resume()
    here.rig.wait_until(
        lambda: here.receiver.bodies and here.receiver.bodies[-1]["kind"] != "resolved",
        "the alarm",
        PATIENCE_S,
    )
    here.load.pause()
    here.rig.wait_until(
        lambda: here.receiver.bodies[-1]["kind"] == "resolved", "the end of the alarm", 90
    )
    await_recorded(here.rig)


def await_recovery(here: Scene) -> None:
    """Wait for a new result, and start again what an error has ended, as a keeper does."""
    rig, now_ms = here.rig, SystemClock().now_ms()

    def is_past() -> bool:
        rig.revive()
        return processed_through_ms(rig) > now_ms

    rig.wait_until(is_past, "a new result", PATIENCE_S)
    await_new_result(rig)
