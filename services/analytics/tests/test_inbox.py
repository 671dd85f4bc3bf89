"""What a writer task keeps of what could not be used: bounded, and the same when run again."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.series import cut_text
from weir_analytics.panes.accounts import GAP, LATE_ROWS
from weir_analytics.panes.inbox import (
    LEFT_OUT,
    MAX_COPIES,
    Copies,
    Inbox,
    Late,
    LateGroup,
    Unusable,
)
from weir_analytics.panes.kinds import Use
from weir_analytics.panes.versions import Version


class TestCopies:
    @given(st.permutations(list(range(12))), st.integers(1, 14))
    def test_the_lowest_offsets_are_copied_in_any_order_of_arrival(
        self, offsets: list[int], most: int
    ) -> None:
        """A batch that runs again, and gets its rows in another order, makes the same copies."""
        copies = Copies(most)
        for offset in offsets:
            copies.add(5, 0, offset, "value_missing")
        kept = min(most, 12)

        assert [one.offset for one in copies.chosen()] == list(range(kept))
        assert copies.left_out() == 12 - kept

    def test_the_last_copy_says_what_is_missing(self) -> None:
        """Of each version and partition, and of nobody's, the rest is a number."""
        copies = Copies(2)
        for offset in range(5):
            copies.add(5, 0, offset, "value_missing")
        copies.add(5, 1, 7, "value_range")
        copies.add(None, 0, 9, "not_an_event")

        assert copies.chosen() == [
            Unusable(5, 0, 0, "value_missing"),
            Unusable(5, 0, 1, "value_missing", left_out=3),
            Unusable(5, 1, 7, "value_range"),
            Unusable(None, 0, 9, "not_an_event"),
        ]

    def test_what_nobody_can_use_is_copied_whole(self) -> None:
        """No version to come counts it from the log: a replay puts back what has a copy."""
        copies = Copies(2)
        for offset in range(5):
            copies.add(None, 0, offset, "not_an_event")

        assert [one.offset for one in copies.chosen()] == [0, 1, 2, 3, 4]
        assert copies.left_out() == 0

    @pytest.mark.thorough
    def test_memory_does_not_grow_with_a_metric_that_can_use_nothing(self) -> None:
        """Two hundred thousand unusable events cost no more than a thousand."""
        copies = Copies()
        tracemalloc.start()
        for offset in range(200_000):
            copies.add(5, 0, offset, "value_missing")
        _now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert peak < 1_000_000
        assert len(copies.chosen()) == MAX_COPIES


def test_what_was_left_out_of_a_version_is_its_tenants() -> None:
    """Groups that a task did not tell one by one are left out of what is told, as is one more."""
    versions = {vid: Version(vid, owner, "m", ((10, 60),)) for vid, owner in ((1, "a"), (2, "b"))}
    found = Inbox(versions)
    rows = [("1", LEFT_OUT, "", 20_000), ("2", "web", "=x|=y", 3), ("2", "app", "", 1)]
    found.take(
        pa.RecordBatch.from_pydict(
            {
                "vid": [LATE_ROWS] * 3,
                "series": [GAP.join(words) for *words, _n in rows],
                "start_s": [10] * 3,
                "minute_s": [60] * 3,
                "use": [int(Use.USED)] * 3,
                "n": [n for *_words, n in rows],
            }
        )
    )

    assert found.late_rows.left_out == {"a": 20_000}
    assert found.late_rows.whole() == [
        ("b", 2, "app", "", 10, 60, 1),
        ("b", 2, "web", "=x|=y", 10, 60, 3),
    ]


def test_what_a_task_tells_is_bounded() -> None:
    """Of each tenant by order, in whatever order they come; who sends little is told whole."""
    groups = [("a", "b", "c", start_s, 60, 1) for start_s in range(9)]
    for order in (groups, groups[::-1]):
        found: Late[LateGroup] = Late(most=2)
        for group in (*order, ("z", "b", "c", 0, 60, 1)):
            found.add(group)

        assert found.kept() == [*groups[:2], ("z", "b", "c", 0, 60, 1)]
        assert found.left_out == {"a": 7}
        # Where some are worth nothing without the others.
        assert found.whole() == [("z", "b", "c", 0, 60, 1)]


def test_groups_of_a_kind_are_one() -> None:
    """As several tasks tell them: they take one place, and add up."""
    found: Late[LateGroup] = Late(most=2)
    for n in range(1, 5):
        for start_s in (0, 10):
            found.add(("a", "b", "c", start_s, 60, n))

    assert found.kept() == [("a", "b", "c", 0, 60, 10), ("a", "b", "c", 10, 60, 10)]
    assert found.left_out == {}


def inbox_of_late(*versions: tuple[str, int]) -> Inbox:
    """Return an inbox for versions of tenants, by their shortest panes, of a batch from 100 s."""
    counted = {
        vid: Version(vid, tenant, "m", ((res_s, 3_600),))
        for vid, (tenant, res_s) in enumerate(versions)
    }
    return Inbox(counted, 100_000)


def test_a_tenants_events_are_late_by_its_own_metrics() -> None:
    """What columns of Spark tell of all by the shortest panes of anybody is told by its own."""
    found = inbox_of_late(("a", 1), ("b", 60), ("b", 10))
    for tenant in ("a", "b", "nobody"):
        for start_s in (87, 89, 90, 99, 100):
            found._note_late(f"{tenant}\x01s\x01t", start_s, 120, 1)

    assert [(of, start_s, n) for of, _s, _t, start_s, _minute_s, n in found.late.kept()] == [
        *(("a", start_s, 1) for start_s in (87, 89, 90, 99)),
        ("b", 80, 2),
        ("b", 90, 2),
    ]


def test_where_nothing_is_a_correction_nothing_is_late() -> None:
    """As in a lane: no batch before it says what was final."""
    found = Inbox({1: Version(1, "a", "m", ((1, 3_600),))})
    found._note_late("a\x01s\x01t", 0, 120, 1)
    assert found.late.kept() == []


def test_a_type_may_hold_the_sign_that_divides() -> None:
    """Tenant and source hold none, so what is behind them is the type."""
    found = inbox_of_late(("a", 1))
    found._note_late("a\x01b\x01c\x01d", 5, 60, 1)
    assert found.late.kept() == [("a", "b", "c\x01d", 5, 60, 1)]


def test_a_long_type_is_cut() -> None:
    """What a task tells is one line of text; a type may be almost as long as an event."""
    found = inbox_of_late(("a", 1))
    found._note_late("a\x01b\x01" + "t" * 500_000, 5, 60, 1)
    (group,) = found.late.kept()
    assert group == ("a", "b", cut_text("t" * 500_000), 5, 60, 1)
