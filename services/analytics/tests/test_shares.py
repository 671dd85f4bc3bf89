"""Partitions are shared out among tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir_analytics.panes.shares import shares


@pytest.mark.parametrize(
    ("sizes", "among", "found"),
    [
        ({0: 5, 1: 5, 2: 5, 3: 5}, 2, [{0, 2}, {1, 3}]),
        ({0: 9, 1: 4, 2: 4, 3: 1}, 2, [{0}, {1, 2, 3}]),
        ({0: 5}, 2, [{0}, set()]),
        ({}, 2, [set(), set()]),
        ({0: 5, 1: 5}, 1, [{0, 1}]),
    ],
)
def test_each_task_has_about_as_many_records(
    sizes: dict[int, int], among: int, found: list[set[int]]
) -> None:
    """The largest partition first, to whoever has least."""
    assert shares(sizes, among) == found


@given(st.dictionaries(st.integers(0, 40), st.integers(0, 1_000)), st.integers(1, 6))
def test_each_partition_is_one_tasks(sizes: dict[int, int], among: int) -> None:
    """All of them, each once, and no task has more than the largest above another."""
    found = shares(sizes, among)
    assert len(found) == among
    assert sorted(p for own in found for p in own) == sorted(sizes)
    loads = [sum(sizes[p] for p in own) for own in found]
    assert max(loads) - min(loads) <= max(sizes.values(), default=0)
