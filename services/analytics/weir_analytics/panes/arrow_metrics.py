"""The panes of metrics out of arrays: which events each metric uses, and what they add up to.

What is selected, and what metrics share, is in `arrow_choice.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from weir.definitions.metric import Metric
from weir.event import owner
from weir.expressions.tree import paths_of
from weir.expressions.use import MAX_VALUE
from weir.problems import Reason
from weir.series import OTHER, cut_text, encode_series, encode_value, series_digest, shard_of

from weir_analytics.panes import arrow_groups
from weir_analytics.panes.accounts import GAP, LATE_ROWS, USE
from weir_analytics.panes.arrow_account import Judged, PaneRow, copy_series
from weir_analytics.panes.arrow_choice import MOST_BYTES, Choice, Chosen
from weir_analytics.panes.arrow_events import Events
from weir_analytics.panes.arrow_groups import Doubles, Groups, Longs, groups_by
from weir_analytics.panes.arrow_members import Coded, Indices
from weir_analytics.panes.arrow_plan import Told
from weir_analytics.panes.batch import Batch, Offsets
from weir_analytics.panes.compile_views import View
from weir_analytics.panes.inbox import LEFT_OUT, MAX_COPIES, MAX_LATE, NO_COPY
from weir_analytics.panes.kinds import Kind, Use
from weir_analytics.panes.measures import IDENTITY, TIME, Measures
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.task_watch import note_step
from weir_analytics.panes.versions import Version

Mask = npt.NDArray[np.bool_]

# So many rows leave a task at once: with their sketches they may be some kilobytes each.
ROWS_AT_ONCE: Final = 20_000
# What is wrong with an event, as far as one metric goes; 0: nothing.
_ERRORS: Final = (Reason.VALUE_MISSING, Reason.VALUE_INVALID, Reason.VALUE_RANGE)
_MISSING, _INVALID, _RANGE = 1, 2, 3


@dataclass
class Panes:
    """Rows of panes, in columns.

    Attributes:
        outputs: Names of the aggregates after `n`.
        rows: Those without numbers but how many there are.
        blocks: Those of metrics: how many rows, and their columns.
    """

    outputs: Sequence[str]
    rows: list[PaneRow] = field(default_factory=list)
    unused: list[PaneRow] = field(default_factory=list)
    blocks: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many rows there are."""
        blocks = sum(size for size, _columns in self.blocks)
        return len(self.rows) + len(self.unused) + blocks


