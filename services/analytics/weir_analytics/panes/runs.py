"""Sorted runs: which identities one partition has seen, by range of offsets.

A run covers the offsets `[start, end)` of one partition and holds, for every
identity in it, the greatest R (running maximum of the append time). Runs are a
cache of the log. The state before offset `n` is the chain of runs that ends at
`n`, so a batch that is run again sees what it saw the first time. A chain that
does not reach one horizon back is no state; it is read from the log again. Nor is
one whose runs were kept for a shorter horizon: what they left out may count now.

Most events are no repeats, and each is looked for in every run. So a run has a sieve
(`sieves.py`), and neighbors that are too large to be merged share another one, in a file of its
own: what is in none of them is seen at one look.

A run or a sieve is written to a temporary file, synced and renamed: it is whole or not there. One
that cannot be read all the same is as good as absent, and is deleted.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import structlog

from weir_analytics.panes.mapped import mapped
from weir_analytics.panes.sieves import U64, passing, sieve_of, sieve_over, sieve_words

LOG = structlog.get_logger()

I64 = npt.NDArray[np.int64]
T = TypeVar("T")

NEVER = -1
MAGIC = b"WEIRRUN3"
# What a release before left: the same without a sieve.
_UNSIEVED = b"WEIRRUN2"
_HEADER = struct.Struct("<8s6q")
_IDENTITY_BYTES = 24
_SHARED_MAGIC = b"WEIRSIV1"
_SHARED_HEADER = struct.Struct("<8s4q")
_RUNS, _SHARED, _TEMPORARIES = "[0-9]*-[0-9]*.run", "[0-9]*-[0-9]*.sieve", ".[0-9]*-[0-9]*.*.*"
# Eight runs below a size become one. Runs of `LARGEST` identities stay as they
# are: merging eight of them would take a third of a second of one batch.
FAN_IN = 8
SMALLEST = 512
LARGEST = SMALLEST * FAN_IN**3
# So many neighbors of that size share a sieve. To make one takes a batch some 60 ms.
SHARING = 8


@dataclass(frozen=True)
class Identities:
    """Identities in the order of (first 8 bytes, last 8 bytes), each with its greatest R.

    Attributes:
        sieve: See `sieve_of`; None: all is searched for.
    """

    high: U64
    low: U64
    received: I64
    sieve: U64 | None = None

    def __len__(self) -> int:
        return len(self.high)

    @classmethod
    def empty(cls) -> Identities:
        """Return no identities."""
        none = np.empty(0, np.uint64)
        return cls(none, none, np.empty(0, np.int64))

    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """Return the three arrays in the order in which a run's file holds them."""
        return self.high, self.low, self.received

    @classmethod
    def of(cls, parts: Sequence[Identities]) -> Identities:
        """Return the union; an identity in several parts keeps its greatest R.

        A stable sort of arrays that are sorted one by one is a merge in numpy.
        """
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.empty()
        high = np.concatenate([part.high for part in parts])
        low = np.concatenate([part.low for part in parts])
        received = np.concatenate([part.received for part in parts])
        order = identity_order(high, low)
        return cls.of_ordered(high[order], low[order], received[order])

    @classmethod
    def of_ordered(cls, high: U64, low: U64, received: I64) -> Identities:
        """Return arrays that are in order already; of repeated identities the greatest R."""
        last = np.ones(len(high), bool)
        last[:-1] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        if last.all():
            return cls(high, low, received)
        starts = np.flatnonzero(np.concatenate(([True], last[:-1])))
        return cls(high[last], low[last], np.maximum.reduceat(received, starts))

    def latest(self, high: U64, low: U64, found: I64) -> None:
        """Put the R of each identity asked that is here into `found`, where that is earlier.

        Fastest if asked in sorted order.
        """
        size = len(self.high)
        asked = np.arange(len(high)) if self.sieve is None else passing(self.sieve, high)
        if not len(asked):
            return
        at = np.searchsorted(self.high, high[asked])
        there = np.flatnonzero(at < size)
        there = there[self.high[at[there]] == high[asked[there]]]
        asked, at = asked[there], at[there]
        while len(asked):  # a second round only where two identities share 8 bytes
            same = self.low[at] == low[asked]
            hit = asked[same]
            found[hit] = np.maximum(found[hit], self.received[at[same]])
            asked, at = asked[~same], at[~same] + 1
            there = np.flatnonzero(at < size)
            there = there[self.high[at[there]] == high[asked[there]]]
            asked, at = asked[there], at[there]


