"""API keys: made and shown once, listed without the key, revoked."""

from __future__ import annotations

import json
import secrets
import string

from fastapi import APIRouter
from weir.definitions.history import Definition
from weir.definitions.key import Key as KeyModel
from weir.problems import ProblemError, Reason

from weir_dashboard.api.models import Key, NewKey, Page, ShownKey
from weir_dashboard.auth.callers import hash_key_text
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.definitions.writer import Expected

ID_LETTERS = string.ascii_lowercase + string.digits
router = APIRouter(tags=["keys"])


@router.get("/keys")
async def list_keys(here: Here, caller: Who) -> Page[Key]:
    """List the tenant's keys that are not revoked, newest first."""
    found = here.catalog.folded.current(caller.tenant, "key")
    items = [Key.model_validate(_told(version)) for version in found]
    return Page(items=sorted(items, key=lambda key: -key.created_ms))


@router.post("/keys", status_code=201)
async def make_key(body: NewKey, here: Here, caller: Who) -> ShownKey:
    """Make a key with at most the caller's own scopes; the key is shown this once."""
    beyond = set(body.scopes) - caller.scopes
    if beyond:
        msg = f"a key cannot open more than its maker's, which lacks {sorted(beyond)}"
        raise ProblemError(403, Reason.SCOPE_MISSING, msg)
    key_id = "".join(secrets.choice(ID_LETTERS) for _ in range(8))
    key = f"wk_{key_id}_{secrets.token_urlsafe(32)}"
    text = key_text(here, key, key_id, body)
    version = await here.writer.put(
        (caller.tenant, "key", key_id), text, by=caller.name, expected=Expected(absent=True)
    )
    return ShownKey.model_validate({"key": key, **_told(version)})


@router.delete("/keys/{id}")
async def revoke_key(id: str, here: Here, caller: Who) -> Key:  # noqa: A002  the API's word
    """Revoke a key: refused everywhere within 60 s, open sockets are closed."""
    version = here.catalog.folded.get(caller.tenant, "key", id)
    if version is None:
        raise ProblemError(404, Reason.NOT_FOUND, "there is no such key")
    await here.writer.delete(
        (caller.tenant, "key", id), by=caller.name, expected=Expected(version=version.version)
    )
    return Key.model_validate(_told(version))


def key_text(here: Context, key: str, key_id: str, wanted: NewKey) -> str:
    """Return the definition of a key: its keyed hash, never the key."""
    return json.dumps(
        {
            "kind": "key",
            "name": key_id,
            "hash": hash_key_text(here.hash_key, key),
            "scopes": wanted.scopes,
            "source": wanted.source,
            "label": wanted.label,
        }
    )


def _told(version: Definition) -> dict[str, object]:
    model = version.model
    if not isinstance(model, KeyModel):
        msg = f"version {version.vid} is stored as a key but is a {model.kind}"
        raise TypeError(msg)
    return {
        "id": version.name,
        "label": model.label,
        "scopes": list(model.scopes),
        "source": model.source,
        "created_ms": version.at_ms,
        "created_by": version.by,
    }
