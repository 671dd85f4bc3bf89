"""The log's brokers: a second one, partitions that are added, and where each partition ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from disruption.rig import Rig
from weir import names
from weir_local import ports
from weir_local.kafka import Broker


class SecondBroker(Broker):
    """A broker of the same cluster, which leads what is assigned to it and is no controller.

    Attributes:
        NODE: Its number; the first one has 1.
    """

    NODE = 2

    def __init__(self, folder: Path, first: Broker) -> None:
        """Prepare it; the first one runs already.

        Args:
            folder: Where its log, settings and output go.
            first: The broker whose cluster it joins.
        """
        self._first = first
        super().__init__(folder)

    def _server_settings(self) -> dict[str, str]:
        of_first = self._first._server_settings()
        return {
            **super()._server_settings(),
            "process.roles": "broker",
            "node.id": str(self.NODE),
            "listeners": f"PLAINTEXT://{ports.HOST}:{self.port}",
            "controller.quorum.voters": of_first["controller.quorum.voters"],
        }

    def _cluster_id(self) -> str:
        told = (self._first._log_dir / "meta.properties").read_text()
        found = re.search(r"^cluster\.id=(.+)$", told, re.MULTILINE)
        assert found is not None, "the first broker must have a log"
        return found[1]


@contextmanager
def second_broker(rig: Rig, env: Mapping[str, str]) -> Iterator[Broker]:
    """Yield another broker of a rig's cluster; it ends with the block.

    Args:
        rig: A stack that runs.
        env: What its process is told besides.
    """
    broker = SecondBroker(rig.home.folder / "kafka2", rig.stack.broker)
    broker.part.env = {**broker.part.env, **env}
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def log_ends(rig: Rig) -> dict[int, int]:
    """Return the end of each partition of the log, once each has a leader."""
    return {p: end for p, (_first, end) in _bounds(rig).items()}


def log_begins(rig: Rig) -> dict[int, int]:
    """Return the first offset that each partition of the log still has."""
    return {p: first for p, (first, _end) in _bounds(rig).items()}


def _bounds(rig: Rig) -> dict[int, tuple[int, int]]:
    consumer = Consumer({"bootstrap.servers": rig.kafka_bootstrap, "group.id": "ends"})

    def bounds() -> dict[int, tuple[int, int]] | None:
        known = consumer.list_topics(names.EVENTS, timeout=10).topics[names.EVENTS].partitions
        places = {p: TopicPartition(names.EVENTS, p) for p in known}
        try:
            return {p: consumer.get_watermark_offsets(at, timeout=10) for p, at in places.items()}
        except KafkaException:
            return None

    found = rig.wait_until(bounds, "the bounds of the log")
    consumer.close()
    return found


def grow(rig: Rig, partitions: int, *, on: int | None = None) -> None:
    """Add partitions to the log.

    Args:
        rig: The stack.
        partitions: How many there are to be in all.
        on: The broker that leads the new ones; None: whichever Kafka chooses.
    """
    admin = AdminClient({"bootstrap.servers": rig.kafka_bootstrap})
    where = () if on is None else ([[on]] * (partitions - len(log_ends(rig))),)
    more = NewPartitions(names.EVENTS, partitions, *where)
    for done in admin.create_partitions([more]).values():
        done.result(30)
    rig.wait_until(lambda: len(log_ends(rig)) == partitions, "the partitions")