class Earlier(Protocol):
    """Where identities that came before are looked for."""

    def latest(self, high: U64, low: U64, found: I64) -> None:
        """Put the R of each identity asked that is here into `found`, where that is earlier."""


@dataclass(frozen=True)
class Behind:
    """Runs behind a sieve that they share."""

    sieve: U64
    parts: Sequence[Identities]

    def latest(self, high: U64, low: U64, found: I64) -> None:
        """Look for what passes the sieve in each of them."""
        asked = passing(self.sieve, high)
        if not len(asked):
            return
        high, low, latest = high[asked], low[asked], found[asked]
        for part in self.parts:
            part.latest(high, low, latest)
        found[asked] = latest


def identity_order(high: U64, low: U64) -> npt.NDArray[np.intp]:
    """Return the stable order by (high, low); `low` is looked at only where `high` repeats."""
    order = np.argsort(high, kind="stable")
    ordered = high[order]
    repeats = ordered[1:] == ordered[:-1]
    if repeats.any():
        lows = low[order]
        if (lows[1:][repeats] != lows[:-1][repeats]).any():
            exact: npt.NDArray[np.intp] = np.lexsort((low, high))
            return exact
    return order


@dataclass(frozen=True)
class Run:
    """One run: the range it covers, R before and after it, and its identities.

    Attributes:
        horizon_ms: Of a run that was read, the longest horizon that it serves.
    """

    start: int
    end: int
    received_before: int
    received_end: int
    identities: Identities
    horizon_ms: int = 0

    @property
    def name(self) -> str:
        """The file's name: the range it covers."""
        return f"{self.start:020d}-{self.end:020d}.run"


@dataclass(frozen=True)
class SharedSieve:
    """A sieve of the records `[start, end)`, however runs divide them.

    Attributes:
        horizon_ms: What was older than that at a run's end may be missing.
    """

    start: int
    end: int
    horizon_ms: int
    sieve: U64

    @property
    def name(self) -> str:
        """The file's name: the range it covers."""
        return f"{self.start:020d}-{self.end:020d}.sieve"

    def covers(self, run: Run) -> bool:
        """Tell whether all of a run's records are among those of the sieve."""
        return self.start <= run.start and run.end <= self.end


def write_run(folder: Path, run: Run, horizon_ms: int) -> None:
    """Write a run by rename; identities that can never match again are left out.

    Synced first: after a power cut a rename may be on the disk before the content is.

    Raises:
        OSError: If the disk takes it not, as when it is full; what was written of it is deleted.
    """
    kept = run.identities.received >= run.received_end - horizon_ms
    columns = [column[kept] for column in run.identities.columns()]
    head = (run.start, run.end, run.received_before, run.received_end, horizon_ms)
    sieve = sieve_of(columns[0])
    parts = (_HEADER.pack(MAGIC, *head, len(columns[0])), *(c.tobytes() for c in (*columns, sieve)))
    _write(folder, run.name, parts)


def _write(folder: Path, name: str, parts: Sequence[bytes]) -> None:
    # Executors on several hosts may share the folder, and have the same numbers of processes.
    temporary = folder / f".{name}.{socket.gethostname()}-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_synced(temporary, parts)
        temporary.rename(folder / name)
    except OSError as error:
        # Each try is of another process: what all of them left would fill what becomes free.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        msg = (
            f'could not write dedup run in "{folder}", {error.strerror or error}; '
            "make room there, nothing is lost meanwhile"
        )
        raise OSError(error.errno, msg) from error


