"""Fixtures of the chart's tests: every set of values, rendered once a session."""

from __future__ import annotations

from pathlib import Path

import pytest
from weir_chart import golden, tools
from weir_chart.render import Object, Release, Workbench

SETS = {path.name.removesuffix("-values.yaml"): path for path in golden.sets()}


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """Return the chart in a folder of its own, ready to be rendered."""
    tools.install()
    return Workbench(tmp_path_factory.mktemp("chart"))


@pytest.fixture(scope="session")
def renders(bench: Workbench) -> dict[str, list[Object]]:
    """Return the objects of every set by its name."""
    return {name: bench.objects(Release((path,))) for name, path in SETS.items()}


@pytest.fixture(params=SETS)
def rendered(request: pytest.FixtureRequest, renders: dict[str, list[Object]]) -> list[Object]:
    """Return the objects of one set; the test runs for each."""
    return renders[request.param]


@pytest.fixture(params=SETS)
def values(request: pytest.FixtureRequest) -> Path:
    """Return the file of one set; the test runs for each."""
    return SETS[request.param]


@pytest.fixture(scope="session")
def default(renders: dict[str, list[Object]]) -> list[Object]:
    """Return the objects of an installation in which nothing is set."""
    return renders["default"]
