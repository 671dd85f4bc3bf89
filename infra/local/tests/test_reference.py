"""docs/reference.md: made from the schema, with examples that the check accepts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from weir.definitions.check import check
from weir.definitions.kinds import KINDS
from weir.definitions.text import parse_text
from weir.problems import ProblemError
from weir_local.reference import EXAMPLES, FILLED, OF_THE_API, inner_models, meanings, page

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

PAGE = Path(__file__).parents[3] / "docs" / "reference.md"


def members_of(kind: str) -> dict[str, tuple[str, FieldInfo]]:
    """Return the members of a kind as they are written, with name and field of the model."""
    fields = KINDS[kind].model_fields.items()
    return {field.alias or name: (name, field) for name, field in fields if name != "kind"}


def all_models() -> list[type[BaseModel]]:
    """Return the models of all kinds, and of what their members hold."""
    return [one for model in KINDS.values() for one in (model, *inner_models(model))]


def test_the_page_is_what_the_schema_says() -> None:
    """After a change of a definition: `python -m weir_local.reference docs/reference.md`."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_an_example_is_accepted(kind: str) -> None:
    """It is of the kind that it stands under, and every member of it is on the page."""
    model = check(kind, None, EXAMPLES[kind]).model
    assert isinstance(model, KINDS[kind])
    section = page().partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
    assert EXAMPLES[kind] in section
    for name in model.model_fields_set:
        assert f"| `{KINDS[kind].model_fields[name].alias or name}` |" in section


def test_each_kind_is_told() -> None:
    """With an example, or with the way that it is written by."""
    assert set(EXAMPLES) | set(OF_THE_API) == set(KINDS)


def test_no_text_speaks_of_the_source() -> None:
    """Readers of the page have no files of Python and none of its constants."""
    said = [
        text for model in all_models() for text in (model.__doc__ or "", *meanings(model).values())
    ]
    for text in (page(), *said):
        assert re.findall(r"\w+\.py\b|`[A-Z][A-Z0-9_]+`|\b[A-Z]+_[A-Z0-9_]+\b", text) == []


@pytest.mark.parametrize(
    ("kind", "dropped"), [(kind, one) for kind in EXAMPLES for one in members_of(kind)]
)
def test_what_is_left_out_is_as_the_page_says(kind: str, dropped: str) -> None:
    """What the check makes of an example without a member is the default of the page."""
    example = parse_text(EXAMPLES[kind])
    given = {name: one for name, one in example.items() if name != dropped}
    name, field = members_of(kind)[dropped]
    told = FILLED.get((KINDS[kind].__name__, name))
    try:
        found = getattr(check(kind, None, given).model, name)
    except ProblemError:
        assert dropped in example  # the rest of it takes that member
        return
    if told is None:
        assert found == field.get_default(call_default_factory=True)
    elif not isinstance(found, dict):
        assert f"`{found if isinstance(found, int) else ', '.join(found)}`" in told


def test_the_resolutions_are_listed() -> None:
    """A resolution takes four durations and no other, and its default is one of them."""
    (row,) = [line for line in page().splitlines() if line.startswith("| `resolution` |")]
    assert row.split("|")[2:4] == [" `1s` or `10s` or `1m` or `1h` ", " `10s` "]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_member_is_explained(kind: str) -> None:
    """The docstring of each model says what each of its members means."""
    model = KINDS[kind]
    for one in (model, *inner_models(model)):
        constant = {"job"}  # says which of several models it is
        silent = set(one.model_fields) - set(meanings(one)) - constant
        assert silent == set(), one.__name__
