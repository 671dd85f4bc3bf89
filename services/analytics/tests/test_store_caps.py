"""Which series of a pane have a row of their own does not depend on order or split."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from row_events import Event, check, events_of, exact, row_of, settled
from weir import rows
from weir.rows import Row
from weir.series import OTHER, series_digest
from weir_analytics.panes.accounts import TYPES
from weir_analytics.panes.commit_job import Limits
from weir_analytics.panes.pane_merge import (
    Cap,
    PaneChange,
    PaneRead,
    cap_of,
    evictions,
    may_be_capped,
    merge_pane,
)
from weir_analytics.panes.versions import (
    MAX_TYPES,
    SYSTEM,
    Version,
    versions_from_json,
    versions_to_json,
)
from weir_analytics.panes.writer import limits_of

Arrivals = list[tuple[int, float]]


def read(pane: dict[str, bytes], arriving: dict[str, Row], cap: Cap) -> PaneRead:
    """Return of a stored pane what the reader would."""
    stored = {s: pane[s] for s in arriving if s in pane and s != OTHER}
    found = PaneRead(len(pane), pane.get(OTHER), stored)
    if may_be_capped(found, arriving, cap):
        found.own = frozenset(pane) - {OTHER}
        for series in evictions(found, arriving, cap):
            found.stored[series] = pane[series]
    return found


def apply(pane: dict[str, bytes], change: PaneChange) -> None:
    """Do to a stored pane what the writer would."""
    pane.update(change.rows)
    for series in change.evicted:
        del pane[series]


def store(
    arrivals: Arrivals, cuts: list[int], limit: int, *, bounded: bool = False
) -> dict[str, Row]:
    """Return the rows after merging arrivals in commits that end at the cuts.

    If `bounded`, series beyond the bound of an earlier commit come as `other`.
    """
    bound: str | None = None
    pane: dict[str, bytes] = {}
    edges = sorted({0, len(arrivals), *(cut % (len(arrivals) + 1) for cut in cuts)})
    for begin, end in pairwise(edges):
        arriving: dict[str, Row] = {}
        for number, value in arrivals[begin:end]:
            series, row = f"={number}", Row(1, value, value, value)
            if bounded and bound is not None and series_digest(series).hex() > bound:
                series = OTHER
            arriving[series] = rows.merge(arriving[series], row) if series in arriving else row
        change = merge_pane(read(pane, arriving, Cap(limit)), arriving, Cap(limit))
        apply(pane, change)
        bound = change.bound or bound
    return {series: rows.decode(packed) for series, packed in pane.items()}


@given(
    arrivals=st.lists(st.tuples(st.integers(0, 12), st.integers(-50, 50).map(float)), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=6),
    limit=st.integers(1, 8),
    shuffle=st.randoms(use_true_random=False),
)
def test_any_order_and_any_split_end_in_the_same_rows(
    arrivals: Arrivals, cuts: list[int], limit: int, shuffle: object
) -> None:
    """The series of the smallest digests keep their rows, the rest is `other`."""
    other_order = list(arrivals)
    shuffle.shuffle(other_order)  # type: ignore[attr-defined]

    found = store(arrivals, cuts, limit)

    assert found == store(other_order, [], limit)
    everyone = {f"={number}" for number, _ in arrivals}
    own = set(sorted(everyone, key=series_digest)[:limit])
    assert set(found) - {OTHER} == own
    assert (OTHER in found) == (len(everyone) > limit)
    assert sum(row.n for row in found.values()) == len(arrivals)
    assert sum(row.sum or 0 for row in found.values()) == sum(value for _, value in arrivals)


@given(seed=st.integers(0, 2**32), limit=st.integers(1, 8))
@settings(max_examples=200, deadline=None)
def test_what_is_known_of_a_full_pane_changes_no_row(seed: int, limit: int) -> None:
    """Whoever is beyond the bound of any earlier commit may come as `other`."""
    chance = random.Random(seed)  # noqa: S311  the same arrivals for a seed
    arrivals = [(chance.randrange(13), float(chance.randrange(-50, 50))) for _ in range(40)]
    cuts = [chance.randrange(41) for _ in range(chance.randrange(1, 30))]

    assert store(arrivals, cuts, limit, bounded=True) == store(arrivals, [], limit)


@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 400), max_size=6))
@settings(max_examples=25)
def test_no_measure_of_an_event_is_lost_to_other(seed: int, cuts: list[int]) -> None:
    """However a capped pane is filled, each row is worth its events, and all rows all of them.

    The rows of the smallest digests and `other` divide the events; sketches are within their
    bounds in each, in whatever order series came and lost their rows. What of them does not
    depend on that is the same as if all had come at once.
    """
    events = events_of(seed, most=200, series=9)
    pane, at_once = filled(events, cuts), filled(events[::-1], [])
    own = set(sorted({event.series for event in events}, key=series_digest)[:3])
    for series, packed in pane.items():
        row, other = rows.decode(packed), rows.decode(at_once[series])
        check(row, [e for e in events if (e.series if e.series in own else OTHER) == series])
        assert exact(row) == exact(other)
        assert settled(row) == settled(other)
    assert pane.keys() == at_once.keys()
    check(rows.merge_all(map(rows.decode, pane.values())), events)


def filled(events: list[Event], cuts: list[int]) -> dict[str, bytes]:
    """Return a pane of at most three series after merging events in commits."""
    pane: dict[str, bytes] = {}
    edges = sorted({0, len(events), *(cut % (len(events) + 1) for cut in cuts)})
    for begin, end in pairwise(edges):
        by_series: dict[str, list[Event]] = {}
        for event in events[begin:end]:
            by_series.setdefault(event.series, []).append(event)
        arriving = {series: row_of(of) for series, of in by_series.items()}
        apply(pane, merge_pane(read(pane, arriving, Cap(3)), arriving, Cap(3)))
    return pane


@given(
    arrivals=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=6),
    most=st.integers(1, 4),
)
def test_what_tenants_share_is_capped_for_each_alone(
    arrivals: list[tuple[str, int]], cuts: list[int], most: int
) -> None:
    """A flood of one tenant's series takes no row of another's, in any order and any split."""
    pane: dict[str, bytes] = {}
    cap = Cap(most, by_owner=True)
    edges = sorted({0, len(arrivals), *(cut % (len(arrivals) + 1) for cut in cuts)})
    for begin, end in pairwise(edges):
        arriving: dict[str, Row] = {}
        for tenant, number in arrivals[begin:end]:
            series = f"={tenant}|={number}"
            arriving[series] = rows.merge(arriving.get(series, Row(0)), Row(1))
        apply(pane, merge_pane(read(pane, arriving, cap), arriving, cap))

    own: set[str] = set()
    for tenant in "abc":
        its = {f"={tenant}|={number}" for of, number in arrivals if of == tenant}
        own |= set(sorted(its, key=series_digest)[:most])
    assert set(pane) - {OTHER} == own
    assert sum(rows.decode(packed).n for packed in pane.values()) == len(arrivals)


def test_types_are_capped_by_tenant() -> None:
    """The version that all tenants share says so, and a commit's limits hand it on."""
    (types,) = (version for version in SYSTEM if version.vid == TYPES)
    assert limits_of(types).by_owner
    assert cap_of(limits_of(types), 2) == Cap(MAX_TYPES // 2, by_owner=True)


def test_a_version_of_whose_panes_rows_are_taken_says_so() -> None:
    """Also to the task that counts it, and a commit's limits hand it on."""
    gapped = Version(7, "acme", "m", ((60, 3_600),), max_series=10, gapped=True)
    read_again = versions_from_json(versions_to_json([gapped]))[7]
    assert cap_of(limits_of(read_again), 2) == Cap(5, gapped=True)


def test_the_limit_is_shared_by_the_shards() -> None:
    """Each shard has its share of `max_series`, at least one."""
    assert cap_of(Limits({}, 1000), 2) == Cap(500)
    assert cap_of(Limits({}, 1), 4) == Cap(1)


@given(
    arrivals=st.lists(st.tuples(st.integers(0, 9), st.integers(-9, 9).map(float)), max_size=30),
    late=st.lists(st.tuples(st.integers(0, 9), st.integers(-9, 9).map(float)), max_size=10),
    limit=st.integers(1, 5),
    named=st.integers(0, 9),
)
def test_who_is_in_other_has_no_second_place(
    arrivals: Arrivals, late: Arrivals, limit: int, named: int
) -> None:
    """An erasure takes a row out of a full pane; who comes late has all of its events in one."""
    pane = {series: rows.encode(row) for series, row in store(arrivals, [7, 14], limit).items()}
    gone = pane.pop(f"={named}", None)
    if gone is not None:
        pane[OTHER] = rows.merge_packed(pane.get(OTHER), rows.decode(gone))
    was_there = frozenset(pane)
    cap = Cap(limit, gapped=True)
    for number, value in late:
        arriving = {f"={number}": Row(1, value, value, value)}
        apply(pane, merge_pane(read(pane, arriving, cap), arriving, cap))

    held = {series: rows.decode(packed).n for series, packed in pane.items()}
    if OTHER in was_there:
        assert frozenset(pane) == was_there
    for number in range(10):
        series = f"={number}"
        came = [one for one, _value in arrivals if series != f"={named}" and one == number]
        if series in held and series != f"={named}":
            assert held[series] == len(came) + sum(one == number for one, _value in late)
    assert sum(held.values()) == len(arrivals) + len(late)
