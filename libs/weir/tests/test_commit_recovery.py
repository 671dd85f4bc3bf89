"""What a starting driver does, for every state that a crash or a loss can leave."""

from __future__ import annotations

from dataclasses import replace

import pytest
from weir.commit import Mark, Verdict
from weir.commit_found import Found, Gap, Level, LogBounds, Planned
from weir.commit_recovery import activation_floor, incomplete_before_ms, reconcile
from weir.definitions.cut_short import CutShort

LOG = LogBounds("events", {0: 0, 1: 0}, {0: 100, 1: 100})
PLANNED = Planned(4, {0: 10, 1: 10}, {0: 20, 1: 10}, committed=False)
COMMITTED = replace(PLANNED, committed=True)


def mark(p0: int, p1: int = 10, shards: int = 2) -> Mark:
    """Return a live mark."""
    return Mark(epoch=7, batch=3, topic_id="events", end={0: p0, 1: p1}, shards=shards)


def found(*ends: int, checkpoint: Planned | None = PLANNED, rev: int = 4) -> Found:
    """Return a find: shards that stand somewhere in partition 0."""
    return Found([mark(end) for end in ends], checkpoint, LOG, 7, (7, rev))


class TestGoOn:
    @pytest.mark.parametrize("ends", [(10, 10), (20, 10), (10, 20), (20, 20)])
    def test_each_shard_at_the_start_or_the_end_of_the_planned_batch(
        self, ends: tuple[int, int]
    ) -> None:
        """A batch that reached some shards is replayed; it is DONE in those."""
        recovery = reconcile(found(*ends))

        assert (recovery.verdict, recovery.new_epoch) == (Verdict.OK, False)
        assert (recovery.keep_checkpoint, recovery.levels) == (True, ())

    def test_a_committed_batch_is_at_its_end_everywhere(self) -> None:
        """Once Spark has noted the batch, nothing replays it."""
        assert reconcile(found(20, 20, checkpoint=COMMITTED, rev=5)).verdict is Verdict.OK
        assert reconcile(found(20, 10, checkpoint=COMMITTED, rev=5)).verdict is Verdict.BEHIND

    @pytest.mark.parametrize(
        ("checkpoint", "last", "new_epoch"),
        [
            (PLANNED, (7, 4), False),
            (PLANNED, (7, 5), False),
            (PLANNED, (7, 0), False),
            (PLANNED, (7, 3), True),
            (PLANNED, (6, 4), True),
            (PLANNED, None, True),
            (COMMITTED, (7, 5), False),
            (COMMITTED, (7, 4), True),
        ],
    )
    def test_the_stream_must_be_whole(
        self, checkpoint: Planned, last: tuple[int, int] | None, new_epoch: bool
    ) -> None:
        """A stream that the next record does not follow makes a new epoch, nothing else."""
        recovery = reconcile(replace(found(20, 20, checkpoint=checkpoint), last_record=last))

        assert (recovery.verdict, recovery.new_epoch) == (Verdict.OK, new_epoch)
        assert recovery.keep_checkpoint


