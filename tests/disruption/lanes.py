"""How far each lane of a driver that died has come, and what the next one counts of it (C11)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import redis
from disruption.faults import bites
from disruption.judge import begun_anew
from disruption.rig import Rig
from weir import names
from weir.commit import decode_mark
from weir.definitions.history import Lane
from weir.kafka import Kafka
from weir_analytics.panes.definitions_log import DefinitionsLog


@dataclass(frozen=True)
class Stood:
    """Where the lanes stood when the driver died.

    Attributes:
        lanes: By the offset of its record, how much of each was committed, and how long it is.
        told: How many slices had been told of in the driver's log.
    """

    lanes: dict[int, tuple[int, int]]
    told: int


def stood(rig: Rig) -> Stood:
    """Return where the lanes stand; the driver is dead."""
    log = DefinitionsLog(Kafka(rig.kafka_bootstrap))
    log.read_to(log.end())
    log.close()
    client: Any = redis.Redis.from_url(rig.redis_url)
    lanes = {
        offset: (_committed(client, lane), lane.records) for offset, lane in log.fold.lanes.items()
    }
    client.close()
    return Stood(lanes, len(rig.lines("panes", "slice")))


def _committed(client: Any, lane: Lane) -> int:
    """Return how many records of a lane every shard has committed; 0 without a mark."""
    found = client.mget([names.mark_key(shard, lane.name) for shard in range(2)])
    if None in found:
        return 0
    ends = [decode_mark(mark).end for mark in found]
    return sum(min(end[p] for end in ends) - lane.start.get(p, 0) for p in lane.end)


def assert_goes_on_behind(rig: Rig, before: Stood) -> None:
    """Assert C11: of what was committed of a lane nothing was counted again, the rest once."""
    bites(any(at for at, _ in before.lanes.values()), "a lane of which something was committed")
    counted = Counter[int]()
    for line in rig.lines("panes", "slice")[before.told :]:
        counted[line["lane"]] += line["records"]
    wrong = begun_anew(before.lanes, counted)
    assert not wrong, f"a lane must go on behind its mark: {wrong[:3]}"
