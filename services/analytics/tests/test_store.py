"""The store commits each link of a chain once, on a real Redis."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import redis
from weir import names
from weir.commit import Fence, Mark, Verdict
from weir.rows import Row
from weir.series import OTHER, OTHER_ID, series_digest
from weir_analytics.panes import pane_merge, shard_wire, store
from weir_analytics.panes.commit_job import Limits, OutboxEntry, Untold
from weir_analytics.panes.store import ShardStore, StoreError
from weir_local.redis import find_server
from weir_local.waiting import wait_until

from .exec_proxy import Proxy
from .shard_scene import FENCE, PANE, START_S, VID, job, part, raise_fence, set_mark, stored

pytestmark = pytest.mark.redis


def outbox(client: redis.Redis) -> list[OutboxEntry]:
    """Return the entries of the outbox in order."""
    entries = client.hvals(names.outbox_key(0))
    return sorted(
        (msgspec.json.decode(e, type=OutboxEntry) for e in entries), key=lambda entry: entry.n
    )


def answers(client: redis.Redis) -> bool:
    """Return whether a server is there: its socket's file is, a moment before it listens."""
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


class TestVerdicts:
    def test_ok_writes_everything_at_once(self, client: redis.Redis, shard: ShardStore) -> None:
        """A commit stores rows, names, mark, token and outbox."""
        done = shard.commit(job(0, 10), [part(value=2.0), part("=b", 5.0)])

        assert (done.verdict, done.changed, done.work.rows) == (Verdict.OK, (PANE,), 2)
        assert stored(client) == {"=a": Row(1, 2.0, 2.0, 2.0), "=b": Row(1, 5.0, 5.0, 5.0)}
        mark = msgspec.json.decode(client.get(names.mark_key(0)) or b"", type=Mark)
        assert (mark.epoch, mark.batch, mark.end, mark.shards) == (7, 0, {0: 10}, 1)
        assert len(client.get(names.token_key(0)) or b"") == 32
        assert [(entry.n, entry.changed) for entry in outbox(client)] == [(1, [PANE])]

    def test_a_trial_merges_and_changes_nothing(
        self, client: redis.Redis, shard: ShardStore
    ) -> None:
        """Also where a row that is there cannot be read: that is what it finds out."""
        shard.commit(job(0, 10), [part()])
        before = {key: client.dump(key) for key in client.scan_iter()}
        dry = job(10, 20, dry=True)
        assert shard.commit(dry, [part(), part("=b")]).verdict is Verdict.OK
        assert {key: client.dump(key) for key in client.scan_iter()} == before
        (number,) = client.hkeys(names.pane_key(0, *PANE))
        client.hset(names.pane_key(0, *PANE), number, b"")
        with pytest.raises(ValueError, match="row"):
            shard.commit(dry, [part()])
        assert shard.commit(job(10, 20), [part("=b")]).verdict is Verdict.OK

    def test_done_changes_nothing(self, client: redis.Redis, shard: ShardStore) -> None:
        """A replay equals once."""
        shard.commit(job(0, 10), [part()])
        before = client.get(names.token_key(0))

        assert shard.commit(job(0, 10), [part()]).verdict is Verdict.DONE
        assert stored(client) == {"=a": Row(1, 1.0, 1.0, 1.0)}
        assert client.get(names.token_key(0)) == before

    def test_fenced(self, client: redis.Redis, shard: ShardStore) -> None:
        """A newer fence stops a writer that was paused, before it changes anything."""
        shard.commit(job(0, 10), [part()])
        raise_fence(client, Fence(8, "definitions"))

        assert shard.commit(job(10, 20), [part()]).verdict is Verdict.FENCED
        assert stored(client)["=a"].n == 1

    @pytest.mark.parametrize("key", [names.fence_key(0), names.mark_key(0)])
    def test_lost(self, client: redis.Redis, shard: ShardStore, key: str) -> None:
        """Without fence or live mark the state is gone."""
        client.delete(key)

        assert shard.commit(job(0, 10), [part()]).verdict is Verdict.LOST

    def test_lost_fence_of_an_older_time(self, client: redis.Redis, shard: ShardStore) -> None:
        """A fence below the own one means that Redis lost its tail."""
        raise_fence(client, Fence(6, "definitions"))

        assert shard.commit(job(0, 10), [part()]).verdict is Verdict.LOST

    def test_flushall(self, client: redis.Redis, shard: ShardStore) -> None:
        """A wipe between two batches is seen by the next one, also by a warm process."""
        shard.commit(job(0, 10), [part()])
        client.flushall()

        assert shard.commit(job(10, 20), [part()]).verdict is Verdict.LOST
        assert client.dbsize() == 0

    @pytest.mark.parametrize(
        ("fence", "topic_id"),
        [(Fence(7, "other definitions"), "events"), (FENCE, "other events")],
    )
    def test_foreign(
        self, client: redis.Redis, shard: ShardStore, fence: Fence, topic_id: str
    ) -> None:
        """Offsets of another topic mean nothing here."""
        raise_fence(client, fence)
        set_mark(client, {0: 0}, topic_id)

        assert shard.commit(job(0, 10), [part()]).verdict is Verdict.FOREIGN

    @pytest.mark.parametrize(("end", "verdict"), [(5, Verdict.BEHIND), (15, Verdict.REWIND)])
    def test_off_the_chain(
        self, client: redis.Redis, shard: ShardStore, end: int, verdict: Verdict
    ) -> None:
        """A shard that stands before or after the range's start is left alone."""
        set_mark(client, {0: end})

        assert shard.commit(job(10, 20), [part()]).verdict is verdict
        assert stored(client) == {}

    def test_a_commit_without_parts_moves_the_mark(self, shard: ShardStore) -> None:
        """A shard without changes is verified and goes on with the others."""
        assert shard.commit(job(0, 10), []).verdict is Verdict.OK
        assert shard.commit(job(10, 20), [part()]).verdict is Verdict.OK

    def test_a_lane_has_its_own_chain(self, client: redis.Redis, shard: ShardStore) -> None:
        """A backfill commits beside the live lane and stands at its start before."""
        lane = job(0, 4, lane="3", lane_start={0: 0}, batch=-1)

        assert shard.commit(replace(lane, from_offsets={0: 2}), []).verdict is Verdict.BEHIND
        assert shard.commit(lane, [part()]).verdict is Verdict.OK
        assert shard.commit(job(0, 10), [part()]).verdict is Verdict.OK
        assert stored(client)["=a"].n == 2


