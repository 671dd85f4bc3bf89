"""The worker's side of a commit: one transaction on one shard (S4).

Delivery: exactly once for each link of a lane's chain, whatever happens.

- A retry after the transaction was applied finds its own end offsets in the mark: DONE.
- A crash before it leaves nothing; a crash after it leaves all of it.
- No answer says nothing. The connection is closed, the mark is read on a new one, and
  the decision is made again. Nothing is ever sent a second time unread.
- Whoever reads between two shards' commits sees one batch early, never what is not
  committed.

`decide` sees what WATCH guards: if fence, mark or token move between reading and
writing, Redis refuses the transaction and the shard is read again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import structlog
from weir import names
from weir.clock import Clock, SystemClock
from weir.commit import Attempt, Mark, Verdict, decide, decide_right, decode_fence
from weir.formats import NewerFormatError
from weir.series import OTHER

from weir_analytics.failpoints import failpoint
from weir_analytics.panes.commit_job import (
    MARGIN_S,
    CommitJob,
    Committed,
    Limits,
    OutboxEntry,
    Pane,
    Part,
    UntoldPanes,
    Work,
)
from weir_analytics.panes.pane_merge import (
    Grouped,
    PaneChange,
    bounds_of,
    cap_of,
    corrections_of,
    group_parts,
    is_corrected,
    merge_pane,
)
from weir_analytics.panes.pane_reader import Head, PaneReader
from weir_analytics.panes.series_ids import SeriesIds
from weir_analytics.panes.shard_wire import (
    TIMEOUT_S,
    Argument,
    Command,
    NoAnswerError,
    PartlyAppliedError,
    ShardWire,
    StoreError,
)
from weir_analytics.panes.task_watch import note_step

__all__ = ["CommitJob", "Committed", "Limits", "Pane", "Part", "ShardStore", "StoreError"]

MAX_TRIES: Final = 20
MAX_SILENCES: Final = 3
# Of texts the corrections of a commit tell so many bytes: they are in one value of the outbox.
TEXTS_BYTES: Final = 1_000_000

LOG = structlog.get_logger()

_JSON = msgspec.json.Encoder()


@dataclass(slots=True)
class _Tally:
    """What the tries of one commit cost so far, and what Redis did not apply of it."""

    tries: int = 0
    silences: int = 0
    read_s: float = 0.0
    merge_s: float = 0.0
    write_s: float = 0.0
    partly: str = ""


class ShardStore:
    """One shard, as one worker process writes it.

    Opened at the first commit; one connection, not to be shared between threads.
    """

    def __init__(
        self,
        redis_url: str,
        shard: int,
        *,
        password: str | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        """Prepare a store; nothing is opened yet.

        Args:
            redis_url: `redis://`, `rediss://` or `unix://` address.
            shard: Which shard.
            password: Used instead of one in the address.
            timeout_s: Longest wait for one reply.
            clock: Measures what a commit costs; decides nothing.
        """
        self._wire = ShardWire(redis_url, password=password, timeout_s=timeout_s)
        self._ids = SeriesIds(shard)
        self._reader = PaneReader(shard, self._wire, self._ids)
        self._clock = clock or SystemClock()

    def commit(self, job: CommitJob, parts: Sequence[Part]) -> Committed:
        """Merge parts into the shard, once; a commit without parts moves the mark.

        Raises:
            ValueError: If a part's version has no limits in the job.
            StoreError: If Redis refuses to write or evicts keys; nothing was written.
            redis.ConnectionError: If Redis gave no answer several times over.
            redis.TimeoutError: The same.
        """
        grouped = group_parts(parts, job.limits)
        tally = _Tally()
        while True:
            done = self._try(job, grouped, tally)
            if done.verdict is not Verdict.RETRY:
                return replace(done, work=_work(done.work, tally))
            if tally.tries > MAX_TRIES:
                if tally.partly:
                    return _lost(job, tally)
                msg = (
                    f"shard {job.shard} moved {tally.tries} times while it was written; "
                    "two writers under one fence are at work, look for a task that hangs"
                )
                raise StoreError(msg)

    def close(self) -> None:
        """Close the connection and forget what was read."""
        self._ids.drop()
        self._wire.close()

    def _try(self, job: CommitJob, grouped: Grouped, tally: _Tally) -> Committed:
        """Read, decide, merge and write once; RETRY also where nobody answered."""
        tally.tries += 1
        note_step()
        try:
            done = (
                self._lose(job, tally) if tally.partly else self._commit_once(job, grouped, tally)
            )
        except NoAnswerError:
            self._ids.drop()
            tally.silences += 1
            if tally.silences > MAX_SILENCES:
                if tally.partly:
                    return _lost(job, tally)
                raise
            return Committed(Verdict.RETRY)
        except NewerFormatError as error:
            self.close()
            short = (_stays_short(job, tally),) if tally.partly else ()
            return Committed(Verdict.FOREIGN, why="; ".join((*short, error.message)))
        except BaseException as error:
            # Ids given in this try were not stored.
            self.close()
            if tally.partly and isinstance(error, (StoreError, ValueError)):
                return _lost(job, tally)  # also where what stands for the fence is none
            raise
        if done.verdict in (Verdict.RETRY, Verdict.LOST):
            self._ids.drop()
        return done

    def _commit_once(self, job: CommitJob, grouped: Grouped, tally: _Tally) -> Committed:
        began = self._clock.monotonic_s()
        head = self._reader.begin(job, grouped)
        note_step()
        verdict = decide(head.state, _attempt(job, head.state.token))
        if verdict is not Verdict.OK:
            self._wire.ask([("UNWATCH",)])
            return Committed(verdict)
        reads = self._reader.finish(job, grouped, head)
        note_step()
        read_at = self._clock.monotonic_s()
        changes: dict[Pane, PaneChange] = {}
        untold = UntoldPanes(job.untold)
        texts_left = TEXTS_BYTES
        for pane, arriving in grouped.items():
            cap = cap_of(job.limits[pane.vid], job.shards)
            change = changes[pane] = merge_pane(reads[pane], arriving, cap)
            if is_corrected(pane, job, untold):
                change.corrections = corrections_of(
                    pane,
                    reads[pane],
                    arriving,
                    change,
                    job.limits[pane.vid].sketched,
                    texts_left,
                )
                texts_left -= sum(len(one.texts) for one in change.corrections)
            note_step()
        merged_at = self._clock.monotonic_s()
        if job.dry:
            self._wire.ask([("UNWATCH",)])
            return Committed(verdict)
        try:
            done = self._write(job, changes, head)
        except PartlyAppliedError as error:
            tally.partly = str(error)
            return self._lose(job, tally)
        tally.read_s += read_at - began
        tally.merge_s += merged_at - read_at
        tally.write_s += self._clock.monotonic_s() - merged_at
        return done

    def _lose(self, job: CommitJob, tally: _Tally) -> Committed:
        """Take the mark of a shard away, which says that all of a commit is there; it is not.

        Without one, all of the shard is counted anew, by whichever driver comes. It stays where
        Redis does not answer, or refuses; then the driver counts the shard anew nevertheless, if it
        hears of it: a task that says so is not tried again, since another try would take the mark's
        word. It stays, too, where this process or the driver ends before it is gone, where another
        task of the batch fails, where another driver commits first, and where the answer to EXEC
        is lost. An audit finds what is short then.
        """
        fence, mark = names.fence_key(job.shard), names.mark_key(job.shard)
        _, found = self._wire.ask([("WATCH", fence), ("GET", fence)])
        verdict = decide_right(None if found is None else decode_fence(found), job.fence)
        self._ids.drop()
        if verdict is not Verdict.OK:
            # The shard is not this driver's any more, so its mark is not this driver's to take.
            self._wire.ask([("UNWATCH",)])
            if verdict is Verdict.LOST:
                return _lost(job, tally)  # the next start raises a fence, and would trust the mark
            return Committed(verdict, why=_stays_short(job, tally))
        if self._wire.ask([("MULTI",), ("DEL", mark), ("EXEC",)])[-1] is None:
            return Committed(Verdict.RETRY)
        return _lost(job, tally, stays=False)

    def _write(self, job: CommitJob, changes: Mapping[Pane, PaneChange], head: Head) -> Committed:
        """Send the one transaction and return how it ended."""
        entry = OutboxEntry(
            max(head.outbox, default=0) + 1,
            job.epoch,
            job.batch,
            list(changes),
            [correction for change in changes.values() for correction in change.corrections],
        )
        token = secrets.token_hex(16)
        writes: list[Command] = [("MULTI",)]
        for pane, change in changes.items():
            writes += self._pane_writes(job, pane, change)
        named = self._ids.writes()
        self._watch(named)
        writes += named
        writes += _outbox_writes(job, entry, head.outbox)
        writes += _mark_writes(job, token)
        writes.append(("EXEC",))
        applied = self._wire.ask(writes, sent=lambda: failpoint("C7"))[-1]
        if applied is None:
            return Committed(Verdict.RETRY)
        self._ids.stored(token)
        self._ids.trim()
        work = Work(
            rows=sum(len(change.rows) for change in changes.values()),
            evicted=sum(len(change.evicted) for change in changes.values()),
        )
        bounds = tuple(bounds_of(changes, job.limits))
        return Committed(Verdict.OK, tuple(changes), tuple(entry.corrections), bounds, work)

    def _watch(self, writes: Sequence[Command]) -> None:
        """Watch what gives ids, once it is known that it holds what Weir writes there.

        Panes and the outbox are read, which tells the same; they are not watched: to watch a key
        Redis goes through all that the connection watches, and 20,000 panes took it 2.4 s. Who
        writes one of those between a look and its transaction is found out by `_lose`.

        Raises:
            WrongCommandError: If somebody else wrote one of those keys.
        """
        keys = [command[1] for command in writes]
        if keys:
            self._wire.ask([("WATCH", *keys), *(_size_of(command) for command in writes)])

    def _pane_writes(self, job: CommitJob, pane: Pane, change: PaneChange) -> list[Command]:
        key = names.pane_key(job.shard, *pane)
        fields: list[Argument] = []
        for series, packed in change.rows.items():
            is_other = series == OTHER
            number = (
                self._ids.give_other(pane.vid) if is_other else self._ids.give(pane.vid, series)
            )
            fields += (number, packed)
        until_s = pane.start_s + pane.res_s + job.limits[pane.vid].keep_s[pane.res_s] + MARGIN_S
        writes: list[Command] = [("HSET", key, *fields)]
        if change.evicted:
            gone = (self._ids.give(pane.vid, series) for series in change.evicted)
            writes.append(("HDEL", key, *gone))
        writes.append(("EXPIREAT", key, until_s))
        return writes


def _size_of(write: Command) -> Command:
    """Return what asks for the size of what is written to; it tells whether it is of that kind."""
    return ("SCARD" if write[0] == "SADD" else "HLEN", write[1])


def _lost(job: CommitJob, tally: _Tally, *, stays: bool = True) -> Committed:
    """Return how a commit ends that was applied in part.

    Args:
        job: The commit.
        tally: What it came to.
        stays: Whether its mark is still there, as far as is known: it says that nothing is amiss.
    """
    _tell_short(job, tally, "stays" if stays else "gone")
    why = f"shard {job.shard} is counted anew: {tally.partly}"
    return Committed(Verdict.LOST, why=why, is_short=True)


def _stays_short(job: CommitJob, tally: _Tally) -> str:
    """Return what is to be told where the mark of a commit that was applied in part stays."""
    _tell_short(job, tally, "stays")
    return (
        f"shard {job.shard} may be short of batch {job.batch}: {tally.partly}; it is not this"
        " driver's any more, and its mark says that all is there: run `weir audit --mend`"
    )


def _tell_short(job: CommitJob, tally: _Tally, mark: str) -> None:
    # The driver may never hear of it, if another task of the batch fails.
    LOG.error("shard_short", shard=job.shard, batch=job.batch, mark=mark, why=tally.partly)


def _attempt(job: CommitJob, token: str | None) -> Attempt:
    return Attempt(
        job.fence,
        job.topic_id,
        job.from_offsets,
        job.to_offsets,
        token,
        job.lane,
        job.lane_start,
    )


def _outbox_writes(job: CommitJob, entry: OutboxEntry, stored: Sequence[int]) -> list[Command]:
    """Every commit leaves an entry, so the largest number is never deleted."""
    key = names.outbox_key(job.shard)
    writes: list[Command] = [("HSET", key, entry.n, _JSON.encode(entry))]
    if done := [n for n in stored if n <= job.trim_outbox]:
        writes.append(("HDEL", key, *done))
    return writes


def _mark_writes(job: CommitJob, token: str) -> list[Command]:
    mark = Mark(
        epoch=job.epoch,
        batch=job.batch,
        topic_id=job.topic_id,
        end=dict(job.to_offsets),
        shards=job.shards,
    )
    return [
        ("SET", names.mark_key(job.shard, job.lane), _JSON.encode(mark)),
        ("SET", names.token_key(job.shard), token),
    ]


def _work(done: Work, tally: _Tally) -> Work:
    return replace(
        done,
        tries=tally.tries,
        read_ms=tally.read_s * 1000,
        merge_ms=tally.merge_s * 1000,
        write_ms=tally.write_s * 1000,
    )
