"""The head of a request, read once: what the parts of the hot path ask of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Head:
    """Method, headers and query of a request.

    Attributes:
        headers: Lower-case names; of a name sent twice the last value.
        arrived_ms: When the request began to arrive (`arrivedat`).
    """

    __slots__ = ("_query", "arrived_ms", "content_type", "headers", "scope")

    def __init__(self, scope: Scope, arrived_ms: int) -> None:
        self.scope = scope
        self.arrived_ms = arrived_ms
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.content_type = self.headers.get(b"content-type", b"").lower().strip()
        self._query: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        """The query's parameters; of one given twice the last value."""
        if self._query is None:
            text = self.scope["query_string"].decode("ascii", "replace")
            self._query = dict(parse_qsl(text)) if text else {}
        return self._query

    def text(self, name: bytes) -> str | None:
        """Return a header as text: UTF-8 where it is, else Latin-1."""
        value = self.headers.get(name)
        if value is None:
            return None
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")

    @property
    def address(self) -> str:
        """The peer's address."""
        client = self.scope.get("client")
        return client[0] if client else ""
