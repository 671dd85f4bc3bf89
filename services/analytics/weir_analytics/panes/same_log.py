"""The id of a log; whether it is still the one that was found at the start (I13).

A topic that is deleted and created anew under its name has another id, and offsets of its own.
Spark asks for offsets alone: a new log that has grown past the place where counting stood would
be read on, under marks of the old one, until somebody starts a driver. The simulation of the
commit protocol finds such runs.

Between the question and the reading of a range lie milliseconds; a topic takes longer to go, to
come back and to grow.
"""

from __future__ import annotations

from functools import lru_cache

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from weir.commit import Verdict
from weir.kafka import Kafka

from weir_analytics.panes.recovery import VerdictError

TIMEOUT_S = 15.0
# A client that is kept tries again that soon however long the brokers were away; by itself it comes
# to wait ten seconds, while whoever asks holds the turn.
RECONNECT_MS = 500


def topic_id(kafka: Kafka, topic: str) -> str:
    """Return Kafka's own id of a topic: a topic created anew under its name has another.

    Raises:
        KafkaException: If there is none of that name, or no broker answered.
    """
    try:
        return id_of(_kept_client(kafka), topic)
    except KafkaException:
        # Whoever asks again does so anew, such as by certificates that were renewed.
        _kept_client.cache_clear()
        raise


@lru_cache(1)
def _kept_client(kafka: Kafka) -> AdminClient:
    """Return the client that this process asks: a new one's first two answers take 60 ms each."""
    told = {"log_level": 0, "reconnect.backoff.max.ms": RECONNECT_MS}
    return AdminClient({**kafka.client_options(), **told})


def id_of(admin: AdminClient, topic: str, *, timeout_s: float = TIMEOUT_S) -> str:
    """Return the same by a client that is there; raises what `topic_id` does."""
    futures = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_s)
    return str(futures[topic].result().topic_id)


class SameLog:
    """One topic, as it was found; asking takes some milliseconds, and a third of one of CPU."""

    def __init__(self, kafka: Kafka, topic: str, topic_id: str) -> None:
        self._kafka, self._topic, self._id = kafka, topic, topic_id

    def check(self) -> None:
        """Do nothing if it is the same.

        Raises:
            VerdictError: FOREIGN if it is another.
            KafkaException: If there is none now, or no broker answered.
        """
        now = topic_id(self._kafka, self._topic)
        if now != self._id:
            msg = (
                f"{self._topic} must have topic id {self._id}, got {now}: the topic was created "
                "anew while it was counted; go on only by a recorded adopt, which counts the new "
                "log from its start and gives the old panes up"
            )
            raise VerdictError(Verdict.FOREIGN, msg)
