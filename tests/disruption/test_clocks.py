"""D16 of RELIABILITY 3: the clocks of single parts are wrong, and step while they run.

A library of our own (`clock.c`) stands before the C library's clock in a part's process; a file
says by how much. libfaketime 0.9.10 cannot do this: with the steady clock left alone, Python's
`time.sleep` fails (EINVAL) and the timed waits of a JVM and of librdkafka end at once, or an
hour late. Of the brokers one of two is wrong: the clock of an only one is the time of the log
itself, which nothing can be held against.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from disruption.alarm import await_evaluated, beats_of
from disruption.brokers import SecondBroker, grow, log_ends, second_broker
from disruption.checker import RECOVERY_S
from disruption.faults import await_batches, bites, judged, needs, with_mutant
from disruption.rig import INTERRUPTED, Rig
from disruption.scene import PATIENCE_S, Scene, await_new_result, scene
from weir.clock import SystemClock

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(3600)]

HERE = Path(__file__).parent
# By how much a clock is wrong, one after the other: each a step while the part runs.
SHIFTS_S = (3_600, -3_600, 600)
PARTS = ("ingest", "panes", "alerts")
NEAR_S = 60
# So wrong is the clock of a part that is started with it.
STARTS_OFF_S = (3_600, -3_600)
# Of a broker: what is appended at a later time never gets an earlier one again, so that is first.
BROKER_SHIFTS_S = (-3_600, 600, 3_600)
OLD = ("behind", "stale")
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


def compiler() -> str | None:
    """Return what makes the library; None where nothing does."""
    return shutil.which("cc")


def made_library(folder: Path) -> Path:
    """Return the library that moves the clock of a process."""
    path = folder / "clock.so"
    words = ("-O2", "-shared", "-fPIC", "-o", str(path), str(HERE / "clock.c"))
    subprocess.run((str(compiler()), *words), check=True)  # noqa: S603  our own source
    return path


def moved_by(library: Path, told: Path) -> dict[str, str]:
    """Return the environment of a process whose clock is off by what a file says, in seconds."""
    return {"LD_PRELOAD": str(library), "WEIR_CLOCK_FILE": str(told)}


@with_mutant("alerts_by_the_wall_clock")
def test_clocks_are_wrong(tmp_path: Path, seed: int, mutant: str) -> None:
    """D16: the log and its panes are what they would be, and no alert changes for it."""
    with firing(tmp_path, seed, mutant) as (here, library, told):
        for part in ("alerts",) if mutant else PARTS:
            with clock_of(here, part, library) as step_to:
                for by_s in SHIFTS_S:
                    step_to(by_s)
                    assert_nothing_changes(here, part, by_s, told)


@with_mutant("alerts_by_the_present")
def test_parts_start_an_hour_off(tmp_path: Path, seed: int, mutant: str) -> None:
    """D16: ahead and behind from the first moment on, each part; all is as with a right clock."""
    with firing(tmp_path, seed, mutant) as (here, library, told):
        for part in ("alerts",) if mutant else PARTS:
            for by_s in STARTS_OFF_S:
                with clock_of(here, part, library, by_s):
                    assert_nothing_changes(here, part, by_s, told)


@contextlib.contextmanager
def firing(folder: Path, seed: int, mutant: str) -> Iterator[tuple[Scene, Path, list[str]]]:
    """Yield a scene whose rule fires for good, what moves clocks, and what was told of the rule."""
    needs(a_C_compiler=compiler)
    library = made_library(folder)
    with (
        scene(folder, seed, mutants={"alerts": mutant}) as here,
        judged(mutant),
        # A stream whose clock is set back begins anew.
        here.watched([INTERRUPTED]),
    ):
        here.define_alarm()
        here.rig.define("rule", "steady", STEADY)
        yield here, library, await_confirmed(here)


def assert_nothing_changes(here: Scene, part: str, by_s: int, told: list[str]) -> None:
    """Assert that a part whose clock is off goes on, and that no alert changes for it.

    Args:
        here: The stack.
        part: Whose clock it is.
        by_s: By how much it is off.
        told: What was told of the rule until then.
    """
    await_off(here.rig, part, by_s)
    here.more(100)
    await_new_result(here.rig, RECOVERY_S)
    await_evaluated(here.rig, SystemClock().now_ms())
    found = [*events_of(here), *["with another time"] * here.receiver.forged]
    assert found == told, f"no alert may change with the clock of {part}: {found}"


@with_mutant("newest_time_serves")
def test_the_clock_of_one_broker_is_wrong(tmp_path: Path, seed: int, mutant: str) -> None:
    """D16: each step is named; behind, it holds up the numbers; no alert changes for it."""
    needs(a_C_compiler=compiler)
    library = made_library(tmp_path)
    first, second = tmp_path / "clock", tmp_path / "clock2"
    for told in (first, second):
        told.write_text("0")
    with (
        scene(
            tmp_path,
            seed,
            mutants={"panes": mutant},
            settings={"kafka": moved_by(library, first)},
        ) as here,
        second_broker(here.rig, moved_by(library, second)),
        judged(mutant),
        here.watched([INTERRUPTED], brokers_ahead_s=max(BROKER_SHIFTS_S)),
    ):
        before = spread_over_two_brokers(here)
        by_s = 0
        for to_s in BROKER_SHIFTS_S:
            second.write_text(str(to_s))
            await_step_told(here.rig, to_s - by_s)
            by_s = to_s
            if to_s < 0:
                here.rig.wait_until(lambda: here.rig.fresh()["status"] in OLD, "old numbers")
                await_batches(here.rig, "panes", 5)
            else:
                here.more(100)
                await_new_result(here.rig, RECOVERY_S)
                await_evaluated(here.rig, SystemClock().now_ms())
            found = events_of(here)
            assert found == before, f"no alert may change with the clock of a broker: {found}"
        # The ledger is served up to the time that is counted, so all of the log gets there.
        first.write_text(str(by_s))
        await_step_told(here.rig, by_s)


def spread_over_two_brokers(here: Scene) -> list[str]:
    """Have half of the log's partitions on the second broker, and the rule fire for good.

    Returns what was told of the rule by then.
    """
    rig = here.rig
    here.define_alarm()
    rig.define("rule", "steady", STEADY)
    here.load.pause()
    grow(rig, 8, on=SecondBroker.NODE)
    rig.kill("ingest")  # its producer looks for new partitions every five minutes
    rig.restart("ingest")
    here.load.resume()
    here.more(200)
    bites(sum(log_ends(rig).get(p, 0) for p in range(4, 8)), "events of the second broker")
    return await_confirmed(here)


def await_step_told(rig: Rig, by_s: int) -> None:
    """Return once the driver has named a step of a broker's clock, and its amount."""

    def is_told() -> bool:
        steps = [line["by_ms"] / 1000 for line in rig.lines("panes", "broker_clock_stepped")]
        return any(abs(one - by_s) < NEAR_S for one in steps)

    rig.wait_until(is_told, f"a step of {by_s} s, told")


