"""Series that no pane holds lose their id and name, while commits go on; on a real Redis."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
import redis
from weir import names, rows
from weir.commit import Fence, Mark, Verdict
from weir.rows import Row
from weir.series import OTHER, OTHER_ID, series_digest
from weir_analytics.panes import forgetting, recovery
from weir_analytics.panes.commit_job import CommitJob, Limits, Pane, Part
from weir_analytics.panes.forgetting import Forgetting
from weir_analytics.panes.recovery import Shards, VerdictError
from weir_analytics.panes.store import ShardStore

pytestmark = pytest.mark.redis

FENCE = Fence(7, "definitions")
NEWER = Fence(9, "definitions")
VID = 5
START_S = 2_000_000_040
OLD, PANE = Pane(VID, 60, START_S), Pane(VID, 60, START_S + 60)


class StepClock:
    """A clock on which every look takes longer than a slice: a slice is one step."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._now_s = 0.0

    def now_ms(self) -> int:
        """Return nothing that anybody asks for."""
        return 0

    def monotonic_s(self) -> float:
        """Return seconds that run."""
        self._now_s += 1.0
        return self._now_s


class Shard:
    """Shard 0 of one, a writer that knows its ids, and the walk."""

    def __init__(self, url: str, max_series: int, *, listed: bool = False) -> None:
        """Begin at offset 0 under the fence."""
        self.redis: Any = redis.Redis.from_url(url)
        self.shards = Shards(url, 1, timeout_s=5)
        self.shards.raise_fence(FENCE, 8)
        mark = Mark(epoch=7, batch=-1, topic_id="events", end={0: 0}, shards=1)
        self.redis.set(names.mark_key(0), msgspec.json.encode(mark))
        self.walk = Forgetting(self.shards, 1, FENCE, StepClock())
        self._store = ShardStore(url, 0, timeout_s=5)
        self._limits = {VID: Limits({60: 86_400}, max_series, listed=listed)}
        self.end = 0

    def close(self) -> None:
        """Close all connections."""
        self.redis.close()
        self.shards.close()
        self._store.close()

    def commit(self, *parts: tuple[Pane, str]) -> None:
        """Commit a part of one event for each, and read the outbox as the driver does."""
        job = CommitJob(
            shard=0,
            shards=1,
            fence=FENCE,
            epoch=7,
            batch=self.end,
            topic_id="events",
            from_offsets={0: self.end},
            to_offsets={0: self.end + 1},
            limits=self._limits,
            trim_outbox=self.end,
        )
        self.end += 1
        done = self._store.commit(job, [Part(*pane, series, Row(1)) for pane, series in parts])
        assert done.verdict is Verdict.OK
        self.walk.note(self.shards.read_outboxes())

    def expire(self, *panes: Pane) -> None:
        """Let panes go, as Redis does."""
        self.redis.delete(*[names.pane_key(0, *pane) for pane in panes])

    def begin(self, ended: Sequence[int] = (), may_go: bool = True) -> None:
        """Begin a walk."""
        self.walk.begin([VID], ended, lambda _vid: may_go)

    def go_on(self) -> None:
        """Do a slice."""
        self.walk.go_on({0: self.end})

    def forget(self, ended: Sequence[int] = (), may_go: bool = True) -> int:
        """Do a whole walk; return how many ids it freed."""
        self.begin(ended, may_go)
        while self.walk.is_under_way:
            self.go_on()
        return self.walk.freed

    def id_of(self, series: str) -> bytes | None:
        """Return the id of a series, None if it has none."""
        found: bytes | None = self.redis.hget(names.ids_key(0, VID), series_digest(series))
        return found

    def named(self) -> set[bytes]:
        """Return all names."""
        return set(self.redis.hvals(names.names_key(0, VID)))

    def counts(self, pane: Pane) -> dict[str, int]:
        """Return the counts of a pane, as a reader finds them: each id must have a name."""
        texts = self.redis.hgetall(names.names_key(0, VID)) | {OTHER_ID: OTHER.encode()}
        packed = self.redis.hgetall(names.pane_key(0, *pane))
        return {texts[number].decode(): rows.decode(row).n for number, row in packed.items()}


