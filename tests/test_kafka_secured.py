"""From an event to its count where Kafka asks who comes: TLS, passwords, and rights.

Each service is its own user with the rights that `infra/kubernetes/strimzi` gives it, so this
also tells that they are enough.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import structlog
from confluent_kafka import KafkaException
from secured import PASSWORD, SecuredBroker, secured_broker
from weir import names
from weir.clock import SystemClock
from weir.kafka import Kafka
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_local import ports
from weir_local.client import ApiClient
from weir_local.process import Part
from weir_local.redis import RedisServer
from weir_local.repository import SPARK_JARS
from weir_local.services import Service
from weir_local.waiting import wait_until
from weir_reading.follower import Follower
from weir_service.settings import read_kafka

pytestmark = pytest.mark.stack
KEY = f"wk_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"
METRIC = """
kind: metric
name: amounts
events: {type: shop.order}
value: data.amount
aggregates: [count, sum]
"""
# Of the password, what is the same however it is quoted.
UNQUOTED = PASSWORD[4:-1]
# Batches above this are read by Spark, those up to it by a task itself.
SMALL_BATCH = 40
MANY = 300
REFUSED = "the brokers must know the user and the password of kafka_user and kafka_password"
UNTRUSTED = "the brokers' certificates must be signed by one in kafka_ca"


@dataclass
class Site:
    """Weir's processes, each as a user of its own.

    Attributes:
        folder: Where their files go.
        broker: What they talk to.
        redis_url: Where panes are.
    """

    folder: Path
    broker: SecuredBroker
    redis_url: str
    services: dict[str, Service] = field(default_factory=dict)

    def secrets(self, name: str, **other: str) -> Path:
        """Return the folder of a component's secrets; `other` ones win, empty ones are left out."""
        folder = self.folder / f"{secrets.token_hex(4)}-{name}"
        folder.mkdir()
        ca = self.broker.authority.certificate.read_text()
        told = {"kafka_user": f"weir-kafka-{name}", "kafka_password": PASSWORD, "kafka_ca": ca}
        told |= {"hash_key": "0123456789abcdef0123456789abcdef", "bootstrap_key": KEY, **other}
        for file, text in told.items():
            if text:
                (folder / file).write_text(f"{text}\n")
        return folder

    def environment(self, name: str, folder: Path, **settings: object) -> dict[str, str]:
        """Return the variables of a component's process."""
        told = {
            "kafka_bootstrap": self.broker.by_password,
            "kafka_security_protocol": "SASL_SSL",
            "kafka_sasl_mechanism": "SCRAM-SHA-512",
            "secrets_dir": folder,
            **settings,
        }
        return {f"WEIR_{name.upper()}_{one.upper()}": str(value) for one, value in told.items()}

    def topics(self, **other: str) -> subprocess.CompletedProcess[str]:
        """Run the command that makes the topics."""
        env = self.environment("topics", self.secrets("topics", **other), wait_s=60)
        return subprocess.run(
            [sys.executable, "-m", "weir_ingest.topics", "apply"],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, name: str, module: str, folder: Path, **settings: object) -> Service:
        """Start a service on free ports."""
        ops_port = ports.free_port()
        told = {"redis_url": self.redis_url, "ops_port": ops_port, "instance": name, **settings}
        env = self.environment(name, folder, **told)
        part = Part(folder.name, [sys.executable, "-m", module], self.folder, env)
        self.services[folder.name] = Service(part, ops_port)
        part.start()
        return self.services[folder.name]

    def stop(self) -> None:
        """End every process."""
        for service in self.services.values():
            service.part.kill()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a place for services beside a broker that has the users and the topics."""
    folder = tmp_path_factory.mktemp("secured")
    redis = RedisServer(folder / "redis")
    redis.start()
    with secured_broker(folder) as broker:
        site = Site(folder, broker, redis.url)
        try:
            made = site.topics()
            assert made.returncode == 0, made.stderr
            yield site
        finally:
            site.stop()
            redis.kill()


def await_ready(*services: Service) -> None:
    """Return when all are ready; one that has ended will never be."""

    def are_ready() -> bool:
        for service in services:
            service.part.check_alive()
        return all(service.is_ready() for service in services)

    names_of = ", ".join(service.part.name for service in services)
    wait_until(are_ready, timeout_s=240, what=f"{names_of} ready", every_s=0.2)


def orders(first: int, count: int) -> list[dict[str, Any]]:
    """Return events with amounts of 1."""
    return [
        {
            **{"specversion": "1.0", "type": "shop.order", "source": "shop", "id": f"o{number}"},
            "data": {"amount": 1},
        }
        for number in range(first, first + count)
    ]


@dataclass
class Clients:
    """What people and programs use."""

    ingest: ApiClient
    api: ApiClient

    def close(self) -> None:
        """Close the connections."""
        self.ingest.close()
        self.api.close()

    def count(self) -> int:
        """Return how many orders were counted lately."""
        asked = {"metric": "amounts", "aggregate": "count", "range": {"last": "2h"}}
        window = {"kind": "tumbling", "length": "1h"}
        body = self.api.call("POST", "/api/v1/query", asked | {"window": window}).body
        return int(sum(value or 0 for one in body["series"] for value in one["value"]))

    def await_count(self, count: int) -> None:
        """Wait until so many orders are counted."""
        wait_until(
            lambda: self.count() == count, timeout_s=120, what=f"{count} orders", every_s=0.3
        )

    def quarantined(self) -> list[Any]:
        """Return what could not be counted."""
        found: list[Any] = self.api.call("GET", "/api/v1/quarantine").body["items"]
        return found


def start_all(site: Site) -> tuple[Clients, list[Service]]:
    """Start every service; return clients of them once they are ready."""
    port, web_port = ports.free_port(), ports.free_port()
    engine = {"jars_dir": SPARK_JARS, "state_dir": site.folder / "panes"}
    running = [
        site.start("ingest", "weir_ingest", site.secrets("ingest"), port=port),
        site.start("dashboard", "weir_dashboard", site.secrets("dashboard"), port=web_port),
        site.start("alerts", "weir_analytics.alerts", site.secrets("alerts")),
        site.start(
            "analytics",
            "weir_analytics.panes",
            site.secrets("analytics"),
            **engine,
            small_batch=SMALL_BATCH,
            driver_memory="512m",
            redis_without_aof="true",
        ),
    ]
    await_ready(*running)
    ingest = ApiClient(f"http://{ports.HOST}:{port}", KEY, patience_s=30)
    return Clients(ingest, ApiClient(f"http://{ports.HOST}:{web_port}", KEY)), running


def test_events_are_counted(site: Site) -> None:
    """Events are taken, counted by tasks and by Spark, and read; each service by its own user."""
    clients, running = start_all(site)
    put = "/api/v1/definitions/metric/amounts"
    clients.api.call("PUT", put, {"text": METRIC}, {"If-None-Match": "*"})
    wait_until(
        lambda: clients.api.call("GET", f"{put}/progress").body["serving"],
        timeout_s=120,
        what="the metric counted",
    )

    clients.ingest.post_events(orders(0, 1))
    clients.await_count(1)
    clients.ingest.post_events([{**orders(1, 1)[0], "data": {"amount": "many"}}])
    clients.ingest.post_events(orders(2, MANY))
    clients.await_count(1 + MANY)
    found = wait_until(clients.quarantined, timeout_s=60, what="a copy in quarantine")
    clients.close()

    assert len(found) == 1
    written = running[-1].part.log_path.read_text(errors="replace")
    assert '"small": true' in written
    assert '"small": false' in written
    for service in running:
        text = service.part.log_path.read_text(errors="replace")
        assert UNQUOTED not in text
        assert "log_refused" not in text
        assert "AUTHORIZATION" not in text.upper(), text[-3000:]


@pytest.mark.parametrize(
    ("other", "why"), [({"kafka_password": "wrong"}, REFUSED), ({"kafka_ca": ""}, UNTRUSTED)]
)
def test_refusals_are_told(
    site: Site, other: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a wrong password, or for an unknown authority, all say why in words.

    The command ends; ingest goes on, and answers as it does where no broker is.
    """
    made = site.topics(**other)
    assert (made.returncode, why in made.stderr) == (1, True), made.stderr

    port = ports.free_port()
    ingest = site.start("ingest", "weir_ingest", site.secrets("ingest", **other), port=port)
    log = ingest.part.log_path
    wait_until(lambda: "log_refused" in log.read_text(), timeout_s=60, what="a word in the log")
    assert why in log.read_text()
    assert post(port) == http.client.SERVICE_UNAVAILABLE
    ingest.part.check_alive()
    assert ingest.doing() == "starting"

    # The library is refused at once, and waits all the same.
    monkeypatch.setattr("weir_analytics.panes.definitions_log.TIMEOUT_S", 3.0)
    secrets_dir = site.secrets("analytics", **other)
    kafka = read_kafka(site.broker.by_password, "SASL_SSL", "SCRAM-SHA-512", secrets_dir)
    assert why in told_by_driver(kafka)
    assert why in asyncio.run(told_by_follower(kafka, names.DEFINITIONS))


