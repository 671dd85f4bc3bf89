"""Color slots of who was erased: those that an earlier release left, and a Redis that refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs
from weir import names
from weir.clock import ManualClock
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import Edit, NewRecord, put_record
from weir.erasure import subject_hash
from weir_analytics.panes import redaction
from weir_analytics.panes.between import Step
from weir_analytics.panes.colors import AGAIN_S, READERS_S
from weir_analytics.panes.recovery import Shards
from weir_analytics.panes.redaction import Redaction

from .shard_scene import FENCE
from .test_redaction import KEY, PANES, TEXT, Shard, StepClock, folded, hash_of

pytestmark = pytest.mark.redis

JANE, JOE = "data.k:=jane", "data.k:=joe"
SLOTS = names.slots_key("acme", "m")
EARLIER_KEYS = ["weir:1:{s*", "weir:1:batches", "weir:1:part:panes:*", "weir:1:job:*"]
"""What the engine's user had before it was to delete colors."""


class HourClock(StepClock):
    """A clock of steps that can be set an hour on."""

    def __init__(self) -> None:
        """Begin at nothing."""
        super().__init__()
        self.later_s = 0.0

    def monotonic_s(self) -> float:
        """Return seconds that run."""
        return super().monotonic_s() + self.later_s


@pytest.fixture
def shard(redis_url: str) -> Iterator[Shard]:
    """Return a shard of a metric of which jane was erased, and slots of jane and joe."""
    opened = Shard(redis_url, folded("jane"))
    opened.commit((PANES[0], "=jane"), (PANES[0], "=joe"))
    opened.redis.hset(SLOTS, mapping={"#data.k": 2, JANE: 0, JOE: 1})
    yield opened
    opened.close()


def slots(shard: Shard) -> set[str]:
    """Return the fields of the slots."""
    return {field.decode() for field in shard.redis.hkeys(SLOTS)}


def uncolored(shard: Shard, of: int = 0) -> set[int]:
    """Return the erasures whose colors are said to be deleted."""
    return set(map(int, shard.redis.smembers(names.uncolored_key(of))))


def say(shard: Shard, record: NewRecord) -> None:
    """Append a record to the definitions."""
    fold = shard.cycle.stores.definitions.fold
    fold.apply(fold.next_offset, record.key, record.value)


def erase(shard: Shard, tenant: str, known_by: str) -> None:
    """Have somebody of a tenant erased; it holds at once."""
    asked = {"do": {"job": "erase", "subject_hash": known_by}}
    vid = shard.cycle.stores.definitions.fold.next_offset
    say(shard, put_record(Edit(tenant, "job", "j", None, "t", 0), json.dumps(asked)))
    facts = {"topic_id": "e", "offsets": {"0": 1}}
    say(shard, job_record(JobReport(vid, JobState.RUNNING, facts=facts), fence=0))


def let(shard: Shard, *keys: str) -> None:
    """Let the user `engine` have some keys, and no others."""
    shard.redis.acl_setuser(
        "engine", enabled=True, nopass=True, reset=True, keys=list(keys), categories=["+@all"]
    )


@pytest.fixture
def engine(shard: Shard, redis_url: str) -> Iterator[HourClock]:
    """Let the driver be a user of an earlier release; return the clock that it goes by."""
    let(shard, *EARLIER_KEYS)
    shards = Shards(redis_url.replace("redis://", "redis://engine@"), 1, timeout_s=5)
    clock = HourClock()
    shard.cycle.stores.shards, shard.work = shards, Redaction(clock, KEY)
    yield clock
    shards.close()
    shard.redis.acl_deluser("engine")


