"""S0 on real parts: what a start finds, what it says of it, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest
from confluent_kafka import KafkaException
from redis.exceptions import AuthenticationError
from structlog.testing import capture_logs
from weir import names
from weir.clock import SystemClock
from weir.commit import Verdict
from weir.definitions.fold import Definitions
from weir.definitions.records import DriverStart, start_record
from weir.event_time import LEAD_LIMIT_MS
from weir_analytics.panes import log_offsets, open_lanes
from weir_analytics.panes import start as start_module
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_analytics.panes.holes import Hole
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.plans import Plans
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.shard_wire import StoreError
from weir_analytics.panes.start import Footing, OwnStart, Stores, newest_record
from weir_analytics.panes.stream import BatchStream
from weir_analytics.panes.writer import commit, store
from weir_analytics.settings import Settings
from weir_local.waiting import wait_until

from .installation import Installation
from .log_frames import HORIZONS

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

DAY_MS = 86_400_000
RECORDS = 10


@pytest.fixture
def installation(installation: Installation) -> Installation:
    """Return an installation with ten records in its log."""
    installation.append(RECORDS)
    return installation


def empty_behind_retention(installation: Installation) -> None:
    """Count all, then lose Redis, and the log's first four records: a start has to ask for more."""
    installation.start()
    for shard in (0, 1):
        installation.stand(shard, RECORDS)
    installation.client.flushall()
    installation.delete_before(4)


def one_short(installation: Installation) -> OwnStart:
    """Let both shards stand at the end of the log, the second with a commit applied in part."""
    own = OwnStart()
    installation.start(own=own)
    for shard in (0, 1):
        installation.stand(shard, RECORDS)
    own.short.add(1)
    return own


