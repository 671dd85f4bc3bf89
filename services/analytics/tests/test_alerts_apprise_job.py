"""From an alert that fires to what a service gets by Apprise, through the real job."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import people
import pytest
from alerts_job import AlertsJob, define
from apprise_service import Service
from redis import Redis
from weir.alerts.channels import Channels
from weir.rows import Row
from weir_local.kafka import Broker
from weir_local.testing import running_broker
from weir_local.waiting import wait_until
from written import Writer

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

START_MS = 1_800_000_000_000
MINUTE_MS = 60_000
METRIC = {
    "events": {"type": "t"},
    "aggregates": ["count"],
    "resolution": "1m",
    "keep": {"1m": "7d"},
    "allowed_lateness": "10m",
}
RULE = {
    "metric": "m",
    "aggregate": "count",
    "window": "1m",
    "above": 10,
    "severity": "high",
    "route": {"channels": ["ops"]},
}


class Scene:
    """One metric, one rule above 10, and a channel by Apprise."""

    def __init__(self, broker: Broker, redis: Redis, job: AlertsJob) -> None:
        self.bootstrap, self.job, self.service = broker.bootstrap, job, Service()
        job.store_secret("ops", f"json://127.0.0.1:{self.service.port}/hook")
        define(self.bootstrap, "channel", "ops", {"apprise": "secret://ops"}, START_MS - 1)
        self._vid = define(self.bootstrap, "metric", "m", METRIC, START_MS - 1)
        define(self.bootstrap, "rule", "r", RULE, START_MS - 1)
        self._writer = Writer(redis, epoch=1)

    def pane(self, events: int) -> None:
        """Count events in the next minute."""
        start_ms = START_MS + self._writer.rev * MINUTE_MS
        panes = {(self._vid, 60, start_ms // 1000): {"": Row(events)}}
        self._writer.commit(panes, start_ms + MINUTE_MS)

    def leave(self) -> None:
        """Let nobody listen where the service was."""
        self.service.close()
        # Somebody else would be given the port: who asks for any may get this one.
        self._kept = socket.socket()
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._kept.bind((self.service.host, self.service.port))

    def return_(self) -> None:
        """Let the service listen again, where it was."""
        self._kept.close()
        self.service = Service(bodies=self.service.bodies, port=self.service.port)

    @property
    def told(self) -> list[tuple[str, str]]:
        """Return what the service got: type and title, in order."""
        return [(body["type"], body["title"]) for body in self.service.bodies]

    def await_outcome(self, outcome: str) -> None:
        """Wait until what is recorded of the channel is this."""

        def recorded() -> str:
            return self._channels.standing("default", "ops").outcome

        wait_until(lambda: recorded() == outcome, timeout_s=40, what=f"the channel {outcome}")

    def await_due(self, count: int) -> None:
        """Wait until as many messages wait for their outcome."""

        def waiting() -> int:
            return self._channels.waiting("default", "ops")

        wait_until(lambda: waiting() == count, timeout_s=40, what=f"{count} messages due")

    @property
    def _channels(self) -> Channels:
        return people.listing(self.bootstrap).channels


@pytest.fixture
def scene(tmp_path: Path, redis_url: str) -> Iterator[Scene]:
    """Return a scene with a running job."""
    with running_broker(tmp_path / "kafka") as broker, Redis.from_url(redis_url) as redis:
        job = AlertsJob(broker.bootstrap, redis_url, tmp_path)
        scene = Scene(broker, redis, job)
        try:
            job.start()
            yield scene
        finally:
            job.kill()
            scene.service.close()


def test_an_alert_and_its_end(scene: Scene) -> None:
    """Each arrives once and in order, with its severity, also when nobody listens for a while."""
    scene.pane(12)
    scene.await_outcome("delivered")
    ((kind, title),) = scene.told
    assert kind == "failure"
    assert "12" in title
    assert "Severity: high" in scene.service.bodies[0]["message"]

    scene.leave()
    scene.pane(3)
    scene.await_outcome("failed")
    scene.job.kill()
    scene.job.start()
    scene.return_()
    scene.await_outcome("delivered")
    scene.pane(12)
    scene.pane(3)
    wait_until(lambda: len(scene.told) >= 4, timeout_s=40, what="a second alert and its end")
    scene.await_due(0)

    assert [kind for kind, _ in scene.told] == ["failure", "success"] * 2