class TestLost:
    def test_a_first_start(self) -> None:
        """Nothing anywhere, and never was: all shards count from the log's start."""
        recovery = reconcile(Found([None, None], None, LOG, 7, None, first_ever=True))

        assert (recovery.verdict, recovery.new_epoch) == (Verdict.LOST, True)
        assert (recovery.clear, recovery.target) == ((0, 1), {0: 0, 1: 0})
        assert recovery.rebuild == ()
        assert not recovery.keep_checkpoint

    def test_a_first_driver_that_slept_while_others_counted(self) -> None:
        """What they have counted stays: set back to the start, it would be counted twice."""
        late = replace(found(10), marks=[mark(10), None], first_ever=True)

        assert reconcile(late) == reconcile(replace(late, first_ever=False))
        assert reconcile(late).rebuild == (1,)

    def test_all_marks_missing(self) -> None:
        """Live counting goes on where Spark's checkpoint stands; lanes count what lies before."""
        recovery = reconcile(Found([None, None], COMMITTED, LOG, 7, None))

        assert (recovery.clear, recovery.rebuild) == ((0, 1), (0, 1))
        assert recovery.target == COMMITTED.to_offsets
        assert recovery.keep_checkpoint

    def test_a_checkpoint_that_the_log_does_not_hold(self) -> None:
        """It says nothing: live counting goes on at the log's end."""
        ahead = replace(COMMITTED, to_offsets={0: 500, 1: 10})
        recovery = reconcile(Found([None, None], ahead, LOG, 7, None))

        assert recovery.target == LOG.end
        assert not recovery.keep_checkpoint

    def test_one_mark_missing(self) -> None:
        """Only the shard that lost it is emptied, and goes on where the others are."""
        recovery = reconcile(replace(found(10), marks=[mark(10), None]))

        assert (recovery.clear, recovery.rebuild, recovery.levels) == ((1,), (1,), ())
        assert recovery.target == {0: 10, 1: 10}
        assert recovery.reason == (
            "no mark in shard 1: shard 1 is emptied and its part of the log counted again"
        )

    def test_one_mark_missing_and_one_shard_behind(self) -> None:
        """The one behind is levelled to where live counting goes on."""
        marks = [mark(10, shards=3), None, mark(4, shards=3)]
        recovery = reconcile(replace(found(10), marks=marks))

        assert (recovery.clear, recovery.rebuild) == ((1,), (1,))
        assert recovery.levels == (Level(2, {0: 4, 1: 10}, {0: 10, 1: 10}, {0: 4, 1: 10}),)

    def test_one_mark_missing_in_the_middle_of_a_batch(self) -> None:
        """Who has nothing of it gets it from the stream, which corrects, as levelling does not."""
        marks = [mark(20, shards=3), None, mark(10, shards=3)]
        recovery = reconcile(replace(found(10), marks=marks))

        assert (recovery.clear, recovery.target) == ((1,), {0: 20, 1: 10})
        assert recovery.keep_checkpoint
        assert recovery.levels == ()

        marks[2] = mark(4, shards=3)
        recovery = reconcile(replace(found(10), marks=marks))
        assert recovery.levels == (Level(2, {0: 4, 1: 10}, {0: 10, 1: 10}, {0: 4, 1: 10}),)

    @pytest.mark.parametrize(("before", "clear"), [(4, (0, 1, 2, 3)), (1, (0, 1))])
    def test_another_number_of_shards(self, before: int, clear: tuple[int, ...]) -> None:
        """Series lie elsewhere then, so everything is counted again."""
        marks = [mark(10, shards=before), mark(10, shards=before)]
        recovery = reconcile(replace(found(), marks=marks))

        assert (recovery.verdict, recovery.clear) == (Verdict.LOST, clear)
        assert f"over {before} shards, now over 2" in recovery.reason

    def test_what_the_log_lost_is_named(self) -> None:
        """A recount cannot count what retention took."""
        log = replace(LOG, start={0: 30, 1: 0})
        recovery = reconcile(Found([None, None], None, log, 7, None))

        assert recovery.target == LOG.end
        assert recovery.gaps == (Gap(0, 0, 29, (0, 1)),)
        assert recovery.gaps[0].count == 30


