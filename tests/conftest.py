"""Fixtures for tests that need more than one service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from weir_local.testing import TestStack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestStack]:
    """Return a running stack: real Kafka, Redis, ingest, panes and dashboard.

    It is shared by all tests of a session: use event types and metrics of your own, and
    leave every part running. Tests that break parts use `own_stack`.
    """
    stack = TestStack(tmp_path_factory.mktemp("stack"))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture
def own_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestStack]:
    """Return a running stack of this test's own, to be broken at will."""
    stack = TestStack(tmp_path_factory.mktemp("own"))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
