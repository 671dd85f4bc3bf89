"""What metrics ask of the same events: weighed before it is made, and held while it is little."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from weir.expressions import Node
from weir.expressions.dimension import parse_dimension
from weir.expressions.parse import parse_kind, parse_path
from weir.expressions.tree import Kind as Type
from weir.expressions.tree import walk
from weir.series import MAX_BYTES
from weir_analytics.panes import arrow_choice, arrow_members, arrow_metrics, arrow_nodes
from weir_analytics.panes.arrow_choice import Chosen
from weir_analytics.panes.arrow_count import CountTask
from weir_analytics.panes.arrow_nodes import run_node
from weir_analytics.panes.arrow_plan import ArrowPlan, make_plan
from weir_analytics.panes.arrow_weight import Weight
from weir_analytics.panes.compile_views import View
from weir_analytics.panes.dispose import DisposeTask
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.task_watch import HERE
from weir_analytics.panes.versions import Version

from .log_frames import HORIZONS, NOW_MS, batch_of, event
from .test_arrow_count import arrow, parts_of, taken
from .test_arrow_events import events_of
from .test_plan import metric


@pytest.mark.parametrize(
    ("text", "own", "times"),
    [
        ("length(data.x)", 2 * 8, 1),
        ("length('four')", 2 * 8 + 4, 0),
        ("length(lpad(data.x, 50, 'é'))", 5 * 8 + 4 * 50 + 2, 2),
        # Of concat, of what it joins, and of the path that stands there twice.
        ("length(concat(data.x, 'ab', data.x))", 5 * 8 + 2 + 2, 4),
        ("length(coalesce(data.x, trim(data.x)))", 5 * 8, 5),
        # What made more of a text does so once.
        ("length(upper(data.x))", 3 * 8, 5),
        ("length(replace(lower(upper(data.x)), 'a', 'é'))", 7 * 8 + 1 + 2, 1 + 4 * 3),
        ("length(concat(upper(data.x), data.x))", 5 * 8, 1 + 4 + 1 + 5),
        ("length(case when data.y > 1 then data.x else 'abc' end)", 7 * 8 + 3 + 3, 2),
        ("length(to_text(data.y / 3))", 5 * 8 + 24, 0),
        ("length(concat(to_text(data.y), data.x))", 5 * 8 + 24 + 24, 2),
    ],
)
def test_what_an_expression_makes_is_weighed(text: str, own: int, times: int) -> None:
    """All of it: eight bytes a node, and its texts by those of the event that they are made of."""
    found = Weight.of(parse_kind(text, Type.NUMBER))

    assert (found.own, found.times.get(parse_path("data.x"), 0)) == (own, times)


@pytest.mark.parametrize(
    "text",
    [
        "length(concat(lpad(data.x, 50, 'é'), upper(data.x), data.x, data.y, 'abc'))",
        "length(replace(lower(concat(data.x, data.x)), 'a', 'é'))",
        "length(coalesce(nullif(data.y, data.x), right(data.x, 9), data.x))",
        "length(case when data.x like '%a%' then upper(data.x) else url_host(data.y) end)",
        "length(to_text(length(data.x) * -1.7976931348623157e308 / 99))",
        "length(concat(to_text(-9223372036854774784 + length(data.x) * 0), data.x))",
    ],
)
def test_no_event_takes_more_than_its_weight(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts that are really made of an event are no longer, whatever it holds."""
    tree = parse_kind(text, Type.NUMBER)
    weight = Weight.of(tree)
    texts = ["", "a" * 99, "ŉ" * 50, "ΐ" * 50, "ß", "https://é.example/a?b=c"]
    made: list[int] = []
    of_operands = arrow_nodes._of_operands

    def counted(node: Node, operands: list[Any]) -> Any:
        found = of_operands(node, operands)
        if node.kind is Type.TEXT:
            made.append(len((found[0].as_py() or "").encode()))
        return found

    monkeypatch.setattr(arrow_nodes, "_of_operands", counted)
    paths = [parse_path("data.x"), parse_path("data.y")]
    for texts_of in product(texts, texts):
        made.clear()
        events = events_of([event("1", x=texts_of[0], y=texts_of[1])], paths)
        run_node(tree, events.read, 1)
        lengths = dict(zip(paths, (len(text.encode()) for text in texts_of), strict=True))
        assert sum(made) <= weight.own + sum(n * lengths[path] for path, n in weight.times.items())


@pytest.mark.parametrize(
    "number",
    [
        "-2.2250738585072014e-308",
        "-1.7976931348623157e308",
        "-9223372036854774784",
        "-0.00012345678901234567",
    ],
)
def test_no_number_has_a_longer_text_than_is_weighed(number: str) -> None:
    """The longest has all its digits, and an exponent of three besides its sign."""
    tree = parse_kind(f"length(to_text({number} + length(data.x)))", Type.NUMBER)
    events = events_of([event("1", x="")], [parse_path("data.x")])
    (length,) = run_node(tree, events.read, 1).to_pylist()

    assert length == len(number)
    assert length <= Weight.of(tree).own - 8 * len(list(walk(tree)))


