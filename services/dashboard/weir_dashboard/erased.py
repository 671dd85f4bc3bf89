"""Who was erased, for what is served from places that cannot be counted anew."""

from __future__ import annotations

from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.erasure import Erasure, Subjects, erasures

from weir_dashboard.definitions.catalog import Catalog


def _by_tenant(fold: Definitions) -> dict[str, list[Erasure]]:
    found: dict[str, list[Erasure]] = {}
    for one in erasures(fold):
        found.setdefault(one.tenant, []).append(one)
    return found


class Erased:
    """Tells of a tenant's subjects; looks at the definitions only where they have changed."""

    def __init__(self, catalog: Catalog, hash_key: bytes) -> None:
        """Know nobody yet.

        Args:
            catalog: The definitions.
            hash_key: The installation's key.
        """
        self._catalog, self._hash_key = catalog, hash_key
        self._known = FoldMemo(_by_tenant)

    def subjects(self, tenant: str, since_vid: int = -1) -> Subjects | None:
        """Return who was erased; None for nobody.

        Args:
            tenant: Whose.
            since_vid: Only those erased after this version of a metric was made.
        """
        found = self._known.of(self._catalog.folded).get(tenant, ())
        hashes = frozenset(one.hash for one in found if one.vid > since_vid)
        return Subjects(tenant, hashes, self._hash_key) if hashes else None
