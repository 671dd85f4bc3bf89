"""Panes counted from the log a second time, the slow and obvious way. Pure.

It goes by the rules of RELIABILITY 2.1 and by the reference evaluator of expressions,
and keeps every value that it meets: no Spark, no sketch, no merge, no plan. The log is
gone through twice: first for the identities of what lies in the panes of the sample,
then for whether an earlier record had the same one. So it holds the identities of the
sample only, however many events one horizon has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from confluent_kafka import Message
from weir.admission import Refused, admit_foreign
from weir.definitions.metric import Metric
from weir.erasure import Erasure, subject_hash
from weir.event import owner, placed
from weir.expressions.numbers import scalar_text

from weir_analytics.jobs.digits import Near, near
from weir_analytics.jobs.sample import Audited, PaneAt
from weir_analytics.panes.history import headers_of
from weir_analytics.panes.kinds import Kind
from weir_analytics.panes.states import kind_of

_JSON = msgspec.json.Decoder(dict[str, Any])


@dataclass
class Exact:
    """Everything of one series in one pane, nothing thrown away.

    Attributes:
        n: How many events.
        values: Their values, as far as these are certain.
        members: What `distinct` sees.
        in_set: What `theta` sees.
        texts: What `top` sees, each with how often it came.
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
        panes: Its panes.
        end: Partition -> offset: the panes were looked at when all before it was counted.
    """

    version: Audited
    panes: frozenset[PaneAt]
    end: Mapping[int, int]


@dataclass(frozen=True)
class Terms:
    """By what the installation counts: the dedup horizon, the age that is beyond, the erased."""

    horizon_ms: int
    beyond_ms: int
    erasures: tuple[Erasure, ...] = ()
    hash_key: bytes = field(default=b"", repr=False)


class Recount:
    """The sampled panes of some versions, counted again.

    Attributes:
        panes: What was counted, by pane; every asked pane is there.
    """

    def __init__(self, parts: Sequence[Part], terms: Terms) -> None:
        self._parts, self._terms = parts, terms
        self.panes: dict[PaneAt, Counted] = {p: {} for part in parts for p in part.panes}
        self._grain_ms = 1000 * min((p.res_s for p in self.panes), default=1)
        self._grains = frozenset(_grains(self.panes, self._grain_ms))
        self._wanted: set[bytes] = set()
        self._latest: dict[tuple[int, bytes], int] = {}
        self._received: tuple[dict[int, int], dict[int, int]] = ({}, {})

    def look_for(self, messages: Iterable[Message]) -> None:
        """First time through: remember the identities of what lies in the panes."""
        for message in messages:
            found = self._event(message, self._received[0])
            if found is not None and self._is_near(found.time_ms):
                self._wanted.add(found.identity)

    def count(self, messages: Iterable[Message]) -> None:
        """Second time through, over the same records in the same order: count."""
        for message in messages:
            found = self._event(message, self._received[1])
            if found is None or found.identity not in self._wanted:
                continue
            key = (message.partition() or 0, found.identity)
            before, self._latest[key] = self._latest.get(key), found.received_ms
            repeats = before is not None and found.received_ms - before <= self._terms.horizon_ms
            old = found.received_ms - found.time_ms > self._terms.beyond_ms
            if not repeats and not old and self._is_near(found.time_ms):
                self._use(found, message.partition() or 0, message.offset() or 0)

    def _is_near(self, time_ms: int) -> bool:
        return time_ms // self._grain_ms in self._grains

    def _event(self, message: Message, received: dict[int, int]) -> _Event | None:
        """Return a record as an event, with R; None if it is none."""
        partition, value = message.partition() or 0, message.value()
        received_ms = max(received.get(partition, 0), message.timestamp()[1])
        received[partition] = received_ms
        kind = kind_of(headers_of(message), value)
        if kind == Kind.FOREIGN:
            origin = f"{message.topic()}/{partition}/{message.offset()}"
            found = admit_foreign(value, received_ms=received_ms, recheck=True, origin=origin)
            value = None if isinstance(found, Refused) else found.value
        if value is None or kind in (Kind.TICK, Kind.REFUSED):
            return None
        place = placed(value)
        return _Event(place.digest, place.time_ms, received_ms, value)

    def _use(self, found: _Event, partition: int, offset: int) -> None:
        try:
            event = _JSON.decode(found.value)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        tenant, kind = event.get("weirtenant"), event.get("type")
        if not isinstance(tenant, str) or not isinstance(kind, str):
            return  # forged: quarantined whole
        tenant, _source = owner(tenant, "")
        gone = self._erasures_of(tenant, event.get("subject"))
        if any(offset >= one.offsets.get(partition, 0) for one in gone):
            return
        for part in self._parts:
            version = part.version
            if any(version.vid > one.vid for one in gone):
                continue
            inside = version.begin.get(partition, 0) <= offset < part.end.get(partition, 0)
            ended = version.finish is not None and offset >= version.finish.get(partition, 0)
            if inside and not ended and version.tenant == tenant:
                self._add(part, event, found)

    def _erasures_of(self, tenant: str, subject: object) -> list[Erasure]:
        """Return the erasures of whom an event is about."""
        mine = [one for one in self._terms.erasures if one.tenant == tenant]
        if not mine or not isinstance(subject, str):
            return []
        known = subject_hash(self._terms.hash_key, tenant, subject)
        return [one for one in mine if one.hash == known]

    def _add(self, part: Part, event: Mapping[str, Any], found: _Event) -> None:
        metric, time_ms = part.version.metric, found.time_ms
        starts = {
            PaneAt(part.version.vid, res // 1000, (time_ms - time_ms % res) // 1000)
            for res in metric.keep_ms
        }
        panes = starts & part.panes
        it = near(metric, event) if panes else None
        if it is None:
            return
        at = (found.time_ms, found.identity)
        one = exact_of(metric, it, event, at) if it.sure else Exact(unsure=1)
        for pane in panes:
            self.panes[pane].setdefault(it.used.series, Exact()).add(one)


@dataclass(frozen=True, slots=True)
class _Event:
    identity: bytes
    time_ms: int
    received_ms: int
    value: bytes


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
        one.texts = Counter() if text is None else Counter({text: 1})
    return one


def _grains(panes: Iterable[PaneAt], grain_ms: int) -> Iterable[int]:
    for pane in panes:
        first = pane.start_s * 1000 // grain_ms
        yield from range(first, first + max(1, pane.res_s * 1000 // grain_ms))
