"""One stack under load for the short tests, and where a red one has the history of its load."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator

import pytest
from disruption.scene import Scene, history_of, scene


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say under a failure where the history of the load is."""
    report = yield
    if report.failed and (history := history_of(getattr(item, "funcargs", {}))) is not None:
        told = f"one line per request, ok, fail or unknown: {history}"
        report.sections.append(("the history of the load", told))
    return report


@pytest.fixture(autouse=True)
def own_chance(request: pytest.FixtureRequest) -> None:
    """Have a test draw by the seed and its own name, whichever tests ran before it."""
    if "here" in request.fixturenames:
        found: Scene = request.getfixturevalue("here")
        seed: int = request.getfixturevalue("seed")
        found.rig.chance = random.Random(f"{seed}-{request.node.name}")  # noqa: S311


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Scene]:
    """Return one stack under load for all short tests: each leaves every part running."""
    with scene(tmp_path_factory.mktemp("short"), seed, links=("panes-redis",)) as found:
        found.define_alarm()
        yield found
