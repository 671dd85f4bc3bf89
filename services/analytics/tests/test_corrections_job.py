"""I9 on the real job: first final value plus all corrections is the value now."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest
from weir import names
from weir.batches import BatchRecord, Opening
from weir.corrections import CorrectionRecord, Figures, decode
from weir.frequent import Counted, texts_union, top_of
from weir.query.estimates import estimates_of
from weir.rows import Row
from weir.series import OTHER

from .live_job import METRIC, Job, Panes, World, assert_equal_to_the_log, running_world, wait_for
from .log_frames import EVENT, event

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.redis]

REPEATED = 240_000
SETTINGS = {"SHARDS": "2", "SMALL_BATCH": "200"}
LISTED = METRIC.replace("(data.u)", '(data.u)", "top(data.u, 10)')
PROMPT = LISTED.replace("name: amount", "name: prompt") + "allowed_lateness: 1s\n"
CAPPED = (
    PROMPT.replace("name: prompt", "name: capped").replace("data.k", "data.x") + "max_series: 2\n"
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a log and a store of this module's own."""
    with running_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture(scope="module")
def job(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """Return a job that counts a metric whose panes are final a second after their end."""
    folder = tmp_path_factory.mktemp("job")
    job = Job(world.bootstrap, world.redis_url, folder, settings=SETTINGS)
    world.define("prompt", PROMPT)
    world.define("capped", CAPPED)
    job.start()
    world.wait_active("prompt")
    world.wait_active("capped")
    yield job
    job.kill()


@dataclass
class Final:
    """Panes that were final at an instant, with their values then.

    Attributes:
        at_ms: Processed-through then.
        told: Keys of the corrections that the values then have in them.
        panes: By metric and resolution: (start, 0, series) -> (count, sum).
    """

    at_ms: int
    told: set[str]
    panes: dict[tuple[str, int], Panes] = field(default_factory=dict)

    @classmethod
    def of(cls, world: World) -> Final:
        """Return what is final now."""
        record = world.records()[-1][1]
        assert isinstance(record, BatchRecord)
        found = cls(record.processed_through_ms, {one.key for one in kept_once(world)})
        for place in itertools.product(("prompt", "capped"), (10, 60)):
            found.panes[place] = found.held(world, *place)
        return found

    def held(self, world: World, name: str, res_s: int) -> Panes:
        """Return what is held now of the panes that were final then."""
        return {
            key: row
            for key, row in world.panes(world.vid(name), res_s).items()
            if (key[0] + res_s + 1) * 1000 <= self.at_ms
        }


def wait_past(world: World, at_ms: int) -> None:
    """Wait until the newest batch record has counted beyond an instant."""

    def past() -> bool:
        last = world.records()[-1][1]
        return isinstance(last, BatchRecord) and last.processed_through_ms > at_ms

    wait_for(past, "processed-through to go on")


def kept_once(world: World) -> list[CorrectionRecord]:
    """Return the records of the topic; of copies the first."""
    found: dict[bytes, CorrectionRecord] = {}
    for message in world.log(names.CORRECTIONS):
        found.setdefault(message.key(), decode(message.value()))
    return list(found.values())


def check_i9(world: World, final: Final) -> int:
    """Compare each pane that was final with its first value and corrections; return how many."""
    changes = [one for one in kept_once(world) if one.key not in final.told]
    checked = 0
    for (name, res_s), first in final.panes.items():
        told = dict(first)
        vid = world.vid(name)
        for one in changes:
            key = (one.start_s, 0, one.series)
            last_ms = (one.start_s + res_s + 1) * 1000
            if (one.vid, one.res_s) != (vid, res_s) or last_ms > final.at_ms:
                continue
            n, total = told.get(key, (0, 0.0))
            was, now = one.was or Figures(0), one.now or Figures(0)
            told[key] = (n + now.n - was.n, total + (now.sum or 0) - (was.sum or 0))
        assert {key: row for key, row in told.items() if row[0]} == final.held(world, name, res_s)
        checked += len(told)
    return checked


def check_estimates(world: World, vid: int) -> int:
    """Compare what the newest correction of each row says with the row; return how many."""
    newest = {
        (one.res_s, one.start_s, one.series): one
        for one in sorted(kept_once(world), key=lambda one: (one.epoch, one.batch))
        if one.vid == vid and one.now is not None
    }
    held = {
        (res_s, start_s, series): row
        for res_s in (10, 60)
        for (_shard, start_s, series), row in world.rows(vid, res_s).items()
    }
    for place, one in newest.items():
        assert one.now is not None
        assert one.now.estimates == estimates_of(held[place], ("p95", "distinct")), place
        listed = {text: counts for text, *counts in top_in(held[place])}
        assert {text: [*now] for text, _was, now in one.moved}.items() <= listed.items(), place
        assert all(was < now for _text, was, now in one.moved), place
    return sum("p95" in (one.now.estimates or {}) for one in newest.values() if one.now)


def top_in(row: Row) -> Sequence[Counted]:
    """Return all texts of a row's list: there are seven, each of which it counts exactly."""
    assert row.further is not None
    assert row.further.top is not None
    return top_of(texts_union([row.further.top]), 100).items


def late_events(world: World, seed: str, base_ms: int, count: int, source: str = "web") -> None:
    """Send events of the past five minutes, each third of them twice."""
    for i in range(count):
        for _ in range(1 + (i % 3 == 0)):
            at_ms, user = base_ms - (i % 30) * 10_000, f"u{i % 7}"
            world.send(f"{seed}-{i}", at_ms, source=source, x=i, k=f"k{i % 4}", u=user)
    world.producer.flush(30)


def test_first_final_value_and_corrections_are_the_value_now(world: World, job: Job) -> None:
    """With late events to panes that were there and to new ones, and a kill in the middle."""
    base_ms = time.time_ns() // 1_000_000 - 120_000
    late_events(world, "first", base_ms, 60)
    world.wait_counted()
    wait_past(world, base_ms + 70_000)
    vid = world.vid("prompt")
    final = Final.of(world)
    assert final.panes["prompt", 10]
    late_events(world, "late", base_ms - 5_000, 90)
    late_events(world, "older", base_ms - 200_000, 30, source="shop")
    before = len(kept_once(world))
    wait_for(lambda: len(kept_once(world)) > before, "a correction")
    job.kill()
    job.start()
    # Of ten seconds ten events a series: enough for a p95.
    late_events(world, "large", base_ms - 7_000, 2_000)
    world.wait_counted()

    assert check_i9(world, final) > 100
    assert check_estimates(world, vid) > 10
    assert {one.shard for one in kept_once(world) if one.series == OTHER} == {0, 1}
    corrections = [one for one in kept_once(world) if one.vid == vid]
    assert all(one.moved for one in corrections if one.now is not None)
    assert {one.metric for one in corrections} == {"prompt"}
    assert any(one.was is None for one in corrections)
    assert all(one.final_ms <= one.received_ms for one in corrections)
    known = [one for one in corrections if one.sources_known]
    assert known
    senders: dict[bool, set[tuple[str, ...]]] = {True: set(), False: set()}
    for one in known:
        # Of this series at most as many came as its sources sent into the pane.
        assert one.events <= sum(n for _name, n in one.sources)
        by_web = one.res_s == 10 and one.start_s * 1000 > base_ms - 200_000
        senders[by_web].add(tuple(sorted(name for name, _n in one.sources)))
    # Where only one sent it is told alone, and where both did, in one batch or in two, both are.
    assert senders[True] == {("web",)}
    assert {name for names in senders[False] for name in names} == {"shop", "web"}
    assert_equal_to_the_log(world, "prompt")


def test_the_first_batch_of_an_epoch_corrects_too(world: World, job: Job) -> None:
    """REWIND: what came late while the driver was away, and its checkpoint went with it."""
    base_ms = time.time_ns() // 1_000_000 - 120_000
    late_events(world, "before", base_ms, 60)
    world.wait_counted()
    wait_past(world, base_ms + 70_000)
    job.kill()
    final = Final.of(world)
    shutil.rmtree(job.folder / "state")
    late_events(world, "away", base_ms - 5_000, 90)
    job.start()
    world.wait_counted()

    (opening,) = [one for _id, one in world.records()[-200:] if is_rewind(one, final)]
    first = [one for one in kept_once(world) if (one.epoch, one.batch) == (opening.epoch, 0)]
    assert any(one.metric == "prompt" for one in first)
    assert check_i9(world, final) > 100


def test_what_was_told_before_redis_went_back_is_not_told_again(world: World, job: Job) -> None:
    """BEHIND: all shards come back from a backup; they are levelled to where counting was."""
    del job
    base_ms = time.time_ns() // 1_000_000 - 120_000
    late_events(world, "kept", base_ms, 60)
    world.wait_counted()
    wait_past(world, base_ms + 70_000)
    final = Final.of(world)
    backup = [world.dump(shard) for shard in range(2)]
    late_events(world, "gone", base_ms - 5_000, 90)
    world.wait_counted()
    told = [one for one in kept_once(world) if one.key not in final.told]
    assert any(one.metric == "prompt" for one in told)

    for shard, dump in enumerate(backup):
        world.restore(shard, dump)
    opened = partial(openings, world, "behind", final.at_ms)
    wait_for(lambda: bool(opened()), "a new epoch")
    late_events(world, "back", base_ms - 5_000, 30)
    world.wait_counted()
    assert check_i9(world, final) > 100


def openings(world: World, reason: str, since_ms: int) -> list[Opening]:
    """Return the entries of the stream that opened an epoch for a reason."""
    entries = (one for _id, one in world.records() if isinstance(one, Opening))
    return [one for one in entries if one.reason == reason and one.at_ms > since_ms]


def is_rewind(record: BatchRecord | Opening, final: Final) -> bool:
    """Tell whether an entry of the stream opens an epoch after a lost checkpoint."""
    return isinstance(record, Opening) and record.reason == "rewind" and record.at_ms > final.at_ms


def late_until(world: World, seed: str, done: Callable[[], bool]) -> None:
    """Send a late event over and over until something is true; then wait for all of them."""
    base_ms = time.time_ns() // 1_000_000 - 120_000
    numbers = itertools.count()

    def sent() -> bool:
        world.send(f"{seed}-{next(numbers)}", base_ms, x=1, k="k1", u="u")
        world.producer.flush(30)
        return done()

    wait_for(sent, seed)
    world.wait_counted()


def check_again(world: World, seed: str) -> None:
    """Compare what is final now with what later events make of it."""
    base_ms = time.time_ns() // 1_000_000 - 120_000
    late_events(world, f"{seed}-first", base_ms, 60)
    world.wait_counted()
    wait_past(world, base_ms + 70_000)
    final = Final.of(world)
    late_events(world, f"{seed}-late", base_ms - 5_000, 90)
    world.wait_counted()
    assert check_i9(world, final) > 100


def batches(world: World) -> list[BatchRecord]:
    """Return the batch records of the present epoch."""
    found = [one for _id, one in world.records() if isinstance(one, BatchRecord)]
    return [one for one in found if one.epoch == found[-1].epoch]


def test_a_version_that_is_filled_corrects_nothing(world: World, job: Job) -> None:
    """A late event is told of the version that serves, and of the next one once it does."""
    del job
    old = world.vid("prompt")
    world.define("prompt", PROMPT.replace("p95, ", ""), based_on=1)
    new = world.vid("prompt")

    def serves() -> bool:
        activation = world.fold().activations.get(new)
        return activation is not None and bool(activation.serves)

    # From before it begins on: it may be filled by the time that somebody sees it begin.
    late_until(world, "filling", serves)
    (begun,) = [one.batch for one in batches(world) if new in one.activations]
    (taken,) = [one.batch for one in batches(world) if new in one.takeovers]
    epoch = world.fold().epoch()
    told = [(one.vid, one.batch) for one in kept_once(world) if one.epoch == epoch]
    assert any(vid == old and begun < batch <= taken for vid, batch in told), "some came meanwhile"
    assert [batch for vid, batch in told if vid == new and batch <= taken] == []
    check_again(world, "filled")


def test_what_is_counted_again_corrects_nothing(world: World, job: Job) -> None:
    """LOST: what stood in the emptied panes was shown to nobody; once all is back it goes on."""
    del job
    again = event("again", time.time_ns() // 1_000_000, tenant="default")
    for _ in range(REPEATED):  # so that it takes some slices, with live batches between them
        world.raw(again, list(EVENT))
        world.producer.poll(0)
    world.producer.flush(30)
    world.wait_counted()
    epoch = world.fold().epoch()
    world.redis.flushall()
    wait_for(lambda: world.fold().epoch() != epoch, "a new epoch")

    def is_back() -> bool:
        found = [one for _id, one in world.records() if isinstance(one, BatchRecord)]
        return len(found) > 1 and not found[-1].lanes

    late_until(world, "rebuilding", is_back)
    silent: dict[int | None, int] = {}
    for one in batches(world):
        silent |= {lane.vid: one.batch for lane in one.lanes}
    meanwhile = [one.received for one in batches(world) if 0 < one.batch <= silent[None]]
    assert sum(meanwhile), "some came meanwhile"
    epoch = world.fold().epoch()
    for record in kept_once(world):
        if record.epoch == epoch:
            last = max(silent[None], silent.get(record.vid, 0))
            assert record.batch > last + 1, "the record before it said that it was counted again"
    check_again(world, "rebuilt")
