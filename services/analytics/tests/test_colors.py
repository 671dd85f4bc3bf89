"""Color slots of who was erased: those that an earlier release left, and a Redis that refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs
from weir import names
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import Edit, put_record
from weir_analytics.panes import redaction
from weir_analytics.panes.colors import AGAIN_S
from weir_analytics.panes.recovery import Shards
from weir_analytics.panes.redaction import Redaction

from .shard_scene import FENCE
from .test_redaction import KEY, PANES, Shard, StepClock, folded, hash_of

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
        told = {"do": {"job": "erase", "subject_hash": hash_of("joe")}}
        report = JobReport(7, JobState.RUNNING, facts={"topic_id": "e", "offsets": {"0": 1}})
        asked = put_record(Edit("zeta", "job", "j", None, "t", 0), json.dumps(told))
        for offset, record in enumerate((asked, job_record(report, fence=0)), 7):
            shard.cycle.stores.definitions.fold.apply(offset, record.key, record.value)
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
