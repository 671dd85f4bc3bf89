"""A model of everything that a commit touches: the log, Redis, the checkpoint.

It is as small as the protocol allows: an event is a weight for one pane of one
shard, a pane is a sum of weights. Redis remembers what it held after each write, so
that a run can take the latest writes away again. Weights are random and large, so
that a hole and a double cannot cancel out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from weir.commit import Attempt, Fence, Mark, Offsets, ShardState, not_after
from weir.commit_found import LogBounds, Planned
from weir.definitions.history import NO_START, Start
from weir.names import LIVE_LANE

SHARDS = 2
PARTITIONS = 2
DEFINITIONS_ID = "definitions"
PANE_LENGTH = 6
HORIZON = 25
LEDGER = -1
REMEMBERED_WRITES = 40
NO_END = 10**9


class Event(NamedTuple):
    """One record of the log. `shard` is -1 for a tick."""

    shard: int
    pane: int
    weight: int
    counted: bool
    received: int


class Image(NamedTuple):
    """All keys of one shard; never changed, only replaced."""

    fence: Fence | None = None
    marks: dict[str, Mark] = {}  # noqa: RUF012  never changed
    token: str | None = None
    panes: dict[tuple[int, int], int] = {}  # noqa: RUF012  never changed
    outbox: dict[int, Entry] = {}  # noqa: RUF012  never changed


class Entry(NamedTuple):
    """An outbox entry: corrections by (epoch, batch, version, pane, shard)."""

    corrections: dict[tuple[int, int, int, int, int], int]


class Record(NamedTuple):
    """An entry of the stream of batch records."""

    epoch: int
    rev: int
    outbox: dict[int, int]


class Definition(NamedTuple):
    """A record of `weir.definitions`: of a driver, or a version's text.

    `cut` of a takeover: panes from there are the version's own, earlier ones stay with the
    version before. `topic` says of which log the offsets are, counted from 0; of a start, which
    one its epoch counts. `epoch` of a start: None, it begins one. `incomplete` of a start: earlier
    panes may lack what the log has lost; `follows`: the fence of the start that its driver had
    read. A person's `adopt` is used up by `adopted`.
    """

    kind: str
    fence: int = 0
    epoch: int | None = None
    vid: int = 0
    offsets: Offsets = {}  # noqa: RUF012  never changed
    backfill: bool = False
    start: Offsets = {}  # noqa: RUF012  never changed
    cut: int = 0
    topic: int = 0
    incomplete: int = 0
    follows: int = NO_START

    def start_at(self, offset: int) -> Start:
        """Return what a start record says."""
        return Start(
            fence=offset,
            job="panes",
            epoch=offset if self.epoch is None else self.epoch,
            instance="",
            shards=SHARDS,
            reason="start",
            incomplete_before_ms=self.incomplete,
            at_ms=0,
            events_id=events_id(self.topic),
            follows=self.follows,
        )


Behind = Callable[[Start, Start | None], Start]


class Cuts(NamedTuple):
    """Which panes of a version are its own, and from where in the log that is heeded."""

    first: int = 0
    first_at: Offsets = {}  # noqa: RUF012  never changed
    end: int = NO_END
    end_at: Offsets = {}  # noqa: RUF012  never changed

    def at(self, start: Offsets) -> range:
        """Return the panes that a range counts."""
        first = self.first if not_after(self.first_at, start) else 0
        return range(first, self.end if not_after(self.end_at, start) else NO_END)


def events_id(topic: int) -> str:
    """Return Kafka's id of a topic: another one each time that it is created."""
    return f"events-{topic}"


def topic_of(start: Start) -> int:
    """Return which topic the epoch of a start counts."""
    return int((start.events_id or "").removeprefix("events-"))


