"""Jobs through the real driver, beside live counting, and what a kill leaves of them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from weir import names, rows
from weir.admission import Admitted, Terms, admit
from weir.batches import BatchRecord
from weir.definitions.jobs import JobAsked, JobState, job_named
from weir.definitions.records import Edit, put_record
from weir.erasure import subject_hash
from weir_analytics.jobs import schedule
from weir_analytics.panes.inbox import MAX_COPIES

from .live_job import METRIC, Job, Panes, World, assert_equal_to_the_log, running_world, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.redis]

SETTINGS = {"SHARDS": "2"}
SENT = 500
METRICS = ("amount", "further")
# Of the few events in a log of ticks a small sample may meet none: places drawn behind the last
# one find none, and most of these instants lie where nothing happened.
AUDIT = {"job": "audit", "metrics": ["amount"], "last": "30m", "sample": 300}
KEY = b"a key for the hashes of subjects"
IDENTITY, TYPE = b'{"weirid":"%032x"' % 0, b'"type":"t",'
ITEM = b'{"specversion":"1.0","id":"forged","source":"s","type":"t","data":{}}'
FURTHER = """
kind: metric
name: further
events: {type: t}
value: data.x
aggregates: [count, stddev, last, p50, "top(data.u, 5)", "theta(data.u)", "distinct(data.u)"]
keep: {10s: 24h}
"""


# The driver, which does not wait ten minutes before it asks for audits by itself.
AT_ONCE = """
import runpy
from weir_analytics.jobs import schedule
schedule.FIRST_AFTER_S = 0.0
runpy.run_module("weir_analytics.panes", run_name="__main__")
"""


class Jobs:
    """Asks for jobs and waits for their end, as the API does."""

    def __init__(self, world: World) -> None:
        self._world, self._count = world, 0

    def ask(self, **do: Any) -> str:
        """Write a job and return its name."""
        self._count += 1
        name = f"job{self._count}"
        edit = Edit("default", "job", name, None, "test", 0)
        record = put_record(edit, json.dumps({"do": do}))
        self._world.producer.produce(names.DEFINITIONS, record.value, record.key)
        assert self._world.producer.flush(10) == 0
        return name

    def found(self, name: str) -> JobAsked:
        """Return a job as it stands now."""
        found = job_named(self._world.fold(), "default", name)
        assert found is not None
        return found

    def ended(self, name: str, state: JobState = JobState.DONE) -> dict[str, Any]:
        """Wait until a job has ended, and return its outcome."""
        wait_for(lambda: self.found(name).state.final, f"{name} to end", 300)
        found = self.found(name)
        assert found.report is not None
        assert found.state is state, found.report.outcome
        return dict(found.report.outcome)

    def run(self, **do: Any) -> dict[str, Any]:
        """Ask for a job and wait for its outcome."""
        return self.ended(self.ask(**do))


@pytest.fixture(scope="class")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a log and a store of a class's own: what is erased is gone for all its tests."""
    with running_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture(scope="class")
