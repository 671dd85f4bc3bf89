"""What is taken of events: of each type what its metrics read, whatever lies beside it."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from weir.definitions.selection import Selection
from weir.expressions import Path, parse_path
from weir.expressions.numbers import scalar_text
from weir_analytics.panes import arrow_members
from weir_analytics.panes.arrow_events import Events
from weir_analytics.panes.arrow_members import Decoder, Members, Reads, column_of, joined, values_in
from weir_analytics.panes.compile_views import View
from weir_analytics.panes.places import times_ms_of

from .compile_cases import event_of
from .test_arrow_nodes import reader

VALUES = ("1", "1.0", "2.5", '"a"', '"b"', "true", "null", "[1,2]", '{"y":3}', "7")
SUBJECT = parse_path("subject")
Wanted = dict[str, list[Path]]


def selecting(*types: str) -> Selection:
    """Return what selects some types."""
    return Selection.model_validate({"type": list(types)})


def drawn(random: Random, types: int, count: int) -> list[bytes]:
    """Return events of some types, with a few of six members each, and some that are none."""
    found: list[bytes] = []
    for _ in range(count):
        kind = random.randrange(types)
        names = random.sample("abcdef", random.randrange(6))
        # A type has values of one JSON type mostly.
        data = {
            name: VALUES[(kind + ord(name)) % 10]
            if random.random() < 0.9
            else random.choice(VALUES)
            for name in names
        }
        text = ",".join(f'"{name}":{value}' for name, value in data.items())
        value = event_of(f"{{{text}}}", subject=f"s{kind}")
        given = json.loads(value)["type"]
        found.append(value.replace(f'"type":"{given}"', f'"type":"t.{kind}"').encode())
        if random.random() < 0.05:
            found.append(b"{")
    return found


def taken(values: list[bytes], reads: Reads, random: Random) -> Events:
    """Return events that were taken list by list, those that are none among them or left out."""
    members = Members(Decoder(reads.all), reads)
    at = 0
    while at < len(values):
        size = random.randrange(1, 60)
        some = values[at : at + size]
        members.add([None if v == b"{" and random.random() < 0.5 else v for v in some])
        at += size
    times = [v if len(v) > 1 else b"0" * 71 for v in values]
    return Events(members, times_ms_of(times))


class TestMembers:
    @pytest.mark.parametrize("types", [1, 3, 40])
    @pytest.mark.parametrize("at_once", [1, 7, 2_000])
    def test_each_type_reads_its_own(
        self, seed: int, types: int, at_once: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By name and by prefix: whatever is read of the others, and however many they are."""
        random = Random(f"{seed}/{types}/{at_once}")  # noqa: S311 - cases, no secrets
        monkeypatch.setattr(arrow_members, "_AT_ONCE", at_once)
        monkeypatch.setattr(arrow_members, "_MOST_TYPES", random.choice([2, 1_000]))
        monkeypatch.setattr(arrow_members, "_FEW_KINDS", random.choice([2, 100]))
        values = drawn(random, types, 250)
        paths = [parse_path(text) for text in ("data.a", "data.b", "data.c.y", "data.d[0]", "type")]
        metrics = [(selecting("t.1", "t.2"), paths[:2]), (selecting("t.3*"), paths[2:4])]
        metrics += [(selecting("t.0"), [paths[4]]), (selecting("*"), [parse_path("data.e")])]
        events = taken(values, Reads([SUBJECT], metrics), random)

        types_of = [json.loads(v)["type"] if v != b"{" else None for v in values]
        words = events.members.words("type")
        assert [words.of(at) for at in range(len(values))] == types_of
        for selection, own in [*metrics, (selecting("*"), [SUBJECT])]:
            at = np.array(
                [n for n, t in enumerate(types_of) if t and selection.matches_type(t)], np.intp
            )
            part, wanted = events.part(at), reader([json.loads(values[n]) for n in at.tolist()])
            for path in own:
                for view in (View.NUMBER, View.TEXT, View.BOOL, View.PRESENT, View.SIZE):
                    found = part.read(path, view)
                    assert repr(found.to_pylist()) == repr(wanted(path, view).to_pylist()), path
                assert part.read(path, View.ITEMS) == wanted(path, View.ITEMS)
                coded = part.coded(path)
                for code, n in zip(coded.codes.tolist(), at.tolist(), strict=True):
                    value = path.read(json.loads(values[n]))
                    if isinstance(value, dict | list):
                        assert code == -1
                    else:
                        assert coded.texts[code] == scalar_text(value)

    def test_only_what_a_type_reads_is_taken(self) -> None:
        """A member that only another type's metrics read costs its events nothing."""
        path = parse_path("data.a")
        reads = Reads([], [(selecting("t.1"), [path]), (selecting("u*"), [parse_path("data.b")])])
        members = Members(Decoder(reads.all), reads)
        members.add(drawn(Random(1), 3, 90))  # noqa: S311
        size = sum(
            code == members.words("type").texts.index("t.1") for code in members.words("type").codes
        )

        assert 0 < size < 90
        assert len(members.leaf(("data", "a")).column) == size + 1
        assert len(members.leaf(("data", "b")).column) == 1
        is_one = members.words("type").codes == members.words("type").texts.index("t.1")
        present = Events(members, np.zeros(members.size, np.int64)).read(path, View.PRESENT)
        assert not present.to_numpy(zero_copy_only=False)[~is_one].any()

    def test_what_is_held_is_weighed(self) -> None:
        """A column by its own size, Python's objects by what they take at least."""

        def held(*data: str) -> int:
            reads = Reads([parse_path("data.x")])
            members = Members(Decoder(reads.all), reads)
            for one in data:
                members.add([event_of(one).encode()] * (100 // len(data)))
            return members.bytes

        assert 100 * 8 <= held('{"x":1.5}') < 2_000
        assert 100 * 500 <= held(f'{{"x":"{"a" * 500}"}}') < 60_000
        assert held(f'{{"x":[{"[]," * 99}[]]}}') > 100 * 100 * 50
        # Values of two types are objects in the end, also those that were texts at first.
        texts, mixed = held(*(['{"x":"a"}'] * 100)), held(*(['{"x":"a"}'] * 99), '{"x":1}')
        assert mixed > texts + 100 * 50
        # What nobody reads is not held.
        assert held(f'{{"z":"{"a" * 500}"}}') < 2_000

    def test_long_types_are_weighed_and_not_remembered(self) -> None:
        """A type is as long as its client likes; no definition names one over 256."""
        reads = Reads([], [(selecting("t*"), [parse_path("data.a")])])
        members = Members(Decoder(reads.all), reads)
        names = ["t" * length for length in (255, 256, 257, 100_000)]
        members.add([event_of("{}").replace('"type":"t"', f'"type":"{n}"').encode() for n in names])

        assert members.bytes > 100_000
        assert sorted(map(len, reads._known)) == [255, 256]
        assert {len(reads.of(name)) for name in names} == {1}


class TestColumns:
    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            (["a", None, ""], pa.string()),
            ([None, None], pa.string()),
            ([], pa.string()),
            ([1, None, -(2**63)], pa.int64()),
            ([1.5, None], pa.float64()),
            ([1, 1.0], None),
            ([2**63], None),
            ([True, None], None),
            (["a", 1], None),
            ([[], None], None),
        ],
    )
    def test_values_of_one_type_are_a_column(
        self, values: list[object], kind: pa.DataType | None
    ) -> None:
        """Nothing else is, and each value is what it was."""
        column = column_of(values)
        assert (column.type if isinstance(column, pa.Array) else None) == kind
        assert repr(values_in(column)) == repr(values)

    def test_columns_one_after_the_other(self) -> None:
        """Of one type, with nulls alone between them, a column; else as they came."""
        texts = joined([column_of(["a"]), column_of([None, None]), column_of(["b", None])])
        assert isinstance(texts, pa.Array)
        assert texts.to_pylist() == ["a", None, None, "b", None]
        numbers = joined([column_of([None]), column_of([1]), pa.nulls(1)])
        assert isinstance(numbers, pa.Array)
        assert (numbers.type, numbers.to_pylist()) == (pa.int64(), [None, 1, None])
        two = joined([column_of([1, None]), column_of([1.0]), column_of(["1"])])
        assert repr(two) == "[1, None, 1.0, '1']"
        mixed = joined(
            [column_of([1]), column_of([1.0]), column_of(["1", None]), column_of([True])]
        )
        assert repr(mixed) == "[1, 1.0, '1', None, True]"
