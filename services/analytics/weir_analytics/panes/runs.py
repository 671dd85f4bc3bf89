"""Sorted runs: which identities one partition has seen, by range of offsets.

A run covers the offsets `[start, end)` of one partition and holds, for every
identity in it, the greatest R (running maximum of the append time). Runs are a
cache of the log. The state before offset `n` is the chain of runs that ends at
`n`, so a batch that is run again sees what it saw the first time. A chain that
does not reach one horizon back is no state; it is read from the log again. Nor is
one whose runs were kept for a shorter horizon: what they left out may count now.

Most events are no repeats, and each is looked for in every run. So a run has a sieve
(`sieves.py`), and those that are too large to be merged share another one (`shared_sieves.py`).

A run is written to a temporary file, synced and renamed: it is whole or not there. One
that is not whole all the same is as good as absent, and is deleted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import structlog

from weir_analytics.panes.mapped import Files
from weir_analytics.panes.sieves import U64, passing, sieve_of, sieve_words

LOG = structlog.get_logger()

I64 = npt.NDArray[np.int64]
T = TypeVar("T")

READ_ANEW = Files()

NEVER = -1
MAGIC = b"WEIRRUN3"
# What a release before left: the same without a sieve.
_UNSIEVED = b"WEIRRUN2"
_HEADER = struct.Struct("<8s6q")
_IDENTITY_BYTES = 24
# A file's name says what it covers; a dot and who writes it, while it is being written.
_NAME = re.compile(r"(\d+)-(\d+)\.(\w+)")
_TEMPORARY = re.compile(r"\.\d+-(\d+)\.\w+\..*")
RUN, SIEVE = "run", "sieve"
# Eight runs of a size become one. Runs of `LARGEST` identities stay as they
# are: merging eight of them would take a third of a second of one batch.
FAN_IN = 8
SMALLEST = 512
LARGEST = SMALLEST * FAN_IN**3
# So many runs below a size are merged, of whatever sizes.
MOST_SMALL = 4 * FAN_IN
# What a process may be short of; of a disk or of rights nothing is said by these.
_SHORT_OF = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
# Fewer identities are read at once; more stay in the file, which is mapped.
_MAPPED = 4_096


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
    parts = (_HEADER.pack(MAGIC, *head, len(columns[0])), *(c.tobytes() for c in (*columns, sieve)))
    write_file(folder, run.name, parts)


def write_file(folder: Path, name: str, parts: Sequence[bytes]) -> None:
    """Write a file by rename.

    Raises:
        OSError: If the disk takes it not, as when it is full; what was written of it is deleted.
    """
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
    """Read a run; a large one is mapped into memory.

    Raises:
        ValueError: If the file is not a whole run.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size or head[:8] not in (MAGIC, _UNSIEVED):
            msg = f'dedup run must begin with {MAGIC.decode()}, "{path.name}" does not; delete it'
            raise ValueError(msg)
        magic, start, end, before, received_end, horizon_ms, count = _HEADER.unpack(head)
        words = sieve_words(count) if magic == MAGIC else 0
        if size != _HEADER.size + _IDENTITY_BYTES * count + 8 * words:
            msg = (
                f'dedup run "{path.name}" must hold {count} identities, has {size} bytes; delete it'
            )
            raise ValueError(msg)
        identities = _identities(file, count, words)
    return Run(start, end, before, received_end, identities, horizon_ms)


def _identities(file: BinaryIO, count: int, words: int) -> Identities:
    if count == 0:
        return Identities.empty()
    raw: Any
    if count < _MAPPED:
        raw = np.fromfile(file, np.uint64)
    else:
        raw = np.asarray(np.memmap(file, np.uint64, "r", _HEADER.size))
    high, low, received = raw[: 3 * count].reshape(3, count)
    return Identities(high, low, received.view(np.int64), raw[3 * count :] if words else None)


