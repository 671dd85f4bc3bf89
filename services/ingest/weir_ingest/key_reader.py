"""Follows `weir.definitions` for who may send: from its start, without a group, for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from weir import names
from weir.definitions.fold import Definitions
from weir.definitions.history import Definition
from weir.definitions.in_force import refusal as refusal_of
from weir.definitions.key import Key
from weir.definitions.outcomes import Outcome
from weir.definitions.source import Source
from weir.kafka import Kafka, refusal
from weir.problems import ProblemError

from weir_ingest.keys import SCOPE, StoredKey

_BATCH = 500
_WAIT_S = 0.2
_METADATA_TIMEOUT_S = 2.0
_RETRY_S = 1.0

_log = structlog.get_logger()


class Known(NamedTuple):
    """Who may send.

    Attributes:
        keys: By their keys.
        apps: Without one, by the app ids of Snowplow's trackers.
    """

    keys: list[StoredKey]
    apps: dict[str, StoredKey]


class KeyReader:
    """A thread that folds the keys and hands each new state to the event loop."""

    def __init__(self, kafka: Kafka, on_change: Callable[[Known, bool], None]) -> None:
        """Prepare the thread.

        Args:
            kafka: How brokers are reached.
            on_change: Called from the thread with who may send, and whether the end
                of the topic, as it was at the start, has been reached.
        """
        self._kafka = kafka
        self._refused: str | None = None
        self._on_change = on_change
        self._definitions = Definitions()
        self._apps: dict[str, StoredKey] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keys", daemon=True)

    def start(self) -> None:
        """Start following."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and return when the thread has ended."""
        self._stopping.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        consumer = Consumer(
            {
                **self._kafka.client_options(),
                "group.id": "weir-ingest",  # asked for by the library; never joined
                "client.id": "weir-ingest-keys",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 1_000,
                "error_cb": self._on_error,
                "log_level": 4,
            }
        )
        try:
            end = self._end_at_start(consumer)
            consumer.assign([TopicPartition(names.DEFINITIONS, 0, OFFSET_BEGINNING)])
            self._follow(consumer, end)
        finally:
            consumer.close()

    def _end_at_start(self, consumer: Consumer) -> int:
        """Return the end of the topic, waiting for the broker as long as it takes."""
        while not self._stopping.is_set():
            try:
                end = _end(consumer)
            except KafkaException as error:
                _log.warning("definitions_unreachable", error=str(error))
                # The library says why brokers refuse from here only.
                consumer.poll(0)
                self._stopping.wait(_RETRY_S)
            else:
                consumer.poll(0)  # what it has yet to say is of before
                self._admit()
                return end
        return 0

    def _is_admitted_again(self, consumer: Consumer) -> bool:
        """Return whether brokers that refused answer; where nothing is written no record tells."""
        if self._refused is None:
            return False
        try:
            _end(consumer)
        except KafkaException:
            return False
        return True

    def _admit(self) -> None:
        """Forget a refusal that is over, so that the next one is told, whatever its kind."""
        if self._refused is not None:
            self._refused = None
            _log.info("log_admits_again")

    def _on_error(self, error: KafkaError) -> None:
        """Tell once in words why the brokers let nobody in; they are asked for ever."""
        why = refusal(error.name(), error.str())
        if why is not None and self._refused != error.name():
            self._refused = error.name()
            _log.error("log_refused", why=why)

    def _follow(self, consumer: Consumer, end: int) -> None:
        at_end = end == 0
        if at_end:
            self._on_change(self._known(), True)
        while not self._stopping.is_set():
            changed, admitted = False, self._is_admitted_again(consumer)
            for message in _next(consumer):
                if message.error() is not None:
                    _log.warning("definitions_read", error=str(message.error()))
                    continue
                changed |= self._fold(message)
                at_end = at_end or (message.offset() or 0) + 1 >= end
                changed |= at_end
            if admitted:
                self._admit()
            if changed:
                self._on_change(self._known(), at_end)

    def _fold(self, message: Message) -> bool:
        """Apply one record; say whether it changed who may send."""
        change = self._definitions.apply(
            message.offset() or 0, message.key() or b"", message.value()
        )
        if change is None:
            return False
        if not change.applied and change.outcome not in (Outcome.CONFLICT, Outcome.HELD):
            _log.warning("definition_ignored", offset=change.offset, note=change.note)
        changed = False
        for one in change.versions:
            if one.kind not in ("key", "source"):
                continue
            problem = refusal_of(one)
            changed |= problem is None
            if problem is not None:
                _tell_unreadable(one, problem)
            elif one.kind == "source":
                self._apps = claimed(self._apps, self._definitions.current(kind="source"))
        return changed

    def _known(self) -> Known:
        """Return who may send now; what cannot be read changes nothing."""
        current = self._definitions.current
        return Known(keys_of(current(kind="key"), current(kind="source")), self._apps)