def await_confirmed(here: Scene) -> list[str]:
    """Return what was told of the rule once it fires for good.

    That is firing and confirmed, or firing alone where its windows were final by then.
    """

    def is_confirmed() -> bool:
        return [body["verdict"] for body in bodies_of(here)][-1:] == ["confirmed"]

    here.rig.wait_until(is_confirmed, "firing, confirmed", PATIENCE_S)
    found = events_of(here)
    assert found in (["firing", "confirmed"], ["firing"]), found
    return found


def events_of(here: Scene) -> list[str]:
    """Return what was told of the rule, in order."""
    return [body["kind"] for body in bodies_of(here)]


def bodies_of(here: Scene) -> list[dict[str, Any]]:
    """Return the messages about the rule, in order."""
    return [body for body in here.receiver.bodies if body.get("rule") == "steady"]


@contextlib.contextmanager
def clock_of(
    here: Scene, part: str, library: Path, off_s: int = 0
) -> Iterator[Callable[[int], object]]:
    """Start a part again with a clock that can be stepped; give it its own back at the end.

    Args:
        here: The stack.
        part: Whose clock it is.
        library: What moves it.
        off_s: By how much it is off from the first moment on.
    """
    told = here.rig.faults / f"clock_of_{part}"
    told.write_text(str(off_s))
    here.rig.kill(part)
    here.rig.arm(part, **moved_by(library, told))
    here.rig.restart(part)
    try:
        yield lambda by_s: told.write_text(str(by_s))
    finally:
        here.rig.kill(part)
        here.rig.arm(part, LD_PRELOAD="")
        here.rig.restart(part)


def await_off(rig: Rig, part: str, by_s: int) -> None:
    """Return once a part's heartbeat is so many seconds off: the fault has bitten."""
    rig.wait_until(lambda: is_off(rig, part, by_s), f"a clock of {part} off by {by_s} s")


def is_off(rig: Rig, part: str, by_s: int) -> bool:
    """Return whether the heartbeat of a part was written by such a clock."""
    at_s = [beat["at_ms"] / 1000 for beat in beats_of(rig, part)]
    return any(abs(one - time.time() - by_s) < NEAR_S for one in at_s)
