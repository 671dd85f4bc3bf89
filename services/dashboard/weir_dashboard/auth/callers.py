"""Callers: from a key or a cookie to a tenant and its scopes.

Keys are compared by keyed hash in constant time, and an unknown key costs the same
time as a wrong one. Who guesses is slowed by address; whoever holds a right key is
never locked out, because the right key is looked at first.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from weir.clock import Clock
from weir.problems import ProblemError, Reason

KEY = re.compile(r"wk_([a-z0-9]{8})_[A-Za-z0-9_-]{32,128}")
# A wrong key every 6 s on average, 20 at once, remembered for this many addresses.
FREE_GUESSES = 20
GUESS_EVERY_S = 6.0
MAX_ADDRESSES = 10_000


@dataclass(frozen=True)
class KeyRecord:
    """What is stored of an API key: never the key itself.

    Attributes:
        key_id: Its id.
        tenant: Whose it is.
        hash: Its keyed hash.
        scopes: What it opens.
        label: What people call it.
        expires_ms: From when on it is as wrong as any other; None: never.
    """

    key_id: str
    tenant: str
    hash: str
    scopes: frozenset[str]
    label: str = ""
    expires_ms: int | None = None


@dataclass(frozen=True)
class Caller:
    """Who is calling.

    Attributes:
        tenant: Whose data they may see.
        scopes: What they may do.
        key_id: The key that vouches for them; with it, their access ends.
        session: The digest of their session's cookie, or None with a key.
    """

    tenant: str
    scopes: frozenset[str]
    key_id: str
    session: str | None = None

    @property
    def name(self) -> str:
        """Return how they are named in the record of changes."""
        return f"key:{self.key_id}"

    def require(self, scope: str) -> None:
        """Refuse if a scope is missing.

        Raises:
            ProblemError: 403 `scope_missing`.
        """
        if scope not in self.scopes:
            msg = f'this needs the scope "{scope}", the credential has {sorted(self.scopes)}'
            raise ProblemError(403, Reason.SCOPE_MISSING, msg)


class KeySource(Protocol):
    """Where key records are found: the follower of `weir.definitions`."""

    def key(self, key_id: str) -> KeyRecord | None:
        """Return the record of a key that is not revoked, or None."""
        ...


def key_id_of(key: str) -> str:
    """Return the id that stands in a key.

    Raises:
        ValueError: If it is not written as keys are; names the file of the first one.
    """
    found = KEY.fullmatch(key)
    if found is None:
        msg = (
            "must hold bootstrap_key as wk_, 8 of a-z and 0-9, _, then 32 to 128 of A-Z, a-z, 0-9,"
            f" - and _, found {len(key)} characters that are not written so; write it anew"
        )
        raise ValueError(msg)
    return found[1]


def hash_key_text(hash_key: bytes, key: str) -> str:
    """Return the keyed hash of a key as it is stored."""
    return hmac.new(hash_key, key.encode(), hashlib.sha256).hexdigest()


def unauthorized(
    message: str = "this needs a valid API key or a signed-in session",
) -> ProblemError:
    """Return the one refusal for absent, wrong, expired and revoked credentials."""
    return ProblemError(401, Reason.UNAUTHORIZED, message)


class KeyRing:
    """Checks API keys."""

    def __init__(
        self, keys: KeySource, hash_key: bytes, clock: Clock, note: Callable[[str, str], None]
    ) -> None:
        """Prepare.

        Args:
            keys: Where they are found.
            hash_key: The installation's.
            clock: Tells whether one has expired.
            note: Called with tenant and id of each key that lets somebody in.
        """
        self._keys = keys
        self._hash_key = hash_key
        self._clock = clock
        self._note = note
        self._guesses: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, key: str, address: str) -> Caller:
        """Return who holds a key.

        Raises:
            ProblemError: 401 `unauthorized`; 429 `rate_limited` for who guesses on.
        """
        found = KEY.fullmatch(key)
        record = self._keys.key(found[1]) if found else None
        stored = record.hash if record else "0" * 64
        right = hmac.compare_digest(hash_key_text(self._hash_key, key), stored)
        if record is None or not right or self._ended(record):
            self._slow_down(address)
            raise unauthorized()
        self._note(record.tenant, record.key_id)
        return Caller(record.tenant, record.scopes, record.key_id)

    def still_valid(self, key_id: str) -> bool:
        """Tell whether a key that was right is neither revoked nor expired since.

        Sessions and open sockets last by it, which counts as a use: nobody is to take it for
        one that is not needed any more.
        """
        record = self._keys.key(key_id)
        if record is None or self._ended(record):
            return False
        self._note(record.tenant, key_id)
        return True

    def _ended(self, record: KeyRecord) -> bool:
        return record.expires_ms is not None and self._clock.now_ms() >= record.expires_ms

    def _slow_down(self, address: str) -> None:
        now = self._clock.monotonic_s()
        spent, at = self._guesses.pop(address, (0.0, now))
        spent = max(0.0, spent - (now - at) / GUESS_EVERY_S) + 1
        self._guesses[address] = (min(spent, FREE_GUESSES + 1), now)
        while len(self._guesses) > MAX_ADDRESSES:
            self._guesses.popitem(last=False)
        if spent > FREE_GUESSES:
            wait_s = int(GUESS_EVERY_S)
            msg = "too many wrong credentials from this address; wait and try again"
            raise ProblemError(429, Reason.RATE_LIMITED, msg, retry_after_s=wait_s)


def bearer(headers: Mapping[str, str]) -> str | None:
    """Return the key of an `Authorization: Bearer` header, or None."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None
