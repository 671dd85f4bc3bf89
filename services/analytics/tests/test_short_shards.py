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
from weir_analytics.panes.recovery import VerdictError
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
