"""Whose slice is next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from weir.commit import Mark
from weir.definitions.fold import Definitions
from weir.definitions.history import Lane
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import (
    DriverStart,
    Edit,
    NewRecord,
    OpenLane,
    activation_record,
    lane_record,
    put_record,
    start_record,
    takeover_record,
)
from weir.event_time import LEAD_LIMIT_MS
from weir_analytics.panes.activation import counting, takeover
from weir_analytics.panes.commit_job import Pane, Untold, UntoldPanes
from weir_analytics.panes.lane_book import TURN_SLICES, LaneBook
from weir_analytics.panes.recovery import Shards

LOG = "events"
TEXT = "kind: metric\nname: {}\nevents: {{type: t}}\nkeep: {{10s: 1h}}"


class EmptyShards:
    """Shards that have lost everything, the marks of lanes too."""

    def read_lane_marks(self, lanes: Sequence[Lane]) -> list[list[Mark | None]]:
        """Return no mark."""
        return [[None] for _lane in lanes]


class Tenants:
    """Metrics of some tenants, each with a lane, and the book of them."""

    def __init__(self) -> None:
        self.fold = Definitions()
        self.fence = self._add(start_record(DriverStart("a", 1, "start"), at_ms=0))
        self.book = LaneBook(cast(Shards, EmptyShards()), LOG)

    def metric(self, tenant: str, name: str, *, after: int | None = None) -> int:
        """Define a metric, or edit it, and open its lane; return the version."""
        edit = Edit(tenant, "metric", name, after, "test", 0)
        vid = self._add(put_record(edit, TEXT.format(name)))
        definition = self.fold.by_vid(vid)
        assert definition is not None
        said = counting(definition, {0: 100}, LOG, fills=True)
        self._add(activation_record(said, op="start", fence=self.fence, at_ms=0))
        lane = OpenLane("backfill", LOG, {0: 0}, {0: 100}, (vid,))
        self._add(lane_record(lane, fence=self.fence, at_ms=0))
        return vid

    def serve(self, vid: int, complete_from_ms: int = 0) -> None:
        """Let a version take over."""
        taken = takeover(self.fold, vid, {0: 100}, complete_from_ms, LOG)
        assert taken is not None
        self._add(takeover_record(taken, fence=self.fence, at_ms=0))

    def lose(self, begin: int = 0, end: int = 100) -> int:
        """Open a lane for what a shard held; return its name."""
        lane = OpenLane("rebuild", LOG, {0: begin}, {0: end}, shards=(0,), until_ms=50_000)
        offset = self._add(lane_record(lane, fence=self.fence, at_ms=0))
        self.book.open(self.fold)
        self.book._at[offset] = {0: {0: begin}}
        return offset

    def erase(self, tenant: str, at: int) -> None:
        """Let an erasure hold from an offset on."""
        name = f"e{self.fold.next_offset}"
        do = json.dumps({"do": {"job": "erase", "subject_hash": f"{self.fold.next_offset:064}"}})
        vid = self._add(put_record(Edit(tenant, "job", name, None, "x", 0), do))
        facts = {"topic_id": LOG, "offsets": {"0": at}}
        self._add(job_record(JobReport(vid, JobState.RUNNING, facts=facts), fence=self.fence))

    def ends(self, most: int) -> list[int]:
        """Do all slices; return where each ended."""
        found = []
        while (done := self.book.next(self.fold, most)) is not None:
            self.book.moved(done, self.fold)
            found.append(done.end[0])
        return found

    def untold(self) -> set[Untold]:
        """Return what nobody has seen; a live batch came after each slice."""
        self.book._unsure.clear()
        return set(self.book.untold(self.fold))

    def slices(self, count: int, most: int = 1) -> list[tuple[int, ...]]:
        """Do some slices; return of each the versions that it filled."""
        found = []
        for _slice in range(count):
            done = self.book.next(self.fold, most)
            assert done == self.book.next(self.fold, most), "its plan is made in between"
            assert done is not None
            self.book.moved(done, self.fold)
            found.append(done.lane.vids)
        return found

    def _add(self, record: NewRecord) -> int:
        offset = self.fold.next_offset
        change = self.fold.apply(offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
        return offset


def test_tenants_take_turns() -> None:
    """A tenant whose every metric is being filled delays another by a turn, also a new one."""
    tenants = Tenants()
    many = [tenants.metric("acme", f"m{i}") for i in range(20)]
    one = tenants.metric("zeta", "m")
    turn = TURN_SLICES

    assert tenants.slices(4 * turn) == (
        [(many[0],)] * turn + [(one,)] * turn + [(many[0],)] * turn + [(one,)] * turn
    )
    newest = tenants.metric("nova", "m")
    assert tenants.slices(turn) == [(newest,)] * turn


def test_what_was_lost_comes_before_what_is_new() -> None:
    """After a loss: what shards held, what serves, what is left to those before, new ones."""
    tenants = Tenants()
    new = tenants.metric("acme", "new")
    old = tenants.metric("acme", "m")
    tenants.serve(old)
    edited = tenants.metric("acme", "m", after=1)
    tenants.serve(edited, complete_from_ms=1_000_000)
    tenants.lose()

    assert tenants.slices(4, most=100) == [(), (edited,), (old,), (new,)]


def test_who_erases_all_day_cuts_nobody_s_backfill() -> None:
    """A thousand erasures, of another tenant or of its own: as many slices as without."""
    tenants = Tenants()
    tenants.metric("acme", "m")
    for n in range(1_000):
        tenants.erase("zeta" if n % 2 else "acme", n // 10)

    assert tenants.ends(most=40) == [40, 80, 100]


def test_a_rebuild_is_cut_where_an_erasure_within_it_begins_to_hold() -> None:
    """Whosever it is: the account of what came before it has them, of all tenants."""
    tenants = Tenants()
    tenants.lose()
    for at in (0, 30, 30, 60, 100, 150):
        tenants.erase("zeta", at)

    assert tenants.ends(most=1_000) == [30, 60, 100]


def test_rebuilds_beside_each_other_are_cut_each_by_itself() -> None:
    """A border of the part that one counts is none of another's."""
    tenants = Tenants()
    tenants.erase("zeta", 40)
    offsets = [tenants.lose(begin, end) for begin, end in ((0, 100), (100, 200))]
    tenants.metric("acme", "m")
    found = tenants.book.next(tenants.fold, 1_000)
    assert found is not None
    (beside,) = tenants.book.beside(found, tenants.fold, 1_000)

    ends = {one.lane.offset: one.end[0] for one in (found, beside)}
    assert ends == dict(zip(offsets, (40, 200), strict=True))


