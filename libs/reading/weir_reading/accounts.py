"""System metrics, read as what they are: ledger, types seen, use of versions, lateness.

They are panes under vids below zero (docs/interfaces.md, section 5), so they survive,
rebuild and expire like everything else that is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from weir.definitions.selection import Selection
from weir.lateness import Lateness
from weir.series import OTHER, decode_series, fit, may_be_cut

from weir_reading.panes import PaneId, Panes

LEDGER_VID = -1
TYPES_VID = -2
USE_VID = -3
LATENESS_VID = -4
TYPE_LATENESS_VID = -5
MINUTE_S = 60
HOUR_S = 3_600

# The values of a series; of a type's lateness there is the type behind them.
_VALUES: Final = {TYPE_LATENESS_VID: 4}


@dataclass(frozen=True)
class Account:
    """A count of one minute, or of one hour.

    Attributes:
        minute_ms: When the minute, or hour, of received time begins.
        values: The series' values: tenant, then what is told of it.
        n: How many.
    """

    minute_ms: int
    values: tuple[str, ...]
    n: int


async def read_accounts(
    panes: Panes, vid: int, starts_s: Iterable[int], shards: int, owner: str, res_s: int = MINUTE_S
) -> list[Account]:
    """Return the counts of some minutes, or hours, that belong to one owner.

    Args:
        panes: The store.
        vid: Which account.
        starts_s: Beginnings of the minutes or hours, in seconds.
        shards: Over how many shards the store spreads series.
        owner: The first value of the series: a tenant; of use the version.
        res_s: Length of the account's panes.
    """
    wanted = [PaneId(vid, res_s, start_s, shard) for start_s in starts_s for shard in range(shards)]
    found = await panes.read(wanted)
    accounts: list[Account] = []
    for pane, rows in found.items():
        texts = await panes.names(vid, pane.shard, rows) if rows else {}
        for short, row in rows.items():
            values = _values(texts.get(short, OTHER), _VALUES.get(vid, 3))
            if values[0] == owner:
                accounts.append(Account(pane.start_s * 1000, values, row.n))
    return accounts


@dataclass(frozen=True)
class LatenessFound:
    """How late events were that a metric looks at.

    Attributes:
        sources: By source.
        untyped: Events of its sources that are in no figure, since of their type nothing is
            kept: counted by a release before there were any figures by type, or beyond what is
            kept of a tenant's types.
    """

    sources: dict[str, Lateness]
    untyped: int = 0


async def read_lateness(
    panes: Panes, hours_s: Iterable[int], shards: int, tenant: str
) -> dict[str, Lateness]:
    """Return by source how late a tenant's counted events of some hours were."""
    counts: dict[str, dict[str, int]] = {}
    for account in await read_accounts(panes, LATENESS_VID, hours_s, shards, tenant, HOUR_S):
        _, source, bucket = account.values
        _add(counts, source, bucket, account.n)
    return {source: Lateness(of_source) for source, of_source in sorted(counts.items())}


async def read_lateness_of(
    panes: Panes, hours_s: Iterable[int], shards: int, tenant: str, chosen: Selection
) -> LatenessFound:
    """Return by source how late the events were that a metric looks at: `where` is not asked."""
    hours_s = list(hours_s)
    found = await read_lateness(panes, hours_s, shards, tenant)
    whole = {s: late for s, late in found.items() if not chosen.source or s in chosen.source}
    if chosen.matches_type(""):
        return LatenessFound(whole)
    counts: dict[str, dict[str, int]] = {}
    known = 0
    for account in await read_accounts(panes, TYPE_LATENESS_VID, hours_s, shards, tenant, HOUR_S):
        _, source, bucket, event_type = account.values
        # Of a text that was cut for its length, the last value that is left ends in a digest.
        if source not in whole or may_be_cut(bucket):
            continue
        if chosen.matches_type(event_type):
            _add(counts, source, bucket, account.n)
            known += account.n
        elif not may_be_cut(event_type):
            known += account.n
    sources = {source: Lateness(of_source) for source, of_source in sorted(counts.items())}
    # Read a moment later than all, it may hold a batch more.
    untyped = sum(late.events for late in whole.values()) - known
    return LatenessFound(sources, max(0, untyped))


def _add(counts: dict[str, dict[str, int]], source: str, bucket: str, n: int) -> None:
    of_source = counts.setdefault(source, {})
    of_source[bucket] = of_source.get(bucket, 0) + n


def _values(text: str, width: int) -> tuple[str, ...]:
    if text == OTHER:
        return (*[""] * (width - 1), OTHER)
    return tuple(value or "" for value in fit(decode_series(text), width))
