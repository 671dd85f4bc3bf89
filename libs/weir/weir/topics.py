"""The topics of a Weir: partitions, clean-up, retention; and what would make them so.

One list for every way of running: a laptop creates it as it stands, an installation
applies it with its own sizes (`python -m weir_ingest.topics apply`). What each topic
holds is in docs/design.md, section 4. Times are the log's own (LogAppendTime):
received time must not be a client's to choose.

Nothing here speaks to a broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir import names

DAY_MS = 24 * 3600 * 1000
FOR_EVER = -1


@dataclass(frozen=True)
class Topic:
    """A topic as it should be.

    Attributes:
        name: Its name.
        partitions: How many partitions it should have.
        config: Settings that differ from the broker's.
    """

    name: str
    partitions: int = 1
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sizes:
    """What an installation chooses of its topics.

    Attributes:
        events_partitions: Partitions of the log: the most that the engine reads at once.
        events_days: How long events are kept, and so how far back a metric can be counted.
        quarantine_days: How long events that could not be used are kept.
        alerts_days: How long transitions and deliveries of alerts are kept.
        corrections_days: How long corrections are kept.
    """

    events_partitions: int = 6
    events_days: int = 7
    quarantine_days: int = 30
    alerts_days: int = 400
    corrections_days: int = 90


def topics(sizes: Sizes) -> tuple[Topic, ...]:
    """Return every topic that Weir needs, in these sizes."""
    return (
        Topic(names.EVENTS, sizes.events_partitions, _kept(sizes.events_days * DAY_MS)),
        Topic(names.QUARANTINE, 1, _kept(sizes.quarantine_days * DAY_MS)),
        # The record of truth: never compacted, never deleted, one order.
        Topic(names.DEFINITIONS, 1, _kept(FOR_EVER)),
        Topic(names.ALERTS, 1, _kept(sizes.alerts_days * DAY_MS)),
        Topic(names.CORRECTIONS, 1, _kept(sizes.corrections_days * DAY_MS)),
    )


def _kept(retention_ms: int) -> dict[str, str]:
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(retention_ms),
        "retention.bytes": str(FOR_EVER),
        "message.timestamp.type": "LogAppendTime",
    }
