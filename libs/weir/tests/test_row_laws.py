"""The laws of merging: any order, any grouping, any way to merge tells the same of all events."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_events import Event, check, events_of, row_of
from weir.rows import Row, decode, encode, merge, merge_all, merge_packed


def parts_of(events: list[Event], rng: random.Random) -> list[Row]:
    """Return rows of the events, shuffled and cut into parts anywhere."""
    shuffled = list(events)
    rng.shuffle(shuffled)
    parts: list[list[Event]] = [[]]
    for event in shuffled:
        if parts[-1] and rng.random() < 0.2:
            parts.append([])
        parts[-1].append(event)
    return [row_of(part) for part in parts]


def merged_anyhow(parts: list[Row], rng: random.Random) -> Row:
    """Return one row of all parts: any two or more at a time, packed in between or not."""
    rows = list(parts)
    while len(rows) > 1:
        rng.shuffle(rows)
        one, two, *rest = rows
        match rng.randint(0, 2):
            case 0:
                rows = [merge(one, two), *rest]
            case 1:
                rows = [decode(merge_packed(encode(one), two)), *rest]
            case _:
                taken = rng.randint(2, len(rows))
                rows = [merge_all(rows[:taken]), *rows[taken:]]
    return rows[0]


def exact(row: Row) -> Row:
    """Return what is equal to the last bit whatever the order."""
    assert row.further is not None
    kept = replace(row.further, spread=None, top=None, theta=None)
    return replace(row, hll=None, kll=None, further=kept)


@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_order_and_any_grouping(seed: int, order: int) -> None:
    """Exact members are equal, sketches within their bounds, as if no part had been made."""
    events, rng = events_of(seed), random.Random(order)  # noqa: S311
    parts = parts_of(events, rng)
    found = merged_anyhow(parts, rng)
    check(found, events)
    assert exact(found) == exact(row_of(events))


@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_two_in_either_order_and_three_in_either_grouping(seed: int, order: int) -> None:
    """Merging is commutative and associative for every member."""
    events, rng = events_of(seed), random.Random(order)  # noqa: S311
    one, two, three, *_ = [
        *parts_of(events, rng),
        row_of(events),
        row_of(events[:1]),
        row_of(events),
    ]
    assert exact(merge(one, two)) == exact(merge(two, one))
    left, right = merge(merge(one, two), three), merge(one, merge(two, three))
    assert exact(left) == exact(right)
    for a, b in ((merge(one, two), merge(two, one)), (left, right)):
        assert a.further is not None
        assert b.further is not None
        assert a.further.spread == pytest.approx(b.further.spread, rel=1e-9, abs=1e-6)


def test_a_broken_row_is_noticed() -> None:
    """The check of these laws sees a count, a last value and a set that are not theirs."""
    events = events_of(7)
    row = row_of(events)
    check(row, events)
    assert row.further is not None
    for wrong in (
        replace(row, n=row.n + 1),
        replace(row, further=replace(row.further, last=row.further.last._replace(value=1e9))),  # type: ignore[union-attr]
        replace(row, further=replace(row.further, theta=row_of(events[:1]).further.theta)),  # type: ignore[union-attr]
        replace(row, further=replace(row.further, top=row_of(events[:1]).further.top)),  # type: ignore[union-attr]
    ):
        with pytest.raises(AssertionError):
            check(wrong, events)
