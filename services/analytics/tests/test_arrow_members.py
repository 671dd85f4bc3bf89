"""What is taken of events: of a tenant's type what its metrics read, whatever lies beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from weir.definitions.selection import Selection
from weir.expressions import Path, parse_path
from weir.expressions.numbers import scalar_text
from weir_analytics.panes import arrow_members, arrow_reads
from weir_analytics.panes.arrow_events import Events
from weir_analytics.panes.arrow_members import column_of, joined, values_in
from weir_analytics.panes.arrow_reads import Reads
from weir_analytics.panes.compile_views import View
from weir_analytics.panes.places import times_ms_of

from .compile_cases import event_of
from .test_arrow_events import members_of
from .test_arrow_nodes import reader

pytestmark = pytest.mark.usefixtures("each_decoder")
VALUES = ("1", "1.0", "2.5", '"a"', '"b"', "true", "null", "[1,2]", '{"y":3}', "7")
SUBJECT = parse_path("subject")


def selecting(*types: str) -> Selection:
    """Return what selects some types."""
    return Selection.model_validate({"type": list(types)})


def drawn(random: Random, types: int, count: int) -> list[bytes]:
    """Return two tenants' events of some types, of six members a few, and some that are none."""
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
        value = value.replace(f'"type":"{given}"', f'"type":"t.{kind}"')
        if random.random() < 0.3:
            value = value.replace('"weirtenant":"default"', '"weirtenant":"acme"')
        found.append(value.encode())
        if random.random() < 0.05:
            found.append(b"{")
    return found


