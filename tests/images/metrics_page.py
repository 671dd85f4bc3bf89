"""The page of Weir's own metrics, made of what the services' code registers.

`python -m tests.images.metrics_page` writes docs/metrics.md; a test holds it to the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry
from weir_analytics.alerts import app, evaluator, signals
from weir_analytics.panes.ops import Figures
from weir_analytics.panes.vitals import Vitals
from weir_dashboard import instruments
from weir_ingest.instruments import Instruments

from .dockerfiles import ROOT

PAGE = ROOT / "docs/metrics.md"
SERVICES = {
    "ingest": "Ingest",
    "panes": "The engine (panes)",
    "alerts": "Alerts",
    "dashboard": "Dashboard",
}
FIRST_TABLE = "\n## "


def collectors() -> Iterator[Any]:
    """Yield every metric that the services' own code registers, each once."""
    assert instruments.requests
    assert all((app.DUE, evaluator.THROUGH, signals.MEMORY))
    figures = Figures()
    figures.watch(Vitals())
    seen: set[int] = set()
    for registry in (Instruments(CollectorRegistry()).registry, figures.registry, REGISTRY):
        for collector in registry._names_to_collectors.values():
            name = getattr(collector, "_name", "")
            if name.startswith("weir_") and id(collector) not in seen:
                seen.add(id(collector))
                yield collector


def page() -> str:
    """Return the whole page: what people wrote above the tables, and the tables."""
    found = sorted(collectors(), key=lambda one: one._name)
    parts = [PAGE.read_text(encoding="utf-8").partition(FIRST_TABLE)[0]]
    for service, title in SERVICES.items():
        own = [one for one in found if one._name.startswith(f"weir_{service}_")]
        parts.append(f"## {title}\n\n{_table(own)}")
    return "\n".join(parts)


def _table(own: Iterable[Any]) -> str:
    rows = ["| metric | kind | labels | what it says |", "|---|---|---|---|"]
    for one in own:
        name = f"{one._name}_total" if one._type == "counter" else one._name
        labels = " ".join(f"`{label}`" for label in one._labelnames) or "none"
        rows.append(f"| `{name}` | {one._type} | {labels} | {one._documentation.rstrip('.')} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
