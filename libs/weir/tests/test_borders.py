"""Borders are found by bisection; it is as if each had been looked at."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.borders import Borders
from weir.commit import Offsets, not_after
from weir.definitions.history import Lane
from weir.lanes import next_slice

places = st.dictionaries(st.integers(0, 2), st.integers(0, 12), max_size=3)
chains = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=9)


def slow_first(start: Offsets, end: Offsets, borders: Sequence[Offsets]) -> Offsets:
    """Return the end of the part of a range that lies before the first border in it."""
    for border in borders:
        upto = {p: min(n, max(border.get(p, 0), start.get(p, 0))) for p, n in end.items()}
        end = end if all(n <= start.get(p, 0) for p, n in upto.items()) else upto
    return end


def in_order(found: Sequence[Offsets]) -> list[Offsets]:
    """Return places, the first ones first."""
    return sorted(found, key=lambda place: sum(place.values()))


def check(found: Sequence[Offsets], start: Offsets, end: Offsets) -> None:
    """Compare what is found by bisection with what is found one after the other."""
    borders = Borders(found)
    assert borders.first(start, end) == slow_first(start, end, in_order(found))
    surely, at_most = borders.passed(end)
    behind = [not not_after(end, place) for place in in_order(found)]
    assert all(behind[:surely])
    assert not any(behind[at_most:])


@given(st.lists(places, max_size=9), places, places)
def test_any_places_are_found(found: list[Offsets], start: Offsets, end: Offsets) -> None:
    """Also such of which neither lies behind the other, and such that name other partitions."""
    check(found, start, end)


@given(chains, places, places)
def test_those_of_batches_are_found(
    steps: list[tuple[int, int]], start: Offsets, end: Offsets
) -> None:
    """Each lies behind the one before; some are the same."""
    at, found = (0, 0), list[Offsets]()
    for step in steps:
        at = at[0] + step[0], at[1] + step[1]
        found.append(dict(enumerate(at)))
    check(found, start, end)
    surely, at_most = Borders(found).passed(end)
    assert surely == at_most, "nothing is left to be looked at"


class Counted(dict[int, int]):
    """A place that takes note of who looks at it."""

    looks = 0

    def get(self, key: int, default: int = 0) -> int:  # type: ignore[override]
        """Return where it is in a partition."""
        Counted.looks += 1
        return super().get(key, default)


@pytest.mark.parametrize("many", [100, 10_000])
def test_a_slice_looks_at_few(many: int) -> None:
    """Of ten thousand borders at a score, wherever it lies among them."""
    lane = Lane(7, 1, "rebuild", "log", (), (0,), {0: 0}, {0: 20 * many}, 0, 0)
    borders = Borders(Counted({0: 10 * n}) for n in range(many))
    for start in (0, 3 * many, 10 * many - 15, 15 * many):
        Counted.looks = 0
        found = next_slice(lane, {0: {0: start}}, 10**9, borders)
        assert found is not None
        assert found.end[0] == min(
            (10 * n for n in range(many) if 10 * n > start), default=20 * many
        )
        assert Counted.looks < 40
