"""What the fold of `weir.definitions` knows: versions, starts, activations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final, Literal

from weir.definitions.base import DefinitionModel
from weir.definitions.check import check
from weir.definitions.metric import Metric
from weir.problems import ProblemError

NO_START: Final = -1
"""What a start names that none came before."""

_TEXTS: Final = 1_024
"""Of so many texts the models are kept beside those of versions."""


@dataclass(frozen=True)
class Definition:
    """One version of a definition, as its record says.

    Attributes:
        vid: Offset of the record; of a metric, what its panes are stored under.
        tenant: Whose it is.
        kind: Its kind.
        name: Its name.
        version: Counts its edits from 1.
        based_on: The version before; None for the first.
        op: Whether it was written or deleted.
        text: As it was written; empty for a deletion.
        by: Who wrote it.
        at_ms: When, by the writer's clock.
    """

    vid: int
    tenant: str
    kind: str
    name: str
    version: int
    based_on: int | None
    op: Literal["put", "delete"]
    text: str
    by: str
    at_ms: int

    @property
    def place(self) -> tuple[str, str, str]:
        """Tenant, kind and name: what it is a version of."""
        return (self.tenant, self.kind, self.name)

    @property
    def deleted(self) -> bool:
        """Whether this version took the definition away."""
        return self.op == "delete"

    @cached_property
    def model(self) -> DefinitionModel:
        """The definition, typed; parsed when first asked for.

        Raises:
            ProblemError: If it is deleted, or if this release cannot read it, as may
                be with one that a later release wrote.
        """
        return _model_of(self.kind, self.name, self.text)

    @cached_property
    def readable(self) -> DefinitionModel | None:
        """The definition, typed; None if it is deleted, or unreadable here."""
        if self.deleted:
            return None
        try:
            return self.model
        except ProblemError:
            return None

    @cached_property
    def metric(self) -> Metric | None:
        """The metric; None if it is of another kind, deleted, or unreadable here."""
        model = self.readable if self.kind == "metric" else None
        return model if isinstance(model, Metric) else None


@lru_cache(_TEXTS)
def _model_of(kind: str, name: str, text: str) -> DefinitionModel:
    """Return what a text says; who is counted again for an erasure has the same one each day."""
    return check(kind, name, text, stored=True).model


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a driver.

    Attributes:
        fence: Offset of its record.
        job: Which job.
        epoch: The life of the state that it goes on with or begins.
        instance: Which process.
        shards: Over how many shards series are spread.
        reason: `start`, `lost`, `behind` or `rewind`.
        incomplete_before_ms: Panes that start earlier are incomplete; 0: none.
        at_ms: When, by the driver's clock.
        horizon_ms: The dedup horizon that it is set to; 0: it did not say.
        beyond_ms: The age from which events are to be beyond the horizon; 0: it did not say.
            From where both hold, `Horizons` say.
        tenant_bytes: What all metrics of a tenant may take together: no version begins beyond
            it; None: it did not say.
        events_id: Kafka's id of the log that the epoch counts; None: it did not say.
        cut_short: Where that log ended, if it had lost its end; see `cut_short.py`.
        follows: The fence of the start that its driver had read last, `NO_START` if there was
            none; None: it did not say.
        overtaken: Whether another one stands between the two.
    """

    fence: int
    job: str
    epoch: int
    instance: str
    shards: int
    reason: str
    incomplete_before_ms: int
    at_ms: int
    horizon_ms: int = 0
    beyond_ms: int = 0
    tenant_bytes: int | None = None
    events_id: str | None = None
    cut_short: Mapping[int, int] | None = None
    follows: int | None = None
    overtaken: bool = False

    def behind(self, before: Start | None) -> Start:
        """Return a start as it holds behind the one before it.

        Whoever slept between what it had read and its record has decided by what is no more so:
        what was said since would be taken back. Such a start is a fence and no more; its driver
        begins again. What was said to be incomplete stays so, whoever did not know.
        """
        if before is None:
            return self
        least_ms = max(self.incomplete_before_ms, before.incomplete_before_ms)
        if self.follows in (None, before.fence):
            return replace(self, incomplete_before_ms=least_ms)
        return replace(
            before,
            fence=self.fence,
            instance=self.instance,
            reason=self.reason,
            incomplete_before_ms=least_ms,
            at_ms=self.at_ms,
            cut_short=None,
            follows=self.follows,
            overtaken=True,
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """Over how many partitions a log is spread, from when on.

    Attributes:
        partitions: How many; their numbers begin at 0.
        topic_id: Kafka's id of the log.
        at_ms: When a driver met them, by its clock.
    """

    partitions: int
    topic_id: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Horizons:
    """By what records of the log are counted, from recorded offsets on.

    Attributes:
        begin: Partition -> first offset; a partition that is missing begins at 0.
        horizon_ms: The dedup horizon.
        beyond_ms: Events older than this when received are beyond the horizon.
        topic_id: Kafka's id of the log that the offsets are of.
    """

    begin: Mapping[int, int]
    horizon_ms: int
    beyond_ms: int
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class Activation:
    """From where, and up to where, a version of a metric is counted.

    Attributes:
        vid: The version.
        tenant: Its tenant.
        name: Its name.
        version: Its number.
        offset: Offset of the activation's own record.
        begin: Partition -> first offset counted; a partition that is missing begins at 0.
        finish: Partition -> offset before which counting ended; None while it goes on.
        after: The vid that it follows; None if there is none.
        cut: Resolution in seconds -> start in seconds of its first own pane.
        from_start: No event of the log lies before `begin`.
        fills: A lane counts what lies before `begin`.
        takeover: From where on it serves, if it is one that fills; None before that.
        topic_id: Kafka's id of the log that the offsets are of; empty: it was not said.
    """

    vid: int
    tenant: str
    name: str
    version: int
    offset: int
    begin: Mapping[int, int]
    finish: Mapping[int, int] | None
    after: int | None
    cut: Mapping[int, int] | None
    from_start: bool
    fills: bool = False
    takeover: TakenOver | None = None
    topic_id: str = ""

    @property
    def serves(self) -> bool:
        """Whether its panes may be shown: at once, or once it was filled from the log."""
        return not self.fills or self.takeover is not None

    def is_of(self, topic_id: str) -> bool:
        """Tell whether the offsets are of a log; those of another one mean nothing there."""
        return self.topic_id in ("", topic_id)


@dataclass(frozen=True, slots=True)
class TakenOver:
    """That a version was filled from the log and serves.

    Attributes:
        offset: Offset of the takeover's own record.
        offsets: Partition -> offset: to events from there on the cut applies.
        complete_from_ms: Panes that start earlier are incomplete; 0: none.
        topic_id: Kafka's id of the log that the offsets are of; empty: it was not said.
    """

    offset: int
    offsets: Mapping[int, int]
    complete_from_ms: int
    topic_id: str = ""

    def is_of(self, topic_id: str) -> bool:
        """Tell whether the offsets are of a log; those of another one mean nothing there."""
        return self.topic_id in ("", topic_id)


@dataclass(frozen=True, slots=True)
class Lane:
    """A range of the log that is counted beside the live one.

    Attributes:
        offset: Offset of its record, which is its name.
        fence: The driver start that opened it.
        kind: `backfill` or `rebuild`.
        topic_id: Kafka's id of the `weir.events` that its offsets are of.
        vids: The versions that a backfill counts.
        shards: The shards that a rebuild counts for.
        start: Partition -> first offset.
        end: Partition -> offset after the last.
        until_ms: All its records were received before this instant.
        complete_from_ms: Panes that start earlier may lack events; 0: none.
        copies: Whether a rebuild copies to quarantine what cannot be used.
    """

    offset: int
    fence: int
    kind: Literal["backfill", "rebuild"]
    topic_id: str
    vids: tuple[int, ...]
    shards: tuple[int, ...]
    start: Mapping[int, int]
    end: Mapping[int, int]
    until_ms: int
    complete_from_ms: int
    copies: bool = False

    @property
    def name(self) -> str:
        """What it is called in keys."""
        return str(self.offset)

    @property
    def records(self) -> int:
        """How many records of the log it spans."""
        return sum(end - self.start.get(p, 0) for p, end in self.end.items())


@dataclass(frozen=True, slots=True)
class ActiveMetric:
    """A version of a metric that is being counted."""

    definition: Definition
    activation: Activation
    metric: Metric
