"""Sorted runs: which identities one partition has seen, by range of offsets.

A run covers the offsets `[start, end)` of one partition and holds, for every
identity in it, the greatest R (running maximum of the append time). Runs are a
cache of the log. The state before offset `n` is the chain of runs that ends at
`n`, so a batch that is run again sees what it saw the first time. A chain that
does not reach one horizon back is no state; it is read from the log again. Nor is
one whose runs were kept for a shorter horizon: what they left out may count now.

Most events are no repeats, and each is looked for in every run. So a run has a sieve, a bit of
all that its identities may begin with: whatever finds its bit unset is not in it (a Bloom filter
of one function; identities are digests, so their first bits are one). In order, as events are
looked for, that reads the sieve from one end to the other; a search reads all over the run.

A run is written to a temporary file, synced and renamed: it is whole or not there. One
that cannot be read all the same is as good as absent, and is deleted.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import structlog

LOG = structlog.get_logger()

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

NEVER = -1
MAGIC = b"WEIRRUN3"
# What a release before left: the same without a sieve.
_UNSIEVED = b"WEIRRUN2"
_HEADER = struct.Struct("<8s6q")
_IDENTITY_BYTES = 24
_RUNS, _TEMPORARIES = "[0-9]*-[0-9]*.run", ".[0-9]*-[0-9]*.run.*"
# Eight runs below a size become one. Runs of `LARGEST` identities stay as they
# are: merging eight of them would take a third of a second of one batch.
FAN_IN = 8
SMALLEST = 512
LARGEST = SMALLEST * FAN_IN**3
# A sieve has so many bits an identity, at least: one event in so many is looked for in vain.
SIEVE_BITS = 16
# A search in fewer identities takes no longer than a look at the sieve.
SIEVED = 2_048
_WORD_BITS = 64


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


def sieve_of(high: U64) -> U64:
    """Return the bits of what the first 8 bytes of identities begin with; none if they are few.

    Args:
        high: The first 8 bytes of each, in ascending order.
    """
    sieve = np.zeros(sieve_words(len(high)), np.uint64)
    # Some at a time: of a run that was read back from a long log there are many millions.
    for at in range(0, len(high) if len(sieve) else 0, LARGEST):
        begin = (high[at : at + LARGEST] >> _shift(len(sieve))).view(np.int64)
        first, last = int(begin[0]) // _WORD_BITS, int(begin[-1]) // _WORD_BITS
        bits = np.zeros((last + 1 - first) * _WORD_BITS, bool)
        bits[begin - first * _WORD_BITS] = True
        sieve[first : last + 1] |= np.packbits(bits, bitorder="little").view("<u8")
    return sieve


def sieve_words(identities: int) -> int:
    """Return how many words of 64 bits the sieve of some identities has: a power of two, or 0."""
    if identities < SIEVED:
        return 0
    return 1 << (-(-SIEVE_BITS * identities // _WORD_BITS) - 1).bit_length()


def passing(sieve: U64, high: U64) -> npt.NDArray[np.intp]:
    """Return which of some identities a run may hold, by the first 8 bytes of each."""
    begin = high >> _shift(len(sieve))
    words = sieve.take((begin >> np.uint64(6)).view(np.int64))
    return np.flatnonzero(words >> (begin & np.uint64(63)) & np.uint64(1))


def _shift(words: int) -> np.uint64:
    """Return by how much the first 8 bytes are shifted to be the place of a bit of a sieve."""
    return np.uint64(64 - (words * _WORD_BITS - 1).bit_length())


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
    # Executors on several hosts may share the folder, and have the same numbers of processes.
    temporary = folder / f".{run.name}.{socket.gethostname()}-{os.getpid()}"
    parts = (_HEADER.pack(MAGIC, *head, len(columns[0])), *(c.tobytes() for c in (*columns, sieve)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_synced(temporary, parts)
        temporary.rename(folder / run.name)
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
        try:
            run = read_run(path)
        except (OSError, ValueError) as error:
            LOG.warning("dedup_run_deleted", why=str(error)[:300])
            path.unlink(missing_ok=True)
            continue
        if run.horizon_ms >= horizon_ms:
            return run
    return None


def tidy(folder: Path, offset: int, horizon_ms: int) -> None:
    """Merge small runs before `offset` and delete those that nothing needs any more.

    The chain before `offset` stays what it was: only runs that end at or before
    it are touched, and a merged run is there before its parts go.
    """
    _delete_temporaries(folder, offset)
    chain = chain_before(folder, offset, horizon_ms)
    if not chain:
        return
    _delete_outside(folder, chain, offset)
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
