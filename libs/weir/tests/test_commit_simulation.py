"""The commit protocol survives every fault of the model: no run ends wrong."""

import os

from .commit_simulation import run

RUNS = int(os.environ.get("WEIR_COMMIT_RUNS", "2000"))


def test_no_run_ends_wrong() -> None:
    """After healing, every pane of every run equals the recount of its log."""
    wrong = {seed: wrongs for seed in range(RUNS) if (wrongs := run(seed))}

    assert wrong == {}
