"""Ten minutes of `make soak`, within `make test-disruption`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
MINUTES = 10


@pytest.mark.stack
@pytest.mark.disruption
@pytest.mark.alone
@pytest.mark.timeout(3600)
def test_ten_minutes_of_soak(seed: int) -> None:
    """Every row of the summary passes, or says why it cannot be told of so short a run."""
    path = os.pathsep.join([str(TESTS), str(TESTS / "shared"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(  # noqa: S603  our own interpreter
        [sys.executable, "-m", "disruption.soak", str(MINUTES)],
        env={**os.environ, "PYTHONPATH": path, "WEIR_SEED": str(seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-4_000:]
