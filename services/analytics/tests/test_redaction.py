"""Older panes name nobody who was erased, while commits go on; on a real Redis."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import datasketches as ds
import msgspec
import pytest
import redis
from weir import names, rows
from weir.commit import Fence, Mark, Verdict
from weir.definitions.fold import Definitions
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    activation_record,
    put_record,
    start_record,
)
from weir.erasure import Subjects, served_without, subject_hash
from weir.frequent import TOP_LG_K, Texts, texts_of, texts_union, top_of
from weir.further import Further
from weir.rows import Row
from weir.series import OTHER, OTHER_ID, series_digest
from weir_analytics.panes import recovery, redaction
from weir_analytics.panes.between import Step
from weir_analytics.panes.commit_job import Limits, OutboxEntry, Pane, Part
from weir_analytics.panes.forgetting import Forgetting
from weir_analytics.panes.recovery import Shards, VerdictError
from weir_analytics.panes.redaction import Redaction, Version, redacted, versions_before
from weir_analytics.panes.store import ShardStore

from .shard_scene import FENCE
from .shard_scene import job as job_of

NEWER = Fence(9, "definitions")
KEY = b"a key of the installation"
START_S = 2_000_000_040
TEXT = "kind: metric\nname: m\nevents: {type: t}\nby: [data.k]"
LISTS = TEXT + '\naggregates: [count, "top(data.u, 5)"]'


def hash_of(subject: str) -> str:
    """Return what somebody of the tenant is known by."""
    return subject_hash(KEY, "acme", subject)


def folded(*erased: str, text: str = LISTS, again: bool = True) -> Definitions:
    """Return a metric, vid 1, erasures that hold, and the version counted without them."""
    records = [
        start_record(DriverStart("a", 1, "start"), at_ms=0),
        put_record(Edit("acme", "metric", "m", None, "test", 0), text),
        activation_record(Counting(1, "acme", "m", 1, {0: 0}), op="start", fence=0, at_ms=0),
    ]
    for subject in erased:
        vid = len(records)
        asked = {"do": {"job": "erase", "subject_hash": hash_of(subject)}}
        records.append(put_record(Edit("acme", "job", f"j{vid}", None, "t", 0), json.dumps(asked)))
        report = JobReport(vid, JobState.RUNNING, facts={"topic_id": "e", "offsets": {"0": 1}})
        records.append(job_record(report, fence=0))
    if again:
        vid = len(records)
        records.append(put_record(Edit("acme", "metric", "m", 1, "test", 0), text))
        begun = Counting(vid, "acme", "m", 2, {0: 1}, after=1)
        records.append(activation_record(begun, op="start", fence=0, at_ms=0))
    fold = Definitions()
    for offset, record in enumerate(records):
        fold.apply(offset, record.key, record.value)
    return fold


def listed(**tally: int) -> Texts:
    """Return the sketch of some texts, as the engine makes it."""
    sketch = ds.frequent_strings_sketch(TOP_LG_K)
    for text, count in tally.items():
        sketch.update(text, count)
    found = texts_of(sum(tally.values()), bytes(sketch.serialize()))
    assert found is not None
    return found


def texts(row: Row) -> list[str]:
    """Return what a row lists."""
    assert row.further is not None
    assert row.further.top is not None
    return [item.text for item in top_of(texts_union([row.further.top]), 9).items]


class TestWhatIsDue:
    def test_an_erasure_is_due_once_everything_is_served_without(self) -> None:
        """Before that older versions may yet be replaced as a whole."""
        assert served_without(folded("jane", again=False)) == []
        assert [one.hash for one in served_without(folded("jane"))] == [hash_of("jane")]

    def test_versions_made_since_are_left_alone(self) -> None:
        """They were counted without; the one before may name both."""
        fold = folded("jane", "joe")
        found = versions_before(fold, served_without(fold), KEY)

        assert set(found) == {1}
        assert found[1].subjects.hashes == {hash_of("jane"), hash_of("joe")}

    @pytest.mark.parametrize(("text", "lists"), [(TEXT, False), (LISTS, True)])
    def test_only_rows_with_lists_are_all_read(self, text: str, lists: bool) -> None:
        """Of other versions the rows of named series are."""
        fold = folded("jane", text=text)
        assert versions_before(fold, served_without(fold), KEY)[1].lists is lists


class TestRows:
    VERSION = Version(1, Subjects("acme", frozenset({hash_of("jane")}), KEY), lists=True)

    def test_a_named_series_is_added_to_others(self) -> None:
        """Counts, sums and lists of both; nothing is lost but the name."""
        row = Row(3, 6.0, 1.0, 3.0, further=Further(top=listed(jane=2, joe=1)))
        other = Row(2, 9.0, 4.0, 5.0, further=Further(top=listed(ann=2)))
        found = {OTHER_ID: rows.encode(other), b"\0\1": rows.encode(row)}
        change = redacted(found, frozenset({b"\0\1"}), self.VERSION)

        merged = rows.decode(change.rows[OTHER_ID])
        assert (change.gone, set(change.rows)) == ((b"\0\1",), {OTHER_ID})
        assert (merged.n, merged.sum, merged.min, merged.max) == (5, 15.0, 1.0, 5.0)
        assert texts(merged) == ["ann", "joe"]
        assert merged.further is not None
        assert merged.further.top is not None
        assert merged.further.top.events == 5

    def test_what_names_nobody_is_not_written(self) -> None:
        """A pane that stays as it is changes nothing for its readers."""
        found = {b"\0\1": rows.encode(Row(1, further=Further(top=listed(joe=1))))}
        change = redacted(found, frozenset({b"\0\2"}), self.VERSION)
        assert (dict(change.rows), change.gone) == ({}, ())


class StepClock:
    """A clock on which every look takes longer than a slice: a slice is one step."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._now_s = 0.0

    def now_ms(self) -> int:
        """Return nothing that anybody asks for."""
        return 0

    def monotonic_s(self) -> float:
        """Return seconds that run."""
        self._now_s += 1.0
        return self._now_s


