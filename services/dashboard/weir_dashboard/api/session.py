"""Signing in and out. Open to everybody: it says who you are, or makes you somebody."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from redis.exceptions import RedisError
from weir.problems import ProblemError, Reason

from weir_dashboard.api.models import Once, Session, SignIn
from weir_dashboard.auth.callers import Caller
from weir_dashboard.auth.guard import store_unavailable
from weir_dashboard.auth.sessions import COOKIE, ONCE_SECONDS
from weir_dashboard.context import Anyone, Context, Here, Who

router = APIRouter(tags=["session"])


@router.get("/session")
async def who_am_i(caller: Anyone) -> Session:
    """Tell who is calling; nobody is an answer, not an error."""
    return _told(caller)


@router.post("/session")
async def sign_in(
    body: SignIn, here: Here, before: Anyone, request: Request, response: Response
) -> Session:
    """Sign in with an API key or a sign-in link's token; sets the cookie anew."""
    try:
        caller = await _vouched(body, here, request.client.host if request.client else "")
        if before is not None and before.session is not None:
            await here.sessions.end(before.session)
        cookie = await here.sessions.open(caller)
    except RedisError:
        raise store_unavailable() from None
    response.set_cookie(
        COOKIE, cookie, max_age=here.sessions.seconds, path="/", secure=True, httponly=True,
        samesite="lax",
    )  # fmt: skip
    return _told(caller)


@router.delete("/session")
async def sign_out(here: Here, response: Response, caller: Anyone) -> Session:
    """End the session on the server; the cookie is worth nothing from then on."""
    if caller is not None and caller.session is not None:
        try:
            await here.sessions.end(caller.session)
        except RedisError:
            raise store_unavailable() from None
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")
    return _told(None)


@router.post("/session/once")
async def mint_once(here: Here, caller: Who) -> Once:
    """Make a token that signs a browser in once, within ten minutes, as the caller."""
    try:
        once = await here.sessions.mint_once(caller)
    except RedisError:
        raise store_unavailable() from None
    expires_ms = here.clock.now_ms() + ONCE_SECONDS * 1000
    # In the fragment, which browsers do not send: no log has it.
    return Once(once=once, path=f"/login#once={once}", expires_ms=expires_ms)


async def _vouched(body: SignIn, here: Context, address: str) -> Caller:
    if (body.key is None) == (body.once is None):
        msg = 'signing in needs either "key" or "once"'
        raise ProblemError(422, Reason.DEFINITION_INVALID, msg)
    if body.once is not None:
        return await here.sessions.take_once(body.once)
    return here.keys.check(body.key or "", address)


def _told(caller: Caller | None) -> Session:
    if caller is None:
        return Session(signed_in=False)
    return Session(
        signed_in=True,
        tenant=caller.tenant,
        scopes=sorted(caller.scopes),
        key_id=caller.key_id,
    )
