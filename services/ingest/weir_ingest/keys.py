"""API keys: who a request comes from (INGEST 3.2).

A key is `wk_<id>_<secret>`. Only its HMAC-SHA256 with the installation's
`hash_key` is stored, in `weir.definitions`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from weir.clock import Clock
from weir.problems import ProblemError, Reason

from weir_ingest.head import Head

SCOPE = "ingest"

_FORM = re.compile(r"wk_([a-z0-9]{8})_[A-Za-z0-9_\-]{32,256}", re.ASCII)
_MAX_CACHED = 10_000


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as its definition says.

    Attributes:
        id: The key's id, the name of its definition.
        hash: HMAC-SHA256 of the whole key, hex.
        source: Id of the source it writes for (`weirsource`).
        expires_ms: From when on it is as wrong as any other; None: never.
        events_per_s: What it may send; None: any number.
        bytes_per_s: The same of the bytes of decoded bodies.
        time_field: Where bare objects of its source say when they happened; empty: as usual.
    """

    id: str
    tenant: str
    hash: str
    scopes: frozenset[str]
    source: str
    expires_ms: int | None = None
    events_per_s: int | None = None
    bytes_per_s: int | None = None
    time_field: str = ""


_NOBODY = StoredKey("", "", "0" * 64, frozenset(), "")


class Keys:
    """The keys known now. Not ready until the definitions have been read to their end once."""

    def __init__(self, hash_key: bytes, clock: Clock) -> None:
        self._hash_key = hash_key
        self._clock = clock
        # Ids are chosen by tenants, so two of them may have the same.
        self._stored: dict[str, list[StoredKey]] = {}
        # Tokens seen to be right, so that a busy client is hashed once and not
        # with every request. Emptied with each change of a key.
        self._seen: dict[bytes, StoredKey] = {}
        self._apps: dict[str, StoredKey] = {}
        self.ready = False

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def tenants(self) -> int:
        """How many tenants may write."""
        known = (key for keys in self._stored.values() for key in keys)
        return len({key.tenant for key in known if SCOPE in key.scopes and not self._ended(key)})

    def replace(
        self, stored: Iterable[StoredKey], apps: Mapping[str, StoredKey] = MappingProxyType({})
    ) -> None:
        """Take what holds from now on.

        Args:
            stored: The keys.
            apps: Who may send without a key, by the name that trackers give themselves.
        """
        by_id = defaultdict(list)
        for key in stored:
            by_id[key.id].append(key)
        self._stored = dict(by_id)
        self._apps = dict(apps)
        self._seen = {}

    def caller(self, token: bytes) -> StoredKey:
        """Return the key that a request presents.

        Raises:
            ProblemError: 503 before the keys are known, 401 with the same text for
                a missing, a wrong, a revoked and an expired key, 403 if it may not write.
        """
        self._check_ready()
        key = self._seen.get(token)
        if key is None:
            key = self._verified(token)
            if len(self._seen) < _MAX_CACHED:
                self._seen[token] = key
        elif self._ended(key):
            raise _unauthorized()
        return key

    def app(self, app_id: str) -> StoredKey:
        """Return whom a tracker sends for that has no key, by the app id that it says.

        Raises:
            ProblemError: 503 before the definitions are known, 401 for an app id that no
                source lists.
        """
        self._check_ready()
        caller = self._apps.get(app_id)
        if caller is None:
            raise ProblemError(
                401,
                Reason.UNAUTHORIZED,
                "a request must carry a valid key, or an app id that a source lists; send "
                "Authorization: Bearer wk_..., or add the app id to app_ids of a source",
            )
        return caller

    def _check_ready(self) -> None:
        if not self.ready:
            raise ProblemError(
                503,
                Reason.LOG_UNAVAILABLE,
                "keys are not read yet; nothing of this request is stored; send it again",
                retry_after_s=1,
            )

    def _verified(self, token: bytes) -> StoredKey:
        text = token.decode("latin-1")
        match = _FORM.fullmatch(text)
        candidates = self._stored.get(match.group(1), []) if match else []
        # An unknown id costs the same work as a wrong secret.
        computed = hmac.new(self._hash_key, token, hashlib.sha256).hexdigest()
        key = None
        for candidate in candidates or [_NOBODY]:
            if hmac.compare_digest(computed, candidate.hash):
                key = candidate
        if key is None or self._ended(key):
            raise _unauthorized()
        if SCOPE not in key.scopes:
            raise ProblemError(
                403,
                Reason.SCOPE_MISSING,
                f"the key must have the scope {SCOPE}; ask for one that has",
            )
        return key

    def _ended(self, key: StoredKey) -> bool:
        return key.expires_ms is not None and self._clock.now_ms() >= key.expires_ms


def _unauthorized() -> ProblemError:
    """Return the one refusal: why a key is none is not for whoever tries it to know."""
    msg = "a request must carry a valid key; send Authorization: Bearer wk_..."
    return ProblemError(401, Reason.UNAUTHORIZED, msg)


def presented(head: Head, query_keys: tuple[str, ...] = ()) -> bytes:
    """Return the key that a request presents in a header or in its query, empty if none.

    Args:
        head: Of the request.
        query_keys: The query's parameters that may carry a key.
    """
    header = head.headers.get(b"authorization", b"")
    scheme, _, word = header.partition(b" ")
    scheme = scheme.lower()
    if scheme in (b"bearer", b"splunk"):
        return word.strip()
    if scheme == b"basic":
        return _basic(word)
    if query_keys and head.scope["query_string"]:
        return next((head.query[name].encode() for name in query_keys if name in head.query), b"")
    return b""


def _basic(word: bytes) -> bytes:
    """Return the key of Basic credentials: the password, where there is one, else the user.

    SDKs put the key where the user's name would be, and agents where the password would.
    """
    try:
        user, _, password = base64.b64decode(word.strip(), validate=True).partition(b":")
    except binascii.Error:
        return b""
    return password or user
