"""Keys that another producer wrote and that cannot be used."""

from __future__ import annotations

import json

import pytest
import structlog
from confluent_kafka import Producer
from weir import names
from weir.definitions.records import Edit, put_record
from weir.kafka import Kafka
from weir_ingest.key_reader import KeyReader, Known
from weir_ingest.keys import StoredKey
from weir_local.waiting import wait_until

pytestmark = pytest.mark.kafka


def test_a_key_that_cannot_be_used_changes_nothing(kafka: str) -> None:
    """The key before it opens what it did, one without a predecessor nothing; both are told."""
    producer = Producer({"bootstrap.servers": kafka, "acks": "all"})

    def write(key_id: str, based_on: int | None, **members: object) -> None:
        text = json.dumps({"kind": "key", "name": key_id, **members})
        record = put_record(Edit("acme", "key", key_id, based_on, by="other", at_ms=1), text)
        producer.produce(names.DEFINITIONS, record.value, record.key)
        producer.flush(30)

    seen: dict[str, StoredKey] = {}

    def see(known: Known, _at_end: bool) -> None:
        seen.update({one.id: one for one in known.keys})

    reader = KeyReader(Kafka(kafka), see)
    write("passed01", None, hash="0" * 64, scopes=["ingest"])
    write("passed01", 1, hash="a secret of mine", scopes=["ingest"])
    producer.produce(names.DEFINITIONS, b"\xff\xfe", b"acme/key/passed01")
    write("passed02", None, hash="0" * 64, scopes="ingest, all")
    write("passed03", None, hash="1" * 64, scopes=["read"])
    with structlog.testing.capture_logs() as said:
        reader.start()
        try:
            wait_until(lambda: "passed03" in seen, timeout_s=30, what="the last key")
        finally:
            reader.stop()
    assert seen["passed01"].hash == "0" * 64
    assert "passed02" not in seen
    told = [one["name"] for one in said if one["event"] == "key_unreadable"]
    # The log of definitions is that of other tests, too.
    assert [name for name in told if name.startswith("passed")] == ["passed01", "passed02"]
    assert "a secret of mine" not in json.dumps(said, default=str)
