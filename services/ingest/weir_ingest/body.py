"""A request's body, read within limits of size and time."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

from weir.problems import ProblemError, Reason

from weir_ingest.head import Head, Receive

# Beyond the fixed time a body earns a second for each 64 KiB that came, so that a
# large upload over a slow line passes and one byte a second does not.
_BYTES_PER_EXTRA_SECOND = 65_536


class ClientGoneError(Exception):
    """The client closed before its body was whole; nobody waits for an answer."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """What a body may take.

    Attributes:
        max_bytes: Largest body as sent.
        timeout_s: Time for a body that does not move.
    """

    max_bytes: int
    timeout_s: float


class Budget:
    """The bytes that all requests together may hold: memory has a bound, and its name.

    No tenant gets more than its share, so that one with many slow uploads leaves
    room for the others.
    """

    def __init__(self, max_bytes: int, max_tenant_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.max_tenant_bytes = max_tenant_bytes
        self.used_bytes = 0
        self._by_tenant: Counter[str] = Counter()

    def take(self, tenant: str, size: int) -> None:
        """Reserve bytes.

        Raises:
            ProblemError: 503 `log_unavailable`, if that is more than there is.
        """
        if self.used_bytes + size > self.max_bytes:
            raise _spent(holders="requests in flight", meant_for="them")
        if self._by_tenant[tenant] + size > self.max_tenant_bytes:
            raise _spent(holders="this tenant's requests in flight", meant_for="one tenant")
        self.used_bytes += size
        self._by_tenant[tenant] += size

    def give(self, tenant: str, size: int) -> None:
        """Return reserved bytes."""
        self.used_bytes -= size
        self._by_tenant[tenant] -= size
        if not self._by_tenant[tenant]:
            del self._by_tenant[tenant]


def _spent(holders: str, meant_for: str) -> ProblemError:
    return ProblemError(
        503,
        Reason.LOG_UNAVAILABLE,
        f"{holders} hold all memory meant for {meant_for}; nothing of this one is "
        "stored; send it again, same ids",
        retry_after_s=2,
    )


class Held:
    """What one request holds of the budget, and in whose name."""

    __slots__ = ("_budget", "size", "tenant")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.tenant = ""
        self.size = 0

    def grow(self, size: int) -> None:
        """Hold at least `size` bytes in all.

        Raises:
            ProblemError: 503, if the budget is spent.
        """
        if size > self.size:
            self._budget.take(self.tenant, size - self.size)
            self.size = size

    def assign(self, tenant: str) -> None:
        """Hold what is held in the name of a tenant, which the body has told.

        Raises:
            ProblemError: 503, if that is more than the tenant may hold.
        """
        size = self.size
        self.release()
        self.tenant = tenant
        self.grow(size)

    def release(self) -> None:
        """Hold nothing."""
        self._budget.give(self.tenant, self.size)
        self.size = 0


async def read_body(
    head: Head, receive: Receive, limits: BodyLimits, held: Held, *, may_be_empty: bool = False
) -> bytes:
    """Return the whole body as it was sent.

    Args:
        head: Of the request.
        receive: Where the body comes from.
        limits: What it may take.
        held: What is held of the budget; grows with the body.
        may_be_empty: No body is one, if its length was declared as 0; of a GET, which need not
            declare one, always.

    Raises:
        ProblemError: 413 while it is still coming, 408 if it stops coming, 400
            if it ended before its declared length or is empty, 503 if the
            budget is spent.
        ClientGoneError: If the client went away.
    """
    declared = _declared_length(head)
    # A declared length is only a word: what is held is what came.
    if declared is not None and declared > limits.max_bytes:
        raise _too_large(limits.max_bytes)
    try:
        body = await _collect(receive, limits, held)
    except TimeoutError:
        raise ProblemError(
            408,
            Reason.REQUEST_TIMEOUT,
            f"body must arrive within {limits.timeout_s:g} s, it stopped coming; send it again",
        ) from None
    if declared is not None and len(body) < declared:
        raise ProblemError(
            400,
            Reason.BODY_TRUNCATED,
            f"body must have the declared {declared} bytes, got {len(body)}; send it again",
        )
    nothing_declared = declared == 0 or head.scope.get("method") == "GET"
    if not body and not (may_be_empty and nothing_declared):
        raise ProblemError(
            400, Reason.EMPTY_BODY, "body must hold events, got none; an empty list is []"
        )
    return body


def check_framing(head: Head) -> None:
    """Refuse a request that says its length in two ways: a proxy may have read the other.

    Raises:
        ProblemError: 400 `bad_encoding`.
    """
    if b"content-length" in head.headers and b"transfer-encoding" in head.headers:
        raise ProblemError(
            400,
            Reason.BAD_ENCODING,
            "a request must declare its length once, got content-length and transfer-encoding",
        )


async def _collect(receive: Receive, limits: BodyLimits, held: Held) -> bytes:
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    chunks: list[bytes] = []
    size = 0
    async with asyncio.timeout(limits.timeout_s) as deadline:
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientGoneError
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > limits.max_bytes:
                raise _too_large(limits.max_bytes)
            held.grow(size)
            chunks.append(chunk)
            if not message.get("more_body"):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)
            deadline.reschedule(start_s + limits.timeout_s + size / _BYTES_PER_EXTRA_SECOND)


def _declared_length(head: Head) -> int | None:
    text = head.headers.get(b"content-length")
    return int(text) if text is not None and text.isdigit() else None


def _too_large(max_bytes: int) -> ProblemError:
    message = f"body must be at most {max_bytes} bytes as sent; send it in parts"
    return ProblemError(413, Reason.BODY_TOO_LARGE, message)
