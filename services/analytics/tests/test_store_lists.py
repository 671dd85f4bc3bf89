"""Which series each owner's list names, where ids are given, kept, refused and lost."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from weir import names
from weir.commit import Verdict
from weir.series import OTHER, series_digest
from weir_analytics.panes import pane_merge, store
from weir_analytics.panes.commit_job import Limits
from weir_analytics.panes.store import ShardStore

from .exec_proxy import Proxy
from .shard_scene import START_S, VID, job, part, stored

pytestmark = pytest.mark.redis


class TestLists:
    LISTING = {"limits": {VID: Limits({60: 86_400}, by_owner=True, listed=True)}}  # noqa: RUF012
    CAPPED = {"limits": {VID: Limits({60: 86_400}, 1, by_owner=True, listed=True)}}  # noqa: RUF012

    def test_each_owner_has_a_list_of_its_own_series(
        self, client: redis.Redis, shard: ShardStore
    ) -> None:
        """Whoever reads one tenant's rows need not look at those of the others."""
        both = [part("=acme|=a"), part("=acme|=b"), part("=globex|=a"), part(OTHER)]
        shard.commit(job(0, 10, **self.LISTING), both)
        shard.commit(job(10, 20, **self.LISTING), [part("=acme|=c")])

        texts = client.hgetall(names.names_key(0, VID))
        for owner, series in (("acme", "abc"), ("globex", "a")):
            listed = client.smembers(names.listed_key(0, VID, owner))
            assert {texts[short] for short in listed} == {f"={owner}|={s}".encode() for s in series}

    def test_a_list_that_lacks_some_is_made_whole(
        self, client: redis.Redis, redis_url: str
    ) -> None:
        """Of series that a release without lists gave ids to, once another process counts them."""
        ShardStore(redis_url, 0).commit(job(0, 10), [part("=acme|=a")])
        assert not client.exists(names.listed_key(0, VID, "acme"))
        again = ShardStore(redis_url, 0)
        again.commit(job(10, 20, **self.LISTING), [part("=acme|=a")])

        assert client.smembers(names.listed_key(0, VID, "acme")) == {b"\x00\x01"}

    def test_a_series_beyond_the_cap_is_listed_nowhere(
        self, client: redis.Redis, shard: ShardStore
    ) -> None:
        """It was looked up and has no id."""
        shard.commit(job(0, 10, **self.CAPPED), [part(f"=acme|={n}") for n in range(5)])

        assert client.smembers(names.listed_key(0, VID, "acme")) == {b"\x00\x01"}

    @pytest.mark.parametrize("is_cut", [False, True], ids=["refused", "cut"])
    def test_what_a_try_gave_and_did_not_store_is_listed_nowhere(
        self,
        client: redis.Redis,
        redis_url: str,
        proxy: Proxy,
        monkeypatch: pytest.MonkeyPatch,
        is_cut: bool,
    ) -> None:
        """Another writer had the id meanwhile, and the series no row: the list would name another.

        Redis refuses the transaction, or the connection breaks before it has it.
        """
        low, high = sorted(("=acme|=a", "=acme|=b"), key=series_digest)
        moves = iter([[part("=globex|=a"), part(low)]])
        merge = pane_merge.merge_pane

        def merge_late(*arguments: object) -> object:
            for parts in moves:
                lane = job(0, 4, lane="3", **self.CAPPED)
                assert ShardStore(redis_url, 0).commit(lane, parts).verdict is Verdict.OK
                proxy.cut_next_exec = is_cut
            return merge(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "merge_pane", merge_late)
        done = ShardStore(proxy.url, 0).commit(job(0, 10, **self.CAPPED), [part(high)])

        assert (done.verdict, done.work.tries, proxy.lost) == (Verdict.OK, 2, is_cut)
        assert set(stored(client)) == {"=globex|=a", low, OTHER}
        assert self.listed(client) == {"acme": {low}, "globex": {"=globex|=a"}}

    def test_a_list_is_there_though_the_answer_was_lost(
        self, client: redis.Redis, proxy: Proxy
    ) -> None:
        """With the rows, and what the same process counts later."""
        behind = ShardStore(proxy.url, 0, timeout_s=5)
        proxy.lose_next_exec = True
        assert behind.commit(job(0, 10, **self.LISTING), [part("=acme|=a")]).verdict == "done"
        behind.commit(job(10, 20, **self.LISTING), [part("=acme|=a"), part("=acme|=b")])

        assert self.listed(client) == {"acme": {"=acme|=a", "=acme|=b"}}

    def test_what_a_trial_has_looked_up_is_listed_by_the_commit_behind_it(
        self, client: redis.Redis, redis_url: str, shard: ShardStore
    ) -> None:
        """Which need not look it up again; the trial itself lists nothing."""
        shard.commit(job(0, 10), [part("=acme|=a"), part("=acme|=b")])
        again, both = ShardStore(redis_url, 0), [part("=acme|=a"), part("=acme|=b")]
        assert again.commit(job(10, 20, dry=True, **self.LISTING), both).verdict is Verdict.OK
        assert self.listed(client) == {}
        again.commit(job(10, 20, **self.LISTING), both[:1])

        assert self.listed(client)["acme"] >= {"=acme|=a"}

    @pytest.mark.parametrize("later_s", [0, 60], ids=["there", "in a later pane"])
    def test_what_is_known_from_a_full_pane_is_listed_once_it_is_counted(
        self, client: redis.Redis, redis_url: str, later_s: int
    ) -> None:
        """As where a release without lists gave the ids: nobody looks these series up."""
        before = {"limits": {VID: Limits({60: 86_400}, 1, by_owner=True)}}
        ShardStore(redis_url, 0).commit(job(0, 10, **before), [part("=acme|=a"), part("=old|=a")])
        again = ShardStore(redis_url, 0)
        again.commit(job(10, 20, **self.CAPPED), [part("=globex|=a")])
        assert self.listed(client) == {"globex": {"=globex|=a"}}

        counted = part("=acme|=a", start_s=START_S + later_s)
        again.commit(job(20, 30, dry=True, **self.CAPPED), [counted])
        again.commit(job(20, 30, **self.CAPPED), [counted])
        assert self.listed(client) == {"acme": {"=acme|=a"}, "globex": {"=globex|=a"}}
        assert not client.exists(names.listed_key(0, VID, "old"))

    def test_what_was_listed_is_not_listed_again(self, shard: ShardStore) -> None:
        """The next commit of this process writes what it counts, and no list."""
        shard.commit(job(0, 10, **self.LISTING), [part("=acme|=a")])
        assert shard._ids.writes() == []

    def listed(self, client: redis.Redis) -> dict[str, set[str]]:
        """Return the series that each owner's list names, as a reader finds them."""
        texts: dict[Any, Any] = client.hgetall(names.names_key(0, VID))
        lists: dict[str, Any] = {
            owner: client.smembers(names.listed_key(0, VID, owner)) for owner in ("acme", "globex")
        }
        found = {owner: {texts[n].decode() for n in ids} for owner, ids in lists.items()}
        return {owner: series for owner, series in found.items() if series}
