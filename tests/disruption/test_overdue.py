"""What was acknowledged before processed-through must be in an answer; each gap is seen."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import weblog
from disruption.judge import PaneKey
from disruption.overdue import Overdue, Tally, whole_panes
from equality import PANE_MS
from load import GROUPS

NOW_MS = 1_800_000_000_000
END_MS = NOW_MS + PANE_MS
# Two batches of one pane and one of the next, and when each was acknowledged.
BATCHES = [
    (0, GROUPS, weblog.iso(NOW_MS)),
    (GROUPS, 2 * GROUPS, weblog.iso(NOW_MS + 5_000)),
    (3 * GROUPS, GROUPS, weblog.iso(NOW_MS + PANE_MS)),
]
ANSWERED_MS = [NOW_MS + 100, NOW_MS + 5_100, NOW_MS + PANE_MS + 100]
WAITS = "events are not counted that were acknowledged before processed-through"


def answer(through_ms: int | None, states: str = "fp", *, epoch: int = 1) -> dict[str, Any]:
    """Return an answer about both panes; its counts are told beside it."""
    return {
        "epoch": epoch,
        "fresh": {"processed_through_ms": through_ms},
        "t_ms": [END_MS, END_MS + PANE_MS],
        "series": [{"state": states}] * 2,
    }


def counts(*of_a_group: int) -> dict[PaneKey, int]:
    """Return the counts of the panes in order, each the same in all groups."""
    return {
        (f"g{n}", END_MS + at * PANE_MS): count
        for at, count in enumerate(of_a_group)
        for n in range(GROUPS)
    }


class TestTally:
    def test_batches_are_added_up_by_pane(self) -> None:
        """More of them, then fewer; a batch that comes later is seen."""
        batches = list(BATCHES[:2])
        tally = Tally(batches)
        assert tally.of_first(0) == {}
        assert tally.of_first(1) == counts(1)
        assert tally.of_first(2) == counts(3)
        batches.append(BATCHES[2])
        assert tally.of_first(3) == counts(3, 1)
        assert tally.of_first(1) == counts(1)

    def test_a_batch_that_fills_no_round(self) -> None:
        """Each event is in the group of its number."""
        tally = Tally([(GROUPS - 1, 2, weblog.iso(NOW_MS))])
        assert tally.of_first(1) == Counter({(f"g{GROUPS - 1}", END_MS): 1, ("g0", END_MS): 1})


class TestOverdue:
    @pytest.mark.parametrize(
        ("through_ms", "found"),
        [
            (None, {}),
            (ANSWERED_MS[0], {}),
            (ANSWERED_MS[0] + 1, counts(1)),
            (ANSWERED_MS[1], counts(1)),
            (ANSWERED_MS[1] + 1, counts(3)),
            (ANSWERED_MS[1] + 1, counts(3, 1)),
            (ANSWERED_MS[2] + 1, counts(3, 1)),
        ],
    )
    def test_all_that_was_acknowledged_before_is_there(
        self, through_ms: int | None, found: dict[PaneKey, int]
    ) -> None:
        """More may be there; an event of that very millisecond need not, nor without a time."""
        assert Overdue(BATCHES, ANSWERED_MS).take(answer(through_ms), found) == []

    @pytest.mark.parametrize(
        ("through_ms", "found", "missing"),
        [
            (ANSWERED_MS[0] + 1, {}, GROUPS),
            (ANSWERED_MS[1] + 1, counts(2), GROUPS),
            (ANSWERED_MS[1] + 1, counts(2, 9), GROUPS),
            (ANSWERED_MS[2] + 1, counts(3), GROUPS),
            (ANSWERED_MS[2] + 1, {**counts(3, 1), ("g2", END_MS): 2}, 1),
        ],
    )
    def test_one_that_is_missing(
        self, through_ms: int, found: dict[PaneKey, int], missing: int
    ) -> None:
        """I11: of a pane, whatever others have more, and of one that is not there at all."""
        (wrong,) = Overdue(BATCHES, ANSWERED_MS).take(answer(through_ms), found)
        assert wrong.startswith(f"{missing} {WAITS}, {through_ms}: of pane ('g")

    def test_what_is_not_acknowledged_yet(self) -> None:
        """A batch under way may be there or not, whatever the time; once answered, it must."""
        answered_ms = ANSWERED_MS[:1]
        judge = Overdue(BATCHES, answered_ms)
        assert judge.take(answer(ANSWERED_MS[2] + 1), counts(1)) == []
        answered_ms.append(ANSWERED_MS[1])
        assert len(judge.take(answer(ANSWERED_MS[2] + 1), counts(1))) == 1

    def test_a_time_that_falls_with_an_epoch(self) -> None:
        """What it is behind of is not due any more."""
        judge = Overdue(BATCHES, ANSWERED_MS)
        assert judge.take(answer(ANSWERED_MS[2] + 1), counts(3, 1)) == []
        assert judge.take(answer(ANSWERED_MS[1], epoch=2), counts(1)) == []
        assert len(judge.take(answer(ANSWERED_MS[1] + 1, epoch=2), counts(1))) == 1

    @pytest.mark.parametrize(("states", "missing"), [("fp", 4), ("pp", 4), ("rp", 1), ("ff", 4)])
    def test_a_pane_that_says_that_it_is_not_whole(self, states: str, missing: int) -> None:
        """Rebuilding, incomplete, not kept: of the others all is due."""
        for letter in ("r", "i", "n") if "r" in states else ("r",):
            found = answer(ANSWERED_MS[2] + 1, states.replace("r", letter))
            (wrong,) = Overdue(BATCHES, ANSWERED_MS).take(found, {})
            assert wrong.startswith(f"{missing * GROUPS} {WAITS}")

    def test_nothing_is_due_of_panes_that_nobody_was_told_of(self) -> None:
        """Beyond the range that was asked for, and in an answer without series."""
        late = [*BATCHES, (99, 1, weblog.iso(NOW_MS + 9 * PANE_MS))]
        judge = Overdue(late, [*ANSWERED_MS, ANSWERED_MS[2]])
        found = answer(ANSWERED_MS[2] + 1)
        assert judge.take(found, counts(3, 1)) == []
        assert judge.take({**found, "series": []}, {}) == []
        assert whole_panes({**found, "series": []}) == set()

    def test_the_clock_of_a_broker_that_is_ahead(self) -> None:
        """D16: what is late by no more than that may not be counted yet."""
        judge = Overdue(BATCHES, ANSWERED_MS, ahead_ms=60_000)
        assert judge.take(answer(ANSWERED_MS[0] + 60_000), {}) == []
        assert len(judge.take(answer(ANSWERED_MS[0] + 60_001), {})) == 1

    def test_where_redis_is_taken_back(self) -> None:
        """D5: one answer may have time and panes of two lives; not two, nor where it may not."""
        short, whole = answer(ANSWERED_MS[0] + 1), counts(1)
        judge = Overdue(BATCHES, ANSWERED_MS)
        assert judge.take(short, {}, may_fall=True) == []
        assert judge.take({**short, "epoch": 2}, {}, may_fall=True) == []
        assert judge.take(short, whole, may_fall=True) == []
        assert judge.take(short, {}, may_fall=True) == []
        assert len(judge.take(short, {}, may_fall=True)) == 1
        assert len(Overdue(BATCHES, ANSWERED_MS).take(short, {})) == 1
