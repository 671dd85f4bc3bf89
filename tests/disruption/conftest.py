"""The seed of a run, and how a red one is repeated."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator

import pytest
from disruption.scene import Scene, history_of, scene
from weir_local.seeds import repetition, seed_of_run

SEED = seed_of_run()
# What else a run can be told.
KNOBS = (
    *("WEIR_PACE", "WEIR_KILLS", "WEIR_STARTS", "WEIR_EVENTS", "WEIR_OLD_S", "WEIR_AWAY_S"),
    *("WEIR_SERIES", "WEIR_SILENCE_S"),
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say under a failure what repeats it."""
    report = yield
    if report.failed:
        report.sections.append(repetition(SEED, item.nodeid, KNOBS))
        if (history := history_of(getattr(item, "funcargs", {}))) is not None:
            told = f"one line per request, ok, fail or unknown: {history}"
            report.sections.append(("the history of the load", told))
    return report


@pytest.fixture(scope="session")
def seed() -> int:
    """Return `WEIR_SEED`, else a seed of this run; a failure prints it."""
    return SEED


@pytest.fixture(autouse=True)
def own_chance(request: pytest.FixtureRequest) -> None:
    """Have a test draw by the seed and its own name, whichever tests ran before it."""
    if "here" in request.fixturenames:
        found: Scene = request.getfixturevalue("here")
        found.rig.chance = random.Random(f"{SEED}-{request.node.name}")  # noqa: S311


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Scene]:
    """Return one stack under load for all short tests: each leaves every part running."""
    folder = tmp_path_factory.mktemp("short")
    slow = {"batch": 20}
    with scene(folder, seed, links=("panes-redis",), load=slow, lasting=False) as found:
        found.define_alarm()
        yield found
