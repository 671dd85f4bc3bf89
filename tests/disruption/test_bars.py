"""What is promised stays promised where two rigs run at a time; only patience grows."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from disruption import scene
from disruption.rig import promised_s
from disruption.scene import Healed, Scene, await_new_result, time_left_s
from weir.clock import SystemClock
from weir_local.waiting import wait_until

TESTS = Path(__file__).parent.parent
IMPORTED = (TESTS, TESTS / "shared", TESTS.parent / "bench")
# By module, its bars and how many seconds the contract gives (RELIABILITY 1 and 3).
BARS = {
    "disruption.checker": {"RECOVERY_S": 120},
    "disruption.scene": {"FIRST_RESULT_S": 60},
    "disruption.soak": {"RECOVERY_S": 120},
    "disruption.test_catching_up": {"FRESH_S": 10},
    "disruption.test_faults_of_stores": {"STALE_S": 10},
    "disruption.test_isolation": {"FRESH_MS": 3_000, "BESIDE_ALONE": 1.25},
    "disruption.test_processes": {"FIRST_RESULT_S": 60},
}
READ = """
import importlib, json, sys
bars = json.loads(sys.argv[1])
found = {m: {n: getattr(importlib.import_module(m), n) for n in names} for m, names in bars.items()}
print(json.dumps(found))
"""


@pytest.mark.parametrize(("pace", "bar_s"), [(0.5, 10), (1, 10), (2, 10), (3, 15), (5, 25)])
def test_a_bar_grows_only_where_others_work(pace: float, bar_s: float) -> None:
    """Up to two rigs at a time it is the contract's; beyond that the machine is another's."""
    assert promised_s(10.0, pace) == bar_s


def test_two_rigs_at_a_time_have_the_bars_of_one() -> None:
    """Each is read as a run of `WEIR_PACE=2` reads it."""
    done = subprocess.run(  # noqa: S603  our own interpreter
        [sys.executable, "-c", READ, json.dumps(BARS)],
        env={
            **os.environ,
            "WEIR_PACE": "2",
            "PYTHONPATH": os.pathsep.join(map(str, IMPORTED)),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == BARS


def test_what_comes_up_again_is_part_of_recovering() -> None:
    """One window from healing on: what has died takes its share, and too long a share is red."""
    assert time_left_s(20.0, 120.0, "it") == 100.0
    late = r"could not see it within 120 s: all was ready after 120\.0 s"
    with pytest.raises(TimeoutError, match=late):
        time_left_s(120.0, 120.0, "it")


def test_a_result_is_one_of_after_healing() -> None:
    """What was counted up to then is none; what was counted just after it is one."""
    healed = Healed(SystemClock().monotonic_s(), 1_000, 0)
    told: Any = SimpleNamespace(wait_until=wait_briefly)
    for through_ms, is_one in ((1_000, False), (1_001, True)):
        told.fresh = lambda through_ms=through_ms: {"processed_through_ms": through_ms}
        with contextlib.nullcontext() if is_one else pytest.raises(TimeoutError):
            await_new_result(told, 120.0, since=healed)


@pytest.mark.parametrize(
    ("acknowledged", "through_ms", "is_one"),
    [(8, 1 << 60, True), (7, 1 << 60, False), (8, 1, False)],
    ids=["taken and counted", "ticks alone", "taken alone"],
)
def test_a_result_after_a_kill_is_of_an_event(
    monkeypatch: pytest.MonkeyPatch, acknowledged: int, through_ms: int, is_one: bool
) -> None:
    """D2: one that was taken after the part was started again, and is counted."""
    monkeypatch.setattr(Scene, "heal", lambda _scene: Healed(SystemClock().monotonic_s(), 0, 7))
    told: Any = SimpleNamespace(
        wait_until=wait_briefly, fresh=lambda: {"processed_through_ms": through_ms}
    )
    load: Any = SimpleNamespace(acknowledged=acknowledged)
    nobody: Any = None
    with contextlib.nullcontext() if is_one else pytest.raises(TimeoutError, match="a new result"):
        Scene(told, load, nobody).recover()


def wait_briefly(look: Callable[[], object], what: str, timeout_s: float) -> None:
    """Wait as a rig does, and not as long."""
    wait_until(look, timeout_s=min(timeout_s, 0.05), what=what, every_s=0.01)


@pytest.mark.parametrize(("wiped", "allowed_s"), [(False, 120), (True, 150)])
def test_only_what_is_counted_again_takes_longer(
    monkeypatch: pytest.MonkeyPatch, wiped: bool, allowed_s: float
) -> None:
    """Lag is 0 within 120 s of healing (I16); after a wipe the log is counted besides."""
    monkeypatch.setattr(scene, "recount_s", lambda _rig: 30.0)
    nothing: Any = None
    assert Scene(nothing, nothing, nothing, wiped=wiped).allowed_s(120.0) == allowed_s
