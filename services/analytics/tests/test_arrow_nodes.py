"""Arrow's kernels mean what the reference means, on drawn expressions and hostile events."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, get_args

import pyarrow as pa
import pytest
from weir.expressions import Kind, Node, Path, evaluate, parse_number
from weir.expressions.functions import NAMES, SAID_OTHERWISE
from weir.expressions.numbers import as_double
from weir.expressions.parse import parse_kind
from weir.expressions.tree import Call, Constant, walk
from weir_analytics.panes.arrow_functions import FUNCTIONS, TYPES
from weir_analytics.panes.arrow_nodes import ReadArray, has_kernel, run_node
from weir_analytics.panes.compile_views import View

from .compile_cases import (
    LITERAL_TEXTS,
    PATTERNS,
    assert_as_the_reference,
    draw_event,
    drawn_trees,
    every_function,
    function_events,
)

JOBS, TREES, EVENTS = 5, 200, 20
# Of the cases, and of the trees that do not yield the same on each of their events.
NOT_NULL, TELLING = 0.5, 0.6


def reader(events: Sequence[Mapping[str, Any]]) -> ReadArray:
    """Return the views of some events, made one by one as the reference reads them."""

    def typed(wanted: type) -> Any:
        return lambda value: value if isinstance(value, wanted) else None

    made: dict[View, tuple[Any, Any]] = {
        View.NUMBER: (as_double, pa.float64()),
        View.TEXT: (typed(str), pa.string()),
        View.BOOL: (typed(bool), pa.bool_()),
        View.PRESENT: (lambda value: value is not None, pa.bool_()),
        View.SIZE: (lambda v: float(len(v)) if isinstance(v, list) else None, pa.float64()),
    }

    def read(path: Path, view: View) -> Any:
        values = [path.read(event) for event in events]
        if view is View.ITEMS:
            return [typed(list)(value) for value in values]
        one, kind = made[view]
        return pa.array([one(value) for value in values], kind)

    return read


def computed(tree: Node, events: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return what Arrow makes of some events by an expression."""
    assert has_kernel(tree)
    found = run_node(tree, reader(events), len(events))
    assert found.type == TYPES[tree.kind], tree
    values: list[Any] = found.to_pylist()
    return values


def of_values(text: str, values: Sequence[Any], kind: Kind = Kind.BOOL) -> list[Any]:
    """Return what an expression on `data.x` yields for some values."""
    return computed(parse_kind(text, kind), [{"data": {"x": value}} for value in values])


