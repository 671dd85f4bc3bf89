"""The stream of batch records tells everything once, in order, or begins a new epoch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import redis
from weir import names
from weir.batches import KEPT_MS, BatchRecord, Opening, entry_id
from weir.commit import Verdict, decide_opening, decide_record
from weir_analytics.panes.stream import BatchStream

from .installation import entries_after

pytestmark = pytest.mark.redis


def record(epoch: int, rev: int, at_ms: int = 0) -> BatchRecord:
    """Return the record of a batch."""
    return BatchRecord(
        epoch=epoch,
        batch=rev - 1,
        rev=rev,
        shards=1,
        from_offsets={0: rev},
        to_offsets={0: rev + 1},
        processed_through_ms=rev,
        at_ms=at_ms,
    )


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """Return a client of an empty server."""
    opened = redis.Redis.from_url(redis_url)
    yield opened
    opened.close()


@pytest.fixture
def stream(client: redis.Redis, redis_url: str) -> Iterator[BatchStream]:
    """Return the empty stream of that server."""
    assert client.ping()
    opened = BatchStream(redis_url, timeout_s=5)
    yield opened
    opened.close()


def test_a_record_is_appended_once(client: redis.Redis, stream: BatchStream) -> None:
    """Opening and records are read back in order; a replay adds nothing."""
    opening = Opening(epoch=12, reason="start")

    verdicts = [
        stream.open_epoch(opening),
        stream.append(record(12, 1)),
        stream.append(record(12, 1)),
        stream.append(record(12, 2)),
    ]

    assert verdicts == [Verdict.OK, Verdict.OK, Verdict.DONE, Verdict.OK]
    found = entries_after(client)
    assert found == [("12-0", opening), ("12-1", record(12, 1)), ("12-2", record(12, 2))]
    assert entries_after(client, "12-1") == found[2:]
    assert stream.last_record() == (12, 2)


@pytest.mark.parametrize(
    ("last", "own"),
    list(
        itertools.product(
            [None, (11, 0), (11, 4), (12, 0), (12, 3), (12, 4), (12, 5), (13, 0), (9, 4), (100, 0)],
            [(12, 4), (12, 1)],
        )
    ),
)
def test_the_script_decides_as_the_rule(
    client: redis.Redis, stream: BatchStream, last: tuple[int, int] | None, own: tuple[int, int]
) -> None:
    """Appending does what `decide_record` says for every newest entry."""
    if last is not None:
        client.xadd(names.BATCHES, {"r": b'{"at_ms":0}'}, id=entry_id(*last))

    assert stream.append(record(*own)) is decide_record(last, *own)


@pytest.mark.parametrize("last", [None, (11, 4), (12, 0), (12, 3), (13, 0), (9, 9), (100, 0)])
def test_the_opening_decides_as_the_rule(
    client: redis.Redis, stream: BatchStream, last: tuple[int, int] | None
) -> None:
    """Opening does what `decide_opening` says for every newest entry."""
    if last is not None:
        client.xadd(names.BATCHES, {"r": b'{"at_ms":0}'}, id=entry_id(*last))

    assert stream.open_epoch(Opening(epoch=12, reason="lost")) is decide_opening(last, 12)


def test_epoch_zero_is_refused(stream: BatchStream) -> None:
    """A stream has no id 0-0, and the error says how to get another epoch."""
    with pytest.raises(ValueError, match="append another start record and take its offset"):
        stream.open_epoch(Opening(epoch=0, reason="start"))


def test_records_older_than_a_quarter_of_an_hour_go(
    client: redis.Redis, stream: BatchStream
) -> None:
    """A record goes when a younger one is appended more than 15 minutes after it."""
    stream.open_epoch(Opening(epoch=12, reason="start", at_ms=0))
    stream.append(record(12, 1, at_ms=1))
    stream.append(record(12, 2, at_ms=1 + KEPT_MS))
    assert [i for i, _ in entries_after(client)] == ["12-1", "12-2"]

    stream.append(record(12, 3, at_ms=2 + KEPT_MS))
    assert [i for i, _ in entries_after(client)] == ["12-2", "12-3"]


def test_the_newest_record_stays_however_old(
    client: redis.Redis, redis_url: str, stream: BatchStream
) -> None:
    """After a long stand-still the record before is still there to follow."""
    stream.open_epoch(Opening(epoch=12, reason="start", at_ms=0))
    stream.append(record(12, 1, at_ms=1))
    restarted = BatchStream(redis_url)

    assert restarted.append(record(12, 2, at_ms=10 * KEPT_MS)) is Verdict.OK
    assert [i for i, _ in entries_after(client)] == ["12-1", "12-2"]
    assert restarted.append(record(12, 3, at_ms=10 * KEPT_MS)) is Verdict.OK
    assert [i for i, _ in entries_after(client)] == ["12-2", "12-3"]


def test_a_restarted_driver_reads_all_times(client: redis.Redis, redis_url: str) -> None:
    """Records of a process before are trimmed too, however many there are."""
    first = BatchStream(redis_url)
    first.open_epoch(Opening(epoch=12, reason="start", at_ms=0))
    for rev in range(1, 251):
        first.append(record(12, rev, at_ms=rev * 1000))

    BatchStream(redis_url).append(record(12, 251, at_ms=KEPT_MS + 240_000))

    assert [i for i, _ in entries_after(client)] == [entry_id(12, n) for n in range(240, 252)]


class TestTrim:
    """What is due goes without an append: none comes while Redis is full."""

    def test_what_is_due_goes_and_nothing_else(
        self, client: redis.Redis, stream: BatchStream
    ) -> None:
        """As an append at that instant would let go of it."""
        stream.open_epoch(Opening(epoch=12, reason="start", at_ms=0))
        for rev in range(1, 5):
            stream.append(record(12, rev, at_ms=rev * 1000))
        for now_ms, left in [(0, 5), (KEPT_MS, 5), (KEPT_MS + 1, 4), (KEPT_MS + 2_001, 2)]:
            stream.trim(now_ms)
            assert len(entries_after(client)) == left

        assert stream.append(record(12, 5, at_ms=KEPT_MS + 3_001)) is Verdict.OK
        assert [i for i, _ in entries_after(client)] == ["12-4", "12-5"]

    @pytest.mark.parametrize("records", [0, 1, 49, 50, 51, 120])
    def test_the_newest_stays_however_many_are_due(
        self, client: redis.Redis, stream: BatchStream, records: int
    ) -> None:
        """A replay finds its own record there, and readers the place to go on from."""
        if records:
            stream.open_epoch(Opening(epoch=12, reason="start", at_ms=0))
        for rev in range(1, records):
            stream.append(record(12, rev, at_ms=rev))
        stream.trim(2 * KEPT_MS)

        assert [i for i, _ in entries_after(client)] == [entry_id(12, records - 1)] * (records > 0)


def test_a_lost_stream_is_noticed(client: redis.Redis, stream: BatchStream) -> None:
    """A stream that lost its tail takes no record: readers would miss what is between."""
    stream.open_epoch(Opening(epoch=12, reason="start"))
    for rev in (1, 2, 3):
        stream.append(record(12, rev))
    client.xdel(names.BATCHES, "12-3")

    assert stream.append(record(12, 4)) is Verdict.LOST

    client.delete(names.BATCHES)
    assert stream.append(record(12, 4)) is Verdict.LOST
