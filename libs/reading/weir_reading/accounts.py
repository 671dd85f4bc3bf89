"""System metrics, read as what they are: the ledger, the types seen, use of versions.

They are panes under vids below zero (docs/interfaces.md, section 5), so they survive,
rebuild and expire like everything else that is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weir.series import OTHER, decode_series, fit

from weir_reading.panes import PaneId, Panes

LEDGER_VID = -1
TYPES_VID = -2
MINUTE_S = 60


@dataclass(frozen=True)
class Account:
    """A count of one minute.

    Attributes:
        minute_ms: When the minute of received time begins.
        values: The series' values: tenant, then what is told of it.
        n: How many.
    """

    minute_ms: int
    values: tuple[str, ...]
    n: int


async def read_accounts(
    panes: Panes, vid: int, minutes_s: Iterable[int], shards: int, tenant: str
) -> list[Account]:
    """Return a tenant's counts of some minutes."""
    wanted = [
        PaneId(vid, MINUTE_S, start_s, shard) for start_s in minutes_s for shard in range(shards)
    ]
    found = await panes.read(wanted)
    accounts: list[Account] = []
    for pane, rows in found.items():
        texts = await panes.names(vid, pane.shard, rows) if rows else {}
        for short, row in rows.items():
            values = _values(texts.get(short, OTHER))
            if values[0] == tenant:
                accounts.append(Account(pane.start_s * 1000, values, row.n))
    return accounts


def _values(text: str) -> tuple[str, ...]:
    if text == OTHER:
        return ("", "", OTHER)
    return tuple(value or "" for value in fit(decode_series(text), 3))