class TestRaces:
    def test_a_writer_in_between_is_noticed(
        self, client: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Redis refuses a transaction whose shard moved after it was read; then it fits."""
        first, second = ShardStore(redis_url, 0), ShardStore(redis_url, 0)
        other = (job(0, 4, lane="3"), [part(value=3.0)])
        moves = iter([other])
        merge = pane_merge.merge_pane

        def merge_late(*arguments: object) -> object:
            for move in moves:
                assert second.commit(*move).verdict is Verdict.OK
            return merge(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "merge_pane", merge_late)

        done = first.commit(job(0, 10), [part(value=1.0)])

        assert (done.verdict, done.work.tries) == (Verdict.OK, 2)
        assert stored(client)["=a"] == Row(2, 4.0, 1.0, 3.0)

    def test_a_zombie_that_wakes_up_inside_its_commit(
        self, client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A fence raised between reading and writing stops the write."""
        merge = pane_merge.merge_pane

        def merge_late(*arguments: object) -> object:
            raise_fence(client, Fence(8, "definitions"))
            return merge(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "merge_pane", merge_late)

        assert shard.commit(job(0, 10), [part()]).verdict is Verdict.FENCED
        assert stored(client) == {}

    def test_a_shard_that_never_rests(
        self, client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A writer that always comes too late gives up and says what to look for."""
        merge = pane_merge.merge_pane

        def merge_late(*arguments: object) -> object:
            client.set(names.token_key(0), "moved")
            return merge(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "merge_pane", merge_late)

        with pytest.raises(StoreError, match="shard 0 moved 21 times while it was written"):
            shard.commit(job(0, 10), [part()])

    def test_two_shards_half_committed(self, redis_url: str) -> None:
        """A batch that reached one of two shards is DONE there and applied in the other."""
        client = redis.Redis.from_url(redis_url)
        for n in (0, 1):
            client.set(names.fence_key(n), msgspec.json.encode(FENCE))
            mark = Mark(epoch=7, batch=-1, topic_id="events", end={0: 0}, shards=2)
            client.set(names.mark_key(n), msgspec.json.encode(mark))
        ranges = [job(0, 10, shard=n, shards=2) for n in (0, 1)]
        ShardStore(redis_url, 0).commit(ranges[0], [part()])

        verdicts = [ShardStore(redis_url, n).commit(ranges[n], [part()]).verdict for n in (0, 1)]

        assert verdicts == [Verdict.DONE, Verdict.OK]


class TestNoAnswer:
    def test_an_applied_commit_whose_answer_is_lost_counts_once(
        self, client: redis.Redis, proxy: Proxy
    ) -> None:
        """The mark is read on a new connection, and says DONE."""
        behind = ShardStore(proxy.url, 0, timeout_s=5)
        proxy.lose_next_exec = True

        done = behind.commit(job(0, 10), [part()])

        assert (proxy.lost, done.verdict, done.work.tries) == (1, Verdict.DONE, 2)
        assert stored(client)["=a"].n == 1
        assert behind.commit(job(10, 20), [part()]).verdict is Verdict.OK
        assert stored(client)["=a"].n == 2

    def test_nobody_there(self, free_port: int) -> None:
        """A store without a server says so after a few tries."""
        with pytest.raises(redis.ConnectionError, match="refused"):
            ShardStore(f"redis://127.0.0.1:{free_port}/0", 0).commit(job(0, 10), [])

    def test_a_server_on_a_socket_file(self, tmp_path: Path) -> None:
        """A `unix://` address is as good as a port."""
        path = tmp_path / "redis.sock"
        options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(tmp_path)]
        server = subprocess.Popen([find_server(), *options], stdout=subprocess.DEVNULL)  # noqa: S603
        try:
            client = redis.Redis(unix_socket_path=str(path))
            wait_until(lambda: answers(client), timeout_s=10, what="redis on its socket")
            client.close()
            found = ShardStore(f"unix://{path}", 0).commit(job(0, 10), [part()])
        finally:
            server.kill()
            server.wait()

        assert found.verdict is Verdict.LOST


class TestIds:
    def test_ids_are_short_and_go_on_after_a_restart(
        self, client: redis.Redis, redis_url: str
    ) -> None:
        """Another process goes on with the next number and finds the old ones."""
        ShardStore(redis_url, 0).commit(job(0, 10), [part("=a"), part("=b")])
        ShardStore(redis_url, 0).commit(job(10, 20), [part("=c"), part("=a")])

        assert client.hgetall(names.names_key(0, VID)) == {
            b"\x00\x01": b"=a",
            b"\x00\x02": b"=b",
            b"\x00\x03": b"=c",
        }
        assert client.hget(names.ids_key(0, VID), series_digest("=c")) == b"\x00\x03"
        assert stored(client)["=a"].n == 2

    def test_a_warm_process_notices_another_writer(
        self, client: redis.Redis, redis_url: str
    ) -> None:
        """Two processes that take turns give each series one id."""
        one, two = ShardStore(redis_url, 0), ShardStore(redis_url, 0)
        for n in range(6):
            writer = (one, two)[n % 2]
            assert writer.commit(job(n, n + 1), [part("=same"), part(f"={n}")]).verdict == "ok"

        assert stored(client)["=same"].n == 6
        assert client.hlen(names.names_key(0, VID)) == 7

    def test_a_warm_process_forgets_the_ids_of_a_cleared_shard(
        self, client: redis.Redis, redis_url: str
    ) -> None:
        """After a recount began, ids are given anew, and by whoever comes first."""
        one, two = ShardStore(redis_url, 0), ShardStore(redis_url, 0)
        one.commit(job(0, 1), [part("=a")])
        client.flushall()
        raise_fence(client, FENCE)
        set_mark(client, {0: 0})

        two.commit(job(0, 1), [part("=b")])
        one.commit(job(1, 2), [part("=a")])

        assert {series: row.n for series, row in stored(client).items()} == {"=a": 1, "=b": 1}

    def test_ids_beyond_two_bytes(self, client: redis.Redis, shard: ShardStore) -> None:
        """The series after number 65,535 gets four bytes."""
        client.hset(names.ids_key(0, VID), b"", (65_534).to_bytes(4, "big"))

        shard.commit(job(0, 10), [part("=a"), part("=b")])

        assert set(client.hkeys(names.names_key(0, VID))) == {b"\xff\xff", b"\x00\x01\x00\x00"}
        assert shard.commit(job(10, 20), [part("=b")]).verdict is Verdict.OK
        assert stored(client)["=b"].n == 2


class TestKeep:
    def test_a_pane_expires_at_a_fixed_time(self, client: redis.Redis, shard: ShardStore) -> None:
        """A pane is kept for `keep` and a day after its end."""
        shard.commit(job(0, 10), [part()])

        before_s, until_s = client.time()[0], START_S + 60 + 2 * 86_400
        expires = client.execute_command("TTL", names.pane_key(0, *PANE))  # type: ignore[no-untyped-call]
        after_s = client.time()[0]
        assert before_s + expires - 1 <= until_s <= after_s + expires + 1

    def test_unknown_limits_are_refused(self, shard: ShardStore) -> None:
        """A part of a version that the job does not bound is a mistake of the caller."""
        with pytest.raises(ValueError, match="must know the limits of every part, got none for"):
            shard.commit(job(0, 10, limits={}), [part()])


class TestOutbox:
    def test_entries_up_to_the_last_record_are_trimmed(
        self, client: redis.Redis, shard: ShardStore
    ) -> None:
        """A commit deletes what a record holds, never its own entry."""
        for n in range(3):
            shard.commit(job(n, n + 1), [part()])
        shard.commit(job(3, 4, trim_outbox=2), [])

        assert [entry.n for entry in outbox(client)] == [3, 4]

        shard.commit(job(4, 5, trim_outbox=99), [])
        assert [entry.n for entry in outbox(client)] == [5]

    def test_a_late_part_makes_a_correction(self, client: redis.Redis, shard: ShardStore) -> None:
        """A change to a final pane says what it was and what it is."""
        limits = {VID: Limits({60: 86_400}, lateness_ms=30_000)}
        final_ms = (START_S + 90) * 1000
        shard.commit(job(0, 1, limits=limits, final_through_ms=final_ms - 1), [part(value=2.0)])
        shard.commit(job(1, 2, limits=limits, final_through_ms=final_ms), [part(value=3.0)])

        first, second = outbox(client)
        assert first.corrections == []
        (correction,) = second.corrections
        assert (correction.series, correction.was, correction.now) == (
            "=a",
            msgspec.convert({"n": 1, "sum": 2.0, "min": 2.0, "max": 2.0}, type(correction.was)),
            msgspec.convert({"n": 2, "sum": 5.0, "min": 2.0, "max": 3.0}, type(correction.now)),
        )

    @pytest.mark.parametrize(("before_ms", "told"), [(0, 1), (1, 0)])
    def test_what_nobody_saw_before_is_no_correction(
        self, client: redis.Redis, shard: ShardStore, before_ms: int, told: int
    ) -> None:
        """A pane that is counted again, up to the last that its events may lie in."""
        limits = {VID: Limits({60: 86_400})}
        untold = Untold(0, None, START_S * 1000 + before_ms)
        late = job(0, 1, limits=limits, final_through_ms=(START_S + 60) * 1000, untold=(untold,))
        shard.commit(late, [part()])

        assert [len(entry.corrections) for entry in outbox(client)] == [told]


class TestServer:
    def test_a_server_that_evicts_is_refused(self, client: redis.Redis, redis_url: str) -> None:
        """Only noeviction starts; the error names the setting."""
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            with pytest.raises(StoreError, match='must have maxmemory-policy noeviction, got "all'):
                ShardStore(redis_url, 0).commit(job(0, 10), [part()])
        finally:
            client.config_set("maxmemory-policy", "noeviction")

    def test_a_server_that_forgets_is_refused(self, client: redis.Redis, redis_url: str) -> None:
        """The error names the server's setting, and the one by which that is accepted."""
        wire = shard_wire.ShardWire(redis_url)
        with pytest.raises(StoreError, match="must have appendonly yes, got aof_enabled 0") as told:
            wire.require_aof()
        assert "WEIR_ANALYTICS_REDIS_WITHOUT_AOF=true" in str(told.value)
        client.config_set("appendonly", "yes")
        try:
            wire.require_aof()
        finally:
            client.config_set("appendonly", "no")
        wire.close()

    def test_a_full_server_takes_nothing(self, client: redis.Redis, redis_url: str) -> None:
        """Out of memory is a named error, nothing is written, and later it goes on."""
        shard = ShardStore(redis_url, 0)
        client.config_set("maxmemory", 1)
        try:
            with pytest.raises(StoreError, match=r"redis refused to write: .*maxmemory"):
                shard.commit(job(0, 10), [part()])
        finally:
            client.config_set("maxmemory", 0)

        assert stored(client) == {}
        assert shard.commit(job(0, 10), [part()]).verdict is Verdict.OK
        assert stored(client)["=a"].n == 1

    def test_a_refused_command_reads_all_replies(self, redis_url: str) -> None:
        """After a refusal the connection is in step again."""
        wire = shard_wire.ShardWire(redis_url)

        with pytest.raises(StoreError, match="unknown command"):
            wire.ask([("PING",), ("NOSUCH",), ("PING",)])

        assert wire.ask([("ECHO", "in step")]) == [b"in step"]


class TestCap:
    @pytest.mark.parametrize("split", [1, 3, 40])
    def test_the_same_rows_in_any_split(
        self, client: redis.Redis, shard: ShardStore, split: int
    ) -> None:
        """The series of the smallest digests keep their row, however the parts come."""
        parts = [part(f"={n}", float(n)) for n in range(20)] * 2
        limits = {VID: Limits({60: 86_400}, max_series=5)}
        for at, first in enumerate(range(0, len(parts), split)):
            shard.commit(job(at, at + 1, limits=limits), parts[first : first + split])

        found = stored(client)
        own = sorted((f"={n}" for n in range(20)), key=series_digest)[:5]
        assert set(found) == {*own, OTHER}
        assert all(found[series].n == 2 for series in own)
        assert found[OTHER].n == 2 * 15
        assert sum(row.sum or 0 for row in found.values()) == 2 * sum(range(20))

    def test_other_has_a_name_where_there_is_such_a_row(
        self, client: redis.Redis, shard: ShardStore
    ) -> None:
        """By it readers know that a metric is capped; who writes next asks for it anew."""
        limits = {VID: Limits({60: 86_400}, max_series=2)}
        names_key = names.names_key(0, VID)
        shard.commit(job(0, 1, limits=limits), [part("=1"), part("=2")])
        assert OTHER_ID not in client.hgetall(names_key)
        shard.commit(job(1, 2, limits=limits), [part("=3")])
        assert client.hget(names_key, OTHER_ID) == OTHER.encode()

        # As when the last pane with such a row has gone: a token nobody of this process set.
        client.hdel(names_key, OTHER_ID)
        client.set(names.token_key(0), "0" * 32)
        shard.commit(job(2, 3, limits=limits), [part("=4")])
        assert client.hget(names_key, OTHER_ID) == OTHER.encode()
