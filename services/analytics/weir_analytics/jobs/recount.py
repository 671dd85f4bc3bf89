"""Panes counted from the log a second time, the slow and obvious way. Pure.

It goes by the rules of RELIABILITY 2.1 and by the reference evaluator of expressions,
and keeps every value that it meets: no Spark, no sketch, no merge, no plan. The log is
gone through twice: first for the identities of what would be counted in the panes of the
sample, then for whether an earlier record had the same one. So it holds what is of the
sample only, whatever else lies in the log, and of that no more than it may: the largest
panes are left out if there is no room for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
from weir.definitions.history import Horizons
from weir.definitions.metric import Metric
from weir.erasure import Erasure, subject_hash
from weir.event import UNREADABLE, owner
from weir.expressions.numbers import scalar_text
from weir.horizons import horizons_at
from weir.members import MemberReader, is_too_deep
from weir.series import cut_text

from weir_analytics.jobs.digits import Near, near
from weir_analytics.jobs.identities import Identities, Room
from weir_analytics.jobs.log_records import LogEvent, LogRecord
from weir_analytics.jobs.sample import MINUTE_MS, Audited, PaneAt
from weir_analytics.panes.compile_views import members_of

USUAL_TEXTS: Final = 256
"""How many characters of texts an event is held with, for which it counts as one."""
MOST_HELD: Final = 600_000
"""How many events all audits hold that are under way, each as often as it lies in panes."""

_JSON = msgspec.json.Decoder(dict[str, Any])


class _Told(msgspec.Struct):
    """What tells that an event is none of the sample's, without the rest of it."""

    weirtenant: Any = None
    type: Any = None


_TOLD = msgspec.json.Decoder(_Told)
_ASKED: Final = frozenset(("type", "weirtenant", "weirsource", "source", "subject", "id", "time"))


@dataclass
class Exact:
    """Everything of one series in one pane, nothing thrown away.

    Attributes:
        n: How many events.
        values: Their values, as far as these are certain.
        members: What `distinct` sees.
        in_set: What `theta` sees.
        texts: What `top` sees, long ones cut as in the list, each with how often it came.
        last: Event time, identity and value of the newest, and the end of its span; of two at
            one time that of the greater identity.
        spans: Between which the other values lie, both included (`digits.py`).
        unsure: How many more events there may be, whatever their values.
    """

    n: int = 0
    values: list[float] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    in_set: set[str] = field(default_factory=set)
    texts: Counter[str] = field(default_factory=Counter)
    last: tuple[int, bytes, float, float] | None = None
    spans: list[tuple[float, float]] = field(default_factory=list)
    unsure: int = 0

    @property
    def lows(self) -> list[float]:
        """The least that each value may be."""
        return self.values + [low for low, _high in self.spans]

    @property
    def highs(self) -> list[float]:
        """The most that each value may be."""
        return self.values + [high for _low, high in self.spans]

    @property
    def size(self) -> int:
        """How much room it takes: 1 for an event whose texts are of usual length."""
        texts = (*self.members, *self.in_set, *self.texts)
        return 1 + sum(map(len, texts)) // USUAL_TEXTS

    def add(self, other: Exact) -> None:
        """Take what another series has, too."""
        self.n += other.n
        self.values += other.values
        self.spans += other.spans
        self.unsure += other.unsure
        self.members |= other.members
        self.in_set |= other.in_set
        self.texts.update(other.texts)
        self.last = max(filter(None, (self.last, other.last)), default=None)


Counted = dict[str, Exact]
"""Series text -> what was counted of it."""


@dataclass(frozen=True)
class Part:
    """What is recounted of one version.

    Attributes:
        version: The version.
        panes: By pane of it, partition -> offset: it was looked at when all before it was counted.
    """

    version: Audited
    panes: Mapping[PaneAt, Mapping[int, int]]


@dataclass(frozen=True)
class Terms:
    """By what the log is counted: the horizons, by place, and the erased, from where in it."""

    horizons: tuple[Horizons, ...]
    erasures: tuple[Erasure, ...] = ()
    hash_key: bytes = field(default=b"", repr=False)


