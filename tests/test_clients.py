"""Unmodified public clients, each sending through a proxy that loses answers and is busy at times.

What a client itself reports as given up is its own; everything else is in the log under one
identity, and counts exactly once. Who sends is told by a field that each client writes.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from account import event_of, records_of
from clients.installed import PYTHON, install
from clients.lossy_proxy import LossyProxy
from weir_local.testing import TestStack

pytestmark = pytest.mark.stack
HERE = Path(__file__).parent / "clients"
EVENTS = 1_000
LOSE_EACH, BUSY_FROM, BUSY_S = 20, 30, 4.0
APP_ID = "clients-shop"


@dataclass(frozen=True)
class Client:
    """A client and what its events are.

    Attributes:
        name: What it calls itself, and its script's name unless `script` says another.
        type: The type of its events.
        named: The path in `data` of what it calls itself.
        number: The path in `data` of the number of an event.
        key: What it is given for a key; None: the stack's.
        further: More words for its script.
    """

    name: str
    type: str
    named: str
    number: str
    key: str | None = None
    script: str = ""
    further: tuple[str, ...] = ()

    def command(self, url: str, key: str) -> list[str]:
        """Return how it is run."""
        script = self.script or self.name
        path = next(HERE.glob(f"{script}.*"))
        program = str(PYTHON) if path.suffix == ".py" else "node"
        return [program, str(path), url, self.key or key, str(EVENTS), *self.further]


CLIENTS = (
    Client("segment_python", "dev.weir.segment.track", "event", "properties.n"),
    Client("analytics_js", "dev.weir.segment.track", "event", "properties.n"),
    Client("rudder_node", "dev.weir.segment.track", "event", "properties.n"),
    Client(
        *("posthog_v0", "dev.weir.posthog.event", "event", "properties.n"),
        script="posthog_python",
        further=("v0",),
    ),
    Client(
        *("posthog_v1", "dev.weir.posthog.event", "event", "properties.n"),
        script="posthog_python",
        further=("v1",),
    ),
    Client("snowplow_python", "dev.weir.snowplow.se", "se_ac", "se_la", key=APP_ID),
    Client("otlp_python", "dev.weir.otlp.log", "body", "attributes.n"),
    Client("otlp_node", "dev.weir.otlp.metric", "name", "attributes.n"),
    Client("cloudevents_node", "cloudevents_node", "", "n"),
)


@pytest.fixture(scope="module")
def clients(stack: TestStack) -> TestStack:
    """Return the shared stack with the clients installed, and an app id that may send."""
    install()
    stack.define("source", "clients", f"kind: source\nname: clients\napp_ids: [{APP_ID}]\n")
    return stack


def defined(stack: TestStack, client: Client) -> None:
    """Define the metric that counts a client's events."""
    where = f"where: data.{client.named} = '{client.name}'\n" if client.named else ""
    text = (
        f"kind: metric\nname: clients_{client.name}\nevents: {{type: {client.type}}}\n{where}"
        "aggregates: [count]\nresolution: 10s\n"
    )
    stack.define("metric", f"clients_{client.name}", text)


def run(stack: TestStack, client: Client) -> tuple[set[int], LossyProxy]:
    """Let a client send; return what it gave up, and the proxy with what it did to it."""
    port = urlsplit(stack.ingest_url).port or 0
    with LossyProxy(port, lose_each=LOSE_EACH, busy_from=BUSY_FROM, busy_s=BUSY_S) as proxy:
        done = subprocess.run(  # noqa: S603  our own clients
            client.command(proxy.url, stack.key),
            cwd=HERE,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["sent"] == EVENTS
    return set(told["gave_up"]), proxy


def member(data: Any, path: str) -> Any:
    """Return what stands at a path of dots."""
    for name in path.split("."):
        data = data.get(name) if isinstance(data, dict) else None
    return data


def in_log(stack: TestStack, client: Client) -> dict[int, set[str]]:
    """Return the identities under which each of a client's events is in the log, by number."""
    found = defaultdict(set)
    for record in records_of(stack.kafka_bootstrap):
        event = event_of(record.value) or {}
        data = event.get("data")
        if event.get("type") != client.type:
            continue
        if not client.named or member(data, client.named) == client.name:
            found[int(member(data, client.number))].add(f"{event['source']} {event['id']}")
    return found


def counted(stack: TestStack, client: Client) -> float:
    """Return how many of a client's events Weir has counted."""
    asked = {
        **{"metric": f"clients_{client.name}", "aggregate": "count", "step": "1m"},
        "range": {"last": "30m"},
    }
    series = stack.query(asked)["series"]
    return sum(value or 0 for one in series for value in one["value"])


@pytest.mark.parametrize("client", CLIENTS, ids=lambda one: one.name)
def test_what_is_not_given_up_counts_once(clients: TestStack, client: Client) -> None:
    """Answers are lost and 503 comes for four seconds: each event is counted, and only once."""
    defined(clients, client)

    gave_up, proxy = run(clients, client)

    assert proxy.lost >= 1
    assert proxy.refused >= 1
    stored = in_log(clients, client)
    assert set(range(EVENTS)) - gave_up <= set(stored)
    assert {n: ids for n, ids in stored.items() if len(ids) > 1} == {}
    clients.wait_until(
        lambda: counted(clients, client) == len(stored) or None,
        f"{len(stored)} events of {client.name} to be counted",
        60,
    )
