"""Which events metrics select, and what several metrics ask of the same ones.

Events are sorted by tenant and type once, so a metric costs what its own events cost. What
several metrics ask of the same events (a condition, dimensions, a path) is computed once, and
held as long as all of it is not too much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from sys import getsizeof
from typing import Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from weir.definitions.metric import Metric
from weir.definitions.selection import Selection
from weir.expressions import Node, Path
from weir.expressions.dimension import Dimension
from weir.series import cut_text

from weir_analytics.panes.arrow_account import Judged
from weir_analytics.panes.arrow_events import Events
from weir_analytics.panes.arrow_groups import Groups, groups_by
from weir_analytics.panes.arrow_members import Coded, Indices
from weir_analytics.panes.arrow_nodes import run_node
from weir_analytics.panes.arrow_weight import Weight
from weir_analytics.panes.compile_views import View
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.task_watch import note_step

# What an expression makes of several events takes no more at once; nor does what metrics asked of
# the events of one choice, held for those that ask for the same.
MOST_BYTES: Final = 1 << 27


@dataclass
class Chosen:
    """Some counted events, with what several metrics ask of them.

    Attributes:
        events: Their content.
        records: Their places among the judged records.
    """

    events: Events
    records: Indices
    _where: dict[str, Chosen | None] = field(default_factory=dict)
    _groups: dict[object, Groups] = field(default_factory=dict)
    _values: dict[str, pa.Array] = field(default_factory=dict)
    _coded: dict[str, Coded] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many they are."""
        return len(self.records)

    def part(self, places: Indices) -> Chosen:
        """Return some of them."""
        return Chosen(self.events.part(places), self.records[places])

    def matching(self, metric: Metric) -> Chosen:
        """Return those for which a metric's condition is true."""
        tree = metric.where_tree
        if tree is None or metric.where is None:
            return self
        if metric.where not in self._where:
            is_true = self._run(tree).fill_null(False)
            places = np.flatnonzero(is_true.to_numpy(zero_copy_only=False))
            is_part = len(places) < len(self)
            self._where[metric.where] = self.part(places) if is_part else None
        # What held itself would stay, with a task's columns, until the collector of cycles runs.
        found = self._where[metric.where]
        return self if found is None else found

    def value(self, metric: Metric, tree: Node) -> pa.Array:
        """Return what a metric measures."""
        key = str(metric.value)
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = self._run(tree)
            self.events.held.bytes += found.nbytes
        return found

    def _run(self, tree: Node) -> pa.Array:
        """Return what an expression yields."""
        first, *others = self._pieces(tree)
        return pa.concat_arrays([first, *others]) if others else first

    def _pieces(self, tree: Node) -> Iterator[pa.Array]:
        """Yield what an expression yields, made of so many events at a time that it fits."""
        edges = [0, *self._edges(Weight.of(tree)), len(self)]
        if len(edges) == 2:
            yield run_node(tree, self.events.read, len(self))
            return
        held = self.events.held
        for begin, end in pairwise(edges):
            known = held.bytes
            part = self.events.part(np.arange(begin, end))
            yield run_node(tree, part.read, len(part))
            note_step()
            held.bytes = known  # the piece goes

    def _edges(self, weight: Weight) -> list[int]:
        """Return where the next piece begins, of what takes so many bytes an event."""
        texts = {path: self.events.read(path, View.TEXT) for path in weight.times}
        of_texts = (times * texts[path].nbytes for path, times in weight.times.items())
        if weight.own * len(self) + sum(of_texts) <= MOST_BYTES:
            return []
        sizes = np.full(len(self), weight.own, np.int64)
        for path, times in weight.times.items():
            lengths = pc.binary_length(texts[path]).fill_null(0).to_numpy()
            sizes += times * lengths.astype(np.int64)
        pieces = np.cumsum(sizes) // MOST_BYTES
        found: list[int] = (np.flatnonzero(np.diff(pieces)) + 1).tolist()
        return found

    def coded(self, dimension: Dimension) -> Coded:
        """Return the values of a dimension, each different one once."""
        tree = dimension.tree
        if tree is None:
            return self.events.coded(cast("Path", dimension.path))
        found = self._coded.get(dimension.text)
        if found is None:
            known: dict[str | None, int] = {}
            # Whole they may be many times the events' own texts: each piece is cut before the next.
            codes = [_codes(piece, known) for piece in self._pieces(tree)]
            found = Coded(np.concatenate([*codes, np.empty(0, np.int32)]), list(known))
            self._coded[dimension.text] = found
            self.events.held.bytes += found.codes.nbytes + sum(map(getsizeof, known))
        return found

    def groups(self, judged: Judged, dimensions: Sequence[Dimension], res_s: int) -> Groups:
        """Return them by pane, received minute and series."""
        key = (tuple(one.text for one in dimensions), res_s)
        found = self._groups.get(key)
        if found is None:
            codes = [self.coded(one).codes for one in dimensions]
            found = groups_by(
                self.events.times_ms // (res_s * 1000), judged.minute_s[self.records], *codes
            )
            self._groups[key] = found
            self.events.held.bytes += found.nbytes
        return found

    def forget(self) -> None:
        """Let go of what metrics asked of them; who asks again has it made again."""
        self.events.forget()
        for made in (self._where, self._groups, self._values, self._coded):
            made.clear()


