"""The rows of a soak's summary: each passes on a good run and fails on its own fault."""

from __future__ import annotations

from typing import Any

import pytest
from disruption.soak_summary import Row, Sample, Seen, passes, quantile, rows

HOUR = 60.0


def good(minutes: float = 180, **changed: Any) -> Seen:
    """Return what a soak of three hours sees that is right in every row."""
    samples = [
        Sample(minute, {"panes": 800_000_000}, {"redis_bytes": 5e7, "sockets": 40})
        for minute in range(int(minutes))
    ]
    told: dict[str, Any] = {
        "sent": 1_010,
        "accepted": 1_000,
        "unknown": 10,
        "resent": 20,
        "in_log": 1_015,
        "dispositions": {"counted": 1_000, "duplicate": 5, "quarantined": 10},
        "compared": 10_000,
        "fresh_s": [0.4] * 100,
        "frame_s": [0.5] * 100,
        "frame_gap_s": 2.5,
        "batch_ms": [200.0] * 50,
        "samples": samples,
        "due": 4,
        "delivered": 4,
        "keep_min": HOUR,
    }
    return Seen(minutes, **{**told, **changed})


def failed(seen: Seen) -> list[str]:
    """Return the rows that fail."""
    return [row.figure for row in rows(seen) if row.passes is False]


def test_a_good_run_passes_in_every_row() -> None:
    """All eight rows are told, and judged."""
    found = rows(good())
    assert len(found) == 8
    assert [row.passes for row in found] == [True] * 8
    assert passes(found)


@pytest.mark.parametrize(
    ("changed", "row"),
    [
        ({"in_log": 999, "dispositions": {"counted": 999}}, "accepted <= log"),
        ({"in_log": 1_031, "dispositions": {"counted": 1_031}}, "accepted <= log"),
        ({"accepted": 0}, "accepted <= log"),
        ({"difference": ["minute 0"]}, "difference = 0"),
        ({"dispositions": {"counted": 1_014}}, "difference = 0"),
        ({"compared": 9_999}, "panes equal"),
        ({"mismatches": ["a pane"]}, "panes equal"),
        ({"wrong": ["a pane fell"]}, "panes equal"),
        ({"fresh_s": [0.81] * 100}, "freshness"),
        ({"frame_s": [0.5] * 98 + [1.6] * 2}, "freshness"),
        ({"fresh_s": []}, "freshness"),
        ({"frame_gap_s": 10.0}, "freshness"),
        ({"unexpected": ["behind"]}, "verdicts"),
        ({"errors": ["hook_failed"]}, "verdicts"),
        ({"lag": 1}, "verdicts"),
        ({"batch_ms": []}, "verdicts"),
        ({"delivered": 3}, "alerts due"),
        ({"due": 0, "delivered": 0}, "alerts due"),
    ],
)
def test_each_row_fails_on_its_own(changed: dict[str, Any], row: str) -> None:
    """One figure that is off fails its row, and no other."""
    found = failed(good(**changed))
    assert len(found) == 1
    assert found[0].startswith(row)


def grown(share: float, name: str) -> list[Sample]:
    """Return the samples of three hours in which something grows evenly by a share an hour."""
    return [
        Sample(
            minute,
            {"panes": round(8e8 * (1 + (share if name == "rss" else 0) * minute / HOUR))},
            {"sockets": 40 * (1 + (share if name == "sockets" else 0) * minute / HOUR)},
        )
        for minute in range(181)
    ]


@pytest.mark.parametrize(("share", "is_right"), [(0.009, True), (0.02, False)])
def test_memory_may_grow_by_a_hundredth_an_hour(share: float, is_right: bool) -> None:
    """After the first hour."""
    found = failed(good(samples=grown(share, "rss")))
    assert found == ([] if is_right else ["growth of memory an hour"])


@pytest.mark.parametrize(("share", "is_right"), [(0.01, True), (0.2, False)])
def test_what_levels_off_is_flat(share: float, is_right: bool) -> None:
    """Once `keep` and the horizon are full."""
    found = failed(good(samples=grown(share, "sockets")))
    assert bool(found) is not is_right


def test_a_short_run_says_what_it_cannot_tell() -> None:
    """Neither growth nor levels are judged within an hour; both say why."""
    found = {row.figure: row for row in rows(good(minutes=5, keep_min=None))}
    silent = [row for row in found.values() if row.passes is None]
    assert len(silent) == 2
    assert all(row.value["why"] for row in silent)
    assert passes(list(found.values()))


def test_passes_needs_every_row() -> None:
    """One row that fails is enough."""
    assert not passes([Row("a", True, {}), Row("b", False, {})])


def test_quantile() -> None:
    """By rank; of nothing it is infinite, which passes nowhere."""
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile([1.0] * 99 + [9.0], 0.99) == 1.0
    assert quantile([], 0.5) == float("inf")
