"""What a version of a metric waits for, in words: one pure decision beside `holding`.

Which versions begin is the engine's to decide. This asks the same functions as it does, so
that what the author reads is what keeps the version from being counted.
"""

from __future__ import annotations

from typing import Final

from weir.definitions.fold import Definitions
from weir.definitions.history import Definition
from weir.definitions.quota import quota_refusal

from weir_dashboard.holding import Holding

STANDS_STILL: Final = frozenset(
    {
        "newer_release",
        "redis_away",
        "redis_refuses",
        "kafka_away",
        "partition_without_leader",
        "driver_away",
        "driver_waiting",
        "batch_stuck",
    }
)
"""What lets no batch end, so that nothing begins. Of the others numbers may be old."""

PLANNED: Final = (
    "its plan is made and tried beside live counting, so that no number waits for that; "
    "it begins by itself within seconds"
)
ENDED: Final = (
    "counting of it has ended, since a newer version had taken its place, which this release "
    "cannot use; store it again as a new version, or run the release that wrote the newer one"
)


def waits_for(
    definitions: Definitions,
    version: Definition,
    tenant_bytes: int,
    held: Holding | None,
    lane: str | None = None,
) -> str | None:
    """Return why a version in force does not go on to serve; None if it serves, or does.

    How far one is that is being filled from the log is told elsewhere.

    Args:
        definitions: The fold.
        version: The version; one that is no metric waits for nothing.
        tenant_bytes: What all metrics of a tenant may take together, as the driver goes by it.
        held: What holds the numbers back.
        lane: Why what fills it from the log does not go on now; None: it does.
    """
    activation = definitions.activations.get(version.vid)
    if version.metric is None or (activation and activation.serves and activation.finish is None):
        return None
    why = definitions.set_aside(version.vid)
    if why is not None and definitions.is_left_out(version.vid):
        return (
            f"the panes driver counts it no further, since it cannot count it any more: {why}; "
            "write it in another way, and report it; it is tried again when metrics change and "
            "when the driver starts, and is then counted from the log"
        )
    if activation is not None and activation.finish is not None:
        return ENDED
    if why is not None:
        return (
            f"the panes driver has set it aside, since it cannot count it: {why}; "
            "write it in another way, and report it; it is tried again when metrics change "
            "and when the driver starts"
        )
    if activation is None:
        problem = quota_refusal(definitions, version.tenant, version.metric, tenant_bytes)
        if problem is not None:
            return (
                f"the panes driver does not begin it: {problem.message}; "
                "once there is room it begins by itself"
            )
    if held is not None and held.code in STANDS_STILL:
        return (
            f"the panes driver counts nothing now: {held.message}; "
            "once that is mended it goes on by itself"
        )
    if lane is not None:
        return (
            f"what fills it from the log waits: {lane}; it is tried again by itself, after up to "
            "five minutes each time, and live counting goes on meanwhile"
        )
    return PLANNED if activation is None else None