class TestBehind:
    def test_the_shard_behind_is_levelled(self) -> None:
        """It counts up to where the others stand, and the checkpoint that fits is kept."""
        recovery = reconcile(found(10, 4))

        assert (recovery.verdict, recovery.new_epoch) == (Verdict.BEHIND, True)
        assert recovery.levels == (Level(1, {0: 4, 1: 10}, {0: 10, 1: 10}, {0: 4, 1: 10}),)
        assert recovery.keep_checkpoint

    def test_a_shard_far_behind_goes_on_and_a_lane_counts_what_it_lacks(self) -> None:
        """Live counting does not wait for more than ten minutes of log."""
        far = Level(1, {0: 4, 1: 10}, {0: 10, 1: 10}, {0: 4, 1: 10})
        recovery = reconcile(replace(found(10, 4), near={0: 5, 1: 5}))
        assert (recovery.levels, recovery.bridges, recovery.target) == ((), (far,), {0: 10, 1: 10})

        recovery = reconcile(replace(found(10, 4), near={0: 4, 1: 5}))
        assert (recovery.levels, recovery.bridges) == ((far,), ())

    def test_the_target_is_the_furthest_of_each_partition(self) -> None:
        """Shards that have each counted something the other has not are both levelled."""
        recovery = reconcile(replace(found(), marks=[mark(12, 3), mark(4, 15)]))

        assert recovery.target == {0: 12, 1: 15}
        assert [level.shard for level in recovery.levels] == [0, 1]
        assert not recovery.keep_checkpoint

    @pytest.mark.parametrize(("checkpoint", "to"), [(PLANNED, 10), (COMMITTED, 20)])
    def test_all_shards_lost_their_tail(self, checkpoint: Planned, to: int) -> None:
        """All are levelled to where batches had ended: what was told up to there is not again."""
        recovery = reconcile(found(6, 6, checkpoint=checkpoint))

        end = {0: to, 1: 10}
        assert recovery.verdict is Verdict.BEHIND
        assert recovery.levels == tuple(Level(n, {0: 6, 1: 10}, end, {0: 6, 1: 10}) for n in (0, 1))
        assert (recovery.target, recovery.keep_checkpoint) == (end, True)

    def test_what_the_batch_under_way_corrects_is_left_to_the_stream(self) -> None:
        """The shard that has it waits for the other, which is levelled to where it begins."""
        recovery = reconcile(found(20, 6))

        assert recovery.levels == (Level(1, {0: 6, 1: 10}, {0: 10, 1: 10}, {0: 6, 1: 10}),)
        assert (recovery.target, recovery.keep_checkpoint) == ({0: 20, 1: 10}, True)

    def test_a_shard_within_the_batch_under_way(self) -> None:
        """No replay would fit it: all are levelled to the end."""
        recovery = reconcile(found(20, 15))

        assert recovery.levels == (Level(1, {0: 15, 1: 10}, {0: 20, 1: 10}, {0: 15, 1: 10}),)
        assert (recovery.target, recovery.keep_checkpoint) == ({0: 20, 1: 10}, True)

    def test_a_checkpoint_of_elsewhere(self) -> None:
        """One whose place is neither behind nor beyond the shards says nothing of them."""
        elsewhere = replace(COMMITTED, to_offsets={0: 30, 1: 4})
        recovery = reconcile(found(20, 6, checkpoint=elsewhere))

        assert (recovery.target, recovery.keep_checkpoint) == ({0: 20, 1: 10}, False)

    def test_a_backup_of_long_ago(self) -> None:
        """Live counting goes on where it was, lanes count what lies between."""
        recovery = reconcile(replace(found(6, 6, checkpoint=COMMITTED), near={0: 8, 1: 10}))

        assert [one.shard for one in recovery.bridges] == [0, 1]
        assert (recovery.levels, recovery.target) == ((), {0: 20, 1: 10})

    def test_a_checkpoint_that_is_beyond_the_log(self) -> None:
        """It is of another one: a new one begins where the shards stand."""
        beyond = replace(COMMITTED, to_offsets={0: 101, 1: 10})
        recovery = reconcile(found(6, 6, checkpoint=beyond))

        assert (recovery.levels, recovery.target) == ((), {0: 6, 1: 10})
        assert (recovery.verdict, recovery.keep_checkpoint) == (Verdict.REWIND, False)

    def test_what_is_kept_beside_a_lost_shard_is_levelled_too(self) -> None:
        """It went back with the Redis that came up without the other."""
        recovery = reconcile(replace(found(6, 6, checkpoint=COMMITTED), marks=[mark(6), None]))

        assert (recovery.verdict, recovery.clear, recovery.rebuild) == (Verdict.LOST, (1,), (1,))
        assert recovery.levels == (Level(0, {0: 6, 1: 10}, {0: 20, 1: 10}, {0: 6, 1: 10}),)
        assert recovery.target == {0: 20, 1: 10}

    def test_a_log_that_no_longer_reaches_back(self) -> None:
        """What is gone is named, the rest is levelled."""
        recovery = reconcile(replace(found(20, 4), log=replace(LOG, start={0: 9, 1: 0})))

        assert recovery.levels[0].read_from == {0: 9, 1: 10}
        assert recovery.gaps == (Gap(0, 4, 8, (1,)),)


