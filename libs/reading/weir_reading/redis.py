"""Questions to Redis, with the types of its replies.

The client's own types leave open whether replies are text or bytes; here they are
bytes, always.
"""

from __future__ import annotations

from typing import Any, cast

from redis.asyncio import Redis

Entry = tuple[bytes, dict[bytes, bytes]]


async def read_streams(
    redis: Redis, after: dict[str, str], *, count: int, block_ms: int
) -> dict[str, list[Entry]]:
    """Return what came into streams after the given ids; waits up to `block_ms`."""
    reply: Any = await redis.xread(cast("Any", after), count=count, block=block_ms)
    return {key.decode(): entries for key, entries in reply or ()}


async def newest_entries(redis: Redis, key: str, count: int) -> list[Entry]:
    """Return the newest entries of a stream, the newest first."""
    reply: Any = await redis.xrevrange(key, count=count)
    return cast("list[Entry]", reply)


async def read_hashes_then(
    redis: Redis, keys: list[str], then: list[str]
) -> tuple[list[dict[bytes, bytes]], list[bytes | None]]:
    """Return whole hashes, and strings as they stand after the last of them was read."""
    pipeline = redis.pipeline(transaction=False)
    for key in keys:
        pipeline.hgetall(key)
    for key in then:
        pipeline.get(key)
    reply: Any = await pipeline.execute()
    return reply[: len(keys)], reply[len(keys) :]


async def read_fields_then(
    redis: Redis, key: str, fields: list[bytes], then: list[str]
) -> tuple[list[bytes | None], list[bytes | None]]:
    """Return some fields of a hash, and strings as they stand after those were read."""
    (found,), after = await read_many_fields_then(redis, [(key, fields)], then)
    return found, after


async def read_many_fields_then(
    redis: Redis, wanted: list[tuple[str, list[bytes]]], then: list[str]
) -> tuple[list[list[bytes | None]], list[bytes | None]]:
    """Return some fields of each of several hashes, and strings as they stand after those."""
    pipeline = redis.pipeline(transaction=False)
    for key, fields in wanted:
        pipeline.hmget(key, cast("Any", fields))
    for key in then:
        pipeline.get(key)
    reply: Any = await pipeline.execute()
    return reply[: len(wanted)], reply[len(wanted) :]


async def set_sizes(redis: Redis, keys: list[str]) -> list[int]:
    """Return how many members sets have, in one round trip; one that is not there has 0."""
    return await _sizes(redis, "SCARD", keys)


async def read_set(redis: Redis, key: str, *, count: int) -> set[bytes]:
    """Return the members of a set that are there all the time, about `count` a round trip."""
    found: Any = redis.sscan_iter(key, count=count)
    return {member async for member in found}


async def hash_sizes(redis: Redis, keys: list[str]) -> list[int]:
    """Return how many fields hashes have, in one round trip; one that is not there has 0."""
    return await _sizes(redis, "HLEN", keys)


async def _sizes(redis: Redis, command: str, keys: list[str]) -> list[int]:
    pipeline = redis.pipeline(transaction=False)
    for key in keys:
        pipeline.execute_command(command, key)
    reply: Any = await pipeline.execute()
    return cast("list[int]", reply)


async def read_text(redis: Redis, key: str) -> bytes | None:
    """Return a text value; None if the key is not there."""
    return cast("bytes | None", await redis.get(key))


async def read_texts(redis: Redis, pattern: str) -> dict[bytes, bytes]:
    """Return all text values whose keys match a pattern of few keys."""
    keys: list[Any] = [key async for key in redis.scan_iter(pattern, count=1000)]
    values: list[Any] = await redis.mget(keys) if keys else []
    return {key: value for key, value in zip(keys, values, strict=True) if value is not None}
