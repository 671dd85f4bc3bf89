"""What one shard counts by itself, in pieces: all of it, and none on both sides of an erasure."""

from __future__ import annotations

from weir.borders import Borders
from weir.commit_found import Level
from weir_analytics.panes.levels import slices


def test_pieces_follow_each_other_without_a_gap() -> None:
    """All of the range and nothing else; a partition that is done leaves others its part."""
    level = Level(0, {0: 5, 1: 2}, {0: 7, 1: 40, 2: 3}, {})
    pieces = list(slices(level, 12, Borders()))

    assert pieces == [
        ({0: 5, 1: 2, 2: 0}, {0: 7, 1: 6, 2: 3}),
        ({0: 7, 1: 6, 2: 3}, {0: 7, 1: 18, 2: 3}),
        ({0: 7, 1: 18, 2: 3}, {0: 7, 1: 30, 2: 3}),
        ({0: 7, 1: 30, 2: 3}, {0: 7, 1: 40, 2: 3}),
    ]


def test_what_a_shard_has_is_not_counted_again() -> None:
    """Nothing to do at its end; and a piece has at least one record of each partition."""
    assert list(slices(Level(0, {0: 7}, {0: 7}, {}), 12, Borders())) == []
    assert list(slices(Level(0, {0: 5, 1: 0}, {0: 7, 1: 1}, {}), 1, Borders())) == [
        ({0: 5, 1: 0}, {0: 6, 1: 1}),
        ({0: 6, 1: 1}, {0: 7, 1: 1}),
    ]


def test_no_piece_lies_on_both_sides_of_an_erasure() -> None:
    """What comes before it counts who was erased, what comes after it does not."""
    level = Level(0, {0: 5, 1: 2}, {0: 30, 1: 40}, {})
    before, within, beyond = {0: 5, 1: 1}, {0: 9, 1: 2, 2: 7}, {0: 50, 1: 50}
    pieces = list(slices(level, 100, Borders([before, within, beyond])))

    assert pieces == [
        ({0: 5, 1: 2}, {0: 9, 1: 2}),
        ({0: 9, 1: 2}, {0: 30, 1: 40}),
    ]