class TestNotWhole:
    def test_a_shard_that_is_not_whole_is_counted_anew(self, installation: Installation) -> None:
        """A batch was applied in part, and nobody could take its mark away, which says it is there.

        Once it is counted anew, its mark counts again.
        """
        own = one_short(installation)
        installation.client.hset(names.pane_key(1, 7, 1, 0), "1", "part of it")

        footing = installation.start(own=own)

        (lane,) = installation.lanes()
        assert (lane.kind, lane.shards, lane.end) == ("rebuild", (1,), {0: RECORDS})
        assert footing.target == {0: RECORDS}
        assert names.pane_key(1, 7, 1, 0) not in installation.keys(1)
        assert (own.short, installation.mark(1).epoch) == (set(), footing.epoch)
        installation.start(own=own)
        assert len(installation.lanes()) == 1, "its mark counts again"

    def test_it_is_lost_whoever_starts_next(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its mark goes before anything is asked of the log: a process may be killed meanwhile."""
        own = one_short(installation)

        def killed(*_: object) -> None:
            raise TimeoutError

        with monkeypatch.context() as patched:
            patched.setattr(start_module, "near", killed)
            with pytest.raises(TimeoutError):
                installation.start(own=own)
        installation.start(own=OwnStart())

        (lane,) = installation.lanes()
        assert (lane.kind, lane.shards) == ("rebuild", (1,))

    def test_it_is_emptied_once(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its mark is right as soon as it is emptied, also where Redis is away just then."""
        own = one_short(installation)

        def away(*_: object) -> None:
            raise TimeoutError

        with monkeypatch.context() as patched:
            patched.setattr(BatchStream, "open_epoch", away)
            with pytest.raises(TimeoutError):
                installation.start(own=own)
        installation.start(own=own)

        assert (len(installation.lanes()), own.short) == (1, set())


class TestIncomplete:
    def test_what_was_incomplete_once_stays_said(self, installation: Installation) -> None:
        """After a recount of a log without its beginning, every later start says so too."""
        installation.delete_before(4)
        installation.start()
        first = installation.told()
        installation.start()
        second = installation.told()

        assert (first.reason, second.reason) == ("lost", "rewind")
        assert installation.found == [Verdict.LOST, Verdict.REWIND]
        assert first.incomplete_before_ms > first.at_ms
        assert second.incomplete_before_ms == first.incomplete_before_ms

    def test_a_shard_that_cannot_be_levelled_whole_is_said(
        self, installation: Installation
    ) -> None:
        """What the log lost before a shard had counted it is logged, and makes panes incomplete."""
        installation.start()
        assert installation.told().incomplete_before_ms == 0
        installation.stand(0, RECORDS)
        installation.stand(1, 2)
        installation.delete_before(6)
        with capture_logs() as logs:
            footing = installation.start()

        assert [level.shard for level in footing.levels] == [1]
        assert installation.told().incomplete_before_ms > 0
        (lost,) = [line for line in logs if line["event"] == "log_lost"]
        assert (lost["partition"], lost["first"], lost["last"]) == (0, 2, 5)
        assert (lost["count"], lost["shards"]) == (4, (1,))

    def test_behind_a_hole_that_is_given_up_panes_are_incomplete(
        self, installation: Installation
    ) -> None:
        """Like those that retention touched; every later start says so too."""
        hole = Hole(0, 3, 4)
        footing = installation.start(lost=(hole,))
        said = installation.told()
        assert footing.lost == (hole,)
        assert said.incomplete_before_ms > said.at_ms
        # Retention has come as far meanwhile: there is no record behind the hole to ask for.
        installation.delete_before(7)
        for shard in (0, 1):
            installation.stand(shard, 7)
        installation.start(lost=(hole,))
        assert installation.told().incomplete_before_ms >= said.incomplete_before_ms

    def test_a_hole_that_retention_has_passed_makes_nothing_else_incomplete(
        self, installation: Installation
    ) -> None:
        """What it touched was said once; from the log's start of today on all was counted."""
        hole, own = Hole(0, 3, 4), OwnStart()
        installation.start(lost=(hole,), own=own)
        said = installation.told()
        installation.append(2)
        installation.delete_before(RECORDS)
        for shard in (0, 1):
            installation.stand(shard, RECORDS)
        assert installation.start(lost=(hole,), own=own).lost == (hole,)
        assert installation.told().fence > said.fence
        assert installation.told().incomplete_before_ms == said.incomplete_before_ms

    def test_a_first_record_that_cannot_be_read_ends_no_start(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With Redis emptied it has to be asked for; more is incomplete than need be, for good."""
        empty_behind_retention(installation)
        before_ms, records = SystemClock().now_ms(), installation.fold().next_offset
        with monkeypatch.context() as unreadable, capture_logs() as logs:
            unreadable.setattr(start_module, "PATIENCE_S", 0.0)
            for name, error in (("received_ms", TimeoutError), ("at", KafkaException)):
                unreadable.setattr(LogOffsets, name, MagicMock(side_effect=error("no answer")))
            # The broker does not say it either.
            unreadable.setattr(LogOffsets, "ask", lambda *_: {})
            unreadable.setattr(log_offsets, "FIRST_BACK_MS", 2**60)
            footing = installation.start()

        assert footing.target == {0: RECORDS}
        assert [(lane.start, lane.end) for lane in installation.lanes()] == [({0: 4}, {0: RECORDS})]
        said = installation.told()
        assert said.incomplete_before_ms >= before_ms + LEAD_LIMIT_MS + said.horizon_ms
        (told,) = [line for line in logs if line["event"] == "log_start_not_read"]
        assert told["incomplete_before_ms"] == said.incomplete_before_ms
        starts = installation.fold().next_offset - records - 1
        assert starts == 2, "one that goes on, one that begins an epoch"

        installation.start()
        assert installation.told().incomplete_before_ms == said.incomplete_before_ms

    def test_a_partition_without_a_leader_makes_nothing_incomplete(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """That passes: the driver ends, and begins again; what was said would stay."""
        empty_behind_retention(installation)
        away = KafkaException("no leader")
        ends = LogOffsets.ends
        with monkeypatch.context() as broken:
            broken.setattr(start_module, "PATIENCE_S", 0.0)

            def gone(_log: LogOffsets, _partition: int, _offset: int) -> int:
                broken.setattr(LogOffsets, "ends", MagicMock(side_effect=away))
                raise away

            broken.setattr(LogOffsets, "received_ms", gone)
            with pytest.raises(KafkaException, match="no leader"):
                installation.start()
        assert LogOffsets.ends is ends
        assert installation.told().incomplete_before_ms == 0

    def test_what_retention_takes_meanwhile_is_not_asked_for_again(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where nobody can read it any more, what is left is."""
        monkeypatch.setattr(start_module, "PAUSE_S", 0.0)
        received_ms, asked = LogOffsets.received_ms, list[int]()

        def passing(log: LogOffsets, partition: int, offset: int) -> int:
            asked.append(offset)
            if len(asked) == 1:
                installation.delete_before(6)
            return received_ms(log, partition, offset)

        monkeypatch.setattr(LogOffsets, "received_ms", passing)
        with capture_logs() as logs:
            installation.start(lost=(Hole(0, 3, 4),))
        assert asked[:2] == [5, 6]
        assert "log_start_not_read" not in {line["event"] for line in logs}

    def test_one_that_answers_late_is_waited_for(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """For a while: what is said too much stays."""
        installation.delete_before(4)
        monkeypatch.setattr(start_module, "PAUSE_S", 0.0)
        received_ms, late = LogOffsets.received_ms, [True, True]

        def slow(log: LogOffsets, partition: int, offset: int) -> int:
            if late:
                late.pop()
                msg = "the log did not answer within 15 s"
                raise TimeoutError(msg)
            return received_ms(log, partition, offset)

        monkeypatch.setattr(LogOffsets, "received_ms", slow)
        with capture_logs() as logs:
            installation.start()
        told = [line["event"] for line in logs]
        assert (told.count("old_log_not_read"), "log_start_not_read" in told) == (2, False)
        assert installation.told().incomplete_before_ms > 0

    def test_behind_a_hole_the_first_record_bounds_what_is_incomplete(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without being read: the broker says when it came."""
        monkeypatch.setattr(start_module, "PATIENCE_S", 0.0)
        monkeypatch.setattr(LogOffsets, "received_ms", MagicMock(side_effect=TimeoutError("no")))
        installation.start(lost=(Hole(0, 3, 4),))
        said = installation.told()
        assert 0 < said.incomplete_before_ms - LEAD_LIMIT_MS - said.horizon_ms <= said.at_ms

    def test_a_whole_log_is_complete(self, installation: Installation) -> None:
        """Levelling from a log that reaches back makes nothing incomplete."""
        installation.start()
        installation.stand(0, RECORDS)
        installation.stand(1, 2)
        with capture_logs() as logs:
            installation.start()

        assert installation.told().reason == "behind"
        assert installation.found[-1] is Verdict.BEHIND
        assert installation.told().incomplete_before_ms == 0
        assert "log_lost" not in {line["event"] for line in logs}


class TestPassword:
    @pytest.fixture
    def locked(self, installation: Installation, tmp_path: Path) -> Iterator[Installation]:
        """Return an installation whose Redis asks for a password, which stands in a file."""
        folder = tmp_path / "secrets"
        folder.mkdir()
        (folder / "redis_password").write_text("s3cret\n")
        # A connection that was opened before Redis asked for a password stays let in.
        store.cache_clear()
        client = installation.client
        client.config_set("requirepass", "s3cret")
        client.execute_command("AUTH", "s3cret")
        settings = installation.settings.model_copy(update={"secrets_dir": folder})
        yield replace(installation, settings=settings, found=[])
        client.config_set("requirepass", "")
        store.cache_clear()

    def test_every_part_reads_it_from_its_file(
        self, locked: Installation, installation: Installation
    ) -> None:
        """Driver, readers and writers get in with it, and nobody without."""
        with pytest.raises(AuthenticationError):
            installation.start()
        footing = locked.start()
        batch = a_batch(locked.settings, footing)

        assert newest_record(locked.settings) is None
        assert commit(0, [], batch, {}).verdict is Verdict.DONE
        with pytest.raises(AuthenticationError):
            commit(0, [], replace(batch, secrets_dir=None), {})

    def test_it_is_not_sent_to_the_tasks(self, locked: Installation) -> None:
        """What Spark shows of a job names the folder and never what is in it."""
        batch = a_batch(locked.settings, locked.start())

        assert "s3cret" not in batch.to_json()
        assert Batch.from_json(batch.to_json()).secrets_dir == str(locked.settings.secrets_dir)


def a_batch(settings: Settings, footing: Footing) -> Batch:
    """Return a batch without records, as the driver makes it."""
    nothing: Any = None
    stores = Stores(nothing, nothing, nothing)
    plans = Plans(Definitions(), footing.events_id, HORIZONS, nothing)
    cycle = Cycle(nothing, settings, stores, footing, plans, nothing, SystemClock())
    return cycle.range_of(footing.target, footing.target, 0)


class TestSettings:
    def test_a_server_that_forgets_is_accepted_only_by_name(
        self, installation: Installation
    ) -> None:
        """Without the setting nothing is written anywhere; one that keeps a file needs none."""
        client = installation.client
        with pytest.raises(StoreError, match="redis must have appendonly yes"):
            installation.start(redis_without_aof=False)
        log = DefinitionsLog(installation.settings.kafka)
        assert log.end() == 0
        log.close()

        installation.start(redis_without_aof=True)
        client.config_set("appendonly", "yes")
        try:
            installation.start(redis_without_aof=False)
        finally:
            client.config_set("appendonly", "no")
        assert len(installation.found) == 2

    @pytest.mark.parametrize("shards", [1, 3])
    def test_another_number_of_shards_is_refused(
        self, installation: Installation, shards: int
    ) -> None:
        """Nothing is deleted and no start record written, unless it is asked for."""
        installation.start()
        fence, keys = installation.told().fence, installation.keys(0)

        with pytest.raises(VerdictError, match=f"must be 2 as before, got {shards}") as caught:
            installation.start(shards=shards)
        assert caught.value.verdict is Verdict.FOREIGN
        assert (installation.told().fence, installation.keys(0)) == (fence, keys)

    def test_fewer_shards_are_taken_and_emptied_if_it_is_wanted(
        self, installation: Installation
    ) -> None:
        """Also the shards that no longer belong get the fence: else they could not be cleared."""
        installation.start()
        installation.client.hset(names.pane_key(1, 5, 60, 0), "x", "y")
        footing = installation.start(shards=1, reshard=True)
        installation.start(shards=1)

        assert installation.keys(1) == {names.fence_key(1), names.token_key(1)}
        fence = msgspec.json.decode(installation.client.get(names.fence_key(1)))
        assert fence["fence"] == footing.fence.fence
        assert installation.told().shards == 1

    def test_more_shards_are_taken_if_it_is_wanted(self, installation: Installation) -> None:
        """The whole log is counted again over the new number, beside live counting."""
        installation.start()
        footing = installation.start(shards=3, reshard=True)

        assert footing.target == {0: RECORDS}
        assert installation.told().shards == 3
        assert [lane.shards for lane in installation.lanes()] == [(0, 1, 2)]


class TestLost:
    def test_lanes_count_again_what_lost_shards_held(self, installation: Installation) -> None:
        """Live counting goes on where it was; each lost shard has a mark of each lane."""
        installation.start()
        installation.stand(0, RECORDS)
        installation.stand(1, RECORDS)
        installation.client.flushall()
        footing = installation.start()

        (lane,) = installation.lanes()
        assert footing.target == {0: RECORDS}
        assert (lane.kind, lane.shards, lane.start, lane.end) == (
            "rebuild",
            (0, 1),
            {0: 0},
            {0: RECORDS},
        )
        for shard in (0, 1):
            assert installation.mark(shard, lane.name).end == {0: 0}
            assert installation.mark(shard).end == {0: RECORDS}

    def test_only_the_lost_shard_is_counted_again(self, installation: Installation) -> None:
        """The other keeps what it has, and has no part in the lane."""
        installation.start()
        installation.stand(0, RECORDS)
        installation.stand(1, RECORDS)
        installation.client.hset(names.pane_key(0, 5, 60, 0), "x", "y")
        installation.client.delete(*installation.keys(1))
        footing = installation.start()

        (lane,) = installation.lanes()
        assert (footing.target, lane.shards) == ({0: RECORDS}, (1,))
        assert names.pane_key(0, 5, 60, 0) in installation.keys(0)
        assert names.mark_key(0, lane.name) not in installation.keys(0)

    def test_a_shard_that_is_hours_behind_holds_up_nothing(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It keeps what it has and goes on with the others; a lane counts what it lacks."""
        monkeypatch.setattr(open_lanes, "NEAR_MS", -60_000)
        installation.start()
        installation.stand(0, RECORDS)
        installation.stand(1, 4)
        installation.client.hset(names.pane_key(1, 5, 60, 0), "x", "y")
        footing = installation.start()

        (lane,) = installation.lanes()
        assert (footing.levels, footing.target) == ((), {0: RECORDS})
        assert (lane.kind, lane.shards, lane.start, lane.end) == (
            "rebuild",
            (1,),
            {0: 4},
            {0: RECORDS},
        )
        assert installation.mark(1).end == {0: RECORDS}
        assert installation.mark(1, lane.name).end == {0: 4}
        assert names.pane_key(1, 5, 60, 0) in installation.keys(1)
        assert names.mark_key(0, lane.name) not in installation.keys(0)

    def test_the_newest_hours_come_first(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A long log is counted in chunks by time, each with a lane of its own, newest first."""
        installation.start()
        installation.stand(0, RECORDS)
        installation.stand(1, RECORDS)
        between_ms = SystemClock().now_ms()
        wait_until(lambda: SystemClock().now_ms() > between_ms + 20, timeout_s=5, what="some time")
        installation.append(5)
        monkeypatch.setattr(open_lanes, "CHUNK_MS", 1)
        monkeypatch.setattr(open_lanes, "CLOCK_MS", between_ms + 10 - SystemClock().now_ms())
        installation.client.flushall()
        installation.start()

        ranges = [(lane.start[0], lane.end[0]) for lane in installation.lanes()]
        assert ranges[0][1] == RECORDS + 5
        assert [start for start, _end in ranges[:-1]] == [end for _start, end in ranges[1:]]
        assert ranges[-1][0] == 0
        assert RECORDS in {start for start, _end in ranges}

    @pytest.mark.parametrize("lost", [(0, 1), (1,)], ids=["all shards", "one of two"])
    @pytest.mark.parametrize("kept", [True, False], ids=["checkpoint kept", "checkpoint gone"])
    def test_lanes_copy_what_nobody_says_was_copied(
        self,
        installation: Installation,
        monkeypatch: pytest.MonkeyPatch,
        lost: tuple[int, ...],
        kept: bool,
    ) -> None:
        """With the checkpoint, nothing; without, what one batch may have left, or the whole log."""
        monkeypatch.setattr(open_lanes, "CHUNK_MS", 1)
        installation.start()
        installation.stand(0, RECORDS)
        installation.stand(1, RECORDS)
        later_ms = SystemClock().now_ms() + 20
        wait_until(lambda: SystemClock().now_ms() > later_ms, timeout_s=5, what="some time")
        monkeypatch.setattr(open_lanes, "CLOCK_MS", later_ms - 10 - SystemClock().now_ms())
        installation.append(5)
        for shard in (0, 1):
            installation.stand(shard, RECORDS + 5)
        if kept:
            installation.plan(RECORDS + 5)
        for shard in lost:
            installation.client.delete(*installation.keys(shard))
        installation.start()

        newest, *older = [lane.copies for lane in installation.lanes()]
        assert older
        assert (newest, *set(older)) == (not kept, not kept and len(lost) == 2)

    @pytest.mark.parametrize("kept", [True, False], ids=["checkpoint kept", "checkpoint gone"])
    def test_so_do_shards_that_are_levelled(self, installation: Installation, kept: bool) -> None:
        """Of the batch that was under way one of them may have done nothing."""
        installation.start()
        installation.stand(0, RECORDS)
        installation.stand(1, 4)
        if kept:
            installation.plan(RECORDS)
        footing = installation.start()

        assert (len(footing.levels), footing.copies) == (1, not kept)

    def test_by_what_the_log_is_counted_is_said_before_any_of_it_is(
        self, installation: Installation
    ) -> None:
        """From its start on; a start with other settings changes nothing of that yet."""
        installation.start(horizon_ms=3_600_000)
        said = list(installation.fold().horizons)
        installation.start(horizon_ms=7_200_000, beyond_ms=DAY_MS)

        assert [(one.begin, one.horizon_ms, one.beyond_ms) for one in said] == [
            ({}, 3_600_000, 400 * DAY_MS)
        ]
        assert list(installation.fold().horizons) == said
        assert installation.told().horizon_ms == 7_200_000

    def test_what_was_counted_before_that_was_said_was_by_the_start_before(
        self, installation: Installation
    ) -> None:
        """An older release wrote start records only."""
        start = DriverStart("old", 2, "start", horizon_ms=3_600_000, beyond_ms=DAY_MS)
        installation.define(start_record(start, at_ms=0))
        installation.start(horizon_ms=7_200_000)

        (said,) = installation.fold().horizons
        assert (said.horizon_ms, said.beyond_ms) == (3_600_000, DAY_MS)

    def test_readers_learn_what_a_tenant_may_have(self, installation: Installation) -> None:
        """They tell the author of a version by it why it does not begin."""
        installation.start(tenant_bytes=12_345)
        assert installation.told().tenant_bytes == 12_345