class TestAddedPartition:
    """Spark refuses offsets that leave out a partition of the topic."""

    LOG = replace(LOG, start={0: 0, 1: 0, 2: 0}, end={0: 100, 1: 100, 2: 5})

    def test_a_new_checkpoint_begins_in_it_at_0(self) -> None:
        """Marks that are older than a partition stand at its start, and the target says so."""
        recovery = reconcile(replace(found(50, 50, checkpoint=None), log=self.LOG))

        assert recovery.verdict is Verdict.REWIND
        assert recovery.target == {0: 50, 1: 10, 2: 0}

    def test_levelling_names_it_too(self) -> None:
        """What a shard reads to catch up has an end in every partition."""
        (level,) = reconcile(replace(found(10, 4), log=self.LOG)).levels

        assert (level.from_offsets, level.to_offsets) == (
            {0: 4, 1: 10, 2: 0},
            {0: 10, 1: 10, 2: 0},
        )
        assert level.read_from == {0: 4, 1: 10, 2: 0}


class TestRewind:
    def test_a_lost_checkpoint(self) -> None:
        """A new one begins where the shards stand; nothing is counted twice."""
        recovery = reconcile(found(50, 50, checkpoint=None))

        assert (recovery.verdict, recovery.new_epoch) == (Verdict.REWIND, True)
        assert (recovery.target, recovery.clear, recovery.levels) == ({0: 50, 1: 10}, (), ())
        assert not recovery.keep_checkpoint

    def test_an_old_checkpoint(self) -> None:
        """A copy of some minutes ago would count again what the shards have."""
        assert reconcile(found(50, 50)).verdict is Verdict.REWIND

    @pytest.mark.parametrize(
        ("standing", "log"),
        [
            (20, replace(LOG, start={0: 11, 1: 0})),
            (10, replace(LOG, end={0: 19, 1: 100})),
        ],
    )
    def test_a_plan_that_cannot_be_read(self, standing: int, log: LogBounds) -> None:
        """Spark would read for ever what the log does not hold, even if it is counted."""
        find = found(standing, standing)

        assert reconcile(find).verdict is Verdict.OK
        assert reconcile(replace(find, log=log)).verdict is Verdict.REWIND


