"""From where a version is counted: chosen once, recorded, and the same ever after. Pure.

The activation offsets are the end of the range planned last, so every batch lies
wholly before or wholly after them when it is first run (chosen as its beginning, a
crash between two shards left a hole in 1,615 of 2,000 runs of a model).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from weir.definitions.fold import Definitions
from weir.definitions.history import Activation, ActiveMetric, Definition, TakenOver
from weir.definitions.metric import Metric
from weir.definitions.records import Counting, TakeOver
from weir.definitions.serving import is_in_life
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
    if not is_in_life(definitions, tenant, name, vid):
        return True
    current = definitions.get(tenant, "metric", name)
    return not one.activation.serves and (current is None or current.vid != vid)


def left_over(definitions: Definitions, topic_id: str) -> list[Version]:
    """Return the versions still counted from which another has taken over, with its cut.

    Each is to be stopped once it `is_over`: else every loss would count it again.
    """
    followed = definitions.activated.followed
    return [
        version_of(one.activation, one.metric, topic_id, followed[one.definition.vid])
        for one in definitions.metrics_active()
        if one.definition.vid in followed
    ]


def predecessor(definitions: Definitions, definition: Definition) -> Definition | None:
    """Return the version that serves until this one does: the last one that took over.

    None from before a deletion, whoever still counts it: no reader would look at it.
    """
    history = definitions.history(definition.tenant, "metric", definition.name)
    life = takewhile(lambda one: not one.deleted, history)
    began = (
        (one, definitions.activations.get(one.vid)) for one in life if one.vid < definition.vid
    )
    served = (
        version
        for version, one in began
        if one is not None and one.serves
        if one.finish is None or definitions.is_left_out(one.vid)
        if version.metric is not None
    )
    return next(served, None)


def shown_from(definitions: Definitions, topic_id: str, vid: int) -> Offsets | None:
    """Return from which offsets on readers look at a version; None: nobody does.

    A batch that begins before them changes what nobody has seen: it is no correction.
    """
    one = definitions.activations.get(vid)
    if one is None or not one.serves or not is_in_life(definitions, one.tenant, one.name, vid):
        return None
    return _offsets_of(one.takeover, topic_id)


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
        lateness_ms=metric.lateness_ms,
        sketched=estimated(metric.aggregates),
    )


def _offsets_of(taken: TakenOver | None, topic_id: str) -> Offsets:
    return taken.offsets if taken is not None and taken.is_of(topic_id) else {}


def awaited(definitions: Definitions) -> list[Counted]:
    """Return the versions that nobody counts, as they will be: new ones, and those left out."""
    return [
        Counted(_unbound(one, one.metric), one.metric)
        for one in (*definitions.metrics_to_start(), *definitions.left_out())
        if one.metric is not None
    ]


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
