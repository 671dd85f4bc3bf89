"""Named places where a test may end, delay or break a process.

Outside tests a failpoint does nothing: it acts only where the test-only package
`weir_faults` can be imported, and no image installs that. Its function
`failpoint(name)` reads `WEIR_FAIL=<point>:kill|raise|sleep@n`.

The points are the crash points of `docs/reliability.md`:

    C1  records are sent, none is acknowledged    C7   a shard is committed, its answer not read
    C2  they are acknowledged, nobody is told     C8   all shards are committed, no record
    C3  a fence is raised in some shards          C9   the record is written, Spark's note is not
    C4  the batch is planned                      C10  Spark's note of the batch before is written
    C5  the quarantine is acknowledged            C11  a slice of a lane is committed
    C6  a shard is committed, others are not
    C12-stored, C12-sent  a message of an alert is due / was sent, which is not recorded
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable


def _installed() -> Callable[[str], None] | None:
    if importlib.util.find_spec("weir_faults") is None:
        return None
    found: Callable[[str], None] = importlib.import_module("weir_faults").failpoint
    return found


_act = _installed()


def failpoint(name: str) -> None:
    """Do what a test has ordered for this place, which is nothing outside tests."""
    if _act is not None:
        _act(name)
