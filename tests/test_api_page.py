"""docs/api.md has the routes that are served, their scopes and what they take, and no others.

How keys are made stands in docs/definitions.md, which has their members.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from pydantic import ValidationError
from weir.alerts.listing import MAX_ENDED
from weir.alerts.sweep import MAX_LIMITS
from weir.definitions.key import SCOPES
from weir_dashboard.api.alert_actions import DAY_MS, LONGEST_ACK_MS, LONGEST_SILENCE_MS
from weir_dashboard.api.alerts import MAX_DAYS
from weir_dashboard.api.definition_models import MOST_PLANNED
from weir_dashboard.api.models import NewKey
from weir_dashboard.auth.scopes import API, TABLE
from weir_dashboard.store.quarantine import TEXT_BYTES
from weir_dashboard.turns import TIMEOUT_S

ROOT = Path(__file__).resolve().parents[1]
SECTION = (
    (ROOT / "docs/api.md")
    .read_text(encoding="utf-8")
    .partition("\n## 4. HTTP API\n")[2]
    .partition("\n## ")[0]
)
SERVED, _, PLANNED = SECTION.partition("\n### Not built yet\n")
DEFINITIONS = (ROOT / "docs/definitions.md").read_text(encoding="utf-8")
KEYS = DEFINITIONS.partition("\n## Keys, sources, tenants\n")[2]
METHODS = "GET|POST|PUT|DELETE"
# A query has section 5, and the bodies of jobs a table of their own: one of several shapes.
SHAPED_ELSEWHERE = {("POST", "/query"), ("POST", "/jobs")}


class Row(NamedTuple):
    """A row of the tables of routes.

    Attributes:
        scope: As the page has it.
        takes: The names that stand in backticks.
    """

    scope: str
    takes: list[str]


def rows() -> list[tuple[tuple[str, str], Row]]:
    """Return every row that begins with a method."""
    found = []
    for line in SERVED.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if head := re.fullmatch(rf"({METHODS}) `(/[^`]*)`", cells[0]):
            taken = re.findall(r"`([^`]+)`", cells[2])
            found.append(((head[1], head[2]), Row(cells[1], taken)))
    return found


def taken() -> dict[tuple[str, str], set[str]]:
    """Return what each described route takes: of query string, header fields and JSON body."""
    described = json.loads((ROOT / "services/dashboard/openapi.json").read_text(encoding="utf-8"))
    shapes = described["components"]["schemas"]
    found = {}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            route = method.upper(), path.removeprefix(API)
            names = {
                one["name"].lower()
                for one in operation.get("parameters", ())
                if one["in"] != "path"
            }
            if route not in SHAPED_ELSEWHERE:
                names |= set(_members(operation.get("requestBody"), shapes))
            found[route] = names
    return found


def _members(body: Any, shapes: Any) -> dict[str, Any]:
    if body is None:
        return {}
    reference = body["content"]["application/json"]["schema"]["$ref"]
    members: dict[str, Any] = shapes[reference.rpartition("/")[2]]["properties"]
    return members


def table(page: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of a table by what stands in backticks in their first cell."""
    body = page.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ") for line in body.splitlines()[2:]]
    return {one[0].strip("`"): one[1:] for one in cells}


def test_every_route_with_its_scope() -> None:
    """Each route that is served has its row, once, with its scope; each row is of such a route."""
    found = rows()
    assert len(found) > 50
    told = {route: row.scope for route, row in found}
    assert len(told) == len(found)
    assert told == {route: scope.value if scope else "none" for route, scope in TABLE.items()}


def test_what_every_route_takes() -> None:
    """Each row names the parameters, header fields and members of its route, and no others."""
    described = taken()
    for route, row in rows():
        named = [name.lower() for name in row.takes]
        assert len(named) == len(set(named)), route
        assert set(named) == described.get(route, set()), route
    assert described.keys() <= dict(rows()).keys()


