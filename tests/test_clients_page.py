"""docs/clients/README.md: its table is what the services speak, and what tests have tried.

Run with the environment variable `WEIR_WRITE_GOLDEN`, the test writes the table anew.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from test_clients import CLIENTS
from weir_ingest import events
from weir_ingest.protocols import hec, otlp, posthog, remote_write, segment, snowplow, tinybird
from weir_ingest.routes import ROUTES
from weir_ingest.wire import Route

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/clients/README.md"
CAPTURES = ROOT / "services/ingest/tests/captures"
HEAD = "| protocol | paths | unmodified clients, tried with lost answers | recordings of |"


@dataclass(frozen=True)
class Family:
    """A protocol and what tells of it.

    Attributes:
        name: As people call it.
        page: Its page.
        routes: Where it is spoken.
        packages: The packages that `tests/test_clients.py` runs, by how its clients begin.
        captures: How the names of its recordings begin.
    """

    name: str
    page: str
    routes: tuple[Route, ...]
    packages: dict[str, str]
    captures: tuple[str, ...]


FAMILIES = (
    Family(
        *("CloudEvents, NDJSON, JSON", "../ingest.md", events.ROUTES),
        packages={"cloudevents_node": "cloudevents"},
        captures=("cloudevents",),
    ),
    Family(
        *("Segment, RudderStack", "segment.md", segment.ROUTES),
        packages={
            "segment_python": "segment-analytics-python",
            "analytics_js": "@segment/analytics-next",
            "rudder_node": "@rudderstack/rudder-sdk-node",
        },
        captures=("segment", "analytics-js", "rudder"),
    ),
    Family(
        *("PostHog v0, v1", "posthog.md", posthog.ROUTES),
        packages={"posthog_v0": "posthog", "posthog_v1": "posthog"},
        captures=("posthog",),
    ),
    Family(
        *("OTLP over HTTP", "opentelemetry.md", otlp.ROUTES),
        packages={
            "otlp_python": "opentelemetry-exporter-otlp-proto-http",
            "otlp_node": "@opentelemetry/exporter-metrics-otlp-http",
        },
        captures=("otlp",),
    ),
    Family(
        *("Snowplow", "snowplow.md", snowplow.ROUTES),
        packages={"snowplow_python": "snowplow-tracker"},
        captures=("snowplow",),
    ),
    Family("Tinybird", "tinybird.md", tinybird.ROUTES, packages={}, captures=("tinybird",)),
    Family("Splunk HEC", "splunk.md", hec.ROUTES, packages={}, captures=("hec",)),
    Family(
        *("Prometheus remote write", "prometheus.md", remote_write.ROUTES),
        packages={},
        captures=("remote-write",),
    ),
)


def versions() -> dict[str, str]:
    """Return the version of each package that the tests install."""
    lock = (ROOT / "tests/clients/requirements.txt").read_text(encoding="utf-8")
    found = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", lock, re.M))
    package = json.loads((ROOT / "tests/clients/package.json").read_text(encoding="utf-8"))
    return {**found, **package["dependencies"]}


def row(family: Family) -> str:
    """Return a family's row."""
    known = versions()
    packages = dict.fromkeys(family.packages.values())
    tried = ", ".join(f"`{name}` {known[name]}" for name in packages) or "none yet"
    recorded = sorted(
        path.stem for path in CAPTURES.glob("*.jsonl") if path.stem.startswith(family.captures)
    )
    paths = ", ".join(f"`{path}`" for route in family.routes for path in route.paths)
    told = ", ".join(f"`{name}`" for name in recorded) or "none"
    return f"| [{family.name}]({family.page}) | {paths} | {tried} | {told} |"


def test_the_table_is_what_is_tested() -> None:
    """Each family has its row, with the clients and recordings that tests run."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(f"{HEAD}\n|---|---|---|---|\n")
    after = re.sub(r"\A(\|.*\n)*", "", rest)
    rows = "".join(f"{row(family)}\n" for family in FAMILIES)
    made = f"{before}{HEAD}\n|---|---|---|---|\n{rows}{after}"
    if "WEIR_WRITE_GOLDEN" in os.environ:
        PAGE.write_text(made, encoding="utf-8")
        page = made

    assert page == made


def test_nothing_is_left_out() -> None:
    """Every route, every client that is run and every recording is of a family."""
    routes = [route.paths for family in FAMILIES for route in family.routes]
    assert sorted(routes) == sorted(route.paths for route in ROUTES)
    clients = [client for family in FAMILIES for client in family.packages]
    assert sorted(clients) == sorted(one.name for one in CLIENTS)
    begins = tuple(name for family in FAMILIES for name in family.captures)
    recorded = [path.stem for path in CAPTURES.glob("*.jsonl")]
    assert [name for name in recorded if not name.startswith(begins)] == []
