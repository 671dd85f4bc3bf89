"""The catalog of this service: definitions, and the keys that callers come with."""

from __future__ import annotations

from weir.definitions.history import Definition
from weir.definitions.key import Key
from weir_reading import catalog

from weir_dashboard.auth.callers import KeyRecord

Place = catalog.Place


class Catalog(catalog.Catalog):
    """All definitions of all tenants, and their API keys by id."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, KeyRecord] = {}
        self._with_keys: set[str] = set()
        self._changes: dict[str, list[Definition]] = {}

    def changes(self, tenant: str) -> list[Definition]:
        """Return every version of every definition of a tenant, the newest first."""
        return self._changes.get(tenant, [])[::-1]

    def key(self, key_id: str) -> KeyRecord | None:
        """Return the record of an API key that is not revoked, or None."""
        return self._keys.get(key_id)

    def has_keys(self, tenant: str) -> bool:
        """Tell whether a tenant ever had a key: a revoked first key must not come back."""
        return tenant in self._with_keys

    def _take_definition(self, found: Definition) -> None:
        self._changes.setdefault(found.tenant, []).append(found)
        if found.kind != "key":
            return
        self._with_keys.add(found.tenant)
        before = self._keys.get(found.name)
        if found.deleted:
            if before is not None and before.tenant == found.tenant:
                del self._keys[found.name]
            return
        model = found.readable
        if not isinstance(model, Key):
            return
        self._keys[found.name] = KeyRecord(
            key_id=found.name,
            tenant=found.tenant,
            hash=model.hash,
            scopes=frozenset(model.scopes),
            label=model.label,
            expires_ms=model.expires,
        )
