"""Sessions of browsers and single-use sign-in tokens, by digest, in Redis.

The cookie's value and the token are 256 random bits and are stored nowhere: Redis
holds their SHA-256. A session lasts as long as the key that vouches for it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from redis.asyncio import Redis
from weir import names
from weir.formats import refusal

from weir_dashboard.auth.callers import Caller, KeyRing, unauthorized

COOKIE = "__Host-weir"
ONCE_SECONDS = 600
VERSION = 1


def digest(secret: str) -> str:
    """Return what is stored in place of a random secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def cookie_of(headers: Mapping[str, str]) -> str | None:
    """Return the session cookie of a request, or None."""
    try:
        jar = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return None
    return jar[COOKIE].value if COOKIE in jar else None


class Sessions:
    """Opens, finds and ends sessions.

    A retry after a lost answer opens a second session, which ends by itself; the first
    one is never known to anybody.
    """

    def __init__(self, redis: Redis, keys: KeyRing, hours: int) -> None:
        self._redis = redis
        self._keys = keys
        self.seconds = hours * 3600

    async def open(self, caller: Caller) -> str:
        """Start a session and return the cookie's value."""
        cookie = secrets.token_urlsafe(32)
        await self._redis.set(names.session_key(digest(cookie)), _written(caller), ex=self.seconds)
        return cookie

    async def find(self, cookie: str) -> Caller:
        """Return whose session a cookie is.

        Raises:
            ProblemError: 401 if it has ended, or its key was revoked or has expired.
        """
        return await self.find_digest(digest(cookie))

    async def find_digest(self, session: str) -> Caller:
        """Return whose session it is, by the cookie's digest.

        Raises:
            ProblemError: 401 if it has ended, or its key was revoked or has expired.
        """
        found = await self._redis.get(names.session_key(session))
        caller = _read(found, session)
        if caller is None or not self._keys.still_valid(caller.key_id):
            raise unauthorized()
        return caller

    async def end(self, session: str) -> None:
        """End a session on the server: its cookie is worth nothing from now on."""
        await self._redis.delete(names.session_key(session))

    async def mint_once(self, caller: Caller) -> str:
        """Return a token that signs in once, within ten minutes, as this caller."""
        token = secrets.token_urlsafe(32)
        await self._redis.set(names.once_key(digest(token)), _written(caller), ex=ONCE_SECONDS)
        return token

    async def take_once(self, token: str) -> Caller:
        """Use up a single-use token and return for whom it was made.

        Raises:
            ProblemError: 401 if it was used, has expired or never existed.
        """
        caller = _read(await self._redis.getdel(names.once_key(digest(token))), None)
        if caller is None or not self._keys.still_valid(caller.key_id):
            msg = "this sign-in link was used or has expired; ask for a new one"
            raise unauthorized(msg)
        return caller


def _written(caller: Caller) -> str:
    return json.dumps(
        {
            "v": VERSION,
            "tenant": caller.tenant,
            "scopes": sorted(caller.scopes),
            "key": caller.key_id,
        }
    )


def _read(stored: Any, session: str | None) -> Caller | None:
    if stored is None:
        return None
    # Signing in again helps where one cannot be read, and costs nobody a number: it has ended here.
    try:
        record = json.loads(stored)
        if refusal("session", record["v"], VERSION) is not None:
            return None
        return Caller(record["tenant"], frozenset(record["scopes"]), record["key"], session)
    except (ValueError, KeyError, TypeError):
        return None