class TestAgainstTheReference:
    def test_twenty_thousand_cases(self, seed: int) -> None:
        """Drawn expressions of every node and kind yield on drawn events what the reference does.

        The type of a result must be the same too. The cases must be worth it: most are not
        null, and most expressions tell events apart.
        """
        not_null = telling = 0
        for job in range(JOBS):
            random = Random(f"{seed}/{job}")  # noqa: S311 - cases, no secrets
            trees = drawn_trees(random, TREES)
            events = [json.loads(draw_event(random)) for _ in range(EVENTS)]
            for tree in trees:
                wanted = [evaluate(tree, event) for event in events]
                found = computed(tree, events)
                for event, one, other in zip(events, found, wanted, strict=True):
                    assert (one, type(one)) == (other, type(other)), (seed, event, tree)
                not_null += sum(value is not None for value in wanted)
                telling += len(set(map(repr, wanted))) > 1
        assert not_null > NOT_NULL * JOBS * TREES * EVENTS
        assert telling > TELLING * JOBS * TREES

    def test_every_function_on_every_hostile_value(self) -> None:
        """Each function with each literal that it may take is applied to each value.

        Only the last digit of what is approximated may differ: of those C libraries differ.
        """
        events = list(map(json.loads, function_events()))
        for tree in every_function():
            for event, got in zip(events, computed(tree, events), strict=True):
                assert_as_the_reference(tree, event, got)

    def test_drawn_cases_hold_every_function(self) -> None:
        """The cases are not few of the functions over and over: each is drawn within 400."""
        nodes = [node for tree in drawn_trees(Random(1), 400) for node in walk(tree)]  # noqa: S311
        called = {node.name for node in nodes if isinstance(node, Call)}

        assert {type(node) for node in nodes} == set(get_args(Node))
        assert called == set(NAMES) - set(SAID_OTHERWISE)

    @pytest.mark.parametrize("digits", [0, 1, 2, 5, 15])
    def test_numbers_near_the_middle_of_two_roundings(self, seed: int, digits: int) -> None:
        """Numbers of all magnitudes are rounded by the digits that one sees."""
        random = Random(f"{seed}/{digits}")  # noqa: S311
        drawn = [round(random.uniform(-1e4, 1e4), random.randrange(8)) for _ in range(2_000)]
        drawn += [random.randrange(-(10**6), 10**6) / 2 / 10**digits for _ in range(2_000)]
        drawn += [random.uniform(-1, 1) * 10.0 ** random.uniform(-20, 30) for _ in range(2_000)]
        drawn += [math.nextafter(x, math.inf) for x in drawn[2_000:3_000]]
        events = [{"data": {"x": x}} for x in drawn]
        tree = parse_number(f"round(data.x, {digits})")

        assert computed(tree, events) == [evaluate(tree, event) for event in events], seed

    def test_drawn_times_of_all_centuries(self, seed: int) -> None:
        """The calendar is the reference's, before the year 1 and after 9999 too."""
        random = Random(seed)  # noqa: S311
        drawn = [float(random.randrange(-(10**15), 10**15)) for _ in range(2_000)]
        drawn += [float(random.randrange(-(10**13), 10**13)) for _ in range(2_000)]
        events = [{"data": {"x": x}} for x in drawn]
        trees = [tree for tree in every_function() if isinstance(tree, Call)]
        of_time = ("year", "month", "day", "day_of_week", "hour", "minute", "date_trunc")
        for tree in (tree for tree in trees if tree.name in of_time):
            assert computed(tree, events) == [evaluate(tree, event) for event in events], seed

    def test_patterns_on_texts_that_are_nearly_theirs(self, seed: int) -> None:
        """Each pattern is tried on texts drawn of its own segments, where they may overlap."""
        random = Random(seed)  # noqa: S311
        parts = ["a", "b", "ab", "é", "x", "|", "eu", "E", "\\E", "\\Q", "a%", "b_c", "\n", "\0"]
        texts = ["".join(random.choices(parts, k=random.randrange(5))) for _ in range(500)]
        events: list[dict[str, Any]] = [{"data": {"x": text}} for text in (*texts, None)]
        for pattern in (*PATTERNS, "a%a", "ab%ab", "é%é", "a%b%a", "%\n%a", "a\\_%%\\%", "%\0%b"):
            tree = parse_kind(f"data.x like '{pattern}'", Kind.BOOL)
            wanted = [evaluate(tree, event) for event in events]
            assert computed(tree, events) == wanted, (seed, pattern)