def test_an_expression_is_made_for_some_events_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as fit by the texts that they have, besides one that is too large by itself."""
    tree = parse_kind("length(concat(data.x, data.x))", Type.NUMBER)
    sizes_of = [100] * 10 + [5_000] + [1] * 10 + [100] * 10
    values = [event(str(i), x="a" * size) for i, size in enumerate(sizes_of)]
    chosen = Chosen(events_of(values, [parse_path("data.x")]), np.arange(len(values)))
    whole = run_node(tree, chosen.events.read, len(values))
    sizes: list[int] = []

    def noted(node: Any, read: Any, size: int) -> pa.Array:
        sizes.append(size)
        return run_node(node, read, size)

    weight = Weight.of(tree)
    most = 3 * (weight.own + 100 * weight.times[parse_path("data.x")])
    monkeypatch.setattr(arrow_choice, "run_node", noted)
    monkeypatch.setattr(arrow_choice, "MOST_BYTES", most)
    known, steps = chosen.events.held.bytes, HERE.taken
    assert chosen._run(tree).equals(whole)
    assert chosen.events.held.bytes == known
    assert HERE.taken - steps == len(sizes)  # each piece is a step of the task
    at = 0
    for size in sizes:
        own = sorted(weight.own + 4 * one for one in sizes_of[at : at + size])
        assert sum(own[:-1]) <= most
        at += size
    assert at == len(values)
    # Short ones are not alone because a long one is among them.
    assert len(sizes) <= 12 < max(sizes) * 2


def test_a_computed_dimension_is_made_so_too_and_cut_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is held of it are short texts, each different one once; null is one of them."""
    dimension = parse_dimension("data.x || data.x || data.y as long")
    texts = ["ab" * 400, "ab" * 400, None, "", "|" * 90, "é" * 500]
    values = [event(str(i), x=texts[i % 6], y="y") for i in range(60)]
    chosen = Chosen(events_of(values, dimension.paths), np.arange(len(values)))
    monkeypatch.setattr(arrow_choice, "MOST_BYTES", 20_000)
    run, sizes = run_node, list[int]()

    def noted(node: Any, read: Any, size: int) -> pa.Array:
        sizes.append(size)
        return run(node, read, size)

    monkeypatch.setattr(arrow_choice, "run_node", noted)
    for path in dimension.paths:
        chosen.events.read(path, View.TEXT)  # the events' own
    held = chosen.events.held.bytes
    found = chosen.coded(dimension)
    assert len(sizes) > 3
    assert [found.texts[code] for code in found.codes] == [
        dimension.read({"data": {"x": texts[i % 6], "y": "y"}}) for i in range(60)
    ]
    assert len(found.texts) == 5
    assert max(len((text or "").encode()) for text in found.texts) <= MAX_BYTES
    assert 0 < chosen.events.held.bytes - held < 5_000
    assert chosen.coded(dimension) is found
    empty = chosen.part(np.empty(0, np.int64)).coded(dimension)
    assert (len(empty.codes), empty.texts) == (0, [])