def test_what_is_planned_is_not_served() -> None:
    """No route that the page calls not built is in the scope table, and the others name no plan."""
    planned = {
        (method, path)
        for methods, path in re.findall(
            rf"((?:(?:{METHODS})(?:, )?)+) `(/[^`]*)`", PLANNED.partition("\n**")[0]
        )
        for method in methods.split(", ")
    }
    extended = {("POST", "/backtest"), ("POST", "/definitions/diff")}
    assert len(planned) > 12
    assert planned & TABLE.keys() == extended
    for _, path in planned - extended:
        assert f"`{path}`" not in SERVED


def test_only_jobs_take_an_idempotency_key() -> None:
    """The page names the routes that take an `Idempotency-Key`, all of them."""
    line = next(one for one in SERVED.split("\n- ") if one.startswith("**`Idempotency-Key`**"))
    named = line.partition("POST ")[2].partition(". ")[0]
    takes = {path for (_, path), names in taken().items() if "idempotency-key" in names}
    assert set(re.findall(r"`(/[^`]*)`", named)) == takes


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ("GET `/alerts`", f"the newest {MAX_ENDED:,} of"),
        ("POST `/alerts/{id}/acknowledgement`", f"{LONGEST_ACK_MS // DAY_MS}d at most"),
        ("POST `/silences`", f"for {LONGEST_SILENCE_MS // DAY_MS}d at most"),
        ("POST `/backtest`", f"over {MAX_DAYS} days at most"),
        ("POST `/backtest`", f"{MAX_LIMITS} at most"),
        ("POST `/backtest`", f"after {TIMEOUT_S:g} s with 503 `query_timeout`"),
        ("POST `/definitions/plan`", f"Up to {MOST_PLANNED} "),
        ("POST `/definitions/apply`", f"Up to {MOST_PLANNED} "),
        ("GET `/quarantine/{id}`", f"the first {TEXT_BYTES // 1024} KB"),
    ],
)
def test_bounds(route: str, said: str) -> None:
    """What a row says of how much is taken or told is what the code allows."""
    row = next(line for line in SERVED.splitlines() if line.startswith(f"| {route} |"))
    assert said in row


class TestKeys:
    def test_the_body_is_told(self) -> None:
        """Each member of the body has its row, with what it is if it is left out."""
        told = table(KEYS, "member of the body")
        assert told.keys() == NewKey.model_fields.keys()
        for name, field in NewKey.model_fields.items():
            left_out = "required" if field.is_required() else f"`{field.default}`"
            left_out = {"``": "empty", "`None`": "none"}.get(left_out, left_out)
            assert told[name][1].partition(":")[0] == left_out, name

    def test_every_scope_is_told(self) -> None:
        """The row of scopes names each that a key may have."""
        (one,) = get_args(NewKey.model_fields["scopes"].annotation)
        told = re.findall(r"`(\w+)` \(", table(KEYS, "member of the body")["scopes"][0])
        assert tuple(told) == get_args(one) == SCOPES

    @pytest.mark.parametrize(
        ("member", "most"), [("label", "x" * 100), ("source", "9" + "a_.-" * 15 + "abc")]
    )
    def test_the_longest_are_as_long_as_told(self, member: str, most: str) -> None:
        """What is as long as the page says is taken, and one more character is not."""
        said = table(KEYS, "member of the body")[member][0]
        assert str(len(most)) in re.findall(r"\d+", said)
        NewKey.model_validate({"scopes": ["ingest"], member: most})
        with pytest.raises(ValidationError):
            NewKey.model_validate({"scopes": ["ingest"], member: f"{most}x"})

    def test_the_command_asks_for_an_ingest_key(self) -> None:
        """What is typed posts a body that is taken, to the route of keys."""
        (command,) = re.findall(r"```sh\n(.*?)```", KEYS, re.DOTALL)
        words = shlex.split(command)
        assert words[2].endswith(f"{API}/keys")
        asked = NewKey.model_validate_json(words[words.index("-d") + 1])
        assert asked.scopes == ["ingest"]
