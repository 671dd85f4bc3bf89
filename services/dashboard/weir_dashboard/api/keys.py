"""API keys: made and shown once, listed without the key, replaced, revoked."""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from fastapi import APIRouter
from weir.definitions.durations import format_duration
from weir.definitions.history import Definition
from weir.definitions.key import Key as KeyModel
from weir.definitions.silence import instant_text
from weir.problems import ProblemError, Reason

from weir_dashboard.api.models import Key, NewKey, Page, RotatedKey, Rotation, ShownKey
from weir_dashboard.auth.callers import Caller, hash_key_text
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.definitions.writer import Expected, Put

ID_LETTERS = string.ascii_lowercase + string.digits
LONGEST_OVERLAP_MS = 30 * 86_400_000
UNKNOWN: Mapping[str, int] = MappingProxyType({})
router = APIRouter(tags=["keys"])


@router.get("/keys")
async def list_keys(here: Here, caller: Who) -> Page[Key]:
    """List the tenant's keys that are not revoked, newest first; expired ones among them."""
    used = await here.last_used.read(caller.tenant)
    found = here.catalog.folded.current(caller.tenant, "key")
    items = [Key.model_validate(_told(here, version, used)) for version in found]
    return Page(items=sorted(items, key=lambda key: -key.created_ms))


@router.post("/keys", status_code=201)
async def make_key(body: NewKey, here: Here, caller: Who) -> ShownKey:
    """Make a key with at most the caller's own scopes; the key is shown this once."""
    _check_scopes(body.scopes, caller)
    _check_end(body.expires, here.clock.now_ms())
    key, model = _new(here, body.model_dump(mode="json"))
    version = await here.writer.put(
        (caller.tenant, "key", model.name),
        key_text(model),
        by=caller.name,
        expected=Expected(absent=True),
    )
    return ShownKey.model_validate({"key": key, **_told(here, version)})


@router.post("/keys/{id}/rotate", status_code=201)
async def rotate_key(
    id: str,  # noqa: A002  the API's word
    here: Here,
    caller: Who,
    body: Rotation = Rotation(),  # noqa: B008  frozen, and FastAPI's way
) -> RotatedKey:
    """Make a key in place of another, which expires after an overlap; shown this once.

    The new one and the end of the old one are stored together, or neither is: at no time there is
    none that is good. A key that expires earlier anyway keeps its end.
    """
    old = _found(here, caller, id)
    replaced, now_ms = _model(old), here.clock.now_ms()
    _check_scopes(replaced.scopes, caller)
    _check_end(body.expires, now_ms)
    ends_ms = _end_of_the_old(replaced, body, now_ms)
    kept = replaced.model_dump(mode="json", exclude={"name", "hash"})
    ends = {"expires": None if body.expires is None else instant_text(body.expires)}
    key, model = _new(here, {**kept, **ends})
    puts = [Put((caller.tenant, "key", model.name), key_text(model), None, "/key")]
    if ends_ms != replaced.expires:
        ending = replaced.model_copy(update={"expires": ends_ms})
        puts.append(Put(old.place, key_text(ending), old.version, "/id"))
    version = (await here.writer.put_all(puts, by=caller.name))[0]
    told = {"key": key, "old_id": id, "old_expires_ms": ends_ms, **_told(here, version)}
    return RotatedKey.model_validate(told)


@router.delete("/keys/{id}")
async def revoke_key(id: str, here: Here, caller: Who) -> Key:  # noqa: A002  the API's word
    """Revoke a key: refused everywhere within 60 s, open sockets are closed."""
    version = _found(here, caller, id)
    await here.writer.delete(
        version.place, by=caller.name, expected=Expected(version=version.version)
    )
    used = await here.last_used.read(caller.tenant)
    return Key.model_validate(_told(here, version, used))


def key_text(model: KeyModel) -> str:
    """Return the definition of a key: its keyed hash, never the key.

    What it has none of is left out, so that releases which know of no such member read it.
    """
    return json.dumps(model.model_dump(mode="json", exclude_none=True))


def _new(here: Context, members: Mapping[str, Any]) -> tuple[str, KeyModel]:
    """Return a new key, and its definition with what else it says."""
    key_id = "".join(secrets.choice(ID_LETTERS) for _ in range(8))
    key = f"wk_{key_id}_{secrets.token_urlsafe(32)}"
    own = {"name": key_id, "hash": hash_key_text(here.hash_key, key)}
    return key, KeyModel.model_validate({**members, **own})


def _end_of_the_old(replaced: KeyModel, body: Rotation, now_ms: int) -> int:
    if body.overlap > LONGEST_OVERLAP_MS:
        msg = (
            f"two keys may be good beside each other for at most "
            f"{format_duration(LONGEST_OVERLAP_MS)}, got {format_duration(body.overlap)}"
        )
        raise ProblemError(422, Reason.REQUEST_INVALID, msg)
    ends_ms = now_ms + body.overlap
    return ends_ms if replaced.expires is None else min(ends_ms, replaced.expires)


def _check_scopes(scopes: Iterable[str], caller: Caller) -> None:
    beyond = set(scopes) - caller.scopes
    if beyond:
        msg = f"a key cannot open more than its maker's, which lacks {sorted(beyond)}"
        raise ProblemError(403, Reason.SCOPE_MISSING, msg)


def _check_end(expires_ms: int | None, now_ms: int) -> None:
    if expires_ms is not None and expires_ms <= now_ms:
        required = f"an instant later than now, {instant_text(now_ms)}"
        got, mend = instant_text(expires_ms), "leave it out for a key that never expires"
        place = {"pointer": "/expires", "required": required, "got": got, "mend": mend}
        msg = f'member "expires" is invalid: must be {required}, got {got}; {mend}'
        raise ProblemError(422, Reason.REQUEST_INVALID, msg, (place,))


def _found(here: Context, caller: Caller, key_id: str) -> Definition:
    version = here.catalog.folded.get(caller.tenant, "key", key_id)
    if version is None:
        raise ProblemError(404, Reason.NOT_FOUND, "there is no such key")
    return version


def _model(version: Definition) -> KeyModel:
    model = version.model
    if not isinstance(model, KeyModel):
        msg = f"version {version.vid} is stored as a key but is a {model.kind}"
        raise TypeError(msg)
    return model


def _told(
    here: Context, version: Definition, used: Mapping[str, int] = UNKNOWN
) -> dict[str, object]:
    model, made = _model(version), _first(here, version)
    return {
        "id": version.name,
        "label": model.label,
        "scopes": list(model.scopes),
        "source": model.source,
        "created_ms": made.at_ms,
        "created_by": made.by,
        "expires_ms": model.expires,
        "events_per_s": model.events_per_s,
        "bytes_per_s": model.bytes_per_s,
        "last_used_ms": used.get(version.name),
    }


def _first(here: Context, version: Definition) -> Definition:
    """Return the version by which a key was made: a rotation writes another one."""
    made = version
    for one in here.catalog.folded.history(*version.place):
        if one.vid > version.vid:
            continue  # of a key that was just revoked its deletion
        if one.deleted:
            break
        made = one
    return made
