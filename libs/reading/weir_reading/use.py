"""The ledger of a metric's version: what it did with every event that was counted.

For each received minute: counted = used + not matched + value quarantined + pane not kept.
Each event that a version matches is in one of the three that are stored, so what it does
not match is what is left of the tenant's counted events. The identity thus holds by construction:
a fault of it is found by a recount of the log alone (`tests/disruption/uses.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weir_reading.accounts import LEDGER_VID, USE_VID, read_accounts
from weir_reading.panes import Panes


@dataclass(frozen=True, slots=True)
class UseMinute:
    """One received minute of one version.

    Attributes:
        minute_ms: When it begins.
        counted: Events of the tenant that were counted.
        used: Those that are in panes of the version.
        value_quarantined: Those that it matches and whose value it could not use.
        pane_not_kept: Those that it matches and no resolution of it keeps.
    """

    minute_ms: int
    counted: int
    used: int
    value_quarantined: int
    pane_not_kept: int

    @property
    def not_matched(self) -> int:
        """Those that are not the version's."""
        return self.counted - self.used - self.value_quarantined - self.pane_not_kept


async def read_use(
    panes: Panes, starts_s: Iterable[int], shards: int, tenant: str, vid: int
) -> list[UseMinute]:
    """Return what a version did with the events of some minutes, in their order."""
    starts = list(starts_s)
    uses: dict[tuple[int, str], int] = {}
    for one in await read_accounts(panes, USE_VID, starts, shards, str(vid)):
        key = (one.minute_ms, one.values[1])
        uses[key] = uses.get(key, 0) + one.n
    counted: dict[int, int] = {}
    for one in await read_accounts(panes, LEDGER_VID, starts, shards, tenant):
        if one.values[2] == "counted":
            counted[one.minute_ms] = counted.get(one.minute_ms, 0) + one.n
    return [
        UseMinute(
            minute_ms=ms,
            counted=counted.get(ms, 0),
            used=uses.get((ms, "used"), 0),
            value_quarantined=uses.get((ms, "value_quarantined"), 0),
            pane_not_kept=uses.get((ms, "pane_not_kept"), 0),
        )
        for ms in (start_s * 1000 for start_s in starts)
    ]
