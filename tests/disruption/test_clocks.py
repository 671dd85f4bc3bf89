"""D16 of RELIABILITY 3: the clocks of single parts are wrong, and step while they run.

The library of faketime stands before the C library's clock in a part's process; a file says
by how much. Durations are measured by another clock, which nobody steps. A broker's clock is
not among them: with the one broker of this stack it is the time of the log itself, which the
engine tells when it runs ahead (`clock_ahead`).
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from disruption.checker import RECOVERY_S
from disruption.faults import judged, needs, recovery_s, with_mutant
from disruption.rig import Rig
from disruption.scene import PATIENCE_S, Scene, await_new_result, scene
from weir import names

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(3600)]

# By how much a clock is wrong, one after the other, in the format of the library.
SHIFTS = {"+1h": 3_600, "-1h": -3_600, "+10m": 600}
RIGHT = "+0"
NEAR_S = 60
TOLD = ["firing", "confirmed"]
# It holds through the seconds in which a part is started again.
STEADY = """
kind: rule
name: steady
metric: alarm
aggregate: count
window: {length: 2m, step: 10s}
above: 3
recover: 1
for: 10s
message: "the load flows"
route: {channels: [alarm]}
"""


def library() -> Path | None:
    """Return what moves the clock of a process with threads; None where it is not installed."""
    return next(Path("/usr/lib").rglob("libfaketimeMT.so.1"), None)


@with_mutant("alerts_by_the_wall_clock")
def test_clocks_are_wrong(tmp_path: Path, seed: int, mutant: str) -> None:
    """D16: the log and its panes are what they would be, and no alert changes for it."""
    needs(libfaketime=library)
    with (
        scene(tmp_path, seed, mutants={"alerts": mutant}) as here,
        judged(mutant),
        here.watched(recovery_s=recovery_s(mutant, RECOVERY_S)),
    ):
        here.define_alarm()
        here.rig.define("rule", "steady", STEADY)
        here.rig.wait_until(lambda: events_of(here) == TOLD, "firing, confirmed", PATIENCE_S)
        for part in ("alerts",) if mutant else ("ingest", "panes", "alerts"):
            with clock_of(here, part) as shift:
                for told, by_s in SHIFTS.items():
                    shift(told)
                    here.more(100)
                    await_new_result(here.rig, RECOVERY_S)
                    await_off(here.rig, part, by_s)
                    found = events_of(here)
                    assert found == TOLD, f"no alert may change with the clock of {part}: {found}"
        assert here.receiver.forged == 0


def events_of(here: Scene) -> list[str]:
    """Return what was told of the rule, in order."""
    return [body["kind"] for body in here.receiver.bodies if body.get("rule") == "steady"]


@contextlib.contextmanager
def clock_of(here: Scene, part: str) -> Iterator[Any]:
    """Start a part again with a clock that can be stepped; give it its own back at the end."""
    said = here.rig.faults / f"clock_of_{part}"
    said.write_text(RIGHT)
    here.rig.kill(part)
    here.rig.arm(
        part,
        LD_PRELOAD=str(library()),
        FAKETIME_TIMESTAMP_FILE=str(said),
        FAKETIME_CACHE_DURATION="1",
        FAKETIME_DONT_FAKE_MONOTONIC="1",
        # A correction for old C libraries: with it every timed wait of a JVM ends at once, so
        # each waiting thread spins.
        FAKETIME_FORCE_MONOTONIC_FIX="0",
    )
    here.rig.restart(part)
    try:
        yield said.write_text
    finally:
        here.rig.kill(part)
        here.rig.arm(part, LD_PRELOAD="")
        here.rig.restart(part)


def await_off(rig: Rig, part: str, by_s: int) -> None:
    """Return once a part's heartbeat is so many seconds off: the fault has bitten."""
    rig.wait_until(lambda: is_off(rig, part, by_s), f"a clock of {part} off by {by_s} s")


def is_off(rig: Rig, part: str, by_s: int) -> bool:
    """Return whether the heartbeat of a part was written by such a clock."""
    client: Any = redis.Redis.from_url(rig.redis_url)
    beats = [client.get(key) for key in client.keys(names.part_key(part, "*"))]
    client.close()
    at_s = [json.loads(beat)["at_ms"] / 1000 for beat in beats if beat]
    return any(abs(one - time.time() - by_s) < NEAR_S for one in at_s)
