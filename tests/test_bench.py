"""Benchmarks write a figure only if everything was counted, and the page is what the files say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, cast

import harness
import latency
import pytest
import report
from account import LogRecord
from weir_local.testing import TestStack

BENCH = Path(report.__file__).parent


class Counting:
    """Answers queries with growing counts."""

    def __init__(self, *totals: int) -> None:
        self._totals = list(totals)

    def query(self, _body: dict[str, Any]) -> dict[str, Any]:
        """Return the next total, in two panes; the last one again and again."""
        total = self._totals.pop(0) if len(self._totals) > 1 else self._totals[0]
        return {"series": [{"count": [total - 1, None, 1]}]}


def test_all_that_was_sent_is_waited_for() -> None:
    """The figure waits until the last event is counted."""
    stack = cast("TestStack", Counting(3, 9, 10))
    harness.await_counted(stack, "m", since_ms=0, sent=10)


@pytest.mark.parametrize("counts", [(11,), (9,)])
def test_a_wrong_count_ends_the_benchmark(counts: tuple[int, ...]) -> None:
    """One too many fails at once, one too few when the time is over."""
    stack = cast("TestStack", Counting(*counts))
    with pytest.raises(RuntimeError, match=f"m must count the 10 events .* got {counts[-1]}"):
        harness.await_counted(stack, "m", since_ms=0, sent=10, timeout_s=0.3)


def test_the_tile_must_end_at_the_probes() -> None:
    """One more, one less or a step back is no result."""
    latency.check_shown([1, 3, 4], 4)
    for values in ([1, 3], [1, 3, 5], [1, 3, 2, 4]):
        with pytest.raises(RuntimeError, match="must grow to 4, showed"):
            latency.check_shown(values, 4)


def test_every_chosen_probe_must_be_seen() -> None:
    """The log says which were chosen; the tail must have shown exactly those."""
    log = [
        LogRecord(0, 0, 0, {"weir-tail": b"1"}, b'{"id":"probe-1","type":"bench.probe"}'),
        LogRecord(0, 1, 0, {"weir-tail": b"1"}, b'{"id":"load-1","type":"bench.load"}'),
        LogRecord(0, 2, 0, {}, b'{"id":"probe-2","type":"bench.probe"}'),
        LogRecord(0, 3, 0, {"weir-tick": b"1"}, None),
    ]
    chosen = latency.sampled(log)
    assert chosen == {"probe-1", "load-1"}
    latency.check_tail(chosen, {"probe-1", "load-1"})
    latency.check_tail(chosen, {"probe-1"})
    for seen in ({"load-1"}, {"probe-1", "probe-2"}, {"probe-1", "load-2"}):
        with pytest.raises(RuntimeError, match=r"differs in \['(probe|load)-"):
            latency.check_tail(chosen, seen)


def test_the_page_says_what_the_files_say() -> None:
    """bench/README.md is made of the tracked files in bench/results and of nothing else."""
    listed = subprocess.run(
        ["git", "ls-files", "results"],  # noqa: S607
        cwd=BENCH,
        capture_output=True,
        text=True,
        check=True,
    )
    results = [json.loads((BENCH / name).read_text()) for name in sorted(listed.stdout.split())]
    assert results
    assert (BENCH / "README.md").read_text() == report.page(results)


def test_a_result_makes_the_page_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing a result writes the page too."""
    monkeypatch.setattr(harness, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(report, "HERE", tmp_path)
    harness.write("some", settings={"rate": 1}, figures={"notes": ["all were counted"]})
    page = (tmp_path / "README.md").read_text()
    assert "`make bench-some`" in page
    assert "- all were counted" in page
