"""How keys are followed while brokers refuse their reader, and let it in again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from secured import PASSWORD, SecuredBroker, secured_broker
from weir.kafka import Kafka
from weir_ingest.key_reader import KeyReader
from weir_local.topics import TOPICS
from weir_local.waiting import wait_until

pytestmark = pytest.mark.stack
USER = "weir-kafka-ingest"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[SecuredBroker]:
    """Return a broker with users and topics."""
    with secured_broker(tmp_path) as broker:
        broker.create_topics(TOPICS)
        yield broker


def set_password(broker: SecuredBroker, password: str) -> None:
    """Give the reader's user a password at the broker."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    told = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(USER, told, password.encode(), b"salt" * 4)
    for future in admin.alter_user_scram_credentials([change]).values():
        future.result()


def test_each_refusal_is_told(broker: SecuredBroker) -> None:
    """Refused before the start and twice while it follows: three times told, each mend as well.

    No record is written meanwhile: that brokers answer again is seen without one.
    """
    kafka = Kafka(
        broker.by_password,
        "SASL_SSL",
        "SCRAM-SHA-512",
        USER,
        PASSWORD,
        ca_file=str(broker.authority.certificate),
    )
    reader = KeyReader(kafka, lambda _keys, _at_end: None)
    set_password(broker, "another")

    def await_told(event: str, times: int) -> None:
        wait_until(
            lambda: sum(line["event"] == event for line in said) == times,
            timeout_s=60,
            what=f"{event} told {times} times",
        )

    with structlog.testing.capture_logs() as said:
        reader.start()
        try:
            for life in (1, 2, 3):
                if life > 1:
                    set_password(broker, "another")
                    broker.kill()  # who is connected was asked before
                    broker.start()
                await_told("log_refused", life)
                set_password(broker, PASSWORD)
                await_told("log_admits_again", life)
        finally:
            reader.stop()
