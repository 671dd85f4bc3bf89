"""The descriptions in the repository are what the models say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from weir_dashboard.openapi import described

FOLDER = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["openapi.json", "asyncapi.json"])
def test_the_stored_description_is_current(name: str) -> None:
    """After a change of a model, `python -m weir_dashboard.openapi services/dashboard`."""
    stored = json.loads((FOLDER / name).read_text())
    assert stored == json.loads(json.dumps(described()[name]))


def test_every_answer_has_a_model() -> None:
    """No route answers with a shape that is not described."""
    paths = described()["openapi.json"]["paths"]
    for path, operations in paths.items():
        for method, operation in operations.items():
            answers = [a for code, a in operation["responses"].items() if code.startswith("2")]
            schemas = [a["content"]["application/json"]["schema"] for a in answers]
            assert schemas, (method, path)
            assert all(schemas), (method, path)
