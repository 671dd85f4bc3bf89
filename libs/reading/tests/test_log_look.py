"""A look at the log, beside a broker that goes and comes back.

What it finds is tested where it is used: `test_log_watch.py` and `test_log_kept.py`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from weir.kafka import Kafka
from weir_local.kafka import Broker
from weir_local.topics import TOPICS
from weir_local.waiting import wait_until
from weir_reading.log_look import GroupPlaces

# A process of its own: what this is about ends one without an exception.
LOOKS = """
import sys, time
from confluent_kafka import KafkaException
from weir.kafka import Kafka
from weir_reading.log_look import GroupPlaces

places = GroupPlaces(Kafka(sys.argv[1]))
while True:
    try:
        print("seen" if places.read() else "nothing", flush=True)
    except (KafkaException, TimeoutError):
        print("away", flush=True)
    time.sleep(0.01)
"""


@pytest.mark.kafka
def test_a_topic_that_is_not_seen_is_refused(kafka: str) -> None:
    """Of one that it may not see, or that is gone, Kafka names no partition: not none to wait."""
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        GroupPlaces(Kafka(kafka), "nowhere").read()


@pytest.mark.kafka
def test_a_broker_that_comes_back_ends_nobody(tmp_path: Path) -> None:
    """Whoever looks all the while sees it go, and sees again once it is there."""
    broker, said = Broker(tmp_path / "kafka"), tmp_path / "said"
    broker.start()
    try:
        broker.create_topics(TOPICS)
        command = [sys.executable, "-c", LOOKS, broker.bootstrap]
        with said.open("w") as out, subprocess.Popen(command, stdout=out) as looking:  # noqa: S603

            def await_word(word: str) -> None:
                """Return once it has been said from now on, by a process that still runs."""
                before = said.read_text().count(word)
                wait_until(
                    lambda: looking.poll() is not None or said.read_text().count(word) > before,
                    timeout_s=60,
                    what=word,
                )
                assert looking.poll() is None

            try:
                await_word("seen")
                broker.kill()
                await_word("away")
                broker.start()
                await_word("seen")
            finally:
                looking.kill()
    finally:
        broker.kill()