@pytest.fixture
def shard(redis_url: str) -> Iterator[Shard]:
    """Return a shard on an empty server."""
    opened = Shard(redis_url, max_series=1_000)
    yield opened
    opened.close()


class TestALivingVersion:
    def test_a_series_is_forgotten_with_its_last_pane(self, shard: Shard) -> None:
        """What a pane holds keeps id and name; what none holds loses both."""
        shard.commit((OLD, "=gone"), (OLD, "=both"), (PANE, "=both"))
        assert shard.forget() == 0

        shard.expire(OLD)

        assert shard.forget() == 1
        assert shard.named() == {b"=both"}
        assert shard.id_of("=gone") is None
        assert shard.counts(PANE) == {"=both": 1}

    def test_an_evicted_series_is_forgotten(self, redis_url: str) -> None:
        """Who gave its row to others has nothing left that an id would stand for."""
        shard = Shard(redis_url, max_series=2)
        everyone = sorted((f"={n}" for n in range(6)), key=series_digest, reverse=True)
        for series in everyone:
            shard.commit((PANE, series))

        assert shard.forget() == 4
        assert shard.named() == {series.encode() for series in everyone[-2:]} | {b"*"}
        assert sum(shard.counts(PANE).values()) == 6
        shard.close()

    def test_a_series_is_taken_off_its_owners_list(
        self, redis_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A list holds what has a name; of an owner without series there is none."""
        monkeypatch.setattr(forgetting, "LISTED", {VID})
        shard = Shard(redis_url, max_series=1_000, listed=True)
        shard.commit((OLD, "=a|=gone"), (PANE, "=a|=kept"), (OLD, "=b|=gone"))

        shard.expire(OLD)

        assert shard.forget() == 2
        listed = shard.redis.smembers(names.listed_key(0, VID, "a"))
        assert listed == {shard.id_of("=a|=kept")}
        assert not shard.redis.exists(names.listed_key(0, VID, "b"))
        shard.close()

    def test_who_comes_back_gets_a_new_id(self, shard: Shard) -> None:
        """The writer knew the old one; a reader may have kept the name it stood for."""
        shard.commit((OLD, "=a"), (PANE, "=b"))
        before = shard.id_of("=a")
        shard.expire(OLD)
        shard.forget()

        shard.commit((PANE, "=c"), (PANE, "=a"))

        assert shard.counts(PANE) == {"=a": 1, "=b": 1, "=c": 1}
        assert before == b"\x00\x01"
        assert {shard.id_of("=a"), shard.id_of("=c")} == {b"\x00\x03", b"\x00\x04"}

    def test_who_comes_back_between_two_slices_keeps_its_id(self, shard: Shard) -> None:
        """Its pane was looked at before: it is looked at again before anything is deleted."""
        shard.commit((OLD, "=a"), (PANE, "=b"))
        shard.expire(OLD)
        steps = 0
        shard.begin()
        while shard.walk.is_under_way:
            shard.go_on()
            steps += 1

        for late in range(steps):
            series = f"={late}"
            shard.commit((OLD, series))
            shard.expire(OLD)
            shard.begin()
            for _ in range(late):
                shard.go_on()
            shard.commit((PANE, series))
            while shard.walk.is_under_way:
                shard.go_on()
            assert shard.counts(PANE)[series] == 1
        assert steps > 2

    def test_a_shard_that_lost_its_tail_is_left_alone(self, shard: Shard) -> None:
        """Its panes are not those that were noted; the next batch finds it behind."""
        shard.commit((OLD, "=a"))
        shard.expire(OLD)
        shard.end += 1

        assert shard.forget() == 0
        assert shard.named() == {b"=a"}


class TestAnEndedVersion:
    def test_nothing_stays_of_it(self, shard: Shard) -> None:
        """With its last pane go its names, its ids, and the number of the last one."""
        shard.commit((PANE, "=a"))
        assert shard.forget(ended=[VID]) == 0
        assert shard.redis.exists(names.ids_key(0, VID))

        shard.expire(PANE)

        assert shard.forget(ended=[VID]) == 1
        assert not shard.redis.exists(names.ids_key(0, VID), names.names_key(0, VID))

    def test_of_one_that_may_be_counted_later_the_last_number_stays(self, shard: Shard) -> None:
        """As where only the next release can read it: no id is given twice."""
        shard.commit((PANE, "=a"))
        shard.expire(PANE)

        assert shard.forget(ended=[VID], may_go=False) == 1
        assert shard.redis.exists(names.ids_key(0, VID))

    def test_only_one_of_which_something_is_there_is_asked_of(self, shard: Shard) -> None:
        """It may take long to tell, and most that ever ended have nothing."""
        shard.commit((PANE, "=a"))
        shard.expire(PANE)
        asked: list[int] = []

        def note(vid: int) -> bool:
            asked.append(vid)
            return True

        shard.walk.begin([VID, 8, 9], [VID, 8, 9], note)
        while shard.walk.is_under_way:
            shard.go_on()

        assert asked == [VID]
        assert not shard.redis.exists(names.ids_key(0, VID))

    def test_a_writer_that_knew_the_ids_gives_new_ones(self, shard: Shard) -> None:
        """What a process has looked up is void: the token is another one."""
        shard.commit((PANE, "=a"))
        shard.expire(PANE)
        shard.forget(ended=[VID])

        shard.commit((PANE, "=a"))

        assert shard.counts(PANE) == {"=a": 1}


def test_an_older_driver_deletes_nothing(shard: Shard) -> None:
    """A driver that was paused finds its successor's fence."""
    shard.commit((OLD, "=a"))
    shard.expire(OLD)
    shard.shards.raise_fence(NEWER, 10)

    with pytest.raises(VerdictError) as caught:
        shard.forget()

    assert caught.value.verdict is Verdict.FENCED
    assert shard.named() == {b"=a"}


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_commits_and_slices(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Every pane resolves all its ids and holds what was counted; in the end no name is left over.

    Panes come and go, are capped or not, late events come, and slices lie anywhere between.
    """
    for bound in ("PANES_AT_ONCE", "FREED_AT_ONCE", "NAMES_AT_ONCE"):
        monkeypatch.setattr(forgetting, bound, 2)
    monkeypatch.setattr(forgetting, "MOST_IDS", 5)
    monkeypatch.setattr(recovery, "KEYS_AT_ONCE", 2)
    chance = random.Random(seed)  # noqa: S311
    shard = Shard(redis_url, max_series=chance.choice([4, 1_000]))
    panes = [Pane(VID, 60, START_S + 60 * n) for n in range(4)]
    counted = dict.fromkeys(panes, 0)
    given: dict[bytes, bytes] = {}
    for _ in range(120):
        what = chance.random()
        if what < 0.4:
            parts = [(chance.choice(panes), f"={chance.randrange(12)}") for _ in range(3)]
            shard.commit(*parts)
            for pane, _series in parts:
                counted[pane] += 1
        elif what < 0.5:
            gone = chance.choice(panes)
            shard.expire(gone)
            counted[gone] = 0
        elif shard.walk.is_under_way:
            shard.go_on()
        else:
            shard.begin()
        assert {pane: sum(shard.counts(pane).values()) for pane in panes} == counted
        for number, text in shard.redis.hgetall(names.names_key(0, VID)).items():
            assert given.setdefault(number, text) == text
    while shard.walk.is_under_way:
        shard.go_on()
    shard.forget()

    held = {series.encode() for pane in panes for series in shard.counts(pane)}
    assert shard.named() == held
    assert shard.redis.hlen(names.ids_key(0, VID)) == len(held - {b"*"}) + 1
    shard.close()
