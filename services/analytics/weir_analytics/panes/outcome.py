"""What became of a batch: the reports of its tasks put together. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weir.batches import LedgerRow
from weir.commit import Verdict
from weir.series import decode_series

from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.commit_job import Bound
from weir_analytics.panes.inbox import LateRow
from weir_analytics.panes.kinds import DISPOSITIONS
from weir_analytics.panes.writer import Report

# If shards differ, the gravest verdict decides what the driver does.
_GRAVEST = (
    Verdict.FENCED,
    Verdict.FOREIGN,
    Verdict.LOST,
    Verdict.REWIND,
    Verdict.BEHIND,
    Verdict.OK,
)

Fate = tuple[int, int, str, str | None, list[tuple[str, str]]]


@dataclass(frozen=True)
class Outcome:
    """One batch as the driver sees it when all shards have been asked.

    Attributes:
        verdict: OK if every shard holds the batch; else the gravest.
        repeated: Whether some shard held it before.
        retries: How often a shard was read again, since it had moved or did not answer.
        short: Shards of which a commit was applied in part.
        seen: Records read, ticks included.
        received_ms: By partition, R at the end of the range.
        events: Events by disposition.
        late: (tenant, source, type, start of the finest pane, received minute in epoch
            seconds, events) of late events.
        late_cut: Tenants of whose groups some are left out.
        late_rows: The same of what each version counted, by series; see `inbox.LateRow`.
        late_rows_cut: Tenants of whose groups of these some task told none: they are too many.
        bounds: (shard, bound) of panes that are full.
        reasons: By reason, how many records nobody could use.
        unused: By reason, how often a version could not use an event.
    """

    verdict: Verdict
    seen: int
    received_ms: Mapping[int, int]
    ledger: tuple[LedgerRow, ...]
    fates: tuple[Fate, ...]
    events: Mapping[str, int]
    work: Mapping[str, float] = field(default_factory=dict)
    late: tuple[tuple[str, str, str, int, int, int], ...] = ()
    late_cut: frozenset[str] = frozenset()
    late_rows: tuple[LateRow, ...] = ()
    late_rows_cut: frozenset[str] = frozenset()
    bounds: tuple[tuple[int, Bound], ...] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)
    unused: Mapping[str, int] = field(default_factory=dict)
    repeated: bool = False
    retries: int = 0
    short: frozenset[int] = frozenset()

    @property
    def received(self) -> int:
        """Records that are no ticks."""
        return sum(self.events.values())


def outcome_of(reports: Sequence[Report], metric_names: Mapping[int, str]) -> Outcome:
    """Put the reports of a batch together.

    Args:
        reports: One of each task.
        metric_names: Names of the versions, for the fates.
    """
    tally: dict[tuple[str, str, int], dict[str, int]] = defaultdict(dict)
    events = dict.fromkeys(DISPOSITIONS, 0)
    for report in reports:
        for series, minute_s, n in report.ledger:
            tenant, source, disposition = (value or "" for value in decode_series(series))
            tally[tenant, source, minute_s * 1000][disposition] = n
            events[disposition] += n
    work: dict[str, float] = defaultdict(float)
    for report in reports:
        for name, amount in report.work.items():
            work[name] += amount
    verdicts = [Verdict(verdict) for report in reports for verdict in report.verdicts.values()]
    return Outcome(
        verdict=gravest(verdicts),
        seen=sum(seen for r in reports for _p, _at, seen in r.progress),
        received_ms={p: at for r in reports for p, at, _seen in r.progress},
        ledger=tuple(_ledger_row(*key, found) for key, found in sorted(tally.items())),
        fates=_fates(reports, metric_names),
        events=events,
        work=dict(work),
        late=tuple(row for report in reports for row in report.late),
        late_cut=frozenset(tenant for report in reports for tenant in report.late_cut),
        late_rows=tuple(row for report in reports for row in report.late_rows),
        late_rows_cut=frozenset(tenant for r in reports for tenant in r.late_rows_cut),
        bounds=tuple((s, Bound(vid, at, end)) for r in reports for s, vid, at, end in r.bounds),
        reasons=_summed(report.reasons for report in reports),
        unused=_summed(report.unused for report in reports),
        repeated=Verdict.DONE in verdicts,
        retries=max(0, int(work.get("tries", 0)) - len(verdicts)),
        short=frozenset(shard for report in reports for shard in report.short),
    )


def _summed(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in counts:
        found.update(one)
    return found


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that decides: OK only if each shard has, or had, the batch."""
    found = {Verdict.OK if v is Verdict.DONE else v for v in verdicts}
    return next((v for v in _GRAVEST if v in found), Verdict.OK)


def processed_through(received_ms: Mapping[int, int], end: Offsets, before_ms: int) -> int:
    """Return the received time up to which every event has been counted.

    The minimum over all partitions, never lower than before. A partition of which
    nothing is known yet holds it where it was; its first tick ends that.
    """
    if not end or any(partition not in received_ms for partition in end):
        return before_ms
    return max(before_ms, min(received_ms[partition] for partition in end))


def _ledger_row(tenant: str, source: str, minute_ms: int, n: Mapping[str, int]) -> LedgerRow:
    return LedgerRow(tenant, source, minute_ms, *(n.get(name, 0) for name in DISPOSITIONS))


def _fates(reports: Iterable[Report], names: Mapping[int, str]) -> tuple[Fate, ...]:
    codes: dict[tuple[int, int], list[tuple[str, str]]] = defaultdict(list)
    fates: list[tuple[int, int, str, str | None]] = []
    for report in reports:
        fates += report.fates
        for partition, offset, vid, code in report.codes:
            codes[partition, offset].append((names.get(vid, str(vid)), code))
    return tuple((*fate, codes.get((fate[0], fate[1]), [])) for fate in sorted(fates))
