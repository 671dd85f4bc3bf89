"""Signed calls to receivers that anybody may name: how, and to which addresses not.

Signed as Standard Webhooks says (https://www.standardwebhooks.com): HMAC-SHA256 over id,
timestamp and body. The address is checked at each send, and the connection goes to the
address that was checked, so that a name that answers differently a moment later gains
nothing. Redirects are not followed, and no answer is read beyond 64 KB.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import ipaddress
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 65_536
_PREFIX = "whsec_"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Not public either, though Python's tables do not say so everywhere: protocol assignments,
# among them the metadata of a cloud, and addresses of IPv6 that hold one of IPv4.
_NEVER = [
    ipaddress.ip_network(text)
    for text in (
        "192.0.0.0/24",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2002::/16",
        "2001::/32",
        "fec0::/10",
    )
]


class NotAllowedError(Exception):
    """An address that must not be called."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one call.

    Attributes:
        status: HTTP status; None if nothing answered.
        took_ms: How long it took.
        why: What went wrong, in few words; empty for an answer.
    """

    status: int | None
    took_ms: int
    why: str = ""

    @property
    def delivered(self) -> bool:
        """Whether the receiver took it."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def final(self) -> bool:
        """Whether sending it again is of no use."""
        if self.status is None:
            return self.why == "not allowed"
        return 300 <= self.status < 500 and self.status not in (408, 429)


def signed(message_id: str, at_s: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers of a call: id, timestamp, and a signature for each secret.

    Args:
        message_id: The same whenever the message is sent again.
        at_s: When it is sent.
        body: As it is sent.
        secrets: In base64, with or without `whsec_`; two while one takes over.

    Raises:
        ValueError: If a secret is no base64.
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

    def __init__(self, allowed: Sequence[str]) -> None:
        """Begin.

        Args:
            allowed: Hosts, addresses and networks that may be called although not public.
        """
        self._hosts = {host.lower() for host in allowed}
        self._networks = [network for host in allowed if (network := _network(host))]
        self._client = httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False)

    async def call(self, url: str, body: bytes, headers: dict[str, str]) -> Answer:
        """POST a body; never raises for what a receiver does."""
        begun_s = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status, why = await self._post(url, body, headers), ""
        except NotAllowedError:
            status, why = None, "not allowed"
        except (TimeoutError, httpx.TimeoutException):
            status, why = None, "no answer in time"
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            status, why = None, type(error).__name__
        return Answer(status, int((time.monotonic() - begun_s) * 1000), why)

    async def close(self) -> None:
        """Close what is open."""
        await self._client.aclose()

    async def check(self, url: str) -> tuple[httpx.URL, str]:
        """Return where a call goes, by address, and the host it is for.

        Raises:
            NotAllowedError: If the address is not public and not allowed.
            OSError: If the name does not resolve.
        """
        parsed = httpx.URL(url)
        if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
            raise NotAllowedError
        found = await asyncio.get_running_loop().getaddrinfo(
            parsed.host,
            parsed.port or (443 if parsed.scheme == "https" else 80),
            type=socket.SOCK_STREAM,
        )
        addresses = [ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found]
        # One that must not be called among them is reason enough: it may be next.
        if not addresses or not all(self._may(parsed.host, one) for one in addresses):
            raise NotAllowedError
        return parsed.copy_with(host=str(addresses[0])), parsed.netloc.decode()

    def _may(self, host: str, address: Address) -> bool:
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if host.lower() in self._hosts or any(address in one for one in self._networks):
            return True
        if address.is_multicast or any(address in one for one in _NEVER):
            return False
        return address.is_global

    async def _post(self, url: str, body: bytes, headers: dict[str, str]) -> int:
        target, host = await self.check(url)
        request = self._client.build_request(
            "POST",
            target,
            content=body,
            headers={**headers, "host": host, "content-type": "application/json"},
            extensions={"sni_hostname": httpx.URL(url).host},
        )
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
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        msg = "secret of a webhook must be base64, with or without whsec_ before it"
        raise ValueError(msg) from None


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
