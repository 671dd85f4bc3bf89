"""Jobs on a real log and a real store, without Spark: what a crash leaves, what adopt gives up."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from weir import names
from weir.admission import Admitted, Refused
from weir.clock import SystemClock
from weir.commit import Verdict
from weir.definitions.cut_short import CutShort
from weir.definitions.fold import Definitions
from weir.definitions.history import Definition, Horizons
from weir.definitions.job import Audit, Job, Replay
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import DriverStart, Edit, put_record, start_record
from weir.erasure import subject_hash
from weir_analytics.jobs import replay, schedule
from weir_analytics.jobs.event_times import event_time
from weir_analytics.jobs.log_records import LogRecord, Passage
from weir_analytics.jobs.mended import Whole, mended
from weir_analytics.jobs.recount import Part, Recount, Terms
from weir_analytics.jobs.replay import PutBack, ReplayTask
from weir_analytics.jobs.runner import Jobs
from weir_analytics.jobs.sample import Audited, PaneAt
from weir_analytics.jobs.walk import Walk
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_analytics.panes.history import LogPartition
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.quarantine import Copy, Origin, QuarantineWriter
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.start import Footing
from weir_analytics.settings import Settings
from weir_local.waiting import wait_until

from .conftest import settings_for
from .installation import Installation, close_stores, open_stores
from .live_job import HORIZON_MS, METRIC, World, recount
from .log_frames import EVENT, NOW_MS, event

pytestmark = pytest.mark.kafka

COPIES = 50
KEY = b"a key for the hashes of subjects"
LOG_ID = "log"
RECEIVED_MS = 1_700_000_000_000


@dataclass
class Log:
    """Topics of one test, and the settings of a driver on them."""

    settings: Settings
    world: World

    def read(self, topic: str) -> list[Any]:
        """Return all records of a topic."""
        return self.world.log(topic)

    def origins(self) -> list[str]:
        """Return the origins of the events that were put back."""
        found = (dict(m.headers() or ()) for m in self.read(names.EVENTS))
        return [h[names.HEADER_ORIGIN].decode() for h in found if names.HEADER_ORIGIN in h]

    def notes(self) -> list[str]:
        """Return the origins that are noted as put back."""
        found = (dict(m.headers() or ()) for m in self.read(names.QUARANTINE))
        return [h[names.HEADER_ORIGIN].decode() for h in found if names.HEADER_REPLAYED in h]


@pytest.fixture
def log(
    kafka: str,
    tmp_path: Path,
    new_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> Log:
    """Return a log and a quarantine of this test's own, both empty."""
    monkeypatch.setattr(names, "EVENTS", new_topic("events", 2, {}))
    monkeypatch.setattr(names, "QUARANTINE", new_topic("quarantine", 2, {}))
    return Log(settings_for(tmp_path, kafka), World(kafka, "redis://127.0.0.1:1/0"))


def quarantine(
    log: Log,
    count: int = COPIES,
    topic_id: str = "first",
    ids: str = "e",
    tenant: str = "acme",
    received_ms: int = RECEIVED_MS,
) -> None:
    """Copy items of a log that an older release could not use; of two subjects, in turn."""
    writer = QuarantineWriter(log.settings.kafka)
    for i in range(count):
        item = {"specversion": "1.0", "id": f"{ids}{i}", "source": "s", "type": "t"}
        item["subject"] = f"user-{i % 2}"
        origin = Origin(names.EVENTS, topic_id, 0, i, received_ms + i)
        value = json.dumps(item).encode()
        writer.send(Copy(origin, value, "too_deep", tenant, "web"))
    assert writer.flush() == count


