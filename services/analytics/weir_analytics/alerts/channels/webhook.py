"""Signed calls to receivers that anybody may name: how, and to which addresses not.

Signed as Standard Webhooks says (https://www.standardwebhooks.com): HMAC-SHA256 over id,
timestamp and body. The address is checked at each send, and the connection goes to the
address that was checked, so that a name that answers differently a moment later gains
nothing. Redirects are not followed, and no answer is read beyond 64 KB.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from weir_analytics.alerts.channels.addresses import Addresses, NotAllowedError, address_of
from weir_analytics.alerts.channels.answer import NOT_ALLOWED, Answer
from weir_analytics.alerts.channels.names import Names

TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 65_536
MIN_KEY_BYTES = 24
"""The least that Standard Webhooks allows."""
# A connection is known by its address alone: kept open, it would carry what is for another
# host at that address, whose certificate nobody has checked.
_LIMITS = httpx.Limits(max_keepalive_connections=0)
_PREFIX = "whsec_"


def signed(message_id: str, at_s: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers of a call: id, timestamp, and a signature for each secret.

    Args:
        message_id: The same whenever the message is sent again.
        at_s: When it is sent.
        body: As it is sent.
        secrets: In base64, with or without `whsec_`; two while one takes over.

    Raises:
        ValueError: If a secret is no base64, or too short.
    """
    content = b".".join((message_id.encode(), str(at_s).encode(), body))
    marks = [hmac.digest(_key(secret), content, hashlib.sha256) for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(mark).decode()}" for mark in marks),
    }


class Caller:
    """Calls receivers."""

    def __init__(self, allowed: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> None:
        """Begin.

        Args:
            allowed: Hosts, addresses and networks that may be called although not public.
            timeout_s: How long a call may take, from the look-up of its name to its end.
        """
        self._addresses, self._names = Addresses(allowed), Names()
        self._timeout_s = timeout_s
        self._client = httpx.AsyncClient(
            timeout=timeout_s, follow_redirects=False, trust_env=False, limits=_LIMITS
        )

    async def call(self, url: str, body: bytes, headers: dict[str, str]) -> Answer:
        """POST a body; never raises for what a receiver does."""
        begun_s = time.monotonic()
        status, why, barred = None, "", False
        try:
            async with asyncio.timeout(self._timeout_s):
                status = await self._post(url, body, headers)
        except NotAllowedError:
            why, barred = NOT_ALLOWED, True
        except (TimeoutError, httpx.TimeoutException):
            why = f"no answer within {self._timeout_s:g} s"
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            why = _said(error)
        took_ms = int((time.monotonic() - begun_s) * 1000)
        return Answer(status, took_ms, why, barred=barred)

    async def close(self) -> None:
        """Close what is open."""
        await self._client.aclose()
        self._names.close()

    async def check(self, url: str) -> tuple[httpx.URL, str]:
        """Return where a call goes, by address, and the host it is for.

        Raises:
            NotAllowedError: If the address is not public and not allowed.
            OSError: If the name does not resolve.
        """
        parsed = httpx.URL(url)
        if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
            raise NotAllowedError
        found = await self._names.addresses(parsed.host)
        addresses = [address_of(one) for one in found]
        # One that must not be called among them is reason enough: it may be next.
        named = self._addresses.names(parsed.host)
        if not addresses or not (named or all(map(self._addresses.holds, addresses))):
            raise NotAllowedError
        return parsed.copy_with(host=str(addresses[0])), parsed.netloc.decode()

    async def _post(self, url: str, body: bytes, headers: dict[str, str]) -> int:
        target, host = await self.check(url)
        opened: list[Any] = []

        async def note(event: str, told: Mapping[str, Any]) -> None:
            if event == "connection.connect_tcp.complete":
                opened.append(told["return_value"])

        request = self._client.build_request(
            "POST",
            target,
            content=body,
            headers={**headers, "host": host, "content-type": "application/json"},
            extensions={"sni_hostname": httpx.URL(url).host, "trace": note},
        )
        try:
            return await self._status(request)
        finally:
            # Broken off within a handshake of TLS, httpcore leaves the connection to whoever
            # collects garbage.
            for stream in opened:
                await stream.aclose()

    async def _status(self, request: httpx.Request) -> int:
        """Send, and read so much of the answer as one may have; return its status."""
        response = await self._client.send(request, stream=True)
        try:
            size = 0
            async for chunk in response.aiter_raw():
                size += len(chunk)
                if size > MAX_ANSWER_BYTES:
                    break
        finally:
            await response.aclose()
        return response.status_code


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        msg = "secret of a webhook must be base64, with or without whsec_ before it"
        raise ValueError(msg) from None
    if len(key) < MIN_KEY_BYTES:
        msg = (
            f"secret of a webhook must hold at least {MIN_KEY_BYTES} bytes in base64, "
            f"got {len(key)}; make one with openssl rand -base64 32"
        )
        raise ValueError(msg)
    return key


def _said(error: Exception) -> str:
    """Return what went wrong; never with the address, which may be a secret."""
    if isinstance(error, socket.gaierror):
        return "its host name does not resolve"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "its certificate is not trusted"
    if isinstance(error, httpx.ConnectError):
        return "nothing could be reached there"
    if isinstance(error, httpx.InvalidURL | ValueError):
        return "its url is none that can be called"
    return f"the call broke off: {type(error).__name__}"
