"""Answers as bytes: accepted requests and problems (RFC 9457)."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from weir.problems import ProblemError, Reason

from weir_ingest.head import Send

Headers = list[tuple[bytes, bytes]]

JSON = b"application/json"
PROBLEM = b"application/problem+json"
# After these the rest of the body is not read, or not known, so the connection ends.
_CLOSING = frozenset(
    {
        Reason.REQUEST_TIMEOUT,
        Reason.BODY_TOO_LARGE,
        Reason.BODY_TRUNCATED,
        Reason.BAD_ENCODING,
    }
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    status: int
    body: bytes
    headers: Headers

    async def send(self, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


def json_answer(status: int, body: bytes, *extra: tuple[bytes, bytes]) -> Answer:
    """Return an answer in JSON."""
    length = str(len(body)).encode()
    return Answer(status, body, [(b"content-type", JSON), (b"content-length", length), *extra])


def problem_answer(problem: ProblemError) -> Answer:
    """Return a refusal as problem+json, with the headers that belong to it."""
    body = msgspec.json.encode(problem.body())
    headers: Headers = [
        (b"content-type", PROBLEM),
        (b"content-length", str(len(body)).encode()),
    ]
    if problem.retry_after_s is not None:
        headers.append((b"retry-after", str(problem.retry_after_s).encode()))
    if problem.reason is Reason.UNSUPPORTED_ENCODING:
        headers.append((b"accept-encoding", b"gzip, zstd, deflate"))
    if problem.reason in _CLOSING:
        headers.append((b"connection", b"close"))
    return Answer(problem.status, body, headers)


class Item(msgspec.Struct, omit_defaults=True):
    """What became of one item that was not simply accepted."""

    index: int
    status: str
    code: str | None = None
    detail: str | None = None
    retry_safe: bool | None = None


class Accepted(msgspec.Struct, omit_defaults=True):
    """The body of a 200."""

    accepted: int
    quarantined: int
    position: str
    retry_safe: bool
    items: list[Item] = []


encode = msgspec.json.Encoder().encode
