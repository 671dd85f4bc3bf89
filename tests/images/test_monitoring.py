"""Prometheus and Grafana: every expression is one, and names what the services export."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from prometheus_client import REGISTRY, CollectorRegistry
from ruamel.yaml import YAML
from weir import metrics
from weir_analytics.alerts import app, evaluator, signals
from weir_analytics.panes.ops import Figures
from weir_analytics.panes.vitals import Vitals
from weir_dashboard import instruments
from weir_ingest.instruments import Instruments

from .dockerfiles import ROOT, environment
from .metrics_page import PAGE, page

FOLDER = ROOT / "infra/monitoring"
BOARDS = sorted((FOLDER / "grafana/dashboards").glob("*.json"))
INTERVAL = "$__rate_interval"
# What the client library tells of a Python process.
OF_PROCESS = ("process_resident_memory_bytes", "process_open_fds")


def read(path: Path) -> Any:
    """Return what a YAML file holds."""
    return YAML(typ="safe", pure=True).load(path.read_text())


def exported() -> dict[str, set[str]]:
    """Return the labels of every metric that the services' own code registers, by name.

    A histogram stands by the names of its three series.
    """
    assert instruments.requests
    assert all((app.DUE, evaluator.THROUGH, signals.MEMORY))
    ingest, panes = Instruments(CollectorRegistry()).registry, Figures()
    panes.watch(Vitals())
    found: dict[str, set[str]] = {}
    for registry in (ingest, panes.registry, REGISTRY):
        for name, collector in registry._names_to_collectors.items():
            labels = set(getattr(collector, "_labelnames", ()))
            found[name] = labels | ({"le"} if name.endswith("_bucket") else set())
    return {name: labels for name, labels in found.items() if name.startswith("weir_")}


EXPORTED = exported()


def expressions(board: Path) -> list[tuple[str, str]]:
    """Return the expressions of a board's panels, with the panels' titles."""
    panels = json.loads(board.read_text())["panels"]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]


def faults(expression: str) -> list[str]:
    """Return what is wrong with an expression: no PromQL, unknown metrics, unknown labels."""
    try:
        promql_parser.parse(expression)
    except ValueError as error:
        return [f"no PromQL: {error}"]
    names = set(re.findall(r"\bweir_\w+", expression))
    labels = {
        label.strip()
        for group in re.findall(r"\b(?:by|without) \(([^)]*)\)", expression)
        for label in group.split(",")
    } | set(re.findall(r"[{,]\s*(\w+)\s*(?:=|!)", expression))
    known = {label for name in names & EXPORTED.keys() for label in EXPORTED[name]}
    return [
        *(f"no metric {name}" for name in sorted(names - EXPORTED.keys())),
        *(f"no label {label}" for label in sorted(labels - known - {"namespace"})),
    ]


def test_every_name_is_exported() -> None:
    """What `weir.metrics` names is registered by a service, and nothing else is."""
    named = {value for key, value in vars(metrics).items() if key.isupper()}
    series = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in EXPORTED}
    assert {name for name in named if name not in EXPORTED and name not in series} == set()


def test_the_page_lists_every_metric() -> None:
    """After a change of a metric, `python -m tests.images.metrics_page`."""
    assert PAGE.read_text(encoding="utf-8") == page()


# The rows of RELIABILITY 7, each figure with what tells it; () is told by the soak alone.
FIGURES: dict[str, dict[str, tuple[str, ...]]] = {
    "sent, accepted, refused, unknown; records in the log": {
        "sent": (),
        "accepted": (metrics.INGEST_EVENTS,),
        "refused": (metrics.INGEST_REFUSED,),
        "unknown": (metrics.INGEST_DELIVERY_FAILURES,),
        "records in the log": (metrics.PANES_LOG_END, metrics.PANES_TICKS),
    },
    "counted, duplicates, quarantined by reason, beyond-horizon, erased, difference": {
        "by disposition": (metrics.PANES_EVENTS,),
        "quarantined by reason": (metrics.PANES_QUARANTINED, metrics.PANES_VALUES_REFUSED),
        "difference": (metrics.ALERTS_LEDGER_DIFFERENCE,),
    },
    "panes compared with the recount, mismatches": {
        "compared": (metrics.PANES_AUDITED,),
        "mismatches": (metrics.PANES_AUDIT_MISMATCHES,),
    },
    "freshness p50/p99 (ack → revision, ack → frame); frame gap": {
        "ack → revision": (metrics.PANES_FRESHNESS_SECONDS, metrics.PANES_PROCESSED_THROUGH),
        "ack → frame": (metrics.DASHBOARD_FRAME_AGE_SECONDS,),
        "frame gap": (metrics.DASHBOARD_FRAME_GAP_SECONDS,),
    },
    "p99 batch, verdicts by name, lag at the end": {
        "batch": (metrics.PANES_BATCH_SECONDS,),
        "verdicts": (metrics.PANES_VERDICTS,),
        "lag": (metrics.PANES_LAG,),
    },
    "RSS per process": {"the engine": (metrics.PANES_RSS,), "others": (OF_PROCESS[0],)},
    "Redis memory, keys, bytes per pane": {
        "memory": (metrics.ALERTS_REDIS_BYTES, metrics.ALERTS_REDIS_MEMORY),
        "keys": (metrics.ALERTS_REDIS_KEYS,),
    },
    "dedup entries; checkpoint files": {
        "dedup entries": (metrics.PANES_DEDUP_ENTRIES, metrics.PANES_DEDUP),
        "checkpoint files": (metrics.PANES_CHECKPOINT,),
    },
    "sockets, threads": {
        "sockets": (metrics.DASHBOARD_SOCKETS, metrics.PANES_OPEN_FILES, OF_PROCESS[1]),
        "threads": (
            metrics.PANES_THREADS,
            metrics.INGEST_THREADS,
            metrics.ALERTS_THREADS,
            metrics.DASHBOARD_THREADS,
        ),
    },
    "alerts due, delivered, duplicates, latest": {
        "due": (metrics.ALERTS_DUE, metrics.ALERTS_OLDEST_DUE),
        "delivered": (metrics.ALERTS_MESSAGES,),
        "duplicates": (metrics.ALERTS_REPEATS,),
        "latest": (metrics.ALERTS_DELIVERY_SECONDS,),
    },
}


def rows_of_figures() -> dict[str, tuple[str, str]]:
    """Return the page's table of figures: metrics, and what the soak alone tells."""
    table = PAGE.read_text(encoding="utf-8").partition("| figure |")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {row[0]: (row[1], row[2] if len(row) > 2 else "") for row in cells}


