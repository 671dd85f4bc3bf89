"""The topics of a one-node Weir: partitions, clean-up, retention.

What each holds is in docs/design.md, section 4. Times are the log's own
(LogAppendTime): received time must not be a client's to choose.
"""

from __future__ import annotations

from weir import names

from weir_local.kafka import Topic

DAY_MS = 24 * 3600 * 1000


def _kept(days: int) -> dict[str, str]:
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(days * DAY_MS),
        "retention.bytes": "-1",
        "message.timestamp.type": "LogAppendTime",
    }


FOR_EVER = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "LogAppendTime",
}

TOPICS = (
    Topic(names.EVENTS, 4, _kept(7)),
    Topic(names.QUARANTINE, 1, _kept(30)),
    # The record of truth: never compacted, never deleted, one order.
    Topic(names.DEFINITIONS, 1, FOR_EVER),
    Topic(names.ALERTS, 1, _kept(400)),
    Topic(names.CORRECTIONS, 1, _kept(90)),
)