class TestEdges:
    def test_functions_are_those_of_the_language(self) -> None:
        """Every function that can be said has a kernel, and no other."""
        assert set(FUNCTIONS) | set(SAID_OTHERWISE) == set(NAMES)

    def test_what_has_no_kernel_is_told(self) -> None:
        """A tree with a function that has no kernel somewhere is not said to have one."""
        known = parse_number("length(data.x) + 1")
        unknown = Call("lower", (Call("rot13", (Constant("a", Kind.TEXT),), Kind.TEXT),), Kind.TEXT)

        assert has_kernel(known)
        assert not has_kernel(unknown)

    def test_an_empty_batch(self) -> None:
        """No events give no rows, of the right type, by whatever expression."""
        trees = [*drawn_trees(Random(3), 300), *every_function()]  # noqa: S311

        assert [computed(tree, []) for tree in trees] == [[]] * len(trees)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("7.5", 7.5),
            ("1 + 2 * 3", 7.0),
            ("1 / 0", None),
            ("length(concat(trim(' a '), 'é'))", 2.0),
            ("if(lower('EU') in ('eu', 'a') and not 'a' like '%b', 1, data.x)", 1.0),
            ("if('a' is null, 1, null) % 2", None),
            ("coalesce(1 / 0, greatest(1, 3), 2)", 3.0),
        ],
    )
    def test_what_reads_no_event_is_the_same_for_all(self, text: str, value: float | None) -> None:
        """A constant, or what is computed of constants, stands in every row, also of none."""
        tree = parse_number(text)

        assert computed(tree, [{"data": {"x": "a"}}] * 3) == [value] * 3
        assert computed(tree, []) == []

    def test_minus_zero_is_zero_in_a_list(self) -> None:
        """A product that is -0.0 is found among options, in a short and in a long list."""
        many = ", ".join(map(str, range(40)))

        assert of_values("data.x * -1 in (0, 9)", [0, 9, None]) == [True, False, None]
        assert of_values(f"data.x * -1 in ({many})", [0, -7, 7]) == [True, True, False]

    def test_texts_are_ordered_by_code_point(self) -> None:
        """What is beyond 16 bits is greater than all that is not, unlike in UTF-16."""
        assert of_values("data.x > '\uffee'", ["😀", "é", "\uffee", "", None]) == [
            *(True, False, False, False, None)
        ]

    @pytest.mark.parametrize("name", ["trim", "ltrim", "rtrim"])
    def test_what_is_trimmed_is_characters(self, name: str) -> None:
        """A character that has a byte in common with one that is trimmed stays."""
        events = [{"data": {"x": text}} for text in ("èaè", "éaé", "éèaèé", "ࣩ", "é", "")]
        tree = parse_kind(f"{name}(data.x, 'é|')", Kind.TEXT)

        assert computed(tree, events) == [evaluate(tree, event) for event in events]

    @pytest.mark.parametrize("literal", LITERAL_TEXTS)
    def test_a_function_of_a_literal_and_a_member(self, literal: str) -> None:
        """What is mostly asked of a member with a literal is also told the other way around."""
        quoted = "'" + literal.replace("'", "''") + "'"
        texts = [*LITERAL_TEXTS, "e", None, "straße"]
        events: list[dict[str, Any]] = [{"data": {"x": text}} for text in texts]
        for name in ("starts_with", "ends_with", "contains", "position"):
            sides = (quoted, "data.x"), ("data.x", quoted), ("data.x", "if(1 = 2, 'a', null)")
            for text, other in sides:
                said = f"{name}({text}, {other})"
                if name == "position":
                    said = f"(position({other} in {text}) = 1)"
                tree = parse_kind(said, Kind.BOOL)
                assert computed(tree, events) == [evaluate(tree, event) for event in events], said

    def test_repeated_wildcards_match_in_linear_time(self) -> None:
        """A pattern with several `%` on a megabyte of near misses ends at once."""
        texts = ["a" * 900_000, "a" * 900_000 + "b"]

        assert of_values("data.x like '%a%a%a%a%b'", texts) == [False, True]
        assert of_values("data.x like '%aa%ab%ab%aab%b%b%'", texts) == [False, False]

    def test_long_literals_are_looked_for_in_linear_time(self) -> None:
        """A literal of thousands of characters on a megabyte of near misses ends at once."""
        wanted, text = "a" * 3_500 + "b", "a" * 900_000
        begun = time.process_time()
        asked = {
            f"data.x like 'a%{wanted}%'": Kind.BOOL,
            f"replace(data.x, '{wanted}', '')": Kind.TEXT,
        }
        found = [of_values(said, [text, text + "b"], kind) for said, kind in asked.items()]

        assert found == [[False, True], [text, text[3_500:]]]
        assert time.process_time() - begun < 1

    def test_a_part_that_stands_at_many_places_is_computed_once(self) -> None:
        """What `nullif` in `nullif` repeats is not computed twice at each level."""
        text = "data.x"
        for _ in range(5):
            text = f"nullif({text}, 1)"
        reads: Counter[Path] = Counter()
        read = reader([{"data": {"x": 2}}])

        def counted(path: Path, view: View) -> Any:
            reads[path] += 1
            return read(path, view)

        assert run_node(parse_number(text), counted, 1).to_pylist() == [2.0]
        assert reads == {Path(("data", "x")): 1}


@pytest.mark.parametrize("count", [16, 17, 5_000])
def test_a_long_array_is_hashed(count: int) -> None:
    """It is asked for items of three types, which Python takes for each other's."""
    events: list[dict[str, Any]] = [
        {"data": {"x": [*range(2, count), last]}} for last in (1, 1.0, True, "1", -0.0, None, [1])
    ]
    for said in ("has(data.x, 1)", "has(data.x, true)", "has(data.x, '1')", "has(data.x, 0)"):
        tree = parse_kind(said, Kind.BOOL)
        assert computed(tree, events) == [evaluate(tree, event) for event in events], said