class Recount:
    """The sampled panes of some versions, counted again.

    Attributes:
        panes: What was counted, by pane; a pane that was asked for and is not there did not fit.
    """

    def __init__(self, parts: Sequence[Part], terms: Terms, most: int = MOST_HELD) -> None:
        """Begin with nothing counted.

        Args:
            parts: What is recounted.
            terms: By what the installation counts.
            most: How many events are held, each as often as it lies in panes.
        """
        self._parts, self._terms = parts, terms
        self.panes: dict[PaneAt, Counted] = {p: {} for part in parts for p in part.panes}
        self._tenants = frozenset(part.version.tenant for part in parts)
        self._known = Identities(most)
        self._room = Room(most)
        self._near = _starts(self.panes)
        self._by_member = _by_member(part.version.metric for part in parts)

    @property
    def held(self) -> int:
        """How many identities are remembered."""
        return len(self._known)

    def look_for(self, records: Iterable[LogRecord]) -> None:
        """First time through: remember the identities of what would be counted."""
        for record in records:
            found = record.event
            if found is None:
                continue
            panes = frozenset(pane for use in self._uses(found) for pane in use.panes)
            if panes and self._known.want(found.partition, found.identity, panes):
                self._leave_out(self._known.left_out)

    def count(self, records: Iterable[LogRecord]) -> None:
        """Second time through, over the same records in the same order: count."""
        for record in records:
            found = record.event
            if found is None:
                continue
            again = self._known.repeats(
                found.partition, found.identity, found.received_ms, self._horizons(found).horizon_ms
            )
            for use in self._uses(found) if again is False else ():
                self._add(use, found)

    def leave_out(self, panes: Collection[PaneAt]) -> None:
        """Count some panes no further: what they hold is gone from the log."""
        self._known.leave_out(panes)
        self._room.leave_out(panes)
        self._leave_out(panes)

    def _leave_out(self, panes: Collection[PaneAt]) -> None:
        for pane in panes:
            self.panes.pop(pane, None)
        self._near = _starts(self.panes)

    # ── what an event is to the sample, whether or not it repeats another one ───

    def _uses(self, found: LogEvent) -> Iterator[_Use]:
        """Yield where an event would be counted."""
        event = self._read(found)
        if event is None:
            return
        tenant, _source = owner(event["weirtenant"], "")
        gone = self._erasures_of(tenant, event.get("subject"))
        if any(found.offset >= one.offsets.get(found.partition, 0) for one in gone):
            return
        for part in self._parts:
            version = part.version
            if version.tenant != tenant or any(version.vid > one.vid for one in gone):
                continue
            panes = self._panes_of(part, event, found)
            it = near(version.metric, event) if panes else None
            if it is not None:
                # A version from before an erasure has them, but for what was counted again since.
                yield _Use(version.metric, event, replace(it, sure=False) if gone else it, panes)

    def _read(self, found: LogEvent) -> dict[str, Any] | None:
        """Return an event that may be counted; most are none, and told so with little effort."""
        time_ms = found.time_ms
        if not any(time_ms // res_ms in starts for res_ms, starts in self._near):
            return None
        if found.received_ms - time_ms > self._horizons(found).beyond_ms:
            return None
        if is_too_deep(found.value):
            return None  # forged: quarantined whole
        try:
            told = _TOLD.decode(found.value)
            return _JSON.decode(found.value) if self._is_asked_for(told) else None
        except UNREADABLE:
            return self._read_forged(found.value)

    def _read_forged(self, value: bytes) -> dict[str, Any] | None:
        """Return an event of which some part cannot be read; None: it was quarantined whole."""
        event = self._by_member.read(value)
        if event is None:
            return None
        told = _Told(event["weirtenant"], event["type"])
        return event if self._is_asked_for(told) else None

    def _horizons(self, found: LogEvent) -> Horizons:
        return horizons_at(self._terms.horizons, found.partition, found.offset)

    def _is_asked_for(self, told: _Told) -> bool:
        tenant, kind = told.weirtenant, told.type
        if not isinstance(tenant, str) or not isinstance(kind, str):
            return False  # forged: quarantined whole
        if owner(tenant, "")[0] not in self._tenants:
            return False
        return any(part.version.metric.events.matches_type(kind) for part in self._parts)

    def _panes_of(
        self, part: Part, event: Mapping[str, Any], found: LogEvent
    ) -> tuple[PaneAt, ...]:
        """Return the panes of a part in which an event lies that it is to count."""
        version, partition, offset = part.version, found.partition, found.offset
        ended = version.finish is not None and offset >= version.finish.get(partition, 0)
        if offset < version.begin.get(partition, 0) or ended:
            return ()
        # By the received minute an event may be too old for a pane that others still come into.
        minute_ms = found.received_ms - found.received_ms % MINUTE_MS
        starts = (
            (res, keep, found.time_ms - found.time_ms % res)
            for res, keep in version.metric.keep_ms.items()
        )
        lies_in = (
            PaneAt(version.vid, res // 1000, start // 1000)
            for res, keep, start in starts
            if minute_ms <= start + res + keep
        )
        asked_for = tuple(pane for pane in lies_in if pane in self.panes)
        panes = tuple(p for p in asked_for if offset < part.panes[p].get(partition, 0))
        return panes if panes and version.metric.selects(event) else ()

    def _erasures_of(self, tenant: str, subject: object) -> list[Erasure]:
        """Return the erasures of whom an event is about."""
        mine = [one for one in self._terms.erasures if one.tenant == tenant]
        if not mine or not isinstance(subject, str):
            return []
        known = subject_hash(self._terms.hash_key, tenant, subject)
        return [one for one in mine if one.hash == known]

    def _add(self, use: _Use, found: LogEvent) -> None:
        it, at = use.near, (found.time_ms, found.identity)
        one = exact_of(use.metric, it, use.event, at) if it.sure else Exact(unsure=1)
        for pane in use.panes:
            self.panes[pane].setdefault(it.used.series, Exact()).add(one)
        # One identity may be counted again and again, a horizon apart each time.
        if self._room.take(use.panes, one.size):
            self._leave_out(self._room.left_out)


@dataclass(frozen=True, slots=True)
class _Use:
    """An event that is counted in some panes of a metric, unless it repeats another one."""

    metric: Metric
    event: Mapping[str, Any]
    near: Near
    panes: tuple[PaneAt, ...]


def exact_of(metric: Metric, it: Near, event: Mapping[str, Any], at: tuple[int, bytes]) -> Exact:
    """Return what one event is to a metric that certainly uses it.

    Args:
        metric: The metric.
        it: What the event is to it.
        event: The event.
        at: Its time and identity.
    """
    one = Exact(1)
    low, high = it.span
    if low is not None:
        one.values, one.spans = ([low], []) if low == high else ([], [(low, high)])
        one.last = (*at, low, high)
    if it.used.distinct is not None:
        one.members = {it.used.distinct}
    if metric.theta_path is not None:
        text = scalar_text(metric.theta_path.read(event))
        one.in_set = set() if text is None else {text}
    if metric.top_path is not None:
        text = scalar_text(metric.top_path.read(event))
        one.texts = Counter() if text is None else Counter({cut_text(text): 1})
    return one


def _by_member(metrics: Iterable[Metric]) -> MemberReader:
    """Return who reads what metrics read, and what every event is asked for."""
    outer, inner = members_of(path for metric in metrics for path in metric.paths)
    return MemberReader(outer | _ASKED, inner)


def _starts(panes: Iterable[PaneAt]) -> tuple[tuple[int, frozenset[int]], ...]:
    """Return the panes, whosever they are: each length in ms with the places at which some lie."""
    found: dict[int, set[int]] = {}
    for pane in panes:
        found.setdefault(1000 * pane.res_s, set()).add(pane.start_s // pane.res_s)
    return tuple((res_ms, frozenset(starts)) for res_ms, starts in found.items())
