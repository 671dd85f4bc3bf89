"""The real servers: they start, keep what they acknowledged, and end when told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from weir.topics import Topic
from weir_local.kafka import Broker
from weir_local.process import PartError
from weir_local.redis import RedisServer


@pytest.mark.kafka
def test_kafka_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    """A record that was acknowledged is there again after a SIGKILL of the broker."""
    broker = Broker(tmp_path)
    broker.start()
    try:
        broker.create_topics([Topic("kept")])
        producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
        producer.produce("kept", b"value")
        assert producer.flush(10) == 0
        producer.close()
        broker.kill()
        broker.start()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
        consumer.assign([TopicPartition("kept", 0, 0)])
        message = consumer.poll(20)
        consumer.close()
        assert message is not None
        assert message.value() == b"value"
    finally:
        broker.kill()
    assert broker.part.pid() is None


@pytest.mark.redis
def test_durable_redis_keeps_its_keys(tmp_path: Path) -> None:
    """A durable server has its keys again after a clean stop, and never evicts."""
    server = RedisServer(tmp_path, durable=True)
    server.start()
    try:
        client = redis.Redis.from_url(server.url)
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        client.set("name", "value")
        client.close()
        server.stop()
        server.start()
        client = redis.Redis.from_url(server.url)
        assert client.get("name") == b"value"
        client.close()
    finally:
        server.kill()


@pytest.mark.redis
def test_a_server_that_lost_its_port_is_not_up(tmp_path: Path) -> None:
    """Another one answers there; who asked for a server of its own is told."""
    first = RedisServer(tmp_path / "first")
    second = RedisServer(tmp_path / "second", port=first.port)
    try:
        first.start()
        with pytest.raises(PartError, match=r"redis has ended with exit status 1: .*in use"):
            second.start()
        assert first.serves()
    finally:
        second.kill()
        first.kill()


@pytest.mark.kafka
def test_session_broker_has_the_topics(kafka: str, new_topic: Callable[..., str]) -> None:
    """The shared broker has Weir's topics, and a test can have one of its own."""
    name = new_topic("mine", 3)
    topics = AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=10).topics
    assert len(topics["weir.events"].partitions) == 4
    assert len(topics[name].partitions) == 3


@pytest.mark.redis
def test_redis_url_is_empty(redis_url: str) -> None:
    """Each test gets a Redis that holds nothing."""
    client = redis.Redis.from_url(redis_url)
    assert client.dbsize() == 0
    client.set("left", "over")
    client.close()


@pytest.mark.redis
def test_redis_url_is_empty_again(redis_url: str) -> None:
    """What one test wrote is gone in the next."""
    client = redis.Redis.from_url(redis_url)
    assert client.dbsize() == 0
    client.close()
