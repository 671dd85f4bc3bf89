"""docs/proof.md names what is there: each test, each mark of a long one, each bar of a result.

What the tests and benchmarks show is theirs; that a line says what its test shows is for readers.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from bars import Reached, judge

ROOT = Path(__file__).resolve().parents[1]
NAME = "docs/proof.md"
PAGE = (ROOT / NAME).read_text(encoding="utf-8")
LAST = "Not shown yet"
LONG = "mark.disruption"
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
TEST = re.compile(r"\[`(?P<file>\w+\.py)::(?P<name>[\w:]+)`\]\(\.\./(?P<path>\S+)\)(?P<long> †)?")
BAR = re.compile(
    r"\[`make (?P<by>[\w-]+)`: (?P<id>[^,\]]+), (?P<what>[^\]]+)\]\(\.\./(?P<path>\S+)\)"
)


@dataclass(frozen=True)
class Named:
    """A test that a page names, and whether it says that only the long form runs it."""

    path: str
    name: str
    long: bool


@dataclass(frozen=True)
class Bar:
    """A bar that a page names: of which result, by its id and a part of what it is about."""

    path: str
    id: str
    what: str


@dataclass(frozen=True)
class Line:
    """A line of a page: its section, its promise, and what would turn red."""

    section: str
    promise: str
    tests: tuple[Named, ...]
    bars: tuple[Bar, ...]


def lines_of(page: str) -> list[Line]:
    """Return the lines of a page; one that goes on below is one line."""
    found: list[Line] = []
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        items = re.split(r"^- ", body, flags=re.MULTILINE)[1:]
        found += [_line(title, " ".join(item.split())) for item in items]
    return found


def _line(section: str, text: str) -> Line:
    tests = [
        Named(one["path"], one["name"], one["long"] is not None) for one in TEST.finditer(text)
    ]
    bars = [Bar(one["path"], one["id"], one["what"]) for one in BAR.finditer(text)]
    return Line(section, text.partition(": [`")[0], tuple(tests), tuple(bars))


def defined_in(source: str) -> dict[str, bool]:
    """Return the tests that a module defines, by name, and whether only the long form runs them.

    A mark of a parameter is none of its test: the short form runs the others.
    """
    module = ast.parse(source)
    called = {
        ast.unparse(target)
        for node in module.body
        if isinstance(node, ast.Assign) and f"pytest.{LONG}" in _items(node.value)
        for target in node.targets
    }
    return dict(_tests(module.body, "", _is_marked(module.body, called), called))


def _tests(
    body: list[ast.stmt], before: str, long: bool, called: set[str]
) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    for node in body:
        if isinstance(node, ast.ClassDef):
            marked = long or _is_decorated(node) or _is_marked(node.body, called)
            found += _tests(node.body, f"{before}{node.name}::", marked, called)
        elif isinstance(node, FUNCTION) and node.name.startswith("test_"):
            found.append((before + node.name, long or _is_decorated(node)))
    return found


def _is_decorated(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(one).endswith(LONG) for one in node.decorator_list)


def _is_marked(body: list[ast.stmt], called: set[str]) -> bool:
    """Tell whether a module or class has the mark, also by a name that stands for several."""
    marks = {f"pytest.{LONG}", *called}
    return any(
        isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "pytestmark"
        and not marks.isdisjoint(_items(node.value))
        for node in body
    )


def _items(value: ast.expr) -> set[str]:
    """Return the members of a list, or the one value."""
    return {ast.unparse(one) for one in getattr(value, "elts", [value])}


def wrong_tests(lines: list[Line], there: Mapping[str, Mapping[str, bool]]) -> list[str]:
    """Return what is wrong with the tests that are named.

    Args:
        lines: Those of the page.
        there: The tests of each file, and whether only the long form runs them.
    """
    wrong = []
    for line in lines:
        for one in line.tests:
            long = there.get(one.path, {}).get(one.name)
            if long is None:
                wrong.append(f"{one.path}::{one.name}: no such test")
            elif long != one.long:
                wrong.append(f"{one.path}::{one.name}: {'lacks' if long else 'is no'} †")
        if len(set(line.tests)) < len(line.tests):
            wrong.append(f"{line.promise}: a test is named twice")
    return wrong


def wrong_bars(lines: list[Line], there: Mapping[str, list[dict[str, str]]]) -> list[str]:
    """Return what is wrong with the bars that are named, or not named.

    Args:
        lines: Those of the page.
        there: The bars of each result.
    """
    wrong, told = [], set()
    for line in lines:
        for one in line.bars:
            found = [
                bar
                for bar in there.get(one.path, ())
                if bar["id"] == one.id and one.what in bar["what"] and bar["reach"]
            ]
            missed = [bar["what"] for bar in found if is_missed(bar)]
            if not found:
                wrong.append(f"{one.path}: no bar {one.id}, {one.what}")
            elif line.section == LAST:
                told |= set(missed)
                wrong += [] if missed else [f"{one.path}: {one.id}, {one.what}: is reached"]
            else:
                wrong += [f"{one.path}: {one.id}, {what}: is missed" for what in missed]
    untold = {bar["what"] for bars in there.values() for bar in bars if is_missed(bar)} - told
    return wrong + [f"{what}: is missed, and {LAST} lacks it" for what in sorted(untold)]


def is_missed(bar: Mapping[str, str]) -> bool:
    """Tell whether a bar is missed, or cannot be judged."""
    return judge(bar["reach"], bar["got"]).reached <= Reached.UNREADABLE


@cache
def there_are() -> dict[str, dict[str, bool]]:
    """Return the tests of each file that the page links."""
    paths = {
        one.path for line in lines_of(PAGE) for one in line.tests if (ROOT / one.path).exists()
    }
    return {path: defined_in((ROOT / path).read_text(encoding="utf-8")) for path in paths}


@cache
def bars_there() -> dict[str, list[dict[str, str]]]:
    """Return the bars of each result."""
    return {
        str(path.relative_to(ROOT)): json.loads(path.read_text(encoding="utf-8"))["figures"].get(
            "bars", []
        )
        for path in (ROOT / "bench" / "results").glob("*.json")
    }


def test_each_test_is_there() -> None:
    """By file, class and name, once a promise, with a † where only the long form runs it."""
    assert wrong_tests(lines_of(PAGE), there_are()) == []


def test_each_bar_is_there_and_no_missed_one_is_passed_over() -> None:
    """A bar stands in a result and is reached; those that are missed stand in the last section."""
    assert wrong_bars(lines_of(PAGE), bars_there()) == []


def test_each_promise_has_something_that_would_turn_red() -> None:
    """And stands on the page once; only the last section has lines without."""
    lines = lines_of(PAGE)
    promises = [line.promise for line in lines]
    assert len(lines) > 100
    assert [one for one in promises if promises.count(one) > 1] == []
    bare = {line.section for line in lines if not line.tests and not line.bars}
    assert bare == {LAST}


def test_nothing_that_looks_like_a_test_is_passed_over() -> None:
    """Whatever is linked is read: a test by file and name, a bar by a target of the Makefile."""
    tests, bars = list(TEST.finditer(PAGE)), list(BAR.finditer(PAGE))
    assert PAGE.count(".py::") == len(tests)
    assert PAGE.count("`make bench-") == len(bars) == PAGE.count("](../bench/results/")
    assert [one[0] for one in tests if Path(one["path"]).name != one["file"]] == []
    assert [
        one[0] for one in bars if one["path"] != f"bench/results/{one['by'][len('bench-') :]}.json"
    ] == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [one["by"] for one in bars if f"\n{one['by']}:" not in makefile] == []


SOURCE = """
import pytest
several = [pytest.mark.kafka, pytest.LONG]
logs = [pytest.param(1, marks=pytest.LONG)]

