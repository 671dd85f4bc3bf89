"""Faults D2, D5, D9 and D15 of RELIABILITY 3, without mutants.

They share a stack with the crash points; each asserts that its fault has bitten.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from disruption.alarm import await_evaluated, end_alarm, settle_alarm
from disruption.checkpoints import cut_newest, put_back
from disruption.faults import stop_in_a_batch, wipe_and_recount
from disruption.proxy import Conditions
from disruption.rig import INTERRUPTED
from disruption.scene import FIRST_RESULT_S, PATIENCE_S, Scene, await_new_result
from weir.clock import SystemClock

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1200)]

PARTS = ("ingest", "panes", "alerts", "dashboard", "redis", "kafka")


def test_it_is_the_load_of_the_long_form(here: Scene) -> None:
    """RELIABILITY 3: 500 to 1,000 events/s, warm for 15 s, and each fault lasts 20 s at least."""
    per_s = here.load.batch / here.load.every_s
    assert 500 <= per_s <= 1_000
    assert here.load.sent > per_s * 15 / 2, "a busy machine sends fewer, and not none"
    assert here.impact_s >= 20


def test_any_process_dies(here: Scene) -> None:
    """D2: each part is killed under load, at a moment of its own."""
    parts = here.rig.chance.sample(PARTS, len(PARTS))
    with here.watched([INTERRUPTED]):
        for part in parts:
            here.more(here.rig.chance.randrange(20, 200))
            here.rig.kill(part)
            assert here.rig.part(part).pid() is None, f"{part} must be dead"
            here.recover()


@pytest.mark.parametrize("when", ["idle", "in a batch"])
def test_redis_is_wiped(here: Scene, when: str) -> None:
    """D5: the shards are counted again from the log, unasked and told; no alert comes of it."""
    messages = end_alarm(here) if when == "idle" else settle_alarm(here)
    with here.watched([INTERRUPTED], redis_goes_back=True):
        if when == "in a batch":
            stop_in_a_batch(here)
        wipe_and_recount(here)
        await_new_result(here.rig, FIRST_RESULT_S)
        if when == "in a batch":  # else the alarm would fire again, rightly
            here.more(100)
        await_evaluated(here.rig, SystemClock().now_ms())
        kinds = [body["kind"] for body in here.receiver.bodies[messages:]]
        assert kinds == [], f"no alert may come of what is counted again, got {kinds}"


def test_redis_is_slow_and_loses_a_reply(here: Scene) -> None:
    """D9: 300 ± 200 ms an answer, and the reply to a commit is lost: nothing counts twice."""
    link = here.rig.links["panes-redis"]
    lost = link.lost
    with here.watched([INTERRUPTED]):
        link.now = Conditions(delay_s=0.15, jitter_s=0.1)
        here.more(100)
        for count in (1, 2):
            link.now.lose_reply_to = b"EXEC"
            link.await_lost(lost + count, PATIENCE_S)
            here.more(100)


def test_the_checkpoint_is_lost_truncated_or_old(here: Scene) -> None:
    """D15: the marks say where to go on: nothing is lost, nothing counts twice."""
    folder = here.rig.home.folder / "panes" / "checkpoint"
    kept = folder.with_name("kept")
    faults: tuple[Callable[[], object], ...] = (
        lambda: folder.rename(kept),  # not copied: a driver that runs deletes what is old
        lambda: cut_newest(folder / "offsets"),
        lambda: put_back(folder, kept),
    )
    with here.watched():
        for fault in faults:
            here.more(200)
            here.rig.kill("panes")
            before = len(here.rig.lines("panes", "reconciled"))
            fault()
            here.rig.restart("panes")
            assert verdicts_from(here, before)[-1] in ("rewind", "behind")
            await_new_result(here.rig, FIRST_RESULT_S)


def verdicts_from(here: Scene, count: int) -> list[str]:
    """Return the verdicts of the starts after the first `count`."""
    return [line["verdict"] for line in here.rig.lines("panes", "reconciled")[count:]]
