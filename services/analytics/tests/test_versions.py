"""Which panes and which offsets a version counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.definitions.fold import Definitions
from weir.definitions.history import Definition
from weir.definitions.records import (
    DriverStart,
    Edit,
    activation_record,
    put_record,
    start_record,
)
from weir_analytics.panes.activation import counting, cut_after, ended, is_over
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.versions import Version, versions_from_json, versions_to_json


def version(**members: object) -> Version:
    """Return a version with two resolutions."""
    return Version(7, "acme", "m", ((10, 3_600), (60, 86_400)), **members)  # type: ignore[arg-type]


RESOLUTIONS = st.sets(st.sampled_from((10, 60, 3600)), min_size=1)


def of_chain(resolutions: set[int], cut_from: dict[int, int]) -> Version:
    """Return a version of a metric that is edited again and again."""
    keeps = tuple((res_s, 86_400) for res_s in sorted(resolutions))
    return Version(7, "acme", "m", keeps, cut_from=cut_from)


def held(one: Version, res_s: int, now_s: int, ahead: list[int]) -> list[int]:
    """Return the panes that events of now, and of clocks ahead, left in a version."""
    if res_s not in dict(one.keeps):
        return []
    times = [now_s, *(now_s + 60 * minutes for minutes in ahead)]
    panes = [time_s - time_s % res_s for time_s in times]
    return [pane_s for pane_s in panes if one.owns(res_s, pane_s)]


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


class TestCut:
    def test_the_first_pane_after_everything_received(self) -> None:
        """Panes that may hold an event from before the activation stay with the old version."""
        assert cut_after([10, 60], 125_000, {}) == {10: 130, 60: 180}
        assert cut_after([10], 129_999, {}) == {10: 130}
        assert cut_after([10], 130_000, {}) == {10: 140}

    def test_what_a_predecessor_does_not_hold_it_does_not_hand_on(self) -> None:
        """A second edit before the first one's cut waits for it, in every resolution."""
        cut = cut_after([60], 125_000, {60: 120}, {10: 400, 60: 420})

        assert cut == {10: 400, 60: 420}

    def test_panes_of_the_future_stay_whole(self) -> None:
        """If clients' clocks were ahead, the cut comes after their last pane."""
        assert cut_after([10, 60], 125_000, {10: 300}) == {10: 310, 60: 180}

    @given(
        first=st.tuples(RESOLUTIONS, st.integers(0, 500)),
        edits=st.lists(
            st.tuples(RESOLUTIONS, st.integers(0, 500), st.lists(st.integers(0, 40), max_size=3)),
            min_size=1,
            max_size=3,
        ),
    )
    def test_no_pane_is_of_two_versions_however_often_a_metric_is_edited(
        self,
        first: tuple[set[int], int],
        edits: list[tuple[set[int], int, list[int]]],
    ) -> None:
        """Of a chain of edits, with events ahead of time, each pane has one version or none."""
        now_s = first[1]
        versions = [of_chain(first[0], {})]
        for resolutions, later_s, ahead in edits:
            old = versions[-1]
            newest = {
                res_s: max(panes)
                for res_s in old.cut_from.keys() | dict(old.keeps)
                if (panes := held(old, res_s, now_s, ahead))
            }
            now_s += later_s
            lengths = resolutions | {res_s for res_s, _ in old.keeps}
            cut = cut_after(lengths, now_s * 1000, newest, old.cut_from)
            versions[-1] = replace(old, cut_until=cut)
            versions.append(of_chain(resolutions, cut))

        for res_s in (10, 60, 3600):
            for pane_s in range(0, 12_000, res_s):
                owners = [
                    at
                    for at, one in enumerate(versions)
                    if res_s in dict(one.keeps) and one.owns(res_s, pane_s)
                ]
                assert len(owners) <= 1, (res_s, pane_s, versions)


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
    begun: list[tuple[Definition | None, dict[str, Any]]] = [
        *((fold.by_vid(vid), {}) for vid in (0, 1, 2)),
        (fold.by_vid(3), {"after": fold.by_vid(1), "cut": {10: 1_000}}),
    ]
    for at, (definition, after) in enumerate(begun, 5):
        assert definition is not None
        record = activation_record(
            counting(definition, {0: 0}, **after), op="start", fence=4, at_ms=0
        )
        fold.apply(at, record.key, record.value)
    assert ended(fold, 4_610) == []
    deleted = fold.by_vid(0)
    assert deleted is not None
    record = activation_record(counting(deleted, {0: 9}), op="stop", fence=4, at_ms=0)
    fold.apply(9, record.key, record.value)

    assert ended(fold, 4_610) == [0]
    assert ended(fold, 4_611) == [0, 1]


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
        horizon_ms=1,
        kafka_bootstrap="k",
        redis_url="r",
        dedup_dir="f",
        only=(1,),
        trim_outbox={0: 7},
    )

    assert Batch.from_json(batch.to_json()) == batch
    assert batch.records == 10
    assert batch.committed_shards() == (1,)
