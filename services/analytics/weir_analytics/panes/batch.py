"""What every task of a batch is told: which range of the log, for which lane, under which fence.

A batch is described by one frozen value. It reaches the Python workers as a
local property of the Spark job, not in a closure: so the functions of the plan
stay the same objects from batch to batch, are imported and not pickled, and the
plan does not have to be built again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pyspark import TaskContext
from weir.definitions.history import Horizons
from weir.horizons import longest_ms
from weir.kafka import Kafka, SaslMechanism, SecurityProtocol
from weir.names import LIVE_LANE
from weir_service.settings import read_kafka

from weir_analytics.panes.commit_job import Bound, Untold
from weir_analytics.panes.holes import Hole

PROPERTY = "weir.batch"
Offsets = Mapping[int, int]


@dataclass(frozen=True)
class Batch:
    """One range of the log, counted for one lane of commits.

    Attributes:
        start: First offset of each partition.
        end: One past the last offset of each partition.
        horizons: By what the range is counted; see `weir.horizons`.
        definitions_id: Kafka's id of `weir.definitions`, whose offset the fence is.
        lane: The chain of commits that the batch belongs to.
        lane_start: Where that chain begins, if it is not the live one.
        only: The shards to commit; None for all.
        copies: What is copied to quarantine of what cannot be used: not what was copied when
            the range was counted first, unless nobody can say that it was. A backfill copies
            what its versions cannot use.
        accounts: Whether ledger and types are counted too; not by a backfill.
        final_through_ms: Processed-through of the batch before: a part of a pane
            that was final by then is a correction. None: nothing is.
        untold: Panes of which none is told, since what stood there before was not shown.
        dry: Nothing is committed: a plan is tried. What the batch's shards hold is read all the
            same, and merged.
        recalls: Whether earlier records are known, which tell what is a duplicate.
        single: One task reads the range and commits everything: a small one, or one of several
            that are counted side by side. Else some tasks read, and task i of the writers
            commits shard i.
        bounds: Beyond which digests series of full panes are `other`; a driver that knows none
            makes the same panes.
        lost: Holes of the log, up to the batch's end, that are known and told: nobody looks for
            their records.
        cut_epoch: The epoch that began when the log had lost its end; 0: it never has. Dedup runs
            from before are of records that are gone, and are kept under another name.
        trim_outbox: By shard, the last outbox entry that a batch record holds.
        secrets_dir: Where a worker reads the passwords of Redis and Kafka; they are never sent
            along.
    """

    topic: str
    topic_id: str
    definitions_id: str
    epoch: int
    fence: int
    number: int
    start: Offsets
    end: Offsets
    shards: int
    horizons: tuple[Horizons, ...]
    kafka_bootstrap: str
    redis_url: str
    dedup_dir: str
    kafka_security_protocol: SecurityProtocol = "PLAINTEXT"
    kafka_sasl_mechanism: SaslMechanism | None = None
    lane: str = LIVE_LANE
    lane_start: Offsets = field(default_factory=dict)
    only: tuple[int, ...] | None = None
    copies: Literal["all", "values", "none"] = "all"
    accounts: bool = True
    final_through_ms: int | None = None
    untold: tuple[Untold, ...] = ()
    dry: bool = False
    recalls: bool = True
    single: bool = True
    bounds: tuple[Bound, ...] = ()
    lost: tuple[Hole, ...] = ()
    cut_epoch: int = 0
    trim_outbox: Mapping[int, int] = field(default_factory=dict)
    secrets_dir: str | None = None

    @property
    def horizon_ms(self) -> int:
        """Return how far back an earlier record is looked for, of any record of the range."""
        return longest_ms(self.horizons)

    @property
    def records(self) -> int:
        """Return how many records the range holds."""
        return sum(end - self.start.get(p, 0) for p, end in self.end.items())

    @property
    def kafka(self) -> Kafka:
        """Return how a worker reaches Kafka."""
        folder = Path(self.secrets_dir) if self.secrets_dir is not None else None
        return _kafka(
            self.kafka_bootstrap, self.kafka_security_protocol, self.kafka_sasl_mechanism, folder
        )

    def committed_shards(self) -> tuple[int, ...]:
        """Return the shards that this batch commits."""
        return tuple(range(self.shards)) if self.only is None else self.only

    def to_json(self) -> str:
        """Return the batch as one line of text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Batch:
        """Read what `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        for name in ("start", "end", "lane_start", "trim_outbox"):
            fields[name] = {int(p): offset for p, offset in fields[name].items()}
        for one in fields["horizons"]:
            one["begin"] = {int(p): offset for p, offset in one["begin"].items()}
        fields["horizons"] = tuple(Horizons(**one) for one in fields["horizons"])
        only = fields["only"]
        fields["only"] = None if only is None else tuple(only)
        fields["bounds"] = tuple(Bound(*one) for one in fields["bounds"])
        fields["untold"] = tuple(Untold(*one) for one in fields["untold"])
        fields["lost"] = tuple(Hole(*one) for one in fields["lost"])
        return cls(**fields)


def to_property(batches: Sequence[Batch]) -> str:
    """Return what the tasks of a job are told: one batch, or one for each task."""
    return "\n".join(batch.to_json() for batch in batches)


# Files are read once a process: for each record that is copied somebody asks.
_kafka = cache(read_kafka)


def current_batch() -> Batch:
    """Return the batch that the running task belongs to, or counts whole.

    Raises:
        RuntimeError: If the driver did not name one.
    """
    context = TaskContext.get()
    text = context.getLocalProperty(PROPERTY) if context is not None else None
    if context is None or not text:
        msg = f'a task of the plan must run under the local property "{PROPERTY}", which is not set'
        raise RuntimeError(msg)
    batches = text.split("\n")
    return Batch.from_json(batches[context.partitionId() if len(batches) > 1 else 0])