class Shard:
    """Shard 0 of one with a writer, and what takes names out of it."""

    def __init__(self, url: str, fold: Definitions) -> None:
        """Begin at offset 0 under the fence."""
        self.redis: Any = redis.Redis.from_url(url)
        self.shards = Shards(url, 1, timeout_s=5)
        self.shards.raise_fence(FENCE, 8)
        mark = Mark(epoch=7, batch=-1, topic_id="events", end={0: 0}, shards=1)
        self.redis.set(names.mark_key(0), msgspec.json.encode(mark))
        # What a walk asks of the driver's cycle.
        self.cycle: Any = SimpleNamespace(
            stores=SimpleNamespace(shards=self.shards, definitions=SimpleNamespace(fold=fold)),
            settings=SimpleNamespace(shards=1),
            footing=SimpleNamespace(fence=FENCE, epoch=7),
            end={0: 0},
            commits=0,
        )
        self.work = Redaction(StepClock(), KEY)
        self.recorded = 0
        # What batch records have told, in order.
        self.told: list[OutboxEntry] = []
        self._store = ShardStore(url, 0, timeout_s=5)

    def close(self) -> None:
        """Close all connections."""
        self.redis.close()
        self.shards.close()
        self._store.close()

    def commit(self, *parts: tuple[Pane, str], top: Texts | None = None, trim: int = 0) -> None:
        """Commit a part of one event for each, and read the outbox as the driver does."""
        at = self.cycle.end[0]
        limits = {pane.vid: Limits({60: 86_400}) for pane, _series in parts}
        job = job_of(at, at + 1, limits=limits, trim_outbox=trim)
        self.cycle.end = {0: at + 1}
        self.cycle.commits += 1
        row = Row(1, further=None if top is None else Further(top=top))
        done = self._store.commit(job, [Part(*pane, series, row) for pane, series in parts])
        assert done.verdict is Verdict.OK
        self.record()

    def record(self) -> None:
        """Tell of the outbox, as a batch record does; the next commit trims what it held."""
        outboxes = self.shards.read_outboxes()
        self.work.note(outboxes)
        self.told += [entry for entry in outboxes[0] if entry.n > self.recorded]
        self.recorded = max(entry.n for entry in outboxes[0])

    def trimmed(self) -> None:
        """Commit nothing, after a record that holds all outbox entries."""
        self.commit(trim=self.recorded)

    def redact(self) -> int:
        """Do all that is due; return in how many slices."""
        slices = 0
        while self.slice():
            slices += 1
            assert slices < 5_000, "it must end"
        return slices

    def slice(self) -> bool:
        """Do a slice, with a batch where it waits for readers; tell whether there was one to do."""
        if self.work.step(self.cycle):
            return True
        if not self.waits_for_readers():
            return False
        self.trimmed()
        return True

    def waits_for_readers(self) -> bool:
        """Tell whether a walk waits until readers have heard of what it took away."""
        return self.work._walk is not None and self.work._walk._told_up_to is not None

    def kept(self) -> dict[bytes, bytes]:
        """Return everything, as a backup or a replica has it."""
        return {key: self.redis.dump(key) for key in self.redis.scan_iter()}

    def put_back(self, kept: dict[bytes, bytes]) -> None:
        """Put everything back as it was, but for how far counting is."""
        mark = self.redis.get(names.mark_key(0))
        self.redis.flushall()
        for key, value in kept.items():
            self.redis.restore(key, 0, value)
        self.redis.set(names.mark_key(0), mark)

    def counts(self, pane: Pane) -> dict[str, int]:
        """Return the counts of a pane, as a reader finds them: each id must have a name."""
        known = self.redis.hgetall(names.names_key(0, pane.vid)) | {OTHER_ID: OTHER.encode()}
        packed = self.redis.hgetall(names.pane_key(0, *pane))
        return {known[number].decode(): rows.decode(row).n for number, row in packed.items()}

    def named(self, vid: int = 1) -> set[str]:
        """Return all names of a version."""
        return {text.decode() for text in self.redis.hvals(names.names_key(0, vid))}

    def done(self) -> set[int]:
        """Return the erasures that are said to be done here."""
        return set(map(int, self.redis.smembers(names.redacted_key(0))))


