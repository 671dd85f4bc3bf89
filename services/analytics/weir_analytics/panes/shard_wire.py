"""One connection to the Redis server of a shard: many commands, one round trip.

The client's own pipeline cannot put WATCH, reads and HMGETs into one round trip, and
its retries would send a write twice; so commands are packed and sent on a bare
connection. Every call has a time limit. After an error of the connection nobody knows
what the server did: the connection is closed and the caller has to read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from redis import Redis, ResponseError
from redis.backoff import NoBackoff
from redis.connection import Connection, parse_url
from redis.exceptions import ClusterDownError, NoPermissionError, OutOfMemoryError, ReadOnlyError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from weir_analytics.panes.task_watch import note_step
from weir_analytics.settings import Settings

TIMEOUT_S: Final = 10.0
CONNECT_TIMEOUT_S: Final = 5.0

Argument = str | bytes | int
Command = Sequence[Argument]

NoAnswerError = (RedisConnectionError, RedisTimeoutError, ReadOnlyError)
"""What tells that the outcome of a call is unknown (or that the server is a replica)."""


_OF_SERVER: Final = (ClusterDownError, NoPermissionError, OutOfMemoryError, ReadOnlyError)
# What the client knows no kind of error for begins with its code.
_CODES_OF_SERVER: Final = ("MISCONF", "BUSY", "NOREPLICAS", "LOADING", "NOAUTH", "OOM", "READONLY")


def open_client(settings: Settings, timeout_s: float) -> Any:
    """Return an ordinary client of Redis, which sends nothing twice; for single questions.

    Args:
        settings: Where Redis is, and its password.
        timeout_s: Longest wait for the connection, and for one reply.
    """
    return Redis.from_url(
        settings.redis_url,
        password=settings.redis_password,
        retry=None,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
    )


class StoreError(Exception):
    """Redis refused, or is set up so that it may lose what it confirmed."""


class NotPermittedError(StoreError):
    """Redis does not let this user do what was asked, by its list of users."""


class WrongCommandError(StoreError):
    """Redis refused what it was asked, or what a key holds; how it is itself has no part in it."""


class PartlyAppliedError(StoreError):
    """Redis refused a command of a transaction when it came to it, and applied the others."""


class ShardWire:
    """A connection that is opened at the first call and again after an error."""

    def __init__(
        self, url: str, *, password: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Prepare a connection; nothing is opened yet.

        Args:
            url: `redis://`, `rediss://` or `unix://` address.
            password: Used instead of one in the address.
            timeout_s: Longest wait for one reply.
        """
        settings: dict[str, Any] = dict(parse_url(url))  # type: ignore[no-untyped-call]
        kind = settings.pop("connection_class", Connection)
        if password:
            settings["password"] = password
        self._connection: Any = kind(
            **settings,
            socket_timeout=timeout_s,
            socket_connect_timeout=min(CONNECT_TIMEOUT_S, timeout_s),
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        self._checked = False

    def ask(
        self, commands: Sequence[Command], *, sent: Callable[[], None] | None = None
    ) -> list[Any]:
        """Send commands together and return their replies.

        A server that has never been asked, or not since an error, is first asked
        whether it may evict keys.

        Args:
            commands: The commands; none asks nothing.
            sent: Called when they are sent and no reply has been read.

        Raises:
            StoreError: If Redis refused a command, or evicts keys.
            NotPermittedError: If it refused one that this user may not give.
            PartlyAppliedError: If the last command was EXEC, and something in it was refused.
            WrongCommandError: If it refused that for what was asked, such as a key's type.
            RedisConnectionError: If the connection broke; the outcome is unknown.
            RedisTimeoutError: If an answer took too long; the outcome is unknown.
        """
        if not commands:
            return []
        try:
            if not self._checked:
                self._check_server()
            replies = self._exchange(commands, sent)
        except NoAnswerError:
            self.close()
            raise
        if commands[-1] == ("EXEC",):
            _check_applied(replies[-1])
        return replies

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        self._checked = False
        self._connection.disconnect()

    def require_aof(self) -> None:
        """Refuse a server that forgets what it confirmed when it is started again.

        Raises:
            StoreError: If it keeps no append-only file; says what to do.
            RedisConnectionError: If the connection broke.
            RedisTimeoutError: If an answer took too long.
        """
        kept = _lines(self.ask([("INFO", "persistence")])[0]).get("aof_enabled", "unknown")
        if kept != "1":
            msg = (
                f"redis must have appendonly yes, got aof_enabled {kept}; after a restart it would "
                "hold nothing of what is older than the log: set it in redis.conf or by CONFIG SET "
                "appendonly yes, or accept that by WEIR_ANALYTICS_REDIS_WITHOUT_AOF=true"
            )
            raise StoreError(msg)

    def _exchange(
        self, commands: Sequence[Command], sent: Callable[[], None] | None = None
    ) -> list[Any]:
        connection = self._connection
        connection.send_packed_command(connection.pack_commands(commands))
        if sent is not None:
            sent()
        return self._replies(len(commands))

    def _replies(self, count: int) -> list[Any]:
        replies: list[Any] = []
        refused: ResponseError | None = None
        for _ in range(count):
            try:
                replies.append(self._connection.read_response())
                note_step()
            except ReadOnlyError:
                raise
            except ResponseError as error:
                # The first refusal tells why; a transaction then adds EXECABORT.
                refused = refused or error
        if refused is not None:
            msg = f"redis refused to write: {refused}"
            if isinstance(refused, NoPermissionError):
                raise NotPermittedError(msg) from refused
            if _is_of_server(refused):
                raise StoreError(msg) from refused
            raise WrongCommandError(msg) from refused
        return replies

    def _check_server(self) -> None:
        # INFO and not CONFIG GET, which Weir's users of Redis may not call.
        info = self._exchange([("INFO", "memory")])[0]
        policy = _lines(info).get("maxmemory_policy", "unknown")
        if policy != "noeviction":
            self.close()
            msg = (
                f'redis must have maxmemory-policy noeviction, got "{policy}"; an evicted key is '
                "a lost count: set it in redis.conf or by CONFIG SET maxmemory-policy noeviction"
            )
            raise StoreError(msg)
        self._checked = True


def _check_applied(replies: Sequence[object] | None) -> None:
    """Look whether all of a transaction was applied; None: none of it, its keys had moved.

    Redis takes nothing back, and the client raises only what is refused by itself.
    """
    refused = next((one for one in replies or () if isinstance(one, ResponseError)), None)
    if refused is not None:
        msg = f"redis applied a transaction but for a command of it: {refused}"
        raise PartlyAppliedError(msg) from refused


def _is_of_server(refused: ResponseError) -> bool:
    """Tell whether Redis refused for how it is itself: it is full, or loads, or lets nobody."""
    code = str(refused).partition(" ")[0]
    return isinstance(refused, _OF_SERVER) or code in _CODES_OF_SERVER


def _lines(info: bytes | str) -> dict[str, str]:
    """Return what a reply to INFO says, by name."""
    text = info.decode() if isinstance(info, bytes) else info
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)
