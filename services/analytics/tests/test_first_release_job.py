"""A driver of this release goes on where the first one stood: its log, its Redis, byte for byte.

The state is that of `first_release.json`. What of it only an installation knows is put in: the ids
that Kafka gave its topics, and instants that are not over. The log before the marks holds what
the first release had counted, so whatever is counted twice, or counted anew, shows.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from first_release import TOPICS, Value, redis_state
from weir import names
from weir.admission import Admitted, Terms, admit
from weir.corrections import decode
from weir.definitions.records import Edit, put_record
from weir.kafka import Kafka
from weir.topics import Topic
from weir_analytics.panes.same_log import topic_id
from weir_local.kafka import Broker
from weir_local.redis import RedisServer

from .live_job import EVENT, Job, Panes, World, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.redis, pytest.mark.spark]

START_S = 1_800_000_000
IDS = {names.DEFINITIONS: "xQ0bOZ1QRRyHzJt9Jm9m3g", names.EVENTS: "K2n0dV5bT1mJ8q0pQ3u6Yw"}
MARKS = {0: 52, 1: 12}
OLD, NEW = 0, 3
LENGTH_S = 10
# What the rows of the first release hold: of `*` more than the log ever had.
LEFT = {"=de": (3, 35.5), "=at": (1, 7.25), "*": (70_000, 0.0)}
COUNTED = [("de", 10.0), ("de", 20.0), ("de", 5.5), ("at", 7.25)]


class Installation(World):
    """What the first release left behind, with a log of two partitions.

    Attributes:
        start_s: Where the pane starts that it held: the first one of the second version.
    """

    def __init__(self, bootstrap: str, redis_url: str) -> None:
        super().__init__(bootstrap, redis_url)
        self.start_s = int(time.time()) // 60 * 60 - 120
        self._ids = {told: topic_id(Kafka(bootstrap), name) for name, told in IDS.items()}
        self._fill_log()
        for key, value in TOPICS[names.DEFINITIONS]:
            self.producer.produce(names.DEFINITIONS, self._own(value), key)
        self.producer.flush(10)
        for redis_key, left in redis_state().items():
            self._put(redis_key.replace(str(START_S), str(self.start_s)), left)

    def _fill_log(self) -> None:
        """Write what the first release had counted, up to its marks."""
        for number, (country, total) in enumerate(COUNTED):
            self.order(f"old-{number}", country, total, partition=0)
        self.producer.flush(10)
        for partition, end in MARKS.items():
            for number in range(len(COUNTED) if partition == 0 else 0, end):
                self.order(f"of-{partition}-{number}", "de", 1.0, "shop.visit", partition=partition)
        self.producer.flush(10)

    def order(
        self,
        event_id: str,
        country: str,
        total: float,
        event_type: str = "shop.order",
        *,
        at_s: int = 1,
        partition: int,
    ) -> None:
        """Produce an event as ingest does; `at_s` counts from the start of the pane."""
        moment = datetime.fromtimestamp(self.start_s + at_s, UTC).isoformat()
        item: dict[str, Any] = {"specversion": "1.0", "id": event_id, "source": "s"}
        item |= {"type": event_type, "time": moment}
        item["data"] = {"country": country, "total": total, "user": event_id}
        now_ms = time.time_ns() // 1_000_000
        found = admit(json.dumps(item).encode(), 0, Terms("shop", "web", now_ms, "test"))
        assert isinstance(found, Admitted)
        self.producer.produce(
            names.EVENTS, found.value, found.key, headers=EVENT, partition=partition
        )

    def _put(self, key: str, left: Value) -> None:
        if key == names.BATCHES:
            assert isinstance(left, dict)
            for entry, text in left.items():
                self.redis.xadd(key, {"r": self._own(text)}, id=entry)
        elif isinstance(left, dict):
            # Rows are no texts: what they hold stays as it is.
            binary = ":p:" in key or ":ids:" in key
            own = {f: text if binary else self._own(text) for f, text in left.items()}
            self.redis.hset(key, mapping=own)
        else:
            self.redis.set(key, self._own(left))

    def _own(self, text: bytes) -> bytes:
        """Return a text with the ids of this installation's topics, and its instants."""
        told = text.decode()
        for theirs, ours in self._ids.items():
            told = told.replace(theirs, ours)
        later_s = self.start_s - START_S

        def instant(found: re.Match[str]) -> str:
            is_ms = len(found[0]) == len(str(START_S)) + 3
            return str(int(found[0]) + later_s * (1000 if is_ms else 1))

        return re.sub(r"\b18000\d{5}(?:\d{3})?\b", instant, told).encode()

    def recount(self, *, first: dict[int, int], event_type: str = "shop.order") -> Panes:
        """Count the log the slow way from some offsets on; every id once."""
        found: dict[tuple[int, int, str], tuple[int, float]] = {}
        seen: set[str] = set()
        for message in self.log():
            if message.value() is None:
                continue
            event = json.loads(message.value())
            is_new = event["id"] not in seen
            seen.add(event["id"])
            counts = is_new and event["type"] == event_type
            if counts and message.offset() >= first[message.partition()]:
                at_s = int(datetime.fromisoformat(event["time"]).timestamp())
                key = (at_s - at_s % LENGTH_S, 0, f"={event['data']['country']}")
                n, total = found.get(key, (0, 0.0))
                found[key] = (n + 1, total + event["data"]["total"])
        return found

    def records_of(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of a kind that a driver appended to the definitions."""
        found = [json.loads(message.value()) for message in self.log(names.DEFINITIONS)]
        return [one for one in found if one.get("record") == kind]


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """Return an installation that the first release has left."""
    server, broker = RedisServer(tmp_path / "redis"), Broker(tmp_path / "kafka")
    logged = {"message.timestamp.type": "LogAppendTime"}
    others = (names.DEFINITIONS, names.QUARANTINE, names.CORRECTIONS, names.ALERTS)
    try:
        server.start()
        broker.start()
        broker.create_topics(
            [Topic(names.EVENTS, 2, logged), *(Topic(n, 1, logged) for n in others)]
        )
        yield Installation(broker.bootstrap, server.url)
    finally:
        server.kill()
        broker.kill()


def expected(world: Installation) -> tuple[Panes, Panes]:
    """Return what either version must hold: what was left, and what came since; cut in two."""
    old: Panes = {}
    new: Panes = {(world.start_s, 0, series): row for series, row in LEFT.items()}
    for key, (n, total) in world.recount(first=MARKS).items():
        panes = old if key[0] < world.start_s else new
        had, sum_before = panes.get(key, (0, 0.0))
        panes[key] = (had + n, sum_before + total)
    return old, new


def test_it_goes_on_where_the_first_release_stood(
    installation: Installation, tmp_path: Path
) -> None:
    """What was counted stays, what comes is added once, on its side of the cut; and so again.

    The takeover of the first release holds: nobody fills that version again. An edit by this
    release is counted from the log and takes over, once.
    """
    world = installation
    settings = {"SHARDS": "1", "HORIZON_MS": "86400000"}
    job = Job(world.bootstrap, world.redis_url, tmp_path / "job", settings=settings)
    try:
        for life in range(2):
            job.start()
            world.order("old-0", "de", 10.0, partition=0)  # sent again: a duplicate
            world.order(f"{life}-late", "at", 2.0, at_s=5, partition=1)
            world.order(f"{life}-before", "de", 4.0, at_s=-5, partition=1)
            world.order(f"{life}-new", "fr", 8.0, at_s=65, partition=0)
            world.wait_counted()
            assert (world.panes(OLD, LENGTH_S), world.panes(NEW, LENGTH_S)) == expected(world)
            assert job.lines("reconciled")[-1]["verdict"] != "lost"
            job.kill()
        assert [one["vid"] for one in world.records_of("takeover")] == [NEW]
        assert len(world.records_of("lane")) == 1
        told = [decode(message.value()) for message in world.log(names.CORRECTIONS)]
        found = [one for one in told if (one.res_s, one.series) == (LENGTH_S, "=at")]
        # By its newest record the first release was filling the version still, so nobody was told
        # that a pane of it is final until a batch of this release confirmed that it is filled.
        changes = [(one.was and one.was.n, one.now and one.now.n) for one in found]
        assert changes == [(2, 3)]

        edited = TOPICS[names.DEFINITIONS][3][1]
        text = json.loads(edited)["text"].replace("EUR", "USD")
        record = put_record(Edit("shop", "metric", "orders", 2, "test", 0), text)
        world.producer.produce(names.DEFINITIONS, record.value, record.key)
        world.producer.flush(10)
        job.start()
        wait_for(lambda: len(world.records_of("takeover")) == 2, "the edit to take over")
        world.wait_counted()
        vid = world.fold().get("shop", "metric", "orders").vid
        assert [one["after"] for one in world.records_of("takeover")] == [OLD, NEW]
        assert world.panes(vid, LENGTH_S) == world.recount(first={0: 0, 1: 0})
    finally:
        job.kill()
