"""What every set of values renders to, as files that a change of the chart is read in.

What differs from render to render is masked: secrets are random, versions change with each
release.
"""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from weir_chart.render import CHART, Object, Release, Workbench

SETS = CHART / "ci"
BAD = SETS / "bad"
GOLDEN = CHART / "tests" / "golden"
MASK = "masked"
DASHBOARD_LABEL = "grafana_dashboard"
VERSIONS = ("app.kubernetes.io/version", "helm.sh/chart")


def sets() -> tuple[Path, ...]:
    """Return the sets of values that are rendered and compared."""
    return tuple(sorted(SETS.glob("*-values.yaml")))


def golden_of(values: Path) -> Path:
    """Return where the render of a set is kept."""
    return GOLDEN / values.name.replace("-values", "")


def masked(found: Object) -> Object:
    """Return an object without what differs from render to render."""
    shown = copy.deepcopy(found)
    labels = shown["metadata"].get("labels", {})
    for name in VERSIONS:
        if name in labels:
            labels[name] = MASK
    if DASHBOARD_LABEL in labels:
        # They are in the chart as they stand; a line of thousands says nothing.
        shown["data"] = dict.fromkeys(shown["data"], MASK)
    if shown["kind"] == "Secret":
        shown["data"] = dict.fromkeys(shown["data"], MASK)
    return shown


def golden_text(bench: Workbench, values: Path) -> str:
    """Return what a set renders to, as the text of its golden file.

    Raises:
        RenderError: If Helm refuses the set.
    """
    written = io.StringIO()
    writer = YAML()
    writer.width = 100
    writer.dump_all([_ordered(masked(one)) for one in bench.objects(Release((values,)))], written)
    return written.getvalue()


def _ordered(found: Any) -> Any:
    """Return the same with members in order, and texts of several lines shown as such."""
    if isinstance(found, dict):
        return {name: _ordered(found[name]) for name in sorted(found)}
    if isinstance(found, list):
        return [_ordered(one) for one in found]
    if isinstance(found, str) and "\n" in found:
        return LiteralScalarString(found)
    return found
