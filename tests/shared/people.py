"""What people do about alerts, as the dashboard writes it: silences, acknowledgements, tests."""

from __future__ import annotations

import uuid

from alerts_job import define
from confluent_kafka import Consumer, Producer, TopicPartition
from weir import names
from weir.alerts.listing import Alert, Listing
from weir.alerts.records import Acknowledgement, Record, Trial, encode
from weir.clock import SystemClock
from weir.definitions.silence import instant_text

TENANT = "default"


def say(bootstrap: str, record: Record) -> None:
    """Append a record of `weir.alerts`."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(names.ALERTS, encode(record), TENANT, partition=0)
    assert producer.flush(10) == 0


def silence(bootstrap: str, rule: str, until_ms: int, at_ms: int) -> None:
    """Silence a rule's alerts."""
    body = {"rule": rule, "until": instant_text(until_ms), "reason": "planned"}
    define(bootstrap, "silence", rule, body, at_ms)


def unsilence(bootstrap: str, rule: str, at_ms: int) -> None:
    """End the silence of a rule."""
    define(bootstrap, "silence", rule, None, at_ms, based_on=1)


def acknowledge(bootstrap: str, rule: str, until_ms: int | None) -> None:
    """Take on what fires of a rule up to an instant, or with None give it back."""
    for alert in firing(bootstrap, rule):
        record = Acknowledgement(
            tenant=TENANT,
            alert=alert.id,
            op="delete" if until_ms is None else "put",
            by="ann",
            until_ms=until_ms or 0,
        )
        say(bootstrap, record)


def ask_for_test(bootstrap: str, channel: str) -> str:
    """Ask for a test of a channel; return its id."""
    number = f"test_{uuid.uuid4().hex}"
    now_ms = SystemClock().now_ms()
    say(bootstrap, Trial(tenant=TENANT, id=number, channel=channel, by="ann", at_ms=now_ms))
    return number


def firing(bootstrap: str, rule: str) -> list[Alert]:
    """Return the alerts of a rule that fire, as `weir.alerts` says."""
    found = listing(bootstrap).alerts(TENANT)
    return [alert for alert in found if alert.rule == rule and alert.is_open]


def listing(bootstrap: str) -> Listing:
    """Return everything that `weir.alerts` says now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    place = TopicPartition(names.ALERTS, 0, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=10)
    consumer.assign([place])
    found = Listing()
    while found.reader.next_offset < end:
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        found.apply(message.offset() or 0, message.value() or b"")
    consumer.close()
    return found
