"""The job as a process: what it serves is what the log says, whatever is killed in between."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from weir import names
from weir.batches import BatchRecord, Opening
from weir_analytics.panes.between import LONGEST_PAUSE_S

from .live_job import (
    METRIC,
    Job,
    World,
    assert_equal_to_the_log,
    group_offsets,
    recount,
    running_world,
    wait_for,
)

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.redis]


# Batches above go by Spark's source, the others by a task that reads by itself: both are met.
# And so small ones that to count a log again takes some slices.
SETTINGS = {"SHARDS": "2", "SMALL_BATCH": "200", "MAX_RECORDS": "5000"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a log and a store of this module's own: others' have other tests' records."""
    with running_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture(scope="module")
def job(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """Return a job that runs and has counted its first metric's start."""
    folder = tmp_path_factory.mktemp("job")
    job = Job(world.bootstrap, world.redis_url, folder, settings=SETTINGS)
    world.define("amount", METRIC)
    job.start()
    world.wait_active("amount")
    yield job
    job.kill()


def send_some(world: World, seed: str, count: int) -> None:
    """Send events, a tenth of them twice."""
    for i in range(count):
        for _ in range(2 if i % 10 == 0 else 1):
            world.send(f"{seed}-{i}", x=i, k=f"k{i % 7}", u=f"u{i % 50}")
    world.producer.flush(30)


@contextmanager
def sending(world: World, seed: str) -> Iterator[None]:
    """Send some events again and again as long as the block lasts."""
    over = threading.Event()

    def send() -> None:
        for part in count():
            send_some(world, f"{seed}-{part}", 20)
            if over.wait(0.1):
                return

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        over.set()
        sender.join()


def done_by(turns: Sequence[dict[str, Any]]) -> dict[int, int]:
    """Return by revision how many records slices had counted before its batch."""
    done, found = 0, {}
    for turn in turns:
        if turn["event"] == "slice":
            done += turn["records"]
        else:
            found[turn["rev"]] = done
    return found


def check_pauses(turns: Sequence[dict[str, Any]]) -> None:
    """Assert that slices have half of the time at most, and batches of events come in between.

    Of a slice that took very long only so much is asked for as live counting is left for.
    """
    slices = [at for at, turn in enumerate(turns) if turn["event"] == "slice"]
    between = turns[slices[0] : slices[-1]]
    assert (
        sum(turn["event"] == "batch" and turn["received"] > 0 for turn in between)
        >= len(slices) - 1
    )
    left_s = least_s = 0.0
    for one, other in pairwise(turns[at] for at in slices):
        ends = [datetime.fromisoformat(turn["at"]) for turn in (one, other)]
        left_s += (ends[1] - ends[0]).total_seconds() - other["ms"] / 1000
        least_s += min(one["ms"] / 1000, LONGEST_PAUSE_S)
    # The clock of the lines is not the one that pauses are waited for by.
    assert left_s >= 0.7 * least_s


def totals_of(world: World, vid: int, start: str) -> dict[str, tuple[int, float]]:
    """Return count and sum of the series whose name begins with some text, over all panes."""
    found: dict[str, tuple[int, float]] = {}
    for (_start_s, _zero, series), (n, total) in world.panes(vid, 60).items():
        if series.startswith(f"={start}"):
            before = found.get(series, (0, 0.0))
            found[series] = (before[0] + n, before[1] + total)
    return found


def lives(job: Job) -> list[Path]:
    """Return the folders in which a driver's JVM has put aside what it needs for a life."""
    return list((job.folder / "state" / "spark").iterdir())


class TestJob:
    def test_every_record_is_counted_or_accounted_for(self, world: World, job: Job) -> None:
        """Events, duplicates, junk and refused items end where the log says; ticks nowhere."""
        send_some(world, "a", 500)
        world.raw(b"no json", [])
        world.raw(b"{", [("weir-reason", b"invalid_json"), ("weir-tenant", b"default")])
        world.raw(b'{"specversion":"1.0","id":"f","source":"s","type":"t","data":{}}', [])
        world.send("bad", x="seven", k="k1", u="u")

        assert_equal_to_the_log(world)
        wait_for(lambda: world.beat(job.name)["detail"]["lag_records"] == 0, "no lag", 30)
        copies = {
            (dict(m.headers())["weir-reason"], m.value()[:10], b"weir-version" in m.headers())
            for m in world.log(names.QUARANTINE)
        }
        assert {reason for reason, _v, _h in copies} == {
            b"not_an_event",
            b"invalid_json",
            b"value_invalid",
            b"value_missing",
        }
        assert {value for _r, value, _h in copies if not value.startswith(b'{"')} == {
            b"no json",
            b"{",
        }

    def test_what_a_metric_cannot_use_is_copied_up_to_a_bound(self, world: World, job: Job) -> None:
        """Of a metric with a wrong path a part is copied; the last copy says how many are not."""
        world.define("wrong", METRIC.replace("amount", "wrong").replace("data.x", "data.nowhere"))
        vid = world.wait_active("wrong")
        send_some(world, "unusable", 10_000)
        assert_equal_to_the_log(world)
        world.delete("wrong", based_on=1)

        copies = [m for m in world.log(names.QUARANTINE) if b'"id":"unusable-' in m.value()]
        told = map(dict, (message.headers() for message in copies))
        own = [headers for headers in told if headers.get("weir-version") == b"%d" % vid]
        missing = sum(int(headers.get("weir-left-out", 0)) for headers in own)
        assert len(own) + missing == 10_000
        assert {line["small"] for line in job.lines("batch")} == {True, False}

    def test_what_a_version_could_not_use_the_next_one_counts(self, world: World, job: Job) -> None:
        """Numbers that were sent as texts: the metric is mended, and has them from the log."""
        del job
        text = METRIC.replace("name: amount", "name: words")
        world.define("words", text)
        old = world.wait_active("words")
        for i in range(200):
            world.send(f"words-{i}", x=str(i), k=f"words-{i % 3}", u="u")
        world.producer.flush(30)
        world.wait_counted()
        assert not totals_of(world, old, "words")
        copies = [dict(m.headers()) for m in world.log(names.QUARANTINE) if b'"words-' in m.value()]
        own = [headers for headers in copies if headers.get("weir-version") == b"%d" % old]
        assert {headers["weir-reason"] for headers in own} == {b"value_invalid"}
        assert len(own) + sum(int(headers.get("weir-left-out", 0)) for headers in own) == 200

        world.define("words", text.replace("data.x", "to_number(data.x)"), based_on=1)
        new = world.wait_serving("words")
        assert new != old
        assert totals_of(world, new, "words") == {
            f"=words-{k}": (len(range(k, 200, 3)), float(sum(range(k, 200, 3)))) for k in range(3)
        }
        world.delete("words", based_on=2)

    def test_kafkas_own_tools_see_how_far_it_is(self, world: World, job: Job) -> None:
        """The offsets of its consumer group are those of its marks."""
        del job
        send_some(world, "grouped", 20)
        world.wait_counted()

        def are_told() -> bool:
            counted = world.counted_to()
            return counted == group_offsets(world.bootstrap, names.EVENTS, counted)

        wait_for(are_told, "the offsets of the group", 30)

    def test_records_follow_each_other_and_add_up(self, world: World, job: Job) -> None:
        """Each batch begins where the last ended, and its account is what it read."""
        del job
        records = [record for _id, record in world.records()]
        assert isinstance(records[0], Opening)
        batches = [record for record in records if isinstance(record, BatchRecord)]
        for before, after in pairwise(batches):
            assert after.from_offsets == before.to_offsets
            assert after.rev == before.rev + 1
            assert after.processed_through_ms >= before.processed_through_ms
            assert (after.received_to_ms or 0) >= (before.received_to_ms or 0)
        for record in batches:
            width = sum(end - record.from_offsets.get(p, 0) for p, end in record.to_offsets.items())
            assert record.received + record.ticks == width
            told = sum(
                row.counted + row.duplicate + row.quarantined + row.beyond_horizon + row.erased
                for row in record.ledger
            )
            assert told == record.received
            newest_ms = max((row.minute_ms for row in record.ledger), default=0)
            assert (record.received_to_ms or 0) >= max(record.processed_through_ms, newest_ms)

    def test_an_edit_is_counted_from_the_log_and_takes_over(self, world: World, job: Job) -> None:
        """The new version holds the whole log, also what came before it and while it was filled."""
        send_some(world, "before", 300)
        old = world.wait_serving("amount")
        world.define("amount", METRIC.replace("p95, ", ""), based_on=1)
        send_some(world, "while", 50)
        new = world.wait_serving("amount")
        taken = world.fold().activations[new]
        assert (taken.after, taken.cut) == (old, {10: 0, 60: 0})
        hours_ago_ms = time.time_ns() // 1_000_000 - 7_200_000
        world.send("late", hours_ago_ms, x=1, k="late")
        assert_equal_to_the_log(world)
        told = [r for _i, r in world.records() if isinstance(r, BatchRecord) and r.takeovers]
        assert [new] in [record.takeovers for record in told]
        lanes = {line["lane"] for line in job.lines("slice")}
        assert {lane.offset for lane in world.fold().lanes.values() if new in lane.vids} <= lanes

    def test_an_edit_splits_the_past_by_what_is_computed(self, world: World, job: Job) -> None:
        """A dimension that was a path is computed from now on, of all that the log has."""
        del job
        text = METRIC.replace("name: amount", "name: sites")
        world.define("sites", text)
        old = world.wait_serving("sites")
        for i in range(300):
            world.send(f"sites-{i}", x=i, k=f"site{i % 3}/page{i % 50}", u="u")
        world.wait_counted()
        assert len(totals_of(world, old, "site")) == 150
        computed = text.replace("[data.k]", "[\"split_part(data.k, '/', 1) as site\"]")
        world.define("sites", computed, based_on=1)
        for i in range(300, 360):
            world.send(f"sites-{i}", x=i, k=f"site{i % 3}/page{i % 50}", u="u")
        new = world.wait_serving("sites")
        assert world.fold().activations[new].after == old
        world.wait_counted()
        assert totals_of(world, new, "site") == {
            f"=site{k}": (120, float(sum(range(k, 360, 3)))) for k in range(3)
        }
        world.delete("sites", based_on=2)

    def test_a_second_driver_takes_over_and_the_first_ends(
        self, world: World, job: Job, tmp_path: Path
    ) -> None:
        """Two drivers never take turns: the older one is fenced and ends with code 3."""
        assert job.process is not None
        other = Job(world.bootstrap, world.redis_url, tmp_path, "other", SETTINGS)
        other.start()
        process = job.process
        wait_for(lambda: process.poll() is not None, "the first driver to end")
        assert process.poll() == 3
        world.wait_counted()
        other.kill()
        job.start()
        world.wait_counted()

    @pytest.mark.disruption
    def test_killed_in_the_middle_of_batches_it_ends_equal(
        self, world: World, job: Job, seed: int
    ) -> None:
        """Kill -9 of the whole tree under load, twice: no event lost, none counted twice."""
        world.define("again", METRIC.replace("amount", "again"))
        world.wait_active("again")
        chance = random.Random(seed)  # noqa: S311
        for life in range(2):
            rev = len(world.records())
            for part in range(5):
                send_some(world, f"kill-{seed}-{life}-{part}", 200)
            wait_for(lambda rev=rev: len(world.records()) > rev, "a batch")  # type: ignore[misc]
            wait_for(lambda: chance.random() < 0.2, "chance")
            job.kill()
            job.start()

        assert_equal_to_the_log(world, "again")

    def test_what_waited_when_all_was_lost_is_quarantined(self, world: World, job: Job) -> None:
        """Without Redis and checkpoint nobody says what was counted: copies are made of all.

        Of what one metric cannot use, of what ingest refused, and of what is no event.
        """
        world.define("unread", METRIC.replace("amount", "unread").replace("data.x", "data.nowhere"))
        vid = world.wait_active("unread")
        world.wait_counted()
        job.kill()
        send_some(world, "unread", 100)
        world.raw(b"unread", [])
        world.raw(b"{unread", [("weir-reason", b"invalid_json"), ("weir-tenant", b"default")])
        world.producer.flush(30)
        world.redis.flushall()
        shutil.rmtree(job.folder / "state" / "checkpoint")
        job.start()
        world.wait_counted()
        assert_equal_to_the_log(world)
        world.delete("unread", based_on=1)

        copies = [m for m in world.log(names.QUARANTINE) if b"unread" in m.value()]
        told = [dict(message.headers()) for message in copies]
        own = [headers for headers in told if headers.get("weir-version") == b"%d" % vid]
        assert len(own) + sum(int(headers.get("weir-left-out", 0)) for headers in own) == 100
        whole = {headers["weir-reason"] for headers in told if "weir-version" not in headers}
        assert whole == {b"not_an_event", b"invalid_json"}

    @pytest.mark.disruption  # the short faults empty one, under load (D5)
    def test_a_wiped_redis_is_counted_again_from_the_log(self, world: World, job: Job) -> None:
        """After FLUSHALL the job begins a new epoch unasked and ends equal to the log."""
        assert job.process is not None
        epoch = world.fold().epoch()
        world.redis.flushall()
        wait_for(lambda: (world.fold().epoch() or 0) > epoch, "a new epoch")
        send_some(world, "wiped", 50)

        assert_equal_to_the_log(world)
        assert job.process.poll() is None

    def test_an_older_dump_of_one_shard_is_levelled(self, world: World, job: Job) -> None:
        """A shard put back in time counts what it lacks, alone, and the other nothing twice."""
        world.define("levelled", METRIC.replace("amount", "levelled"))
        world.wait_active("levelled")
        send_some(world, "dumped", 100)
        world.wait_counted()
        dump = world.dump(1)
        send_some(world, "dumped-later", 200)
        world.wait_counted()
        before = len(job.lines("reconciled"))
        world.restore(1, dump)
        wait_for(lambda: len(job.lines("reconciled")) > before, "the driver to begin again")

        assert job.lines("reconciled")[before]["verdict"] == "behind"
        assert_equal_to_the_log(world, "levelled")

    @pytest.mark.disruption  # the short faults delete it, cut it short, put an old one back (D15)
    def test_without_its_checkpoint_it_goes_on_where_the_shards_stand(
        self, world: World, job: Job
    ) -> None:
        """A checkpoint deleted between two lives costs nothing and counts nothing again.

        Nor does a partition that was added meanwhile, of which no mark knows.
        """
        world.define("rewound", METRIC.replace("amount", "rewound"))
        world.wait_active("rewound")
        send_some(world, "rewound", 100)
        world.wait_counted()
        job.kill()
        shutil.rmtree(job.folder / "state" / "checkpoint")
        world.add_partition()
        before = len(job.lines("reconciled"))
        job.start()
        send_some(world, "rewound-later", 100)
        wait_for(lambda: len(job.lines("reconciled")) > before, "the driver to take over")

        assert job.lines("reconciled")[before]["verdict"] == "rewind"
        assert_equal_to_the_log(world, "rewound")

    def test_without_its_dedup_files_a_repetition_is_still_a_duplicate(
        self, world: World, job: Job
    ) -> None:
        """The files are a cache: what they said is read from the log again."""
        world.define("repeated", METRIC.replace("amount", "repeated"))
        world.wait_active("repeated")
        for seed in ("repeated", "repeated-once"):
            send_some(world, seed, 100)
        world.wait_counted()
        duplicates = world.ledger()["duplicate"]
        dedup = job.folder / "state" / "dedup"
        dedup.rename(dedup.with_name("gone"))
        send_some(world, "repeated", 100)
        world.wait_counted()

        assert world.ledger()["duplicate"] == duplicates + 110
        assert_equal_to_the_log(world, "repeated")

    def test_sigterm_ends_it_cleanly(self, world: World, job: Job) -> None:
        """Told to stop it ends with code 0, and goes on where it was."""
        assert len(lives(job)) == 1, "of those that were killed nothing is left"
        assert job.stop() == 0
        assert lives(job) == []
        assert not world.redis.keys(names.part_key("panes", job.name))
        epoch = world.fold().epoch()
        job.start()
        send_some(world, "resumed", 50)

        assert_equal_to_the_log(world)
        assert world.fold().epoch() == epoch

    def test_a_backfill_is_seen_and_leaves_live_counting_its_time(
        self, world: World, job: Job
    ) -> None:
        """What records tell of it is what its slices have counted; each gives way to a batch."""
        send_some(world, "history", 40_000)
        world.wait_counted()
        known = len(job.lines("slice", "batch"))
        # Of few series, since a tenant's metrics share its memory.
        world.define("filled", METRIC.replace("amount", "filled") + "max_series: 10\n")
        with sending(world, "beside"):
            vid = world.wait_serving("filled")
        world.wait_counted()
        (lane,) = (one for one in world.fold().lanes.values() if vid in one.vids)
        turns = job.lines("slice", "batch")[known:]
        assert {turn["lane"] for turn in turns if turn["event"] == "slice"} == {lane.offset}

        records = [r for _id, r in world.records() if isinstance(r, BatchRecord)]
        told = {r.rev: (p.at, p.of) for r in records for p in r.lanes if p.lane == lane.offset}
        done = done_by(turns)
        assert told == {rev: (done[rev], lane.records) for rev in told}
        assert min(told.values()) == (0, lane.records)
        assert len(set(told.values())) >= 4, "it is seen to move"
        (taken,) = (record.rev for record in records if vid in record.takeovers)
        assert set(told) == set(range(min(told), taken)), "and to be over once it is"
        check_pauses(turns)

    def test_panes_that_the_log_no_longer_has_stay_with_the_version_before(
        self, world: World, job: Job
    ) -> None:
        """A version takes over where it is complete: a day after the log's start.

        Last, since it takes the start of the log away that the others count again.
        """
        del job
        old = world.wait_serving("amount")
        held = world.panes(old, 10)
        world.delete_before(200)
        based_on = world.fold().get("default", "metric", "amount").version
        world.define("amount", METRIC, based_on=based_on)
        new = world.wait_serving("amount")
        taken = world.fold().activations[new]

        assert taken.after == old
        ahead_s = taken.cut[10] - time.time_ns() // 10**9
        assert 23 * 3600 < ahead_s <= 24 * 3600 + 20
        send_some(world, "after", 100)
        world.wait_counted()
        sent = [m for m in world.log() if b'"id":"after-' in (m.value() or b"")]
        late, _tally = recount(sent, 10)
        now = world.panes(old, 10)
        for place, (n, total) in late.items():
            was = held.get(place, (0, 0.0))
            assert now[place] == (was[0] + n, was[1] + total)
