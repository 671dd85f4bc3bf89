"""Taking who was erased out of panes that the log can no longer count again.

An erasure has every metric counted anew from the log. Where the log is gone, older versions go
on serving, and their series and lists of frequent texts may name the subject. Once the new
versions serve, every pane of an older one is looked at: a series that names the subject is
added to `other`, a list names it no more. No count changes.

Each shard keeps the set of erasures that were done in it, and it moves with the panes: of a
Redis that was restored from a backup the older set says that the names are back.

As with `forgetting.py` a walk goes in slices between batches, on one shard after the other, and
only where the shard stands at the end of the last batch. Late events may count for an older
version meanwhile: panes that others changed are looked at again, and names are deleted in a
slice that finds none of them. What comes later about somebody else may bring the text back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import structlog
from weir import names, rows
from weir.clock import Clock
from weir.commit import same_offsets
from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.definitions.history import Definition
from weir.erasure import Erasure, Subjects, served_without
from weir.formats import NewerFormatError
from weir.frequent import capacity, without
from weir.rows import Row
from weir.series import OTHER_ID, series_digest

from weir_analytics.panes.between import Step
from weir_analytics.panes.colors import Colors
from weir_analytics.panes.commit_job import OutboxEntry, Pane, decode_entry
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.pane_reader import parse_state
from weir_analytics.panes.shard_wire import Argument, Command

LOG = structlog.get_logger()

# What a live batch waits for at most, about.
SLICE_S: Final = 0.1
NAMES_AT_ONCE: Final = 1_000
PANES_AT_ONCE: Final = 20
ROWS_AT_ONCE: Final = 200
# Of lists, some 2 µs each where it was not met before.
TEXTS_AT_ONCE: Final = 16_384
MOST_KNOWN: Final = 200_000


@dataclass(frozen=True)
class Version:
    """A version whose panes may name somebody.

    Attributes:
        subjects: Who was erased since it was made.
        rows_at_once: How many of its rows are read in one step.
        lists: Whether its rows may hold frequent texts.
    """

    vid: int
    subjects: Subjects
    rows_at_once: int = ROWS_AT_ONCE
    lists: bool = False
    _known: dict[str, bool] = field(default_factory=dict, repr=False)

    def is_one(self, text: str) -> bool:
        """Tell whether a text of a list is one of them; the same ones come in every pane."""
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[text] = self.subjects.is_one(text)
        return found


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
            found[vid] = _version(metric, Subjects(metric.tenant, hashes, hash_key))
    return found


def _version(metric: Definition, subjects: Subjects) -> Version:
    model = metric.metric
    # Of a definition that this release cannot read everything is looked at.
    if model is None:
        return Version(metric.vid, subjects, 1, lists=True)
    if model.top_path is None:
        return Version(metric.vid, subjects)
    at_once = max(1, TEXTS_AT_ONCE // capacity(model.sketches.top_lg_k))
    return Version(metric.vid, subjects, min(ROWS_AT_ONCE, at_once), lists=True)


@dataclass(frozen=True)
class Change:
    """What becomes of some rows of a pane: fields to set, and fields to delete."""

    rows: Mapping[bytes, bytes]
    gone: tuple[bytes, ...]


def redacted(found: Mapping[bytes, bytes], named: Collection[bytes], version: Version) -> Change:
    """Return what becomes of some rows of a pane; pure.

    Args:
        found: Packed rows by their field, that of `other` included if the pane has one.
        named: Fields of series that name somebody.
        version: Whose pane it is.
    """
    gone = tuple(sorted(number for number in found if number in named))
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
    top = without(further.top, version.is_one)
    return row if top is further.top else replace(row, further=replace(further, top=top))


@dataclass
class Redaction:
    """The walks of one life of a driver; a `Work` between batches."""

    clock: Clock
    hash_key: bytes
    _due: FoldMemo[list[Erasure]] = field(default_factory=lambda: FoldMemo(served_without))
    _colors: Colors = field(init=False)
    # Of the walk; or of colors that an earlier release left, or that Redis did not let it delete.
    _steps: Iterator[bool] | None = None
    _walk: Walk | None = None
    _finished: list[Erasure] | None = None
    # How many live batches had been committed when the last walk ended.
    _walked_at: int = -1

    def __post_init__(self) -> None:
        self._colors = Colors(self.clock, self.hash_key)

    def prepare(self) -> None:
        """Do nothing: a slice needs nothing that takes long before it."""

    def note(self, outboxes: Mapping[int, Sequence[OutboxEntry]]) -> None:
        """Take note of what commits changed; to be told of every entry of an outbox."""
        if self._walk is not None:
            self._walk.note(outboxes.get(self._walk.shard, ()))

    def step(self, cycle: Cycle) -> Step:
        """Do a slice of what is due; only the end of a walk lasts: after a failure it begins anew.

        Raises:
            VerdictError: FENCED if a newer driver has a shard; LOST if a shard moved.
            NewerFormatError: If a newer release wrote what a shard holds.
        """
        if self._steps is None:
            self._steps = self._begin(cycle)
        if self._steps is None:
            return Step.IDLE
        until_s = self.clock.monotonic_s() + SLICE_S
        try:
            while (went_on := next(self._steps, None)) is not None:
                if not went_on or self.clock.monotonic_s() >= until_s:
                    return Step.SOON if went_on else Step.IDLE
        except BaseException:
            # These steps are over: they would look like those of a walk that ended.
            self._steps = self._walk = None
            raise
        self._steps = self._walk = None
        self._walked_at = cycle.commits
        return Step.DONE

    def _begin(self, cycle: Cycle) -> Iterator[bool] | None:
        """Begin what is due in a shard, or of colors where no name is left; None: nothing is."""
        due = self._due.of(cycle.stores.definitions.fold)
        if not due or not self.hash_key:
            return None
        if due is self._finished and not self._colors.is_due:
            return None
        for shard, wanted in enumerate(_missing(cycle, names.redacted_key, due)):
            if wanted:
                self._walk = Walk(cycle, shard, wanted, self._colors)
                return self._walk.steps()
        uncolored = _missing(cycle, names.uncolored_key, due)
        colored = [self._colors.that_may_go(wanted) for wanted in uncolored]
        if any(colored):
            return self._forget_colors(cycle, colored)
        if cycle.commits > self._walked_at:
            # A Redis that fails over may lose the end of a walk, and nobody else would find out.
            # These sets were read after a live batch that came later: what takes them away takes
            # that away too, which the next one finds out.
            self._finished = due
        return None

    def _forget_colors(self, cycle: Cycle, colored: Sequence[list[Erasure]]) -> Iterator[bool]:
        """Delete colors of those whose names are in no shard any more.

        Args:
            cycle: Whose stores are used, under its fence.
            colored: By shard, those of whom that is not said there.
        """
        every = {one.vid: one for wanted in colored for one in wanted}
        done = yield from self._colors.forget(cycle, every.values())
        for shard, wanted in enumerate(colored):
            vids = [one.vid for one in wanted if one.vid in done]
            if vids:
                # Where names are back meanwhile, as after a failover, a walk takes colors as well.
                _say_uncolored(cycle, shard, vids)
                yield True


def _say_uncolored(cycle: Cycle, shard: int, vids: Sequence[int]) -> None:
    (token,) = cycle.stores.shards.ask([("GET", names.token_key(shard))])
    done: Command = ("SADD", names.uncolored_key(shard), *vids)
    cycle.stores.shards.change(shard, cycle.footing.fence, _text(token), [done])


def _missing(
    cycle: Cycle, key: Callable[[int], str], due: Sequence[Erasure]
) -> list[list[Erasure]]:
    """Return of each shard those erasures that its set under a key lacks."""
    every = _members(cycle, key, [one.vid for one in due])
    return [[one for one in due if one.vid not in found] for found in every]


def redacted_in(cycle: Cycle, vids: Sequence[int]) -> list[set[int]]:
    """Return of each shard those erasures that no name in its panes is about.

    Args:
        cycle: Whose stores are asked.
        vids: Jobs of erasures; at least one.
    """
    return _members(cycle, names.redacted_key, vids)


def _members(cycle: Cycle, key: Callable[[int], str], vids: Sequence[int]) -> list[set[int]]:
    """Return of each shard which of some erasures its set under a key has."""
    every = range(cycle.settings.shards)
    asked: list[Command] = [("SMISMEMBER", key(shard), *vids) for shard in every]
    found = cycle.stores.shards.ask(asked)
    return [{vid for vid, done in zip(vids, of, strict=True) if done} for of in found]


class Walk:
    """One walk over a shard, for all erasures that are due there.

    Attributes:
        shard: Which shard.
    """

    def __init__(self, cycle: Cycle, shard: int, wanted: Sequence[Erasure], colors: Colors) -> None:
        """Begin nothing yet; `steps` does the work.

        Args:
            cycle: Whose stores are used, under its fence.
            shard: Which shard.
            wanted: The erasures.
            colors: Of whom the names are taken out, they are as well.
        """
        self.shard = shard
        self._cycle, self._shards, self._wanted = cycle, cycle.stores.shards, wanted
        self._versions = versions_before(cycle.stores.definitions.fold, wanted, colors.hash_key)
        self._colors = colors
        # By version: fields of series that name somebody, and their digests.
        self._named: dict[int, dict[bytes, bytes]] = {}
        self._changed: set[Pane] = set()
        # Entries of the outbox: the walk's own, and those whose panes were looked at since.
        self._looked_at: set[int] = set()
        # The newest entry that readers are to hear of before colors are deleted.
        self._told_up_to: int | None = None
        self._rows = 0

    def note(self, entries: Iterable[OutboxEntry]) -> None:
        """Take note of what commits have changed in panes that may name somebody."""
        for entry in entries:
            if entry.n not in self._looked_at:
                self._changed.update(pane for pane in entry.changed if pane.vid in self._versions)

    def steps(self) -> Iterator[bool]:
        """Look at all panes, then delete names and colors; a step takes some milliseconds.

        Yields:
            Whether there is more to do at once; else the next batch has to come first.
        """
        for vid in self._versions:
            yield from self._find(vid)
        for keys in self._shards.keys(self.shard, "p:"):
            yield from self._redact(list(map(_pane_of, keys)))
            yield True
        yield from self._delete()
        series = sum(map(len, self._named.values()))
        LOG.info("names_redacted", shard=self.shard, series=series, rows=self._rows)

    def _find(self, vid: int) -> Iterator[bool]:
        """Find the series of a version that name somebody."""
        subjects, cursor = self._versions[vid].subjects, b"0"
        key, found = names.names_key(self.shard, vid), self._named.setdefault(vid, {})
        while True:
            scan: Command = ("HSCAN", key, cursor, "COUNT", NAMES_AT_ONCE)
            cursor, pairs = self._shards.ask([scan])[0]
            for number, text in zip(pairs[::2], pairs[1::2], strict=True):
                series = text.decode()
                if subjects.are_named_by(series):
                    found[number] = series_digest(series)
            yield True
            if int(cursor) == 0:
                return

    def _redact(self, panes: Sequence[Pane]) -> Iterator[bool]:
        """Rewrite the rows of panes that name somebody."""
        mine = [pane for pane in panes if self._may_name(pane)]
        for at in range(0, len(mine), PANES_AT_ONCE):
            some = mine[at : at + PANES_AT_ONCE]
            held = self._shards.ask([("HKEYS", names.pane_key(self.shard, *p)) for p in some])
            for pane, numbers in zip(some, held, strict=True):
                version = self._versions[pane.vid]
                named = self._named.get(pane.vid, {})
                fields = [n for n in sorted(numbers) if version.lists or n in named]
                for first in range(0, len(fields), version.rows_at_once):
                    self._rewrite(pane, version, fields[first : first + version.rows_at_once])
                    yield True
            yield True

    def _may_name(self, pane: Pane) -> bool:
        version = self._versions.get(pane.vid)
        return version is not None and (version.lists or bool(self._named.get(pane.vid)))

    def _rewrite(self, pane: Pane, version: Version, fields: Sequence[bytes]) -> None:
        """Read some rows of a pane and write what differs, with nothing in between."""
        key = names.pane_key(self.shard, *pane)
        wanted = [*fields, *(() if OTHER_ID in fields else (OTHER_ID,))]
        asked: list[Command] = [("GET", names.token_key(self.shard)), ("HMGET", key, *wanted)]
        asked += [("PTTL", key), ("HKEYS", names.outbox_key(self.shard))]
        token, packed, left_ms, outbox = self._shards.ask(asked)
        found = {n: row for n, row in zip(wanted, packed, strict=True) if row is not None}
        try:
            change = redacted(found, self._named.get(pane.vid, {}), version)
        except NewerFormatError:
            raise
        except ValueError as error:
            # Nobody can read it, and so nobody is shown a name in it.
            LOG.error("row_not_redacted", shard=self.shard, pane=list(pane), error=str(error))
            return
        if not change.rows and not change.gone:
            return
        fresh: list[Argument] = [each for pair in change.rows.items() for each in pair]
        writes: list[Command] = []
        if fresh:
            writes.append(("HSET", key, *fresh))
        if change.gone:
            writes.append(("HDEL", key, *change.gone))
            self._told_up_to = None
            self._colors.note_drawn()
        if left_ms >= 0:
            # One that expired since it was read must not be made again without an end.
            writes.append(("PEXPIRE", key, max(1, left_ms)))
        n = max(map(int, outbox), default=0) + 1
        entry = OutboxEntry(n, self._cycle.footing.epoch, -1, [pane], [])
        writes.append(("HSET", names.outbox_key(self.shard), n, msgspec.json.encode(entry)))
        self._looked_at.add(n)
        self._shards.change(self.shard, self._cycle.footing.fence, _text(token), writes)
        self._rows += len(change.rows) + len(change.gone)

    def _delete(self) -> Iterator[bool]:
        """Delete the names, each some when no pane has changed since it was looked at."""
        left = [(vid, n) for vid, named in self._named.items() for n in sorted(named)]
        while True:
            yield from self._look_again()
            if not self._stands_at_end():
                yield False
                continue
            if not left and self._is_drawn():
                yield False
                continue
            if not left:
                # Only now no page draws a named series of this shard, and gives it a slot again.
                uncolored = yield from self._colors.forget(self._cycle, self._wanted)
                self._say_done(uncolored)
                return
            some, left = left[:NAMES_AT_ONCE], left[NAMES_AT_ONCE:]
            self._forget(some)
            yield True

    def _look_again(self) -> Iterator[bool]:
        """Look at panes that others have changed, until none is left in the same step."""
        while True:
            packed = self._shards.ask([("HVALS", names.outbox_key(self.shard))])[0]
            entries = list(map(decode_entry, packed))
            self.note(entries)
            if not self._changed:
                return
            late, self._changed = sorted(self._changed), set()
            self._looked_at.update(entry.n for entry in entries)
            yield from self._redact(late)

    def _is_drawn(self) -> bool:
        """Tell whether pages may still draw a series that was taken out of panes here.

        Readers hear of that by the next batch record, and the commit after it trims what the record
        holds. Entries of a walk before this one, of a life before this one too, are waited for.
        """
        packed = self._shards.ask([("HVALS", names.outbox_key(self.shard))])[0]
        entries = list(map(decode_entry, packed))
        if self._told_up_to is None:
            self._told_up_to = max((entry.n for entry in entries), default=0)
        untold = (one for one in entries if one.batch < 0 and one.n <= self._told_up_to)
        if any(pane.vid in self._versions for entry in untold for pane in entry.changed):
            self._colors.note_drawn()
        return self._colors.are_drawn

    def _stands_at_end(self) -> bool:
        mark = self._shards.ask([("GET", names.mark_key(self.shard))])[0]
        live = parse_state(None, mark, None, None).live
        return live is not None and same_offsets(live.end, self._cycle.end)

    def _forget(self, some: Sequence[tuple[int, bytes]]) -> None:
        """Delete names and ids."""
        asked: list[Command] = [("GET", names.token_key(self.shard))]
        asked += [
            ("HGET", names.ids_key(self.shard, vid), self._named[vid][number])
            for vid, number in some
        ]
        token, *ids = self._shards.ask(asked)
        writes: list[Command] = []
        for (vid, number), known in zip(some, ids, strict=True):
            writes.append(("HDEL", names.names_key(self.shard, vid), number))
            # A series that was forgotten and came back has another id by now.
            if known == number:
                digest = self._named[vid][number]
                writes.append(("HDEL", names.ids_key(self.shard, vid), digest))
        self._shards.change(self.shard, self._cycle.footing.fence, _text(token), writes)

    def _say_done(self, uncolored: Collection[int]) -> None:
        (token,) = self._shards.ask([("GET", names.token_key(self.shard))])
        vids = [one.vid for one in self._wanted]
        done: list[Command] = [("SADD", names.redacted_key(self.shard), *vids)]
        if uncolored:
            done.append(("SADD", names.uncolored_key(self.shard), *uncolored))
        self._shards.change(self.shard, self._cycle.footing.fence, _text(token), done)


def _pane_of(key: bytes) -> Pane:
    return Pane(*map(int, key.split(b":p:", 1)[1].split(b":")))


def _text(token: bytes | None) -> str | None:
    return None if token is None else token.decode()