def _write_synced(path: Path, parts: Sequence[bytes]) -> None:
    with path.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def read_run(path: Path) -> Run:
    """Map a run into memory.

    Raises:
        ValueError: If the file is not a whole run.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or head[:8] not in (MAGIC, _UNSIEVED):
        msg = f'dedup run must begin with {MAGIC.decode()}, "{path.name}" does not; delete it'
        raise ValueError(msg)
    magic, start, end, before, received_end, horizon_ms, count = _HEADER.unpack(head)
    words = sieve_words(count) if magic == MAGIC else 0
    if size != _HEADER.size + _IDENTITY_BYTES * count + 8 * words:
        msg = f'dedup run "{path.name}" must hold {count} identities, has {size} bytes; delete it'
        raise ValueError(msg)
    return Run(start, end, before, received_end, _mapped(path, count, words), horizon_ms)


def write_shared(folder: Path, runs: Sequence[Run]) -> None:
    """Write the sieve of neighboring runs, oldest first.

    Raises:
        OSError: If the disk takes it not; see `write_run`.
    """
    sieve = sieve_over([run.identities.high for run in runs])
    horizon_ms = min(run.horizon_ms for run in runs)
    one = SharedSieve(runs[0].start, runs[-1].end, horizon_ms, sieve)
    head = (one.start, one.end, horizon_ms, len(sieve))
    _write(folder, one.name, (_SHARED_HEADER.pack(_SHARED_MAGIC, *head), sieve.tobytes()))


def read_shared(path: Path) -> SharedSieve:
    """Map a sieve into memory.

    Raises:
        ValueError: If the file is not a whole sieve.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_SHARED_HEADER.size)
    if len(head) < _SHARED_HEADER.size or head[:8] != _SHARED_MAGIC:
        msg = (
            f'sieve of dedup must begin with {_SHARED_MAGIC.decode()}, "{path.name}" does not; '
            "delete it"
        )
        raise ValueError(msg)
    _magic, start, end, horizon_ms, words = _SHARED_HEADER.unpack(head)
    if words < 1 or size != _SHARED_HEADER.size + 8 * words:
        msg = f'sieve of dedup "{path.name}" must hold {words} words, has {size} bytes; delete it'
        raise ValueError(msg)
    sieve: Any = np.asarray(np.memmap(path, np.uint64, "r", _SHARED_HEADER.size))
    return SharedSieve(start, end, horizon_ms, sieve)


