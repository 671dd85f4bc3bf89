"""A log that was made anew: what is given up is told when it is adopted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from confluent_kafka import Producer
from weir import names
from weir.clock import SystemClock
from weir.commit import Mark
from weir.definitions.fold import Definitions
from weir.definitions.history import Start
from weir.definitions.jobs import JobReport, JobState, job_named, job_record
from weir.definitions.records import Edit, put_record
from weir.event_time import LEAD_LIMIT_MS
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_analytics.panes.recovery import Shards, VerdictError, encode_mark
from weir_analytics.panes.start import Footing, Stores, take_over
from weir_analytics.panes.stream import BatchStream
from weir_analytics.settings import Settings

from .conftest import settings_for

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

COUNTED = 5
ADOPT = "adopt1"
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

    def decide(self) -> None:
        """Decide to go on with another log."""
        text = json.dumps({"do": {"job": "adopt", "reason": "made anew"}})
        asked = put_record(Edit("default", "job", ADOPT, None, "test", 0), text)
        self.produce(names.DEFINITIONS, asked.value, asked.key or b"")

    def close(self) -> None:
        """End the decision, as counting does."""
        job = job_named(self.fold(), "default", ADOPT)
        assert job is not None
        report = JobReport(job.definition.vid, JobState.DONE, 0)
        done = job_record(report, fence=self.told().fence)
        self.produce(names.DEFINITIONS, done.value, done.key or b"")

    def empty(self) -> None:
        """Take all that Redis holds."""
        client = redis.Redis.from_url(self.settings.redis_url)
        client.flushall()
        client.close()

    def given_up(self) -> Any:
        """Return what the decision has given up."""
        job = job_named(self.fold(), "default", ADOPT)
        assert job is not None
        assert job.report is not None
        return job.report.facts["given_up"]

    def incomplete_before_ms(self) -> int:
        """Return from when on panes are complete, by the newest start record."""
        return self.told().incomplete_before_ms

    def told(self) -> Start:
        """Return the newest start record."""
        start = self.fold().start()
        assert start is not None
        return start

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
    before_ms = SystemClock().now_ms()
    installation.decide()
    installation.start()

    gone = {"partition": 0, "first": 0, "last": COUNTED - 1, "shards": [0, 1], "count": COUNTED}
    assert installation.given_up()["gone"] == [gone]
    lead_ms = installation.incomplete_before_ms() - LEAD_LIMIT_MS - HORIZON_MS
    assert before_ms <= lead_ms <= SystemClock().now_ms()


def test_with_redis_emptied_too_the_last_epoch_knows_the_log(installation: Installation) -> None:
    """Else what was counted of the old log would be gone without a word, and nothing incomplete."""
    installation.stand(installation.start(), COUNTED)
    installation.new_log()
    installation.empty()
    for _ in range(2):
        with pytest.raises(VerdictError, match="the topic was created anew"):
            installation.start()
    before_ms = SystemClock().now_ms()
    installation.decide()
    installation.start()
    assert "the topic was created anew" in installation.given_up()["because"]
    incomplete_ms = installation.incomplete_before_ms()
    assert incomplete_ms >= before_ms + LEAD_LIMIT_MS + HORIZON_MS

    # The decision is used up, and the new log is the one that is counted.
    installation.close()
    installation.empty()
    installation.start()
    assert installation.incomplete_before_ms() == incomplete_ms
