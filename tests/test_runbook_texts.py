"""docs/runbook.md has the text of every error that an operator may meet, by how it begins."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from error_texts import Module, given, modules, raised

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
ANALYTICS = "services/analytics/weir_analytics"
CHANNELS = (f"{ANALYTICS}/alerts/channels", f"{ANALYTICS}/alerts/sending.py")
SETTINGS = (
    "libs/weir/weir/kafka.py",
    "libs/service/weir_service/settings.py",
    f"{ANALYTICS}/settings.py",
    f"{ANALYTICS}/alerts/settings.py",
    "services/ingest/weir_ingest/settings.py",
    "services/ingest/weir_ingest/topics/settings.py",
    "services/dashboard/weir_dashboard/settings.py",
    "services/dashboard/weir_dashboard/auth/callers.py",
)
ANSWERING = (
    *("libs/weir/weir", "libs/reading/weir_reading", "libs/service/weir_service"),
    *("services/ingest/weir_ingest", "services/dashboard/weir_dashboard"),
)
HOLDING = "services/dashboard/weir_dashboard/holding.py"
# What these say has a section of its own, or is a fault of ours that `batch_failed` tells of.
ELSEWHERE = "Verdict|NewerFormat|Assertion|FileNotFound"
"""Beginnings of the names of errors."""


def of_counting() -> set[str]:
    """Return what `counting_interrupted` may carry that is written in the engine."""
    return raised(modules(f"{ANALYTICS}/panes"), rf"(?!{ELSEWHERE})\w*(?:Error|Exception)")


def of_starts() -> set[str]:
    """Return what is wrong with settings, and why a process ends before it has begun."""
    found = {text for module in modules(*SETTINGS) for text in _written(module, "must |the broker")}
    found |= raised(modules(*SETTINGS), "ValueError")
    found |= raised(modules("services/ingest/weir_ingest/topics"), "UnreachedError")
    return found | raised(modules(f"{ANALYTICS}/panes"), "FileNotFoundError")


def _written(module: Module, begins: str) -> set[str]:
    """Return the texts of a file that begin in some way, wherever they are put together."""
    written = [
        one for one in ast.walk(module.tree) if isinstance(one, ast.Constant | ast.JoinedStr)
    ]
    # What stands between two names of one text is no text of its own.
    parts = {id(part) for one in written if isinstance(one, ast.JoinedStr) for part in one.values}
    whole = (one for one in written if id(one) not in parts)
    return {text for one in whole for text in module.texts(one, None) if re.match(begins, text)}


def of_jobs() -> set[str]:
    """Return why a job failed, or waits."""
    return raised(modules(f"{ANALYTICS}/jobs"), "RefusedError|NotNowError")


def of_channels() -> set[str]:
    """Return why a message was not taken."""
    files = modules(*CHANNELS, f"{ANALYTICS}/alerts/outbox.py")
    return given(files, _why) | raised(files, "_SecretError|BarredError|ValueError")


def _why(call: ast.Call) -> list[ast.expr]:
    third = call.args[2:3] if ast.unparse(call.func) == "Answer" else []
    return [*third, *(one.value for one in call.keywords if one.arg == "why")]


def of_answers() -> set[str]:
    """Return what answers say that are nobody's fault who asks: 429, and 5xx.

    What a newer release has written says so in the words of a verdict's reason.
    """
    return {text for folder in ANSWERING for text in given(modules(folder), _why_not_now)}


def _why_not_now(call: ast.Call) -> list[ast.expr]:
    """Return what a problem says, or the answer that a connection gets before it has a request."""
    makes = ast.unparse(call.func).rpartition(".")[2] in ("ProblemError", "_refuse")
    status = call.args[0] if makes and call.args else None
    code = status.value if isinstance(status, ast.Constant) else None
    later = isinstance(code, int) and (code == 429 or code >= 500)
    return call.args[2:3] if later else []


def of_terminals() -> set[str]:
    """Return what the command line says of itself, or of a dashboard that does not answer."""
    return raised(modules("cli/weir_cli"), "UsageError|UnreachedError|ArgumentTypeError")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of a section's first table."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line[:3] == "| `"]


@pytest.mark.parametrize(
    ("heading", "collected", "at_least", "columns"),
    [
        ("What interrupts counting", of_counting, 20, 3),
        ("What a start needs", of_starts, 20, 3),
        ("Errors of a job", of_jobs, 10, 4),
        ("Why a message was not taken", of_channels, 25, 3),
        ("What `weir` says on a terminal", of_terminals, 25, 3),
        ("What answers with 429 and 5xx say", of_answers, 20, 4),
    ],
)
def test_every_text(
    heading: str, collected: Callable[[], set[str]], at_least: int, columns: int
) -> None:
    """Each text has its line, and says there what to do; each line has a text that is said."""
    lines = rows(heading)
    assert {len(cells) for cells in lines} == {columns}
    assert all(cell.strip() for cells in lines for cell in cells)
    begins = [one for cells in lines for one in re.findall("`([^`]+)`", cells[0])]
    found = collected()
    assert len(found) >= at_least
    of = {text: [one for one in begins if text.startswith(one)] for text in found}
    assert not {text: lines for text, lines in of.items() if len(lines) != 1}
    assert sorted(begins) == sorted({one for lines in of.values() for one in lines})


def test_everything_that_holds_numbers_back() -> None:
    """Each code of `holding` has its line, with the sentences that are said of it."""
    lines = rows("What holds numbers back")
    assert all(len(cells) == 3 and all(map(str.strip, cells)) for cells in lines)
    said: dict[str, set[str]] = {}
    for module in modules(HOLDING):
        for call, function in module.calls():
            if ast.unparse(call.func) == "Holding":
                (code,) = module.texts(call.args[0], function)
                said.setdefault(code, set()).update(module.texts(call.args[1], function))
    assert sorted(cells[0].strip("`") for cells in lines) == sorted(said)
    # What a newer release has written is told in its own words.
    sentences = {code: text.strip("`") for code, text, _ in lines if code != "`newer_release`"}
    for code, begins in sentences.items():
        assert any(text.startswith(begins) for text in said[code.strip("`")]), code
    for text in {text for told in said.values() for text in told}:
        assert text.startswith(tuple(sentences.values())), text
