"""The ledger's part of an audit: some of its minutes are looked at, counted again and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from weir_analytics.jobs.ledger_recount import (
    LedgerRecount,
    RowDifference,
    compare_rows,
    counted_in,
)
from weir_analytics.jobs.reading import Recounted
from weir_analytics.jobs.recount import Terms
from weir_analytics.jobs.sample import PaneAt
from weir_analytics.jobs.task import NotNowError
from weir_analytics.jobs.was_served import Reader, Seen
from weir_analytics.panes.cycle import Cycle

LEDGER_PARTS: Final = 4
"""Of what an audit may hold one part in so many is for the ledger, the rest for metrics."""


class LedgerAudit:
    """The minutes of one audit.

    Attributes:
        is_seen: Whether all of the sample was looked at.
    """

    def __init__(self, tenant: str) -> None:
        """Begin with nothing looked at."""
        self.is_seen = False
        self._tenant = tenant
        self._seen: Seen | None = None
        self._recounted: Recounted | None = None
        self._minutes: Mapping[PaneAt, Counter[str]] = {}

    def look(
        self,
        cycle: Cycle,
        reader: Reader,
        wanted: Collection[PaneAt],
        most: int,
        is_over: Callable[[], bool],
    ) -> None:
        """Take more of what is served of some minutes, until `is_over`.

        Args:
            cycle: Between two of its batches.
            reader: Reads them.
            wanted: The minutes; all were over when the first was looked at.
            most: How many events are held when they are counted again.
            is_over: Whether the slice has to end.

        Raises:
            NotNowError: While what was lost is being counted again.
            RedisError: If Redis does not answer.
        """
        if self._seen is None:
            # Traffic of others costs no minute of a tenant's.
            self._seen = reader.begin("", (), LEDGER_PARTS, self._tenant)
        seen = self._seen
        left = [pane for pane in wanted if pane not in seen.panes and pane not in seen.left_out]
        is_done = reader.look(cycle, seen, left, is_over)
        if is_done is None:
            msg = "the ledger is being counted again"
            raise NotNowError(msg)
        if is_done and all(counted_in(served) > most for served in seen.panes.values()):
            # It would else show once all of the log was read. Where some have room that is read
            # anyway, and tells as well of one that has too much by mistake.
            seen.leave_out(list(seen.panes))
        self.is_seen = is_done

    def leave_before(self, at_ms: int) -> None:
        """Leave out the minutes that begin before an instant."""
        if self._seen is not None:
            self._seen.leave_before(at_ms)

    @property
    def begin_ms(self) -> int | None:
        """When the first minute that was looked at began; None if there is none."""
        panes = self._seen.panes if self._seen is not None else ()
        return min((1000 * pane.start_s for pane in panes), default=None)

    @property
    def ends(self) -> Iterable[Mapping[int, int]]:
        """Up to where the log had been counted when the minutes were looked at."""
        return self._seen.ends.values() if self._seen is not None else ()

    def open(self, terms: Terms, most: int, margin_ms: int) -> Recounted:
        """Begin to count again, and return what.

        Args:
            terms: By what the installation counts.
            most: How many events are held.
            margin_ms: How long before a minute the log is read.
        """
        ends = self._seen.ends if self._seen is not None else {}
        again = LedgerRecount(self._tenant, ends, terms, most)
        self._minutes = again.minutes
        self._recounted = Recounted(again, again.minutes, ends, margin_ms)
        return self._recounted

    def outcome(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return what is told of the ledger, and each row that differs."""
        found: list[RowDifference] = []
        seen = self._seen.panes if self._seen is not None else {}
        counted = self._minutes
        for pane, rows in counted.items():
            found += compare_rows(self._tenant, pane, seen[pane], rows)
        records = sum(rows.total() for rows in counted.values())
        too_large = len(self._seen.left_out) if self._seen is not None else 0
        lost = len(self._recounted.overtaken) if self._recounted is not None else 0
        told = {
            # Where nothing came, and nothing is served, nothing is verified.
            "verified": not found if found or records else None,
            "from_ms": self.begin_ms,
            "minutes": len(counted),
            "records": records,
            # For which there was no room, or which hold what no recount knows.
            "left_out": too_large + len(seen) - len(counted) - lost,
            # Of which retention took something before it was counted again.
            "overtaken": lost,
        }
        return told, [asdict(one) for one in found]
