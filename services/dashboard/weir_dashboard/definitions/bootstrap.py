"""The first key: if tenant `default` never had one, the installation's own is stored."""

from __future__ import annotations

import json

import structlog
from weir.problems import ProblemError, Reason

from weir_dashboard.auth.callers import KEY, hash_key_text
from weir_dashboard.auth.scopes import Scope
from weir_dashboard.definitions.catalog import Catalog
from weir_dashboard.definitions.writer import Expected, Writer

TENANT = "default"
SOURCE = "http"

log = structlog.get_logger()


async def store_first_key(
    catalog: Catalog, writer: Writer, key: str | None, hash_key: bytes
) -> None:
    """Append the hash of the bootstrap key as the tenant's first key, once.

    Two dashboards may try at the same time: one of the two records wins, and both say
    the same.

    Raises:
        ValueError: If the key is not written as keys are.
    """
    if key is None or catalog.has_keys(TENANT):
        return
    found = KEY.fullmatch(key)
    if found is None:
        msg = "secret bootstrap_key must be wk_, 8 of a-z0-9, _, 32 or more of base64url"
        raise ValueError(msg)
    text = json.dumps(
        {
            "kind": "key",
            "name": found[1],
            "hash": hash_key_text(hash_key, key),
            "scopes": [scope.value for scope in Scope],
            "source": SOURCE,
            "label": "bootstrap",
        }
    )
    try:
        place = (TENANT, "key", found[1])
        await writer.put(place, text, by="bootstrap", expected=Expected(absent=True))
    except ProblemError as problem:
        if problem.reason is not Reason.VERSION_CONFLICT:
            raise
    log.info("first_key_stored", key_id=found[1])
