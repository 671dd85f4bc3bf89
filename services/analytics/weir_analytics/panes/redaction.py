"""Taking who was erased out of panes that the log can no longer count again.

An erasure has every metric counted anew from the log. Where the log is gone, older versions go
on serving, and their series and lists of frequent texts may name the subject. Once the new
versions serve, every pane of an older one is looked at: a series that names the subject is
added to `other`, a list names it no more. No count changes.

Each shard keeps the set of erasures that were done in it, and it moves with the panes: of a
Redis that was restored from a backup the older set says that the names are back.

As with `forgetting.py` a walk goes in slices between batches, on one shard after the other, and
only where the shard stands at the end of the last batch. Late events may count for an older
version meanwhile: names are deleted last, in the slice that finds every pane that changed
without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import structlog
from weir import names, rows
from weir.clock import Clock
from weir.commit import same_offsets
from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.erasure import Erasure, Subjects, are_served_without, erasures
from weir.frequent import without
from weir.rows import Row
from weir.series import OTHER_ID, series_digest

from weir_analytics.panes.commit_job import OutboxEntry, Pane
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.pane_reader import parse_state
from weir_analytics.panes.shard_wire import Argument, Command

LOG = structlog.get_logger()

# What a live batch waits for at most, about.
SLICE_S: Final = 0.1
NAMES_AT_ONCE: Final = 1_000
ROWS_AT_ONCE: Final = 200

_END: Final = object()


@dataclass(frozen=True)
class Version:
    """A version whose panes may name somebody.

    Attributes:
        subjects: Who was erased since it was made.
        lists: Whether its rows may hold frequent texts.
    """

    vid: int
    subjects: Subjects
    lists: bool


def due(fold: Definitions) -> list[Erasure]:
    """Return the erasures without which everything is served that the log can still tell."""
    return [one for one in erasures(fold) if are_served_without(fold, one)]


def versions_before(
    fold: Definitions, gone: Iterable[Erasure], hash_key: bytes
) -> dict[int, Version]:
    """Return the versions that may have counted events of erased subjects."""
    gone = list(gone)
    found: dict[int, Version] = {}
    for vid in fold.activations:
        metric = fold.by_vid(vid)
        if metric is None:
            continue
        since = [one for one in gone if one.tenant == metric.tenant and vid < one.vid]
        if since:
            hashes = frozenset(one.hash for one in since)
            # Of a definition that this release cannot read everything is looked at.
            lists = metric.metric is None or metric.metric.top_path is not None
            found[vid] = Version(vid, Subjects(metric.tenant, hashes, hash_key), lists)
    return found


@dataclass(frozen=True)
class Change:
    """What becomes of some rows of a pane: fields to set, and fields to delete."""

    rows: Mapping[bytes, bytes]
    gone: tuple[bytes, ...]


def redacted(found: Mapping[bytes, bytes], named: frozenset[bytes], version: Version) -> Change:
    """Return what becomes of some rows of a pane; pure.

    Args:
        found: Packed rows by their field, that of `other` included if the pane has one.
        named: Fields of series that name somebody.
        version: Whose pane it is.
    """
    gone = tuple(sorted(found.keys() & named))
    after = {number: rows.decode(packed) for number, packed in found.items() if number not in named}
    if gone:
        merged = [rows.decode(found[number]) for number in gone]
        merged += [after[OTHER_ID]] if OTHER_ID in after else []
        after[OTHER_ID] = rows.merge_all(merged)
    packed = {number: rows.encode(_unlisted(row, version)) for number, row in after.items()}
    return Change({n: row for n, row in packed.items() if row != found.get(n)}, gone)


def _unlisted(row: Row, version: Version) -> Row:
    """Return a row whose list of frequent texts names nobody of them."""
    further = row.further
    if further is None or further.top is None:
        return row
    top = without(further.top, version.subjects.is_one)
    return row if top is further.top else replace(row, further=replace(further, top=top))


@dataclass
class Redaction:
    """The walks of one life of a driver; a `Work` between batches."""

    clock: Clock
    hash_key: bytes
    _due: FoldMemo[list[Erasure]] = field(default_factory=lambda: FoldMemo(due))
    _done: list[set[int]] = field(default_factory=list)
    _walk: Walk | None = None
    _steps: Iterator[None] = field(default_factory=lambda: iter(()))

    def prepare(self) -> None:
        """Do nothing: a slice needs nothing that takes long before it."""

    def note(self, outboxes: Mapping[int, Sequence[OutboxEntry]]) -> None:
        """Take note of what commits changed; to be told of every entry of an outbox."""
        if self._walk is not None:
            self._walk.note(outboxes)

    def step(self, cycle: Cycle) -> bool:
        """Do a slice of what is due.

        Raises:
            VerdictError: FENCED if a newer driver has a shard; LOST if a shard moved.
            NewerFormatError: If a newer release wrote what a shard holds.
        """
        if self._walk is None and not self._begin(cycle):
            return False
        until_s = self.clock.monotonic_s() + SLICE_S
        while next(self._steps, _END) is not _END:
            if self.clock.monotonic_s() >= until_s:
                return True
        # What is done is read again: more may have become due meanwhile.
        self._walk, self._done = None, []
        return True

    def _begin(self, cycle: Cycle) -> bool:
        """Begin the walk over a shard in which something is due; False if none is left."""
        wanted = self._due.of(cycle.stores.definitions.fold)
        if not wanted or not self.hash_key:
            return False
        self._done = self._done or redacted_in(cycle)
        vids = {one.vid for one in wanted}
        shard = next((n for n, done in enumerate(self._done) if vids - done), None)
        if shard is None:
            return False
        self._walk = Walk(cycle, shard, wanted, self.hash_key)
        self._steps = self._walk.steps()
        return True


def redacted_in(cycle: Cycle) -> list[set[int]]:
    """Return of each shard the erasures that no name in its panes is about: vids of jobs."""
    every = range(cycle.settings.shards)
    asked: list[Command] = [("SMEMBERS", names.redacted_key(shard)) for shard in every]
    return [set(map(int, found)) for found in cycle.stores.shards.ask(asked)]


class Walk:
    """One walk over a shard, for all erasures that are due."""

    def __init__(
        self, cycle: Cycle, shard: int, wanted: Sequence[Erasure], hash_key: bytes
    ) -> None:
        """Begin nothing yet; `steps` does the work.

        Args:
            cycle: Whose stores are used, under its fence.
            shard: Which shard.
            wanted: The erasures.
            hash_key: The installation's key.
        """
        self._cycle, self._shard = cycle, shard
        self._wanted = wanted
        self._versions = versions_before(cycle.stores.definitions.fold, wanted, hash_key)
        # By version: fields of series that name somebody, and their digests.
        self._named: dict[int, dict[bytes, bytes]] = {}
        self._changed: set[Pane] = set()
        self._rows = 0

    def note(self, outboxes: Mapping[int, Sequence[OutboxEntry]]) -> None:
        """Take note of what commits changed."""
        for entry in outboxes.get(self._shard, ()):
            self._changed.update(entry.changed)

    def steps(self) -> Iterator[None]:
        """Look at all panes, then delete the names; a step takes some milliseconds."""
        for vid in self._versions:
            yield from self._find(vid)
        for keys in self._cycle.stores.shards.keys(self._shard, "p:"):
            for pane in map(_pane_of, keys):
                yield from self._redact(pane)
            yield
        while not self._end():
            yield
        series = sum(map(len, self._named.values()))
        LOG.info("names_redacted", shard=self._shard, series=series, rows=self._rows)

    def _find(self, vid: int) -> Iterator[None]:
        """Find the series of a version that name somebody."""
        subjects, cursor = self._versions[vid].subjects, b"0"
        key, found = names.names_key(self._shard, vid), self._named.setdefault(vid, {})
        while True:
            scan: Command = ("HSCAN", key, cursor, "COUNT", NAMES_AT_ONCE)
            cursor, pairs = self._cycle.stores.shards.ask([scan])[0]
            for number, text in zip(pairs[::2], pairs[1::2], strict=True):
                series = text.decode()
                if subjects.are_named_by(series):
                    found[number] = series_digest(series)
            yield
            if int(cursor) == 0:
                return

    def _redact(self, pane: Pane) -> Iterator[None]:
        """Rewrite the rows of a pane that name somebody, some hundred a step."""
        version = self._versions.get(pane.vid)
        if version is None:
            return
        key, fields = names.pane_key(self._shard, *pane), sorted(self._named.get(pane.vid, ()))
        if version.lists:
            fields = sorted({*self._cycle.stores.shards.ask([("HKEYS", key)])[0]} - {OTHER_ID})
            fields = fields or [OTHER_ID]
        for at in range(0, len(fields), ROWS_AT_ONCE):
            self._rewrite(pane, version, [OTHER_ID, *fields[at : at + ROWS_AT_ONCE]])
            yield

    def _rewrite(self, pane: Pane, version: Version, fields: Sequence[bytes]) -> None:
        """Read some rows of a pane and write what differs, with nothing in between."""
        shard, shards = self._shard, self._cycle.stores.shards
        key = names.pane_key(shard, *pane)
        asked: list[Command] = [("HMGET", key, *fields), ("PTTL", key)]
        asked += [("GET", names.token_key(shard)), ("HKEYS", names.outbox_key(shard))]
        packed, left_ms, token, outbox = shards.ask(asked)
        found = {n: row for n, row in zip(fields, packed, strict=True) if row is not None}
        change = redacted(found, frozenset(self._named.get(pane.vid, ())), version)
        if not change.rows and not change.gone:
            return
        fresh: list[Argument] = [each for pair in change.rows.items() for each in pair]
        writes: list[Command] = []
        if fresh:
            writes.append(("HSET", key, *fresh))
        if change.gone:
            writes.append(("HDEL", key, *change.gone))
        # One that expired since it was read must not be made again without an end.
        writes.append(("PEXPIRE", key, max(1, left_ms)))
        n = max(map(int, outbox), default=0) + 1
        entry = OutboxEntry(n, self._cycle.footing.epoch, -1, [pane], [])
        writes.append(("HSET", names.outbox_key(shard), n, msgspec.json.encode(entry)))
        shards.change(shard, self._cycle.footing.fence, _text(token), writes)
        self._rows += len(change.rows) + len(change.gone)

    def _end(self) -> bool:
        """Delete the names, after what changed meanwhile; False where that must wait."""
        shard, shards = self._shard, self._cycle.stores.shards
        self.note(shards.read_outboxes())
        late, self._changed = self._changed, set()
        for pane in late:
            for _ in self._redact(pane):
                pass
        asked: list[Command] = [("GET", names.token_key(shard)), ("GET", names.mark_key(shard))]
        token, mark = shards.ask(asked)
        live = parse_state(None, mark, None, None).live
        if live is None or not same_offsets(live.end, self._cycle.end):
            return False
        writes: list[Command] = []
        for vid, named in self._named.items():
            if named:
                writes.append(("HDEL", names.names_key(shard, vid), *named))
                writes.append(("HDEL", names.ids_key(shard, vid), *named.values()))
        writes.append(("SADD", names.redacted_key(shard), *(one.vid for one in self._wanted)))
        shards.change(shard, self._cycle.footing.fence, _text(token), writes)
        return True


def _pane_of(key: bytes) -> Pane:
    return Pane(*map(int, key.split(b":p:", 1)[1].split(b":")))


def _text(token: bytes | None) -> str | None:
    return None if token is None else token.decode()
