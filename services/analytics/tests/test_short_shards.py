"""A shard of which a commit was applied in part: from the task that meets it to the driver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from weir.commit import Verdict
from weir_analytics.panes import cycle as cycle_module
from weir_analytics.panes import writer
from weir_analytics.panes.commit_job import Committed, Part
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.holes import Hole, HoleError
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.states import Frontier
from weir_analytics.panes.writer import Report

from .log_frames import batch_of

SHORT = Committed(Verdict.LOST, why="shard 0 is counted anew: WRONGTYPE", is_short=True)


def refuses(shard: int, _parts: Sequence[Part], *_more: Any) -> Committed:
    """Commit to the first shard in part, and to no other."""
    if shard == 0:
        return SHORT
    msg = "redis is away"
    raise OSError(msg)


def test_no_other_shard_takes_the_report_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that fails is tried again, and then the mark says that all of the batch is there."""
    batch = batch_of(tmp_path, 10, shards=3, single=True)
    monkeypatch.setattr(writer, "current_batch", lambda: batch)
    monkeypatch.setattr(writer, "current_versions", dict)
    monkeypatch.setattr(writer, "quarantine", lambda *_: None)
    monkeypatch.setattr(writer, "commit", refuses)

    (told,) = writer.write(iter(()))
    report = Report.from_json(told["report"][0].as_py())

    assert (report.verdicts, report.short, report.why) == ({0: "lost"}, [0], SHORT.why)


def test_nor_does_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It commits what no task had rows for, but not then: it has to begin again anyway."""
    monkeypatch.setattr(cycle_module, "commit", refuses)
    driver = Cycle.__new__(Cycle)
    report = Report()
    report.note(0, SHORT)
    plan = cast("Any", SimpleNamespace(versions=[]))

    with pytest.raises(VerdictError, match="shard 0 is counted anew") as caught:
        driver._settled([report.to_json()], plan, batch_of(tmp_path, 10, shards=3))

    assert (caught.value.verdict, caught.value.shards) == (Verdict.LOST, frozenset({0}))


def test_a_shard_that_has_lost_its_fence_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a Redis that went back: its mark is good, and what is older than the log is in it."""
    monkeypatch.setattr(cycle_module, "commit", lambda *_: Committed(Verdict.LOST))
    plan = cast("Any", SimpleNamespace(versions=[]))

    with pytest.raises(VerdictError, match="must find every shard at its start") as caught:
        Cycle.__new__(Cycle)._settled([], plan, batch_of(tmp_path, 10, shards=2))

    assert (caught.value.verdict, caught.value.shards) == (Verdict.LOST, frozenset())


@pytest.mark.parametrize("failure", [HoleError([Hole(0, 0, 9)]), TimeoutError("redis is away")])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_what_another_lane_fails_with_hides_no_short_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, order: Sequence[int]
) -> None:
    """It comes again, or is what it was raised from; that a shard is short is said once."""
    driver, plan = Cycle.__new__(Cycle), cast("Any", SimpleNamespace(versions=[]))
    driver._same_log, driver.spark = cast("Any", SimpleNamespace(check=lambda: None)), plan
    driver._frontier = Frontier()
    texts = [*(short_of(shard) for shard in (0, 1)), "fails"]
    monkeypatch.setattr(cycle_module, "run_beside", lambda *_: [texts[at] for at in order])
    settled = Cycle._settled

    def found(self: Cycle, given: Sequence[str], *more: Any) -> Any:
        if given == ["fails"]:
            raise failure
        return settled(self, given, *more)

    monkeypatch.setattr(Cycle, "_settled", found)

    with pytest.raises(VerdictError) as caught:
        driver.evaluate_beside([batch_of(tmp_path, 10, shards=2)] * 3, plan)
    assert (caught.value.verdict, caught.value.shards) == (Verdict.LOST, frozenset({0, 1}))
    assert caught.value.__cause__ is failure

    texts[:2] = ["fails", "fails"]
    with pytest.raises(type(failure)):
        driver.evaluate_beside([batch_of(tmp_path, 10, shards=2)] * 3, plan)


def short_of(shard: int) -> str:
    """Return the report of a task that applied its commit to a shard in part."""
    report = Report()
    report.note(shard, SHORT)
    return report.to_json()


def test_the_driver_commits_to_no_shard_behind_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What that may raise would take the report along."""
    monkeypatch.setattr(cycle_module, "commit", refuses)
    plan = cast("Any", SimpleNamespace(versions=[]))

    with pytest.raises(VerdictError) as caught:
        Cycle.__new__(Cycle)._settled([], plan, batch_of(tmp_path, 10, shards=3))
    assert caught.value.shards == {0}
