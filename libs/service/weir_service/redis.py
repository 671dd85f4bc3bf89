"""The client of Redis: explicit timeouts, no silent retries, and cancelled when it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from redis.asyncio import Connection, ConnectionPool, Redis, SSLConnection
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.maint_notifications import MaintNotificationsConfig

_CLOSED: Final = "the handler is closed"
TIMEOUT_S: Final = 5.0


def connect(
    url: str, password: str | None, *, timeout_s: float = TIMEOUT_S, max_connections: int = 64
) -> Redis:
    """Return a client; it connects when first used and again after a loss.

    Args:
        url: `redis://`, or `rediss://` for TLS.
        password: The password, None for none.
        timeout_s: For each of connecting, sending and an answer's part.
        max_connections: How many at most.
    """
    pool: ConnectionPool = ConnectionPool.from_url(
        url,
        password=password,
        # redis-py retries silently by default, also what may already have been applied.
        retry=None,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        max_connections=max_connections,
        # On by default, the pool takes a connection that Redis has closed for one with a notice
        # of maintenance, and hands it out: after a restart of Redis each of those fails a request,
        # be it minutes later (https://github.com/redis/redis-py/issues/4252).
        maint_notifications_config=MaintNotificationsConfig(enabled=False),
    )
    pool.connection_class = _Tls if pool.connection_class is SSLConnection else _Plain
    return Redis.from_pool(pool)


class Cancellable(AbstractConnection):
    """Sends within a time, as redis-py does, but not by `asyncio.wait_for`.

    Before Python 3.12 that swallows a cancellation which comes just as its work ends, and what
    was to end goes on (https://github.com/python/cpython/issues/86296): a third of those of a
    task that asks Redis all the while.
    """

    async def send_packed_command(
        self, command: bytes | str | Iterable[bytes], check_health: bool = True
    ) -> None:
        """Send a command.

        Raises:
            redis.exceptions.TimeoutError: If it was not taken in time.
            redis.exceptions.ConnectionError: If the connection is gone.
        """
        timeout_s, self.socket_timeout = self.socket_timeout, None
        try:
            async with asyncio.timeout(timeout_s):
                await super().send_packed_command(command, check_health)
        except TimeoutError:
            msg = "Timeout writing to socket"
            raise RedisTimeoutError(msg) from None
        except RuntimeError as error:
            # What uvloop says of a connection that was reset since it was used last. Nobody
            # expects that of a store that is away: the whole service would end by it.
            if _CLOSED not in str(error):
                raise
            raise RedisConnectionError(str(error)) from error
        finally:
            self.socket_timeout = timeout_s

    async def can_read(self) -> bool:
        """Tell whether the connection is not to be used: it was closed, or holds an old answer.

        The pool asks before it hands one out. redis-py knows one that the other end has closed,
        but not one that was reset: the next request would fail with it, however much later.
        """
        return self._writer is None or self._writer.is_closing() or await super().can_read()


class _Plain(Cancellable, Connection):
    pass


class _Tls(Cancellable, SSLConnection):
    pass