@dataclass(frozen=True)
class MetricCount:
    """The counting of the metrics of one plan over some records.

    Attributes:
        told: What is counted.
        judged: What became of the records.
        identities: Of each record both halves of its identity; empty unless some metric asks.
        bounds: By (version, start of a finest pane): beyond which digest a series is `other`.
        final_through_ms: See `Batch`.
    """

    told: Told
    judged: Judged
    identities: npt.NDArray[np.uint64]
    bounds: dict[tuple[int, int], str]
    final_through_ms: int | None

    @classmethod
    def of(
        cls,
        told: Told,
        judged: Judged,
        identities: npt.NDArray[np.uint64],
        batch: Batch,
    ) -> MetricCount:
        """Return it with what the batch says of panes: which are full, and which were final."""
        bounds = {(b.vid, b.start_s): b.digest for b in batch.bounds}
        return cls(told, judged, identities, bounds, batch.final_through_ms)

    def count(self, events: Events, hidden: Mask, panes: Panes) -> Iterator[Panes]:
        """Yield the rows of all metrics, some thousands at a time.

        Args:
            events: The content of all records, those without any among them.
            hidden: Records that leave no row of a metric.
            panes: Rows that leave with the first of them.
        """
        choice = Choice(self.judged, events, np.flatnonzero(~hidden))
        for selected, metrics in choice.of(self.told.counted):
            for one in metrics:
                self._count(one, selected, panes)
                note_step()
                if selected.events.held.bytes + events.members.coded_bytes > MOST_BYTES:
                    selected.forget()
                if panes.size >= ROWS_AT_ONCE:
                    yield panes
                    panes = Panes(panes.outputs)
        yield panes

    def _count(self, one: Counted, selected: Chosen, panes: Panes) -> None:
        """Add the rows of one metric, of the events that it selects."""
        places = self._in_place(one.version, selected)
        found = selected if places is None else selected.part(places)
        matched = found.matching(one.metric)
        if len(matched):
            self._metric(one, matched, panes)

    def _in_place(self, version: Version, chosen: Chosen) -> Indices | None:
        """Return which events lie in a version's span and on its side of the cuts; None: all."""
        inside = np.ones(len(chosen), bool)
        start_s = chosen.events.times_ms // 1000 // version.finest_s * version.finest_s
        if version.cut_from or version.cut_until:
            inside &= np.logical_or.reduce(
                [_owned(version, res_s, start_s) for res_s, _keep_s in version.keeps]
            )
        if self.told.guarded:
            at = chosen.records
            partition, offset = self.judged.partition[at], self.judged.offset[at]
            inside &= offset >= offsets_of(version.begin, partition)
            if version.finish is not None:
                inside &= offset < offsets_of(version.finish, partition)
        return None if inside.all() else np.flatnonzero(inside)

    def _metric(self, one: Counted, matched: Chosen, panes: Panes) -> None:
        version, metric = one.version, one.metric
        errors = _errors(metric, matched)
        forgotten = self._forgotten(version, matched)
        used = matched
        if errors is not None:
            self._copy(version, matched, errors, panes)
        if errors is not None or forgotten is not None:
            good = np.ones(len(matched), bool)
            if forgotten is not None:
                good &= ~forgotten
            if errors is not None:
                good &= errors == 0
                forgotten = None if forgotten is None else forgotten & (errors == 0)
            used = matched.part(np.flatnonzero(good))
            if forgotten is not None:
                self._use(version, Use.PANE_NOT_KEPT, matched.records[forgotten], panes)
        if len(used):
            self._use(version, Use.USED, used.records, panes)
            self._panes(one, used, panes)

    def _forgotten(self, version: Version, chosen: Chosen) -> Mask | None:
        """Return of which events no resolution keeps the pane; None: there is none."""
        minute_s = self.judged.minute_s[chosen.records]
        found = np.ones(len(chosen), bool)
        start_s = chosen.events.times_ms // 1000
        for res_s, keep_s in version.keeps:
            found &= minute_s > start_s // res_s * res_s + (res_s + keep_s)
        return found if found.any() else None

    def _copy(
        self, version: Version, chosen: Chosen, errors: npt.NDArray[np.int8], panes: Panes
    ) -> None:
        wrong = np.flatnonzero(errors)
        at, judged, error = chosen.records[wrong], self.judged, errors[wrong]
        partition, offset = judged.partition[at], judged.offset[at]
        kind, minute_s = judged.kind[at], judged.minute_s[at]
        alike = groups_by(error, partition)
        # A partition's events come in order, and of each the writer copies no more. Of one that
        # is sampled each metric's code is told.
        told = (_ranks(alike) < MAX_COPIES) | (kind == Kind.SAMPLED)
        read = (error, partition, kind, offset, minute_s)
        for code, of, kind_of, place, minute in zip(*(c[told].tolist() for c in read), strict=True):
            series = copy_series(_ERRORS[code - 1].value, of, kind_of)
            panes.unused.append(PaneRow(version.vid, series, place, minute))
        others = np.bincount(alike.codes[~told], minlength=len(alike)).tolist()
        for first, n in zip(alike.first.tolist(), others, strict=True):
            if n:
                series = copy_series(_ERRORS[error[first] - 1].value, partition[first], Kind.EVENT)
                panes.unused.append(PaneRow(version.vid, series, NO_COPY, int(minute_s[first]), n))
        self._use(version, Use.VALUE_QUARANTINED, at, panes)

    def _use(self, version: Version, use: Use, records: Indices, panes: Panes) -> None:
        minutes, counts = np.unique(self.judged.minute_s[records], return_counts=True)
        series = encode_series((str(version.vid), use.label))
        for minute_s, n in zip(minutes.tolist(), counts.tolist(), strict=True):
            panes.rows.append(PaneRow(USE, series, minute_s, minute_s, n))

    def _panes(self, one: Counted, used: Chosen, panes: Panes) -> None:
        """Add the rows of one metric's panes."""
        version, metric = one.version, one.metric
        groups = used.groups(self.judged, metric.dimensions, version.finest_s)
        coded = [used.coded(one) for one in metric.dimensions]
        series = (
            [
                cut_text("|".join(words))
                for words in zip(*(_words(one, groups.first) for one in coded), strict=True)
            ]
            if coded
            else [""] * len(groups)
        )
        start_s = used.events.times_ms[groups.first] // 1000 // version.finest_s * version.finest_s
        if self._is_bounded(version.vid, start_s):
            series, groups, start_s = self._bounded(version.vid, series, groups, start_s, used)
        columns: dict[str, Any] = {
            "vid": np.full(len(groups), version.vid, np.int64),
            "series": series,
            "start_s": start_s,
            "minute_s": self.judged.minute_s[used.records][groups.first],
            "use": np.full(len(groups), int(Use.USED), np.int8),
            "n": groups.sizes,
        }
        columns |= self._outputs(metric, used, groups)
        panes.blocks.append((len(groups), columns))
        if self.final_through_ms is not None:
            is_late = start_s * 1000 < version.late_before_ms(self.final_through_ms)
            if is_late.any():
                panes.rows += self._late(used, groups, columns, is_late)

    def _late(
        self, used: Chosen, groups: Groups, columns: dict[str, Any], is_late: Mask
    ) -> Iterator[PaneRow]:
        """Yield who sent the events of late groups, by group and source; all or a number."""
        late = np.flatnonzero(is_late[groups.codes])
        source = self.judged.source
        alike = groups_by(groups.codes[late], source.codes[used.records[late]])
        vid = int(columns["vid"][0])
        if len(alike) > MAX_LATE:
            series = GAP.join((str(vid), LEFT_OUT, ""))
            yield PaneRow(LATE_ROWS, series, 0, 0, len(alike))
            return
        for first, n in zip(late[alike.first].tolist(), alike.sizes.tolist(), strict=True):
            group = int(groups.codes[first])
            sender = owner("", source.of(int(used.records[first])) or "")[1]
            series = GAP.join((str(vid), sender, columns["series"][group]))
            start_s, minute_s = int(columns["start_s"][group]), int(columns["minute_s"][group])
            yield PaneRow(LATE_ROWS, series, start_s, minute_s, n)

    def _is_bounded(self, vid: int, start_s: Longs) -> bool:
        return any(
            of == vid and start_s.min(initial=0) <= at <= start_s.max(initial=0)
            for of, at in self.bounds
        )

    def _bounded(
        self, vid: int, series: list[str], groups: Groups, start_s: Longs, used: Chosen
    ) -> tuple[list[str], Groups, Longs]:
        """Return groups of which those beyond the bound of their pane are one: `other`."""
        shards = self.told.shards
        for at, text in enumerate(series):
            bound = self.bounds.get((vid, int(start_s[at])))
            if bound is None:
                continue
            digest = series_digest(text)
            if bound < digest.hex():
                series[at] = f"{OTHER}{shard_of(digest, shards) if shards > 1 else 0}"
        known: dict[tuple[str, int, int], int] = {}
        minute_s = self.judged.minute_s[used.records][groups.first]
        new = np.array(
            [
                known.setdefault(key, len(known))
                for key in zip(series, start_s.tolist(), minute_s.tolist(), strict=True)
            ],
            np.int64,
        )
        joined = groups_by(new[groups.codes])
        # A new group's words are those of the old group that its first event was in.
        old = groups.codes[joined.first]
        return [series[at] for at in old.tolist()], joined, start_s[old]

    def _outputs(self, metric: Metric, used: Chosen, groups: Groups) -> dict[str, Any]:
        """Return what is added up besides the number of events."""
        measures = Measures.of(metric)
        found: dict[str, Any] = {}
        if metric.value_tree is not None:
            values = used.value(metric, metric.value_tree).to_numpy(zero_copy_only=False)
            found |= arrow_groups.numbers_of(groups, values)
            if measures.kll_k:
                name = f"kll_{measures.kll_k}"
                found[name] = arrow_groups.klls_of(groups, values, measures.kll_k)
            if measures.spread:
                found["variance"] = arrow_groups.variances_of(groups, values)
            if measures.last:
                found["newest"] = self._newest(used, groups, values)
        return found | _texts(metric, measures, used, groups)

    def _newest(self, used: Chosen, groups: Groups, values: Doubles) -> list[dict[str, Any]]:
        identities = self.identities[used.records]
        newest = arrow_groups.newest_of(groups, used.events.times_ms, identities, values)
        return [
            {
                TIME: int(used.events.times_ms[at]),
                IDENTITY: identities[at].astype(">u8").tobytes(),
                "value": float(values[at]),
            }
            for at in newest.tolist()
        ]


