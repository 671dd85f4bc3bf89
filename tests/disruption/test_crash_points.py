"""Each part killed at each crash point (RELIABILITY 2.5): the numbers equal the recount.

One stack for all points: what one leaves behind is what the next begins with.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from disruption.alarm import await_recorded, end_alarm
from disruption.lanes import Stood, assert_goes_on_behind, stood
from disruption.scene import PATIENCE_S, Scene
from equality import edit_load, is_filled

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1200)]

# C3 is on the way up; the others are reached with each batch.
ENGINE = ("C3", "C4", "C5", "C6", "C7", "C8", "C9")


def test_ingest_dies_around_the_acknowledgement(here: Scene) -> None:
    """C1, C2: sent, or stored, and nobody was told: the client sends again, counted once."""
    with here.watched():
        for point in ("C1", "C2"):
            here.crash("ingest", f"{point}:kill@{here.rig.chance.randint(1, 5)}")
            here.rig.arm("ingest")
            here.rig.restart("ingest")
            here.more(200)


def test_the_engine_dies_at_every_point(here: Scene) -> None:
    """C3 to C9: whoever starts next finds what is committed, and counts the rest once.

    Held against the recount before anything is counted again: that would hide what was wrong.
    """
    before = len(here.rig.lines("panes", "reconciled"))
    with here.watched():
        for point in ENGINE:
            at = 1 if point == "C3" else here.rig.chance.randint(2, 4)
            here.crash("panes", f"{point}:kill@{at}")
    verdicts = [line["verdict"] for line in here.rig.lines("panes", "reconciled")[before:]]
    assert "lost" not in verdicts, f"nothing was lost here, got {verdicts}"


def test_the_engine_dies_and_redis_loses_its_tail(here: Scene) -> None:
    """C10: the marks are behind the checkpoint, and what is missing is counted again."""
    with here.watched(redis_goes_back=True):
        lose_the_tail_of_redis(here)


def test_the_engine_dies_in_the_middle_of_a_lane(here: Scene) -> None:
    """C11: of a new version's history, its takeover, a rebuild: whoever starts next goes on."""
    with here.watched():
        die_in_the_middle_of_a_backfill(here)
        die_in_the_middle_of_a_takeover(here)
    with here.watched(redis_goes_back=True):
        before = die_in_the_middle_of_a_rebuild(here)
    assert_goes_on_behind(here.rig, before)


def lose_the_tail_of_redis(here: Scene, action: str = "kill") -> None:
    """C10: the marks are behind the checkpoint; the driver levels them from the log.

    One that lives goes on by itself; whatever has ended is started again.
    """
    rig, fail = here.rig, f"C10:{action}@4"
    aof = newest_aof(rig.home.folder / "redis")
    kept_bytes = aof.stat().st_size
    rig.kill("panes")
    rig.forget(fail)
    rig.arm("panes", fail)
    rig.stack.launch("panes")
    rig.wait_until(lambda: rig.has_bitten(fail), f"panes at {fail}", PATIENCE_S)
    if action == "kill":
        rig.await_end("panes", PATIENCE_S)
    rig.kill("redis")
    before = len(rig.lines("panes", "reconciled"))
    with aof.open("r+b") as file:
        file.truncate(kept_bytes)
    rig.restart("redis")
    rig.arm("panes")

    def verdicts() -> list[str]:
        rig.revive()
        return [line["verdict"] for line in rig.lines("panes", "reconciled")[before:]]

    found = rig.wait_until(verdicts, "what the driver makes of it", PATIENCE_S)
    assert found[0] == "behind", f"marks must be behind the checkpoint, got {found}"


def die_in_the_middle_of_a_backfill(here: Scene) -> None:
    """C11: the new version serves what is compared afterwards."""
    here.rig.kill("panes")
    version = edit_load(here.rig)
    here.crash("panes", "C11:kill@1")
    before = stood(here.rig)
    here.heal()
    here.rig.wait_until(lambda: is_filled(here.rig), "the history of the edited metric", PATIENCE_S)
    assert here.rig.api("GET", "/metrics/load").body["version"] == version
    assert_goes_on_behind(here.rig, before)


def die_in_the_middle_of_a_takeover(here: Scene) -> None:
    """C11: filled and not in force, then in force and nobody has told readers: once, no gap."""
    here.rig.kill("panes")
    version = edit_load(here.rig)
    here.crash("panes", "C11-filled:kill@1")
    before = stood(here.rig)
    here.crash("panes", "C11-taken:kill@1")
    here.heal()
    here.rig.wait_until(lambda: is_filled(here.rig), "the takeover", PATIENCE_S)
    assert here.rig.api("GET", "/metrics/load").body["version"] == version
    assert_goes_on_behind(here.rig, before)


def die_in_the_middle_of_a_rebuild(here: Scene) -> Stood:
    """C11: the shards are counted again in slices; return where they stood when it died."""
    here.rig.kill("panes")
    here.wipe()
    here.crash("panes", "C11:kill@1")
    return stood(here.rig)


def test_alerts_die_around_a_message(here: Scene) -> None:
    """C12: due and not sent, then sent and not noted: it is sent (again), under one key."""
    end_alarm(here)
    await_recorded(here.rig)
    told = len(here.receiver.bodies)
    here.rig.kill("alerts")
    here.rig.arm("alerts", "C12-stored:kill@1")
    here.rig.stack.launch("alerts")
    here.load.resume()
    here.rig.await_end("alerts", 90)
    assert here.rig.has_bitten("C12-stored:kill@1")
    assert len(here.receiver.bodies) == told
    with here.watched():
        here.crash("alerts", "C12-sent:kill@1")
        assert [body["kind"] for body in here.receiver.bodies[told:]] == ["firing"]
        here.heal()
        here.rig.wait_until(lambda: len(here.receiver.bodies) > told + 1, "the message again", 60)
    again = here.receiver.bodies[told : told + 2]
    assert [body["kind"] for body in again] == ["firing", "firing"]
    assert len({body["dedup_key"] for body in again}) == 1


def newest_aof(folder: Path) -> Path:
    """Return the file that Redis appends to: its name has changed with Redis 7."""
    found = sorted(folder.rglob("*.incr.aof")) or sorted(folder.rglob("*.aof"))
    return max(found, key=lambda path: path.stat().st_mtime_ns)