def test_progress_is_of_all_lanes_under_way() -> None:
    """It moves with the slices of each, and a lane that is done is told no more."""
    tenants = Tenants()
    one, other = tenants.metric("acme", "m"), tenants.metric("zeta", "m")

    def told() -> dict[int | None, tuple[int, int]]:
        tenants.book._unsure.clear()  # as after a live batch
        return {p.vid: (p.at, p.of) for p in tenants.book.progress(tenants.fold)}

    assert told() == {one: (0, 100), other: (0, 100)}
    tenants.slices(TURN_SLICES, most=10)
    assert told() == {one: (80, 100), other: (0, 100)}
    tenants.slices(1, most=30)
    assert told() == {one: (80, 100), other: (30, 100)}
    tenants.slices(1, most=100)
    assert told() == {one: (80, 100)}
    tenants.slices(1, most=20)
    assert told() == {}


def test_what_a_lane_has_still_to_count_nobody_has_seen() -> None:
    """Of a version that is filled nothing, of a lost shard what its events may be dated."""
    tenants = Tenants()
    assert tenants.untold() == set()
    vid = tenants.metric("acme", "m")
    assert tenants.untold() == {Untold(0, vid)}
    tenants.lose()
    assert tenants.untold() == {Untold(0, vid), Untold(0, None, 50_000 + LEAD_LIMIT_MS)}
    tenants.slices(1, most=100)
    assert tenants.untold() == {Untold(0, vid)}
    tenants.slices(1, most=100)
    assert tenants.untold() == set()


def test_of_a_version_that_serves_only_the_lost_shard_is_silent() -> None:
    """After a loss its backfill counts again in that shard; the others held what they hold."""
    tenants = Tenants()
    vid = tenants.metric("acme", "m")
    (lane,) = tenants.book.open(tenants.fold)
    tenants.book._at[lane.offset] = {0: dict(lane.end), 1: {0: 40}}

    assert tenants.untold() == {Untold(1, vid)}


def holds(untold: Untold, pane: Pane) -> bool:
    """Tell of one alone whether it means a pane: the slow, obvious way."""
    is_before = untold.before_ms is None or pane.start_s * 1000 < untold.before_ms
    return untold.vid in (None, pane.vid) and is_before


class TestUntoldPanes:
    def test_they_are_those_of_the_version_and_before_the_instant(self) -> None:
        """Both sides of each edge."""
        assert UntoldPanes([Untold(0, 7)]).hold(Pane(7, 10, 500))
        assert not UntoldPanes([Untold(0, 7)]).hold(Pane(8, 10, 500))
        assert UntoldPanes([Untold(0, None, 500_001)]).hold(Pane(8, 10, 500))
        assert not UntoldPanes([Untold(0, None, 500_000)]).hold(Pane(8, 10, 500))
        assert not UntoldPanes([]).hold(Pane(8, 10, -500))

    @given(
        st.lists(
            st.builds(
                Untold,
                st.none() | st.integers(0, 1),
                st.none() | st.integers(1, 3),
                st.none() | st.integers(-3_000, 3_000),
            )
        ),
        st.integers(1, 3),
        st.integers(-4, 4),
    )
    def test_of_several_any_may_hold_it(self, untold: list[Untold], vid: int, start_s: int) -> None:
        """In whatever order, with an instant or without, of a version or of all."""
        pane = Pane(vid, 10, start_s)
        assert UntoldPanes(untold).hold(pane) is any(holds(one, pane) for one in untold)

    def test_a_pane_costs_no_more_where_much_is_untold(self) -> None:
        """Of a hundred metrics that are filled in eight shards each pane would look at 800."""
        looked_at = iter([Untold(0, vid, 1_000) for vid in range(800)])
        untold = UntoldPanes(looked_at)
        assert next(looked_at, None) is None, "it was gone through once, and cannot be again"
        assert sum(untold.hold(Pane(vid, 10, 0)) for vid in range(900)) == 800
