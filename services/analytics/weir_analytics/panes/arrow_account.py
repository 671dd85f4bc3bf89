"""The account of every record, and its panes, out of arrays: what `accounts.py` says of columns.

One row a group of records that the system metrics do not tell apart; then, as there, the rows of
each system metric, and what the driver and the writer alone want to know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from weir.event import owner
from weir.lateness import BEYOND, EDGES_MS
from weir.problems import Reason
from weir.series import encode_series

from weir_analytics.panes.accounts import (
    FATE,
    GAP,
    LATE,
    LATENESS,
    LEDGER,
    PROGRESS,
    REASONS,
    SYSTEM_RES_S,
    TYPE_LATENESS,
    TYPES,
    UNREADABLE,
)
from weir_analytics.panes.arrow_groups import Longs, groups_by
from weir_analytics.panes.kinds import Fate, Kind

Codes = npt.NDArray[np.int32]

_EDGES: Final = np.array(EDGES_MS, np.int64)
_BUCKETS: Final = (*map(str, EDGES_MS), BEYOND)
_NONE: Final = -1
# In place of a pane's start: 34,000 years ago nothing happened.
NOT_LATE: Final = -(1 << 40)


class PaneRow(NamedTuple):
    """A row without numbers but how many there are; the names are those of `accounts.KEYS`."""

    vid: int
    series: str
    start_s: int
    minute_s: int | None
    n: int = 1


class Words(NamedTuple):
    """Texts of records, each different one once.

    Attributes:
        codes: Of each record the place in `texts`; -1: it has none.
        texts: The texts.
    """

    codes: Codes
    texts: list[str]

    def of(self, at: int) -> str | None:
        """Return the text of a record."""
        code = int(self.codes[at])
        return self.texts[code] if code >= 0 else None


@dataclass(frozen=True)
class Judged:
    """What became of some records, an array an attribute.

    Attributes:
        partition: Partition of the log.
        offset: Place in it.
        kind: See `Kind`.
        fate: See `Fate`; final.
        received_ms: R.
        seen: How many records of the partition the task saw; -1 but on its last.
        time_ms: Event time; 0 of what is no event.
        tenant: Whose it is.
        source: Who sent it.
        type: Of events.
        reason: Why a record is quarantined.
        forged: Whether that was found out by its content.
        late: Start of the pane of an event that is late, in seconds, see `versions.late_panes`;
            `NOT_LATE` of others. None: none is, as in an ordinary batch.
    """

    partition: npt.NDArray[np.int32]
    offset: Longs
    kind: npt.NDArray[np.int8]
    fate: npt.NDArray[np.int8]
    received_ms: Longs
    seen: Longs
    time_ms: Longs
    tenant: Words
    source: Words
    type: Words
    reason: Words
    forged: npt.NDArray[np.bool_]
    late: Longs | None

    @cached_property
    def minute_s(self) -> Longs:
        """The received minute, in epoch seconds."""
        return self.received_ms // 1000 // SYSTEM_RES_S * SYSTEM_RES_S


def account_rows(judged: Judged) -> Iterator[PaneRow]:
    """Yield the rows that records leave besides those of the metrics."""
    yield from _ledger(judged)
    for at in np.flatnonzero(judged.seen >= 0).tolist():
        partition, seen = str(int(judged.partition[at])), int(judged.seen[at])
        yield PaneRow(PROGRESS, partition, int(judged.received_ms[at]), seen)
    for at in np.flatnonzero(judged.kind == Kind.SAMPLED).tolist():
        fate, reason = Fate(int(judged.fate[at])), judged.reason.of(at) or ""
        series = GAP.join((str(int(judged.partition[at])), fate.disposition, reason))
        yield PaneRow(FATE, series, int(judged.offset[at]), None)
    for at in np.flatnonzero(judged.forged).tolist():
        place = int(judged.partition[at]), int(judged.kind[at])
        series = copy_series(Reason.NOT_AN_EVENT.value, *place)
        yield PaneRow(UNREADABLE, series, int(judged.offset[at]), None)


def copy_series(code: str, partition: int, kind: int) -> str:
    """Return what stands as the series of a record that is to be copied to quarantine."""
    return GAP.join((code, str(partition), "true" if kind == Kind.SAMPLED else "false"))


def _ledger(judged: Judged) -> Iterator[PaneRow]:
    """Yield the panes of ledger, types, lateness, reasons, and groups of late events."""
    records = np.flatnonzero(judged.fate != Fate.TICK)
    if not len(records):
        return
    fate = judged.fate[records]
    counted = fate == Fate.COUNTED
    late_ms = judged.received_ms[records] - judged.time_ms[records]
    buckets = np.where(counted, np.searchsorted(_EDGES, late_ms), _NONE)
    late_s = None if judged.late is None else judged.late[records]
    minute_s = judged.minute_s[records]
    groups = groups_by(
        fate.astype(np.int64),
        judged.tenant.codes[records],
        judged.source.codes[records],
        np.where(counted, judged.type.codes[records], _NONE),
        np.where(counted, _NONE, judged.reason.codes[records]),
        buckets,
        minute_s,
        *([] if late_s is None else [late_s]),
    )
    added: dict[tuple[int, tuple[str, ...], int], int] = defaultdict(int)
    for first, n in zip(groups.first.tolist(), groups.sizes.tolist(), strict=True):
        at, minute = int(records[first]), int(minute_s[first])
        owned = owner(judged.tenant.of(at) or "", judged.source.of(at) or "")
        added[LEDGER, (*owned, Fate(int(fate[first])).disposition), minute] += n
        if counted[first]:
            bucket = _BUCKETS[int(buckets[first])]
            event_type = judged.type.of(at) or ""
            added[TYPES, (*owned, event_type), minute] += n
            added[LATENESS, (*owned, bucket), minute] += n
            added[TYPE_LATENESS, (*owned, bucket, event_type), minute] += n
            if late_s is not None and late_s[first] != NOT_LATE:
                late = GAP.join((*owned, event_type))
                yield PaneRow(LATE, late, int(late_s[first]), minute, n)
        elif fate[first] == Fate.QUARANTINED:
            yield PaneRow(REASONS, judged.reason.of(at) or "", minute, minute, n)
    for (vid, values, minute), n in added.items():
        yield PaneRow(vid, encode_series(values), minute, minute, n)


def table_of(rows: list[PaneRow], use: list[int]) -> dict[str, list[Any]]:
    """Return rows as columns."""
    vid, series, start_s, minute_s, n = map(list, zip(*rows, strict=True))
    return {
        "vid": vid,
        "series": series,
        "start_s": start_s,
        "minute_s": minute_s,
        "use": use,
        "n": n,
    }