def dumped(store: Any, text: bytes) -> dict[bytes, bytes]:
    """Return the keys of a Redis that hold a text, in their names or in what they keep."""
    found = {key: all_of(store, key) for key in store.scan_iter()}
    return {key: held for key, held in found.items() if text in key + held}


def all_of(store: Any, key: bytes) -> bytes:
    """Return everything that a key keeps, one after the other."""
    kind = store.type(key)
    if kind == b"hash":
        return b"\n".join(each for pair in store.hgetall(key).items() for each in pair)
    if kind == b"set":
        return b"\n".join(store.smembers(key))
    assert kind == b"string", f"{key!r} is a {kind!r}"
    held: bytes = store.get(key)
    return held


PANES = [Pane(1, 60, START_S + 60 * n) for n in range(3)]
# What was counted anew, and may name who was erased: somebody else did.
FRESH = Pane(5, 60, START_S)


@pytest.fixture
def shard(redis_url: str) -> Iterator[Shard]:
    """Return a shard of a metric with lists, of which jane was erased."""
    opened = Shard(redis_url, folded("jane"))
    yield opened
    opened.close()


@pytest.mark.redis
class TestAWalk:
    def test_older_panes_name_nobody(self, shard: Shard) -> None:
        """Others, later versions and every count stay; the pane still ends when it did."""
        for pane in (*PANES, FRESH):
            shard.commit((pane, "=jane"), (pane, "=joe"), (pane, "=joe"))
        ends = [shard.redis.ttl(names.pane_key(0, *pane)) for pane in PANES]
        assert shard.redact() > 3

        for pane in PANES:
            assert shard.counts(pane) == {OTHER: 1, "=joe": 2}
        assert shard.counts(FRESH) == {"=jane": 1, "=joe": 2}
        assert shard.named() == {"=joe"}
        assert not shard.redis.hexists(names.ids_key(0, 1), series_digest("=jane"))
        assert shard.done() == {3}
        for pane, end in zip(PANES, ends, strict=True):
            assert end - 5 <= shard.redis.ttl(names.pane_key(0, *pane)) <= end

    def test_no_color_slot_keeps_the_text(self, shard: Shard) -> None:
        """No key of Redis has it then; the slots of others and their number stay."""
        shard.commit((PANES[0], "=jane"), (PANES[0], "=joe"))
        slots = {"#data.k": 4, "data.k:=jane": 0, "data.k:=joe": 1, "data.k,a:b:=x|=jane": 2}
        slots |= {"data.k:=janet": 3}
        shard.redis.hset(names.slots_key("acme", "m"), mapping=slots)
        shard.redis.hset(names.slots_key("other", "m"), mapping={"data.k:=joe": 0})
        assert dumped(shard.redis, b"=jane") != {}
        shard.redact()

        left = shard.redis.hgetall(names.slots_key("acme", "m"))
        assert left == {b"#data.k": b"4", b"data.k:=joe": b"1", b"data.k:=janet": b"3"}
        shard.redis.hdel(names.slots_key("acme", "m"), "data.k:=janet")
        assert dumped(shard.redis, b"jane") == {}
        assert shard.done() == {3}

    def test_lists_of_every_row_are_read(self, shard: Shard) -> None:
        """Also where no series names anybody, and of the row of all others."""
        shard.commit((PANES[0], "=joe"), (PANES[0], OTHER), top=listed(jane=3, ann=1))
        shard.redact()

        stored = shard.redis.hgetall(names.pane_key(0, *PANES[0])).values()
        assert [texts(rows.decode(row)) for row in stored] == [["ann"], ["ann"]]

    @pytest.mark.parametrize("series", [["=jane", "=joe"], [OTHER]])
    def test_lists_are_read_beside_a_named_series_and_without_any(
        self, shard: Shard, series: list[str]
    ) -> None:
        """Whoever else has a row in the pane, or nobody."""
        shard.commit(*[(PANES[0], one) for one in series], top=listed(jane=3, ann=1))
        shard.redact()

        stored = shard.redis.hgetall(names.pane_key(0, *PANES[0])).values()
        assert [texts(rows.decode(row)) for row in stored] == [["ann"]] * len(series)

    def test_a_pane_that_expires_meanwhile_does_not_stay_for_ever(
        self, shard: Shard, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is written to it goes again."""
        shard.commit((PANES[0], "=jane"))
        key, change = names.pane_key(0, *PANES[0]), shard.shards.change

        def late(*asked: Any) -> str:
            shard.redis.delete(key)
            return change(*asked)

        monkeypatch.setattr(shard.shards, "change", late)
        while not shard.redis.exists(key) or shard.counts(PANES[0]) == {"=jane": 1}:
            assert shard.work.step(shard.cycle)
        assert shard.redis.ttl(key) > 0

    def test_readers_are_told_of_what_changed_and_of_nothing_else(self, shard: Shard) -> None:
        """By the outbox, as of any commit: a reader that kept the pane reads it again."""
        shard.commit((PANES[0], "=jane"), (PANES[1], "=joe"))
        shard.trimmed()
        known = len(shard.told)
        shard.redact()

        entries = shard.told[known:]
        assert [pane for entry in entries for pane in entry.changed] == [PANES[0]]
        numbers = [entry.n for entry in entries]
        assert numbers == sorted(set(numbers))

    def test_it_is_done_once(self, shard: Shard) -> None:
        """A driver that starts again reads a set, and looks at no pane."""
        shard.commit((PANES[0], "=jane"))
        shard.redact()
        shard.work = Redaction(StepClock(), KEY)
        assert shard.redact() == 0

    def test_a_backup_that_was_restored_is_done_again(self, shard: Shard) -> None:
        """With the panes the older set came back."""
        shard.commit((PANES[0], "=jane"))
        kept = shard.kept()
        shard.redact()
        shard.put_back(kept)
        assert shard.redis.ttl(names.pane_key(0, *PANES[0])) == -1
        assert shard.counts(PANES[0]) == {"=jane": 1}

        shard.work = Redaction(StepClock(), KEY)
        shard.redact()
        assert shard.counts(PANES[0]) == {OTHER: 1}
        assert shard.redis.ttl(names.pane_key(0, *PANES[0])) == -1

    def test_a_failover_that_takes_back_its_end_is_met(self, shard: Shard) -> None:
        """No live batch came after it, so nobody else finds that out; from then on it is kept."""
        shard.commit((PANES[0], "=jane"), (PANES[1], "=joe"))
        before = shard.kept()
        shard.redact()
        assert shard.done() == {3}
        shard.put_back(before)
        shard.commit((PANES[2], "=joe"))
        shard.redact()
        assert (shard.counts(PANES[0]), shard.done()) == ({OTHER: 1}, {3})
        shard.commit((PANES[2], "=joe"))
        assert shard.redact() == 0
        shard.redis.delete(names.redacted_key(0))
        assert shard.redact() == 0, "it is asked for no more"

    def test_an_erasure_of_somebody_else_looks_at_no_pane_of_this_tenant(
        self, shard: Shard, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was done is done: a walk is for what is due, and for whose it is."""
        shard.commit((PANES[0], "=jane"))
        shard.redact()
        told = {"do": {"job": "erase", "subject_hash": hash_of("joe")}}
        more = [put_record(Edit("zeta", "job", "j", None, "t", 0), json.dumps(told))]
        report = JobReport(7, JobState.RUNNING, facts={"topic_id": "e", "offsets": {"0": 1}})
        more.append(job_record(report, fence=0))
        for offset, record in enumerate(more, 7):
            shard.cycle.stores.definitions.fold.apply(offset, record.key, record.value)
        monkeypatch.setattr(redaction.Walk, "_rewrite", None)
        shard.redact()
        assert shard.done() == {3, 7}

    def test_its_own_changes_are_not_looked_at_again(
        self, shard: Shard, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However many panes: a slice at the end is as short as any."""
        shard.commit(*[(pane, "=jane") for pane in PANES])
        shard.trimmed()
        looked: list[Pane] = []
        rewrite = redaction.Walk._rewrite

        def counted(self: Any, pane: Pane, *rest: Any) -> None:
            looked.append(pane)
            rewrite(self, pane, *rest)

        monkeypatch.setattr(redaction.Walk, "_rewrite", counted)
        while shard.slice():
            shard.record()
        assert sorted(looked) == PANES

    def test_a_row_that_cannot_be_read_stops_nothing(self, shard: Shard) -> None:
        """It is told, and stays; nobody is shown a name in it."""
        shard.commit((PANES[0], "=jane"), (PANES[1], "=jane"))
        shard.redis.hset(names.pane_key(0, *PANES[0]), b"\0\1", b"\x40")
        shard.redact()
        assert shard.counts(PANES[1]) == {OTHER: 1}
        assert shard.done() == {3}

    @pytest.mark.parametrize("at", range(8))
    def test_a_series_that_was_forgotten_and_came_back_keeps_its_id(
        self, shard: Shard, monkeypatch: pytest.MonkeyPatch, at: int
    ) -> None:
        """By somebody else's late event, between any two slices: no event is lost."""
        monkeypatch.setattr(recovery, "KEYS_AT_ONCE", 1)
        shard.commit((PANES[0], "=jane"), (PANES[1], "=joe"), (PANES[1], OTHER))
        shard.redis.delete(names.pane_key(0, *PANES[0]))
        for _ in range(at):
            shard.work.step(shard.cycle)
        walk = Forgetting(shard.shards, 1, FENCE, StepClock())
        walk.begin([1], [])
        while walk.is_under_way:
            walk.go_on(shard.cycle.end)
        shard.commit((PANES[2], "=jane"), (PANES[2], OTHER))
        shard.redact()
        shard.commit((PANES[2], "=jane"), (PANES[2], "=joe"))

        assert sum(shard.counts(PANES[2]).values()) == 4
        assert shard.done() == {3}

    def test_without_the_key_nothing_is_said_to_be_done(self, shard: Shard) -> None:
        """Nobody could be found."""
        shard.commit((PANES[0], "=jane"))
        shard.work = Redaction(StepClock(), b"")
        assert (shard.redact(), shard.done()) == (0, set())

    def test_a_shard_that_lost_its_tail_waits(self, shard: Shard) -> None:
        """Names go only where all panes that changed are known; the next batch finds it behind."""
        shard.commit((PANES[0], "=jane"))
        end, shard.cycle.end = shard.cycle.end, {0: 5}
        shard.redact()
        assert (shard.named(), shard.done()) == ({"=jane"}, set())

        shard.cycle.end = end
        shard.redact()
        assert (shard.named(), shard.done()) == (set(), {3})

    def test_a_walk_that_failed_is_not_done(
        self, shard: Shard, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever it failed with: the next slice begins it anew."""
        shard.commit(*[(pane, "=jane") for pane in PANES])
        rewrite, calls = redaction.Walk._rewrite, list[Pane]()

        def once(self: Any, pane: Pane, *rest: Any) -> None:
            calls.append(pane)
            if len(calls) == 2:
                msg = "of ours"
                raise KeyError(msg)
            rewrite(self, pane, *rest)

        monkeypatch.setattr(redaction.Walk, "_rewrite", once)
        with pytest.raises(KeyError):
            shard.redact()
        assert shard.done() == set()
        assert shard.work.step(shard.cycle) is Step.SOON
        shard.redact()
        assert [shard.counts(pane) for pane in PANES] == [{OTHER: 1}] * 3
        assert (shard.named(), shard.done()) == (set(), {3})

    def test_an_older_driver_writes_nothing(self, shard: Shard) -> None:
        """A driver that was paused finds its successor's fence."""
        shard.commit((PANES[0], "=jane"))
        shard.shards.raise_fence(NEWER, 10)
        with pytest.raises(VerdictError) as caught:
            shard.redact()
        assert caught.value.verdict is Verdict.FENCED
        assert shard.counts(PANES[0]) == {"=jane": 1}


@pytest.mark.redis
@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_commits_and_slices(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Late events count for older panes between any two slices: each id always has a name.

    What the walk ends with names nobody of what was counted before its last slice.
    """
    monkeypatch.setattr(redaction, "NAMES_AT_ONCE", 1)
    monkeypatch.setattr(redaction, "PANES_AT_ONCE", 1)
    monkeypatch.setattr(redaction, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(recovery, "KEYS_AT_ONCE", 1)
    chance = random.Random(seed)  # noqa: S311
    shard = Shard(redis_url, folded("jane", "joe", text=chance.choice([TEXT, LISTS])))
    people = ["jane", "joe", *(f"p{n}" for n in range(8))]
    counted = dict.fromkeys(PANES, 0)

    def commit(several: Sequence[str]) -> None:
        parts = [(chance.choice(PANES), f"={who}") for who in several]
        shard.commit(*parts)
        if chance.random() < 0.3:
            shard.trimmed()
        for pane, _series in parts:
            counted[pane] += 1

    for _ in range(6):
        commit(people)
    late = chance.randrange(40)
    while shard.slice():
        assert {pane: sum(shard.counts(pane).values()) for pane in PANES} == counted
        # A name that is deleted may come back with somebody else's event.
        if late and shard.named() >= {"=jane", "=joe"} and chance.random() < 0.5:
            commit(chance.sample(people, 3))
            late -= 1

    for pane in PANES:
        assert not {"=jane", "=joe"} & shard.counts(pane).keys()
    assert not {"=jane", "=joe"} & shard.named()
    assert sum(counted.values()) == sum(sum(shard.counts(pane).values()) for pane in PANES)
    shard.close()