def _codes(texts: pa.Array, known: dict[str | None, int]) -> npt.NDArray[np.int32]:
    """Return the number of each text, cut as a dimension's is; new ones are added to the known."""
    found = texts.dictionary_encode(null_encoding="encode")
    different = found.dictionary.to_pylist()
    cut = (None if text is None else cut_text(text) for text in different)
    numbers = np.array([known.setdefault(text, len(known)) for text in cut], np.int32)
    codes: npt.NDArray[np.int32] = numbers[found.indices.to_numpy()]
    return codes


class Choice:
    """Events by tenant and type, each choice made once for all metrics that ask for it."""

    def __init__(self, judged: Judged, events: Events, records: Indices) -> None:
        """Take the records that metrics may count."""
        self._judged, self._all = judged, events
        tenants, types = judged.tenant, judged.type
        groups = groups_by(tenants.codes[records], types.codes[records])
        self._parts = (
            [records[part] for part in groups.slices(np.arange(len(records)))]
            if len(records)
            else []
        )
        self._types: dict[str, dict[str, int]] = defaultdict(dict)
        for number, first in enumerate(groups.first.tolist()):
            tenant, event_type = tenants.of(int(records[first])), types.of(int(records[first]))
            self._types[tenant or ""][event_type or ""] = number

    def of(self, counted: Iterable[Counted]) -> Iterator[tuple[Chosen, list[Counted]]]:
        """Yield the events of each choice, and the versions that count of these.

        One after the other, so that what is held of the events of one goes before the next.
        Metrics may ask for the same in several ways.
        """
        asked: dict[object, list[Counted]] = defaultdict(list)
        for one in counted:
            asked[one.version.tenant, one.metric.events.type, one.metric.events.source].append(one)
        choices: dict[tuple[tuple[int, ...], tuple[str, ...]], list[Counted]] = defaultdict(list)
        for alike in asked.values():
            wanted = alike[0].metric.events
            if numbers := self._numbers(alike[0].version.tenant, wanted):
                choices[numbers, tuple(wanted.source)] += alike
        for (numbers, sources), metrics in choices.items():
            self._all.held.bytes = 0
            chosen = self._choose(numbers, sources)
            if len(chosen):
                yield chosen, metrics

    def _numbers(self, tenant: str, wanted: Selection) -> tuple[int, ...]:
        """Return which of the parts hold events of the types that are asked for."""
        types = self._types.get(tenant, {})
        found = {types[name] for name in wanted.exact_types if name in types}
        if prefixes := wanted.type_prefixes:
            found |= {number for name, number in types.items() if name.startswith(prefixes)}
        return tuple(sorted(found))

    def _choose(self, numbers: Sequence[int], sources: Sequence[str]) -> Chosen:
        records = np.sort(np.concatenate([self._parts[number] for number in numbers]))
        if sources:
            words = self._judged.source
            is_one = np.array([text in sources for text in words.texts], bool)
            # None of these is without: every event has a source.
            records = records[is_one[words.codes[records]]]
        return Chosen(self._all.part(records), records)