def test_every_figure_of_a_soak_is_told() -> None:
    """By metrics that are exported and stand in its row of the page; else the page says by whom."""
    told, series = rows_of_figures(), {re.sub(r"_(bucket|sum|count)$", "", n) for n in EXPORTED}
    assert told.keys() == FIGURES.keys()
    for row, figures in FIGURES.items():
        named, alone = told[row]
        for figure, wanted in figures.items():
            assert wanted or alone, (row, figure)
            assert {one for one in wanted if f"`{one}`" not in named} == set(), (row, figure)
            own = {one for one in wanted if one.startswith("weir_")}
            assert own <= EXPORTED.keys() | series, (row, figure)
        asked = {one for wanted in figures.values() for one in wanted}
        assert set(re.findall(r"`(\w+)`", named)) == asked, row


def test_what_is_derived_is_an_expression() -> None:
    """What the page computes of several metrics can be asked of Prometheus as it stands there."""
    asked = [
        text for text in re.findall("`([^`]+)`", PAGE.read_text(encoding="utf-8")) if " / " in text
    ]
    assert any(metrics.ALERTS_REDIS_BYTES in text for text in asked)
    assert {text: found for text in asked if (found := faults(text))} == {}


@pytest.mark.parametrize("board", BOARDS, ids=lambda path: path.stem)
def test_a_board_asks_for_what_there_is(board: Path) -> None:
    """Each expression of each panel parses, and its metrics and labels are the services'."""
    asked = expressions(board)
    assert len(asked) >= 8
    bad = {title: found for title, text in asked if (found := faults(text.replace(INTERVAL, "1m")))}
    assert bad == {}


@pytest.mark.parametrize("board", BOARDS, ids=lambda path: path.stem)
def test_a_board_is_one_that_grafana_takes(board: Path) -> None:
    """Ids are unique, panels do not overlap, and all ask the datasource that can be chosen."""
    text = json.loads(board.read_text())
    panels = text["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert [one["name"] for one in text["templating"]["list"]] == ["datasource"]
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}


def test_a_wrong_expression_is_found() -> None:
    """A bracket, a metric and a label that are wrong are each named."""
    assert faults("sum(rate(weir_ingest_events_total[1m])")[0].startswith("no PromQL")
    assert faults("weir_ingest_event_total") == ["no metric weir_ingest_event_total"]
    assert faults("sum by (status) (weir_ingest_events_total)") == ["no label status"]
    assert faults('weir_panes_events_total{verdict="x"}') == ["no label verdict"]


def test_all_services_are_scraped() -> None:
    """Prometheus asks each service of the compose file at the ops port of its image."""
    (job,) = read(FOLDER / "prometheus.yml")["scrape_configs"]
    targets = {target for one in job["static_configs"] for target in one["targets"]}
    services = read(ROOT / "infra/local/compose.yaml")["services"]
    expected = set()
    for name in ("ingest", "panes", "alerts", "dashboard"):
        variables = environment(services[name]["image"].removeprefix("weir-"))
        prefix = "analytics" if name == "panes" else name
        expected.add(f"{name}:{variables[f'WEIR_{prefix.upper()}_OPS_PORT']}")
    assert targets == expected


def test_what_grafana_is_given_is_there() -> None:
    """Folders that are mounted exist, and a board's page at the start is one of them."""
    services = read(FOLDER / "compose.yaml")["services"]
    for service in services.values():
        for volume in service["volumes"]:
            if volume.startswith("."):
                assert (ROOT / "infra/local" / volume.split(":")[0]).exists()
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert Path(home).name in {board.name for board in BOARDS}
    (source,) = read(FOLDER / "grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