class Run:
    """A replay, from its beginning to its end or to where it breaks."""

    def __init__(
        self,
        log: Log,
        wanted: Replay | None = None,
        definitions: Any = None,
        fence: int = 0,
        tenant: str = "acme",
        share: float = 1.0,
    ) -> None:
        asked = Definition(7, tenant, "job", "j1", 1, None, "put", "", "test", 0)
        self.task = ReplayTask(log.settings, asked, wanted or Replay(), share)
        self.held: list[int] = []
        alone = SimpleNamespace(fold=Definitions(), check_fence_now=lambda _fence: None)
        stores = SimpleNamespace(definitions=definitions or alone)
        footing = SimpleNamespace(fence=SimpleNamespace(fence=fence), events_id=LOG_ID)
        self.cycle: Any = SimpleNamespace(stores=stores, footing=footing, clock=SystemClock())

    def facts(self) -> Mapping[str, Any]:
        """Return what is recorded before anything is done."""
        return self.task.facts(self.cycle)

    def end(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Do all of it, and return its outcome."""
        self.task.begin(self.cycle, facts)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            outcome = self.task.step(self.cycle, partial(next, iter([False]), True))
            self.held.append(self.task.held)
            if outcome is not None:
                self.task.close()
                return outcome
        msg = "the replay must end within 60 s"
        raise AssertionError(msg)


class BrokenError(Exception):
    """The process dies here."""


class TestReplay:
    def test_a_crash_before_the_notes_puts_nothing_back_twice(
        self, log: Log, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What stands in the log without a note is found there, and noted."""
        quarantine(log)

        def broken(*_: Any) -> None:
            raise BrokenError

        with monkeypatch.context() as patched:
            patched.setattr(PutBack, "note", broken)
            first = Run(log)
            facts = first.facts()
            with pytest.raises(BrokenError):
                first.end(facts)
        assert len(log.origins()) > 0
        assert log.notes() == []

        outcome = Run(log).end(facts)
        assert sorted(log.origins()) == sorted(set(log.origins()))
        assert set(log.notes()) == set(log.origins())
        assert len(log.origins()) == COPIES
        assert outcome["replayed"] + outcome["already"] == COPIES

    @pytest.mark.parametrize("gone", ["its end", "all of it"])
    def test_nor_where_the_log_lost_what_it_began_behind(
        self, log: Log, monkeypatch: pytest.MonkeyPatch, gone: str
    ) -> None:
        """What is put back into the log that is left stands before where it ended then."""
        quarantine(log)
        there = Run(log).facts()
        before = {**there, "begin": {p: n + 1_000 for p, n in there["begin"].items()}}
        if gone == "its end":
            end = {int(p): n for p, n in there["begin"].items()}
            cut = CutShort(9, LOG_ID, end)
            facts = cut.report(JobReport(7, JobState.RUNNING, facts=before)).facts
            assert facts == there
        else:
            facts = {**before, "topic_id": "another"}
        with monkeypatch.context() as patched:
            patched.setattr(PutBack, "note", MagicMock(side_effect=BrokenError))
            with pytest.raises(BrokenError):
                Run(log).end(facts)
        assert len(log.origins()) > 0

        again = Run(log)
        again.end(facts)
        assert len(set(log.origins())) == len(log.origins()) == COPIES

    def test_what_has_no_copy_is_told(self, log: Log) -> None:
        """Over all batches, each once, of what is asked for; another tenant's is its own."""

        def forged(at: int, left_out: int, *, tenant: str = "acme", vid: int | None = None) -> None:
            writer = QuarantineWriter(log.settings.kafka)
            origin = Origin(names.EVENTS, "first", 1, at, RECEIVED_MS + at)
            extra = {names.HEADER_LEFT_OUT: b"%d" % left_out}
            writer.send(Copy(origin, b"x", "not_an_event", tenant, "kafka", vid=vid, extra=extra))
            assert writer.flush() == 1

        quarantine(log)
        # The first batch ran again; of what a version could not use nothing is put back anyway.
        for at, left_out in ((1_000, 4_000), (9_000, 345), (1_000, 4_000)):
            forged(at, left_out)
        forged(2_000, 7, tenant="zeta")
        forged(3_000, 11, vid=5)
        mine = {"still": {"invalid_json": 2}, "not_copied": 4_345}
        for wanted, told in (
            (Replay(dry_run=True), {"would_replay": COPIES, **mine}),
            (Replay(), {"replayed": COPIES, **mine}),
            (Replay(reason="too_deep"), {"replayed": 0, "still": {}, "not_copied": 0}),
            (
                Replay.model_validate({"until": "2023-11-14T22:13:25Z"}),
                {"replayed": 0, "still": {"invalid_json": 1}, "not_copied": 4_000},
            ),
        ):
            run = Run(log, wanted)
            outcome = run.end(run.facts())
            assert {name: outcome[name] for name in told} == told

    def test_offsets_of_a_log_that_was_made_anew_were_not_put_back(self, log: Log) -> None:
        """Its records at the same offsets are others: each comes back, once."""
        for at, (topic_id, ids) in enumerate((("first", "e"), ("second", "f"))):
            quarantine(log, topic_id=topic_id, ids=ids)
            run = Run(log)
            outcome = run.end(run.facts())
            assert (outcome["replayed"], outcome["already"]) == (COPIES, at * COPIES)
        assert len(set(log.origins())) == len(log.origins()) == 2 * COPIES

    def test_what_an_earlier_release_put_back_stays_so(
        self, log: Log, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its copies and notes name no log, and still go by each other."""
        with monkeypatch.context() as patched:
            patched.setattr(Origin, "__str__", lambda origin: origin.place)
            quarantine(log)
        assert Run(log).end(Run(log).facts())["replayed"] == COPIES
        assert set(log.notes()) == {f"{names.EVENTS}/0/{i}" for i in range(COPIES)}
        quarantine(log, ids="f")
        outcome = Run(log).end(Run(log).facts())
        assert (outcome["replayed"], outcome["already"]) == (COPIES, COPIES)

    def test_a_key_leads_to_the_partition_that_ingest_chooses(self, log: Log) -> None:
        """A resend of the mended item meets its replay there, and is its duplicate."""
        quarantine(log)
        run = Run(log)
        run.end(run.facts())
        for i in range(COPIES):
            producer = log.world.producer
            producer.produce(names.EVENTS, b"again", f"e{i}".encode())
        log.world.producer.flush(10)
        places: dict[bytes, set[int]] = {}
        for message in log.read(names.EVENTS):
            places.setdefault(message.key(), set()).add(message.partition())
        assert len(places) == COPIES
        assert all(len(partitions) == 1 for partitions in places.values())
        assert len(set.union(*places.values())) == 2

    def test_more_than_may_be_held_come_back_in_turns(
        self, log: Log, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each once, also where a batch has copied again; what is another tenant's is not held."""
        for _time in range(2):
            quarantine(log)
        quarantine(log, 3 * COPIES, "other", "o", "zeta")
        first = Run(log, Replay.model_validate({"until": "2023-11-14T22:13:20.020Z"}))
        facts = first.facts()
        assert (first.end(facts)["replayed"], max(first.held)) == (20, 20)
        others = Run(log, tenant="zeta")
        assert others.end(others.facts())["replayed"] == 3 * COPIES

        monkeypatch.setattr(replay, "MOST_ORIGINS", 10)
        again = Run(log)
        assert again.end({**again.facts(), "begin": facts["begin"]}) == {
            "replayed": 30,
            "already": 20,
            "still": {},
            "not_copied": 0,
            "dry_run": False,
        }
        # Of what is asked for, and of what stands in the log and may have no note.
        assert 0 < max(again.held) <= 10 + 10
        assert len(set(log.origins())) == len(log.origins()) == 4 * COPIES
        assert set(log.notes()) == set(log.origins())
        # Of this tenant's twenty in the log ten were noted again.
        assert len(log.notes()) == 4 * COPIES + 10

    def test_more_than_may_be_held_stand_in_the_log_without_a_note(
        self, log: Log, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Their notes are written on the way, so none comes back twice."""
        quarantine(log)
        with monkeypatch.context() as patched:
            patched.setattr(PutBack, "note", lambda *_: None)
            first = Run(log)
            facts = first.facts()
            first.end(facts)
        assert (len(log.origins()), log.notes()) == (COPIES, [])

        monkeypatch.setattr(replay, "MOST_ORIGINS", 40)
        again = Run(log, share=0.25)
        outcome = again.end(facts)
        assert (outcome["replayed"], outcome["already"]) == (0, COPIES)
        assert max(again.held) <= 20
        assert len(log.origins()) == COPIES
        assert set(log.notes()) == set(log.origins())

    def test_a_driver_that_was_paused_puts_nothing_back(
        self, log: Log, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another one has started, and put back everything: the first one ends."""
        monkeypatch.setattr(names, "DEFINITIONS", new_topic("definitions"))
        quarantine(log)
        drivers = [DefinitionsLog(log.settings.kafka) for _ in range(2)]
        paused = [True]

        def driver(at: int) -> Run:
            fence = drivers[at].append(start_record(DriverStart("a", 1, "start"), at_ms=0))
            return Run(log, definitions=drivers[at], fence=fence)

        def slow(copy: Whole) -> Admitted | Refused:
            if paused.pop() if paused else False:
                second = driver(1)
                assert second.end(second.facts())["replayed"] == COPIES
            return mended(copy)

        monkeypatch.setattr(replay, "mended", slow)
        first = driver(0)
        try:
            with pytest.raises(VerdictError, match="another driver runs") as caught:
                first.end(first.facts())
        finally:
            for one in drivers:
                one.close()
        assert caught.value.verdict is Verdict.FENCED
        assert len(set(log.origins())) == len(log.origins()) == COPIES

    @pytest.mark.parametrize("dry_run", [False, True])
    def test_nothing_comes_back_about_who_was_erased(
        self, log: Log, tmp_path: Path, dry_run: bool
    ) -> None:
        """It is told as such, and would be counted as erased; another tenant's erasure is none."""
        (tmp_path / "hash_key").write_bytes(KEY)
        log.settings = log.settings.model_copy(update={"secrets_dir": tmp_path})
        quarantine(log)
        fold = Definitions()
        fold.apply(0, *start_record(DriverStart("a", 1, "start"), at_ms=0))
        for tenant, subject in (("acme", "user-1"), ("zeta", "user-0")):
            do = {"job": "erase", "subject_hash": subject_hash(KEY, tenant, subject)}
            put = put_record(Edit(tenant, "job", "e", None, "test", 0), json.dumps({"do": do}))
            vid = fold.next_offset
            fold.apply(vid, *put)
            report = JobReport(vid, JobState.RUNNING, facts={"topic_id": "t", "offsets": {}})
            fold.apply(vid + 1, *job_record(report, fence=0))
        alone = SimpleNamespace(fold=fold, check_fence_now=lambda _fence: None)
        run = Run(log, Replay(dry_run=dry_run), definitions=alone)

        told = "would_replay" if dry_run else "replayed"
        outcome = run.end(run.facts())
        assert (outcome[told], outcome["still"]) == (COPIES // 2, {"erased": COPIES // 2})
        values = [message.value() for message in log.read(names.EVENTS)]
        assert len(values) == (0 if dry_run else COPIES // 2)
        assert not any(b"user-1" in value for value in values)

    def test_cancelled_it_ends_where_it_is(self, log: Log) -> None:
        """Nothing more is put back."""
        quarantine(log)
        run = Run(log)
        facts = run.facts()
        run.task.stopping = True
        assert run.end(facts)["replayed"] == 0
        assert log.origins() == []


def test_a_later_replay_looks_where_one_that_failed_was() -> None:
    """Of another log, or a partition that was added since, it may be anywhere."""
    end = {0: 90, 1: 70, 2: 5}
    begin = {"0": 40, "1": 80}
    for facts, found in (
        ({"begin": begin}, {0: 40, 1: 70, 2: 0}),
        ({"begin": begin, "topic_id": LOG_ID}, {0: 40, 1: 70, 2: 0}),
        ({"begin": begin, "topic_id": "another"}, {0: 0, 1: 0, 2: 0}),
        ({}, end),
    ):
        fold = Definitions()
        fold.apply(0, *start_record(DriverStart("a", 1, "start"), at_ms=0))
        put = put_record(Edit("acme", "job", "r", None, "t", 0), '{"do": {"job": "replay"}}')
        fold.apply(1, *put)
        failed = JobReport(1, JobState.FAILED, facts=facts)
        fold.apply(2, *job_record(failed, fence=0))
        assert replay.unfinished(fold, "acme", end, LOG_ID) == found


class TestRecount:
    def test_it_counts_as_the_rules_say(self, log: Log, seed: int) -> None:
        """Duplicates, junk, refused items, foreign events: equal to a plain loop over the log."""
        chance = random.Random(seed)  # noqa: S311
        world, now_ms = log.world, time.time_ns() // 1_000_000
        for _ in range(800):
            i = chance.randrange(400)
            at_ms = now_ms - chance.randrange(120_000)
            world.send(f"e{i}", at_ms, x=chance.randrange(100), k=f"k{i % 3}", u=f"u{i % 7}")
        world.raw(b"junk", [])
        world.raw(b'{"specversion":"1.0"}', [(names.HEADER_REASON, b"too_deep")])
        world.raw(None, [(names.HEADER_TICK, b"1")])
        world.producer.flush(30)
        exact, tally = recount(log.read(names.EVENTS), 60)
        assert tally["duplicate"] > 100

        counted = recounted(log, now_ms, begin={})
        assert {key: (e.n, float(sum(e.values))) for key, e in counted.items()} == {
            (start_s, series): found for (start_s, _zero, series), found in exact.items()
        }

    def test_a_version_counts_from_its_begin_on(self, log: Log) -> None:
        """What lies before is no part of its panes, though it makes duplicates of what follows."""
        now_ms = time.time_ns() // 1_000_000
        for event_id in ("a", "b", "a", "c"):
            log.world.send(event_id, now_ms, x=1, k="k", u="u")
            log.world.producer.flush(10)
        records = log.read(names.EVENTS)
        (place,) = (
            (m.partition(), m.offset()) for m in records if json.loads(m.value())["id"] == "b"
        )
        begin = {place[0]: place[1] + 1}
        first: dict[str, tuple[int, int]] = {}
        for message in records:
            first.setdefault(
                json.loads(message.value())["id"], (message.partition(), message.offset())
            )
        inside = [at for p, at in first.values() if at >= begin.get(p, 0)]
        assert len(inside) < 3

        counted = recounted(log, now_ms, begin=begin)
        assert sum(e.n for e in counted.values()) == len(inside)


def test_when_an_event_at_a_place_happened(log: Log) -> None:
    """The first of the tenant there or behind it; of a place that is gone nothing."""
    for n, tenant in enumerate(("acme", "big", "acme")):
        value = event(f"e{n}", NOW_MS + n, tenant=tenant)
        log.world.producer.produce(names.EVENTS, value, b"k", partition=0, headers=list(EVENT))
    assert log.world.producer.flush(10) == 0
    at = LogPartition(log.settings.kafka, names.EVENTS, 0)

    assert [event_time(at, n, 3 - n, "acme") for n in range(3)] == [NOW_MS, NOW_MS + 2, NOW_MS + 2]
    assert event_time(at, 2, 1, "big") is None
    assert event_time(at, 9, -6, "acme") is None


def _read(
    take: Callable[[Iterator[LogRecord]], None], passage: Passage, messages: Sequence[Any]
) -> None:
    take(passage.records(messages))


def recounted(log: Log, now_ms: int, begin: Mapping[int, int]) -> dict[tuple[int, str], Any]:
    """Return the minutes around now, by start and series, as an audit recounts them."""
    fold = Definitions()
    record = put_record(Edit("default", "metric", "amount", None, "test", 0), METRIC)
    fold.apply(0, record.key, record.value)
    definition = fold.get("default", "metric", "amount")
    assert definition is not None
    assert definition.metric is not None
    version = Audited(0, "default", "amount", 1, definition.metric, begin, None, {})
    minute_s = now_ms // 60_000 * 60
    panes = frozenset(PaneAt(0, 60, minute_s + at) for at in (-180, -120, -60, 0, 60))
    low, high = LogOffsets(log.settings.kafka, names.EVENTS).ends()
    again = Recount(
        [Part(version, dict.fromkeys(panes, high))],
        Terms((Horizons({}, HORIZON_MS, 400 * 86_400_000),)),
    )
    for take in (again.look_for, again.count):
        walk, passage = Walk(log.settings.kafka, names.EVENTS, low, high), Passage()
        read = partial(_read, take, passage)
        deadline = time.monotonic() + 60
        while not walk.each(read, lambda: False):
            assert time.monotonic() < deadline
        assert walk.progress.at == walk.progress.of == sum(high.values())
        walk.close()
    return {
        (pane.start_s, series): exact
        for pane, counted in again.panes.items()
        for series, exact in counted.items()
    }


@pytest.fixture
def installation(installation: Installation) -> Installation:
    """Return an installation that was started once."""
    installation.start()
    return installation


def let_count(installation: Installation, footing: Footing) -> None:
    """Let jobs have a slice, as a driver that counts does."""
    stores = open_stores(installation.settings)
    stores.definitions.read_to(stores.definitions.end())
    cycle: Any = SimpleNamespace(stores=stores, footing=footing, through_ms=0)
    jobs = Jobs(installation.settings, SystemClock())
    try:
        wait_until(lambda: not jobs.step(cycle), timeout_s=20, what="no open job")
    finally:
        close_stores(stores)


@pytest.mark.redis
class TestSchedule:
    def test_an_audit_is_asked_for_once_a_day(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It stands in the log as any other job, and what differs is mended."""
        monkeypatch.setattr(schedule, "FIRST_AFTER_S", 0.0)
        monkeypatch.setattr(schedule, "LOOK_EVERY_S", 0.0)
        stores = open_stores(installation.settings)
        cycle: Any = SimpleNamespace(stores=stores, footing=None, through_ms=0)
        try:
            stores.definitions.read_to(stores.definitions.end())
            daily = schedule.Schedule(installation.settings, SystemClock())
            assert not daily.step(cycle)
            metric = put_record(Edit("acme", "metric", "amount", None, "test", 0), METRIC)
            stores.definitions.append(metric)
            assert daily.step(cycle)
            assert not daily.step(cycle)
            (asked,) = stores.definitions.fold.current("acme", "job")
            model = asked.readable
        finally:
            close_stores(stores)
        assert asked.by == "schedule"
        assert isinstance(model, Job)
        assert isinstance(model.do, Audit)
        assert (model.do.mend, model.do.metrics) == (True, ())


@pytest.mark.redis
class TestAdopt:
    def test_a_decision_is_used_once_and_says_what_is_given_up(
        self, installation: Installation
    ) -> None:
        """Without one the driver must not go on; the next foreign log needs another one."""
        installation.new_log()
        with pytest.raises(VerdictError, match="go on only by a recorded adopt") as caught:
            installation.start()
        assert caught.value.verdict is Verdict.FOREIGN
        installation.decide("adopt1")
        footing = installation.start()
        begun = installation.job("adopt1")
        assert begun.state is JobState.RUNNING
        let_count(installation, footing)
        ended = installation.job("adopt1")
        assert ended.state is JobState.DONE
        assert ended.report is not None
        told = ended.report.outcome["given_up"]
        assert "the topic was created anew" in told["because"]
        assert told["cleared_shards"] == [0, 1]
        installation.new_log()
        with pytest.raises(VerdictError, match="go on only by a recorded adopt"):
            installation.start()

    def test_a_decision_in_advance_is_none(self, installation: Installation) -> None:
        """While the driver counts there is nothing to adopt, and nothing is kept for later."""
        installation.decide("early")
        let_count(installation, installation.start())
        assert installation.job("early").state is JobState.FAILED
        installation.new_log()
        with pytest.raises(VerdictError):
            installation.start()

    def test_another_tenant_decides_nothing(self, installation: Installation) -> None:
        """The log is everybody's: a record that went past the API is passed over."""
        installation.new_log()
        installation.decide("other", tenant="acme")
        with pytest.raises(VerdictError):
            installation.start()
