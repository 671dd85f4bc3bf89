"""From where a version is counted: chosen once, recorded, and the same ever after. Pure.

The activation offsets are the end of the range planned last, so every batch lies
wholly before or wholly after them when it is first run (chosen as its beginning, a
crash between two shards left a hole in 1,615 of 2,000 runs of a model).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from weir.definitions.fold import Definitions
from weir.definitions.history import Activation, ActiveMetric, Definition, TakenOver
from weir.definitions.metric import Metric
from weir.definitions.records import Counting, TakeOver
from weir.definitions.serving import life_of
from weir.lanes import takeover_cut
from weir.query.estimates import estimated

from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.versions import Version


def to_stop(definitions: Definitions) -> list[Definition]:
    """Return the versions still counted that have no use any more.

    Those of deleted metrics, also of one that was made anew since, and those that were edited
    before they served. One that served goes on after an edit: until its successor takes over,
    and then for the panes before the cut (`left_over`).
    """
    return [one.definition for one in definitions.metrics_active() if _is_useless(definitions, one)]


def _is_useless(definitions: Definitions, one: ActiveMetric) -> bool:
    tenant, name, vid = one.definition.tenant, one.definition.name, one.definition.vid
    if vid not in life_of(definitions, tenant, name):
        return True
    current = definitions.get(tenant, "metric", name)
    return not one.activation.serves and (current is None or current.vid != vid)


def left_over(definitions: Definitions, topic_id: str) -> list[Version]:
    """Return the versions still counted from which another has taken over, with its cut.

    Each is to be stopped once it `is_over`: else every loss would count it again.
    """
    followed = _followed(definitions)
    return [
        version_of(one.activation, one.metric, topic_id, followed[one.definition.vid])
        for one in definitions.metrics_active()
        if one.definition.vid in followed
    ]


def predecessor(definitions: Definitions, definition: Definition) -> Definition | None:
    """Return the version that serves until this one does: the last one that took over.

    None from before a deletion, whoever still counts it: no reader would look at it.
    """
    life = life_of(definitions, definition.tenant, definition.name)
    found = [
        life[vid]
        for vid, one in sorted(definitions.activations.items())
        if vid in life and vid < definition.vid and one.serves
        if one.finish is None or definitions.is_left_out(vid)
        if life[vid].metric is not None
    ]
    return found[-1] if found else None


def shown_from(definitions: Definitions, topic_id: str) -> dict[int, Offsets | None]:
    """Return by version from which offsets on readers look at it; None: nobody does.

    A batch that begins before them changes what nobody has seen: it is no correction.
    """
    found: dict[int, Offsets | None] = {}
    for vid, one in definitions.activations.items():
        is_shown = one.serves and vid in life_of(definitions, one.tenant, one.name)
        found[vid] = _offsets_of(one.takeover, topic_id) if is_shown else None
    return found


def lanes_to_open(definitions: Definitions, topic_id: str) -> list[tuple[Offsets, tuple[int, ...]]]:
    """Return the versions that wait for a lane to fill them: (activation offsets, versions).

    Versions that were activated at one place are filled together: the log is read once. One
    that was activated in another log is counted from the start of this one, so its lane is
    empty.
    """
    filled = {
        vid for lane in definitions.lanes.values() if lane.topic_id == topic_id for vid in lane.vids
    }
    waiting: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for one in definitions.metrics_active():
        activation = one.activation
        if activation.fills and not activation.serves and activation.vid not in filled:
            begin = activation.begin if activation.is_of(topic_id) else {}
            place = tuple(sorted(begin.items()))
            waiting.setdefault(place, []).append(activation.vid)
    return [(dict(place), tuple(vids)) for place, vids in waiting.items()]


def takeover(
    definitions: Definitions, vid: int, offsets: Offsets, complete_from_ms: int, topic_id: str
) -> TakeOver | None:
    """Return what is recorded when a version has been filled; None if it has no use any more.

    Args:
        definitions: The fold.
        vid: The version.
        offsets: The end of the batch planned last.
        complete_from_ms: Panes that start earlier may lack events that the log has no more.
        topic_id: Kafka's id of the log.
    """
    definition = definitions.by_vid(vid)
    if definition is None or definition.metric is None:
        return None
    before = predecessor(definitions, definition)
    resolutions = [
        res_s
        for one in (definition, before)
        if one is not None and one.metric is not None
        for res_s, _keep_s in keeps_of(one.metric)
    ]
    return TakeOver(
        vid=vid,
        after=before.vid if before is not None else None,
        offsets=dict(offsets),
        cut=takeover_cut(resolutions, complete_from_ms) if before is not None else None,
        complete_from_ms=complete_from_ms,
        topic_id=topic_id,
    )


def counting(
    definition: Definition,
    offsets: Offsets,
    topic_id: str,
    *,
    after: Definition | None = None,
    from_start: bool = False,
    fills: bool = False,
) -> Counting:
    """Return what is recorded of a version that starts, or stops, to be counted."""
    return Counting(
        vid=definition.vid,
        tenant=definition.tenant,
        name=definition.name,
        version=definition.version,
        offsets=dict(offsets),
        after=after.vid if after is not None else None,
        from_start=from_start,
        fills=fills,
        topic_id=topic_id,
    )


def counted(
    definitions: Definitions, topic_id: str, through_s: int, start: Offsets | None = None
) -> list[Counted]:
    """Return the versions that may count something in some range of the log.

    Args:
        definitions: The fold.
        topic_id: Kafka's id of the log.
        through_s: Received time counted so far: a predecessor is done with once
            every pane before its cut is too old to be kept.
        start: Where the range begins, with the cuts that apply there; None: at the present.
    """
    return [
        one
        for activation, one in _not_over(definitions, topic_id, through_s, start)
        if activation.finish is None or activation.is_of(topic_id)
        if not definitions.is_left_out(activation.vid)
    ]


def _not_over(
    definitions: Definitions, topic_id: str, through_s: int, start: Offsets | None = None
) -> Iterator[tuple[Activation, Counted]]:
    """Yield the versions that have panes which may change or be read, in order; see `counted`."""
    followed = _followed(definitions)
    for vid, activation in sorted(definitions.activations.items()):
        definition = definitions.by_vid(vid)
        if definition is None or definition.metric is None:
            continue
        version = version_of(activation, definition.metric, topic_id, followed.get(vid))
        if start is not None:
            version = version.at(start)
        if not (version.cut_until and is_over(version, through_s)):
            yield activation, Counted(version, definition.metric)


def rebuilt(definitions: Definitions, topic_id: str, through_s: int, at: Offsets) -> list[Counted]:
    """Return the versions that are counted again after a loss: those that somebody reads.

    A cut applies wherever in the log, as soon as live counting has come to its takeover: what
    lies on its other side was counted in vain, and is not counted a second time.

    Args:
        definitions: The fold.
        topic_id: Kafka's id of the log.
        through_s: Received time counted so far.
        at: Where live counting stands.
    """
    found = counted(definitions, topic_id, through_s, at)
    return [one for one in found if one.version.finish is None]


def ended(definitions: Definitions, topic_id: str, through_s: int) -> list[int]:
    """Return the versions that will never count an event again: deleted, or over.

    One that this release cannot read may be counted by the next, and is none of them. Nor is
    one that is left out, as long as it is read.
    """
    on = {
        one.vid
        for one, _ in _not_over(definitions, topic_id, through_s)
        if one.finish is None or _is_read(definitions, one)
    }
    known = (definitions.by_vid(vid) for vid in definitions.activations)
    return sorted(one.vid for one in known if one and one.metric and one.vid not in on)


def _is_read(definitions: Definitions, one: Activation) -> bool:
    """Tell whether a version that is left out serves all the same."""
    is_left_out = definitions.is_left_out(one.vid)
    return is_left_out and one.serves and one.vid in life_of(definitions, one.tenant, one.name)


def version_of(
    activation: Activation, metric: Metric, topic_id: str, successor: Activation | None = None
) -> Version:
    """Return what the engine has to know of a version.

    What was activated in another log, which was given up, counts all of this one.

    Args:
        activation: From where it is counted, and from where it serves.
        metric: Its definition.
        topic_id: Kafka's id of the log.
        successor: The version that has taken over from it, if one has.
    """
    taken = activation.takeover
    until = successor.takeover if successor is not None else None
    return replace(
        _unbound(activation, metric),
        begin=activation.begin if activation.is_of(topic_id) else {},
        finish=activation.finish,
        cut_from=activation.cut or {},
        cut_from_at=_offsets_of(taken, topic_id),
        cut_until=(successor.cut or {}) if successor is not None else {},
        cut_until_at=_offsets_of(until, topic_id),
    )


def _unbound(named: Activation | Definition, metric: Metric) -> Version:
    return Version(
        vid=named.vid,
        tenant=named.tenant,
        name=named.name,
        keeps=keeps_of(metric),
        max_series=metric.max_series,
        lateness_s=metric.lateness_ms // 1000,
        sketched=estimated(metric.aggregates),
    )


def _offsets_of(taken: TakenOver | None, topic_id: str) -> Offsets:
    known = taken is not None and taken.topic_id in ("", topic_id)
    return taken.offsets if taken is not None and known else {}


def awaited(definitions: Definitions) -> list[Counted]:
    """Return the versions that nobody counts, as they will be: new ones, and those left out."""
    return [
        Counted(_unbound(one, one.metric), one.metric)
        for one in (*definitions.metrics_to_start(), *definitions.left_out())
        if one.metric is not None
    ]


def filling(
    definitions: Definitions, topic_id: str, vids: Iterable[int], at: Offsets
) -> list[Counted]:
    """Return versions as a backfill counts them: wherever in the log, between their cuts.

    All panes of one that does not serve yet; of others, after a loss, those that are read.

    Args:
        definitions: The fold.
        topic_id: Kafka's id of the log.
        vids: The versions.
        at: Where live counting stands: takeovers up to there have happened.
    """
    followed = _followed(definitions)
    found: list[Counted] = []
    for vid in vids:
        definition, activation = definitions.by_vid(vid), definitions.activations[vid]
        if definition is not None and definition.metric is not None:
            version = version_of(activation, definition.metric, topic_id, followed.get(vid))
            found.append(Counted(version.at(at).within(), definition.metric))
    return found


def _followed(definitions: Definitions) -> dict[int, Activation]:
    """Return by version the one that has taken over from it."""
    activations = definitions.activations.values()
    return {one.after: one for one in activations if one.after is not None and one.serves}


def keeps_of(metric: Metric) -> tuple[tuple[int, int], ...]:
    """Return (length, time kept) of each resolution in seconds, the finest first."""
    return tuple((res // 1000, keep // 1000) for res, keep in metric.keep_ms.items())


def is_over(version: Version, through_s: int) -> bool:
    """Tell whether no pane is left to a predecessor that can still change.

    Each is too old to be kept; or there is none, since the next cut is where its own is. Before
    the epoch lies nothing: that is beyond every horizon.
    """
    first, until = version.cut_from, version.cut_until
    return all(
        res_s in until
        and (through_s > until[res_s] + res_s + keep_s or until[res_s] <= first.get(res_s, 0))
        for res_s, keep_s in version.keeps
    )
