"""The reports of tasks put together, and how far time has been counted."""

from __future__ import annotations

import pytest
from weir.batches import LedgerRow
from weir.commit import Verdict
from weir_analytics.panes.commit_job import Committed
from weir_analytics.panes.outcome import gravest, outcome_of, processed_through
from weir_analytics.panes.writer import Report


class TestOutcome:
    def test_reports_add_up(self) -> None:
        """Ledger, progress and fates of all tasks are one outcome."""
        reports = [
            Report(
                {0: "ok"},
                [("=a|=w|=counted", 60, 3), ("=a|=w|=duplicate", 60, 1)],
                [(0, 99, 5)],
                [(0, 4, "counted", None)],
                [(0, 4, 7, "value_invalid")],
            ),
            Report({1: "done"}, [("=b|=w|=counted", 60, 2)], [(1, 98, 2)]),
        ]
        outcome = outcome_of([Report.from_json(r.to_json()) for r in reports], {7: "amount"})

        assert outcome.verdict is Verdict.OK
        assert outcome.ledger == (
            LedgerRow("a", "w", 60_000, counted=3, duplicate=1),
            LedgerRow("b", "w", 60_000, counted=2),
        )
        assert (outcome.seen, outcome.received) == (7, 6)
        assert outcome.received_ms == {0: 99, 1: 98}
        assert (outcome.repeated, outcome.retries) == (True, 0)
        assert outcome.fates == ((0, 4, "counted", None, [("amount", "value_invalid")]),)

    def test_a_shard_that_was_read_again_is_told(self) -> None:
        """Of so many tries as there are shards none was a second one."""
        reports = [Report({0: "ok", 1: "ok"}, work={"tries": 4}), Report({2: "ok"})]
        reports[1].work["tries"] = 1
        outcome = outcome_of(reports, {})

        assert (outcome.verdict, outcome.repeated, outcome.retries) == (Verdict.OK, False, 2)

    def test_shards_that_are_short_are_named(self) -> None:
        """They are counted anew; others that are lost are whole, as one without a fence."""
        reports = [Report({0: "ok"}), Report({2: "lost"}), Report({4: "behind"})]
        reports[0].note(1, Committed(Verdict.LOST, is_short=True))
        reports[1].note(3, Committed(Verdict.LOST, is_short=True))
        outcome = outcome_of([Report.from_json(r.to_json()) for r in reports], {})

        assert (outcome.verdict, outcome.short) == (Verdict.LOST, frozenset({1, 3}))

    @pytest.mark.parametrize(
        ("verdicts", "worst"),
        [
            ([Verdict.OK, Verdict.DONE], Verdict.OK),
            ([Verdict.OK, Verdict.BEHIND], Verdict.BEHIND),
            ([Verdict.BEHIND, Verdict.REWIND], Verdict.REWIND),
            ([Verdict.LOST, Verdict.FENCED, Verdict.OK], Verdict.FENCED),
        ],
    )
    def test_the_gravest_verdict_decides(self, verdicts: list[Verdict], worst: Verdict) -> None:
        """One shard that refuses is enough; losing the right to write comes first."""
        assert gravest(verdicts) is worst


class TestProcessedThrough:
    def test_the_slowest_partition_holds_it(self) -> None:
        """Everything received before it is counted in every partition."""
        assert processed_through({0: 50, 1: 40}, {0: 1, 1: 1}, 0) == 40

    def test_it_never_falls(self) -> None:
        """A new partition, or a broker's clock, never takes back what was said."""
        assert processed_through({0: 50, 1: 40}, {0: 1, 1: 1}, 45) == 45

    def test_a_partition_of_which_nothing_is_known_holds_it(self) -> None:
        """Until its first tick a partition may hold anything."""
        assert processed_through({0: 50}, {0: 1, 1: 1}, 45) == 45
