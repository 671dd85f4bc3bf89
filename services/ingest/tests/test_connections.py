"""Connections that are slow, half-sent or ambiguous: each gets its end, and no other waits."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Ingest

pytestmark = pytest.mark.kafka


def _status(ingest: Ingest, key: str, body: bytes = b'{"a":1}') -> int:
    headers = {"authorization": f"Bearer {key}"}
    return ingest.client.post(ingest.url, content=body, headers=headers).status_code


def _answered(connection: socket.socket, start: bytes) -> bool:
    """Say whether an answer is there already."""
    connection.setblocking(False)
    try:
        return connection.recv(len(start)) == start
    except BlockingIOError:
        return False


def _slowest_s(ingest: Ingest, requests: int) -> float:
    """Return how long the slowest of some requests took, sent one after the other."""
    slowest_s = 0.0
    for _ in range(requests):
        start_s = time.monotonic()
        assert ingest.post(b'{"a":1}').status_code == 200
        slowest_s = max(slowest_s, time.monotonic() - start_s)
    return slowest_s


class TestConnections:
    def test_slow_body(self, ingest: Ingest) -> None:
        """A body that stops coming is answered 408 and the connection is closed."""
        head = f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ingest.key}\r\n"

        answer = ingest.exchange(head.encode(), b'Content-Length: 100\r\n\r\n{"a"')

        assert answer.startswith(b"HTTP/1.1 408")
        assert b'"code":"request_timeout"' in answer

    @pytest.mark.parametrize("part", [b"", b"POST /v1/ev", b"GET /livez HTTP/1.1\r\nA: b\r\n"])
    def test_slow_head(self, part: bytes, ingest: Ingest) -> None:
        """A head that stops coming is answered 408 and the connection is closed."""
        assert ingest.exchange(part).startswith(b"HTTP/1.1 408")

    def test_half_sent_requests_harm_nobody(self, ingest: Ingest) -> None:
        """Two hundred half-sent heads at once leave others their answers."""
        for _ in range(3):  # a machine that others use may hold any one of them up
            half = [socket.create_connection(("127.0.0.1", ingest.port)) for _ in range(200)]
            for connection in half:
                connection.sendall(b"POST /v1/events HTTP/1.1\r\n")

            slowest_s = _slowest_s(ingest, 1)

            for connection in half:
                connection.settimeout(10)
                assert connection.recv(12) == b"HTTP/1.1 408"
                connection.close()
            if slowest_s < 1:
                return
        pytest.fail(f"another request took {slowest_s:.1f} s")

    @pytest.mark.parametrize("sent_bytes", [0, 300_000])
    def test_half_sent_bodies_harm_nobody(
        self,
        sent_bytes: int,
        kafka: str,
        ingest: Ingest,
        new_key: Callable[..., str],
        wait_for: Callable[..., Any],
    ) -> None:
        """Two hundred bodies that stop leave memory to others: a length is a word, a share a bound.

        Declared they are 1 GB, and what the second sort sends is nearly the whole budget.
        """
        greedy = new_key(kafka, tenant="greedy")
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {greedy}\r\n"
            "Content-Length: 5000000\r\n\r\n"
        )
        wait_for(lambda: _status(ingest, greedy) == 200)
        for _ in range(3):  # a machine that others use may hold any one of them up
            half = [socket.create_connection(("127.0.0.1", ingest.port)) for _ in range(200)]
            try:
                for connection in half:
                    connection.sendall(head.encode() + b" " * sent_bytes)
                slowest_s = _slowest_s(ingest, 10)
                if sent_bytes:
                    assert any(_answered(connection, b"HTTP/1.1 503") for connection in half)
                else:
                    assert _status(ingest, greedy, b'{"a":1}\n' * 5 + b" " * (4 << 20)) == 200
            finally:
                for connection in half:
                    connection.close()
            if slowest_s < 1:
                return
        pytest.fail(f"another request took {slowest_s:.1f} s")

    @pytest.mark.parametrize(
        "head",
        [
            b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
            b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            b"Folded: a\r\n b\r\nContent-Length: x\r\n\r\n",
        ],
    )
    def test_ambiguous_lengths(self, head: bytes, ingest: Ingest) -> None:
        """A request whose length can be read two ways is one request or none, never two."""
        answer = ingest.exchange(b"POST /v1/events HTTP/1.1\r\nHost: x\r\n" + head)

        assert answer.count(b"HTTP/1.1 ") == 1
        assert answer[9:12] in (b"400", b"401", b"408")

    def test_chunked(self, ingest: Ingest) -> None:
        """A body without declared length is read to its end."""
        assert ingest.post(iter([b'{"a"', b":1}"])).json()["accepted"] == 1
