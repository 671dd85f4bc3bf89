"""A log that was made anew: what is given up is told when it is adopted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from confluent_kafka import Producer
from weir import names
from weir.clock import SystemClock
from weir.commit import Mark
from weir.definitions.fold import Definitions
from weir.definitions.jobs import job_named
from weir.definitions.records import Edit, put_record
from weir.event_time import LEAD_LIMIT_MS
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_analytics.panes.recovery import Shards, encode_mark
from weir_analytics.panes.start import Footing, Stores, take_over
from weir_analytics.panes.stream import BatchStream
from weir_analytics.settings import Settings

from .conftest import settings_for

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

COUNTED = 5
HORIZON_MS = 3_600_000


@dataclass
class Installation:
    """One log and one store; a driver that was started once has counted some of the log."""

    settings: Settings
    new_log: Callable[[], None]

    def stores(self) -> Stores:
        """Open what a driver has."""
        settings = self.settings
        return Stores(
            DefinitionsLog(settings.kafka),
            Shards(settings.redis_url, settings.shards),
            BatchStream(settings.redis_url),
        )

    def start(self) -> Footing:
        """Start a driver, as far as before its first batch."""
        stores = self.stores()
        try:
            return take_over(stores, self.settings, SystemClock())
        finally:
            stores.definitions.close()
            stores.shards.close()
            stores.stream.close()

    def stand(self, footing: Footing, end: int) -> None:
        """Let every shard have counted up to an offset."""
        client = redis.Redis.from_url(self.settings.redis_url)
        for shard in range(self.settings.shards):
            mark = Mark(
                epoch=footing.epoch,
                batch=0,
                topic_id=footing.events_id,
                end={0: end},
                shards=self.settings.shards,
            )
            client.set(names.mark_key(shard), encode_mark(mark))
        client.close()

    def produce(self, topic: str, value: bytes, key: bytes) -> None:
        """Append a record."""
        producer = Producer({"bootstrap.servers": self.settings.kafka_bootstrap})
        producer.produce(topic, value, key)
        assert producer.flush(10) == 0

    def fold(self) -> Definitions:
        """Return what the definitions say."""
        log = DefinitionsLog(self.settings.kafka)
        log.read_to(log.end())
        log.close()
        return log.fold


@pytest.fixture
def installation(
    kafka: str,
    redis_url: str,
    tmp_path: Path,
    new_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> Installation:
    """Return an installation of two shards on a log of its own."""
    settings = settings_for(tmp_path, kafka, redis_url).model_copy(update={"shards": 2})
    found = Installation(
        settings, lambda: monkeypatch.setattr(names, "EVENTS", new_topic("events"))
    )
    monkeypatch.setattr(names, "DEFINITIONS", new_topic("definitions"))
    found.new_log()
    for _ in range(COUNTED):
        found.produce(names.EVENTS, b"x", b"k")
    return found


def test_what_is_given_up_is_named_and_no_pane_is_just_smaller(installation: Installation) -> None:
    """All that was counted of the old log: whole panes of it, and part of the one at hand."""
    installation.stand(installation.start(), COUNTED)
    installation.new_log()
    text = json.dumps({"do": {"job": "adopt", "reason": "made anew"}})
    asked = put_record(Edit("default", "job", "adopt1", None, "test", 0), text)
    installation.produce(names.DEFINITIONS, asked.value, asked.key or b"")
    before_ms = SystemClock().now_ms()
    installation.start()

    fold = installation.fold()
    start, job = fold.start(), job_named(fold, "default", "adopt1")
    assert job is not None
    assert start is not None
    assert job.report is not None
    gone = {"partition": 0, "first": 0, "last": COUNTED - 1, "shards": [0, 1], "count": COUNTED}
    assert job.report.facts["given_up"]["gone"] == [gone]
    lead_ms = start.incomplete_before_ms - LEAD_LIMIT_MS - HORIZON_MS
    assert before_ms <= lead_ms <= SystemClock().now_ms()
