"""Minutes of the ledger counted from the log a second time, and beside what is served.

As in `recount.py` the log is gone through twice: first for the identities of a tenant's events in
the minutes of the sample, then for whether an earlier record had the same one. What only the
content of a forged record tells, and whether one that was counted again before its subject was
erased counts as such, no recount knows: minutes with one are left out.

Nothing mends the ledger: it has no versions, and rows are neither overwritten nor subtracted from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from weir import names
from weir.erasure import subject_hash
from weir.event import DEFAULT_TENANT, FOREIGN_SOURCE, UNREADABLE, owner
from weir.horizons import horizons_at
from weir.members import is_too_deep
from weir.series import decode_series, encode_series, first_value, fit

from weir_analytics.jobs.compare import Served
from weir_analytics.jobs.identities import Identities
from weir_analytics.jobs.log_records import LogEvent, LogRecord
from weir_analytics.jobs.recount import Terms
from weir_analytics.jobs.sample import MINUTE_MS, PaneAt
from weir_analytics.panes.kinds import Fate, Kind
from weir_analytics.panes.quarantine import header_text

_JSON = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True)
class _Row:
    """A record of a sampled minute: whose it is, and what became of it unless it repeats one."""

    tenant: str
    source: str
    fate: Fate


class LedgerRecount:
    """The sampled minutes of one tenant, counted again. Pure.

    Attributes:
        minutes: By minute, how many records each series has: tenant, source and disposition. One
            that was asked for and is not there did not fit, or holds what no recount knows.
    """

    def __init__(
        self, tenant: str, minutes: Mapping[PaneAt, Mapping[int, int]], terms: Terms, most: int
    ) -> None:
        """Begin with nothing counted.

        Args:
            tenant: Whose rows.
            minutes: By pane of the ledger, partition -> offset: it was looked at when all before
                it was counted, and nothing of a partition that is missing.
            terms: By what the installation counts.
            most: How many events are held.
        """
        self._tenant, self._terms, self._ends = tenant, terms, minutes
        self.minutes: dict[PaneAt, Counter[str]] = {pane: Counter() for pane in minutes}
        self._starts = {pane.start_s * 1000: pane for pane in minutes}
        self._known = Identities(most)

    def look_for(self, records: Iterable[LogRecord]) -> None:
        """First time through: remember the identities of what lies in the minutes."""
        for record in records:
            pane, found = self._pane(record), record.event
            row = self._row_of(found, pane) if pane is not None and found is not None else None
            if pane is None or found is None or row is None or row.tenant != self._tenant:
                continue
            if self._known.want(found.partition, found.identity, frozenset((pane,))):
                for gone in self._known.left_out:
                    self.minutes.pop(gone, None)

    def count(self, records: Iterable[LogRecord]) -> None:
        """Second time through, over the same records in the same order: count."""
        for record in records:
            found = record.event
            again = found is not None and self._repeats(found)
            pane = self._pane(record)
            if pane is None:
                continue
            row = _quarantined(record) if found is None else self._row_of(found, pane)
            if row is not None and row.tenant == self._tenant:
                fate = Fate.DUPLICATE if again else row.fate
                series = encode_series((row.tenant, row.source, fate.disposition))
                self.minutes[pane][series] += 1

    def leave_out(self, minutes: Collection[PaneAt]) -> None:
        """Count some minutes no further: what they hold is gone from the log."""
        self._known.leave_out(minutes)
        for minute in minutes:
            self.minutes.pop(minute, None)

    def _pane(self, record: LogRecord) -> PaneAt | None:
        """Return the minute to which a record is to be counted."""
        pane = self._starts.get(record.received_ms - record.received_ms % MINUTE_MS)
        if pane is None or pane not in self.minutes:
            return None
        return pane if record.offset < self._ends[pane].get(record.partition, 0) else None

    def _repeats(self, found: LogEvent) -> bool | None:
        horizons = horizons_at(self._terms.horizons, found.partition, found.offset)
        return self._known.repeats(
            found.partition, found.identity, found.received_ms, horizons.horizon_ms
        )

    def _row_of(self, found: LogEvent, pane: PaneAt) -> _Row | None:
        """Return what an event is to the ledger; None: nobody can say, so its minute goes."""
        event = _read(found.value)
        own = event.get("weirtenant") if event is not None else None
        if event is None or not isinstance(own, str) or not isinstance(event.get("type"), str):
            self.minutes.pop(pane, None)
            return None
        source = event.get("weirsource")
        who = owner(own, source if isinstance(source, str) else FOREIGN_SOURCE)
        fate = self._fate(found, who[0], event)
        if fate is None:
            self.minutes.pop(pane, None)
            return None
        return _Row(*who, fate)

    def _fate(self, found: LogEvent, tenant: str, event: Mapping[str, Any]) -> Fate | None:
        mine = [one for one in self._terms.erasures if one.tenant == tenant]
        subject = event.get("subject")
        if mine and isinstance(subject, str):
            known = subject_hash(self._terms.hash_key, tenant, subject)
            gone = [one for one in mine if one.hash == known]
            if any(found.offset >= one.offsets.get(found.partition, 0) for one in gone):
                return Fate.ERASED
            if gone:
                return None
        horizons = horizons_at(self._terms.horizons, found.partition, found.offset)
        is_old = found.received_ms - found.time_ms > horizons.beyond_ms
        return Fate.BEYOND_HORIZON if is_old else Fate.COUNTED


def _read(value: bytes) -> dict[str, Any] | None:
    try:
        return None if is_too_deep(value) else _JSON.decode(value)
    except UNREADABLE:
        return None


def _quarantined(record: LogRecord) -> _Row:
    """Return whose a record is that was quarantined whole, as the engine accounts for it."""
    if record.kind == Kind.FOREIGN:
        return _Row(DEFAULT_TENANT, FOREIGN_SOURCE, Fate.QUARANTINED)
    headers = dict(record.headers or ())
    tenant = header_text(headers, names.HEADER_TENANT, DEFAULT_TENANT)
    source = header_text(headers, names.HEADER_SOURCE, FOREIGN_SOURCE)
    return _Row(*owner(tenant, source), Fate.QUARANTINED)


@dataclass(frozen=True)
class RowDifference:
    """A row of the ledger that is not what the log says.

    Attributes:
        minute_ms: Its received minute.
        source: Whose records they are, of the audit's tenant.
        disposition: What became of them.
        served: How many are served.
        recounted: How many there are.
    """

    minute_ms: int
    source: str
    disposition: str
    served: int
    recounted: int


def compare_rows(
    tenant: str, minute: PaneAt, served: Served, counted: Mapping[str, int]
) -> Iterator[RowDifference]:
    """Yield every row of a tenant in a minute that differs, both ways round.

    Args:
        tenant: Whose.
        minute: The pane of the ledger.
        served: What it holds, of all tenants.
        counted: The tenant's series, each with how many records it has by the log.
    """
    stored = {text: row.n for shard in served for text, row in shard.items()}
    # One without a name may be anybody's: whose it was misses it, and is told so.
    mine = {text: n for text, n in stored.items() if first_value(text) == tenant}
    for text in sorted(mine.keys() | counted.keys()):
        is_, must = mine.get(text, 0), counted.get(text, 0)
        if is_ != must:
            _tenant, source, disposition = fit(decode_series(text), 3)
            yield RowDifference(minute.start_s * 1000, source or "", disposition or "", is_, must)


def counted_in(served: Served) -> int:
    """Return how many events a tenant's rows of a minute say were counted: so many identities."""
    rows = (pair for shard in served for pair in shard.items())
    return sum(row.n for text, row in rows if _disposition(text) == Fate.COUNTED.disposition)


def _disposition(text: str) -> str | None:
    return fit(decode_series(text), 3)[2]