class TestForeign:
    def test_a_topic_created_anew(self) -> None:
        """Nothing is touched; a recorded adopt counts the new log from its start."""
        find = replace(found(10, 10), log=replace(LOG, topic_id="events anew"))

        assert reconcile(find).verdict is Verdict.FOREIGN
        assert "go on only by a recorded adopt" in reconcile(find).reason
        adopted = reconcile(replace(find, adopt=True))
        assert adopted.verdict is Verdict.LOST
        assert adopted.gaps == (Gap(0, 0, 9, (0, 1)), Gap(1, 0, 9, (0, 1)))
        assert adopted.given_up

    def test_a_topic_created_anew_where_one_shard_is_lost_too(self) -> None:
        """What no shard knows to have been counted cannot be named."""
        marks = [mark(10), None]
        log = replace(LOG, topic_id="events anew")
        adopted = reconcile(replace(found(), marks=marks, log=log, adopt=True))
        assert (adopted.clear, adopted.rebuild) == ((0, 1), (0, 1))
        assert adopted.gaps == (Gap(0, 0, 9, (0,)), Gap(1, 0, 9, (0,)))

    def test_a_topic_created_anew_where_every_shard_is_lost_too(self) -> None:
        """The last epoch says which log was counted; how much of it nobody knows any more."""
        find = replace(found(), marks=[None, None], counted_id="events before")

        assert reconcile(find).verdict is Verdict.FOREIGN
        assert "got events before: the topic was created anew" in reconcile(find).reason
        adopted = reconcile(replace(find, adopt=True))
        assert (adopted.verdict, adopted.gaps, adopted.given_up) == (Verdict.LOST, (), True)
        for known in ("events", None):
            lost = reconcile(replace(find, counted_id=known))
            assert (lost.verdict, lost.given_up) == (Verdict.LOST, False)

    def test_marks_beyond_the_log(self) -> None:
        """A log that was cut short cannot be the one that was counted."""
        find = replace(found(100, 101))

        assert reconcile(found(100, 100)).verdict is not Verdict.FOREIGN
        assert "got partition 0: 101 > 100" in reconcile(find).reason
        adopted = reconcile(replace(find, adopt=True))
        assert adopted.verdict is Verdict.LOST
        assert adopted.gaps == (Gap(0, 100, 100, (1,)),)
        assert (adopted.given_up, adopted.cut_short) == (True, True)

    def test_marks_of_before_the_log_was_cut_short(self) -> None:
        """It has grown past them since: what they counted is not what lies there now."""
        cuts = [CutShort(8, "events", {0: 15, 1: 10})]
        find = replace(found(20, 20), cuts=cuts)

        assert "got partition 0: 20 > 15" in reconcile(find).reason
        adopted = reconcile(replace(find, adopt=True))
        assert (adopted.verdict, adopted.clear) == (Verdict.LOST, (0, 1))
        assert adopted.gaps == (Gap(0, 15, 19, (0, 1)),)
        assert adopted.cut_short
        within = replace(find, cuts=[CutShort(8, "events", {0: 20, 1: 10})])
        since = replace(find, cuts=[CutShort(7, "events", {0: 15, 1: 10})])
        for other in (within, since):
            assert reconcile(other).verdict is Verdict.OK
            assert not reconcile(other).cut_short

    def test_no_mark_says_that_the_log_was_cut_short(self) -> None:
        """The definitions do: what they say was counted is given up and told, and stands there."""
        find = replace(found(), marks=[None, None], said={0: 103, 1: 100}, checkpoint=None)
        lost = reconcile(find)

        assert lost.verdict is Verdict.LOST
        assert lost.gaps == (Gap(0, 100, 102, (0, 1)),)
        assert (lost.given_up, lost.cut_short) == (True, True)
        whole = reconcile(replace(find, said={0: 100, 1: 100}))
        assert (whole.gaps, whole.given_up, whole.cut_short) == ((), False, False)

    @pytest.mark.parametrize(
        ("counted_id", "cut_short"), [("events", True), (None, True), ("events before", False)]
    )
    def test_only_the_checkpoint_knows_that_the_log_was_cut_short(
        self, counted_id: str | None, cut_short: bool
    ) -> None:
        """It may be of another log, and gives nothing up; dedup runs lie beside it."""
        planned = replace(COMMITTED, to_offsets={0: 101, 1: 10})
        find = replace(found(), marks=[None, None], checkpoint=planned, counted_id=counted_id)
        lost = reconcile(replace(find, adopt=True))

        assert (lost.verdict, lost.gaps, lost.cut_short) == (Verdict.LOST, (), cut_short)
        assert lost.given_up is not cut_short

    def test_a_state_from_before_what_was_said(self) -> None:
        """Redis and the log come back from one backup, the definitions do not: they agree."""
        find = replace(found(20, 20, checkpoint=COMMITTED, rev=5), said={0: 101})
        recovery = reconcile(find)

        assert (recovery.verdict, recovery.keep_checkpoint) == (Verdict.OK, True)
        assert (recovery.new_epoch, recovery.cut_short) == (True, True)

    def test_retention_ran_past_all_shards(self) -> None:
        """Nobody has counted what is gone; a human has to give it up."""
        find = replace(found(10, 10), log=replace(LOG, start={0: 15, 1: 0}))

        assert reconcile(find).verdict is Verdict.FOREIGN
        assert "offsets of partition 0: 10 to 14 are gone" in reconcile(find).reason
        adopted = reconcile(replace(find, adopt=True))
        assert adopted.target == {0: 15, 1: 10}
        assert adopted.gaps == (Gap(0, 10, 14, (0, 1)),)
        assert not adopted.given_up

    def test_retention_ran_past_a_checkpoint_that_is_committed(self) -> None:
        """Spark would plan its next batch from there: it goes on where the log begins."""
        log = replace(LOG, start={0: 21, 1: 0})
        stands = found(20, 20, checkpoint=COMMITTED, rev=5)
        assert reconcile(stands).keep_checkpoint
        adopted = reconcile(replace(stands, log=log, adopt=True))
        assert (adopted.verdict, adopted.keep_checkpoint) == (Verdict.BEHIND, False)
        assert adopted.target == {0: 21, 1: 10}
        assert adopted.gaps == (Gap(0, 20, 20, (0, 1)),)


def test_activation_floor() -> None:
    """The first driver ever activates from where it is, a later one not below the log's end."""
    assert activation_floor({0: 9}, first_start=True) == {}
    assert activation_floor({0: 9}, first_start=False) == {0: 9}


def test_incomplete_before() -> None:
    """A log that begins at 0 everywhere is complete; else 23 hours and a horizon are not."""
    assert incomplete_before_ms(1_000, 500, {0: 0, 1: 0}) == 0
    assert incomplete_before_ms(1_000, 500, {0: 0, 1: 3}) == 1_000 + 23 * 3_600_000 + 500
