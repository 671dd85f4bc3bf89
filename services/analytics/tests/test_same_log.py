"""A log that is created anew while it is counted, on a real broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from weir.commit import Verdict
from weir.kafka import Kafka
from weir.topics import Topic
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.same_log import SameLog, _kept_client, topic_id
from weir_local.kafka import Broker
from weir_local.waiting import wait_until

pytestmark = pytest.mark.kafka


def test_another_log_under_the_name_ends_counting(
    kafka_broker: Broker, new_topic: Callable[[], str]
) -> None:
    """With both ids and what to do; a topic that is not there is waited for, as Kafka is."""
    where, topic = Kafka(kafka_broker.bootstrap), new_topic()
    found = topic_id(where, topic)
    log = SameLog(where, topic, found)
    log.check()
    kept = _kept_client(where)
    log.check()
    assert _kept_client(where) is kept, "a new one is slow"

    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    admin.delete_topics([topic])[topic].result(10)
    wait_until(lambda: is_refused(log), timeout_s=10, what="the end of the topic")
    assert _kept_client(where) is not kept, "one that fails may do so for ever"
    kafka_broker.create_topics([Topic(topic, 1, {})])

    with pytest.raises(VerdictError) as caught:
        wait_until(lambda: not is_refused(log), timeout_s=10, what="the new one")
    assert caught.value.verdict is Verdict.FOREIGN
    assert str(caught.value) == (
        f"{topic} must have topic id {found}, got {topic_id(where, topic)}: the topic was created "
        "anew while it was counted; go on only by a recorded adopt, which counts the new log from "
        "its start and gives the old panes up"
    )


def is_refused(log: SameLog) -> bool:
    """Tell whether there is no such topic."""
    try:
        log.check()
    except KafkaException:
        return True
    return False