def test_they_go_with_the_names(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """And are not looked through again behind that."""
    monkeypatch.setattr(Redaction, "_forget_colors", None)
    shard.redact()
    assert (shard.done(), uncolored(shard), slots(shard)) == ({3}, {3}, {"#data.k", JOE})


class TestWhatPagesDraw:
    def test_a_page_that_has_not_heard_of_it_gives_no_slot_for_good(self, shard: Shard) -> None:
        """It draws what it has read, until a record tells it, and for a moment after that."""
        clock = ManualClock()
        shard.work = Redaction(clock, KEY)

        def draws() -> None:
            assert shard.work.step(shard.cycle) is Step.IDLE
            assert (shard.done(), uncolored(shard)) == (set(), set())
            shard.redis.hset(SLOTS, JANE, 2)

        draws()
        assert shard.named() == {"=joe"}
        for _ in range(2):
            clock.advance(60_000)
            draws()
            shard.trimmed()  # the first is the record that tells of it
        draws_until_ms = round(READERS_S * 1000)
        clock.advance(draws_until_ms - 1_000)
        draws()
        clock.advance(1_000)
        assert shard.work.step(shard.cycle) is Step.DONE
        assert (slots(shard), shard.done(), uncolored(shard)) == ({"#data.k", JOE}, {3}, {3})

    def test_nor_once_another_life_walks_again(self, shard: Shard) -> None:
        """Which finds no name in panes any more, and the same page."""
        shard.work = Redaction(ManualClock(), KEY)
        assert shard.work.step(shard.cycle) is Step.IDLE
        clock = ManualClock()
        shard.work = Redaction(clock, KEY)
        assert shard.work.step(shard.cycle) is Step.IDLE
        shard.redis.hset(SLOTS, JANE, 2)
        shard.trimmed()
        shard.trimmed()
        clock.advance(round(READERS_S * 1000))
        assert shard.work.step(shard.cycle) is Step.DONE
        assert (slots(shard), uncolored(shard)) == ({"#data.k", JOE}, {3})

    def test_where_no_series_was_taken_away_nobody_is_waited_for(self, shard: Shard) -> None:
        """Of whom no pane has a name, no page draws one."""
        shard.redis.delete(names.pane_key(0, *PANES[0]))
        shard.work = Redaction(ManualClock(), KEY)
        assert shard.work.step(shard.cycle) is Step.DONE
        assert (shard.done(), uncolored(shard)) == ({3}, {3})


class TestOfAnEarlierRelease:
    def test_they_are_deleted_once(self, shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without another look at panes; a driver that starts again reads a set."""
        shard.redis.sadd(names.redacted_key(0), 3)
        monkeypatch.setattr(redaction.Walk, "steps", None)
        shard.redact()
        assert (slots(shard), uncolored(shard)) == ({"#data.k", JOE}, {3})

        shard.redis.hset(SLOTS, JANE, 5)
        shard.work = Redaction(StepClock(), KEY)
        assert shard.redact() == 0
        assert JANE in slots(shard)

    def test_each_shard_says_it(self, shard: Shard, redis_url: str) -> None:
        """One that was counted anew meanwhile has neither set: it is walked, and says both."""
        shards = Shards(redis_url, 2, timeout_s=5)
        shards.raise_fence(FENCE, 8)
        shard.cycle.stores.shards, shard.cycle.settings.shards = shards, 2
        for n in range(2):
            shard.redis.sadd(names.redacted_key(n), 3)
        shard.redis.sadd(names.uncolored_key(0), 3)
        shard.redact()
        assert (uncolored(shard, 0), uncolored(shard, 1)) == ({3}, {3})
        assert JANE not in slots(shard)
        shards.close()


class TestWhatRedisRefuses:
    def test_names_do_not_wait_for_it(self, shard: Shard, engine: HourClock) -> None:
        """It is told once, and tried each hour until Redis lets."""
        with capture_logs() as said:
            assert shard.redact() > 0
            assert (shard.done(), shard.named(), uncolored(shard)) == ({3}, {"=joe"}, set())
            assert shard.redact() == 0, "not again each time"
            shard.commit((PANES[1], "=joe"))
            assert shard.redact() == 0
            engine.later_s += AGAIN_S
            assert shard.redact() > 0
        told = [line for line in said if line["event"] == "colors_not_deleted"]
        assert [line["log_level"] for line in told] == ["warning"]
        assert "no permissions" in told[0]["error"]
        assert JANE in slots(shard)

        let(shard, *EARLIER_KEYS, "weir:1:slots:*")
        assert shard.redact() == 0
        engine.later_s += AGAIN_S
        assert shard.redact() > 0
        assert (slots(shard), uncolored(shard)) == ({"#data.k", JOE}, {3})
        shard.commit((PANES[1], "=joe"))
        assert shard.redact() == 0
        engine.later_s += AGAIN_S
        shard.redis.delete(names.uncolored_key(0))
        assert shard.redact() == 0, "it is asked for no more"

    @pytest.mark.usefixtures("engine")
    def test_nor_do_those_of_who_is_erased_later(self, shard: Shard) -> None:
        """Within the hour in which colors are not tried."""
        shard.redact()
        shard.commit((PANES[1], "=joe"))
        assert shard.redact() == 0
        erase(shard, "zeta", hash_of("joe"))
        shard.redact()
        assert (shard.done(), uncolored(shard)) == ({3, 7}, set())

    def test_what_somebody_else_has_written_there_holds_up_no_name(self, shard: Shard) -> None:
        """As a key of another type under the name of the slots."""
        shard.redis.delete(SLOTS)
        shard.redis.set(SLOTS, "mine")
        with capture_logs() as said:
            shard.redact()
        assert [line["event"] for line in said].count("colors_not_deleted") == 1
        assert (shard.done(), uncolored(shard)) == ({3}, set())

    def test_nor_any_color_beside_it(self, shard: Shard) -> None:
        """Not of other metrics, nor of other tenants; its own erasures wait until it is gone."""
        clock = HourClock()
        shard.work = Redaction(clock, KEY)
        erase(shard, "zeta", subject_hash(KEY, "zeta", "joe"))
        for tenant, metric in (("acme", "n"), ("zeta", "m")):
            text = TEXT.replace("name: m", f"name: {metric}")
            say(shard, put_record(Edit(tenant, "metric", metric, None, "t", 0), text))
        beside = {names.slots_key("acme", "n"): JANE, names.slots_key("zeta", "m"): JOE}
        for key, field in beside.items():
            shard.redis.hset(key, field, 0)
        shard.redis.delete(SLOTS)
        shard.redis.set(SLOTS, "mine")
        with capture_logs() as said:
            shard.redact()
            assert shard.redis.exists(*beside) == 0
            assert (shard.done(), uncolored(shard)) == ({3, 7}, {7})
            shard.commit((PANES[1], "=joe"))
            assert shard.redact() == 0, "not again each time"
            clock.later_s += AGAIN_S
            assert shard.redact() > 0
        told = [line for line in said if line["event"] == "colors_not_deleted"]
        assert [(line["key"], line["keys"]) for line in told] == [(SLOTS, 1)]
        shard.redis.delete(SLOTS)
        clock.later_s += AGAIN_S
        assert shard.redact() > 0
        assert uncolored(shard) == {3, 7}
