"""What is promised stays promised where two rigs run at a time; only patience grows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from disruption import scene
from disruption.rig import promised_s
from disruption.scene import Scene

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


@pytest.mark.parametrize(("wiped", "allowed_s"), [(False, 120), (True, 150)])
def test_only_what_is_counted_again_takes_longer(
    monkeypatch: pytest.MonkeyPatch, wiped: bool, allowed_s: float
) -> None:
    """Lag is 0 within 120 s of healing (I16); after a wipe the log is counted besides."""
    monkeypatch.setattr(scene, "recount_s", lambda _rig: 30.0)
    nothing: Any = None
    assert Scene(nothing, nothing, nothing, wiped=wiped).allowed_s(120.0) == allowed_s
