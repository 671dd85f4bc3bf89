"""Copies of what could not be used: whatever another producer wrote, the broker takes them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from weir import names
from weir.kafka import Kafka
from weir_analytics.panes.passing import is_outside
from weir_analytics.panes.quarantine import (
    Copy,
    Origin,
    QuarantineWriter,
    event_owner,
    kept_headers,
    reason_of,
)

if TYPE_CHECKING:
    from weir_analytics.panes.stored import StoredWriter

BROKER_LIMIT = 1_048_588
NOBODY = ("default", "kafka")
ORIGIN = Origin(names.EVENTS, "Qx-_1", 3, 9_000_000_000, 1_800_000_000_000)


def refused(value: bytes, headers: dict[str, bytes]) -> Copy:
    """Return the copy of a record that calls itself a refused item."""
    extra = kept_headers(headers)
    return Copy(ORIGIN, value, reason_of(headers), "default", "kafka", extra=extra)


class TestCopy:
    def test_an_offset_is_one_of_its_log(self) -> None:
        """A log that is made anew has the same offsets, and its records are others."""
        copy = Copy(ORIGIN, b"x", "too_deep", "acme", "web")
        anew = replace(copy, origin=replace(ORIGIN, topic_id="Qx-_2"))
        assert copy.key() == b"weir.events/Qx-_1/3/9000000000"
        assert dict(copy.record()[1])["weir-origin"] == copy.key()
        assert replace(copy, vid=7).key() == b"weir.events/Qx-_1/3/9000000000/7"
        assert anew.key() == b"weir.events/Qx-_2/3/9000000000"
        assert copy.origin.place == anew.origin.place == "weir.events/3/9000000000"

    def test_an_oversized_value_is_cut(self) -> None:
        """Of a value that no copy can hold the beginning is kept, with length and digest."""
        value = b"x" * 1_000_000
        kept, headers = refused(value, {}).record()

        assert kept == value[: 64 * 1024]
        assert dict(headers)["weir-length"] == b"1000000"
        assert dict(headers)["weir-sha256"] == hashlib.sha256(value).hexdigest().encode()

    def test_how_it_was_read_is_kept(self) -> None:
        """A replay reads a client's item by the mapping that ingest named."""
        _, headers = refused(b"{}", {"weir-mapping": b"segment"}).record()

        assert dict(headers)["weir-mapping"] == b"segment"

    def test_what_fits_is_kept_whole(self) -> None:
        """A value that fits with its headers is copied as it is, with what ingest said of it."""
        said = {"weir-length": b"2000000", "weir-sha256": b"a" * 64, "weir-reason": b"too_deep"}
        kept, headers = refused(b"x" * 999_000, said).record()

        assert kept == b"x" * 999_000
        assert said.items() <= dict(headers).items()

    def test_headers_of_another_producer_are_not_believed(self) -> None:
        """A header that is no number, digest or code of ours is left out."""
        long = {"weir-length": b"1" * 65, "weir-sha256": b"a" * 900, "weir-reason": b"r" * 9000}
        _, headers = refused(b"x", long).record()

        assert {"weir-length", "weir-sha256"}.isdisjoint(dict(headers))
        assert dict(headers)["weir-reason"] == b"not_an_event"

    @pytest.mark.parametrize(
        ("value", "found"),
        [
            (b'{"weirtenant":"acme","weirsource":"web"}', ("acme", "web")),
            (b'{"weirtenant":"a\\u0001b","weirsource":"web"}', ("default", "web")),
            (b'{"weirtenant":"acme","weirsource":"%s"}' % (b"x" * 65), ("acme", "kafka")),
            (b'{"weirtenant":7}', ("default", "kafka")),
            (None, ("default", "kafka")),
            (b'{"weirtenant":"acme","data":' + b"[" * 5_000 + b"]" * 5_000 + b"}", NOBODY),
            (b"no json", NOBODY),
        ],
    )
    def test_owner_is_a_name_or_nobody(self, value: bytes | None, found: tuple[str, str]) -> None:
        """Tenant and source of a record are short names, or those of a foreign one."""
        assert event_owner(value) == found


def test_a_topic_that_stores_no_copy_is_no_versions_failure() -> None:
    """Nobody is searched for it; what Kafka said is told."""
    writer = QuarantineWriter(Kafka("nowhere:1"))
    why = KafkaError(KafkaError.NOT_ENOUGH_REPLICAS)
    writer._writer = cast("StoredWriter", SimpleNamespace(missing=lambda _wait_s: why))
    with pytest.raises(KafkaException, match="could not store copies in") as raised:
        writer.flush()
    assert is_outside(raised.value)


@pytest.mark.kafka
class TestWriter:
    @pytest.fixture
    def stored(self, kafka: str) -> Iterator[Consumer]:
        """Return a consumer at the end of the topic as it is now."""
        consumer = Consumer({"bootstrap.servers": kafka, "group.id": "quarantine-test"})
        place = TopicPartition(names.QUARANTINE, 0)
        place.offset = consumer.get_watermark_offsets(place, timeout=10)[1]
        consumer.assign([place])
        yield consumer
        consumer.close()

    @pytest.mark.parametrize("value_bytes", [900_000, 1_000_000, 1_048_000])
    def test_a_record_as_large_as_a_broker_takes_is_copied(
        self, kafka: str, stored: Consumer, value_bytes: int
    ) -> None:
        """A refused record that fills the broker's limit with its headers leaves a copy."""
        digest = b"d" * (BROKER_LIMIT - value_bytes - 100)
        writer = QuarantineWriter(Kafka(kafka))
        writer.send(refused(b"v" * value_bytes, {"weir-reason": b"x", "weir-sha256": digest}))

        assert writer.flush() == 1
        message = stored.poll(10)
        assert message is not None
        assert (message.value() or b"")[:1] == b"v"
