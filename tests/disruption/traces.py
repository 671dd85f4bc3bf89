"""Where a missing event has stopped: looked up in the log, in quarantine, Redis and the API.

`judge.py` says in words what is found here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import redis
from account import LogRecord, dispositions, read_log, tenant_of
from disruption.judge import Place, Trace, origin_of, where_it_stopped
from disruption.rig import Rig
from disruption.uses import METRIC
from equality import PANE_MS, SPEC
from load import TYPE
from recount import Api, pane_query
from weir import names, rows

TENANT = "default"


def where_one_stopped(rig: Rig, records: list[LogRecord], events: Iterable[dict[str, Any]]) -> str:
    """Return how far an event of the first pane came of which not so many are served as count."""
    numbers: dict[int, list[int]] = defaultdict(list)
    for event in events:
        numbers[event["_time_ms"] // PANE_MS * PANE_MS].append(event["data"]["n"])
    for start_ms, of_pane in sorted(numbers.items()):
        if served_of(rig, start_ms) != len(of_pane):
            trace = trace_of(rig, records, of_pane[0])
            return f"of the pane of event {of_pane[0]}: {where_it_stopped(trace)}"
    return "of each pane as many are served as count"


def trace_of(rig: Rig, records: list[LogRecord], number: int) -> Trace:
    """Return what is found of an event of the load: in the log, in quarantine, and of its pane."""
    needle = f'"id":"{rig.seed}-{number}"'.encode()
    places, time_ms, starts = list[tuple[Place, str]](), None, Counter[int]()
    for record, disposition, event in dispositions(records):
        if tenant_of(record, event) != TENANT:
            continue
        if event is not None and event["type"] == TYPE and disposition == "counted":
            starts[event["_time_ms"] // PANE_MS * PANE_MS] += 1
        if needle in (record.value or b"").replace(b" ", b""):
            places.append(((record.partition, record.offset), disposition))
            time_ms = event["_time_ms"] if disposition == "counted" and event else time_ms
    own = {place for place, _ in places}
    copies = [
        bytes(copy.headers.get("weir-reason", b"an unknown reason")).decode()
        for copy in read_log(rig.kafka_bootstrap, "weir.quarantine")
        if "weir-version" in copy.headers and origin_of(copy) in own
    ]
    if time_ms is None:
        return Trace(places, copies)
    start_ms = time_ms // PANE_MS * PANE_MS
    in_redis, served = stored_of(rig, start_ms), served_of(rig, start_ms)
    return Trace(places, copies, starts[start_ms], in_redis, served)


def stored_of(rig: Rig, start_ms: int) -> int | None:
    """Return how many events a pane of the load's metric has in Redis; None if it is away."""
    client: Any = redis.Redis.from_url(rig.redis_url)
    try:
        vid = rig.api("GET", f"/definitions/metric/{METRIC}").body["vid"]
        keys = [names.pane_key(n, vid, PANE_MS // 1000, start_ms // 1000) for n in range(2)]
        return sum(rows.decode(row).n for key in keys for row in client.hvals(key))
    except redis.RedisError:
        return None
    finally:
        client.close()


def served_of(rig: Rig, start_ms: int) -> int | None:
    """Return how many events of a pane the API answers with; None if it does not answer."""
    try:
        answer = Api(rig.dashboard_url, rig.key).call(
            "POST", "/query", pane_query(SPEC, "count", PANE_MS, (start_ms, start_ms + PANE_MS))
        )
    except OSError:
        return None
    return sum(count or 0 for series in answer["series"] for count in series["count"])
