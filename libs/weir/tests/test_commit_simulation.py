"""The commit protocol survives every fault of the model: no run ends wrong."""

import os
from collections import Counter
from dataclasses import replace

import pytest
from weir.commit import ShardState, Verdict, decide
from weir.commit_found import Found, Recovery
from weir.commit_recovery import reconcile
from weir.definitions.history import Start
from weir.names import LIVE_LANE

from .commit_attempt import Rules
from .commit_simulation import CORRECT, Faults, Run, run
from .commit_world import Range, topic_of

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


# Drivers end, sleep and start beside each other often, while the log is touched too.
OF_STARTS = replace(OF_THE_LOG, crash=0.05, second=0.05, pause=0.05)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_run_with_drivers_that_sleep_while_they_start_ends_wrong(part: int) -> None:
    """Who has read what is no more so takes nothing back, and all of it is counted all the same."""
    runs = range(part, RUNS // 5, PARTS)
    wrong = {seed: wrongs for seed in runs if (wrongs := run(seed, faults=OF_STARTS))}

    assert wrong == {}


def test_the_faults_of_starts_bite() -> None:
    """Starts are overtaken; some would take back an epoch, a log or what is incomplete."""
    met: Counter[str] = Counter()

    def count_start(start: Start, before: Start | None) -> Start:
        heeded = start.behind(before)
        if before is not None and heeded.overtaken:
            met["overtaken"] += 1
            met["epoch"] += start.epoch < before.epoch
            met["log"] += topic_of(start) < topic_of(before)
            met["incomplete"] += start.incomplete_before_ms < before.incomplete_before_ms
        return heeded

    for seed in range(300):
        assert run(seed, Rules(behind=count_start), OF_STARTS) == []

    assert met["overtaken"] >= 100
    assert min(met[what] for what in ("epoch", "log", "incomplete")) >= 5


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


class WholeTails(Run):
    """Redis loses its latest writes, always of everything, and drivers do not end meanwhile.

    But not between the corrections of a batch and Spark's note of it: nobody knows then whether
    they were told, and they may be twice.
    """

    def _lose_tail(self, _: int) -> None:
        world, rng = self.world, self.world.rng
        if not world.before or world.is_publishing:
            return
        back = min(len(world.before), 1 + int(rng.random() ** 2 * self.faults.tail_writes))
        shards, stream = world.before[-back]
        if all(LIVE_LANE in image.marks for image in shards):  # else it is a loss
            world.shards, world.stream, world.went_back = list(shards), stream, True
            del world.before[-back:]

    def _check(self) -> None:
        super()._check()
        if not self.world.rebuilds():  # what a lane fills is told to be incomplete meanwhile
            self._check_corrections()


WHOLE_TAILS = Faults(
    **dict.fromkeys(("crash", "second", "pause", "wipe", "checkpoint", "left_behind"), 0.0),
    tail=0.15,
    tail_writes=4,
    steps=250,
)


def test_corrections_are_told_once_though_all_shards_go_back() -> None:
    """What was told before Redis went back is not told again, and what was not, is (I9)."""
    corrected = levelled = 0
    for seed in range(200):
        one = WholeTails(seed, CORRECT, WHOLE_TAILS)
        assert one.wrongs() == [], seed
        corrected += sum(one.world.corrections.values()) > 0 and bool(one.world.final)
        levelled += one.world.levelled

    assert corrected > 100
    assert levelled > 100


@pytest.mark.parametrize(
    "rules",
    [
        Rules(reconcile=lambda found: reconcile(replace(found, checkpoint=None))),
        Rules(reads_marks_with_outboxes=False),
    ],
)
def test_corrections_would_not_add_up(rules: Rules) -> None:
    """Where the stream counts again what was told, or a record is of what Redis has lost."""
    found = [one for seed in range(100) for one in WholeTails(seed, rules, WHOLE_TAILS).wrongs()]

    assert any(one.startswith("I9") for one in found)
