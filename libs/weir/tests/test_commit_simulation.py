"""The commit protocol survives every fault of the model: no run ends wrong."""

import os
from collections import Counter

import pytest
from weir.commit import ShardState, Verdict, decide
from weir.commit_found import Found, Recovery
from weir.commit_recovery import reconcile

from .commit_attempt import Rules
from .commit_simulation import CORRECT, Faults, Run, run
from .commit_world import Range

RUNS = int(os.environ.get("WEIR_COMMIT_RUNS", "2000"))
# For runs beside each other.
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_no_run_ends_wrong(part: int) -> None:
    """After healing, every pane of every run equals the recount of its log."""
    wrong = {seed: wrongs for seed in range(part, RUNS, PARTS) if (wrongs := run(seed))}

    assert wrong == {}


# The topic is created anew, and retention takes what is not counted yet.
OF_THE_LOG = Faults(anew=0.006, retention=0.015)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_run_on_a_log_that_loses_records_ends_wrong(part: int) -> None:
    """Nothing is counted of another log, nobody goes on unasked, and what is short is told."""
    runs = range(part, RUNS // 5, PARTS)
    wrong = {seed: wrongs for seed in runs if (wrongs := run(seed, faults=OF_THE_LOG))}

    assert wrong == {}


def test_the_faults_of_the_log_bite() -> None:
    """Drivers end until somebody decides, go on by that, and panes are told to be incomplete."""
    met: Counter[str] = Counter()
    refused: Counter[bool] = Counter()

    def count_start(found: Found) -> Recovery:
        recovery = reconcile(found)
        refused[found.adopt] += recovery.verdict is Verdict.FOREIGN
        return recovery

    for seed in range(60):
        one = Run(seed, Rules(reconcile=count_start), OF_THE_LOG)
        assert one.wrongs() == []
        met.update({record.kind for record in one.world.definitions})
        met["created anew"] += one.world.topic > 0
        met["incomplete"] += one.world.said_incomplete() > 0

    assert min(met[what] for what in ("adopt", "adopted", "created anew", "incomplete")) >= 20
    assert refused[False] >= 20
    assert refused[True] == 0, "a person's decision must be enough"


def test_the_faults_bite() -> None:
    """The runs meet every verdict on a commit, and every case of recovery."""
    commits: Counter[Verdict] = Counter()
    starts: Counter[Verdict] = Counter()

    def count_commit(shard: ShardState, mine: Range) -> Verdict:
        verdict = decide(shard, mine.attempt)
        commits[verdict] += 1
        return verdict

    def count_start(found: Found) -> Recovery:
        recovery = reconcile(found)
        starts[recovery.verdict] += 1
        return recovery

    for seed in range(60):
        assert run(seed, Rules(decide=count_commit, reconcile=count_start)) == []

    assert set(commits) == set(Verdict) - {Verdict.FOREIGN}
    assert set(starts) == {Verdict.OK, Verdict.LOST, Verdict.BEHIND, Verdict.REWIND}
    assert min(*commits.values(), *starts.values()) >= 5


def test_corrections_are_checked() -> None:
    """Runs in which Redis loses nothing publish corrections of final panes."""
    corrected = 0
    for seed in range(60):
        one = Run(seed, CORRECT, Faults(tail=0.0, wipe=0.0, checkpoint=0.0))
        assert one.wrongs() == []
        corrected += sum(one.world.corrections.values()) > 0 and bool(one.world.final)

    assert corrected > 30