@pytest.mark.parametrize("most", [0, 3_000, 1 << 27])
def test_what_metrics_ask_is_held_as_long_as_it_is_not_too_much(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond a bound it is let go, and made again for whoever asks: every number is the same."""
    monkeypatch.setattr(arrow_metrics, "MOST_BYTES", most)
    values = [
        event(f"e{i}", event_type=f"t{i % 2}", x=i, k=f"k{i % 3}", m=f"m{i}") for i in range(50)
    ]
    metrics = [
        metric(
            name=f"m{n}",
            events={"type": ("t0", "t*", "x*")[n % 3]},
            where=(None, f"data.x > {n}")[n % 2],
            value=("data.x", f"data.x + {n}", "length(data.m)")[n // 3 % 3],
            by=["data.k", "data.m"][: n % 3],
            aggregates=["count", "sum"],
        )
        for n in range(18)
    ]
    plan, batch = arrow(*metrics), batch_of(tmp_path, 50, copies="none", dry=True)
    held: dict[int, list[int]] = {25: [], 50: []}
    count = arrow_metrics.MetricCount._count

    def counted(self: Any, one: Any, selected: Chosen, panes: Any) -> None:
        count(self, one, selected, panes)
        held[len(selected)].append(selected.events.held.bytes)

    monkeypatch.setattr(arrow_metrics.MetricCount, "_count", counted)
    task = CountTask(plan.told, plan.outputs, batch)
    taken(task, DisposeTask(batch), values, [])
    steps = HERE.taken
    parts = parts_of(plan, list(task.rows()))

    assert HERE.taken - steps >= len(metrics) * 2 // 3  # each metric is a step of the task
    of_one_metric = 50 * 200
    assert {size: len(of_choice) for size, of_choice in held.items()} == {25: 6, 50: 6}
    if most < 1 << 27:
        assert max(map(max, held.values())) <= most + of_one_metric
    else:
        assert held[25][-1] > held[50][0]  # nothing of another choice is held
        assert held[50][-1] > of_one_metric
    for n, version in enumerate(plan.versions):
        selected = (range(0, 50, 2), range(50), ())[n % 3]
        x_of = [x for x in selected if n % 2 == 0 or x > n]
        value = (lambda x: x, lambda x, n=n: x + n, lambda x: len(f"m{x}"))[n // 3 % 3]
        rows = [row for (vid, *_), row in parts.items() if vid == version.vid]
        resolutions = len(version.keeps)
        assert sum(row[0] for row in rows) == len(x_of) * resolutions
        assert sum(row[1] for row in rows) == sum(map(value, x_of)) * resolutions


def test_texts_of_metrics_are_held_as_long_as_they_are_not_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its own, so nobody else asks for them again."""
    monkeypatch.setattr(arrow_metrics, "MOST_BYTES", 50_000)
    values = [
        event(
            f"e{i}", NOW_MS, "t", "acme", subject=None, **{f"m{n}": f"{n}-{i}" for n in range(20)}
        )
        for i in range(100)
    ]
    metrics = [metric(name=f"m{n}", aggregates=[f"distinct(data.m{n})"]) for n in range(20)]
    plan, batch = arrow(*metrics), batch_of(tmp_path, 100, copies="none", dry=True)
    held: list[int] = []
    count = arrow_metrics.MetricCount._count

    def counted(self: Any, one: Any, selected: Chosen, panes: Any) -> None:
        held.append(selected.events.members.coded_bytes)
        count(self, one, selected, panes)

    monkeypatch.setattr(arrow_metrics.MetricCount, "_count", counted)
    task = CountTask(plan.told, plan.outputs, batch)
    taken(task, DisposeTask(batch), values, [])
    assert len(list(task.rows())) == 1

    assert len(held) == 20
    assert 20_000 < max(held) <= 50_000
    assert held.count(0) > 1


@pytest.mark.parametrize("piece", [1, 7, 60])
def test_each_tenant_counts_its_own(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its own paths, types and sources, whatever others read of events of the same type."""
    monkeypatch.setattr(arrow_members, "_COLUMN", piece)
    values = [
        event(f"{tenant}{i}", event_type=f"t{i % 2}", tenant=tenant, x=i, y=100 * i)
        for i in range(30)
        for tenant in ("acme", "zeta", "nobody")
    ]
    values = [
        value.replace(b'"weirsource":"web"', b'"weirsource":"app"') if n % 5 == 0 else value
        for n, value in enumerate(values)
    ]
    wanted: list[tuple[str, dict[str, Any], Callable[[int, str], bool], int]] = [
        ("acme", {"events": {"type": "t0"}, "value": "data.x"}, lambda i, _: i % 2 == 0, 1),
        ("zeta", {"events": {"type": "t*"}, "value": "data.y"}, lambda _i, _s: True, 100),
        (
            "zeta",
            {"events": {"type": "t0", "source": "app"}, "value": "data.x"},
            lambda i, source: i % 2 == 0 and source == "app",
            1,
        ),
        (
            "acme",
            {"events": {"type": ["t0", "t1"], "source": ["web", "x"]}, "value": "data.y"},
            lambda _, source: source == "web",
            100,
        ),
        ("other", {"events": {"type": "*"}, "value": "data.x"}, lambda _i, _s: True, 1),
    ]
    counted = [
        Counted(
            Version(vid, tenant, "m", ((10, 86_400),), max_series=1_000),
            metric(aggregates=["count", "sum"], **members),
        )
        for vid, (tenant, members, _is_one, _times) in enumerate(wanted, 1)
    ]
    plan = make_plan(counted, (HORIZONS,))
    assert isinstance(plan, ArrowPlan)
    task = CountTask(plan.told, plan.outputs, batch_of(tmp_path, 90, copies="none", dry=True))
    taken(task, DisposeTask(batch_of(tmp_path, 90, copies="none", dry=True)), values, [])
    parts = parts_of(plan, list(task.rows()))

    for vid, (tenant, _members, is_one, times) in enumerate(wanted, 1):
        own = [
            i
            for n, (i, of) in enumerate(product(range(30), ("acme", "zeta", "nobody")))
            if of == tenant and is_one(i, "app" if n % 5 == 0 else "web")
        ]
        rows = [row for (of_vid, *_), row in parts.items() if of_vid == vid]
        assert sum(row[0] for row in rows) == len(own), (vid, tenant)
        assert sum(row[1] for row in rows) == times * sum(own), (vid, tenant)


def test_what_is_let_go_is_gone() -> None:
    """The parts that conditions made of it, too: all of it is made anew."""
    values = [event(str(i), x=i) for i in range(10)]
    chosen = Chosen(events_of(values, [parse_path("data.x")]), np.arange(10))
    wanted = metric(where="data.x > 3", value="data.x", aggregates=["count", "sum"])
    assert wanted.value_tree is not None
    part = chosen.matching(wanted)
    assert part.value(wanted, wanted.value_tree).to_pylist() == [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    gone: list[weakref.ref[Any]] = [weakref.ref(part), weakref.ref(part.events)]
    del part
    chosen.forget()

    assert all(one() is None for one in gone)
    assert chosen.events.held.bytes == 0
    assert len(chosen.matching(wanted)) == 6