def held(path: Path, size_bytes: int) -> int:
    """Return how many identities a file of the runs' folder holds, by its size; 0 if it is no run.

    One that is half written, under a name of its own, is none. Of one that a release before left
    it may be an eighth less than there are.
    """
    if not path.match(_RUNS):
        return 0
    content = max(0, size_bytes - _HEADER.size)
    most = content // _IDENTITY_BYTES
    for words in (sieve_words(most), sieve_words(most) // 2):
        count = (content - 8 * words) // _IDENTITY_BYTES
        if sieve_words(count) == words:
            return count
    return most


def _mapped(path: Path, count: int, words: int) -> Identities:
    if count == 0:
        return Identities.empty()
    raw: Any = np.asarray(np.memmap(path, np.uint64, "r", _HEADER.size))
    high, low, received = raw[: 3 * count].reshape(3, count)
    return Identities(high, low, received.view(np.int64), raw[3 * count :] if words else None)


def run_range(path: Path) -> tuple[int, int]:
    """Return the offsets that a run covers, from its name."""
    start, _, end = path.stem.partition("-")
    return int(start), int(end)


def chain_before(folder: Path, offset: int, horizon_ms: int) -> list[Run] | None:
    """Return the runs that make up the state before `offset`, newest first.

    Returns:
        None if the files do not reach one horizon back: the state must be read
        from the log.
    """
    if offset == 0:
        return []
    by_end: dict[int, list[Path]] = {}
    for path in sorted(folder.glob(_RUNS)):
        start, end = run_range(path)
        if start < end:
            by_end.setdefault(end, []).append(path)  # the longest comes first
    chain: list[Run] = []
    at, oldest_needed = offset, None
    while (run := _first_usable(by_end.get(at, ()), horizon_ms)) is not None:
        if oldest_needed is None:
            oldest_needed = run.received_end - horizon_ms
        chain.append(run)
        at = run.start
        if run.received_before == NEVER or run.received_before < oldest_needed:
            return chain
    return None


def _first_usable(paths: Sequence[Path], horizon_ms: int) -> Run | None:
    for path in paths:
        run = _whole(path, read_run)
        if run is not None and run.horizon_ms >= horizon_ms:
            return run
    return None


def _whole(path: Path, read: Callable[[Path], T]) -> T | None:
    try:
        return mapped(path, read)
    except (OSError, ValueError) as error:
        LOG.warning("dedup_run_deleted", why=str(error)[:300])
        path.unlink(missing_ok=True)
        return None


def searched(folder: Path, chain: Sequence[Run], horizon_ms: int) -> list[Earlier]:
    """Return where the identities of a chain are looked for: runs behind the sieves they share.

    Args:
        folder: Where the chain was read.
        chain: The runs that make up a state, newest first.
        horizon_ms: The longest one by which anything is to be found. What a sieve misses was
            older than its own one when the sieve's range ended.
    """
    found: list[Earlier] = []
    left = [run for run in chain if len(run.identities)]
    for one in _shared(folder, chain, horizon_ms):
        inside = [run.identities for run in left if one.covers(run)]
        left = [run for run in left if not one.covers(run)]
        found.append(Behind(one.sieve, inside))
    return [*found, *(run.identities for run in left)]


def _shared(folder: Path, chain: Sequence[Run], horizon_ms: int) -> list[SharedSieve]:
    """Return the sieves that serve the state to which a chain leads."""
    read = (_whole(path, read_shared) for path in sorted(folder.glob(_SHARED)))
    end = max((run.end for run in chain), default=0)
    return [one for one in read if one and one.end <= end and one.horizon_ms >= horizon_ms]


def tidy(folder: Path, offset: int, horizon_ms: int) -> None:
    """Merge small runs before `offset`, give large ones their sieves, delete what nothing needs.

    The chain before `offset` stays what it was: only runs that end at or before
    it are touched, and a merged run is there before its parts go.
    """
    _delete_temporaries(folder, offset)
    chain = chain_before(folder, offset, horizon_ms)
    if not chain:
        return
    _delete_outside(folder, chain, offset)
    _share(folder, chain, horizon_ms)
    group = _mergeable(chain)
    if len(group) < FAN_IN:
        return
    oldest, newest = group[-1], group[0]
    merged = Run(
        oldest.start,
        newest.end,
        oldest.received_before,
        newest.received_end,
        Identities.of([run.identities for run in group]),
    )
    write_run(folder, merged, horizon_ms)
    for run in group:
        (folder / run.name).unlink(missing_ok=True)


def _delete_outside(folder: Path, chain: Sequence[Run], offset: int) -> None:
    kept = {run.name for run in chain}
    for path in folder.glob(_RUNS):
        if run_range(path)[1] <= offset and path.name not in kept:
            path.unlink(missing_ok=True)


def _share(folder: Path, chain: Sequence[Run], horizon_ms: int) -> None:
    """Let the oldest large runs that share no sieve have one; delete those of no run.

    A run that was read back may hold a whole horizon. Such a one has a sieve of its own, and with
    it the others would get a large one.
    """
    there = _shared(folder, chain, horizon_ms)
    kept = {one.name for one in there if any(map(one.covers, chain))}
    for path in folder.glob(_SHARED):
        if run_range(path)[1] <= chain[0].end and path.name not in kept:
            path.unlink(missing_ok=True)
    alone: list[Run] = []
    for run in reversed(chain):
        is_large = LARGEST <= len(run.identities) <= FAN_IN * LARGEST
        if not is_large or any(one.covers(run) for one in there):
            alone.clear()  # those that share one are neighbors
            continue
        alone.append(run)
        if len(alone) == SHARING:
            write_shared(folder, alone)
            return


def _delete_temporaries(folder: Path, offset: int) -> None:
    """Delete what a process left that died while writing: nobody renames it any more."""
    for path in folder.glob(_TEMPORARIES):
        if run_range(Path(path.name[1:].partition(".")[0]))[1] <= offset:
            path.unlink(missing_ok=True)


def _mergeable(chain: Sequence[Run]) -> list[Run]:
    """Return the newest runs, all below one size, as soon as there are `FAN_IN` of them."""
    limit = SMALLEST
    while limit <= LARGEST:
        group = list(takewhile(lambda run: len(run.identities) < limit, chain))  # noqa: B023
        if len(group) >= FAN_IN:
            return group
        limit *= FAN_IN
    return []
