"""Which panes of a version exist in Redis: looked up when a metric is edited."""

from __future__ import annotations

import redis
from weir import names

from weir_analytics.settings import Settings

TIMEOUT_S = 10.0


def newest_panes(settings: Settings, vid: int) -> dict[int, int]:
    """Return the start of the last pane that exists, by resolution in seconds.

    It goes through the keys of the shards, without blocking the server; an edit is
    rare enough for that.
    """
    client = redis.Redis.from_url(
        settings.redis_url,
        password=settings.redis_password,
        retry=None,
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
    )
    newest: dict[int, int] = {}
    for shard in range(settings.shards):
        for key in client.scan_iter(f"{names.shard_prefix(shard)}p:{vid}:*", count=1_000):
            res_s, start_s = (int(part) for part in key.decode().split(":")[-2:])
            newest[res_s] = max(start_s, newest.get(res_s, start_s))
    client.close()
    return newest