def held(path: Path, size_bytes: int) -> int:
    """Return how many identities a file of the runs' folder holds, by its size; 0 if it is no run.

    One that is half written, under a name of its own, is none. Of one that a release before left
    it may be an eighth less than there are.
    """
    found = _NAME.fullmatch(path.name)
    if found is None or found[3] != RUN:
        return 0
    content = max(0, size_bytes - _HEADER.size)
    most = content // _IDENTITY_BYTES
    for words in (sieve_words(most), sieve_words(most) // 2):
        count = (content - 8 * words) // _IDENTITY_BYTES
        if sieve_words(count) == words:
            return count
    return most


def files_of(folder: Path, kind: str, names: Iterable[str]) -> list[tuple[int, int, Path]]:
    """Return the files of a kind among those of a folder, in the order of what they cover.

    Args:
        folder: Where they are.
        kind: `RUN` or `SIEVE`.
        names: The names of all files there.
    """
    found = (_NAME.fullmatch(name) for name in sorted(names))
    return [(int(one[1]), int(one[2]), folder / one[0]) for one in found if one and one[3] == kind]


def files_beyond(folder: Path, offset: int) -> list[Path]:
    """Return the runs and sieves that end behind an offset.

    They tell of what comes again where counting has gone back to it.
    """
    names = names_in(folder)
    found = [*files_of(folder, RUN, names), *files_of(folder, SIEVE, names)]
    return [path for _start, end, path in found if end > offset]


def names_in(folder: Path) -> list[str]:
    """Return the names of the files of a folder; none if it is not there."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def chain_before(
    folder: Path, offset: int, horizon_ms: int, files: Files = READ_ANEW
) -> list[Run] | None:
    """Return the runs that make up the state before `offset`, newest first.

    Args:
        folder: Where they are.
        offset: Where the state is wanted.
        horizon_ms: How far back it must reach.
        files: Keeps what is read.

    Returns:
        None if the files do not reach one horizon back: the state must be read
        from the log.

    Raises:
        OSError: If this process has no room to read a file that is there.
    """
    if offset == 0:
        return []
    names = names_in(folder)
    files.keep_only(folder, names)
    by_end: dict[int, list[Path]] = {}
    for start, end, path in files_of(folder, RUN, names):
        if start < end:
            by_end.setdefault(end, []).append(path)  # the longest comes first
    chain: list[Run] = []
    at, oldest_needed = offset, None
    while (run := _first_usable(by_end.get(at, ()), horizon_ms, files)) is not None:
        if oldest_needed is None:
            oldest_needed = run.received_end - horizon_ms
        chain.append(run)
        at = run.start
        if run.received_before == NEVER or run.received_before < oldest_needed:
            return chain
    return None


def _first_usable(paths: Sequence[Path], horizon_ms: int, files: Files) -> Run | None:
    for path in paths:
        run = read_whole(path, read_run, files)
        if run is not None and run.horizon_ms >= horizon_ms:
            return run
    return None


def read_whole(path: Path, read: Callable[[Path], T], files: Files) -> T | None:
    """Return what a file holds; None if it is not there or cannot be read. A cut one is deleted.

    Raises:
        OSError: If this process has no room to read it, which says nothing of the file.
    """
    try:
        return files.read(path, read)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _SHORT_OF:
            raise
        LOG.warning("dedup_file_unreadable", why=str(error)[:300])
        return None
    except ValueError as error:
        LOG.warning("dedup_run_deleted", why=str(error)[:300])
        path.unlink(missing_ok=True)
        return None


def tidy(folder: Path, offset: int, horizon_ms: int, files: Files = READ_ANEW) -> list[Run]:
    """Merge small runs before `offset` and delete those that nothing needs any more.

    The chain before `offset` stays what it was: only runs that end at or before
    it are touched, and a merged run is there before its parts go.

    Returns:
        The chain before `offset`, newest first, as it was read; [] if there is none.
    """
    names = names_in(folder)
    _delete_temporaries(folder, names, offset)
    chain = chain_before(folder, offset, horizon_ms, files)
    if not chain:
        return []
    _delete_outside(folder, names, chain, offset)
    group = _mergeable(chain)
    if group:
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
    return chain


def _delete_outside(folder: Path, names: Iterable[str], chain: Sequence[Run], offset: int) -> None:
    kept = {run.name for run in chain}
    for _start, end, path in files_of(folder, RUN, names):
        if end <= offset and path.name not in kept:
            path.unlink(missing_ok=True)


def _delete_temporaries(folder: Path, names: Iterable[str], offset: int) -> None:
    """Delete what a process left that died while writing: nobody renames it any more."""
    for name in names:
        found = _TEMPORARY.fullmatch(name)
        if found and int(found[1]) <= offset:
            (folder / name).unlink(missing_ok=True)


def _mergeable(chain: Sequence[Run]) -> list[Run]:
    """Return the newest runs, all below one size, as soon as `FAN_IN` of them are of that size.

    What is smaller goes with them. It does not count: seven small ones would have a run merged
    again that is eight times as large. But where sizes change all the time there may be many of
    them between those that do.
    """
    limit, least = SMALLEST, 0
    while limit <= LARGEST:
        group = list(takewhile(lambda run: len(run.identities) < limit, chain))  # noqa: B023
        of_size = sum(len(run.identities) >= least for run in group)
        if of_size >= FAN_IN or len(group) >= MOST_SMALL:
            return group
        limit, least = limit * FAN_IN, limit
    return []