class World:
    """The log, the definitions, Redis, the checkpoint and what was published."""

    def __init__(self, seed: int, left_behind: float, behind: Behind = Start.behind) -> None:
        self.left_behind, self._behind = left_behind, behind
        self.rng = random.Random(seed)  # noqa: S311  a model, seeded on purpose
        self.log: list[list[Event]] = [[] for _ in range(PARTITIONS)]
        # How often the topic was created anew; and what of its log is still there.
        self.topic, self.first = 0, dict.fromkeys(range(PARTITIONS), 0)
        self.former: list[list[Event]] = []
        self.stands_still = False
        self.now = 0
        self.seen: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
        self.definitions: list[Definition] = []
        self._start: Start | None = None
        self.counted: set[int] = set()  # topics that some epoch counts, or did
        self._folded, self._latest = 0, -1
        self._active: dict[int, Definition] = {}
        self._rebuilds: dict[int, Definition] = {}
        self._takeovers: dict[int, Definition] = {}
        self._stops: dict[int, Definition] = {}
        self.shards: list[Image] = [Image() for _ in range(SHARDS)]
        self.stream: tuple[Record, ...] = ()
        self.before: list[tuple[tuple[Image, ...], tuple[Record, ...]]] = []
        self.planned: Planned | None = None
        self.old_plans: list[Planned | None] = []
        self.corrections: dict[tuple[int, int, int, int, int], int] = {}
        self.wrongs: list[str] = []
        self.lossless = True
        self.went_back = False  # Redis, and nothing else was lost
        self.is_publishing = False  # between the corrections of a batch and Spark's note of it
        self.levelled = False
        self.final: dict[tuple[int, int, int], int] = {}
        self.sent: dict[tuple[int, int], int] = {}

    # ── the log ─────────────────────────────────────────────────────────────
    def append_event(self) -> None:
        """Append one event, at times a resent one or one that is late."""
        rng = self.rng
        partition = int(rng.random() * PARTITIONS)
        self.now += 1
        identity = int(rng.random() * 60)
        last = self.seen[partition].get(identity)
        self.seen[partition][identity] = self.now
        counted = last is None or self.now - last > HORIZON
        late = int(rng.random() * 20) if rng.random() < 0.3 else 0
        pane = max(0, self.now - late) // PANE_LENGTH
        shard, weight = int(rng.random() * SHARDS), 1 + int(rng.random() * 1_000_000)
        self.log[partition].append(Event(shard, pane, weight, counted, self.now))
        if counted:
            self.sent[shard, pane] = self.sent.get((shard, pane), 0) + weight

    def append_ticks(self) -> None:
        """Append a tick to every partition."""
        self.now += 1
        for records in self.log:
            records.append(Event(-1, 0, 0, False, self.now))

    def ends(self) -> dict[int, int]:
        """Return the end of each partition."""
        return {p: len(records) for p, records in enumerate(self.log)}

    def bounds(self) -> LogBounds:
        """Return what the log holds."""
        return LogBounds(events_id(self.topic), dict(self.first), self.ends())

    def create_anew(self) -> None:
        """Delete the topic, and create it under the same name."""
        self.lossless = False
        self.former.append([event for records in self.log for event in records])
        self.topic += 1
        self.log = [[] for _ in range(PARTITIONS)]
        self.first = dict.fromkeys(range(PARTITIONS), 0)
        self.seen = [{} for _ in range(PARTITIONS)]

    def take_away(self, partition: int, share: float) -> None:
        """Delete the oldest records of a partition: a share of those that are there."""
        self.lossless = False
        there = len(self.log[partition]) - self.first[partition]
        self.first[partition] += round(share * there)

    def is_gone(self, begin: Offsets, to: Offsets) -> bool:
        """Return whether some record of a range is no longer there."""
        return any(begin.get(p, 0) < min(n, to.get(p, 0)) for p, n in self.first.items())

    def complete_from(self) -> int:
        """Return the first pane of which the log holds every record: none comes before its time."""
        received = [
            records[n].received if n < len(records) else self.now + 1
            for n, records in zip(self.first.values(), self.log, strict=True)
            if n
        ]
        return -(-max(received, default=0) // PANE_LENGTH)

    def said_incomplete(self) -> int:
        """Return the first pane of which readers are not told that it may lack something."""
        return self._start.incomplete_before_ms if self._start else 0

    def decided(self) -> bool:
        """Return whether a person's decision to go on was not used up yet."""
        kinds = [record.kind for record in self.definitions]
        return kinds.count("adopt") > kinds.count("adopted")

    def received_through(self, at: Offsets) -> int:
        """Return the received time up to which everything lies before `at`."""
        return min(
            records[min(at.get(p, 0), len(records)) - 1].received if at.get(p, 0) and records else 0
            for p, records in enumerate(self.log)
        )

    # ── the definitions ─────────────────────────────────────────────────────
    def append_definition(self, record: Definition) -> int:
        """Append a record and return its offset."""
        offset = len(self.definitions)
        self.definitions.append(record)
        if record.kind == "start":
            before, self._start = self._start, self._behind(record.start_at(offset), self._start)
            self.counted.add(topic_of(self._start))
            self._check_start(self._start, before)
        return offset

    def _check_start(self, start: Start, before: Start | None) -> None:
        """Check that no start takes back what readers were told by the one before it."""
        if before is None:
            return
        if start.incomplete_before_ms < before.incomplete_before_ms:
            self.wrongs.append("I13: panes that lack something are said to be complete again")
        if start.epoch < before.epoch:
            self.wrongs.append("EPOCH: one that was over goes on")
        if topic_of(start) < topic_of(before):
            self.wrongs.append("FOREIGN: a log that is gone is said to be the one that is counted")

    def last_start(self) -> Start | None:
        """Return the latest start, as it holds behind those before it."""
        return self._start

    def activations(self, *, heed: bool = True) -> dict[int, Definition]:
        """Return by version its first activation that had the right to be written.

        Args:
            heed: Take the offsets of one that is of another log for what they are: nothing.
        """
        for record in self.definitions[self._folded :]:
            if record.kind == "start":
                self._latest = self._folded
            elif record.kind == "activation" and record.fence == self._latest:
                self._active.setdefault(record.vid, record)
            elif record.kind == "rebuild" and record.fence == self._latest:
                self._rebuilds[self._folded] = record
            elif record.kind == "takeover" and record.fence == self._latest:
                self._takeovers.setdefault(record.vid, record)
            elif record.kind == "stop" and record.fence == self._latest:
                self._stops.setdefault(record.vid, record)
            self._folded += 1
        return self._of_this_log(self._active) if heed else self._active

    def _of_this_log(self, records: dict[int, Definition]) -> dict[int, Definition]:
        """Return records; the offsets of one that is of another log say nothing of this one."""
        if not self.topic:
            return records
        return {
            n: one if one.topic == self.topic else one._replace(offsets={}, start={})
            for n, one in records.items()
        }

    def rebuilds(self) -> dict[int, Definition]:
        """Return the rebuild lanes that had the right to be written, by offset."""
        self.activations()
        return {n: one for n, one in self._rebuilds.items() if one.topic == self.topic}

    def takeovers(self) -> dict[int, Definition]:
        """Return by version the takeover that had the right to be written."""
        self.activations()
        return self._of_this_log(self._takeovers)

    def stops(self) -> dict[int, Definition]:
        """Return by version the stop that had the right to be written."""
        self.activations()
        return self._of_this_log(self._stops)

    def cuts(self) -> dict[int, Cuts]:
        """Return which panes each version counts; each version follows the one before it."""
        found: dict[int, Cuts] = {}
        taken = self.takeovers()
        for vid in self.versions():
            before = max((v for v in taken if v < vid), default=None)
            if vid in taken and before is not None:
                record = taken[vid]
                found[before] = found.get(before, Cuts())._replace(
                    end=record.cut, end_at=record.offsets
                )
                found[vid] = Cuts(record.cut, record.offsets)
        return found

    def versions(self) -> list[int]:
        """Return all versions defined so far."""
        return [n for n, record in enumerate(self.definitions) if record.kind == "version"]

    # ── Redis ───────────────────────────────────────────────────────────────
    def put(self, shard: int, image: Image) -> None:
        """Replace a shard's keys in one transaction."""
        self._remember()
        self.shards[shard] = image

    def append_record(self, record: Record) -> None:
        """Append to the stream of batch records."""
        self._remember()
        self.stream = (*self.stream, record)

    def last_record(self) -> tuple[int, int] | None:
        """Return epoch and revision of the newest entry of the stream."""
        return self.stream[-1][:2] if self.stream else None

    def _remember(self) -> None:
        self.before.append((tuple(self.shards), self.stream))
        if len(self.before) > REMEMBERED_WRITES:
            del self.before[0]

    def state(self, shard: int, lane: str) -> ShardState:
        """Return what S4 reads of a shard."""
        image = self.shards[shard]
        return ShardState(
            image.fence, image.marks.get(LIVE_LANE), image.marks.get(lane), image.token
        )

    # ── the checkpoint ──────────────────────────────────────────────────────
    def plan(self, planned: Planned | None) -> None:
        """Write to the checkpoint."""
        self.old_plans.append(self.planned)
        self.planned = planned


class Range(NamedTuple):
    """What one attempt wants: a link of a lane, as a driver made it."""

    attempt: Attempt
    epoch: int
    batch: int
    trim: int = 0
    corrects: bool = True


class BeyondLogError(Exception):
    """A range was planned that the log does not hold; Spark's query ends."""


Parts = dict[tuple[int, int], int]


def evaluate(
    world: World,
    begin: Offsets,
    to: Offsets,
    active: dict[int, Offsets],
    *,
    ledger: bool = True,
    cuts_at: Offsets | None = None,
) -> list[Parts]:
    """Return what a range of the log adds to the panes of each shard.

    Args:
        world: The world.
        begin: Where the range begins.
        to: Where it ends, exclusive.
        active: By version, the offsets from which it is counted.
        ledger: Count the ledger too; a backfill does not.
        cuts_at: Takeovers up to there have happened; None: up to where the range begins.
    """
    parts: list[Parts] = [{} for _ in range(SHARDS)]
    cuts = world.cuts()
    at = begin if cuts_at is None else cuts_at
    own = {vid: cuts.get(vid, Cuts()).at(at) for vid in active}
    stops = world.stops()
    for partition, records in enumerate(world.log):
        first = begin.get(partition, 0)
        if to.get(partition, 0) > len(records):
            raise BeyondLogError
        wanted = list(active)
        since = [active[vid].get(partition, 0) for vid in wanted]
        until = [stops[v].offsets.get(partition, 0) if v in stops else NO_END for v in wanted]
        for offset in range(max(first, world.first[partition]), to.get(partition, 0)):
            event = records[offset]
            if event.shard < 0:
                continue
            mine = parts[event.shard]
            if ledger:
                row = (LEDGER, int(event.counted))
                mine[row] = mine.get(row, 0) + 1
            if event.counted:
                for vid, begins, ends in zip(wanted, since, until, strict=True):
                    if begins <= offset < ends and event.pane in own[vid]:
                        key = (vid, event.pane)
                        mine[key] = mine.get(key, 0) + event.weight
    return parts
