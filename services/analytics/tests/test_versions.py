"""Which panes and which offsets a version counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.commit import Fence
from weir.definitions.fold import Definitions
from weir.definitions.history import Horizons
from weir.definitions.records import (
    DriverStart,
    Edit,
    NewRecord,
    OpenLane,
    TakeOver,
    activation_record,
    delete_record,
    lane_record,
    put_record,
    start_record,
    takeover_record,
)
from weir.lanes import counted_lanes, filled_by, is_done, places
from weir_analytics.panes.activation import (
    awaited,
    counting,
    is_over,
    lanes_to_open,
    left_over,
    shown_from,
    takeover,
    to_stop,
)
from weir_analytics.panes.batch import Batch, Offsets
from weir_analytics.panes.commit_job import CommitJob, Limits, Pane, Untold, UntoldPanes
from weir_analytics.panes.countable import Countable
from weir_analytics.panes.pane_merge import is_corrected
from weir_analytics.panes.versions import (
    LatePanes,
    Version,
    late_panes,
    versions_from_json,
    versions_to_json,
)
from weir_analytics.panes.writer import limits_of
from weir_reading.catalog import Catalog
from weir_reading.served import served


def version(**members: object) -> Version:
    """Return a version with two resolutions."""
    return Version(7, "acme", "m", ((10, 3_600), (60, 86_400)), **members)  # type: ignore[arg-type]


def final_at(final_through_ms: int, lateness_ms: int) -> CommitJob:
    """Return a commit of `version` whose batch begins when all before an instant was counted."""
    limits = {7: Limits({10: 3_600, 60: 86_400}, lateness_ms=lateness_ms)}
    fence = Fence(1, "d")
    return CommitJob(0, 1, fence, 1, 1, "t", {}, {}, limits, final_through_ms=final_through_ms)


class TestLate:
    @given(
        at_ms=st.integers(-200_000, 200_000),
        lateness_ms=st.integers(0, 90_000),
        final_through_ms=st.integers(0, 200_000),
    )
    def test_an_event_is_late_if_its_finest_pane_was_final(
        self, at_ms: int, lateness_ms: int, final_through_ms: int
    ) -> None:
        """As the shard decides what is a correction; and a longer pane is final no earlier."""
        job = final_at(final_through_ms, lateness_ms)
        fine, long = (
            is_corrected(Pane(7, res_s, at_ms // 1000 // res_s * res_s), job, UntoldPanes(()))
            for res_s in (10, 60)
        )

        before_ms = version(lateness_ms=lateness_ms).late_before_ms(final_through_ms)
        assert (at_ms < before_ms, at_ms // 1000 // 10 * 10_000 < before_ms) == (fine, fine)
        assert fine or not long

    @pytest.mark.parametrize(("through_ms", "is_final"), [(11_499, False), (11_500, True)])
    def test_to_the_millisecond_as_readers_say(self, *, through_ms: int, is_final: bool) -> None:
        """What is shown as provisional is no correction, nor is a change of what is final none."""
        fold = Definitions()
        text = f"{TEXT}\nallowed_lateness: 1500ms"
        record = put_record(Edit("acme", "metric", "m", None, "test", 0), text)
        assert fold.apply(0, record.key, record.value) is not None
        (counted,) = awaited(fold)
        version, lateness_ms = counted.version, counted.metric.lateness_ms
        limits = {7: limits_of(version)}
        job = replace(final_at(through_ms, 0), limits=limits)
        assert is_corrected(Pane(7, 10, 0), job, UntoldPanes(())) is is_final
        assert (through_ms - lateness_ms >= 10_000) is is_final
        assert (version.late_before_ms(through_ms) > 0) is is_final

    def test_a_tenant_is_late_by_its_own_versions(self) -> None:
        """By the one that is final first, and the shortest panes; those of the system are no ones'.

        Without an instant nothing is late.
        """
        versions = [
            *versions_from_json("[]").values(),
            Version(1, "a", "fine", ((1, 3_600),), lateness_ms=300_000),
            Version(2, "a", "strict", ((60, 3_600),)),
            Version(3, "b", "m", ((10, 3_600),), lateness_ms=15_000),
        ]
        found = late_panes(versions, 599_999)
        assert found == {"a": LatePanes(1, 540_000), "b": LatePanes(10, 580_000)}
        assert [found["b"].start_s(at_s) for at_s in (571, 579, 580)] == [570, 570, None]
        assert late_panes(versions, None) == {}


class TestPanes:
    def test_a_finest_pane_is_part_of_each_kept_resolution(self) -> None:
        """What happened at 125 s lies in the panes from 120 s on."""
        assert version().panes(120, 120) == [(10, 120), (60, 120)]
        assert version().panes(130, 120) == [(10, 130), (60, 120)]

    @pytest.mark.parametrize(
        ("received_s", "kept"), [(3_610, [(10, 0), (60, 0)]), (3_611, [(60, 0)]), (90_000, [])]
    )
    def test_edge_of_what_is_kept(self, received_s: int, kept: list[tuple[int, int]]) -> None:
        """A pane is written until exactly `keep` after its end, by the received time."""
        assert version().panes(0, received_s) == kept

    def test_cuts_give_each_pane_to_one_version(self) -> None:
        """The first pane at the cut is the successor's, the one before the predecessor's."""
        cut = {10: 130, 60: 180}
        old, new = version(cut_until=cut), version(cut_from=cut)

        assert old.panes(120, 120) == [(10, 120), (60, 120)]
        assert new.panes(120, 120) == []
        assert old.panes(130, 120) == [(60, 120)]
        assert new.panes(130, 120) == [(10, 130)]
        assert new.panes(180, 180) == [(10, 180), (60, 180)]

    def test_a_predecessor_is_over_when_no_pane_before_the_cut_is_kept(self) -> None:
        """Late events are counted for the old version until its last pane is too old."""
        old = version(cut_until={10: 130, 60: 180})

        assert not is_over(old, 180 + 60 + 86_400)
        assert is_over(old, 180 + 60 + 86_401)
        assert not is_over(version(cut_until={10: 130}), 10**9)

    def test_a_predecessor_to_which_no_pane_is_left_is_over(self) -> None:
        """As when a metric is edited twice while the log begins at one place: both cuts are one."""
        same, one_more = {10: 130, 60: 180}, {10: 130, 60: 240}

        assert is_over(version(cut_from=same, cut_until=same), 0)
        assert not is_over(version(cut_from=same, cut_until=one_more), 0)
        assert is_over(version(cut_until={10: 0, 60: 0}), 0)


class TestCovers:
    @pytest.mark.parametrize(
        ("start", "end", "covered"),
        [
            ({0: 5, 1: 5}, {0: 9, 1: 9}, True),
            ({0: 4, 1: 5}, {0: 9, 1: 9}, None),
            ({0: 0, 1: 0}, {0: 5, 1: 5}, False),
            ({0: 5, 1: 5}, {0: 20, 1: 20}, True),
            ({0: 5, 1: 5}, {0: 21, 1: 20}, None),
            ({0: 20, 1: 20}, {0: 30, 1: 30}, False),
            ({0: 5, 1: 5}, {0: 9, 1: 9, 2: 3}, True),
        ],
    )
    def test_a_range_lies_within_beside_or_across(
        self, start: dict[int, int], end: dict[int, int], covered: bool | None
    ) -> None:
        """Each partition has its own edges; one that was added later begins at 0."""
        spanned = version(begin={0: 5, 1: 5}, finish={0: 20, 1: 20, 2: 20})

        assert spanned.covers(start, end) is covered


TAKEN = {0: 50, 1: 50}


class TestCut:
    @pytest.mark.parametrize(
        ("start", "applies"),
        [({0: 40, 1: 40}, False), ({0: 50, 1: 50}, True), ({0: 60, 1: 40}, False)],
    )
    def test_it_applies_from_the_takeover_on(self, start: dict[int, int], applies: bool) -> None:
        """A batch that is run again after a takeover counts what it counted before."""
        new = version(cut_from={10: 100}, cut_from_at=TAKEN).at(start)
        old = version(cut_until={10: 100}, cut_until_at=TAKEN).at(start)

        assert (new.owns(10, 90), new.owns(10, 100)) == (not applies, True)
        assert (old.owns(10, 90), old.owns(10, 100)) == (True, not applies)

    def test_one_of_an_earlier_release_applies_everywhere(self) -> None:
        """It was chosen beyond all panes, so nothing before the activation lay there."""
        assert not version(cut_from={10: 100}).at({0: 0}).owns(10, 90)


LOG = "events"
TEXT = "kind: metric\nname: m\nevents: {type: t}\nkeep: {10s: 1h}"


class Edits:
    """One metric that is edited, and what a driver says of its versions."""

    def __init__(self) -> None:
        self.fold = Definitions()
        self.number = 0
        self.fence = self.add(start_record(DriverStart("a", 1, "start"), at_ms=0))

    def add(self, record: NewRecord) -> int:
        """Append a record."""
        offset = self.fold.next_offset
        change = self.fold.apply(offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
        return offset

    def edit(self, begin: int) -> int:
        """Make a version that counts from an offset on, and is to be filled."""
        edit = Edit("acme", "metric", "m", self.number or None, "test", 0)
        vid = self.add(put_record(edit, TEXT))
        self.number += 1
        definition = self.fold.by_vid(vid)
        assert definition is not None
        record = counting(definition, {0: begin}, LOG, fills=True)
        self.add(activation_record(record, op="start", fence=self.fence, at_ms=0))
        return vid

    def delete(self) -> None:
        """Delete the metric."""
        self.add(delete_record(Edit("acme", "metric", "m", self.number, "test", 0)))
        self.number += 1

    def fill(self, log: str = LOG) -> list[tuple[int, ...]]:
        """Open the lanes that are wanted; return the versions of each."""
        wanted = lanes_to_open(self.fold, log)
        for begin, vids in wanted:
            lane = OpenLane("backfill", log, dict.fromkeys(begin, 0), begin, vids)
            self.add(lane_record(lane, fence=self.fence, at_ms=0))
        return [vids for _begin, vids in wanted]

    def take_over(self, vid: int, at: int, complete_from_ms: int = 0) -> TakeOver:
        """Let a version serve."""
        taken = takeover(self.fold, vid, {0: at}, complete_from_ms, LOG)
        assert taken is not None
        self.add(takeover_record(taken, fence=self.fence, at_ms=0))
        return taken

    def stop(self) -> list[int]:
        """Stop what has no use any more; return the versions."""
        stopped = to_stop(self.fold)
        for one in stopped:
            record = counting(one, {0: 999}, LOG)
            self.add(activation_record(record, op="stop", fence=self.fence, at_ms=0))
        return [one.vid for one in stopped]

    def end(self, through_s: int) -> list[int]:
        """Stop the predecessors that are over; return the versions."""
        over = [one.vid for one in left_over(self.fold, LOG) if is_over(one, through_s)]
        for vid in over:
            definition = self.fold.by_vid(vid)
            assert definition is not None
            record = counting(definition, {0: 999}, LOG)
            self.add(activation_record(record, op="stop", fence=self.fence, at_ms=0))
        return over

    def filled_again(self, at: int) -> dict[int, Version]:
        """Return the versions that lanes count after a loss of everything, as they do it."""
        lanes = counted_lanes(self.fold, LOG)
        vids = [vid for lane in lanes for vid in filled_by(self.fold, lane)]
        found = Countable(self.fold, LOG).filling(vids, {0: at})
        return {one.version.vid: one.version for one in found}

    def rebuilt(self, at: int, through_s: int = 2_000) -> dict[int, Version]:
        """Return the versions that a rebuild counts, as it does it."""
        found = Countable(self.fold, LOG).rebuilt(through_s, {0: at})
        return {one.version.vid: one.version for one in found}

    def shown(self, log: str = LOG) -> dict[int, Offsets | None]:
        """Return by version from which offsets on readers look at it."""
        return {vid: shown_from(self.fold, log, vid) for vid in self.fold.activations}

    def counted(self, start: int, through_s: int = 2_000) -> list[int]:
        """Return the versions that count a range."""
        found = Countable(self.fold, LOG).counted(through_s, {0: start})
        return [one.version.vid for one in found]


class TestTakeover:
    def test_the_first_version_serves_all_panes(self) -> None:
        """It has no predecessor to leave panes to; what the log lacks is incomplete."""
        edits = Edits()
        vid = edits.edit(10)
        assert edits.fill() == [(vid,)]
        assert edits.fill() == []
        taken = edits.take_over(vid, 20, 5_000)

        assert (taken.after, taken.cut, taken.complete_from_ms) == (None, None, 5_000)

    def test_a_version_takes_over_what_it_holds_completely(self) -> None:
        """Panes that the log no longer has in full stay with the version before."""
        edits = Edits()
        first = edits.edit(10)
        edits.fill()
        edits.take_over(first, 20)
        second = edits.edit(30)
        edits.fill()
        taken = edits.take_over(second, 40, 1_000_001)

        assert (taken.after, taken.cut) == (first, {10: 1_010})
        catalog = Catalog()
        catalog.folded = edits.fold
        found = served(catalog, "acme", "m")
        assert found is not None
        alone = found.only(2)
        assert alone is not None
        assert alone.newest.complete_from_ms == 1_000_001, "asked for alone, it says so"

    def test_one_that_was_made_anew_takes_over_from_nobody(self) -> None:
        """Deleted and made again between two batches, or while the driver was down."""
        edits = Edits()
        first = edits.edit(10)
        edits.fill()
        edits.take_over(first, 20)
        edits.delete()
        second = edits.edit(30)
        assert edits.stop() == [first]
        edits.fill()
        taken = edits.take_over(second, 40, 1_000_001)

        assert (taken.after, taken.cut, taken.complete_from_ms) == (None, None, 1_000_001)

    def test_readers_look_at_a_version_from_its_takeover_on(self) -> None:
        """What late events change before that, in a batch that began before it, is told of none."""
        edits = Edits()
        first = edits.edit(10)
        assert edits.shown() == {first: None}
        edits.fill()
        edits.take_over(first, 20)
        second = edits.edit(30)
        assert edits.shown() == {first: {0: 20}, second: None}
        edits.fill()
        edits.take_over(second, 40, 1_000_000)
        assert edits.shown() == {first: {0: 20}, second: {0: 40}}
        assert edits.shown("another log") == {first: {}, second: {}}
        edits.delete()
        third = edits.edit(50)
        assert edits.shown() == {first: None, second: None, third: None}

    def test_both_count_until_then_and_only_late_events_after(self) -> None:
        """Until the takeover the old version counts everything, then what lies before the cut."""
        edits = Edits()
        first = edits.edit(10)
        edits.fill()
        edits.take_over(first, 20)
        second = edits.edit(30)
        edits.fill()
        assert edits.counted(35) == [first, second]
        edits.take_over(second, 40, 1_000_000)
        old, new = (one.version for one in Countable(edits.fold, LOG).counted(2_000, {0: 40}))

        assert (old.owns(10, 990), old.owns(10, 1_000)) == (True, False)
        assert (new.owns(10, 990), new.owns(10, 1_000)) == (False, True)

    def test_a_version_that_took_over_everything_counts_alone(self) -> None:
        """Where the log is whole, nothing is left to the version before."""
        edits = Edits()
        first = edits.edit(10)
        edits.fill()
        edits.take_over(first, 20)
        second = edits.edit(30)
        edits.fill()
        edits.take_over(second, 40)

        assert edits.counted(40, 10_000) == [second]
        assert edits.counted(35, 10_000) == [first, second]  # a batch of before, run again

    def test_a_version_edited_before_it_served_is_given_up(self) -> None:
        """The one that serves goes on, and the newest takes over from that."""
        edits = Edits()
        first = edits.edit(10)
        edits.fill()
        edits.take_over(first, 20)
        second = edits.edit(30)
        edits.fill()
        third = edits.edit(40)
        assert edits.stop() == [second]
        assert edits.fill() == [(third,)]

        assert edits.take_over(third, 50).after == first
        assert edits.stop() == []

    @given(
        st.lists(
            st.tuples(st.booleans(), st.integers(0, 4_000), st.integers(0, 5), st.booleans()),
            min_size=1,
            max_size=5,
        )
    )
    def test_the_version_that_serves_a_pane_counts_it(
        self, edits_made: list[tuple[bool, int, int, bool]]
    ) -> None:
        """However often a metric is edited, or made anew, and whatever the log has lost: no gap.

        What the log no longer had for who serves a pane is said of it.
        """
        edits, at = Edits(), 10
        lacks: dict[int, int] = {}
        for taken, complete_from_s, ahead, anew in edits_made:
            if anew and edits.number:
                edits.delete()
                lacks.clear()
            vid = edits.edit(at)
            edits.stop()
            edits.end(0)
            edits.fill()
            at += 10 + ahead
            if taken:
                edits.take_over(vid, at, complete_from_s * 1000)
                lacks[vid] = complete_from_s
                at += 10
        catalog = Catalog()
        catalog.folded = edits.fold
        found = served(catalog, "acme", "m")
        assert found is not None
        assert found.newest.rebuilding is not bool(lacks)
        edits.end(0)
        found_on = Countable(edits.fold, LOG).counted(0, {0: at})
        on = {one.version.vid: one.version for one in found_on}
        again, filled = edits.rebuilt(at, 0), edits.filled_again(at)
        for pane_s in range(0, 5_000, 10):
            owner = found.at(10, pane_s)
            assert owner is not None
            assert pane_s >= lacks.get(owner.vid, 0) or pane_s * 1000 < owner.complete_from_ms
            for counts in (on, again, filled):
                assert counts[owner.vid].owns(10, pane_s), (pane_s, owner)

    def test_after_a_loss_only_what_is_read_is_counted_again(self) -> None:
        """However often a metric was edited over a whole log: the version that serves, alone."""
        edits, at = Edits(), 0
        for _edit in range(10):
            at += 10
            vid = edits.edit(at)
            edits.fill()
            edits.take_over(vid, at)
            edits.end(2_000)

        assert list(edits.filled_again(at)) == [vid]
        assert list(edits.rebuilt(at)) == [vid]

    def test_after_a_loss_a_predecessor_is_counted_for_the_panes_left_to_it(self) -> None:
        """By lanes and by rebuilds, wherever in the log, until they are too old to be kept."""
        edits = Edits()
        first = edits.edit(10)
        edits.fill()
        edits.take_over(first, 20)
        second = edits.edit(30)
        edits.fill()
        edits.take_over(second, 40, 1_000_000)
        assert edits.end(4_610) == []
        for again in (edits.rebuilt(40), edits.filled_again(40)):
            assert (again[first].owns(10, 990), again[first].owns(10, 1_000)) == (True, False)
            assert (again[second].owns(10, 990), again[second].owns(10, 1_000)) == (False, True)
        # Before live counting has come to the takeover, readers are with the version before.
        for again in (edits.rebuilt(39), edits.filled_again(39)):
            assert again[first].owns(10, 1_000)

        assert edits.end(4_611) == [first]
        assert list(edits.rebuilt(40)) == list(edits.filled_again(40)) == [second]

    def test_a_batch_of_before_a_stop_is_run_again_as_it_was(self) -> None:
        """What was counted in one shard is counted in the others, also of a version given up."""
        edits = Edits()
        first = edits.edit(10)
        edits.fill()
        edits.take_over(first, 20)
        second = edits.edit(30)
        edits.fill()
        edits.take_over(second, 40)
        assert edits.end(2_000) == [first]

        assert edits.counted(35) == [first, second]

    def test_in_another_log_every_version_counts_from_its_start(self) -> None:
        """Offsets of a log that was given up mean nothing in the one that took its place."""
        edits = Edits()
        first = edits.edit(1_000)
        edits.fill()
        edits.take_over(first, 1_020)
        second = edits.edit(1_030)
        edits.fill()
        versions = [one.version for one in Countable(edits.fold, "new").counted(2_000, {0: 3})]

        assert [version.vid for version in versions] == [first, second]
        assert all(version.covers({0: 0}, {0: 5}) for version in versions)
        assert edits.fill("new") == [(second,)]
        (lane,) = [lane for lane in edits.fold.lanes.values() if lane.topic_id == "new"]
        assert is_done(lane, places(lane, [None, None]))

    def test_a_log_that_was_cut_short_is_counted_from_its_end(self) -> None:
        """Not from where the version began: the log will be as long again, of other events."""
        edits = Edits()
        first = edits.edit(1_000)
        edits.fill()
        edits.take_over(first, 1_010)
        second = edits.edit(1_020)
        edits.fill()
        edits.take_over(second, 1_030)
        third = edits.edit(1_040)
        edits.fill()
        edits.fence = edits.add(
            start_record(DriverStart("a", 1, "lost", events_id=LOG, cut_short={0: 20}), at_ms=0)
        )

        found = Countable(edits.fold, LOG).counted(2_000, {0: 20})
        versions = {one.version.vid: one.version for one in found}
        assert {vid: one.covers({0: 20}, {0: 30}) for vid, one in versions.items()} == {
            second: True,
            third: True,
        }, "the first one has no pane left"
        assert edits.shown()[second] == {0: 20}
        assert edits.fill() == []
        assert {lane.end[0] for lane in edits.fold.lanes.values()} == {20}

    def test_a_deleted_metric_is_stopped(self) -> None:
        """Every version of it."""
        edits = Edits()
        first = edits.edit(10)
        edits.add(delete_record(Edit("acme", "metric", "m", 1, "test", 0)))

        assert edits.stop() == [first]


def test_ended_are_the_deleted_and_those_whose_panes_are_too_old() -> None:
    """A version goes on while it, or late events before its successor's cut, may count."""
    fold = Definitions()
    text = "kind: metric\nname: {}\nevents: {{type: t}}\nkeep: {{10s: 1h}}\n"
    for at, name in enumerate(("deleted", "edited", "on")):
        record = put_record(Edit("acme", "metric", name, None, "test", 0), text.format(name))
        fold.apply(at, record.key, record.value)
    record = put_record(Edit("acme", "metric", "edited", 1, "test", 0), text.format("edited"))
    fold.apply(3, record.key, record.value)
    record = start_record(DriverStart("a", 1, "start"), at_ms=0)
    fold.apply(4, record.key, record.value)
    for at, vid in enumerate((0, 1, 2, 3), 5):
        definition = fold.by_vid(vid)
        assert definition is not None
        record = activation_record(counting(definition, {0: 0}, LOG), op="start", fence=4, at_ms=0)
        fold.apply(at, record.key, record.value)
    record = takeover_record(TakeOver(3, 1, {0: 0}, {10: 1_000}), fence=4, at_ms=0)
    fold.apply(9, record.key, record.value)
    assert Countable(fold, LOG).ended(4_610) == []
    deleted = fold.by_vid(0)
    assert deleted is not None
    record = activation_record(counting(deleted, {0: 9}, LOG), op="stop", fence=4, at_ms=0)
    fold.apply(10, record.key, record.value)

    assert Countable(fold, LOG).ended(4_610) == [0]
    assert Countable(fold, LOG).ended(4_611) == [0, 1]


def test_versions_survive_their_way_to_the_tasks() -> None:
    """What a task reads is what the driver wrote, keys as numbers."""
    one = version(begin={0: 1}, finish={0: 2}, cut_from={10: 30}, max_series=5)

    assert versions_from_json(versions_to_json([one]))[7] == one


def test_a_batch_survives_its_way_to_the_tasks() -> None:
    """What a task reads is what the driver wrote, keys as numbers."""
    batch = Batch(
        topic="t",
        topic_id="i",
        definitions_id="d",
        epoch=1,
        fence=2,
        number=3,
        start={0: 4},
        end={0: 9, 1: 5},
        shards=2,
        horizons=(Horizons({}, 1, 2), Horizons({0: 5}, 3, 4, "i")),
        kafka_bootstrap="k",
        redis_url="r",
        dedup_dir="f",
        only=(1,),
        trim_outbox={0: 7},
        untold=(Untold(0, None, 5), Untold(vid=3)),
    )

    assert Batch.from_json(batch.to_json()) == batch
    assert batch.records == 10
    assert batch.committed_shards() == (1,)
