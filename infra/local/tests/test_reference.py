"""docs/reference.md: made from the schema, with examples that the check accepts."""

from __future__ import annotations

from pathlib import Path

import pytest
from weir.definitions.check import check
from weir.definitions.kinds import KINDS
from weir_local.reference import EXAMPLES, OF_THE_API, inner_models, meanings, page

PAGE = Path(__file__).parents[3] / "docs" / "reference.md"


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


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_member_is_explained(kind: str) -> None:
    """The docstring of each model says what each of its members means."""
    model = KINDS[kind]
    for one in (model, *inner_models(model)):
        constant = {"job"}  # says which of several models it is
        silent = set(one.model_fields) - set(meanings(one)) - constant
        assert silent == set(), one.__name__
