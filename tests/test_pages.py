"""What pages list is what the code has: kinds of definitions, scopes, what is not built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from weir.definitions.kinds import KINDS
from weir.problems import ProblemError, Reason
from weir_cli.commands import COMMANDS
from weir_dashboard.auth.scopes import TABLE, Scope

ROOT = Path(__file__).resolve().parents[1]
DESIGN, API, CLI = (
    (ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("design", "api", "cli")
)
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
NOT_YET = CHANGES.partition("\n### Not yet\n")[2].partition("\n## ")[0]

JOB, FOLLOWED = ("POST", "/jobs"), ("GET", "/jobs/{id}")
# What each command asks for; as the page writes the command.
ASKED = {
    "get": [("GET", "/definitions"), ("GET", "/definitions/{kind}/{name}")],
    "query": [("POST", "/query")],
    "top": [("GET", "/metrics"), ("GET", "/live")],
    "quarantine": [("GET", "/quarantine"), ("GET", "/quarantine/summary")],
    "jobs": [("GET", "/jobs"), FOLLOWED],
    "history KIND/NAME": [("GET", "/definitions/{kind}/{name}/history")],
    "history -f": [("GET", "/definitions/{kind}/{name}/history")],
    "history --refused": [("GET", "/definitions/refused")],
    "history": [("GET", "/changes")],
    "check": [("POST", "/definitions/plan")],
    "diff": [("POST", "/definitions/plan"), ("POST", "/definitions/diff")],
    "apply": [("POST", "/definitions/plan"), ("POST", "/definitions/apply")],
    "apply --follow": [
        ("POST", "/definitions/apply"),
        ("GET", "/definitions/{kind}/{name}/progress"),
    ],
    "rollback": [
        ("GET", "/definitions/{kind}/{name}"),
        ("POST", "/definitions/{kind}/{name}/rollback"),
    ],
    "audit": [JOB, FOLLOWED],
    "replay": [JOB, FOLLOWED],
    "adopt": [JOB, FOLLOWED],
    "erase": [JOB, FOLLOWED],
    "jobs ID --cancel": [("DELETE", "/jobs/{id}")],
    # It asks ingest, which has one route (docs/ingest.md 3).
    "send": [],
    "keys": [("GET", "/keys")],
    "keys new": [("GET", "/session"), ("POST", "/keys")],
    "keys rotate ID": [("GET", "/session"), ("POST", "/keys/{id}/rotate")],
    "keys revoke ID": [("DELETE", "/keys/{id}")],
}
# What the routes of jobs ask for beyond the table (`api/jobs.py`), and what ingest asks for.
MORE = {
    "send": {Scope.INGEST},
    "adopt": {Scope.ADMIN},
    "erase": {Scope.ADMIN},
    "jobs ID --cancel": {Scope.ADMIN},
}


def scopes_told() -> dict[str, set[str]]:
    """Return the scopes that docs/cli.md says of each command."""
    table = CLI.partition("| command | scopes of the key |\n|---|---|\n")[2].partition("\n\n")[0]
    found: dict[str, set[str]] = {}
    for line in table.splitlines():
        commands, scopes = line.strip("| ").split(" | ")
        for command in re.findall(r"`([^`]+)`", commands):
            # Of a job that is cancelled the page names kinds of jobs beside scopes.
            named = set(re.findall(r"`([^`]+)`", scopes)) & {scope.value for scope in Scope}
            assert command not in found
            found[command] = named
    return found


def test_every_command_has_its_scopes() -> None:
    """The scopes on the page of the command line are those of the routes that it asks."""
    asked = {
        command: {scope.value for route in routes if (scope := TABLE[route])}
        | {scope.value for scope in MORE.get(command, ())}
        for command, routes in ASKED.items()
    }
    assert scopes_told() == asked
    assert {command.split()[0] for command in asked} == commands() - {"completion"}


def commands() -> set[str]:
    """Return the names of all commands, as the page has their sections."""
    found = set(re.findall(r"^## weir (\w+)$", CLI, re.MULTILINE))
    assert len(found) == len(COMMANDS)
    return found


def test_the_design_lists_the_kinds_that_are_built() -> None:
    """docs/design.md has each kind of definition among those that are built, and no other."""
    built = re.search(r"(\w+) kinds are built, all listed in `\S+`: ([^.]+)\.", DESIGN)
    assert built is not None
    assert sorted(built[2].split(", ")) == sorted(KINDS)
    assert built[1] == "Eight"


def test_kinds_that_are_not_built_are_told() -> None:
    """What the design plans is in the CHANGELOG's list of what is not built, and is no kind."""
    planned = re.search(r"Designed and not built: (.+?), and more of a source", DESIGN)
    assert planned is not None
    names = set(re.sub(r" \([^)]*\)", "", planned[1]).split(", "))
    assert len(names) == 8
    assert names.isdisjoint(KINDS)
    assert [name for name in sorted(names) if f"`{name}`" not in NOT_YET] == []


def routes_planned() -> list[tuple[str, str]]:
    """Return each path of the table of docs/api.md that is not served, with its line."""
    table = API.partition("\n### Not built yet\n")[2].partition("\n\n**")[0]
    firsts = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| ")]
    return [(path, first) for first in firsts for path in re.findall(r"`(/[^`]+)`", first)]


def test_routes_that_are_not_built_are_told() -> None:
    """Each route that docs/api.md plans is in the CHANGELOG's list too."""
    planned, listed = routes_planned(), re.findall(r"`(/[^`]+)`", NOT_YET)
    assert len(planned) > 8
    assert [path for path, _line in planned if not path.startswith(tuple(listed))] == []


@pytest.mark.parametrize(("path", "line"), routes_planned())
def test_what_is_served_is_not_called_missing(path: str, line: str) -> None:
    """A route that is planned is not in the table of scopes, unless more of it is meant."""
    served = {route for _method, route in TABLE}
    assert path not in served or line.startswith(("| a longer ", "| more of ")), path


def test_each_problem_has_its_section() -> None:
    """The last part of a problem's type is the anchor of its section, and no section is without."""
    page = (ROOT / "docs/problems.md").read_text(encoding="utf-8")
    anchors = [ProblemError(400, reason, "").body()["type"].rpartition("/")[2] for reason in Reason]

    assert re.findall(r"^## (\S+)$", page, re.M) == anchors
