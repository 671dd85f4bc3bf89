"""Which panes an audit looks at, and by which versions they are served. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weir.definitions.fold import Definitions
from weir.definitions.history import Activation, Definition
from weir.definitions.metric import Metric
from weir.definitions.serving import serving

from weir_analytics.panes.accounts import LEDGER, SYSTEM_RES_S
from weir_analytics.panes.versions import LEDGER_KEPT_S

MINUTE_MS: Final = SYSTEM_RES_S * 1000
# Before a minute may expire by its end.
LEDGER_MS: Final = LEDGER_KEPT_S * 1000


@dataclass(frozen=True)
class Audited:
    """A version of a metric, and what of the log it is the sum of.

    Attributes:
        vid: The version.
        tenant: Whose.
        name: Of the metric.
        version: Its number.
        metric: What it counts.
        begin: Partition -> first offset counted; one that is missing is counted from 0.
        finish: Partition -> offset before which counting ended, 0 of one that is missing; None
            while it goes on.
        cut: Resolution in seconds -> start in seconds of its first own pane.
    """

    vid: int
    tenant: str
    name: str
    version: int
    metric: Metric
    begin: Mapping[int, int]
    finish: Mapping[int, int] | None
    cut: Mapping[int, int]


@dataclass(frozen=True, order=True)
class PaneAt:
    """One pane of one version, over all shards; lengths and starts in seconds."""

    vid: int
    res_s: int
    start_s: int


def chain_of(fold: Definitions, tenant: str, name: str, topic_id: str) -> list[Audited]:
    """Return the versions that serve the panes of a metric, the newest first.

    Args:
        fold: The definitions.
        tenant: Whose.
        name: The metric.
        topic_id: Kafka's id of the log that is counted.
    """
    chain: list[Audited] = []
    for version in serving(fold, tenant, name):
        if version.metric is None:
            break  # what lies before is served by no version that is known here
        chain.append(_audited(fold, version, version.metric, topic_id))
    return chain


def _audited(fold: Definitions, version: Definition, metric: Metric, topic_id: str) -> Audited:
    activation = fold.activations[version.vid]
    return Audited(
        vid=version.vid,
        tenant=version.tenant,
        name=version.name,
        version=version.version,
        metric=metric,
        begin=counted_from(fold, activation, topic_id),
        finish=counted_to(activation, topic_id),
        cut=activation.cut or {},
    )


def counted_from(fold: Definitions, activation: Activation, topic_id: str) -> dict[int, int]:
    """Return the first offsets that a version has counted: its lane's, if one filled it.

    What was activated in another log, which was given up, counts all of this one.
    """
    if not activation.is_of(topic_id):
        return {}
    begin = dict(activation.begin)
    if not activation.fills:
        return begin
    for lane in fold.lanes.values():
        if lane.topic_id == topic_id and activation.vid in lane.vids:
            for partition in lane.end:
                start = lane.start.get(partition, 0)
                begin[partition] = min(begin.get(partition, 0), start)
    return begin


def counted_to(activation: Activation, topic_id: str) -> Mapping[int, int] | None:
    """Return the offsets before which counting a version ended; None while it goes on.

    What had ended in another log counts nothing of this one.
    """
    return activation.finish if activation.finish is None or activation.is_of(topic_id) else {}


def draw(seed: int, from_ms: int, to_ms: int, count: int) -> list[int]:
    """Return instants of a span, drawn evenly; the same seed draws the same."""
    chance = random.Random(seed)  # noqa: S311  a sample, no secret
    return [chance.randrange(from_ms, max(to_ms, from_ms + 1)) for _ in range(count)]


def shares(count: int, ways: int) -> list[int]:
    """Return a number in so many nearly equal parts, the larger ones first."""
    return [count // ways + (way < count % ways) for way in range(ways)]


def draw_places(
    seed: int, start: Mapping[int, int], end: Mapping[int, int], count: int
) -> list[tuple[int, int]]:
    """Return partitions and offsets of a range of the log, each record as likely as any other.

    Args:
        seed: The same one draws the same from the same range.
        start: First offset of each partition; 0 if it is not there.
        end: One past the last offset of each partition.
        count: How many; none of an empty range.
    """
    widths = {p: max(0, n - start.get(p, 0)) for p, n in sorted(end.items())}
    if not any(widths.values()):
        return []
    chance = random.Random(seed)  # noqa: S311  a sample, no secret
    drawn = chance.choices(list(widths), list(widths.values()), k=count)
    return [(p, start.get(p, 0) + chance.randrange(widths[p])) for p in drawn]


def panes_of(
    chain: Sequence[Audited], instants_ms: Iterable[int], *, since_ms: int, through_ms: int
) -> list[PaneAt]:
    """Return the panes that hold some instants, each once, in order.

    Args:
        chain: The versions that serve, the newest first.
        instants_ms: The sample.
        since_ms: Panes that start earlier are left out: the log no longer has all of them.
        through_ms: Received time counted so far; what nobody keeps any more is left out: its own
            version, which is who wrote it, or the newest, which is what is asked for.
    """
    found: set[PaneAt] = set()
    for at_ms in instants_ms:
        for res_ms, newest_keep_ms in chain[0].metric.keep_ms.items() if chain else ():
            start_ms = at_ms - at_ms % res_ms
            owner = _owner(chain, res_ms // 1000, start_ms // 1000)
            if start_ms < since_ms or owner is None:
                continue
            keep_ms = min(newest_keep_ms, owner.metric.keep_ms[res_ms])
            if start_ms + res_ms + keep_ms > through_ms:
                found.add(PaneAt(owner.vid, res_ms // 1000, start_ms // 1000))
    return sorted(found)


def minutes_of(
    instants_ms: Iterable[int], *, since_ms: int, over_ms: int, through_ms: int
) -> list[PaneAt]:
    """Return the received minutes that hold some instants, as panes of the ledger, each once.

    In the order of the instants: for what comes last there may be no room.

    Args:
        instants_ms: The sample; most events are received in the minute in which they happen.
        since_ms: Minutes that begin earlier are left out: the log no longer has all of them.
        over_ms: Received time counted when they were drawn; what was not over then is left out.
        through_ms: Received time counted so far; what is not kept any more is left out.
    """
    found: dict[PaneAt, None] = {}
    for at_ms in instants_ms:
        start_ms = at_ms - at_ms % MINUTE_MS
        is_kept = start_ms + MINUTE_MS <= over_ms and through_ms < start_ms + LEDGER_MS
        if start_ms >= since_ms and is_kept:
            found[PaneAt(LEDGER, SYSTEM_RES_S, start_ms // 1000)] = None
    return list(found)


def _owner(chain: Sequence[Audited], res_s: int, start_s: int) -> Audited | None:
    """Return the version that serves a pane: the first one whose cut lies before it."""
    owner = next((v for v in chain if start_s >= v.cut.get(res_s, start_s)), None)
    kept = owner is not None and res_s * 1000 in owner.metric.keep_ms
    return owner if kept else None
