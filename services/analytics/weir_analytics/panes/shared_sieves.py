"""Sieves that runs share: one look in place of one into each.

Of an hour of much traffic there are dozens of runs that are too large to be merged. They share a
sieve that grows: in it are the identities of neighbors, and it takes in the next ones until it is
full, when another one begins. What is in none of them is seen at one look.

A sieve is of a range of records, not of certain runs. It holds what was within its horizon when
its range ended. So it serves any state behind that end, and a horizon that is no longer than its
own, however runs divide the range: what it misses can match nothing there any more.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import structlog

from weir_analytics.panes.mapped import Files
from weir_analytics.panes.runs import (
    FAN_IN,
    I64,
    LARGEST,
    READ_ANEW,
    SIEVE,
    Earlier,
    Identities,
    Run,
    files_of,
    names_in,
    read_whole,
    write_file,
)
from weir_analytics.panes.sieves import U64, add, passing, sieve_words

LOG = structlog.get_logger()

MAGIC = b"WEIRSIV1"
_HEADER = struct.Struct("<8s5q")
# Identities of one sieve, which has 32 MB then.
ROOM = 64 * LARGEST
# It takes in so many at once, or some more, which a batch waits for some 60 ms.
TAKEN_IN = 4 * LARGEST
# A run that was read back may hold a whole horizon, and has a sieve of its own.
_MOST = 2 * FAN_IN * LARGEST
# Not to take the last of a disk from what counting needs.
_FREE_BYTES = 4 * 8 * sieve_words(ROOM)


@dataclass(frozen=True)
class SharedSieve:
    """A sieve of the records `[start, end)`.

    Attributes:
        horizon_ms: What was older than that when a run of them ended may be missing.
        identities: How many it was made of.
    """

    start: int
    end: int
    horizon_ms: int
    identities: int
    sieve: U64

    @property
    def name(self) -> str:
        """The file's name: the range it covers."""
        return f"{self.start:020d}-{self.end:020d}.{SIEVE}"

    def covers(self, start: int, end: int) -> bool:
        """Tell whether all of some records are among those of the sieve."""
        return self.start <= start and end <= self.end


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


def searched(
    folder: Path, chain: Sequence[Run], horizon_ms: int, files: Files = READ_ANEW
) -> list[Earlier]:
    """Return where the identities of a chain are looked for: runs behind the sieves they share.

    Args:
        folder: Where the chain was read.
        chain: The runs that make up a state, newest first.
        horizon_ms: The longest one by which anything is to be found.
        files: Keeps what is read.
    """
    found: list[Earlier] = []
    left = [run for run in chain if len(run.identities)]
    for one in _usable(_listed(folder), chain, horizon_ms, files):
        inside = [run.identities for run in left if one.covers(run.start, run.end)]
        left = [run for run in left if not one.covers(run.start, run.end)]
        if inside:
            found.append(Behind(one.sieve, inside))
    return [*found, *(run.identities for run in left)]


def share(folder: Path, chain: Sequence[Run], horizon_ms: int, files: Files = READ_ANEW) -> bool:
    """Have a sieve take in large runs that are in none, if there are enough.

    A sieve is deleted once no run of the chain is in it.

    Args:
        folder: Where the chain was read.
        chain: The runs that make up a state, newest first.
        horizon_ms: The longest one that is asked for.
        files: Keeps what is read.

    Returns:
        Whether one was made. Where the disk has little room none is, and one that cannot be
        written is told and no error: it saves time, and nothing is lost without it.
    """
    if not chain:
        return False
    listed = _listed(folder)
    there = _usable(listed, chain, horizon_ms, files)
    _delete_others(listed, chain, there)
    group = _alone(chain, there)
    if not group or shutil.disk_usage(folder).free < _FREE_BYTES:
        return False
    made = _taken_in(there, group)
    head = (made.start, made.end, made.horizon_ms, made.identities, len(made.sieve))
    try:
        write_file(folder, made.name, (_HEADER.pack(MAGIC, *head), made.sieve.tobytes()))
    except OSError as error:
        LOG.warning("dedup_sieve_not_written", why=str(error)[:300])
    return True


