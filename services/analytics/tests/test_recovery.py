"""A starting driver takes the shards, empties what is lost and harms no successor."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
import redis
from weir import names
from weir.commit import Fence, Mark, Verdict
from weir.commit_found import Found, Level, LogBounds, Recovery
from weir.commit_recovery import reconcile
from weir.definitions.history import Lane
from weir.rows import Row
from weir_analytics.panes import recovery
from weir_analytics.panes.commit_job import Part
from weir_analytics.panes.recovery import Shards, VerdictError, changed_panes, last_entries
from weir_analytics.panes.store import ShardStore

from .shard_scene import FENCE
from .shard_scene import job as job_of

pytestmark = pytest.mark.redis

NEWER = Fence(9, "definitions")
LOG = LogBounds("events", {0: 0}, {0: 100})
START = Mark(epoch=7, batch=-1, topic_id="events", end={0: 0}, shards=2)


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """Return a client of an empty server."""
    opened = redis.Redis.from_url(redis_url)
    yield opened
    opened.close()


@pytest.fixture
def shards(redis_url: str) -> Iterator[Shards]:
    """Return two shards on the empty server."""
    opened = Shards(redis_url, 2, timeout_s=5)
    yield opened
    opened.close()


def lost(shards: Shards) -> Recovery:
    """Return what there is to do with shards of which at least one has no mark."""
    found = reconcile(Found(shards.read_marks(), None, LOG, 7, None))
    assert found.verdict is Verdict.LOST
    return found


def commit(redis_url: str, shard: int, begin: int, fence: Fence = FENCE) -> Verdict:
    """Commit one event to a shard."""
    return commit_to(ShardStore(redis_url, shard), shard, begin, fence)


def commit_to(store: ShardStore, shard: int, begin: int, fence: Fence = FENCE) -> Verdict:
    """Commit one event through a store that may know the shard already."""
    job = job_of(begin, begin + 1, shard=shard, shards=2, fence=fence)
    part = Part(5, 60, 2_000_000_040, "=a", Row(1))
    return store.commit(job, [part]).verdict


class TestFence:
    def test_is_raised_everywhere_and_only_upwards(self, shards: Shards) -> None:
        """A younger driver takes all shards; the older one is told so."""
        shards.raise_fence(FENCE, 8)
        shards.raise_fence(FENCE, 8)
        shards.raise_fence(NEWER, 10)

        assert shards.newest_fence() == NEWER
        shards.check_fence(NEWER)
        with pytest.raises(VerdictError, match="must be the newest, got 7 and 9"):
            shards.check_fence(FENCE)
        with pytest.raises(VerdictError, match="must have fence 7 or below, got 9") as caught:
            shards.raise_fence(FENCE, 10)
        assert caught.value.verdict is Verdict.FENCED

    def test_half_raised_is_taken_by_the_next_driver(
        self, client: redis.Redis, shards: Shards
    ) -> None:
        """A driver that died between two shards leaves nothing in the way."""
        client.set(names.fence_key(0), msgspec.json.encode(FENCE))

        shards.raise_fence(NEWER, 10)

        fences = [client.get(names.fence_key(n)) for n in (0, 1)]
        assert fences == [msgspec.json.encode(NEWER)] * 2

    @pytest.mark.parametrize("found", [Fence(3, "another log"), Fence(8, "definitions")])
    def test_one_of_another_log_is_foreign(
        self, client: redis.Redis, shards: Shards, found: Fence
    ) -> None:
        """A fence that this log has not given stops the driver, with what to do."""
        client.set(names.fence_key(1), msgspec.json.encode(found))

        with pytest.raises(VerdictError, match="give Weir its own Redis, or empty") as caught:
            shards.raise_fence(FENCE, 8)
        assert caught.value.verdict is Verdict.FOREIGN


class TestRecount:
    def test_an_empty_store_begins_at_the_logs_start(self, redis_url: str, shards: Shards) -> None:
        """The first start sets all marks, and the first batch fits."""
        shards.raise_fence(FENCE, 8)
        shards.recount(lost(shards), FENCE, START)

        assert shards.read_marks() == [START, START]
        assert commit(redis_url, 0, 0) is Verdict.OK

    def test_everything_of_a_shard_goes_but_fence_and_token(
        self, client: redis.Redis, redis_url: str, shards: Shards, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Panes, ids, names, outbox and the marks of all lanes are deleted, also by many."""
        monkeypatch.setattr(recovery, "KEYS_AT_ONCE", 2)
        shards.raise_fence(FENCE, 8)
        shards.recount(lost(shards), FENCE, START)
        assert commit(redis_url, 0, 0) is Verdict.OK
        client.set(names.mark_key(0, "3"), "a lane")
        for n in range(20):
            client.hset(names.pane_key(0, 5, 60, n), "x", "y")
        client.delete(names.mark_key(0))

        shards.recount(lost(shards), FENCE, START)

        keys = {names.fence_key(0), names.token_key(0), names.mark_key(0)}
        assert set(client.keys(names.shard_prefix(0) + "*")) == {key.encode() for key in keys}
        assert commit(redis_url, 0, 0) is Verdict.OK

    def test_a_shard_that_no_longer_belongs_is_emptied_without_a_mark(
        self, client: redis.Redis, redis_url: str
    ) -> None:
        """With fewer shards than before, the rest is emptied and gets no mark."""
        two, one = Shards(redis_url, 2), Shards(redis_url, 1)
        two.raise_fence(FENCE, 8)
        two.recount(lost(two), FENCE, START)
        found = reconcile(Found(one.read_marks(), None, LOG, 7, None))
        assert (found.verdict, found.clear) == (Verdict.LOST, (0, 1))

        one.recount(found, FENCE, START)

        assert client.get(names.mark_key(1)) is None
        assert client.get(names.mark_key(0)) is not None

    def test_a_zombie_deletes_nothing(
        self,
        client: redis.Redis,
        redis_url: str,
        shards: Shards,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A driver paused while clearing wakes up after its successor has counted."""
        shards.raise_fence(FENCE, 8)
        plan = lost(shards)
        keys_of = Shards.keys

        def paused(self: Shards, shard: int) -> Iterator[list[bytes]]:
            monkeypatch.setattr(Shards, "keys", keys_of)
            successor = Shards(redis_url, 2)
            successor.raise_fence(NEWER, 10)
            successor.recount(lost(successor), NEWER, START)
            assert commit(redis_url, shard, 0, NEWER) is Verdict.OK
            return keys_of(self, shard)

        monkeypatch.setattr(Shards, "keys", paused)

        with pytest.raises(VerdictError) as caught:
            shards.recount(plan, FENCE, START)

        assert caught.value.verdict is Verdict.FENCED
        assert client.exists(names.pane_key(0, 5, 60, 2_000_000_040)) == 1
        assert commit(redis_url, 0, 1, NEWER) is Verdict.OK

    def test_a_lost_tail_while_clearing_is_noticed(
        self, client: redis.Redis, shards: Shards, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Panes that a lost tail brings back never meet a mark at the log's start."""
        shards.raise_fence(FENCE, 8)
        client.set(names.token_key(0), "older")
        keys_of = Shards.keys

        def tail_lost(self: Shards, shard: int) -> Iterator[list[bytes]]:
            client.set(names.token_key(0), "older")
            client.hset(names.pane_key(0, 5, 60, 0), "x", "y")
            return keys_of(self, shard)

        monkeypatch.setattr(Shards, "keys", tail_lost)

        with pytest.raises(VerdictError, match="went back in time") as caught:
            shards.recount(lost(shards), FENCE, START)

        assert caught.value.verdict is Verdict.LOST
        assert shards.read_marks() == [None, None]

    def test_without_the_fence_nothing_is_cleared(self, shards: Shards) -> None:
        """A wipe between raising and clearing sends the driver back to its start."""
        with pytest.raises(VerdictError, match="moved or went back") as caught:
            shards.recount(lost(shards), FENCE, START)
        assert caught.value.verdict is Verdict.LOST


class TestBridge:
    LEVEL = Level(1, {0: 0}, {0: 40}, {0: 0})
    LIVE = Mark(epoch=7, batch=-1, topic_id="events", end={0: 40}, shards=2)
    LANE = Lane(8, 7, "rebuild", "events", (), (1,), {0: 0}, {0: 40}, 0, 0, copies=False)

    def test_both_marks_move_at_once(self, shards: Shards) -> None:
        """Live counting goes on at the end, and the lane begins where the shard stood."""
        shards.raise_fence(FENCE, 8)
        shards.recount(lost(shards), FENCE, START)

        shards.bridge(self.LEVEL, FENCE, self.LIVE, self.LANE)

        assert shards.read_marks()[1] == self.LIVE

    @pytest.mark.parametrize("moved", [False, True])
    def test_a_mark_that_is_not_where_it_was_read(
        self, client: redis.Redis, redis_url: str, shards: Shards, moved: bool
    ) -> None:
        """A Redis that evicts keys took it alone, fence and token stayed: the shard is lost."""
        shards.raise_fence(FENCE, 8)
        shards.recount(lost(shards), FENCE, START)
        if moved:
            assert commit(redis_url, 1, 0) is Verdict.OK
        else:
            client.delete(names.mark_key(1))

        with pytest.raises(VerdictError, match="must still be at") as caught:
            shards.bridge(self.LEVEL, FENCE, self.LIVE, self.LANE)
        assert caught.value.verdict is Verdict.LOST


class TestOutboxes:
    def test_are_of_what_every_shard_has(self, redis_url: str, shards: Shards) -> None:
        """One that went back since has lost what the batch corrected: it is no more recorded."""
        shards.raise_fence(FENCE, 8)
        shards.recount(lost(shards), FENCE, START)
        assert commit(redis_url, 0, 0) is Verdict.OK

        with pytest.raises(VerdictError, match="must be at the batch's end") as caught:
            shards.read_committed({0: 1})
        assert caught.value.verdict is Verdict.BEHIND

        assert commit(redis_url, 1, 0) is Verdict.OK
        assert shards.read_committed({0: 1}) == shards.read_outboxes()

    def test_what_no_record_holds_is_gathered(self, redis_url: str, shards: Shards) -> None:
        """Entries of all shards are read in order, each changed pane once."""
        shards.raise_fence(FENCE, 8)
        shards.recount(lost(shards), FENCE, START)
        for begin in range(11):
            assert commit(redis_url, 0, begin) is Verdict.OK

        outboxes = shards.read_outboxes()

        assert [entry.n for entry in outboxes[0]] == list(range(1, 12))
        assert outboxes[1] == []
        assert last_entries(outboxes) == {0: 11}
        assert changed_panes(outboxes) == [(5, 60, 2_000_000_040, 0)]