def job(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """Return a driver that counts a metric from the log's start."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "secrets").mkdir()
    (folder / "secrets" / "hash_key").write_bytes(KEY)
    settings = SETTINGS | {"SECRETS_DIR": str(folder / "secrets")}
    job = Job(world.bootstrap, world.redis_url, folder, settings=settings)
    world.define("amount", METRIC)
    world.define("further", FURTHER)
    try:
        job.start()
        world.wait_serving("amount")
        yield job
    finally:
        job.kill()


@pytest.fixture(scope="class")
def jobs(world: World, job: Job) -> Jobs:
    """Return who asks for jobs of a driver that runs."""
    del job
    return Jobs(world)


def refused(world: World, event_id: str, reason: str, *, source: str, **said: Any) -> None:
    """Put an item into the log that an older release refused, and this one can read."""
    item = {"specversion": "1.0", "id": event_id, "source": "s", "type": "t", **said}
    headers: list[tuple[str, str | bytes | None]] = [
        (names.HEADER_REASON, reason.encode()),
        (names.HEADER_TENANT, b"default"),
        (names.HEADER_SOURCE, source.encode()),
    ]
    world.raw(json.dumps(item).encode(), headers)


def put_back(world: World) -> list[dict[str, Any]]:
    """Return the events of the log that carry an origin, with that as `_origin`."""
    found = []
    for message in world.log():
        headers = dict(message.headers() or ())
        if names.HEADER_ORIGIN in headers:
            event = json.loads(message.value())
            found.append(event | {"_origin": headers[names.HEADER_ORIGIN].decode()})
    return found


class TestReplay:
    def test_mended_records_count_in_their_own_panes_once(self, world: World, jobs: Jobs) -> None:
        """Event time and identity are the record's own; asked again nothing comes twice."""
        then, web = "2026-01-02T03:04:05Z", "mended"
        minute_ago = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
        for i in range(30):
            said = {"time": minute_ago, "data": {"x": 1, "k": "mended", "u": "u"}}
            refused(world, f"mended-{i}", "time_invalid", source=web, **said)
        refused(world, "old", "time_invalid", source=web, time=then, data={"k": "old"})
        refused(world, "x" * 600, "id_invalid", source=web, data={})
        refused(world, "other", "too_deep", source=web, data={"x": 1, "k": "other", "u": "u"})
        world.raw(b"junk", [])
        world.wait_counted()
        quarantined, before = world.ledger()["quarantined"], len(put_back(world))

        dry = jobs.run(job="replay", reason="time_invalid", dry_run=True, source=web)
        none: dict[str, Any] = {"already": 0, "still": {}, "not_copied": 0}
        assert dry == {"would_replay": 31, "dry_run": True} | none
        assert len(put_back(world)) == before
        outcome = jobs.run(job="replay", reason="time_invalid", source=web)
        assert outcome == {"replayed": 31, "dry_run": False} | none
        again = jobs.run(job="replay", source=web)
        assert again == {
            "replayed": 1,
            "already": 31,
            "still": {"id_invalid": 1},
            "not_copied": 0,
            "dry_run": False,
        }
        assert jobs.run(job="replay", reason="not_an_event")["still"] == {"not_an_event": 1}
        events = put_back(world)
        assert len({event["_origin"] for event in events}) == len(events) == before + 32
        assert {e["time"][:19] for e in events if e["id"].startswith("mended")} == {minute_ago[:19]}
        assert_equal_to_the_log(world)
        assert world.ledger()["quarantined"] == quarantined
        panes = world.panes(world.vid("amount"), 60)
        assert sum(n for (_s, _z, series), (n, _x) in panes.items() if series == "=mended") == 30

    def test_each_record_that_only_looks_like_an_event_can_be_replayed(
        self, world: World, job: Job, jobs: Jobs
    ) -> None:
        """One batch has more of them than are copied of what a version cannot use.

        They lack their type, of which this release makes one, and have an identity of their own:
        with that of the event itself they would be taken for it.
        """
        terms = Terms("default", "forger", time.time_ns() // 1_000_000, "test")
        count = MAX_COPIES + 500
        assert job.stop() == 0
        for i in range(count):
            found = admit(ITEM.replace(b"forged", b"forged-%d" % i), 0, terms)
            assert isinstance(found, Admitted)
            forged = b'{"weirid":"%032x"' % i + found.value[len(IDENTITY) :].replace(TYPE, b"")
            world.raw(forged, [(names.HEADER_CONTENT_TYPE, names.CLOUDEVENT_JSON)])
        before = world.ledger()["quarantined"]
        job.start()
        world.wait_counted()
        outcome = jobs.run(job="replay", source="forger")

        assert world.ledger()["quarantined"] - before == count
        assert (outcome["replayed"], outcome["still"], outcome["not_copied"]) == (count, {}, 0)
        assert_equal_to_the_log(world)

    @pytest.mark.parametrize(
        ("how", "attempts"),
        [pytest.param("killed", 2, marks=pytest.mark.disruption), ("stopped", 1)],
    )
    def test_a_replay_goes_on_in_the_next_driver_and_puts_nothing_back_twice(
        self, world: World, job: Job, jobs: Jobs, how: str, attempts: int
    ) -> None:
        """Kill -9 in the middle, or a stop: each origin stands in the log once, and all do."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for i in range(12_000):
            said = {"time": now, "data": {"x": 1, "k": f"k{i % 5}", "u": "u"}}
            refused(world, f"{how}-{i}", "number_range", source=how, **said)
        world.wait_counted()
        before = len(put_back(world))
        name = jobs.ask(job="replay", reason="number_range", source=how)
        ends = sum(world.ends().values())
        # To read the log may take as long as the job; of ticks a handful come a second.
        wait_for(lambda: sum(world.ends().values()) > ends + 300, "the first to be put back")
        assert how == "killed" or job.stop() == 0
        job.kill()
        standing = len(put_back(world)) - before
        job.start()
        outcome = jobs.ended(name)
        events = put_back(world)

        assert 0 < standing < 12_000
        assert len({event["_origin"] for event in events}) == len(events) == before + 12_000
        assert outcome["replayed"] + outcome["already"] == 12_000
        assert outcome["already"] >= standing
        report = jobs.found(name).report
        # Who was told to stop is no attempt.
        assert report is not None
        assert report.attempts == attempts
        assert_equal_to_the_log(world)


class TestAudit:
    def test_one_that_nobody_asks_for_is_run_to_its_verdict(
        self, world: World, job: Job, jobs: Jobs
    ) -> None:
        """Once it is due the driver asks for it and answers, of all metrics and a whole day."""
        send(world, "scheduled")
        for name in METRICS:
            world.wait_serving(name)
        assert job.stop() == 0
        before_ms = through_ms(world)
        job.program = ("-c", AT_ONCE)
        job.settings = job.settings | {"AUDIT_HOURS": "1"}
        job.start()
        wait_for(lambda: bool(scheduled(world)), "an audit to be asked for")
        (name,) = scheduled(world)
        outcome = jobs.ended(name)

        assert (outcome["verified"], outcome["differences"], outcome["mended"]) == (True, [], [])
        told = {one["metric"]: one for one in outcome["metrics"]}
        assert told.keys() == set(METRICS)
        assert all(one["verified"] and one["events"] > 0 for one in told.values())
        assert outcome["to_ms"] - outcome["from_ms"] == 24 * 3_600_000
        assert (outcome["ledger_differences"], outcome["bounded_by"]) == ([], "last")
        assert before_ms <= outcome["to_ms"] <= through_ms(world)
        assert scheduled(world) == [name], "the next one is due in an hour"

    def test_what_is_served_is_verified(self, world: World, jobs: Jobs) -> None:
        """Panes of every resolution equal their recount, sketches within their bound."""
        send(world, "audited")
        before_ms = through_ms(world)
        outcome = jobs.run(job="audit", last="5m", sample=300, seed=7)

        assert outcome["to_ms"] - outcome["from_ms"] == 5 * 60_000
        assert before_ms <= outcome["to_ms"] <= through_ms(world)
        assert outcome["differences"] == []
        assert outcome["verified"] is True
        assert outcome["seed"] == 7
        assert [metric["metric"] for metric in outcome["metrics"]] == list(METRICS)
        for metric in outcome["metrics"]:
            assert (metric["verified"], metric["left_out"]) == (True, 0)
            assert metric["panes"] > 20
            assert metric["series"] > 0

    def test_where_more_would_be_read_than_may_be_nothing_is_verified(
        self, world: World, jobs: Jobs
    ) -> None:
        """A pane needs a day of the log before it: a budget of one record allows none."""
        send(world, "bounded")
        outcome = jobs.run(job="audit", last="5m", sample=60, most_records=1)
        assert (outcome["verified"], outcome["bounded_by"]) == (None, "records")
        assert outcome["from_ms"] == outcome["to_ms"]
        assert outcome["not_compared"] == list(METRICS)

    def test_a_difference_is_named_and_mended(self, world: World, jobs: Jobs) -> None:
        """A pane that somebody changed is found; its metric's next version is right again.

        Of whom its series is, is told for a day, and not kept in the log.
        """
        send(world, "spoilt")
        vid, version = world.wait_serving("amount"), self.version(world, "amount")
        start_s, was = spoilt(world, vid, 60)
        name = jobs.ask(job="audit", metrics=["amount"], last="5m", sample=60, mend=True)
        outcome = jobs.ended(name)
        (difference,) = outcome["differences"]

        assert outcome["verified"] is False
        assert (difference["res_s"], difference["start_s"]) == (60, start_s)
        assert (difference["metric"], difference["field"]) == ("amount", "n")
        assert (difference["served"], difference["recounted"]) == (was.n + 1, was.n)
        assert outcome["mended"] == ["amount"]
        assert "series" not in difference
        key = names.job_key(jobs.found(name).definition.vid)
        (whole,) = json.loads(world.redis.get(key) or b"")["outcome"]["differences"]
        assert whole == difference | {"series": whole["series"]}
        assert whole["series"].startswith("=k")
        assert 86_000 < world.redis.ttl(key) <= 86_400
        assert world.wait_serving("amount") > vid
        world.wait_counted()
        again = jobs.run(job="audit", metrics=["amount"], last="5m", sample=60)
        assert again["verified"] is True
        assert again["metrics"][0]["version"] == version + 1
        assert_equal_to_the_log(world)

    def test_panes_that_are_gone_are_noticed(self, world: World, jobs: Jobs) -> None:
        """Of an hour in which little happened a few instants find what happened."""
        send(world, "gone")
        vid = world.wait_serving("further")
        prefixes = [names.pane_key(shard, vid, 10, 0)[:-1] for shard in range(2)]
        for key in [key for prefix in prefixes for key in world.redis.keys(prefix + "*")]:
            world.redis.delete(key)
        outcome = jobs.run(job="audit", metrics=["further"], last="12h", sample=6, mend=True)

        assert outcome["verified"] is False
        assert outcome["metrics"][0]["events"] > 0
        assert outcome["mended"] == ["further"]
        world.wait_serving("further")

    def test_a_row_of_the_ledger_that_is_wrong_is_named(self, world: World, jobs: Jobs) -> None:
        """Beside metrics that are right; before that the same minutes are as the log says."""
        send(world, "listed")
        asked = {"job": "audit", "metrics": ["amount"], "last": "10m", "sample": 60, "ledger": True}
        # Of a minute that is not over more may come.
        over_ms = (through_ms(world) // 60_000 + 1) * 60_000
        wait_for(lambda: through_ms(world) > over_ms, "the minute to be over", 90)
        outcome = jobs.run(**asked)
        assert (outcome["verified"], outcome["ledger_differences"]) == (True, [])
        assert outcome["ledger"]["verified"] is True
        assert outcome["ledger"]["records"] >= SENT // 2
        assert (outcome["ledger"]["minutes"] > 0, outcome["ledger"]["left_out"]) == (True, 0)

        start_s, was = spoilt(world, -1, 60)
        outcome = jobs.run(**asked)
        (row,) = outcome["ledger_differences"]
        assert (row["minute_ms"], row["disposition"]) == (1000 * start_s, "counted")
        assert (row["served"], row["recounted"]) == (was.n + 1, was.n)
        assert (outcome["verified"], outcome["ledger"]["verified"]) == (False, False)
        assert (outcome["differences"], outcome["mended"]) == ([], [])

    def version(self, world: World, name: str) -> int:
        """Return the number of a metric's newest version."""
        return int(world.fold().get("default", "metric", name).version)

    def test_a_metric_that_is_not_there_is_refused(self, jobs: Jobs) -> None:
        """The job fails, and says what was required."""
        outcome = jobs.ended(jobs.ask(job="audit", metrics=["nobody"]), JobState.FAILED)
        assert "metrics must be defined, got nobody" in outcome["error"]


def scheduled(world: World) -> list[str]:
    """Return the names of the jobs that nobody has asked for."""
    return [one.name for one in world.fold().current(kind="job") if one.by == schedule.BY]


def through_ms(world: World) -> int:
    """Return the received time up to which all is counted."""
    last = world.records()[-1][1]
    assert isinstance(last, BatchRecord)
    return last.processed_through_ms


def send(world: World, what: str) -> None:
    """Have some events counted, some with a text that is too long for a list."""
    for i in range(SENT):
        user = f"u{i % 40}" if i % 40 else "é" * 129
        world.send(f"{what}-{i}", x=i, k=f"k{i % 3}", u=user)
    world.wait_counted()


def spoilt(world: World, vid: int, res_s: int) -> tuple[int, rows.Row]:
    """Count one event too many in a pane just filled; return its start and the row as it was."""
    sizes: Counter[int] = Counter()
    for (_shard, start_s, _series), row in world.rows(vid, res_s).items():
        sizes[start_s] += row.n
    # Of what `send` sends most is in one pane. The next may have begun just now, with a few of
    # them: then no instant of a sample may lie in it.
    start_s = max(start_s for start_s, n in sizes.items() if n >= SENT // 2)
    keys = (names.pane_key(shard, vid, res_s, start_s) for shard in range(2))
    key = next(key for key in keys if world.redis.exists(key))
    short, packed = next(iter(world.redis.hgetall(key).items()))
    wrong = rows.decode(packed)
    wrong.n += 1
    world.redis.hset(key, short, rows.encode(wrong))
    return start_s, rows.decode(packed)


@dataclass(frozen=True)
class Erased:
    """What was there before a subject was erased: the versions, and how many were as erased."""

    vids: dict[str, int]
    accounted: int


@pytest.fixture(scope="class")
def erased(world: World, jobs: Jobs) -> Erased:
    """Return a world where a fourth of 40 events is erased, and of 8 that came later."""
    for i in range(40):
        world.send(f"about-{i}", subject=f"user-{i % 4}", x=1, k="about", u="u")
    world.wait_counted()
    vids = {name: world.wait_serving(name) for name in ("amount", "further")}
    before = Erased(vids, world.ledger()["erased"])
    assert count_of(world, "amount", "=about") == 40

    outcome = jobs.run(job="erase", subject_hash=subject_hash(KEY, "default", "user-1"))
    assert set(outcome["metrics"]) >= {"amount", "further"}
    assert count_of(world, "amount", "=about") == 30
    for i in range(8):
        world.send(f"later-{i}", subject=f"user-{i % 4}", x=1, k="about", u="u")
    world.send("later-1", subject="user-1", x=1, k="about", u="u")
    world.wait_counted()
    return before


class TestErase:
    def test_nothing_is_served_that_was_counted_of_a_subject(
        self, world: World, erased: Erased
    ) -> None:
        """Each metric is counted anew without it; what comes later is accounted as erased."""
        for name, vid in erased.vids.items():
            assert world.vid(name) > vid
            assert world.fold().activations[world.vid(name)].serves
        assert count_of(world, "amount", "=about") == 36
        assert world.ledger()["erased"] - erased.accounted == 2
        told = b"".join(m.value() or b"" for m in world.log(names.DEFINITIONS))
        assert b"user-1" not in told

    def test_what_was_erased_stays_so_when_it_is_counted_again(
        self, world: World, job: Job, erased: Erased
    ) -> None:
        """After a loss of Redis the log is counted again: as before, without the subject."""
        epoch = world.fold().epoch()
        assert count_of(world, "amount", "=about") == 36
        world.redis.flushall()
        wait_for(lambda: (world.fold().epoch() or 0) > epoch, "a new epoch")
        world.wait_counted()

        found = count_of(world, "amount", "=about")
        assert found == 36, (world.records(), world.fold().lanes, job.lines("slice"))
        assert world.ledger()["erased"] - erased.accounted == 2

    @pytest.mark.usefixtures("erased")
    def test_an_audit_counts_without_them_too(self, jobs: Jobs) -> None:
        """Else it would name a difference, and mend it, each night."""
        outcome = jobs.run(**AUDIT)

        assert outcome["verified"] is True

    @pytest.mark.usefixtures("erased")
    def test_a_loss_before_a_takeover_is_no_difference(self, world: World, jobs: Jobs) -> None:
        """What still serves is counted again without who was erased since; the audit knows."""
        epoch, vid = world.fold().epoch(), world.vid("amount")
        name = jobs.ask(job="erase", subject_hash=subject_hash(KEY, "default", "user-2"))
        wait_for(lambda: jobs.found(name).report is not None, "the erasure to hold")
        outcome = jobs.run(**AUDIT)
        assert (outcome["verified"], count_of(world, "amount", "=about")) == (True, 36)
        world.redis.flushall()
        wait_for(lambda: (world.fold().epoch() or 0) > epoch, "a new epoch")
        world.wait_counted()
        assert count_of(world, "amount", "=about") == 24
        outcome = jobs.run(**AUDIT, mend=True)

        assert (outcome["differences"], outcome["mended"]) == ([], [])
        assert outcome["verified"] is True
        assert outcome["metrics"][0]["unsure"] > 0
        assert world.vid("amount") == vid, "for erasures it is counted again once a day"


class TestEraseWhereTheLogIsGone:
    def test_older_panes_name_nobody(self, world: World, jobs: Jobs) -> None:
        """Series and lists lose the name, no count changes, and no text of it is left."""
        for i in range(20):
            world.send(f"old-{i}", subject=f"who-{i % 4}", x=2, k=f"who-{i % 4}", u=f"who-{i % 4}")
        world.wait_counted()
        vids = {name: world.wait_serving(name) for name in ("amount", "further")}
        before = {name: world.panes(vid, 10) for name, vid in vids.items()}
        assert {series for _, _, series in before["amount"]} > {"=who-1", "=who-2"}
        world.delete_before(max(world.ends().values()))

        jobs.run(job="erase", subject_hash=subject_hash(KEY, "default", "who-1"))

        after = {name: world.panes(vid, 10) for name, vid in vids.items()}
        assert sums(after["amount"]) == sums(before["amount"])
        assert {k: v for k, v in after["amount"].items() if k[2] not in ("*", "=who-1")} == {
            k: v for k, v in before["amount"].items() if k[2] != "=who-1"
        }
        assert sum(n for (_, _, s), (n, _) in after["amount"].items() if s == "*") == 5
        assert after["further"] == before["further"]
        keys = [key for key in world.redis.keys("weir:1:{s*") if world.redis.type(key) == b"hash"]
        told = [each for key in keys for pair in world.redis.hgetall(key).items() for each in pair]
        assert any(b"who-2" in each for each in told)
        assert [each for each in told if b"who-1" in each] == []


def sums(panes: Panes) -> tuple[int, float]:
    """Return how many events panes hold, and the sum of their values."""
    return sum(n for n, _ in panes.values()), sum(total for _, total in panes.values())


def count_of(world: World, name: str, series: str) -> int:
    """Return how many events a metric's newest version has of a series."""
    panes = world.panes(world.vid(name), 10)
    return sum(n for (_start, _zero, text), (n, _sum) in panes.items() if text == series)
