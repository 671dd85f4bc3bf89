"""The rows of a soak's summary: each passes on a good run and fails on its own fault."""

from __future__ import annotations

from typing import Any

import pytest
from disruption.soak_summary import (
    PIECES_OF,
    Row,
    Sample,
    Seen,
    account_of,
    messages,
    passes,
    quantile,
    rows,
)

HOUR = 60.0
LEVELS = {
    **dict.fromkeys(PIECES_OF, 40.0),
    "dedup_entries": 2e6,
    "redis_bytes": 5e7,
    "redis_keys": 9e3,
    "bytes_per_key": 5e3,
}


def good(minutes: float = 180, **changed: Any) -> Seen:
    """Return what a soak of three hours sees that is right in every row."""
    samples = [
        Sample(minute, {"panes": 800_000_000}, dict(LEVELS), 1_000 * minute)
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
        "burst_fresh_s": [0.9, 9.9],
        "batch_ms": [200.0] * 50,
        "samples": samples,
        "due": 4,
        "delivered": 4,
        "episodes": 2,
        "keep_min": HOUR,
    }
    return Seen(minutes, **{**told, **changed})


def failed(seen: Seen) -> list[str]:
    """Return the rows that fail."""
    return [row.figure for row in rows(seen) if row.passes is False]


def test_a_good_run_passes_in_every_row() -> None:
    """All twelve rows are told, and judged."""
    found = rows(good())
    assert len(found) == 12
    assert [row.passes for row in found] == [True] * 12
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
        ({"burst_fresh_s": [0.9, 10.0]}, "freshness"),
        ({"unexpected": ["behind"]}, "verdicts"),
        ({"errors": ["hook_failed"]}, "verdicts"),
        ({"lag": 1}, "verdicts"),
        ({"batch_ms": []}, "verdicts"),
        ({"delivered": 3}, "alerts due"),
        ({"due": 0, "delivered": 0}, "alerts due"),
        ({"episodes": 0}, "alerts due"),
        ({"unlike": ["not told: an episode"]}, "alerts due"),
    ],
)
def test_each_row_fails_on_its_own(changed: dict[str, Any], row: str) -> None:
    """One figure that is off fails its row, and no other."""
    found = failed(good(**changed))
    assert len(found) == 1
    assert found[0].startswith(row)


def grown(share: float, name: str, minutes: int = 180) -> list[Sample]:
    """Return the samples of a soak in which something grows evenly by a share an hour."""
    found = []
    for minute in range(minutes + 1):
        flat, factor = dict(LEVELS), 1 + share * minute / HOUR
        if name in flat:
            flat[name] *= factor
        rss = round(8e8 * (factor if name == "rss" else 1))
        found.append(Sample(minute, {"panes": rss}, flat, 1_000 * minute))
    return found


@pytest.mark.parametrize(("share", "is_right"), [(0.009, True), (0.02, False)])
def test_memory_may_grow_by_a_hundredth_an_hour(share: float, is_right: bool) -> None:
    """After the first hour."""
    found = failed(good(samples=grown(share, "rss")))
    assert found == ([] if is_right else ["growth of memory an hour"])


@pytest.mark.parametrize(
    ("name", "row", "still", "rising"),
    [
        *((name, "sockets, threads", 0.05, 0.5) for name in PIECES_OF),
        ("dedup_entries", "dedup is flat", 0.1, 0.5),
        ("bytes_per_key", "Redis bytes a key", 0.01, 0.2),
        ("redis_bytes", "Redis memory", 0.01, 0.2),
        ("redis_keys", "Redis memory", 0.01, 0.2),
    ],
)
def test_what_levels_off_is_flat(name: str, row: str, still: float, rising: float) -> None:
    """By an even growth of so much an hour, in three hours; only its own row says it."""
    assert failed(good(samples=grown(still, name))) == []
    (found,) = failed(good(samples=grown(rising, name)))
    assert found.startswith(row)


@pytest.mark.parametrize("name", ["sockets", "dedup_entries"])
def test_half_an_hour_tells_leaks(name: str) -> None:
    """What does not hang on `keep` is judged from minute 30 on, and not in minute 29."""
    short: dict[str, Any] = {"minutes": 30, "keep_min": 31 * HOUR, "horizon_min": 10.0}
    assert failed(good(**short)) == []
    assert len(failed(good(**short, samples=grown(4.0, name, 30)))) == 1
    samples = grown(4.0, name, 29)
    assert failed(good(minutes=29, keep_min=31 * HOUR, horizon_min=10.0, samples=samples)) == []


@pytest.mark.parametrize(("share", "is_right"), [(0.5, True), (6.0, False)])
def test_half_an_hour_tells_a_leak_of_memory(share: float, is_right: bool) -> None:
    """One of a part that has half more in ten minutes; of servers nothing can be said so soon."""
    samples = grown(share, "rss", 30)
    wanted = [] if is_right else ["no part's memory grows by half"]
    assert failed(good(minutes=30, keep_min=31 * HOUR, samples=samples)) == wanted
    for sample in samples:
        sample.rss = {"panes": 800_000_000, "redis": sample.rss["panes"]}
    assert failed(good(minutes=30, keep_min=31 * HOUR, samples=samples)) == []


def test_dedup_waits_for_its_horizon() -> None:
    """Of an hour's it may grow for an hour, and half an hour judges nothing."""
    found = rows(good(minutes=30, samples=grown(4.0, "dedup_entries", 30)))
    (row,) = [row for row in found if row.figure == "dedup is flat"]
    assert row.passes is None
    assert row.value["why"] == "judged from 80 minutes on: the horizon is full after 60"


