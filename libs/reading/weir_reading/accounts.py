"""System metrics, read as what they are: ledger, types seen, use of versions, lateness.

They are panes under vids below zero (docs/interfaces.md, section 5), so they survive,
rebuild and expire like everything else that is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weir.lateness import Lateness
from weir.series import OTHER, decode_series, fit

from weir_reading.panes import PaneId, Panes

LEDGER_VID = -1
TYPES_VID = -2
USE_VID = -3
LATENESS_VID = -4
MINUTE_S = 60
HOUR_S = 3_600


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
            values = _values(texts.get(short, OTHER))
            if values[0] == owner:
                accounts.append(Account(pane.start_s * 1000, values, row.n))
    return accounts


async def read_lateness(
    panes: Panes, hours_s: Iterable[int], shards: int, tenant: str
) -> dict[str, Lateness]:
    """Return by source how late a tenant's counted events of some hours were."""
    counts: dict[str, dict[str, int]] = {}
    for account in await read_accounts(panes, LATENESS_VID, hours_s, shards, tenant, HOUR_S):
        _, source, bucket = account.values
        of_source = counts.setdefault(source, {})
        of_source[bucket] = of_source.get(bucket, 0) + account.n
    return {source: Lateness(of_source) for source, of_source in sorted(counts.items())}


def _values(text: str) -> tuple[str, ...]:
    if text == OTHER:
        return ("", "", OTHER)
    return tuple(value or "" for value in fit(decode_series(text), 3))
