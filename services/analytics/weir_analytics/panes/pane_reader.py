"""Reading what a commit needs of its shard, in as few round trips as can be.

One, if the process knows the ids of all series and nobody else has written since; two
more, if it does not; two more again where a pane may be capped. All of it happens
under the WATCH of the first, so that what was read is what a commit replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weir import names
from weir.commit import ShardState, decode_fence, decode_mark
from weir.series import OTHER_ID

from weir_analytics.panes.commit_job import CommitJob, Pane
from weir_analytics.panes.pane_merge import (
    Grouped,
    PaneRead,
    cap_of,
    evictions,
    may_be_capped,
    series_by_version,
)
from weir_analytics.panes.series_ids import SeriesIds
from weir_analytics.panes.shard_wire import Command, ShardWire


class Head(NamedTuple):
    """What decides, and the numbers of the outbox entries.

    `guessed` are the replies to commands sent along; `finish` knows what they are.
    """

    state: ShardState
    outbox: tuple[int, ...]
    guessed: list[Any]


def parse_state(
    fence: bytes | None, live: bytes | None, mark: bytes | None, token: bytes | None
) -> ShardState:
    """Return the state that the values of a shard's keys stand for.

    Raises:
        NewerFormatError: If a newer release wrote one of them.
        ValueError: If one of them is not what Weir writes there.
    """
    return ShardState(
        None if fence is None else decode_fence(fence),
        None if live is None else decode_mark(live),
        None if mark is None else decode_mark(mark),
        None if token is None else token.decode(),
    )


class PaneReader:
    """Reads one shard."""

    def __init__(self, shard: int, wire: ShardWire, ids: SeriesIds) -> None:
        self._shard, self._wire, self._ids = shard, wire, ids
        self._unknown: dict[int, list[str]] = {}

    def begin(self, job: CommitJob, grouped: Grouped) -> Head:
        """Watch the shard and read what decides, and along with it what can be guessed."""
        shard = self._shard
        mark, live = names.mark_key(shard, job.lane), names.mark_key(shard)
        keys = (names.fence_key(shard), live, mark, names.token_key(shard))
        self._unknown = self._ids.unknown(series_by_version(grouped))
        guess = self._ids.lookups(self._unknown) if self._unknown else self._rows(grouped)
        head: list[Command] = [
            ("WATCH", *keys),
            ("MGET", *keys),
            ("HKEYS", names.outbox_key(shard)),
        ]
        _, values, outbox, *guessed = self._wire.ask([*head, *guess])
        return Head(parse_state(*values), tuple(sorted(map(int, outbox))), guessed)

    def finish(self, job: CommitJob, grouped: Grouped, head: Head) -> dict[Pane, PaneRead]:
        """Read the panes that parts are merged into."""
        ids = self._ids
        guessed: Sequence[Any] | None = head.guessed
        if not ids.is_current(head.state.token):
            ids.drop()
            self._unknown = ids.unknown(series_by_version(grouped))
            guessed = self._wire.ask(ids.lookups(self._unknown)) if self._unknown else None
        if self._unknown:
            ids.learn(self._unknown, guessed or (), _listed(job))
            guessed = None
        ids.hold(head.state.token)
        if ids.has_met:
            for pane, arriving in grouped.items():
                ids.note_counted(pane.vid, arriving)
        if guessed is None:
            guessed = self._wire.ask(self._rows(grouped)) if grouped else ()
        reads = self._parse(grouped, guessed)
        self._read_capped(job, grouped, reads)
        return reads

    def _rows(self, grouped: Grouped) -> list[Command]:
        commands: list[Command] = []
        for pane, arriving in grouped.items():
            key = names.pane_key(self._shard, *pane)
            commands.append(("HLEN", key))
            ids = self._ids.of(pane.vid)
            commands.append(("HMGET", key, OTHER_ID, *[ids[s] for s in arriving if s in ids]))
        return commands

    def _parse(self, grouped: Grouped, replies: Sequence[Any]) -> dict[Pane, PaneRead]:
        reads: dict[Pane, PaneRead] = {}
        each = iter(replies)
        for (pane, arriving), length, values in zip(grouped.items(), each, each, strict=True):
            ids = self._ids.of(pane.vid)
            rows = zip([s for s in arriving if s in ids], values[1:], strict=True)
            stored = {series: packed for series, packed in rows if packed is not None}
            reads[pane] = PaneRead(length, values[0], stored)
        return reads

    # ── capped panes ────────────────────────────────────────────────────────
    def _read_capped(self, job: CommitJob, grouped: Grouped, reads: dict[Pane, PaneRead]) -> None:
        """Read all series of the panes where a cap may apply, and the rows it evicts."""
        caps = {vid: cap_of(limits, job.shards) for vid, limits in job.limits.items()}
        capped = [
            pane
            for pane, arriving in grouped.items()
            if may_be_capped(reads[pane], arriving, caps[pane.vid])
        ]
        stored = [pane for pane in capped if reads[pane].length]
        for pane in capped:
            reads[pane].own = frozenset()
        if not stored:
            return
        for pane, own in zip(stored, self._series_of(stored, job), strict=True):
            reads[pane].own = own
        leaving = [
            (pane, series)
            for pane in stored
            for series in evictions(reads[pane], grouped[pane], caps[pane.vid])
        ]
        replies = self._wire.ask([self._row(pane, series) for pane, series in leaving])
        for (pane, series), packed in zip(leaving, replies, strict=True):
            reads[pane].stored[series] = packed

    def _row(self, pane: Pane, series: str) -> Command:
        return ("HGET", names.pane_key(self._shard, *pane), self._ids.of(pane.vid)[series])

    def _series_of(self, panes: Sequence[Pane], job: CommitJob) -> list[frozenset[str]]:
        """Return the series that have a row of their own in each pane."""
        keys = [("HKEYS", names.pane_key(self._shard, *pane)) for pane in panes]
        fields = [
            [number for number in found if number != OTHER_ID] for found in self._wire.ask(keys)
        ]
        unnamed: dict[int, dict[bytes, None]] = {}
        for pane, numbers in zip(panes, fields, strict=True):
            missing = self._ids.unnamed(pane.vid, numbers)
            unnamed.setdefault(pane.vid, {}).update(dict.fromkeys(missing))
        wanted = {vid: list(numbers) for vid, numbers in unnamed.items() if numbers}
        texts = self._wire.ask(
            [("HMGET", names.names_key(self._shard, vid), *ids) for vid, ids in wanted.items()]
        )
        listed = _listed(job) if wanted else set()
        for (vid, numbers), found in zip(wanted.items(), texts, strict=True):
            self._ids.learn_names(vid, numbers, found, listed)
        return [
            frozenset(self._ids.series(pane.vid, number) for number in numbers)
            for pane, numbers in zip(panes, fields, strict=True)
        ]


def _listed(job: CommitJob) -> set[int]:
    """Return the versions that list their series."""
    return {vid for vid, limits in job.limits.items() if limits.listed}
