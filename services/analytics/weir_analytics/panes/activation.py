"""From where a version is counted: chosen once, recorded, and the same ever after. Pure.

The activation offsets are the end of the range planned last, so every batch lies
wholly before or wholly after them when it is first run (chosen as its beginning, a
crash between two shards left a hole in 1,615 of 2,000 runs of a model).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from weir.definitions.fold import Definitions
from weir.definitions.history import Activation, Definition
from weir.definitions.metric import Metric
from weir.definitions.records import Counting

from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.versions import Version


def to_stop(definitions: Definitions) -> list[Definition]:
    """Return the versions still counted of metrics that have been deleted.

    A version that was edited goes on: it counts the late events before the cut.
    """
    return [
        one.definition
        for one in definitions.metrics_active()
        if definitions.get(one.definition.tenant, "metric", one.definition.name) is None
    ]


def predecessor(definitions: Definitions, definition: Definition) -> Definition | None:
    """Return the version that serves until this one does: the last one still counted."""
    own = (definition.tenant, definition.name)
    found = [
        one.definition
        for one in definitions.metrics_active()
        if (one.definition.tenant, one.definition.name) == own
        and one.definition.vid < definition.vid
    ]
    return found[-1] if found else None


def cut_after(
    resolutions_s: Iterable[int],
    received_ms: int,
    newest_s: Mapping[int, int],
    before: Mapping[int, int] | None = None,
) -> dict[int, int]:
    """Return by resolution the first pane that belongs to the new version alone.

    Args:
        resolutions_s: The new version's resolutions and its predecessor's.
        received_ms: The greatest R at the activation: what came before it may lie in
            any pane up to there.
        newest_s: By resolution, the last pane that the predecessor has: clients'
            clocks may be ahead.
        before: The predecessor's own cut. What lies before that is not its to hand on:
            versions before it hold it. So no resolution of a chain is ever forgotten.
    """
    before = before or {}
    cut: dict[int, int] = {}
    for res_s in sorted({*resolutions_s, *before}):
        next_s = -(-(received_ms + 1) // (res_s * 1000)) * res_s
        newest = newest_s.get(res_s, next_s - res_s)
        cut[res_s] = max(next_s, newest + res_s, before.get(res_s, next_s))
    return cut


def counting(
    definition: Definition,
    offsets: Offsets,
    *,
    after: Definition | None = None,
    cut: Mapping[int, int] | None = None,
    from_start: bool = False,
) -> Counting:
    """Return what is recorded of a version that starts, or stops, to be counted."""
    return Counting(
        vid=definition.vid,
        tenant=definition.tenant,
        name=definition.name,
        version=definition.version,
        offsets=dict(offsets),
        after=after.vid if after is not None else None,
        cut=cut if after is not None else None,
        from_start=from_start,
    )


def counted(definitions: Definitions, through_s: int) -> list[Counted]:
    """Return the versions that may count something in some range of the log.

    Args:
        definitions: The fold.
        through_s: Received time counted so far: a predecessor is done with once
            every pane before its cut is too old to be kept.
    """
    activations = definitions.activations
    until = {a.after: a.cut or {} for a in activations.values() if a.after is not None}
    found: list[Counted] = []
    for vid, activation in sorted(activations.items()):
        definition = definitions.by_vid(vid)
        metric = definition.metric if definition is not None else None
        if metric is None:
            continue
        version = version_of(activation, metric)
        if vid in until:
            version = replace(version, cut_until=until[vid])
            if is_over(version, through_s):
                continue
        found.append(Counted(version, metric))
    return found


def ended(definitions: Definitions, through_s: int) -> list[int]:
    """Return the versions that will never count an event again: deleted, or over.

    One that this release cannot read may be counted by the next, and is none of them.
    """
    on = {
        one.version.vid
        for one in counted(definitions, through_s)
        if definitions.activations[one.version.vid].finish is None
    }
    known = (definitions.by_vid(vid) for vid in definitions.activations)
    return sorted(one.vid for one in known if one and one.metric and one.vid not in on)


def version_of(activation: Activation, metric: Metric) -> Version:
    """Return what the engine has to know of a version."""
    return Version(
        vid=activation.vid,
        tenant=activation.tenant,
        name=activation.name,
        keeps=keeps_of(metric),
        begin=activation.begin,
        finish=activation.finish,
        cut_from=activation.cut or {},
        max_series=metric.max_series,
        lateness_s=metric.lateness_ms // 1000,
    )


def keeps_of(metric: Metric) -> tuple[tuple[int, int], ...]:
    """Return (length, time kept) of each resolution in seconds, the finest first."""
    return tuple((res // 1000, keep // 1000) for res, keep in metric.keep_ms.items())


def is_over(version: Version, through_s: int) -> bool:
    """Tell whether no pane of a predecessor can change any more."""
    return all(
        res_s in version.cut_until and through_s > version.cut_until[res_s] + res_s + keep_s
        for res_s, keep_s in version.keeps
    )
