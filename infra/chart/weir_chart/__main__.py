"""Write what is generated of the chart: schema, dashboards and golden files (`make chart`)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from weir_local.console import complain, say
from weir_local.repository import ROOT

from weir_chart import golden, schema, tools
from weir_chart.render import CHART, DASHBOARDS, RenderError, Workbench


def main() -> int:
    """Write all; return the exit code."""
    if (code := tools.main()) != 0:
        return code
    _write(schema.SCHEMA, schema.text())
    for source in DASHBOARDS.glob("*.json"):
        _write(CHART / "dashboards" / source.name, source.read_text())
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench(Path(folder))
        for values in golden.sets():
            try:
                _write(golden.golden_of(values), golden.golden_text(bench, values))
            except RenderError as error:
                complain(f"weir: {values.name}: {error}")
                return 1
    return 0


def _write(path: Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    say(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
