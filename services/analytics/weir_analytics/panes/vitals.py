"""What the panes job knows of itself: one value that its threads write and others read.

There is no lock: each field is replaced whole, and readers want the newest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weir.log_left import LogLeft

from weir_analytics.jobs.unreplayed import DoneReplay
from weir_analytics.panes.own import Own
from weir_analytics.panes.ticks import LogEnds

BEHIND_MS = 5_000
# Events of a batch by which one can tell how many could be counted in a second.
LARGE = 5_000


@dataclass(frozen=True)
class LanesLeft:
    """What lanes have still to count: of those that numbers need, where there are any.

    Attributes:
        first: By partition, the first offset that one of them has still to count.
        rest: By partition, how many records all of them have but those that were set aside, each in
            each of its shards.
        left_out: The partitions where that first offset is of one that has no turn coming.
        again: Whether numbers need them: they have held what is counted there.
    """

    first: Mapping[int, int] = field(default_factory=dict)
    rest: Mapping[int, int] = field(default_factory=dict)
    left_out: frozenset[int] = frozenset()
    again: bool = True


@dataclass
class Vitals:
    """What the threads of the driver know of themselves.

    Attributes:
        doing: What the driver is at, in a word or two.
        busy: Share of the time that went into batches lately, 0 to 1.
        received_per_s: Events of the last batches by the second.
        quiet_s: For how long batches have brought no event.
        capacity_per_s: How many events a second large batches counted lately; None before one did.
        last_batch_s: When the last batch was done, by the clock that never steps back.
        held_by: The partition that held processed-through of the last batch.
        failed: The thread that died, if one did.
        counted: By partition, the first offset that is not counted; empty before it is known.
        log: Where the log ends, as it was seen last: not by a batch, but by whoever ticks.
        lanes: What backfills and rebuilds have still to count.
        trouble: What ended counting last, until a batch is done again.
        received_ms: By partition, R of what was counted last.
        own: What the job took of its machine when it was measured last.
        log_left: How long the log still holds what is not counted; None: nobody has looked yet.
        replays: The replays that are done; None before a batch.
        quarantine_left: How long quarantine still holds what none of them has looked into; None:
            not known.
    """

    ready: bool = False
    doing: str = "starting"
    busy: float = 0.0
    epoch: int = -1
    rev: int = 0
    processed_through_ms: int = 0
    received_per_s: float = 0.0
    quiet_s: float = 0.0
    capacity_per_s: float | None = None
    last_batch_s: float | None = None
    held_by: int | None = None
    clock_ahead_ms: int = 0
    failed: str | None = None
    trouble: str | None = None
    counted: Mapping[int, int] = field(default_factory=dict)
    lanes: LanesLeft = field(default_factory=LanesLeft)
    received_ms: Mapping[int, int] = field(default_factory=dict)
    log: LogEnds = field(default_factory=LogEnds)
    log_left: LogLeft | None = None
    replays: Sequence[DoneReplay] | None = None
    quarantine_left: LogLeft | None = None
    own: Own = field(default_factory=Own)

    @property
    def lag_records(self) -> int | None:
        """Records of the log that are not counted, also while no batch ends; None: not known.

        Of ticks nobody waits to be counted, and those that this process wrote are not among them.
        Refused items and what came twice are: what a record is only counting tells.
        """
        if not self.log.news or not self.counted:
            return None
        return self.log.waiting(self.counted)

    @property
    def holding(self) -> int | None:
        """The partition that holds processed-through, also before a batch was held up by it."""
        leaderless = self.log.leaderless
        return leaderless[0] if leaderless else self.held_by

    def see(self, log: LogEnds) -> Mapping[int, int]:
        """Take in where the log ends; return up to where it is counted."""
        self.log = log
        return self.counted

    def take(self, counted: Mapping[int, int], received_ms: Mapping[int, int]) -> None:
        """Take in how far a batch has come."""
        self.counted, self.trouble = dict(counted), None
        self.received_ms = {**self.received_ms, **received_ms}

    def receive(self, received: int, since_s: float) -> None:
        """Take in how many events a batch brought, and how long after the one before it ended."""
        self.received_per_s = 0.7 * self.received_per_s + 0.3 * received / since_s
        self.quiet_s = 0.0 if received else self.quiet_s + since_s

    def measure(self, received: int, took_s: float) -> None:
        """Take in how fast a batch was; of a small one most is what any batch costs.

        The best of lately: what others on the machine took is no lack of what it can.
        """
        if received < LARGE or took_s <= 0:
            return
        now, before = received / took_s, self.capacity_per_s or 0.0
        self.capacity_per_s = max(now, 0.9 * before + 0.1 * now)

    def status(self, now_s: float, now_ms: int, stalled_ms: int) -> str:
        """Return `ok`, `starting`, `behind` or `stalled`.

        Args:
            now_s: The clock that never steps back.
            now_ms: The present.
            stalled_ms: Without a batch for this long the job is stalled: ticks
                make one every second or two.
        """
        if not self.ready or self.last_batch_s is None:
            return "starting"
        if (now_s - self.last_batch_s) * 1000 > stalled_ms:
            return "stalled"
        return "behind" if self.is_behind(now_ms) else "ok"

    def is_behind(self, now_ms: int) -> bool:
        """Tell whether numbers are older than they are when all is well."""
        return now_ms - self.processed_through_ms > BEHIND_MS
