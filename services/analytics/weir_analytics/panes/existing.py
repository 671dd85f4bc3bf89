"""Which panes of a version exist in Redis: looked up when a metric is edited."""

from __future__ import annotations

from weir import names

from weir_analytics.panes.shard_wire import TIMEOUT_S, open_client
from weir_analytics.settings import Settings


def newest_panes(settings: Settings, vid: int) -> dict[int, int]:
    """Return the start of the last pane that exists, by resolution in seconds.

    It goes through the keys of the shards, without blocking the server; an edit is
    rare enough for that.
    """
    client = open_client(settings, TIMEOUT_S)
    newest: dict[int, int] = {}
    for shard in range(settings.shards):
        for key in client.scan_iter(f"{names.shard_prefix(shard)}p:{vid}:*", count=1_000):
            res_s, start_s = (int(part) for part in key.decode().split(":")[-2:])
            newest[res_s] = max(start_s, newest.get(res_s, start_s))
    client.close()
    return newest