def _ranks(groups: Groups) -> Longs:
    """Return of each event how many of its group come before it."""
    ranks = np.empty(len(groups.codes), np.int64)
    ranks[groups.order] = np.arange(len(ranks)) - np.repeat(groups.starts, groups.sizes)
    return ranks


def offsets_of(offsets: Offsets, partition: npt.NDArray[np.int32]) -> Longs:
    """Return the offset of each record's partition; 0 where there is none."""
    found = np.zeros(len(partition), np.int64)
    for one, offset in offsets.items():
        found[partition == one] = offset
    return found


def _owned(version: Version, res_s: int, start_s: Longs) -> Mask:
    pane_s = start_s // res_s * res_s
    owned = np.ones(len(start_s), bool)
    if res_s in version.cut_from:
        owned &= pane_s >= version.cut_from[res_s]
    if res_s in version.cut_until:
        owned &= pane_s < version.cut_until[res_s]
    return owned


def _errors(metric: Metric, chosen: Chosen) -> npt.NDArray[np.int8] | None:
    """Return why each event cannot be used; None if all can. The order is that of `error_of`."""
    found = np.zeros(len(chosen), np.int8)
    # What is computed has a text, or is null.
    paths = (*(one.path for one in metric.dimensions if one.path is not None), *metric.members)
    for one in map(chosen.events.coded, paths):
        if (one.codes < 0).any():
            found[one.codes < 0] = _INVALID
    if metric.value_tree is not None:
        value = chosen.value(metric, metric.value_tree)
        if value.null_count:
            null = value.is_null().to_numpy(zero_copy_only=False)
            absent = np.zeros(len(chosen), bool)
            for path in paths_of(metric.value_tree):
                present = chosen.events.read(path, View.PRESENT)
                absent |= ~present.to_numpy(zero_copy_only=False)
            found[null] = np.where(absent, _MISSING, _INVALID)[null]
        numbers = value.fill_null(0.0).to_numpy(zero_copy_only=False)
        found[np.abs(numbers) > MAX_VALUE] = _RANGE
    return found if found.any() else None


