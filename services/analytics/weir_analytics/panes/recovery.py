"""The driver's side of the shards: fences, marks, clearing, outboxes (S0 and 2.4).

`weir.commit_recovery` decides what a starting driver does; this does it on Redis.
Every write is one transaction that checks the driver's own fence, and the steps of
clearing a shard hang together by the shard's token: a step applies only to what the
one before left. So a driver that was paused cannot harm its successor, and a Redis
that lost its tail in between is noticed.

None of it is sent twice. After an error of the connection begin again at S0, which is
always right: each step leaves a state that the same rules bring to the same end.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
from weir import names
from weir.commit import (
    Fence,
    Mark,
    Offsets,
    Verdict,
    decide_fence,
    decode_fence,
    decode_mark,
    same_offsets,
)
from weir.commit_found import Level, Recovery
from weir.definitions.history import Lane

from weir_analytics.failpoints import failpoint
from weir_analytics.panes.commit_job import OutboxEntry, decode_entry
from weir_analytics.panes.pane_reader import parse_state
from weir_analytics.panes.shard_wire import TIMEOUT_S, Command, ShardWire

KEYS_AT_ONCE: Final = 1_000
TRIAL_MS: Final = 5_000

_JSON = msgspec.json.Encoder()


class VerdictError(Exception):
    """A driver may not go on as it does.

    Attributes:
        verdict: FENCED (exit), FOREIGN (stop and name it), or a verdict after which
            the driver begins again at S0.
        shards: Those that are to be counted anew then, whatever their marks say.
    """

    def __init__(self, verdict: Verdict, message: str, shards: Collection[int] = ()) -> None:
        super().__init__(message)
        self.verdict, self.shards = verdict, frozenset(shards)


class Shards:
    """All shards of a store, as a driver sees them; not to be shared between threads."""

    def __init__(
        self,
        redis_url: str,
        count: int,
        *,
        password: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Prepare the access; nothing is opened yet.

        Args:
            redis_url: `redis://`, `rediss://` or `unix://` address.
            count: How many shards there are.
            password: Used instead of one in the address.
            timeout_s: Longest wait for one reply.
        """
        self._wire = ShardWire(redis_url, password=password, timeout_s=timeout_s)
        self._count = count

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def require_aof(self) -> None:
        """Refuse a server that forgets all at a restart, as `ShardWire.require_aof` does."""
        self._wire.require_aof()

    # ── reading ─────────────────────────────────────────────────────────────
    def read_marks(self) -> list[Mark | None]:
        """Return the live mark of each shard, None where there is none."""
        keys = [names.mark_key(shard) for shard in range(self._count)]
        found = self._wire.ask([("GET", key) for key in keys])
        return [parse_state(None, mark, None, None).live for mark in found]

    def read_lane_marks(self, lanes: Sequence[Lane]) -> list[list[Mark | None]]:
        """Return of each lane the mark in each shard, None where there is none."""
        every = range(self._count)
        keys = [names.mark_key(shard, lane.name) for lane in lanes for shard in every]
        found = iter(self._wire.ask([("GET", key) for key in keys]))
        return [
            [parse_state(None, None, next(found), None).mark for _shard in every] for _lane in lanes
        ]

    def newest_fence(self) -> Fence | None:
        """Return the largest fence of all shards: whoever raised it owns them."""
        keys = [names.fence_key(shard) for shard in range(self._count)]
        found = self._wire.ask([("GET", key) for key in keys])
        fences = [decode_fence(text) for text in found if text is not None]
        return max(fences, key=lambda fence: fence.fence, default=None)

    def check_fence(self, fence: Fence) -> None:
        """Do nothing while no newer driver has a shard.

        The stream of records has no fence of its own: this is asked before a new epoch is
        begun because of it, or two drivers would take turns. And where a mark is missing, which
        a newer driver may have taken.

        Raises:
            VerdictError: FENCED if a shard has a newer fence.
        """
        found = self.newest_fence()
        if found is not None and found.topic_id == fence.topic_id and found.fence > fence.fence:
            msg = f"fence must be the newest, got {fence.fence} and {found.fence}: exit"
            raise VerdictError(Verdict.FENCED, msg)

    def read_outboxes(self) -> dict[int, list[OutboxEntry]]:
        """Return the entries of each shard's outbox in order: what no record holds yet."""
        keys = [names.outbox_key(shard) for shard in range(self._count)]
        return _entries(self._wire.ask([("HVALS", key) for key in keys]))

    def read_committed(self, end: Offsets) -> dict[int, list[OutboxEntry]]:
        """Return the entries of each shard's outbox, once a batch is committed to all of them.

        Each mark is read behind the outbox. A shard that went back in between has lost what the
        batch corrected: told as counted it would be levelled, which tells no corrections (I9).

        Raises:
            VerdictError: LOST or BEHIND if a shard does not stand at the batch's end.
        """
        shards = range(self._count)
        entries = [("HVALS", names.outbox_key(shard)) for shard in shards]
        marks = [("GET", names.mark_key(shard)) for shard in shards]
        found = self._wire.ask([*entries, *marks])
        for shard, text in enumerate(found[self._count :]):
            if text is None or not same_offsets(decode_mark(text).end, end):
                verdict = Verdict.LOST if text is None else Verdict.BEHIND
                msg = f"mark of shard {shard} must be at the batch's end {end}, got {text!r}"
                raise VerdictError(verdict, msg)
        return _entries(found[: self._count])

    def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Ask a shard something; what is written goes through `change`."""
        return self._wire.ask(commands)

    def keys(self, shard: int, beginning: str = "") -> Iterator[list[bytes]]:
        """Yield the keys of a shard but fence and token, a few or none at a time.

        SCAN misses none that is there all the time.

        Args:
            shard: Which shard.
            beginning: What they begin with behind the shard's prefix.
        """
        spared = {names.fence_key(shard).encode(), names.token_key(shard).encode()}
        pattern = f"{names.shard_prefix(shard)}{beginning}*"
        cursor: bytes | int = 0
        while True:
            scan: Command = ("SCAN", cursor, "MATCH", pattern, "COUNT", KEYS_AT_ONCE)
            cursor, keys = self._wire.ask([scan])[0]
            yield [key for key in keys if key not in spared]
            if int(cursor) == 0:
                return

    # ── S0 ──────────────────────────────────────────────────────────────────
    def try_writes(self) -> None:
        """Do nothing while every shard takes writes: a start record is kept for ever.

        Nothing is left of it; should the deletion be lost, the key goes by itself.

        Raises:
            StoreError: If one does not: Redis is full, or cannot write its own files.
        """
        keys = [names.trial_key(shard) for shard in range(self._count)]
        writes: list[Command] = [("SET", key, b"", "PX", TRIAL_MS) for key in keys]
        self._wire.ask([*writes, *(("UNLINK", key) for key in keys)])

    def raise_fence(self, fence: Fence, definitions_end: int, also: Iterable[int] = ()) -> None:
        """Take every shard, only ever upwards.

        Args:
            fence: The fence of the start record just appended and read back.
            definitions_end: End of `weir.definitions`, read after appending it.
            also: Shards beyond the present number, that were used before.

        Raises:
            VerdictError: FENCED if a newer driver has a shard; FOREIGN if a shard's
                fence was not given by this log.
        """
        for shard in sorted({*range(self._count), *also}):
            while not self._raise_in(shard, fence, definitions_end):
                pass
            failpoint("C3")

    def recount(
        self, recovery: Recovery, fence: Fence, start: Mark, lanes: Sequence[Lane] = ()
    ) -> None:
        """Empty the shards that a recovery names and set their marks.

        Args:
            recovery: What `reconcile` returned.
            fence: The driver's own fence, raised in all of them.
            start: The mark of the place where live counting goes on.
            lanes: What counts again what lies before; a shard has part in those that it has
                a mark of.

        Raises:
            VerdictError: FENCED if a newer driver has a shard; LOST if a shard moved
                or went back in time meanwhile.
        """
        # First all marks: a crash in between leaves shards that are plainly LOST.
        tokens = self.drop_marks(recovery.clear, fence)
        for shard, token in tokens.items():
            tokens[shard] = self._delete_keys(shard, fence, token)
        for shard, token in tokens.items():
            if shard < self._count:
                self.change(shard, fence, token, _marks(shard, start, lanes))

    def bridge(self, level: Level, fence: Fence, live: Mark, lane: Lane) -> None:
        """Let a shard that is far behind go on without waiting; a lane counts what it lacks.

        Both marks move at once. The live mark is read again: where it went alone, as a Redis that
        evicts keys takes it, a new one would hide that the shard is lost.

        Raises:
            VerdictError: FENCED if a newer driver has the shard; LOST if it moved.
        """
        keys = (names.token_key(level.shard), names.mark_key(level.shard))
        token, mark = self._wire.ask([("MGET", *keys)])[0]
        if mark is None or not same_offsets(decode_mark(mark).end, level.from_offsets):
            msg = f"mark of shard {level.shard} must still be at {level.from_offsets}, got {mark!r}"
            raise VerdictError(Verdict.LOST, msg)
        text = None if token is None else token.decode()
        self.change(level.shard, fence, text, _marks(level.shard, live, [lane]))

    def _raise_in(self, shard: int, fence: Fence, definitions_end: int) -> bool:
        """Raise the fence in one shard; False if it moved and has to be asked again."""
        key = names.fence_key(shard)
        _, text = self._wire.ask([("WATCH", key), ("GET", key)])
        found = None if text is None else decode_fence(text)
        verdict = decide_fence(found, fence, definitions_end)
        if verdict is Verdict.OK:
            writes: list[Command] = [("MULTI",), ("SET", key, _JSON.encode(fence)), ("EXEC",)]
            return self._wire.ask(writes)[-1] is not None
        self._wire.ask([("UNWATCH",)])
        if verdict is Verdict.DONE:
            return True
        if verdict is Verdict.FENCED:
            raise VerdictError(verdict, _fenced(shard, found, fence))
        msg = (
            f"fence of shard {shard} must come from definitions log {fence.topic_id} before "
            f"{definitions_end}, got {found}; this Redis belongs to another installation, or "
            "weir.definitions was created anew: give Weir its own Redis, or empty this one"
        )
        raise VerdictError(verdict, msg)

    # ── clearing ────────────────────────────────────────────────────────────

    def drop_marks(self, shards: Iterable[int], fence: Fence) -> dict[int, str]:
        """Take the marks of shards away, so that every start finds them lost; return their tokens.

        Args:
            shards: Which.
            fence: The driver's own fence, raised in all of them.

        Raises:
            VerdictError: FENCED if a newer driver has a shard; LOST if a shard moved meanwhile.
        """
        return {shard: self._drop_mark(shard, fence) for shard in sorted(shards)}

    def _drop_mark(self, shard: int, fence: Fence) -> str:
        token = self._wire.ask([("GET", names.token_key(shard))])[0]
        found = None if token is None else token.decode()
        return self.change(shard, fence, found, [("DEL", names.mark_key(shard))])

    def _delete_keys(self, shard: int, fence: Fence, token: str) -> str:
        """Delete all keys of a shard but fence and token; return the last token."""
        for keys in filter(None, self.keys(shard)):
            token = self.change(shard, fence, token, [("UNLINK", *keys)])
        return token

    def change(self, shard: int, fence: Fence, token: str | None, writes: Sequence[Command]) -> str:
        """Write to a shard that is ours and stands where we left it; return its new token.

        Raises:
            VerdictError: FENCED if a newer driver has the shard; LOST if it moved.
        """
        keys = (names.fence_key(shard), names.token_key(shard))
        _, values = self._wire.ask([("WATCH", *keys), ("MGET", *keys)])
        state = parse_state(values[0], None, None, values[1])
        if state.fence != fence or state.token != token:
            self._wire.ask([("UNWATCH",)])
            raise _not_ours(shard, state.fence, fence)
        new = secrets.token_hex(16)
        done = self._wire.ask([("MULTI",), *writes, ("SET", keys[1], new), ("EXEC",)])[-1]
        if done is None:
            raise _not_ours(shard, None, fence)
        return new


def _entries(outboxes: Iterable[Iterable[bytes]]) -> dict[int, list[OutboxEntry]]:
    return {
        shard: sorted(map(decode_entry, entries), key=lambda entry: entry.n)
        for shard, entries in enumerate(outboxes)
    }


def _marks(shard: int, live: Mark, lanes: Sequence[Lane]) -> list[Command]:
    """Return what sets the marks of an emptied shard: all at once, or it would be half lost."""
    writes: list[Command] = [("SET", names.mark_key(shard), _JSON.encode(live))]
    for lane in lanes:
        if shard in lane.shards:
            begin = msgspec.structs.replace(live, end=dict(lane.start))
            writes.append(("SET", names.mark_key(shard, lane.name), _JSON.encode(begin)))
    return writes


def _not_ours(shard: int, found: Fence | None, mine: Fence) -> VerdictError:
    if found is not None and found.topic_id == mine.topic_id and found.fence > mine.fence:
        return VerdictError(Verdict.FENCED, _fenced(shard, found, mine))
    msg = f"shard {shard} moved or went back in time while it was cleared; start again"
    return VerdictError(Verdict.LOST, msg)


def _fenced(shard: int, found: Fence | None, mine: Fence) -> str:
    newer = "a newer one" if found is None else str(found.fence)
    return (
        f"shard {shard} must have fence {mine.fence} or below, got {newer}: "
        "another panes driver has started; only one may run"
    )


def last_entries(outboxes: dict[int, list[OutboxEntry]]) -> dict[int, int]:
    """Return the number of each shard's newest outbox entry, for the batch record."""
    return {shard: entries[-1].n for shard, entries in outboxes.items() if entries}


def changed_panes(
    outboxes: dict[int, list[OutboxEntry]],
) -> list[tuple[int, int, int, int]]:
    """Return `(vid, res_s, start_s, shard)` of all panes in the outboxes, each once."""
    found: Iterable[tuple[int, int, int, int]] = (
        (*pane, shard)
        for shard, entries in outboxes.items()
        for entry in entries
        for pane in entry.changed
    )
    return list(dict.fromkeys(found))
