"""One log and one store, of which a test starts drivers as far as before their first batch."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import msgspec
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from weir import names
from weir.batches import FIELD, BatchRecord, Opening, decode
from weir.clock import SystemClock
from weir.commit import Mark, Verdict
from weir.definitions.fold import Definitions
from weir.definitions.history import Lane, Start
from weir.definitions.jobs import JobAsked, job_named
from weir.definitions.records import Edit, put_record
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_analytics.panes.holes import Hole
from weir_analytics.panes.recovery import Shards
from weir_analytics.panes.start import Footing, OwnStart, Stores, take_over
from weir_analytics.panes.stream import BatchStream
from weir_analytics.settings import Settings


def open_stores(settings: Settings) -> Stores:
    """Open what a driver has."""
    password = settings.redis_password
    return Stores(
        DefinitionsLog(settings.kafka),
        Shards(settings.redis_url, settings.shards, password=password),
        BatchStream(settings.redis_url, password=password),
    )


def close_stores(stores: Stores) -> None:
    """Close what a driver had."""
    stores.definitions.close()
    stores.shards.close()
    stores.stream.close()


def entries_after(client: Any, after: str = "0-0") -> list[tuple[str, BatchRecord | Opening]]:
    """Return the batch records after an id, oldest first, each with its id."""
    found = client.xrange(names.BATCHES, min=f"({after}")
    return [(at.decode(), decode(fields[FIELD])) for at, fields in found]


@dataclass
class Installation:
    """Topics of its own in a Kafka, and a Redis, taken over again and again.

    Attributes:
        client: A client of the Redis.
        new_log: Makes the log anew.
        found: The verdicts of all starts.
    """

    settings: Settings
    client: Any
    new_log: Callable[[], None]
    found: list[Verdict] = field(default_factory=list)

    def start(
        self, lost: tuple[Hole, ...] = (), own: OwnStart | None = None, **changes: Any
    ) -> Footing:
        """Start a driver with some settings changed, as far as before its first batch."""
        settings = self.settings.model_copy(update=changes)
        stores = open_stores(settings)
        try:
            note = self.found.append
            return take_over(stores, settings, SystemClock(), lost, own=own, note=note)
        finally:
            close_stores(stores)

    # ── the log ─────────────────────────────────────────────────────────────
    def append(self, records: int) -> None:
        """Append records to the log."""
        self._produce(names.EVENTS, [(b"x", None)] * records)

    def delete_before(self, offset: int) -> None:
        """Take the beginning of the log away, as retention does."""
        admin = AdminClient({"bootstrap.servers": self.settings.kafka_bootstrap})
        for future in admin.delete_records([TopicPartition(names.EVENTS, 0, offset)]).values():
            future.result(10)

    def plan(self, end: int) -> None:
        """Leave a checkpoint whose only batch ends at an offset, and was committed."""
        folder = self.settings.checkpoint_dir
        for name, offset in (("sources/0", 0), ("offsets", end), ("commits", end)):
            (folder / name).mkdir(parents=True)
            (folder / name / "0").write_text(f'{{"{names.EVENTS}":{{"0":{offset}}}}}')

    # ── the definitions ─────────────────────────────────────────────────────
    def fold(self) -> Definitions:
        """Return what the definitions say."""
        with closing(DefinitionsLog(self.settings.kafka)) as log:
            log.read_to(log.end())
            return log.fold

    def told(self) -> Start:
        """Return what the latest start record says."""
        start = self.fold().start()
        assert start is not None
        return start

    def lanes(self) -> list[Lane]:
        """Return the lanes, in the order of their records."""
        return list(self.fold().lanes.values())

    def decide(self, name: str, tenant: str = "default") -> None:
        """Ask for adopt, as the API does."""
        text = json.dumps({"do": {"job": "adopt", "reason": "made anew"}})
        self.define(put_record(Edit(tenant, "job", name, None, "test", 0), text))

    def job(self, name: str) -> JobAsked:
        """Return a job as it stands."""
        found = job_named(self.fold(), "default", name)
        assert found is not None
        return found

    def define(self, record: Any) -> None:
        """Append a record of the definitions."""
        self._produce(names.DEFINITIONS, [(record.value, record.key)])

    # ── the store ───────────────────────────────────────────────────────────
    def stand(self, shard: int, offset: int) -> None:
        """Put a shard's mark somewhere, as a restored dump does."""
        moved = msgspec.structs.replace(self.mark(shard), end={0: offset})
        self.client.set(names.mark_key(shard), msgspec.json.encode(moved))

    def mark(self, shard: int, lane: str = names.LIVE_LANE) -> Mark:
        """Return a mark."""
        return msgspec.json.decode(self.client.get(names.mark_key(shard, lane)), type=Mark)

    def keys(self, shard: int) -> set[str]:
        """Return what a shard holds."""
        return {key.decode() for key in self.client.keys(names.shard_prefix(shard) + "*")}

    def _produce(self, topic: str, records: list[tuple[bytes, bytes | None]]) -> None:
        producer = Producer({"bootstrap.servers": self.settings.kafka_bootstrap})
        for value, key in records:
            producer.produce(topic, value, key)
        assert producer.flush(10) == 0
