"""Which versions of a metric serve which of its panes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile

from weir.commit import not_after
from weir.definitions.history import Activation, Definition
from weir.definitions.serving import serving
from weir.definitions.signals import SIGNALS
from weir.query.answer import unit_of
from weir.query.facts import Served, Version

from weir_reading.catalog import Catalog


class Metrics(Mapping[str, Served]):
    """The metrics of one tenant as they are served, looked up when asked for."""

    def __init__(self, catalog: Catalog, tenant: str) -> None:
        self._catalog, self._tenant = catalog, tenant

    def __getitem__(self, name: str) -> Served:
        found = served(self._catalog, self._tenant, name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (one.name for one in self._catalog.folded.current(self._tenant, "metric"))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def unit(self, name: str, aggregate: str) -> str:
        """Return the unit of what a rule asks; empty if there is no such metric or signal."""
        if name in SIGNALS:
            return SIGNALS[name].unit
        found = self.get(name)
        return unit_of(aggregate, found.newest.metric.unit) if found is not None else ""


def served(catalog: Catalog, tenant: str, name: str) -> Served | None:
    """Return a metric as it is served, or None if there is none.

    An edit changes nothing until it has taken over: the version before it serves. A metric
    of which no version serves yet is shown by the newest one, as being rebuilt.
    """
    fold = catalog.folded
    current = fold.get(tenant, "metric", name)
    if current is None:
        return None
    chain = (
        serving(fold, tenant, name, serves=lambda activation: serves(catalog, activation))
        or serving(fold, tenant, name, serves=lambda _: True)
        or [current]
    )
    readable = takewhile(lambda one: one.metric is not None, chain)
    newest = chain[0].vid
    versions = [_version(catalog, one, fold.activations.get(one.vid)) for one in readable]
    if fold.is_left_out(newest):
        # What came since is in no pane, which is not 0; what it has is shown again as soon as
        # another version has taken over what the log holds.
        versions[:1] = [replace(one, rebuilding=True) for one in versions[:1]]
    return Served(tuple(reversed(versions))) if versions else None


def shown(catalog: Catalog, tenant: str, name: str) -> Definition | None:
    """Return the version that answers queries now; the current one while none is counted."""
    found = served(catalog, tenant, name)
    return catalog.folded.by_vid(found.newest.vid) if found is not None else None


def serves(catalog: Catalog, activation: Activation) -> bool:
    """Tell whether a version serves, at the batch that readers have come to.

    What took over in a log that was given up has done so, wherever this one ends.
    """
    taken, reached, start = activation.takeover, catalog.reached, catalog.folded.start()
    if taken is None or reached is None:
        return activation.serves
    log_id = start.events_id if start is not None else None
    if log_id is not None and not taken.is_of(log_id):
        return True
    return not_after(taken.offsets, reached)


def _version(catalog: Catalog, definition: Definition, activation: Activation | None) -> Version:
    if definition.metric is None:
        msg = f"version {definition.vid} must be a metric that this release can read"
        raise ValueError(msg)
    waits = activation is not None and not serves(catalog, activation)
    return Version(
        vid=definition.vid,
        number=definition.version,
        metric=definition.metric,
        cut=activation.cut if activation is not None else None,
        complete_from_ms=_complete_from_ms(catalog, definition.vid, activation),
        rebuilding=waits or definition.vid in catalog.filling,
    )


def _complete_from_ms(catalog: Catalog, vid: int, activation: Activation | None) -> int:
    """Return before which start panes lack events that counting never met."""
    if activation is None or activation.from_start or activation.fills:
        taken = activation.takeover if activation is not None else None
        return taken.complete_from_ms if taken is not None else 0
    return 0 if activation.cut is not None else catalog.activated_ms.get(vid, 0)
