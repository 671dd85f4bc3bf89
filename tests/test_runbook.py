"""docs/runbook.md has whatever an operator may meet; what docs/what-happens.md says is shown."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from error_texts import given, modules, raised
from weir.commit import Verdict
from weir.definitions.signals import SIGNALS
from weir.definitions.text import parse_text, split_text
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
# Which argument of these says why, as the log line has it.
WHY = {"VerdictError": 1, "Recovery": 1, "NewerFormatError": 0, "_Lost": 0}
LIVE = "services/dashboard"
OWN_RULES = "services/analytics/weir_analytics/alerts/own_rules.yaml"


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


def reasons() -> set[str]:
    """Return why the panes job stops or begins anew."""
    files = modules("libs/weir/weir", "services/analytics/weir_analytics")
    stops = given(
        files, lambda call: [call.args[WHY[ast.unparse(call.func)]]] if _is_stop(call) else ()
    )
    return stops | given(files, _why_of_commit)


def _why_of_commit(call: ast.Call) -> list[ast.expr]:
    """Return what a commit to a shard says of its verdict."""
    is_commit = ast.unparse(call.func) == "Committed"
    return [one.value for one in call.keywords if is_commit and one.arg == "why"]


def _is_stop(call: ast.Call) -> bool:
    """Leave out what a recovery says that goes on: its reason is that of `_Lost`, or none."""
    name = ast.unparse(call.func)
    goes_on = name == "Recovery" and ast.unparse(call.args[0]) != "Verdict.FOREIGN"
    return name in WHY and not goes_on


def closes() -> set[str]:
    """Return the codes that close a live socket, also those that only the page tells of.

    What the protocol itself asks for, as of a frame that is too large, is no line of ours.
    """
    page = (ROOT / LIVE / "web/src/live/link.ts").read_text(encoding="utf-8")
    found = set(re.findall(r"\d{4}", page.partition("BUGS = new Set([")[2].partition("]")[0]))
    for path in (ROOT / LIVE / "weir_dashboard/live").rglob("*.py"):
        calls = [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Call)]
        for call in calls:
            if ast.unparse(call.func).endswith((".close", ".fail", "._say_goodbye")):
                words = " ".join(map(ast.unparse, call.args))
                found |= set(re.findall(r"\b\d{4}\b", words))
    return found


def of_laptops() -> set[str]:
    """Return what the commands for a stack on a laptop refuse with, the set-up among them.

    Of a text of several lines the first; what a command wrote follows it.
    """
    files = modules("infra/local/weir_local")
    found = raised(files, r"\w*Error")
    (wanted,) = modules("infra/local/weir_local/prerequisites.py")
    # What is missing is added up, and told at once.
    found |= given(
        [wanted], lambda one: one.args if ast.unparse(one.func) == "found.append" else ()
    )
    lack = wanted.functions["_lack"]
    ends = (one.value for one in ast.walk(lack) if isinstance(one, ast.Return) and one.value)
    found |= {text for end in ends for text in wanted.texts(end, lack)}
    return {text.partition("\n")[0] for text in found}


def of_ended_parts() -> set[str]:
    """Return why a part of a laptop's stack ended, as far as its log tells."""
    files = modules("infra/local/weir_local/diagnosis.py")
    return given(files, lambda call: call.args[1:2] if ast.unparse(call.func) == "Symptom" else ())


def listed(heading: str) -> list[str]:
    """Return what stands in the first column of a section's table."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


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


def test_every_reason_of_a_verdict() -> None:
    """Each reason has its line, by how it begins, and each line its reason."""
    found, begins = reasons(), listed("Reasons of a verdict")
    assert len(found) > 15
    lines = {reason: [one for one in begins if reason.startswith(one)] for reason in found}
    assert not {reason: of for reason, of in lines.items() if len(of) != 1}
    assert sorted(begins) == sorted({one for of in lines.values() for one in of})


def test_every_refusal_of_a_laptops_stack() -> None:
    """Each message has its line, once, as it is printed."""
    section = PAGE.partition("\n## What `make` says of a laptop's stack\n")[2].partition("\n## ")[0]
    section = section.partition("\n### Why a part ended\n")[0]
    # What has a backtick in it stands between two of them.
    cells = [line.split(" | ")[0][2:] for line in section.splitlines() if line[:3] == "| `"]
    told = [one[3:-3] if one.startswith("`` ") else one[1:-1] for one in cells]
    found = of_laptops()
    assert len(found) > 15
    assert sorted(told) == sorted(found)


def test_every_reason_of_a_part_that_ended() -> None:
    """Each has its line, by how it begins, and each line its reason."""
    section = PAGE.partition("\n### Why a part ended\n")[2].partition("\n## ")[0]
    begins = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    found = of_ended_parts()
    assert len(found) > 4
    assert not [one for one in found if sum(map(one.startswith, begins)) != 1]
    assert not [one for one in begins if not any(text.startswith(one) for text in found)]


def test_every_close_of_the_live_socket() -> None:
    """Each code with which a live socket is closed has its line, here and in docs/api.md."""
    found = closes()
    assert len(found) >= 9
    assert sorted(listed("Closes of the live socket")) == sorted(found)
    table = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").partition("\n| close | when ")[2]
    firsts = [line.split("|")[1] for line in table.partition("\n\n")[0].splitlines()[2:]]
    assert sorted(re.findall(r"\d+", " ".join(firsts))) == sorted(found)


@pytest.mark.parametrize(
    ("heading", "columns"),
    [
        ("Verdicts", 3),
        ("What `make` says of a laptop's stack", 3),
        ("Reasons of a verdict", 4),
        ("Errors in the log", 4),
        ("Warnings in the log", 4),
        ("Closes of the live socket", 4),
        ("Refusals", None),
    ],
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


def test_every_rule_on_weir_itself() -> None:
    """Each rule that Weir ships has its line, which leads to a heading that is there."""
    shipped = split_text((ROOT / OWN_RULES).read_text(encoding="utf-8"))
    names = [parse_text(one)["name"] for one in shipped]
    assert sorted(names) == sorted(signal.replace(".", "_") for signal in SIGNALS)
    assert sorted(listed("Alerts")) == sorted(names)
    chart = (ROOT / "charts/weir/RUNBOOK.md").read_text(encoding="utf-8")
    places = {"../charts/weir/RUNBOOK.md": headings_of(chart), "": headings_of(PAGE)}
    for name in names:
        (line,) = (one for one in PAGE.splitlines() if one.startswith(f"| `{name}` |"))
        links = re.findall(r"\]\(([^)#]*)#([^)]+)\)", line)
        assert links, name
        assert [to for page, to in links if to not in places[page]] == [], name
        assert len(line.strip("| ").split(" | ")) == 3, name


def headings_of(page: str) -> set[str]:
    """Return what links to a page's headings end with."""
    found = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in found}


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