def _words(coded: Coded, places: Longs) -> Iterator[str]:
    """Yield a dimension's part of the series text, of some events."""
    escaped: dict[int, str] = {}
    for code in coded.codes[places].tolist():
        word = escaped.get(code)
        if word is None:
            word = escaped[code] = encode_value(coded.texts[code])
        yield word


def _texts(
    metric: Metric, measures: Measures, used: Chosen, groups: Groups
) -> dict[str, Sequence[Any]]:
    """Return the sketches of texts."""
    found: dict[str, Sequence[Any]] = {}
    members = metric.members
    if measures.hll_lg_k:
        codes, texts = used.events.coded(members[0])
        lg_k = measures.hll_lg_k
        found[f"hll_{lg_k}"] = arrow_groups.hlls_of(groups, codes, texts, lg_k)
    if measures.theta_lg_k:
        codes, texts = used.events.coded(members[measures.theta_member])
        lg_k = measures.theta_lg_k
        found[f"theta_{lg_k}"] = arrow_groups.thetas_of(groups, codes, texts, lg_k)
    if measures.top_lg_k:
        codes, texts = used.events.coded(members[measures.top_member])
        sketches, counts = arrow_groups.tops_of(groups, codes, texts, measures.top_lg_k)
        found[f"top_{measures.top_lg_k}"] = sketches
        found[f"texts_{measures.top_lg_k}"] = counts
    return found