@pytest.mark.parametrize("log", logs)
def test_short(log): ...

@pytest.LONG
def test_long(): ...

class TestBoth:
    async def test_inside(self): ...

class TestLong:
    pytestmark = several
    def test_inside(self): ...
""".replace("LONG", LONG)


def test_what_a_module_has() -> None:
    """Functions and methods, each with the mark of its own, of its class or of its module."""
    expected = {
        "test_short": False,
        "test_long": True,
        "TestBoth::test_inside": False,
        "TestLong::test_inside": True,
    }
    assert defined_in(SOURCE) == expected
    assert set(defined_in(f"pytestmark = pytest.{LONG}\n{SOURCE}").values()) == {True}


def page_of(*items: str, section: str = "Topic") -> list[Line]:
    """Return the lines of a page of one section."""
    return lines_of(f"# Page\n\n## {section}\n\n" + "".join(f"- {item}\n" for item in items))


@pytest.mark.parametrize(
    ("named", "wrong"),
    [
        ("[`test_a.py::test_short`](../tests/test_a.py)", []),
        ("[`test_a.py::TestLong::test_inside`](../tests/test_a.py) †", []),
        (
            "[`test_a.py::test_invented`](../tests/test_a.py)",
            ["tests/test_a.py::test_invented: no such test"],
        ),
        (
            "[`test_a.py::test_inside`](../tests/test_a.py)",
            ["tests/test_a.py::test_inside: no such test"],
        ),
        (
            "[`test_b.py::test_short`](../tests/test_b.py)",
            ["tests/test_b.py::test_short: no such test"],
        ),
        (
            "[`test_a.py::test_long`](../tests/test_a.py)",
            ["tests/test_a.py::test_long: lacks †"],
        ),
        (
            "[`test_a.py::test_short`](../tests/test_a.py) †",
            ["tests/test_a.py::test_short: is no †"],
        ),
        (
            ", ".join(["[`test_a.py::test_short`](../tests/test_a.py)"] * 2),
            ["It holds: a test is named twice"],
        ),
    ],
)
def test_a_wrong_test_is_noticed(named: str, wrong: list[str]) -> None:
    """One that is not there, in that file or class, one marked wrongly, one named twice."""
    assert (
        wrong_tests(page_of(f"It holds: {named}"), {"tests/test_a.py": defined_in(SOURCE)}) == wrong
    )


RESULT = "bench/results/rows.json"
BARS = {
    RESULT: [
        {"id": "P7", "what": "bytes, 10 rows", "reach": "", "got": "50 B"},
        {"id": "P7", "what": "bytes, 100 rows", "reach": "≤ 42 B", "got": "40 B"},
        {"id": "P7", "what": "bytes, 500 rows", "reach": "≤ 42 B", "got": "43 B"},
    ]
}
UNTOLD = f"bytes, 500 rows: is missed, and {LAST} lacks it"


@pytest.mark.parametrize(
    ("what", "section", "wrong"),
    [
        ("bytes, 500", LAST, []),
        ("bytes, 100", "Topic", [UNTOLD]),
        ("bytes, 500", "Topic", [f"{RESULT}: P7, bytes, 500 rows: is missed", UNTOLD]),
        ("bytes, 100", LAST, [f"{RESULT}: P7, bytes, 100: is reached", UNTOLD]),
        ("bytes, 10 ", "Topic", [f"{RESULT}: no bar P7, bytes, 10 ", UNTOLD]),
        ("time, 100", "Topic", [f"{RESULT}: no bar P7, time, 100", UNTOLD]),
    ],
)
def test_a_wrong_bar_is_noticed(what: str, section: str, wrong: list[str]) -> None:
    """One that is not there, that has nothing to reach, that is missed, or reached by now."""
    lines = page_of(f"It holds: [`make bench-rows`: P7, {what}](../{RESULT})", section=section)
    assert wrong_bars(lines, BARS) == wrong