def test_missing_rights_are_told(site: Site) -> None:
    """Whoever reads a topic that it may only write to is told that a right is missing."""
    secrets_dir = site.secrets("ingest")
    kafka = read_kafka(site.broker.by_password, "SASL_SSL", "SCRAM-SHA-512", secrets_dir)

    why = asyncio.run(told_by_follower(kafka, names.EVENTS))

    assert "the brokers must let this client do what it does, and refused it; grant it" in why


def post(port: int) -> int:
    """Return the status of one try to post an event."""
    connection = http.client.HTTPConnection(ports.HOST, port, timeout=20)
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/events", json.dumps(orders(0, 1)), headers)
    status = connection.getresponse().status
    connection.close()
    return status


def told_by_driver(kafka: Kafka) -> str:
    """Return what the driver logs when it reads definitions."""
    log = DefinitionsLog(kafka)
    with structlog.testing.capture_logs() as said, pytest.raises(KafkaException):
        log.end()
    log.close()
    return " ".join(line.get("why", "") for line in said)


async def told_by_follower(kafka: Kafka, topic: str) -> str:
    """Return what the dashboard and the alerts job log when they follow a topic."""
    follower = Follower(kafka, SystemClock(), topic, lambda _: None)
    with structlog.testing.capture_logs() as said:
        follower.start()
        await asyncio.to_thread(
            lambda: wait_until(
                lambda: any(line["event"] == "log_refused" for line in said),
                timeout_s=60,
                what="a word in the log",
            )
        )
        await follower.stop()
    return " ".join(line.get("why", "") for line in said)
