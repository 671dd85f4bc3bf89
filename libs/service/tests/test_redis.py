"""The client of Redis, on a real one."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import uvloop
from redis.asyncio import Connection, SSLConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from weir_service.redis import Cancellable, connect


@pytest.mark.redis
def test_a_task_that_is_cancelled_once_ends(redis_url: str) -> None:
    """Wherever in a question it is: nobody cancels a second time."""

    async def cancel_many() -> None:
        client, rng = connect(redis_url, None), random.Random(7)  # noqa: S311

        async def ask() -> None:
            while True:
                await client.get("x")
                await asyncio.sleep(0)

        for _ in range(100):
            asking = asyncio.create_task(ask())
            await asyncio.sleep(rng.random() * 0.003)
            asking.cancel()
            _, still = await asyncio.wait({asking}, timeout=10)
            assert not still
        await client.aclose()

    asyncio.run(cancel_many())


@pytest.mark.redis
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_what_redis_has_closed_fails_no_request(
    redis_url: str, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """As after a restart of it: what lay unused is opened again, and nobody notices."""

    async def ask() -> list[object]:
        client, other = connect(redis_url, None), connect(redis_url, None)
        own = await asyncio.gather(*(client.client_id() for _ in range(10)))
        assert len(set(own)) == 10
        for one in own:
            await other.client_kill_filter(_id=str(one))
        for _ in range(100):  # the word of it has come
            await asyncio.sleep(0)
        found = await asyncio.gather(*(client.ping() for _ in own), return_exceptions=True)
        await client.aclose()
        await other.aclose()
        return list(found)

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(ask()) == [True] * 10


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_what_was_reset_fails_no_request(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """As after a network that has lost its mind: what lay unused is opened again."""

    async def ask() -> list[object]:
        met: list[asyncio.StreamWriter] = []

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            met.append(writer)
            with suppress(ConnectionError):
                while commands := await reader.read(1_000):
                    writer.write(b"+OK\r\n" * commands.count(b"*"))

        server = await asyncio.start_server(meet, "127.0.0.1", 0)
        client = connect(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", None)
        pool: Any = client.connection_pool
        used = [await pool.get_connection() for _ in range(10)]
        for one in used:
            await pool.release(one)
        for writer in met:
            reset(writer)
        async with asyncio.timeout(10):
            while not all(one._writer.is_closing() for one in used):  # noqa: ASYNC110  nobody tells
                await asyncio.sleep(0.001)
        found = await asyncio.gather(*(client.ping() for _ in used), return_exceptions=True)
        await client.aclose()
        for writer in met:
            writer.close()
        server.close()
        return [one for one in found if isinstance(one, BaseException)]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(ask()) == []


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a crash of this end does."""
    wire = writer.get_extra_info("socket")
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def test_who_does_not_read_is_not_waited_for() -> None:
    """A server that takes nothing: an error within the time, and the next call begins anew."""

    async def send_much() -> int:
        met: list[asyncio.StreamWriter] = []

        async def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            met.append(writer)

        server = await asyncio.start_server(meet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = connect(f"redis://127.0.0.1:{port}", None, timeout_s=0.2)
        for _ in range(2):
            with pytest.raises(RedisTimeoutError):
                await client.set("x", b"x" * 50_000_000)
        await client.aclose()
        for writer in met:
            writer.transport.abort()
        server.close()
        await server.wait_closed()
        return len(met)

    assert asyncio.run(send_much()) == 2


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_that_was_reset_is_an_error_of_the_store(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """Whatever the loop calls it: a service goes on without its store."""

    async def ask_after_a_reset() -> BaseException | None:
        met: list[asyncio.StreamWriter] = []

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            met.append(writer)
            while commands := await reader.read(1_000):
                writer.write(b"+OK\r\n" * commands.count(b"*"))

        server = await asyncio.start_server(meet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = connect(f"redis://127.0.0.1:{port}", None)
        pool: Any = client.connection_pool
        connection = await pool.get_connection()
        await connection.send_command("PING")
        reset(met[0])
        async with asyncio.timeout(10):
            while not connection._writer.transport.is_closing():  # noqa: ASYNC110  nobody tells
                await asyncio.sleep(0.001)
        asking = asyncio.create_task(connection.send_command("PING"))
        await asyncio.wait({asking})
        server.close()
        await client.connection_pool.disconnect()
        return asking.exception()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert isinstance(runner.run(ask_after_a_reset()), RedisConnectionError)


@pytest.mark.parametrize(
    ("url", "kind"), [("redis://host", Connection), ("rediss://host", SSLConnection)]
)
def test_tls_is_by_the_address(url: str, kind: type) -> None:
    """Both are cancelled when they are cancelled."""
    pool: Any = connect(url, "secret").connection_pool
    made = pool.make_connection()
    assert isinstance(made, kind)
    assert isinstance(made, Cancellable)