def taken(values: list[bytes], reads: Reads, random: Random) -> Events:
    """Return events that were taken list by list, those that are none among them or left out."""
    members = members_of(reads)
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
        monkeypatch.setattr(arrow_members, "_BYTES_AT_ONCE", random.choice([1, 2_000, 10**9]))
        # Each kind apart, or all of them together.
        monkeypatch.setattr(arrow_members, "_COLUMN", random.choice([-(10**6), 0, 100, 10**6]))
        values = drawn(random, types, 250)
        paths = [parse_path(text) for text in ("data.a", "data.b", "data.c.y", "data.d[0]", "type")]
        metrics = [
            ("default", selecting("t.1", "t.2"), paths[:2]),
            ("default", selecting("t.3*"), paths[2:4]),
            ("default", selecting("t.0"), [paths[4], parse_path("data.c")]),
            ("default", selecting("*"), [parse_path("data.e")]),
            ("acme", selecting("t.1", "t.3*"), [parse_path("data.f"), *paths[1:3]]),
        ]
        events = taken(values, Reads([SUBJECT], metrics), random)

        said = [json.loads(v) if v != b"{" else {} for v in values]
        types_of, owners = ([one.get(k) for one in said] for k in ("type", "weirtenant"))
        for name, wanted_words in (("type", types_of), ("weirtenant", owners)):
            words = events.members.words(name)
            assert [words.of(at) for at in range(len(values))] == wanted_words
        of_all = [(tenant, selecting("*"), [SUBJECT]) for tenant in ("default", "acme")]
        for tenant, selection, own in [*metrics, *of_all]:
            at = np.array(
                [
                    n
                    for n, (t, owner) in enumerate(zip(types_of, owners, strict=True))
                    if t and owner == tenant and selection.matches_type(t)
                ],
                np.intp,
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

    def test_only_what_a_type_reads_is_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A member that another type's metrics read, or another tenant's, costs events nothing."""
        monkeypatch.setattr(arrow_members, "_COLUMN", 0)
        path, other = parse_path("data.a"), parse_path("data.b")
        metrics = [
            ("default", selecting("t.1"), [path]),
            ("acme", selecting("t.2"), [other]),
            ("nobody", selecting("t.1", "t*"), [other]),
        ]
        members = members_of(Reads([], metrics))
        members.add(drawn(Random(1), 3, 90))  # noqa: S311
        types, tenants = members.words("type"), members.words("weirtenant")
        is_one = np.array(
            [(types.of(n), tenants.of(n)) == ("t.1", "default") for n in range(members.size)]
        )
        is_other = np.array(
            [(types.of(n), tenants.of(n)) == ("t.2", "acme") for n in range(members.size)]
        )

        assert 0 < is_one.sum() < 90
        assert 0 < is_other.sum() < 90
        assert len(members.taken(path).column) == is_one.sum() + 1
        assert len(members.taken(other).column) == is_other.sum() + 1
        present = Events(members, np.zeros(members.size, np.int64)).read(path, View.PRESENT)
        assert not present.to_numpy(zero_copy_only=False)[~is_one].any()

    def test_kinds_are_apart_where_that_is_less(self) -> None:
        """Those that read other members, or are many; few that share what they read are one."""
        one, other = parse_path("data.a"), parse_path("data.b")
        shared = [parse_path(f"data.{name}") for name in "cdefgh"]

        def columns(each: int, of_all: list[Path]) -> int:
            metrics = [
                ("default", selecting("t"), [one, *of_all]),
                ("acme", selecting("t"), [other, *of_all]),
            ]
            members = members_of(Reads([], metrics))
            value = event_of('{"a":1,"b":2}')
            acme = value.replace('"weirtenant":"default"', '"weirtenant":"acme"')
            members.add([value.encode(), acme.encode()] * each)
            return len(members.taken(one).column) - 1

        assert columns(2, []) == 2
        assert columns(2, shared) == 4
        assert columns(1_000, shared) == 1_000

    def test_what_lies_below_is_taken_and_not_the_whole(self) -> None:
        """An object of which one value is read is not held: neither it nor its other values."""
        path = parse_path("data.d.k[1]")
        members = members_of(Reads([path]))
        long = "a" * 2_000
        members.add(
            [event_of(f'{{"d":{{"k":[0,{n}],"z":["{long}"]}}}}').encode() for n in range(99)]
        )

        assert values_in(members.taken(path).column) == [*range(99), None]
        assert members.bytes < 99 * 110
        assert members.coded(path).texts == [*map(str, range(99)), None]

    @pytest.mark.parametrize("size", [1, 3, 8])
    def test_so_many_bytes_are_decoded_at_once(
        self, size: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A list of large events is decoded piece by piece, one at least."""
        sizes: list[int] = []
        members = members_of(Reads([parse_path("data.x")]))
        decode = members._decoder.events

        def counted(values: Sequence[bytes | None]) -> list[object]:
            sizes.append(len(values))
            return decode(values)

        monkeypatch.setattr(members._decoder, "events", counted)
        value = event_of('{"x":1}').encode()
        monkeypatch.setattr(arrow_members, "_BYTES_AT_ONCE", len(value) * size + 1)
        members.add([value, None, *[value] * 9])

        assert sum(sizes) == members.size == 11
        assert max(sizes) == size + 1  # None weighs nothing
        assert values_in(members.taken(parse_path("data.x")).column) == [1, None, *[1] * 9, None]

    def test_what_is_held_is_weighed(self) -> None:
        """A column by its own size, Python's objects by what they take at least."""

        def held(*data: str, each: int = 100) -> int:
            members = members_of(Reads([parse_path("data.x")]))
            for one in data:
                members.add([event_of(one).encode()] * each)
            return members.bytes

        assert 100 * 8 <= held('{"x":1.5}') < 5_000
        assert 100 * 500 <= held(f'{{"x":"{"a" * 500}"}}') < 60_000
        assert held(f'{{"x":[{"[]," * 99}[]]}}') > 100 * 100 * 50
        # Values of two types are objects in the end, also those that were texts at first.
        texts, mixed = held(*['{"x":"a"}'] * 10), held(*['{"x":"a"}'] * 9, '{"x":1}')
        assert mixed > texts + 1_000 * 50
        # A number may have thousands of digits, a sign of a text four bytes.
        assert held(f'{{"x":{"9" * 4_000}}}') > 100 * 1_700
        wide = held(f'{{"x":"{chr(0x1F600) * 500}"}}', *['{"x":"a"}'] * 3, each=1)
        assert wide > 500 * 4
        # Nor does it matter where the other type is, and what it is.
        for other in ('{"x":1}', '{"x":[]}'):
            members = members_of(Reads([parse_path("data.x")]))
            both = [event_of('{"x":"a"}').encode()] * 99 + [event_of(other).encode()]
            rest = [event_of('{"x":"a"}').encode()] * 100
            for some in (both, *[rest] * 9):
                members.add(some)
            assert members.bytes > texts + 900 * 50
        # What nobody reads is not held.
        assert held(f'{{"z":"{"a" * 500}"}}') < 5_000
        # Each column takes something, however little is in it; and so does what is none yet.
        assert held(*['{"x":1}'] * 20) - held('{"x":1}', each=2_000) > 19 * 900
        assert 20 * 50 <= held(*['{"x":1}'] * 20, each=1) < 20 * 1_000
        assert held(*[f'{{"x":"{"a" * 500}"}}'] * 20, each=1) > 20 * 500
        assert held(*[f'{{"x":[{"[]," * 99}[]]}}'] * 20, each=1) > 20 * 100 * 50

    def test_a_member_of_a_rare_type_costs_no_more_than_its_values(self) -> None:
        """However many events there are, and whatever else they are."""
        paths = [parse_path(f"data.a{n}") for n in range(200)]
        metrics = [("default", selecting(f"t{n}"), [path]) for n, path in enumerate(paths)]
        members = members_of(Reads([], metrics))
        own = [
            event_of(f'{{"a{n}":{n}}}').replace('"type":"t"', f'"type":"t{n}"').encode()
            for n in range(200)
        ]
        for _ in range(20):
            members.add(own)
        held = 0
        for n, path in enumerate(paths):
            taken = members.taken(path)
            held += taken.column.nbytes + taken.events.nbytes  # type: ignore[union-attr]
            found = values_in(taken.at(np.arange(members.size)))
            assert found == [n if place % 200 == n else None for place in range(members.size)]

        assert held < members.bytes < 500 * members.size
        nobody = members.taken(parse_path("data.nobody"))
        assert values_in(nobody.at(np.array([0, 7]))) == [None, None]

    def test_what_waited_is_found_behind_what_did_not(self) -> None:
        """A list with many values of a member is a column at once, those before it later."""
        path = parse_path("data.x")
        members = members_of(Reads([], [("default", selecting("t"), [path])]))
        other = event_of("{}").replace('"type":"t"', '"type":"other"').encode()

        def some(start: int, end: int) -> list[bytes]:
            return [event_of(f'{{"x":{n}}}').encode() for n in range(start, end)]

        members.add([*some(0, 3), *[other] * 200])
        members.add([*[other] * 300, *some(3, 300), other])
        members.add([*some(300, 305), *[other] * 900])
        taken = members.taken(path)
        assert taken.order is not None
        found = values_in(taken.at(np.arange(members.size)))

        assert [value for value in found if value is not None] == [*range(305)]
        assert found[:3] == [0, 1, 2]
        assert found[503:800] == [*range(3, 300)]

    def test_few_values_are_a_column_once_they_are_many(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of a thousand kinds in a list each has a few: they wait for those of later lists."""
        monkeypatch.setattr(arrow_members, "_AT_ONCE", 10)
        members = members_of(Reads([parse_path("data.x")]))
        for at in range(0, 95, 5):
            members.add([event_of(f'{{"x":{n}}}').encode() for n in range(at, at + 5)])

        (pieces,) = members._pieces.values()
        assert [len(column) for _places, column in pieces] == [10] * 9
        assert values_in(members.taken(parse_path("data.x")).column) == [*range(95), None]
        assert not members._few

    def test_long_types_are_weighed_and_not_remembered(self) -> None:
        """A type is as long as its client likes; no definition names one over 256."""
        reads = Reads([], [("default", selecting("t*"), [parse_path("data.a")])])
        members = members_of(reads)
        names = ["t" * length for length in (255, 256, 257, 100_000)]
        members.add([event_of("{}").replace('"type":"t"', f'"type":"{n}"').encode() for n in names])

        assert members.bytes > 100_000
        assert sorted(len(name) for _tenant, name in reads._known) == [255, 256]
        assert {len(reads.of("default", name)) for name in names} == {1}
        assert {len(reads.of("acme", name)) for name in names} == {0}

    def test_tenants_without_a_metric_are_not_remembered(self) -> None:
        """What is forged may name any, of any length, and makes nobody else be forgotten."""
        reads = Reads([SUBJECT], [("default", selecting("t*"), [parse_path("data.a")])])
        assert len(reads.of("default", "t1")) == 2
        assert {reads.of(f"made up {n}", "t1") for n in range(99)} == {frozenset([SUBJECT])}
        assert list(reads._known) == [("default", "t1")]

    def test_so_many_types_are_remembered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A client that makes them up fills no memory."""
        monkeypatch.setattr(arrow_reads, "_TYPES_KEPT", 10)
        reads = Reads([], [("default", selecting("t*"), [parse_path("data.a")])])
        for n in range(95):
            assert len(reads.of("default", f"t{n}")) == 1
            assert len(reads._known) <= 10

    def test_so_many_paths_of_sets_are_remembered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What lists of many types read together is another set each time."""
        monkeypatch.setattr(arrow_reads, "_PATHS_KEPT", 100)
        reads = Reads([])
        shared = [parse_path(f"data.s{n}") for n in range(30)]
        for n in range(50):
            leaves = reads.leaves(frozenset([*shared, parse_path(f"data.a{n}")]))
            assert len(leaves) == 31
            assert sum(map(len, reads._leaves)) <= 100
        one = frozenset(shared)
        assert reads.leaves(one) is reads.leaves(one)

    def test_texts_are_let_go_and_made_again(self) -> None:
        """They are weighed, and who asks again has the same."""
        path = parse_path("data.x")
        members = members_of(Reads([path]))
        members.add([event_of(f'{{"x":"{"a" * n}"}}').encode() for n in range(200)])
        first = members.coded(path)
        assert members.coded_bytes > 200 * 100
        members.forget()
        again = members.coded(path)

        assert again is not first
        assert (again.texts, again.codes.tolist()) == (first.texts, first.codes.tolist())


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
