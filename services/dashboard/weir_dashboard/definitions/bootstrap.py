"""The first key: if tenant `default` never had one, the installation's own is stored."""

from __future__ import annotations

import asyncio
import json
from typing import Final

import structlog
from weir.problems import ProblemError, Reason

from weir_dashboard.auth.callers import hash_key_text, key_id_of
from weir_dashboard.auth.scopes import Scope
from weir_dashboard.definitions.catalog import Catalog
from weir_dashboard.definitions.writer import Expected, Writer

TENANT = "default"
SOURCE = "http"
AGAIN_S: Final = 2.0

log = structlog.get_logger()


async def store_first_key(
    catalog: Catalog, writer: Writer, key: str | None, hash_key: bytes
) -> None:
    """Append the hash of the bootstrap key as the tenant's first key, once.

    Two dashboards may try at the same time: one of the two records wins, and both say
    the same. Without it nobody can sign in, so it is tried until the log takes it.

    Raises:
        ValueError: If the key is not written as keys are.
    """
    if key is None or catalog.has_keys(TENANT):
        return
    key_id = key_id_of(key)
    text = json.dumps(
        {
            "kind": "key",
            "name": key_id,
            "hash": hash_key_text(hash_key, key),
            "scopes": [scope.value for scope in Scope],
            "source": SOURCE,
            "label": "bootstrap",
        }
    )
    place, expected = (TENANT, "key", key_id), Expected(absent=True)
    while True:
        try:
            await writer.put(place, text, by="bootstrap", expected=expected)
        except ProblemError as problem:
            if problem.reason is not Reason.VERSION_CONFLICT:
                log.warning("first_key_waits", why=problem.message, again_in_s=AGAIN_S)
                await asyncio.sleep(AGAIN_S)
                continue
        break
    log.info("first_key_stored", key_id=key_id)
