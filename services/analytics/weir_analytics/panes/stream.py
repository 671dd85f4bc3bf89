"""The stream of batch records (S5): what readers follow.

Delivery: a record is appended once. A replay finds its own id and does nothing; a
driver whose predecessor's record is not there appends nothing either, since readers
would believe that they had seen everything: a new epoch must begin.

The decision is `weir.commit.decide_record`, taken inside Redis together with the
append; a test holds the script to it. Records are kept for 15 minutes; the newest
stays, however old it is. What an append would let go of goes at each start as well: while
Redis is full nothing is appended.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from typing import Final

import msgspec
from weir import names
from weir.batches import (
    FIELD,
    KEPT_MS,
    VERSION,
    BatchRecord,
    Opening,
    encode,
    entry_id,
    parse_id,
)
from weir.commit import Verdict
from weir.formats import checked

from weir_analytics.failpoints import failpoint
from weir_analytics.panes.shard_wire import TIMEOUT_S, Command, ShardWire

MAX_ENTRIES: Final = 10_000
_READ_AT_ONCE: Final = 200
_TRIMMED_AT_ONCE: Final = 50

# Compares in the order of `decide_record`. ARGV: own id, the ids that it may follow, the
# entry, the oldest id to keep.
_APPEND: Final = """
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local last = newest[1] and newest[1][1] or ''
if last == ARGV[1] then return 'done' end
if last ~= ARGV[2] and last ~= ARGV[3] then return 'lost' end
redis.call('XADD', KEYS[1], ARGV[1], ARGV[4], ARGV[5])
redis.call('XTRIM', KEYS[1], 'MINID', ARGV[6])
return 'ok'
"""

# ARGV: epoch, the opening's id, the entry.
_OPEN: Final = """
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local last = newest[1] and newest[1][1] or ''
if last == ARGV[2] then return 'done' end
if last ~= '' and tonumber(string.match(last, '^%d+')) >= tonumber(ARGV[1]) then
  return 'fenced'
end
redis.call('XADD', KEYS[1], ARGV[2], ARGV[3], ARGV[4])
return 'ok'
"""


class _At(msgspec.Struct):
    at_ms: int = 0


_AT = msgspec.json.Decoder(_At)


class BatchStream:
    """The stream, as the driver writes it; not to be shared between threads."""

    def __init__(
        self, redis_url: str, *, password: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Prepare the access; nothing is opened yet.

        Args:
            redis_url: `redis://`, `rediss://` or `unix://` address.
            password: Used instead of one in the address.
            timeout_s: Longest wait for one reply.
        """
        self._wire = ShardWire(redis_url, password=password, timeout_s=timeout_s)
        self._kept: deque[tuple[str, int]] | None = None

    def close(self) -> None:
        """Close the connection."""
        self._kept = None
        self._wire.close()

    def last_record(self) -> tuple[int, int] | None:
        """Return epoch and revision of the newest entry; None in an empty stream.

        Raises:
            NewerFormatError: If a newer release wrote it.
        """
        newest = self._wire.ask([("XREVRANGE", names.BATCHES, "+", "-", "COUNT", 1)])[0]
        if not newest:
            return None
        place, fields = newest[0]
        checked(_field(fields), "batch record", VERSION)
        return parse_id(place)

    def open_epoch(self, opening: Opening) -> Verdict:
        """Append an epoch's first entry.

        Returns:
            OK, DONE if it is there, FENCED if a younger epoch, or a record of this
            one, is there.

        Raises:
            ValueError: If the epoch is 0, whose opening would have the id 0-0.
        """
        if opening.epoch < 1:
            msg = (
                f"an epoch must be 1 or more, got {opening.epoch}: a stream has no id 0-0; "
                "append another start record and take its offset"
            )
            raise ValueError(msg)
        own = entry_id(opening.epoch, 0)
        done = self._run(_OPEN, opening.epoch, own, FIELD, encode(opening))
        if done is Verdict.OK and self._kept is not None:
            self._kept.append((own, opening.at_ms))
        return done

    def append(self, record: BatchRecord) -> Verdict:
        """Append a record and let go of what is older than 15 minutes by its `at_ms`.

        Returns:
            OK, DONE if it is there, LOST if what must stand before it is not.
        """
        failpoint("C8")
        own, before = entry_id(record.epoch, record.rev), entry_id(record.epoch, record.rev - 1)
        opening = entry_id(record.epoch, 0)
        oldest = self._oldest_to_keep(record.at_ms) or own
        done = self._run(_APPEND, own, before, opening, FIELD, encode(record), oldest)
        if done is Verdict.OK and self._kept is not None:
            self._kept.append((own, record.at_ms))
        failpoint("C9")
        return done

    def trim(self, now_ms: int) -> None:
        """Let go of what is older than 15 minutes, without appending; the newest stays.

        It takes no memory: Redis does it also while it is full and refuses what would.

        Raises:
            StoreError: If Redis writes nothing at all.
        """
        oldest_ms = now_ms - KEPT_MS
        while True:
            ask: Command = ("XRANGE", names.BATCHES, "-", "+", "COUNT", _TRIMMED_AT_ONCE)
            found = self._wire.ask([ask])[0]
            old = sum(1 for _ in takewhile(lambda one: _at_ms(one[1]) < oldest_ms, found))
            if not old or len(found) == 1:
                return
            keep = found[min(old, len(found) - 1)][0]
            self._wire.ask([("XTRIM", names.BATCHES, "MINID", keep)])

    def _run(self, script: str, *arguments: str | bytes | int) -> Verdict:
        return Verdict(self._wire.ask([("EVAL", script, 1, names.BATCHES, *arguments)])[0].decode())

    def _oldest_to_keep(self, now_ms: int) -> str | None:
        """Return the id of the oldest entry that is young enough, or of the newest."""
        kept = self._kept = self._read_times() if self._kept is None else self._kept
        while len(kept) > 1 and (kept[0][1] < now_ms - KEPT_MS or len(kept) > MAX_ENTRIES):
            kept.popleft()
        return kept[0][0] if kept else None

    def _read_times(self) -> deque[tuple[str, int]]:
        times: deque[tuple[str, int]] = deque()
        after = "-"
        while True:
            found = self._wire.ask([("XRANGE", names.BATCHES, after, "+", "COUNT", _READ_AT_ONCE)])[
                0
            ]
            times.extend((i.decode(), _at_ms(fields)) for i, fields in found)
            if len(found) < _READ_AT_ONCE:
                return times
            after = f"({times[-1][0]}"


def _at_ms(fields: list[bytes]) -> int:
    return _AT.decode(_field(fields)).at_ms


def _field(fields: list[bytes]) -> bytes:
    return fields[fields.index(FIELD) + 1]
