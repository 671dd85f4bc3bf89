"""Which versions of a metric serve which of its panes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weir.definitions.history import Activation, Definition
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

    An edit that the driver has not activated yet changes nothing: the version before it
    serves. A metric that was never activated is served by its first version, which has no
    panes yet.
    """
    current = catalog.folded.get(tenant, "metric", name)
    if current is None:
        return None
    history = catalog.folded.history(tenant, "metric", name)
    counted = [one for one in history if one.vid in catalog.folded.activations]
    newest = counted[0] if counted else current
    chain: list[Version] = []
    at: Definition | None = newest
    while at is not None and at.metric is not None and len(chain) < len(history):
        activation = catalog.folded.activations.get(at.vid)
        chain.append(_version(catalog, at, activation))
        before = activation.after if activation is not None else None
        at = catalog.folded.by_vid(before) if before is not None else None
    return Served(tuple(reversed(chain))) if chain else None


def _version(catalog: Catalog, definition: Definition, activation: Activation | None) -> Version:
    if definition.metric is None:
        msg = f"version {definition.vid} must be a metric that this release can read"
        raise ValueError(msg)
    begun_ms = catalog.activated_ms.get(definition.vid, 0)
    whole = activation is None or activation.from_start or activation.cut is not None
    return Version(
        vid=definition.vid,
        number=definition.version,
        metric=definition.metric,
        cut=activation.cut if activation is not None else None,
        complete_from_ms=0 if whole else begun_ms,
    )
