"""What the metrics of a plan read: of a tenant's events of a type the paths of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, TypeAlias

from weir.definitions.selection import Selection
from weir.expressions import Path
from weir.expressions.paths import TIME

from weir_analytics.panes.compile_views import leaf_of

Leaves: TypeAlias = tuple[tuple[tuple[str, ...], list[Path]], ...]
"""Members that are read (see `compile_views.leaf_of`), each with the paths that it holds."""

# What is read of a type is remembered. There may be any number of types, of any length: a client
# that makes them up fills no memory, and a longer one is looked up anew each time.
_TYPES_KEPT: Final = 10_000
_LONG_TYPE: Final = 256
# So many paths of sets are remembered by member, some tens of MB: a list of events that reads many
# types at once has a set of its own, and hardly ever comes again.
_PATHS_KEPT: Final = 200_000


class Reads:
    """Which paths a tenant's metrics read of a type, besides those that are read of every event."""

    def __init__(
        self,
        always: Iterable[Path],
        metrics: Iterable[tuple[str, Selection, Iterable[Path]]] = (),
    ) -> None:
        """Take the paths that are read of every event, and by metric its tenant and its own."""
        self.always = _taken_paths(always)
        exact: dict[tuple[str, str], set[Path]] = defaultdict(set)
        prefixed: dict[str, dict[str, set[Path]]] = defaultdict(lambda: defaultdict(set))
        for tenant, selection, paths in metrics:
            own = _taken_paths(paths)
            for name in selection.exact_types:
                exact[tenant, name] |= own
            for prefix in selection.type_prefixes:
                prefixed[tenant][prefix] |= own
        self._exact = {key: self.always | own for key, own in exact.items()}
        self._prefixed = {tenant: (tuple(of), of) for tenant, of in prefixed.items()}
        by_prefix = (own for _names, of in self._prefixed.values() for own in of.values())
        self.all = self.always.union(*self._exact.values(), *by_prefix)
        # Tenants by their metrics: what is forged may name any.
        self._tenants = frozenset((*(tenant for tenant, _name in exact), *prefixed))
        self._known: dict[tuple[str, str], frozenset[Path]] = {}
        self._sets: dict[frozenset[Path], frozenset[Path]] = {}
        self._leaves: dict[frozenset[Path], Leaves] = {}
        self._kept = 0

    def of(self, tenant: str | None, event_type: str | None) -> frozenset[Path]:
        """Return what is read of a tenant's events of a type; equal ones are one set.

        What has no tenant or no type is forged: no metric counts it.
        """
        if tenant is None or tenant not in self._tenants or event_type is None:
            return self.always
        key = tenant, event_type
        found = self._known.get(key)
        if found is None:
            found = self._exact.get(key, self.always)
            prefixes, of = self._prefixed.get(tenant, _NO_PREFIXES)
            if event_type.startswith(prefixes):
                beside = (own for name, own in of.items() if event_type.startswith(name))
                found = found.union(*beside)
            found = self._sets.setdefault(found, found)
            if len(self._known) >= _TYPES_KEPT:
                self._known.clear()
            if len(event_type) <= _LONG_TYPE:
                self._known[key] = found
        return found

    def leaves(self, paths: frozenset[Path]) -> Leaves:
        """Return some paths by the member that holds them."""
        found = self._leaves.get(paths)
        if found is None:
            by_leaf: dict[tuple[str, ...], list[Path]] = defaultdict(list)
            for path in paths:
                by_leaf[leaf_of(path)].append(path)
            self._kept += len(paths)
            if self._kept > _PATHS_KEPT:
                self._leaves.clear()
                self._kept = len(paths)
            found = self._leaves[paths] = tuple(by_leaf.items())
        return found


_NO_PREFIXES: Final[tuple[tuple[str, ...], dict[str, set[Path]]]] = ((), {})


def _taken_paths(paths: Iterable[Path]) -> frozenset[Path]:
    # Event time stands at a fixed place of the value.
    return frozenset(path for path in paths if path.parts != (TIME,))
