"""The guard in front of every route: credential, origin, scope, size, headers.

It runs before a body is read. What the scope table does not list is not reached.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from redis.exceptions import RedisError
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from weir import names
from weir.problems import ProblemError, Reason, echo

from weir_dashboard import instruments
from weir_dashboard.auth import scopes
from weir_dashboard.auth.callers import Caller, KeyRing, bearer, unauthorized
from weir_dashboard.auth.sessions import Sessions, cookie_of

MAX_BODY_BYTES = 1_000_000
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# HSTS is obeyed by browsers over TLS only.
HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "strict-transport-security": "max-age=31536000",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    names.HTTP_API: names.API_VERSION,
}


class Guard:
    """ASGI middleware: lets through what the scope table and the caller allow."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: KeyRing,
        sessions: Sessions,
        origins: tuple[str, ...],
        is_ready: Callable[[], bool],
        quota_of: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._app = app
        self._quota_of = quota_of
        self._is_ready = is_ready
        self._keys = keys
        self._sessions = sessions
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        entry, known = scopes.find(scope["method"], scope["path"])
        route = entry.template if entry is not None else "other"
        sender = _with_headers(send, route, lambda: self._quota_fields(scope, entry))
        try:
            if scope["path"].startswith("/api/"):
                await self._admit(scope, entry, known=known)
            await self._app(scope, _limited(receive, Headers(scope=scope)), sender)
        except ProblemError as problem:
            instruments.refused.labels(problem.reason.value).inc()
            await send_problem(problem, sender)

    def _quota_fields(self, scope: Scope, entry: scopes.Entry | None) -> Mapping[str, str]:
        """Return what is told of the caller's quota of changes, where the route counts."""
        caller = scope.get("state", {}).get("caller")
        if caller is None or entry is None or not entry.appends:
            return {}
        return self._quota_of(caller.tenant)

    async def _admit(self, scope: Scope, entry: scopes.Entry | None, *, known: bool) -> None:
        if not self._is_ready():
            raise not_ready()
        headers = Headers(scope=scope)
        caller = await self._caller(scope, headers)
        if entry is None and known:
            raise ProblemError(405, Reason.METHOD_NOT_ALLOWED, "this path has no such method")
        if entry is None:
            raise ProblemError(404, Reason.NOT_FOUND, "there is nothing at this path")
        if entry.scope is not None:
            if caller is None:
                raise unauthorized()
            caller.require(entry.scope)
        if scope["method"] not in SAFE_METHODS:
            _json_only(headers)
        scope.setdefault("state", {})["caller"] = caller

    async def _caller(self, scope: Scope, headers: Headers) -> Caller | None:
        safe = scope["method"] in SAFE_METHODS
        key = bearer(headers)
        if key is not None:
            address = scope["client"][0] if scope.get("client") else ""
            return self._keys.check(key, address)
        if not safe:
            self._same_site(headers, cookie=cookie_of(headers) is not None)
        cookie = cookie_of(headers)
        if cookie is None:
            return None
        try:
            return await self._sessions.find(cookie)
        except RedisError:
            raise store_unavailable() from None
        except ProblemError:
            # An ended session is nobody: the open routes stay open, sign-in among them.
            return None

    def _same_site(self, headers: Headers, *, cookie: bool) -> None:
        """Refuse a write that another site's page could have caused."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if cookie and (origin is None or site is None):
            msg = "a write with a cookie needs Origin and Sec-Fetch-Site; use an API key instead"
            raise ProblemError(403, Reason.ORIGIN_REFUSED, msg)
        if (origin is not None and origin not in self._origins) or site not in {
            None,
            "same-origin",
        }:
            msg = "writes are taken from this installation's own pages only"
            raise ProblemError(403, Reason.ORIGIN_REFUSED, msg)


def _json_only(headers: Headers) -> None:
    """Refuse a body that a form or a foreign page could send without asking."""
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if has_body and kind != "application/json":
        msg = f'a body must be application/json, got "{echo(kind)}"; set Content-Type'
        raise ProblemError(415, Reason.UNSUPPORTED_MEDIA_TYPE, msg)


def not_ready() -> ProblemError:
    """Return the refusal before definitions are read: until then every key seems wrong."""
    msg = "the definitions are being read from the log; try again shortly"
    return ProblemError(503, Reason.LOG_UNAVAILABLE, msg, retry_after_s=1)


def store_unavailable() -> ProblemError:
    """Return the refusal while Redis does not answer."""
    msg = "the store of sessions and panes does not answer; events are kept, try again shortly"
    return ProblemError(503, Reason.STORE_UNAVAILABLE, msg, retry_after_s=2)


async def send_problem(problem: ProblemError, send: Send) -> None:
    """Answer with a problem's JSON."""
    body = json.dumps(problem.body(), ensure_ascii=False).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if problem.retry_after_s is not None:
        headers.append((b"retry-after", str(problem.retry_after_s).encode()))
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send, route: str, quota: Callable[[], Mapping[str, str]]) -> Send:
    """Add the headers of every answer and those of its quota, and count it by its route."""

    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            instruments.requests.labels(route, str(message["status"])).inc()
            headers = MutableHeaders(scope=message)
            for name, value in (*HEADERS.items(), *quota().items()):
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sender


def _limited(receive: Receive, headers: Headers) -> Receive:
    """Refuse a body over the limit while it is read, whatever it declares."""
    declared = headers.get("content-length", "0")
    read = int(declared) if declared.isdigit() else 0
    if read > MAX_BODY_BYTES:
        raise _too_large()
    total = 0

    async def receiver() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > MAX_BODY_BYTES:
            raise _too_large()
        return message

    return receiver


def _too_large() -> ProblemError:
    msg = f"a body must be at most {MAX_BODY_BYTES} bytes; send less at once"
    return ProblemError(413, Reason.BODY_TOO_LARGE, msg)