def _end(consumer: Consumer) -> int:
    """Return the end of the topic.

    Raises:
        KafkaException: If no broker told it in time.
    """
    partition = TopicPartition(names.DEFINITIONS, 0)
    _, end = consumer.get_watermark_offsets(partition, timeout=_METADATA_TIMEOUT_S)
    return int(end)


def _next(consumer: Consumer) -> list[Message]:
    """Return what is there, and wait only if nothing is: `consume` alone waits till it is full."""
    first = consumer.poll(_WAIT_S)
    return [] if first is None else [first, *consumer.consume(_BATCH, timeout=0)]


def keys_of(keys: Sequence[Definition], sources: Sequence[Definition]) -> list[StoredKey]:
    """Return the keys that definitions describe, with what those of their sources say.

    Raises:
        ProblemError: If one is no definition of a key.
    """
    times = {(one.tenant, one.name): _source_of(one).time_field or "" for one in sources}
    stored = [stored_key(one) for one in keys]
    return [replace(one, time_field=times.get((one.tenant, one.source), "")) for one in stored]


def stored_key(definition: Definition) -> StoredKey:
    """Return the key that a definition describes.

    Raises:
        ProblemError: If it is no definition of a key.
    """
    key = definition.model
    assert isinstance(key, Key)  # noqa: S101 - the kind says so
    return StoredKey(
        id=key.name,
        tenant=definition.tenant,
        hash=key.hash,
        scopes=frozenset(key.scopes),
        source=key.source,
        expires_ms=key.expires,
        events_per_s=key.events_per_s,
        bytes_per_s=key.bytes_per_s,
    )


def _tell_unreadable(definition: Definition, problem: ProblemError) -> None:
    if definition.kind == "key":
        _log.error("key_unreadable", name=definition.name, error=problem.message)
    else:
        _log.error("source_unreadable", name=definition.name, error=problem.message)


def claimed(owners: Mapping[str, StoredKey], sources: Sequence[Definition]) -> dict[str, StoredKey]:
    """Return who sends by which app id, after a source was changed.

    Whoever has one keeps it as long as its source lists it: no tenant takes another's by
    naming it, too. One that is free goes to the source that was written first. It is a fold
    over the topic, so every replica decides alike.

    Args:
        owners: As it was before the change.
        sources: In force after it.
    """
    listing = sorted(sources, key=lambda one: one.vid)
    lists = {(one.tenant, one.name): _source_of(one).app_ids for one in listing}
    kept = {
        app_id: owner
        for app_id, owner in owners.items()
        if app_id in lists.get((owner.tenant, owner.source), ())
    }
    for (tenant, source), app_ids in lists.items():
        for app_id in app_ids:
            kept.setdefault(app_id, StoredKey("", tenant, "", frozenset({SCOPE}), source))
    return kept


def _source_of(definition: Definition) -> Source:
    source = definition.model
    assert isinstance(source, Source)  # noqa: S101 - the kind says so
    return source
