"""A look at the log, beside a broker that goes and comes back.

What it finds is tested where it is used: `test_log_watch.py` and `test_log_kept.py`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from weir.clock import ManualClock
from weir.kafka import Kafka
from weir.log_left import PartitionLog
from weir.log_place import LogPlace
from weir.retention import Retention
from weir_local.kafka import Broker
from weir_local.topics import TOPICS
from weir_local.waiting import wait_until
from weir_reading import log_look
from weir_reading.log_look import GroupPlaces, LogLook

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000

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


@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS])
@pytest.mark.parametrize("is_still", [True, False])
def test_a_clock_that_is_set_anew_hides_no_lane_and_tells_no_other(
    monkeypatch: pytest.MonkeyPatch, step_ms: int, is_still: bool
) -> None:
    """One that stands still is told after a minute, neither at once nor in an hour."""
    clock = ManualClock(NOW_MS)
    look = LogLook(Kafka("127.0.0.1:1"), clock)

    def logs(
        positions: dict[int, tuple[int, int | None]], _now_ms: int, _retention: Retention
    ) -> list[PartitionLog]:
        return [PartitionLog(p, 0, NOW_MS, 99, n, ms, 0.0) for p, (n, ms) in positions.items()]

    monkeypatch.setattr(log_look, "retention_of", lambda *_: Retention(24 * HOUR_MS, None))
    monkeypatch.setattr(look, "_logs", logs)
    told: list[bool] = []
    for n in range(6):
        if n == 2:
            clock.step(step_ms)
        lane_ms = NOW_MS - HOUR_MS if is_still else NOW_MS - HOUR_MS + n * 60_000
        place = LogPlace(99, clock.now_ms(), lane=7 if is_still else 7 + n, lane_ms=lane_ms)
        told.append(look.left({0: place}).is_lane)
        clock.advance(15_000)
    assert told == [False] * 4 + [is_still] * 2


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
