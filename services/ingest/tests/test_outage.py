"""Kafka slow or away: 503 in time, memory bounded, and nothing answered 2xx is missing."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from weir_local.kafka import Broker
from weir_local.testing import running_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Ingest, LogReader

pytestmark = [pytest.mark.kafka, pytest.mark.disruption]


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return a broker that this test may stop."""
    with running_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@dataclass
class Sender:
    """Sends numbered events without pause and notes every answer."""

    ingest: Ingest
    number: int
    stopping: threading.Event
    answers: list[tuple[float, float, int, str]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Send until told to stop: start, length, status and id of each."""
        with httpx.Client(timeout=20) as client:
            count = 0
            while not self.stopping.is_set():
                count += 1
                event_id = f"{self.number}-{count}"
                body = b'{"type":"t","id":"%s","data":"%s"}' % (event_id.encode(), b"x" * 2_000)
                start_s = time.monotonic()
                response = client.post(
                    self.ingest.url,
                    content=body,
                    headers={"authorization": f"Bearer {self.ingest.key}"},
                )
                self.answers.append(
                    (start_s, time.monotonic() - start_s, response.status_code, event_id)
                )
                if response.status_code == 503:
                    self.refusals.append(response.text)
                    assert 1 <= int(response.headers["retry-after"]) <= 5
                    self.stopping.wait(0.05)


@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_kafka_away(
    fault: str,
    own_broker: Broker,
    start_ingest: Callable[..., Ingest],
    new_key: Callable[..., str],
    wait_for: Callable[..., Any],
    reader_of: Callable[[str], LogReader],
) -> None:
    """Within 5 s of the fault every answer is 503; after it every 2xx is in the log, once found."""
    ingest = start_ingest(own_broker.bootstrap, new_key(own_broker.bootstrap))
    wait_for(ingest.is_ready)
    stopping = threading.Event()
    senders = [Sender(ingest, n, stopping) for n in range(8)]
    threads = [threading.Thread(target=sender.run) for sender in senders]
    for thread in threads:
        thread.start()
    wait_for(lambda: sum(len(s.answers) for s in senders) > 200)
    before_bytes = ingest.rss_bytes()

    pid = own_broker.part.pid()
    assert pid is not None
    onset_s = time.monotonic()
    _inject(own_broker, pid, fault)
    most_bytes = _watch(ingest, seconds=20)
    healed_s = time.monotonic()
    _heal(own_broker, pid, fault)
    wait_for(lambda: any(a[2] == 200 and a[0] > healed_s for s in senders for a in s.answers), 30)
    stopping.set()
    for thread in threads:
        thread.join()

    answers = sorted(answer for sender in senders for answer in sender.answers)
    during = [a for a in answers if onset_s < a[0] < healed_s - 5]
    assert {status for *_, status, _ in answers} == {200, 503}
    assert [a for a in during if a[2] == 503]
    assert max(length for _, length, status, _ in answers if status == 503) < 5
    assert most_bytes - before_bytes < 50 << 20
    told = ingest.ops("/metrics").text
    (failures,) = re.findall(r"^weir_ingest_delivery_failures_total (\S+)$", told, re.MULTILINE)
    # The other answers were given without trying: nothing of those requests was sent.
    tried = sum("not confirmed" in answer for sender in senders for answer in sender.refusals)
    assert float(failures) == tried > 0
    stored = {
        r.event["id"] for r in reader_of(own_broker.bootstrap).since(dict.fromkeys(range(4), 0))
    }
    missing = {event_id for *_, status, event_id in answers if status == 200} - stored
    assert not missing


def test_a_full_queue_answers_in_time(
    own_broker: Broker,
    start_ingest: Callable[..., Ingest],
    new_key: Callable[..., str],
    wait_for: Callable[..., Any],
) -> None:
    """A request that got its room late still is answered within 5 s of its start."""
    key = new_key(own_broker.bootstrap)
    ingest = start_ingest(own_broker.bootstrap, key, max_queued_bytes="10000")
    wait_for(ingest.is_ready)
    stopping = threading.Event()
    senders = [Sender(ingest, n, stopping) for n in range(12)]
    threads = [threading.Thread(target=sender.run) for sender in senders]
    for thread in threads:
        thread.start()
    wait_for(lambda: sum(len(s.answers) for s in senders) > 200)
    pid = own_broker.part.pid()
    assert pid is not None

    for pause_s in (3.0, 10.0):  # a breath between them, in which those that wait get room
        _signal(pid, signal.SIGSTOP)
        time.sleep(pause_s)
        _signal(pid, signal.SIGCONT)
        time.sleep(0.012)
    stopping.set()
    for thread in threads:
        thread.join()

    answers = [answer for sender in senders for answer in sender.answers]
    assert {status for *_, status, _ in answers} == {200, 503}
    assert max(length for _, length, *_ in answers) < 5


def test_a_broker_that_lost_its_tail(
    own_broker: Broker,
    start_ingest: Callable[..., Ingest],
    new_key: Callable[..., str],
    wait_for: Callable[..., Any],
) -> None:
    """After the loss of acknowledged records, which ends a producer, ingest stores again."""
    ingest = start_ingest(own_broker.bootstrap, new_key(own_broker.bootstrap))
    wait_for(ingest.is_ready)
    for number in range(20):
        assert ingest.post(b'{"type":"t","id":"%d","data":0}' % number).status_code == 200

    own_broker.kill()
    for log in own_broker.folder.glob("data/weir.events-*/*.log"):
        if log.stat().st_size:
            os.truncate(log, log.stat().st_size - 10)  # at its start the broker drops the batch
    for snapshot in own_broker.folder.glob("data/weir.events-*/*.snapshot"):
        snapshot.unlink()
    own_broker.start()

    numbers = iter(range(100, 10**6))

    def stored() -> bool:
        """Send to every partition, so that each finds its tail missing."""
        body = b"\n".join(b'{"type":"t","id":"%d","data":0}' % next(numbers) for _ in range(40))
        return ingest.post(body).status_code == 200

    def is_broken() -> bool:
        stored()
        return "producer_broken" in ingest.log_path.read_text()

    wait_for(is_broken, 30)
    wait_for(stored, 30)


def _inject(broker: Broker, pid: int, fault: str) -> None:
    if fault == "kill":
        broker.kill()
    else:
        _signal(pid, signal.SIGSTOP)


def _heal(broker: Broker, pid: int, fault: str) -> None:
    if fault == "kill":
        broker.start()
    else:
        _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    os.kill(pid, number)


def _watch(ingest: Ingest, *, seconds: float) -> int:
    """Return the most memory seen; the probes must stay good all the time."""
    most, end_s = 0, time.monotonic() + seconds
    while time.monotonic() < end_s:
        most = max(most, ingest.rss_bytes())
        assert ingest.ops("/livez").status_code == 200
        assert ingest.ops("/readyz").status_code == 200
        time.sleep(0.2)
    return most
