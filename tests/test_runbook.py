"""docs/runbook.md has whatever an operator may meet; what docs/what-happens.md says is shown."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from weir.commit import Verdict
from weir.definitions.signals import SIGNALS
from weir.problems import Reason

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
SOURCES = (
    "libs/weir/weir",
    "libs/reading/weir_reading",
    "libs/service/weir_service",
    "services/ingest/weir_ingest",
    "services/analytics/weir_analytics",
    "services/dashboard/weir_dashboard",
)
ERRORS = frozenset({"error", "critical", "exception"})
WARNINGS = frozenset({"warning", "warn"})


def events(levels: frozenset[str]) -> set[str]:
    """Return the names of the events that the services log at some levels."""
    found: set[str] = set()
    for source in SOURCES:
        for path in (ROOT / source).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                found |= {name for name in _logged(node, levels) if name}
    return found


def _logged(node: ast.AST, levels: frozenset[str]) -> list[str]:
    if not isinstance(node, ast.Call) or not node.args:
        return []
    called, first = node.func, node.args[0]
    is_log = (
        isinstance(called, ast.Attribute)
        and called.attr in levels
        and isinstance(called.value, ast.Name)
        and called.value.id.strip("_").lower() in ("log", "logger")
    )
    return [str(first.value)] if is_log and isinstance(first, ast.Constant) else []


def listed(heading: str) -> list[str]:
    """Return what stands in the first column of a section's table."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_every_verdict() -> None:
    """Each verdict has its line."""
    assert sorted(listed("Verdicts")) == sorted(Verdict)


def test_every_error_in_the_log() -> None:
    """Each event that a service logs as an error has its line, once."""
    found = events(ERRORS)
    assert len(found) > 20
    assert sorted(listed("Errors in the log")) == sorted(found)


def test_every_warning_in_the_log() -> None:
    """Each event that a service logs as a warning has its line, once."""
    found = events(WARNINGS)
    assert len(found) > 20
    assert sorted(listed("Warnings in the log")) == sorted(found)


def test_every_refusal() -> None:
    """Each code of a refusal has its line, once."""
    assert sorted(listed("Refusals")) == sorted(Reason)


@pytest.mark.parametrize(
    ("heading", "columns"),
    [("Verdicts", 3), ("Errors in the log", 4), ("Warnings in the log", 4), ("Refusals", None)],
)
def test_every_line_says_what_to_do(heading: str, columns: int | None) -> None:
    """No cell is empty; a refusal of an event or a value is in no answer of its own."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:3] == "| `"]
    assert rows
    for cells in rows:
        assert len(cells) == columns or (columns is None and len(cells) in (3, 4)), cells[0]
        assert all(cell.strip() for cell in cells), cells[0]


def test_every_alert_has_its_page() -> None:
    """The alerts of the chart's rules are those of its runbook, and are all linked."""
    rules = (ROOT / "charts/weir/templates/monitoring/prometheusrule.yaml").read_text()
    alerts = re.findall(r"alert: (\w+)", rules)
    headings = re.findall(
        r"^## (\w+)$", (ROOT / "charts/weir/RUNBOOK.md").read_text(), re.MULTILINE
    )
    assert alerts
    assert sorted(set(alerts)) == sorted(headings)
    for alert in headings:
        assert f"[{alert}](../charts/weir/RUNBOOK.md#{alert.lower()})" in PAGE


@pytest.mark.parametrize("signal", sorted(SIGNALS))
def test_every_signal_is_named(signal: str) -> None:
    """Each rule that Weir ships on itself."""
    assert f"`{signal.replace('.', '_')}`" in PAGE


def test_what_happens_is_shown_by_tests() -> None:
    """Each test that the page links is there, by file and by name; each answer links some."""
    page = (ROOT / "docs" / "what-happens.md").read_text(encoding="utf-8")
    answers = page.split("\n## ")[1:]
    assert len(answers) >= 9
    for answer in answers:
        linked = re.findall(r'\]\(\.\./(\S+\.py) "(test_\w+)"\)', answer)
        assert len(linked) >= 2, answer.splitlines()[0]
        for path, test in linked:
            assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), (path, test)
