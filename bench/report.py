"""Makes bench/README.md from the files in bench/results/."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HEAD = """# Benchmarks

Made by `python bench/report.py` from `results/*.json`; do not edit. Each figure was measured by
the command beside it, on the machine named there. Ratios carry over to others, absolutes do not.
"""


def page(results: list[dict[str, Any]]) -> str:
    """Return the page for a list of results."""
    return "\n".join([HEAD, *(_section(result) for result in results)])


def _section(result: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(result["at_ms"] / 1000, UTC)
    host = result["machine"]
    lines = [
        f"## {result['name']}",
        "",
        f"`make bench-{result['name']}` · {at:%Y-%m-%d %H:%M} UTC · commit `{result['commit']}` · "
        f"{host['cores']} cores of {host['cpu']}, {host['memory_gib']} GiB",
        "",
    ]
    figures = dict(result["figures"])
    bars = figures.pop("bars", [])
    if bars:
        lines += ["| bar | what | to reach | measured |", "|---|---|---|---|"]
        lines += [f"| {b['id']} | {b['what']} | {b['reach']} | {b['got']} |" for b in bars]
        lines.append("")
    notes = figures.pop("notes", [])
    lines += [f"- {note}" for note in notes] + [""] * bool(notes)
    lines += ["```json", json.dumps({"settings": result["settings"], **figures}, indent=1), "```"]
    return "\n".join([*lines, ""])


def main() -> None:
    """Write the page."""
    results = [json.loads(path.read_text()) for path in sorted((HERE / "results").glob("*.json"))]
    (HERE / "README.md").write_text(page(results))


if __name__ == "__main__":
    main()
