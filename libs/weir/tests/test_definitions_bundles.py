"""Changes that are written together: all are taken, or none, whatever else is written."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.definitions.bundles import BROKEN, MOST
from weir.definitions.fold import Definitions
from weir.definitions.outcomes import Change, Outcome
from weir.definitions.records import Edit, NewRecord, bundle_records, delete_record, put_record

TEXT = "kind: metric\nname: {}\nevents: {{type: t}}"
HELD, APPLIED, CONFLICT = Outcome.HELD, Outcome.APPLIED, Outcome.CONFLICT

# Name and the version that it is based on, 0 for none.
Bases = Sequence[tuple[str, int]]


def edit(name: str, based_on: int) -> Edit:
    """Return an edit of a metric of tenant `acme`."""
    return Edit("acme", "metric", name, based_on or None, by="key:a1b2c3d4", at_ms=7)


def single(name: str, based_on: int) -> NewRecord:
    """Return a change that stands alone."""
    return put_record(edit(name, based_on), TEXT.format(name))


def bundle(bases: Bases, called: str = "b1") -> list[NewRecord]:
    """Return the records of a bundle."""
    puts = [(edit(name, based_on), TEXT.format(name)) for name, based_on in bases]
    return bundle_records(puts, called)


def fold(state: Definitions, records: Sequence[NewRecord], first: int = 0) -> list[Change]:
    """Fold records in, one directly behind the other."""
    changes = [state.apply(first + at, *record) for at, record in enumerate(records)]
    assert None not in changes
    return [change for change in changes if change is not None]


class TestAllOrNone:
    def test_all(self) -> None:
        """Nothing is there before the last record; each has its own number and offset."""
        state = Definitions()
        fold(state, [single("a", 0)])
        first, second = bundle([("a", 1), ("b", 0)])
        (held,) = fold(state, [first], 1)
        assert (held.outcome, held.versions, held.applied) == (HELD, (), False)
        assert [d.version for d in state.current()] == [1]

        (taken,) = fold(state, [second], 2)
        assert (taken.outcome, [d.name for d in taken.versions]) == (APPLIED, ["a", "b"])
        assert [(d.name, d.version, d.vid) for d in state.current()] == [("a", 2, 1), ("b", 1, 2)]
        assert [d.version for d in state.history("acme", "metric", "a")] == [2, 1]
        assert state.by_vid(1) == state.get("acme", "metric", "a")

    def test_none(self) -> None:
        """One that is based on an older version takes the others with it, and is named."""
        state = Definitions()
        fold(state, [single("b", 0), single("b", 1)])
        held, lost = fold(state, bundle([("a", 0), ("b", 1), ("c", 4)])[:2], 2), None
        (lost,) = fold(state, bundle([("a", 0), ("b", 1), ("c", 4)])[2:], 4)
        assert [one.outcome for one in held] == [HELD, HELD]
        assert (lost.outcome, lost.versions) == (CONFLICT, ())
        assert lost.note == (
            "of a bundle all or none: metric/b: the current version is 2; "
            "metric/c: the current version is 0"
        )
        assert [(one.version.name, one.why) for one in lost.lost] == [
            (name, lost.note) for name in "abc"
        ]
        assert [(d.name, d.version) for d in state.current()] == [("b", 2)]
        assert state.by_vid(2) is None

    def test_one_alone_is_no_bundle(self) -> None:
        """It is written as ever, so that a release without bundles reads it."""
        assert bundle([("a", 0)]) == [single("a", 0)]
        values = [json.loads(record.value) for record in bundle([("a", 0), ("b", 0)])]
        assert [value["v"] for value in values] == [2, 2]

    def test_one_that_comes_twice(self) -> None:
        """No order of its two texts would be right."""
        change = fold(Definitions(), bundle([("a", 0), ("a", 0)]))[-1]
        assert change.outcome is CONFLICT
        assert "twice" in change.note

    def test_written_twice_counts_once(self) -> None:
        """As when a client sends again what it had no answer for."""
        state = Definitions()
        changes = fold(state, [*bundle([("a", 0), ("b", 0)]), *bundle([("a", 0), ("b", 0)], "b2")])
        assert [one.outcome for one in changes] == [HELD, APPLIED, HELD, CONFLICT]
        assert [d.version for d in state.current()] == [1, 1]


class TestBroken:
    @pytest.mark.parametrize(
        "between",
        [
            single("z", 0),
            single("a", 0),
            delete_record(edit("a", 0)),
            NewRecord(b"junk", b"not json"),
            NewRecord(b"_/start", b"{}"),
        ],
    )
    def test_anything_between_ends_it(self, between: NewRecord) -> None:
        """Told with the record that came between, and of what comes after it with itself."""
        state = Definitions()
        first, second = bundle([("a", 0), ("b", 0)])
        _, came, late = fold(state, [first, between, second])
        assert [(one.version.vid, one.why) for one in came.lost] == [(0, BROKEN)]
        assert (late.outcome, late.note) == (CONFLICT, BROKEN)
        assert [one.version.vid for one in late.lost] == [2]
        assert state.get("acme", "metric", "b") is None
        assert state.by_vid(0) is None

    def test_a_place_that_is_left_out(self) -> None:
        """An offset between, too, although no record of it was read."""
        state = Definitions()
        first, second = bundle([("a", 0), ("b", 0)])
        fold(state, [first])
        (late,) = fold(state, [second], 2)
        assert late.outcome is CONFLICT
        assert [one.version.vid for one in late.lost] == [0, 2]

    def test_another_bundle_begins(self) -> None:
        """Parts of two are never taken for one, also where places and sizes fit."""
        one, other = bundle([("a", 0), ("b", 0)]), bundle([("c", 0), ("d", 0)], "b2")
        state = Definitions()
        changes = fold(state, [one[0], other[0], one[1], other[1]])
        told = [change.outcome for change in changes]
        assert told == [HELD, HELD, CONFLICT, CONFLICT]
        assert [[lost.version.name for lost in change.lost] for change in changes] == [
            [],
            ["a"],
            ["c", "b"],
            ["d"],
        ]
        assert state.current() == []

    def test_what_breaks_it_may_itself_be_a_whole_bundle(self) -> None:
        """What was lost is told once, before it."""
        state = Definitions()
        whole = bundle([("a", 0), ("c", 0)], "b2")
        _, begun, taken = fold(state, [bundle([("a", 0), ("b", 0)])[0], *whole])
        assert [one.version.vid for one in begun.lost] == [0]
        assert (taken.outcome, taken.lost) == (APPLIED, ())
        assert [d.name for d in state.current()] == ["a", "c"]

    @pytest.mark.parametrize(
        "told",
        [
            {"id": "b", "at": 0, "of": 1},
            {"id": "b", "at": 2, "of": 2},
            {"id": "b", "at": -1, "of": 2},
            {"id": "b", "at": 0, "of": MOST + 1},
            {"id": 1, "at": 0, "of": 2},
            {"id": "b", "at": 0},
            None,
        ],
    )
    def test_what_is_no_bundle(self, told: object) -> None:
        """Of one, beyond its end, too large: nothing is held, and the fold goes on."""
        record = bundle([("a", 0), ("b", 0)])[0]
        value = json.loads(record.value) | {"bundle": told}
        state = Definitions()
        change = state.apply(0, record.key, value)
        assert change is not None
        assert change.outcome is Outcome.UNREADABLE
        assert fold(state, [single("a", 0)], 1)[0].lost == ()


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Bases], list[int]]:
    """Draw what is written, and whose record comes next; mostly bundles are not broken."""
    bases = st.tuples(st.sampled_from("abc"), st.integers(0, 3))
    wholes = st.lists(bases, min_size=1, max_size=3, unique_by=lambda base: base[0])
    writes = draw(st.lists(wholes, max_size=8))
    turns = [at for at, write in enumerate(writes) for _ in write]
    if draw(st.booleans()):
        turns = draw(st.permutations(turns))
    return list(writes), turns


@given(logs())
def test_all_or_none_under_any_interleaving(drawn: tuple[list[Bases], list[int]]) -> None:
    """The fold is what it is if each write that nothing breaks is judged at once, as a whole.

    The oracle keeps one number a name, and never holds anything.
    """
    writes, turns = drawn
    records = [bundle(write, f"b{at}") for at, write in enumerate(writes)]
    offsets: list[list[int]] = [[] for _ in writes]
    state = Definitions()
    for offset, turn in enumerate(turns):
        state.apply(offset, *records[turn][len(offsets[turn])])
        offsets[turn].append(offset)

    versions = dict.fromkeys("abc", 0)
    for write, found in sorted(zip(writes, offsets, strict=True), key=lambda one: one[1][-1]):
        is_whole = found[-1] - found[0] == len(found) - 1
        wins = is_whole and all(versions[name] == based_on for name, based_on in write)
        assert [state.by_vid(offset) is not None for offset in found] == [wins] * len(found)
        if wins:
            versions |= {name: based_on + 1 for name, based_on in write}
    for name, newest in versions.items():
        history = state.history("acme", "metric", name)
        assert [one.version for one in history] == list(range(newest, 0, -1))
        assert [one.vid for one in history] == sorted((one.vid for one in history), reverse=True)
