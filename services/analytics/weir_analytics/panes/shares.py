"""Which partitions of a range each of several tasks counts. Pure.

A partition is one task's, which sees its records in order: what is a duplicate is told by those
before it.
"""

from __future__ import annotations

from collections.abc import Mapping


def shares(sizes: Mapping[int, int], among: int) -> list[frozenset[int]]:
    """Return the partitions of each of some tasks, so that they have about as many records.

    By the sizes alone, so that a task that runs again has the same.

    Args:
        sizes: How many records each partition has.
        among: How many tasks there are; with fewer partitions some of them have none.
    """
    loads = [0] * among
    found: list[set[int]] = [set() for _ in range(among)]
    for partition in sorted(sizes, key=lambda p: (-sizes[p], p)):
        least = loads.index(min(loads))
        loads[least] += sizes[partition]
        found[least].add(partition)
    return [frozenset(own) for own in found]
