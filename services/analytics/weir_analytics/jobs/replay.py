"""Replay: records that were quarantined whole go back into `weir.events`, once each.

What is put back carries its origin (`weir-origin`), its own event time and the identity
that it always had, and is counted like any other event. It is put back once:

- A note in `weir.quarantine`, under the key of the copy, says that it was. It is written
  when the log has confirmed the event, and outlives the copy. A rebuild copies the record once
  more, though, and that copy outlives the note: of what was received before retention began to
  leave records nobody knows, and it stays where it is.
- A crash may fall between the two. So a job records where the log ended before it put
  anything back, and whoever begins it again first reads the origins that stand behind
  that, and writes their notes.
- A driver that was paused looks whether another one has started before it puts anything
  back. If it is paused right behind that look, both records have one identity and one key:
  within the horizon the second is a duplicate.

The log is gone through for a bounded number of origins at a time (`origins.py`): for what is
asked for, for what of that was put back, and for the rest.

Earlier releases copied a bounded number of the records that look like events and are none; how
many more there were is told (`not_copied`), since only their sender can bring them back.

An event about somebody who was erased is not put back: nothing of it is to be kept anew.

The partition of an event is chosen as ingest does (murmur2); no transactions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from confluent_kafka import KafkaException, Message
from weir import names
from weir.admission import Admitted
from weir.clock import Clock
from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.definitions.history import Definition
from weir.definitions.job import Job, Replay
from weir.definitions.jobs import JobState
from weir.erasure import Subjects, erasures
from weir.event import read_event

from weir_analytics.jobs.mended import Whole, is_wanted, mended, whole_of
from weir_analytics.jobs.origins import Found, Origins
from weir_analytics.jobs.task import Outcome, Progress
from weir_analytics.jobs.walk import Walk
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.history import headers_of
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.quarantine import event_owner
from weir_analytics.panes.stored import StoredWriter
from weir_analytics.settings import Settings

FLUSH_S: Final = 30.0
CUT: Final = "cut"
"""Among what is still of no use: only the beginning of the record was kept."""
ERASED: Final = "erased"
"""The same: it is about somebody who was erased, and stays where it is."""
FORGOTTEN: Final = "forgotten"
"""The same: it may have been put back, so long ago that the note of it may be gone."""
MOST_ORIGINS: Final = 500_000
"""How many are held at a time, by all replays that are under way."""
# Readings of the log for a share of the origins.
_WALKS: Final = 3

_Stage = tuple[Walk, Callable[[Sequence[Message]], None]]


class ReplayTask:
    """One replay under way."""

    goes_on: ClassVar = False

    def __init__(
        self, settings: Settings, asked: Definition, wanted: Replay, share: float = 1.0
    ) -> None:
        """Begin with nothing read; `share` is what it may hold of what all replays may."""
        self.stopping = False
        self._settings, self._asked, self._wanted = settings, asked, wanted
        self._back: PutBack | None = None
        self._cycle: Cycle | None = None
        self._stages: Iterator[_Stage] = iter(())
        self._stage: _Stage | None = None
        self._past = Progress(0, 0)
        self._most_origins = int(MOST_ORIGINS * share)
        self._origins = Origins(self._most_origins)
        # Origins that stand in the log again, and have no note as far as is known.
        self._unnoted: set[str] = set()
        self._in_order = False
        # By partition, from when on `weir.quarantine` has every note; 0: it never lost one.
        self._noted_since_ms: dict[int, int] = {}
        self._put = self._already = 0
        self._still: Counter[str] = Counter()
        # Of the copies that say that more have none: the newest of each origin counts.
        self._not_copied: dict[str, int] = {}
        self._erased = FoldMemo(lambda fold: _erased(fold, asked.tenant, settings.hash_key))

    @property
    def progress(self) -> Progress:
        """Return how many records were looked at, of all to look at as far as is known."""
        if self._stage is None:
            return self._past
        here = self._stage[0].progress
        later = _WALKS * self._origins.later * here.of
        return Progress(self._past.at + here.at, self._past.of + here.of + later)

    @property
    def held(self) -> int:
        """How many origins are held."""
        return len(self._origins) + len(self._unnoted)

    def facts(self, cycle: Cycle) -> Mapping[str, Any]:
        """Return what is to be looked at, and where the log ended before."""
        kafka = self._settings.kafka
        copies = LogOffsets(kafka, names.QUARANTINE)
        quarantine_id = copies.topic_id()
        low, high = copies.ends()
        if self._wanted.since is not None:
            # A copy is appended after its record was received.
            since = copies.at(self._wanted.since, high)
            low = {p: max(n, since[p]) for p, n in low.items()}
        _first, end = LogOffsets(kafka, names.EVENTS).ends()
        topic_id = cycle.footing.events_id
        begin = unfinished(cycle.stores.definitions.fold, self._asked.tenant, end, topic_id)
        named = {"low": _named(low), "high": _named(high), "begin": _named(begin)}
        return {**named, "topic_id": topic_id, "quarantine_id": quarantine_id}

    def begin(self, cycle: Cycle, facts: Mapping[str, Any]) -> None:
        """Open the first reading."""
        low, high = (_numbered(facts[name]) for name in ("low", "high"))
        begin = _begin_of(facts, cycle.footing.events_id)
        self._cycle = cycle
        self._back = PutBack(self._settings, self._asked.vid)
        self._stages = self._readings(cycle.clock, low, high, begin)
        self._stage = next(self._stages, None)

    def _readings(
        self,
        clock: Clock,
        low: Mapping[int, int],
        high: Mapping[int, int],
        begin: Mapping[int, int],
    ) -> Iterator[_Stage]:
        """Yield one reading after the other, each with what takes its records."""
        kafka = self._settings.kafka
        copies = LogOffsets(kafka, names.QUARANTINE)
        _first, end = LogOffsets(kafka, names.EVENTS).ends()
        yield Walk(kafka, names.EVENTS, begin, end), self._find_put_back
        while True:
            yield Walk(kafka, names.QUARANTINE, low, high), self._find_asked
            oldest, noted = copies.ends()
            yield Walk(kafka, names.QUARANTINE, oldest, noted), self._find_noted
            self._noted_since_ms = copies.deleted_before_ms(clock.now_ms())
            self._note_unnoted()
            self._in_order = True
            yield Walk(kafka, names.QUARANTINE, low, high), self._look_into
            if not self._origins.next_share():
                return

    def step(self, cycle: Cycle, is_over: Callable[[], bool]) -> Outcome | None:
        """Go on reading; what is found in a slice is in the log again when it returns.

        Raises:
            VerdictError: FENCED if another driver has started.
        """
        del cycle
        while self._stage is not None and not (self.stopping and self._in_order):
            walk, take = self._stage
            if not walk.each(take, is_over):
                return None
            done = walk.progress.of
            walk.close()
            self._past = Progress(self._past.at + done, self._past.of + done)
            self._stage = None
            self._stage = next(self._stages, None)
        return self._outcome()

    def close(self) -> None:
        """Close the connection; everything that was sent has been confirmed."""
        if self._stage is not None:
            self._stage[0].close()

    def _outcome(self) -> Outcome:
        told = "would_replay" if self._wanted.dry_run else "replayed"
        return {
            told: self._put,
            "already": self._already,
            "still": dict(sorted(self._still.items())),
            "not_copied": sum(self._not_copied.values()),
            "dry_run": self._wanted.dry_run,
        }

    # ── what was done before ────────────────────────────────────────────────

    def _find_put_back(self, messages: Sequence[Message]) -> None:
        for message in messages:
            origin = origin_of(dict(headers_of(message) or ()))
            if origin is None or event_owner(message.value())[0] != self._asked.tenant:
                continue
            self._unnoted.add(origin)
        over = len(self._unnoted) - self._most_origins
        if over > 0:
            # Some may have a note; a second one says the same.
            self._note({self._unnoted.pop() for _ in range(over)})

    def _find_noted(self, messages: Sequence[Message]) -> None:
        for message in messages:
            headers = dict(headers_of(message) or ())
            origin = origin_of(headers)
            if names.HEADER_REPLAYED in headers and origin is not None:
                self._origins.put_back(origin)
                self._unnoted.discard(origin)

    def _note_unnoted(self) -> None:
        for origin in self._unnoted:
            self._origins.put_back(origin)
        if self._unnoted:
            self._note(self._unnoted)
        self._unnoted = set()

    # ── what is asked for ───────────────────────────────────────────────────

    def _asked_for(self, messages: Sequence[Message]) -> Iterator[tuple[int, Whole]]:
        for message in messages:
            copy = whole_of(dict(headers_of(message) or ()), message.value())
            if copy is not None and is_wanted(self._wanted, self._asked.tenant, copy):
                yield message.partition() or 0, copy

    def _find_asked(self, messages: Sequence[Message]) -> None:
        for _partition, copy in self._asked_for(messages):
            self._origins.ask(copy.origin)
            self._not_copied.pop(copy.origin, None)
            if copy.left_out:
                self._not_copied[copy.origin] = copy.left_out

    def _look_into(self, messages: Sequence[Message]) -> None:
        put: dict[str, Admitted] = {}
        for partition, copy in self._asked_for(messages):
            found = self._origins.judge(copy.origin)
            if found is Found.BACK:
                self._already += 1
            elif found is Found.ASKED and copy.at_ms < self._noted_since_ms.get(partition, 0):
                self._still[FORGOTTEN] += 1
            elif found is Found.ASKED:
                self._judge(copy, put)
            # A batch that ran again has copied again, or it is of another share.
        if put and not self._wanted.dry_run and self._back is not None:
            self._check_fence()
            self._back.put(put)
            self._note(put)
        self._put += len(put)

    def _judge(self, copy: Whole, put: dict[str, Admitted]) -> None:
        found = mended(copy)
        if copy.is_cut:
            self._still[CUT] += 1
        elif not isinstance(found, Admitted):
            self._still[found.reason.value] += 1
        elif self._is_erased(found):
            self._still[ERASED] += 1
        else:
            put[copy.origin] = found

    def _is_erased(self, found: Admitted) -> bool:
        """Tell whether it would be accounted as erased, since the erasure holds already."""
        if self._cycle is None:
            return False
        erased = self._erased.of(self._cycle.stores.definitions.fold)
        subject = read_event(found.value).get("subject") if erased is not None else None
        return erased is not None and isinstance(subject, str) and erased.is_one(subject)

    def _check_fence(self) -> None:
        if self._cycle is not None:
            definitions = self._cycle.stores.definitions
            definitions.check_fence_now(self._cycle.footing.fence.fence)

    def _note(self, origins: set[str] | Mapping[str, Admitted]) -> None:
        if self._back is not None:
            self._back.note(sorted(origins), self._asked.tenant)


class PutBack:
    """Appends events, and the notes that they were appended; waits until the log has them."""

    def __init__(self, settings: Settings, vid: int) -> None:
        self._vid = vid
        self._writer = StoredWriter(
            settings.kafka,
            **{
                "message.max.bytes": 2_000_000,
                "partitioner": "murmur2_random",
                "log_level": 0,
            },
        )

    def put(self, events: Mapping[str, Admitted]) -> None:
        """Append events with their origin.

        Raises:
            KafkaException: If the log did not confirm them; some may be there.
        """
        for origin, event in events.items():
            # The first header tells the engine what the record is.
            headers: dict[str, str | bytes | None] = {
                names.HEADER_CONTENT_TYPE: names.CLOUDEVENT_JSON,
                names.HEADER_ORIGIN: origin.encode(),
            }
            self._writer.queue(names.EVENTS, event.key, event.value, headers)
        self._flush()

    def note(self, origins: Sequence[str], tenant: str) -> None:
        """Append the notes that records were put back, under the keys of their copies.

        Raises:
            KafkaException: If the log did not confirm them; some may be there.
        """
        for origin in origins:
            headers: dict[str, str | bytes | None] = {
                names.HEADER_REPLAYED: str(self._vid).encode(),
                names.HEADER_TENANT: tenant.encode(),
                names.HEADER_ORIGIN: origin.encode(),
            }
            self._writer.queue(names.QUARANTINE, origin.encode(), None, headers)
        self._flush()

    def _flush(self) -> None:
        missing = self._writer.missing(FLUSH_S)
        if missing is not None:
            raise KafkaException(missing)


def origin_of(headers: Mapping[str, bytes | None]) -> str | None:
    """Return where a record that was put back, or its note, says that it stood."""
    origin = headers.get(names.HEADER_ORIGIN)
    return None if origin is None else origin.decode("utf-8", "replace")


def unfinished(
    fold: Definitions, tenant: str, end: Mapping[int, int], topic_id: str
) -> dict[int, int]:
    """Return from where on records may stand in the log that were put back without a note.

    That is its end, unless replays of the tenant have failed since one was done: nobody
    knows how far they were.

    Args:
        fold: The definitions.
        tenant: Whose replays.
        end: Where the log ends.
        topic_id: Kafka's id of it.
    """
    begin = dict(end)
    for vid in sorted(fold.jobs, reverse=True):
        asked, report = fold.by_vid(vid), fold.jobs[vid]
        model = asked.readable if asked is not None and asked.tenant == tenant else None
        if not isinstance(model, Job) or not isinstance(model.do, Replay):
            continue
        if report.state is JobState.DONE:
            break
        if "begin" in report.facts:
            said = _begin_of(report.facts, topic_id)
            begin = {p: min(n, said.get(p, 0)) for p, n in begin.items()}
    return begin


def _begin_of(facts: Mapping[str, Any], topic_id: str) -> dict[int, int]:
    """Return where the log ended before a replay put anything back; of another log, nowhere.

    In one that was made anew since, it may have put something back from the start on.
    """
    is_here = facts.get("topic_id", topic_id) == topic_id
    return _numbered(facts["begin"]) if is_here else {}


def _erased(fold: Definitions, tenant: str, hash_key: bytes) -> Subjects | None:
    """Return who of a tenant was erased; None for nobody."""
    hashes = frozenset(one.hash for one in erasures(fold) if one.tenant == tenant)
    return Subjects(tenant, hashes, hash_key) if hashes else None


def _named(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(p): n for p, n in offsets.items()}


def _numbered(offsets: Mapping[str, int]) -> dict[int, int]:
    return {int(p): int(n) for p, n in offsets.items()}
