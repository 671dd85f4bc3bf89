"""Reads topics from the brokers and changes them.

Each call either did what it says or raises; doing it again is safe, and what was done
in part is seen at the next reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic
from weir.kafka import Kafka, refusal

from weir_ingest.topics.plan import Found, Plan

TIMEOUT_S = 5.0
# Trying again does not help: somebody has to change a right, a policy or a setting.
PERMANENT = frozenset(
    {
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_REQUEST,
    }
)


class Topics:
    """The topics of a cluster."""

    def __init__(self, kafka: Kafka) -> None:
        """Prepare a client; it connects by itself."""
        self._refusal: str | None = None
        told: dict[str, Any] = {"client.id": "weir-topics", "error_cb": self._on_error}
        # log_level 0: refused connections are told by the command, once.
        self._admin = AdminClient({**kafka.client_options(), **told, "log_level": 0})

    def refusal(self) -> str | None:
        """Return, in words, why brokers let nobody in; None if none said so."""
        self._admin.poll(0)
        return self._refusal

    def _on_error(self, error: KafkaError) -> None:
        self._refusal = refusal(error.name(), error.str()) or self._refusal

    def read(self, names: Iterable[str]) -> dict[str, Found]:
        """Return those topics that are there.

        Raises:
            KafkaException: If the brokers cannot be reached or refuse.
        """
        seen = self._admin.list_topics(timeout=TIMEOUT_S).topics
        there = {name: seen[name].partitions for name in names if name in seen}
        if not there:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in there]
        described = self._admin.describe_configs(resources, request_timeout=TIMEOUT_S)
        found = {}
        for resource, future in described.items():
            settings = future.result()
            partitions = there[resource.name]
            found[resource.name] = Found(
                partitions=len(partitions),
                replication=min((len(one.replicas) for one in partitions.values()), default=0),
                config={name: entry.value for name, entry in settings.items() if entry.value},
            )
        return found

    def carry_out(self, plan: Plan) -> None:
        """Do to a topic what is planned, and return when the brokers have taken it.

        Raises:
            KafkaException: If the brokers refuse, or cannot be reached.
        """
        topic = plan.wanted.topic
        if plan.create:
            new = NewTopic(
                topic.name,
                num_partitions=topic.partitions,
                replication_factor=plan.wanted.replication,
                config=dict(plan.config or {}),
            )
            _finish(self._admin.create_topics([new], request_timeout=TIMEOUT_S))
            return
        if plan.partitions is not None:
            more = NewPartitions(topic.name, plan.partitions)
            _finish(self._admin.create_partitions([more], request_timeout=TIMEOUT_S))
        if plan.config:
            _finish(
                self._admin.incremental_alter_configs(
                    [_altered(topic.name, plan.config)], request_timeout=TIMEOUT_S
                )
            )


def _altered(name: str, config: Mapping[str, str]) -> ConfigResource:
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in config.items()
    ]
    return ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)


def _finish(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result()