@pytest.mark.parametrize(("an_item", "is_right"), [(24.0, True), (34.0, False)])
def test_dedup_holds_more_of_bursts(an_item: float, is_right: bool) -> None:
    """What an item takes must not grow; how many come within the horizon is the load's."""
    samples, sent = grown(0, ""), [0]
    for minute in range(1, len(samples)):
        sent.append(sent[-1] + (5_000 if minute % 60 > 50 and minute > 100 else 1_000))
    for sample, items in zip(samples, sent, strict=True):
        within = items - (sent[int(sample.minute) - 10] if sample.minute >= 10 else 0)
        late = sample.minute > 120
        sample.sent, sample.flat["dedup_entries"] = items, within * (an_item if late else 24.0)
    found = failed(good(samples=samples, horizon_min=10.0))
    assert found == ([] if is_right else ["dedup is flat"])


@pytest.mark.parametrize("is_counted_again", [True, False])
def test_what_is_counted_again_holds_more_for_a_while(is_counted_again: bool) -> None:
    """Twice as much in four of the last ten minutes is no leak, if slices were counted in them."""
    samples = grown(0, "", 30)
    for sample in samples:
        sample.slices = 50
    for at in (22, 24, 26, 28, 29):
        samples[at].flat["dedup_entries"] *= 2
        samples[at].flat["panes_files"] *= 1.4
        for later in samples[at:]:
            later.slices += 40 * is_counted_again
    found = failed(good(minutes=30, keep_min=31 * HOUR, horizon_min=10.0, samples=samples))
    assert bool(found) is not is_counted_again


def test_a_part_that_is_down_says_nothing() -> None:
    """Its sockets and threads are gone for a minute, and come back: that is no growth."""
    samples = grown(0, "")
    for sample in samples[10:70]:
        sample.rss["panes"], sample.flat["sockets"] = 0, 3.0
    assert failed(good(samples=samples)) == []
    for sample in samples[10:70]:
        sample.rss["panes"] = 800_000_000
    assert len(failed(good(samples=samples))) == 1


def test_a_figure_that_nobody_saw_is_not_flat() -> None:
    """A soak that loses sight of one fails."""
    samples = grown(0, "")
    for sample in samples:
        del sample.flat["threads"]
    (row,) = [row for row in rows(good(samples=samples)) if row.passes is False]
    assert row.value["missing"] == ["threads"]


def test_a_short_run_says_what_it_cannot_tell() -> None:
    """Neither growth nor levels are judged within five minutes; each says why."""
    found = {row.figure: row for row in rows(good(minutes=5, keep_min=31 * HOUR))}
    silent = [row for row in found.values() if row.passes is None]
    assert len(silent) == 6
    assert all(row.value["why"] for row in silent)
    assert silent[-1].value["why"] == (
        "judged from 3720 minutes on: keep is full, and the day for which Redis holds a pane "
        "beyond it, after 1860"
    )
    assert passes(list(found.values()))


def test_growth_is_told_before_it_is_judged() -> None:
    """After ten minutes of warming up, by thirds; a part that began anew once changes nothing."""
    samples = grown(0.02, "rss", 40)
    samples[12].rss["panes"] = 0
    samples[13].rss["panes"] = 100
    found = rows(good(minutes=40, keep_min=31 * HOUR, samples=samples))
    (row,) = [row for row in found if row.figure == "growth of memory an hour"]
    assert row.passes is None
    assert row.value["growth_per_hour"]["panes"] == pytest.approx(0.02 * 8e8, rel=0.1)
    (early,) = [r for r in rows(good(minutes=5)) if r.figure == "growth of memory an hour"]
    assert early.value["growth_per_hour"] == {"panes": None}


def test_messages_of_alerts() -> None:
    """One that came twice is delivered once; what came early or unasked makes nothing late."""
    came = [("a", 1_500.0), ("x", 100.0), ("a", 9_000.0), ("b", 2_250.0)]
    assert messages({"a": 1_000, "b": 2_000, "c": 3_000}, came) == {
        "due": 3,
        "delivered": 2,
        "duplicates": 1,
        "latest_s": 0.5,
    }
    assert messages({}, []) == {"due": 0, "delivered": 0, "duplicates": 0, "latest_s": 0.0}


def test_the_account_of_a_minute() -> None:
    """Minutes in flight are counted, and not compared; empty ones are left out."""
    names = ("counted", "duplicate", "quarantined", "beyond_horizon", "erased")

    def minute(difference: int | None, *, is_open: bool = False) -> dict[str, Any]:
        counts = dict(zip(names, (5, 1, 2, 0, 0), strict=True))
        return {"received": 8, "difference": difference, "open": is_open, **counts}

    empty = {**dict.fromkeys(names, 0), "received": 0, "difference": 0, "open": False}
    items = [minute(3, is_open=True), minute(0), minute(-1), empty]
    told = account_of({"items": items, "batches": {"difference": 0}})
    assert told == {
        "received": 24,
        "counted": 15,
        "duplicate": 3,
        "quarantined": 6,
        "beyond_horizon": 0,
        "erased": 0,
        "minutes": 2,
        "minutes_that_differ": 1,
        "difference_of_batches": 0,
    }
    unknown = {**minute(None), "received": None}
    told = account_of({"items": [minute(0), unknown, empty], "batches": {"difference": 4}})
    assert (told["received"], told["counted"], told["minutes_that_differ"]) == (None, 10, 0)
    assert told["difference_of_batches"] == 4


def test_passes_needs_every_row() -> None:
    """One row that fails is enough."""
    assert not passes([Row("a", True, {}), Row("b", False, {})])


def test_quantile() -> None:
    """By rank; of nothing it is infinite, which passes nowhere."""
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile([1.0] * 99 + [9.0], 0.99) == 1.0
    assert quantile([], 0.5) == float("inf")
