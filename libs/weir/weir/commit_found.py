"""What a starting driver finds, and what it has to do: shapes, no decisions.

`commit_recovery.py` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weir.commit import Mark, Offsets, Verdict
from weir.definitions.cut_short import CutShort


@dataclass(frozen=True, slots=True)
class Planned:
    """The batch that a Spark checkpoint planned last.

    Attributes:
        batch: Its number.
        from_offsets: Where it begins.
        to_offsets: Where it ends, exclusive.
        committed: Whether Spark noted it as done.
    """

    batch: int
    from_offsets: Offsets
    to_offsets: Offsets
    committed: bool


@dataclass(frozen=True, slots=True)
class LogBounds:
    """What the log holds, read after the marks.

    Attributes:
        topic_id: Kafka's id of `weir.events`.
        start: First offset of each partition that is still there.
        end: The offset that the next record will get.
    """

    topic_id: str
    start: Offsets
    end: Offsets


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that a starting driver found.

    Attributes:
        marks: The live mark of each shard, None where there is none.
        checkpoint: What the checkpoint planned last; None if there is none.
        log: What the log holds.
        epoch: The epoch that the driver would go on with.
        last_record: Epoch and revision of the newest batch record, None if none.
        adopt: A human has decided to go on without what is gone.
        first_ever: No driver has ever started: the log is counted from its start.
        counted_id: Kafka's id of the log that the last epoch counted; None if it is not known.
        near: Ten minutes of log before where counting was furthest: a shard that stands
            behind it is not levelled, live counting does not wait that long. None: all are.
        cuts: Where the log ended each time that it had lost its end and was gone on with.
        said: The furthest places of the log that the definitions say something of.
    """

    marks: Sequence[Mark | None]
    checkpoint: Planned | None
    log: LogBounds
    epoch: int
    last_record: tuple[int, int] | None
    adopt: bool = False
    first_ever: bool = False
    counted_id: str | None = None
    near: Offsets | None = None
    cuts: Sequence[CutShort] = ()
    said: Offsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Level:
    """A range of the log that one shard must count before live counting goes on.

    Attributes:
        shard: The shard.
        from_offsets: Where its mark stands.
        to_offsets: Where its mark will stand.
        read_from: Where reading begins: `from_offsets`, or the log's start if that
            is later.
    """

    shard: int
    from_offsets: Offsets
    to_offsets: Offsets
    read_from: Offsets


@dataclass(frozen=True, slots=True)
class Gap:
    """Records that the log has lost and some shard will never hold.

    It had not counted them, or it counts the log again from its start.

    Attributes:
        partition: Where.
        first: First offset lost.
        last: Last offset lost.
        shards: The shards that do not hold them.
    """

    partition: int
    first: int
    last: int
    shards: tuple[int, ...]

    @property
    def count(self) -> int:
        """Return how many offsets are gone."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a starting driver has to do, in the order of the fields.

    Attributes:
        verdict: OK, LOST, BEHIND, REWIND or FOREIGN.
        reason: Why, for the log and the start record, in one sentence.
        new_epoch: A start record that opens an epoch is needed first, and its fence
            in every shard.
        clear: Shards whose keys are deleted, before their marks are set to `target`.
        rebuild: Those of them for which lanes count the log up to `target` again.
        levels: What single shards count before live counting goes on.
        bridges: What lanes count for single shards while live counting goes on at `target`.
        keep_checkpoint: Else it is renamed and a new one begins at `target`.
        target: Where live counting goes on, or where the kept checkpoint's shards
            stand furthest.
        gaps: What the log lost.
        given_up: Some of that was counted, of another log or of the end of one that was cut
            short: it may lie in any pane up to now.
        cut_short: The log ends before places that were known: what was said of them is to stand
            at its end, and no dedup run of it is to be used any more.
    """

    verdict: Verdict
    reason: str
    new_epoch: bool = False
    clear: tuple[int, ...] = ()
    rebuild: tuple[int, ...] = ()
    levels: tuple[Level, ...] = ()
    bridges: tuple[Level, ...] = ()
    keep_checkpoint: bool = False
    target: Offsets | None = None
    gaps: tuple[Gap, ...] = ()
    given_up: bool = False
    cut_short: bool = False
