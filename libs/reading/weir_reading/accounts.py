"""System metrics, read as what they are: ledger, types seen, use of versions, lateness.

They are panes under vids below zero (docs/interfaces.md, section 5), so they survive,
rebuild and expire like everything else that is counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, NamedTuple

from weir.definitions.selection import Selection
from weir.lateness import Lateness
from weir.problems import ProblemError, Reason
from weir.series import decode_series, first_value, fit, may_be_cut

from weir_reading.panes import Names, PaneId, Panes, Rows, is_few
from weir_reading.threads import in_thread

LEDGER_VID = -1
TYPES_VID = -2
USE_VID = -3
LATENESS_VID = -4
TYPE_LATENESS_VID = -5
MINUTE_S = 60
HOUR_S = 3_600

# The values of a series; of a type's lateness there is the type behind them.
_VALUES: Final = 3
_TYPE_VALUES: Final = 4

MAX_LOOKED_FOR: Final = 1_000_000
"""Most rows of lateness that are looked for at once: a tenant's series times the hours."""


class _OwnRows(NamedTuple):
    """What is read of a metric of which each tenant's rows can be found.

    Attributes:
        width: How many values a series has.
        name: What a refusal calls its rows.
        otherwise: What it says to do where not even one hour fits.
    """

    width: int
    name: str
    otherwise: str


_OWN_ROWS: Final = {
    LATENESS_VID: _OwnRows(_VALUES, "rows of sources", "let fewer sources send"),
    TYPE_LATENESS_VID: _OwnRows(_TYPE_VALUES, "rows of types", "ask for all types together"),
}


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
    panes: Panes,
    vid: int,
    starts_s: Iterable[int],
    shards: int,
    owner: str,
    res_s: int = MINUTE_S,
    pool: Executor | None = None,
) -> list[Account]:
    """Return the counts of some minutes, or hours, that belong to one owner.

    All owners' rows are read; of the others' there are as many as they have sources, or types.

    Args:
        panes: The store.
        vid: Which account.
        starts_s: Beginnings of the minutes or hours, in seconds.
        shards: Over how many shards the store spreads series.
        owner: The first value of the series: a tenant; of use the version.
        res_s: Length of the account's panes.
        pool: Whose threads work on many rows; None for those that everything shares.
    """
    wanted = (PaneId(vid, res_s, start_s, shard) for start_s in starts_s for shard in range(shards))
    parts, texts = await panes.named(wanted, pool)
    if is_few(parts):
        return _accounts(parts, texts, owner)
    return await in_thread(pool, _accounts, parts, texts, owner)


def _accounts(parts: Mapping[PaneId, Rows], texts: Names, owner: str) -> list[Account]:
    own = {place: _own(of_place, owner, _VALUES) for place, of_place in texts.items()}
    accounts: list[Account] = []
    for pane, rows in parts.items():
        values = own[pane.vid, pane.shard]
        for short in values.keys() & rows.keys():
            accounts.append(Account(pane.start_s * 1000, values[short], rows[short].n))
    return accounts


def _own(texts: Mapping[bytes, str], owner: str, width: int) -> dict[bytes, tuple[str, ...]]:
    """Return the values of an owner's series by short id; the row `other` is nobody's."""
    found: dict[bytes, tuple[str, ...]] = {}
    for short, text in texts.items():
        if first_value(text) == owner:
            found[short] = tuple(value or "" for value in fit(decode_series(text), width))
    return found


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
    panes: Panes, hours_s: Collection[int], shards: int, tenant: str, pool: Executor | None = None
) -> dict[str, Lateness]:
    """Return by source how late a tenant's counted events of some hours were.

    Raises:
        ProblemError: 422 `query_too_large` for a tenant that has too many sources for the hours.
    """
    counts: dict[str, dict[str, int]] = {}
    place = (hours_s, shards, tenant, pool)
    for (_, source, bucket), n in await _read_own(panes, LATENESS_VID, *place):
        _add(counts, source, bucket, n)
    return {source: Lateness(of_source) for source, of_source in sorted(counts.items())}


async def read_lateness_of(
    panes: Panes,
    hours_s: Collection[int],
    shards: int,
    tenant: str,
    chosen: Selection,
    pool: Executor | None = None,
) -> LatenessFound:
    """Return by source how late the events were that a metric looks at: `where` is not asked.

    Raises:
        ProblemError: 422 `query_too_large` for a tenant that has too many sources, or types, for
            the hours.
    """
    found = await read_lateness(panes, hours_s, shards, tenant, pool)
    whole = {s: late for s, late in found.items() if not chosen.source or s in chosen.source}
    if chosen.matches_type(""):
        return LatenessFound(whole)
    counts: dict[str, dict[str, int]] = {}
    known = 0
    place = (hours_s, shards, tenant, pool)
    typed = await _read_own(panes, TYPE_LATENESS_VID, *place)
    for (_, source, bucket, event_type), n in typed:
        # Of a text that was cut for its length, the last value that is left ends in a digest.
        if source not in whole or may_be_cut(bucket):
            continue
        if chosen.matches_type(event_type):
            _add(counts, source, bucket, n)
            known += n
        elif not may_be_cut(event_type):
            known += n
    sources = {source: Lateness(of_source) for source, of_source in sorted(counts.items())}
    # Read a moment later than all, it may hold a batch more.
    untyped = sum(late.events for late in whole.values()) - known
    return LatenessFound(sources, max(0, untyped))


async def _read_own(
    panes: Panes,
    vid: int,
    hours_s: Collection[int],
    shards: int,
    tenant: str,
    pool: Executor | None,
) -> list[tuple[tuple[str, ...], int]]:
    """Return the values of a tenant's series, and how many events each counts in some hours.

    Of the tenant's own rows alone: how many sources, and types, the others have is theirs.
    """
    _check_series(vid, sum(await panes.listed_sizes(vid, shards, tenant)), len(hours_s))
    wanted = [PaneId(vid, HOUR_S, start_s, shard) for start_s in hours_s for shard in range(shards)]
    found: list[tuple[tuple[str, ...], int]] = []
    for place, counts in (await panes.counted_of(tenant, wanted, pool)).items():
        texts = await panes.names(*place, counts)
        values = await in_thread(pool, _own, texts, tenant, _OWN_ROWS[vid].width)
        found.extend((values[short], counts[short]) for short in values)
    return found


def _check_series(vid: int, series: int, hours: int) -> None:
    """Refuse to look for more rows than allowed.

    Raises:
        ProblemError: 422 `query_too_large`, always if it does.
    """
    if series * hours <= MAX_LOOKED_FOR:
        return
    own, fitting = _OWN_ROWS[vid], MAX_LOOKED_FOR // series
    mend = f"ask for at most {fitting} h" if fitting else own.otherwise
    msg = (
        f"{own.name} to look for must be at most {MAX_LOOKED_FOR:,}, got {series * hours:,}:"
        f" {series:,} series of the last 8 days in each of {hours} h; {mend}"
    )
    raise ProblemError(422, Reason.QUERY_TOO_LARGE, msg)


def _add(counts: dict[str, dict[str, int]], source: str, bucket: str, n: int) -> None:
    of_source = counts.setdefault(source, {})
    of_source[bucket] = of_source.get(bucket, 0) + n
