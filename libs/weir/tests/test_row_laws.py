"""The laws of merging: any order, any grouping, any way to merge tells the same of all events."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_events import Event, check, events_of, exact, row_of, settled
from weir.rows import Row, decode, encode, merge, merge_all, merge_packed


def cut(events: list[Event], rng: random.Random) -> list[list[Event]]:
    """Return the events, shuffled and cut into parts anywhere."""
    shuffled = list(events)
    rng.shuffle(shuffled)
    parts: list[list[Event]] = [[]]
    for event in shuffled:
        if parts[-1] and rng.random() < 0.2:
            parts.append([])
        parts[-1].append(event)
    return parts


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


@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
@settings(max_examples=100)
def test_any_order_and_any_grouping(seed: int, order: int) -> None:
    """Exact members are equal, sketches within their bounds, as if no part had been made."""
    events, rng = events_of(seed), random.Random(order)  # noqa: S311
    found = merged_anyhow([row_of(part) for part in cut(events, rng)], rng)
    check(found, events)
    whole = row_of(events)
    assert exact(found) == exact(whole)
    assert settled(found) == settled(whole)


@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
@settings(max_examples=100)
def test_two_in_either_order_and_three_in_either_grouping(seed: int, order: int) -> None:
    """Merging is commutative and associative for every member."""
    events, rng = events_of(seed), random.Random(order)  # noqa: S311
    three = [*cut(events, rng), events, events[:1], events][:3]
    one, two, last = map(row_of, three)
    either = [merge(one, two), merge(two, one)]
    assert_alike(either, [*three[0], *three[1]])
    groupings = [merge(either[0], last), merge(one, merge(two, last)), merge_all([last, two, one])]
    assert_alike(groupings, [event for part in three for event in part])


def assert_alike(rows: list[Row], events: list[Event]) -> None:
    """Assert that rows tell the same of all of some events, as far as any order must."""
    first, *others = rows
    check(first, events)
    for row in others:
        assert exact(row) == exact(first)
        assert settled(row) == settled(first)
        check(row, events)


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
        replace(row, hll=row_of(events[:1]).hll),
        replace(row, kll=row_of(events[:1]).kll),
    ):
        with pytest.raises(AssertionError):
            check(wrong, events)
        with pytest.raises(AssertionError):
            assert_alike([row, wrong], events)