def _listed(folder: Path) -> list[tuple[int, int, Path]]:
    return files_of(folder, SIEVE, names_in(folder))


def _usable(
    listed: Sequence[tuple[int, int, Path]], chain: Sequence[Run], horizon_ms: int, files: Files
) -> list[SharedSieve]:
    """Return the sieves that serve the state to which a chain leads; none within another one."""
    end = max((run.end for run in chain), default=0)
    found: list[SharedSieve] = []
    for start, until, path in listed:
        one = _read(path, files) if start < until <= end else None
        if one is not None and one.horizon_ms >= horizon_ms:
            found.append(one)
    return [one for one in found if not any(_is_within(one, other) for other in found)]


def _read(path: Path, files: Files) -> SharedSieve | None:
    try:
        return read_whole(path, read_shared, files)
    except OSError:
        return None  # runs are looked into one by one


def _is_within(one: SharedSieve, other: SharedSieve) -> bool:
    return one is not other and other.covers(one.start, one.end)


def _delete_others(
    listed: Sequence[tuple[int, int, Path]], chain: Sequence[Run], there: Sequence[SharedSieve]
) -> None:
    kept = {one.name for one in there if any(one.covers(run.start, run.end) for run in chain)}
    for _start, end, path in listed:
        if end <= chain[0].end and path.name not in kept:
            path.unlink(missing_ok=True)


def _alone(chain: Sequence[Run], there: Sequence[SharedSieve]) -> list[Run]:
    """Return the oldest neighbors that are in no sieve, oldest first; [] of too few.

    Up to the newest large one: what is older than that is merged no more, whatever its size.
    """
    found: list[Run] = []
    newest = next((at for at, run in enumerate(chain) if len(run.identities) >= LARGEST), None)
    for run in reversed(chain[newest:] if newest is not None else ()):
        is_covered = any(one.covers(run.start, run.end) for one in there)
        if is_covered or len(run.identities) > _MOST:
            found.clear()
            continue
        found.append(run)
        if _identities(found) >= TAKEN_IN:
            return found
    return []


def _taken_in(there: Sequence[SharedSieve], group: Sequence[Run]) -> SharedSieve:
    """Return the sieve that ends where a group begins with the group in it, or a new one."""
    more, start, end = _identities(group), group[0].start, group[-1].end
    horizon_ms = min(run.horizon_ms for run in group)
    fitting = (one for one in there if one.end == start and one.identities + more <= ROOM)
    into = next(fitting, None)
    if into is None:
        into = SharedSieve(start, start, horizon_ms, 0, np.zeros(sieve_words(ROOM), np.uint64))
    sieve = into.sieve.copy()
    for run in group:
        add(sieve, run.identities.high)
    horizon_ms = min(horizon_ms, into.horizon_ms)
    return SharedSieve(into.start, end, horizon_ms, into.identities + more, sieve)


def _identities(group: Sequence[Run]) -> int:
    return sum(len(run.identities) for run in group)


def read_shared(path: Path) -> SharedSieve:
    """Map a sieve into memory.

    Raises:
        ValueError: If the file is not a whole sieve.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size or head[:8] != MAGIC:
            msg = (
                f'sieve of dedup must begin with {MAGIC.decode()}, "{path.name}" does not; '
                "delete it"
            )
            raise ValueError(msg)
        _magic, start, end, horizon_ms, identities, words = _HEADER.unpack(head)
        is_sized = words > 0 and words & (words - 1) == 0 and size == _HEADER.size + 8 * words
        if not is_sized:
            msg = (
                f'sieve of dedup "{path.name}" must hold {words} words, a power of two, '
                f"has {size} bytes; delete it"
            )
            raise ValueError(msg)
        sieve: Any = np.asarray(np.memmap(file, np.uint64, "r", _HEADER.size))
    found = SharedSieve(start, end, horizon_ms, identities, sieve)
    if found.name != path.name:
        msg = (
            f'sieve of dedup "{path.name}" must be of what its name says, is of "{found.name}"; '
            "delete it"
        )
        raise ValueError(msg)
    return found
