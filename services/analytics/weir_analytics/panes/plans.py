"""Which plan a batch runs: made when the definitions change, not when a batch comes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import structlog
from pyspark import RDD
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.util import _load_from_socket
from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.definitions.history import Horizons
from weir.erasure import ErasuresMemo
from weir.horizons import horizons_of, horizons_within

from weir_analytics.panes.activation import awaited
from weir_analytics.panes.arrow_plan import AnyPlan, ArrowPlan, make_plan
from weir_analytics.panes.batch import PROPERTY, Batch, Offsets, to_property
from weir_analytics.panes.countable import Countable
from weir_analytics.panes.dataflow import dataflow, read_dataflow, small_rows
from weir_analytics.panes.erased import Erased
from weir_analytics.panes.passing import TrialError
from weir_analytics.panes.plan import KEPT, Counted, beyond_from
from weir_analytics.panes.versions import PROPERTY as VERSIONS_PROPERTY
from weir_analytics.panes.versions import versions_to_json

LOG = structlog.get_logger()


class Counting(NamedTuple):
    """What a plan counts.

    Attributes:
        versions: The versions.
        guarded: Whether the range lies only partly in the span of one of them.
        erased: (tenant, hash of the subject) of those whose events count no more.
        horizons: By what the range is counted; see `weir.horizons`.
        later: The same as `erased` of those who were erased after what is counted again.
    """

    versions: tuple[Counted, ...]
    guarded: bool
    erased: frozenset[tuple[str, str]]
    horizons: tuple[Horizons, ...]
    later: frozenset[tuple[str, str]] = frozenset()


@dataclass
class Plans:
    """The plans of the definitions as folded so far.

    Attributes:
        topic_id: Kafka's id of the log that is counted.
        usual: By what is counted before any driver has said so.
        warm: Called with a new plan before the first batch that uses it.
        shards: How many shards there are.
        hash_key: The installation's key: by it the erased are known.
        columns: Whether plans are to be of Spark's columns.
        made: Plans by what they count, the one asked for last at the end; outlives a driver's
            lives. The thread between batches makes some of them.
    """

    definitions: Definitions
    topic_id: str
    usual: Horizons
    warm: Callable[[AnyPlan], None]
    shards: int = 1
    hash_key: bytes = field(default=b"", repr=False)
    columns: bool = False
    made: dict[tuple[object, ...], AnyPlan] = field(default_factory=dict)
    _keeping: threading.Lock = field(default_factory=threading.Lock)
    _in_use: tuple[object, ...] | None = None
    _erasures: ErasuresMemo = field(init=False)
    _countable: FoldMemo[Countable] = field(init=False)

    def __post_init__(self) -> None:
        topic_id = self.topic_id
        self._erasures = ErasuresMemo(topic_id)
        self._countable = FoldMemo(lambda fold: Countable(fold, topic_id))

    def versions_for(self, start: Offsets, end: Offsets) -> Counting:
        """Return the versions that a range of the log is counted for.

        A predecessor whose panes have become too old is one of them until its stop is recorded:
        if it went by the time that has passed, a batch would have to make the plan without it.
        """
        known = self._countable.of(self.definitions).counted(0, start)
        return self._within(known, start, end)

    def rebuilding(self, start: Offsets, end: Offsets, at: Offsets, through_s: int) -> Counting:
        """Return what a range is counted for again, once live counting stands at `at`.

        The account as it was; but no version is given again what is about somebody erased since.
        """
        known = self._countable.of(self.definitions).rebuilt(through_s, at)
        counting = self._within(known, start, end)
        tenants = {one.version.tenant for one in counting.versions}
        others = self._erasures.of(self.definitions).subjects - counting.erased
        later = frozenset(one for one in others if one[0] in tenants)
        return counting._replace(later=later)

    def _within(self, known: Iterable[Counted], start: Offsets, end: Offsets) -> Counting:
        """Return what a range is counted for: the versions whose span it lies in."""
        versions: list[Counted] = []
        guarded = False
        for one in known:
            covered = one.version.covers(start, end)
            if covered is not False:
                versions.append(one)
                guarded = guarded or covered is None
        if not guarded:
            versions = [replace(one, version=one.version.within) for one in versions]
        erased, horizons = self.erased(start, end), self.horizons(start, end)
        return Counting(tuple(map(self._gapped, versions)), guarded, erased, horizons)

    def _gapped(self, one: Counted) -> Counted:
        """Return a version, and whether rows are taken out of its panes for an erasure.

        That is done of who has a successor, and only once that one is counted without them. Live
        counting and lanes must go by the same, or a series would have a place by each.
        """
        version, newest = one.version, self._erasures.of(self.definitions).newest
        if not version.cut_until or newest.get(version.tenant, version.vid) <= version.vid:
            return one
        return replace(one, version=replace(version, gapped=True))

    def erased(self, start: Offsets, end: Offsets) -> frozenset[tuple[str, str]]:
        """Return (tenant, hash) of the subjects without whom a range is counted.

        Where it has nothing of a partition, it does not matter on which side of an erasure it ends.
        """
        upto = {p: n for p, n in end.items() if start.get(p, 0) < n}
        return self._erasures.of(self.definitions).within(upto)

    def horizons(self, start: Offsets, end: Offsets) -> tuple[Horizons, ...]:
        """Return by what a range of the log is counted."""
        known = horizons_of(self.definitions, self.topic_id)
        return horizons_within(known or (self.usual,), start, end)

    def soon(self, at: Offsets, vids: Container[int] | None = None) -> Counting:
        """Return what ranges from some offsets on are counted for once those that wait have begun.

        Args:
            at: The offsets.
            vids: Which of those that wait; None: all.
        """
        now = self.versions_for(at, {p: n + 1 for p, n in at.items()})
        begun = (
            one for one in awaited(self.definitions) if vids is None or one.version.vid in vids
        )
        return now._replace(versions=(*now.versions, *begun))

    def after(self, definitions: Definitions) -> Plans:
        """Return what would be counted by other definitions; the plans made are the same."""
        found = replace(self, definitions=definitions)
        found._erasures = self._erasures
        return found

    def is_made(self, counting: Counting) -> bool:
        """Tell whether a batch would find its plan."""
        with self._keeping:
            return _key(counting) in self.made

    def filling(self, start: Offsets, end: Offsets, at: Offsets, vids: Iterable[int]) -> Counting:
        """Return what a backfill counts of a range, once live counting stands at `at`.

        Some versions, without anybody who was ever erased.
        """
        erased = self._erasures.of(self.definitions).subjects
        versions = map(self._gapped, self._countable.of(self.definitions).filling(vids, at))
        return Counting(tuple(versions), False, erased, self.horizons(start, end))

    def prove(self) -> None:
        """Make a plan of nobody's metrics and run it on nothing: whether Spark makes any.

        Raises:
            Exception: Whatever keeps it from that; no definition does.
        """
        self.warm(make_plan((), (self.usual,), shards=self.shards, columns=self.columns))

    def plan_of(self, counting: Counting, *, in_use: bool = False) -> AnyPlan:
        """Return the plan that counts some versions; it is made if there is none yet.

        Args:
            counting: What it counts.
            in_use: A batch asks, and so will the next one: the plan is kept, whatever plans are
                made beside it until another is in use.
        """
        key = _key(counting)
        if in_use:
            self._in_use = key
        found = self._kept(key)
        if found is None:
            versions, guarded, erased, horizons, later = counting
            gone = Erased(erased, self.hash_key, later) if erased or later else None
            found = make_plan(
                versions,
                horizons,
                guarded=guarded,
                erased=gone,
                shards=self.shards,
                columns=self.columns,
            )
            vids = [one.version.vid for one in versions]
            LOG.info("plan_made", versions=vids, guarded=guarded, awaited=in_use)
            self.warm(found)
            self._keep(key, found)
        return found

    def drop(self, counting: Counting) -> None:
        """Keep a plan no longer that failed when it was tried, unless it is in use."""
        key = _key(counting)
        with self._keeping:
            if key != self._in_use:
                self.made.pop(key, None)

    def _kept(self, key: tuple[object, ...]) -> AnyPlan | None:
        with self._keeping:
            found = self.made.pop(key, None)
            if found is not None:
                self.made[key] = found
        return found

    def _keep(self, key: tuple[object, ...], plan: AnyPlan) -> None:
        """Keep a plan; the one that nobody has asked for the longest goes, if it is not in use."""
        with self._keeping:
            self.made[key] = plan
            idle = [one for one in self.made if one not in (key, self._in_use)]
            for one in idle[: max(0, len(self.made) - KEPT)]:
                del self.made[one]


def _key(counting: Counting) -> tuple[object, ...]:
    """Return what tells plans apart."""
    versions, guarded, erased, horizons, later = counting
    beyond = repr(beyond_from(horizons))  # another dedup horizon needs no other plan
    return (guarded, erased, beyond, later, *(repr(one.version) for one in versions))


def run(spark: SparkSession, log: DataFrame | None, plan: AnyPlan, batch: Batch) -> list[str]:
    """Run one batch; return the report of each task.

    Args:
        spark: The session.
        log: The batch's range as Spark's source reads it; None: the tasks read it themselves,
            as they always do of a small one.
        plan: What is counted.
        batch: The range, and where it is committed.

    Raises:
        ValueError: If a large batch comes without its frame.
    """
    if batch.single:
        return run_beside(spark, plan, [batch])
    _tell(spark, plan, [batch])
    if log is not None:
        frame = dataflow(log, plan, batch)
    elif isinstance(plan, ArrowPlan):
        frame = read_dataflow(spark, plan, batch)
    else:
        msg = f"a plan of columns must be given {batch.records} records as a frame, got none"
        raise ValueError(msg)
    return [row.report for row in frame.collect()]


def run_beside(spark: SparkSession, plan: AnyPlan, batches: Sequence[Batch]) -> list[str]:
    """Run one small batch, or one of each of several lanes at a time; return each one's report.

    A task counts all of its range and commits it, so that nobody waits for another one: only at
    the end, until the last is done. Two that commit to one shard see each other by its token.

    Args:
        spark: The session.
        plan: What is counted; of more than one batch a plan in Arrow.
        batches: Their ranges, each with a lane of its own.
    """
    _tell(spark, plan, batches)
    rows = small_rows(spark, plan, len(batches))
    return [row.report for row in _collected(rows, len(batches))]


def _tell(spark: SparkSession, plan: AnyPlan, batches: Sequence[Batch]) -> None:
    context = spark.sparkContext
    context.setLocalProperty(PROPERTY, to_property(batches))
    context.setLocalProperty(VERSIONS_PROPERTY, versions_to_json(plan.versions))


def _collected(rows: RDD[Row], partitions: int) -> list[Row]:
    """Collect an RDD, in the order of its partitions, as `SparkContext.runJob` does by itself.

    What `RDD.collect` runs holds the RDD itself, and Spark writes all of the plan twice, 20 ms,
    to see whether that can be sent; what this runs holds nothing.
    """
    context = rows.context
    told = context._jvm.PythonRDD.runJob(context._jsc.sc(), rows._jrdd, list(range(partitions)))  # type: ignore[union-attr]
    with _load_from_socket(told, rows._jrdd_deserializer) as found:
        return list(found)


def first_words(error: BaseException) -> str:
    """Return an error's kind and what it says first, for those who read of it.

    Without the numbers that Spark and Py4J give things, which are others each time.
    """
    if isinstance(error, TrialError):
        return str(error)[:300]
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip(": ")]
    said = [line for line in lines if not line.startswith("An error occurred while calling")]
    words = f"{type(error).__name__}: {(said or lines or [''])[0]}"
    return re.sub(r"#\d+L?", "", words)[:300]
