"""Redis takes no writes, or the log has no leader: no start is recorded until that is over.

A start record is kept for ever in a topic that every process reads whole, so a driver that waits
appends none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis
from confluent_kafka import KafkaError, KafkaException
from redis.exceptions import ResponseError
from weir import names
from weir.batches import FIELD, KEPT_MS, BatchRecord, encode, entry_id, parse_id
from weir.commit import Verdict
from weir.rows import Row
from weir_analytics.panes.commit_job import CommitJob, Limits, Part
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.recovery import Shards
from weir_analytics.panes.shard_wire import StoreError
from weir_analytics.panes.start import Footing
from weir_analytics.panes.store import ShardStore
from weir_local.waiting import wait_until

from .installation import Installation

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

MIB = 2**20


@contextmanager
def full(client: Any) -> Iterator[str]:
    """Let Redis have less memory than it uses."""
    client.config_set("maxmemory", client.info("memory")["used_memory"] // 2)
    try:
        yield "used memory > 'maxmemory'"
    finally:
        client.config_set("maxmemory", 0)


@contextmanager
def no_room_on_disk(client: Any) -> Iterator[str]:
    """Let Redis fail to save itself, after which it takes no writes until it can."""
    client.config_set("save", "3600 1")
    told = {name: client.config_get(name)[name] for name in ("dir", "dbfilename")}
    in_the_way = Path(told["dir"]) / told["dbfilename"]
    in_the_way.mkdir()
    try:
        client.bgsave()
        wait_until(
            lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err",
            timeout_s=20,
            what="a save that failed",
        )
        yield "MISCONF"
    finally:
        in_the_way.rmdir()
        client.config_set("save", "")


@contextmanager
def no_replica(client: Any) -> Iterator[str]:
    """Let Redis ask for a replica to which it could hand on what is written."""
    client.config_set("min-replicas-to-write", 1)
    try:
        yield "NOREPLICAS"
    finally:
        client.config_set("min-replicas-to-write", 0)


Refusal = Callable[[Any], AbstractContextManager[str]]
REFUSALS: list[Refusal] = [full, no_room_on_disk, no_replica]


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("begun", [False, True], ids=["first start", "later start"])
def test_a_start_is_recorded_only_where_every_shard_takes_writes(
    installation: Installation, refusal: Refusal, begun: bool
) -> None:
    """However often it is tried, and why is told in Redis's own words; then it goes on."""
    if begun:
        installation.start()
    before = records_of(installation)
    with refusal(installation.client) as why:
        for _ in range(3):
            with pytest.raises(StoreError, match=f"redis refused to write: .*{why}"):
                installation.start()
        assert records_of(installation) == before
    installation.start()

    assert records_of(installation) > before
    assert not {key for shard in (0, 1) for key in installation.keys(shard) if "trial" in key}


@pytest.mark.parametrize("begun", [False, True], ids=["first start", "later start"])
def test_nor_where_the_log_does_not_say_where_it_ends(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    """A partition has no leader: each try would append one, as it did with Redis."""
    if begun:
        installation.start()
    before, ends = records_of(installation), LogOffsets.ends

    def without_a_leader(self: LogOffsets) -> Any:
        if self._topic != names.EVENTS:
            return ends(self)
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))

    with monkeypatch.context() as away:
        away.setattr(LogOffsets, "ends", without_a_leader)
        for _ in range(3):
            with pytest.raises(KafkaException):
                installation.start()
        assert records_of(installation) == before
    installation.start()
    assert records_of(installation) > before


def test_each_shard_is_asked_under_a_key_of_its_own(redis_url: str) -> None:
    """Of a cluster one node may be full; what is left of a trial goes by itself."""
    with redis.Redis.from_url(redis_url) as client, client.monitor() as monitor:
        Shards(redis_url, 2).try_writes()
        client.ping()
        asked = []
        for told in monitor.listen():
            asked.append(str(told["command"]))
            if asked[-1] == "PING":
                break

    for shard in (0, 1):
        key = names.trial_key(shard)
        assert key.startswith(names.shard_prefix(shard))
        assert [ask for ask in asked if key in ask] == [f"SET {key}  PX 5000", f"UNLINK {key}"]


# ── a Redis that is full of records ─────────────────────────────────────────


def fill(client: Any, *, age_ms: int) -> int:
    """Fill Redis with records of 160 KiB each, until it takes none; return how many it took."""
    (newest,) = client.xrevrange(names.BATCHES, count=1)
    epoch, _ = parse_id(newest[0])
    client.xtrim(names.BATCHES, maxlen=0, approximate=False)
    at_ms = int(time.time() * 1000) - age_ms
    for rev in count(1):
        record = BatchRecord(
            epoch=epoch,
            batch=rev - 1,
            rev=rev,
            shards=2,
            from_offsets={0: 0},
            to_offsets={0: 0},
            processed_through_ms=0,
            at_ms=at_ms,
            changed=[(5, 60, 60 * n, 0) for n in range(8_000)],
        )
        try:
            client.xadd(names.BATCHES, {FIELD: encode(record)}, id=entry_id(epoch, rev))
        except ResponseError:
            # What came of that record is free again: no room for the smallest one either.
            client.config_set("maxmemory", client.info("memory")["used_memory"] - MIB)
            return rev - 1
    raise AssertionError


@pytest.fixture
def crowded(installation: Installation) -> Iterator[Installation]:
    """Return an installation that has begun, whose Redis has room for 20 MiB more."""
    installation.start()
    client = installation.client
    client.config_set("maxmemory", client.info("memory")["used_memory"] + 20 * MIB)
    yield installation
    client.config_set("maxmemory", 0)


def commit(installation: Installation, footing: Footing) -> Verdict:
    """Commit an event to a shard, as a task does."""
    job = CommitJob(
        shard=0,
        shards=2,
        fence=footing.fence,
        epoch=footing.epoch,
        batch=0,
        topic_id=footing.events_id,
        from_offsets={0: 0},
        to_offsets={0: 1},
        limits={5: Limits({60: 86_400})},
    )
    store = ShardStore(installation.settings.redis_url, 0)
    try:
        return store.commit(job, [Part(5, 60, 2_000_000_040, "=a", Row(1))]).verdict
    finally:
        store.close()


def test_counting_recovers_once_records_are_due(crowded: Installation) -> None:
    """An append lets go of old ones, and none comes while S4 is refused; so a start does."""
    footing = crowded.start()
    held = fill(crowded.client, age_ms=KEPT_MS + 1_000)
    with pytest.raises(StoreError, match="used memory > 'maxmemory'"):
        commit(crowded, footing)

    again = crowded.start()
    assert commit(crowded, again) is Verdict.OK
    # The newest stays, and an epoch has begun behind it.
    assert (held > 100, crowded.client.xlen(names.BATCHES)) == (True, 2)


def test_what_is_not_due_is_kept(crowded: Installation) -> None:
    """Readers that come now go by it; until it is due the driver waits."""
    held = fill(crowded.client, age_ms=KEPT_MS - 60_000)
    with pytest.raises(StoreError, match="used memory > 'maxmemory'"):
        crowded.start()

    assert crowded.client.xlen(names.BATCHES) == held > 100


def records_of(installation: Installation) -> int:
    """Return how many records the definitions have had."""
    return installation.fold().next_offset
