"""A log that lost its end and was gone on with: where what was said of it stands."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from weir.commit import Offsets
from weir.definitions.base import Model
from weir.definitions.cut_short import furthest_said
from weir.definitions.fold import Definitions
from weir.definitions.history import NO_START, Horizons
from weir.definitions.job import Adopt, Audit, Erase, Job, Replay
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    NewRecord,
    OpenLane,
    TakeOver,
    activation_record,
    horizons_record,
    lane_record,
    put_record,
    start_record,
    takeover_record,
)
from weir.erasure import erasures
from weir.horizons import horizons_of

TEXT = "kind: metric\nname: m\nevents: {type: t}\nkeep: {10s: 1h}\n"
LOG, ANOTHER = "log", "another"
END: Offsets = {0: 20}


class World:
    """What drivers said of a log of two partitions, all of it at one place."""

    def __init__(self, topic_id: str = LOG) -> None:
        self.fold = Definitions()
        self.topic_id = topic_id
        self.fence = self.start()
        self.vid = self.add(put_record(Edit("acme", "metric", "m", None, "x", 0), TEXT))
        text = json.dumps({"do": {"job": "erase", "subject_hash": "a" * 64}})
        self.job = self.add(put_record(Edit("acme", "job", "j", None, "x", 0), text))

    def start(self, cut_short: Offsets | None = None, events_id: str = LOG) -> int:
        """Let a driver begin an epoch; return its fence."""
        start = DriverStart("a", 1, "lost", events_id=events_id, cut_short=cut_short)
        self.fence = self.add(start_record(start, at_ms=0))
        return self.fence

    def say(self, at: Offsets) -> None:
        """Say all that can be said, at one place."""
        begun = Counting(self.vid, "acme", "m", 1, at, fills=True, topic_id=self.topic_id)
        self.add(activation_record(begun, op="start", fence=self.fence, at_ms=0))
        lane = OpenLane("backfill", self.topic_id, {0: 15, 1: 15}, at, (self.vid,))
        self.add(lane_record(lane, fence=self.fence, at_ms=0))
        taken = TakeOver(self.vid, None, at, None, topic_id=self.topic_id)
        self.add(takeover_record(taken, fence=self.fence, at_ms=0))
        self.add(activation_record(begun, op="stop", fence=self.fence, at_ms=0))
        horizons = Horizons(dict(at), 1, 1, self.topic_id)
        self.add(horizons_record(horizons, fence=self.fence, at_ms=0))
        facts = {"topic_id": self.topic_id, "offsets": {str(p): n for p, n in at.items()}}
        self.report(JobReport(self.job, JobState.RUNNING, facts=facts))

    def report(self, said: JobReport) -> None:
        """Say where a job stands."""
        self.add(job_record(said, fence=self.fence))

    def add(self, record: NewRecord) -> int:
        """Append a record; return its offset."""
        change = self.fold.apply(self.fold.next_offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
        return change.offset

    def places(self) -> list[Offsets | None]:
        """Return where everything stands."""
        (one,), (lane,) = self.fold.activations.values(), self.fold.lanes.values()
        assert one.takeover is not None
        (erasure,) = erasures(self.fold)
        found = [one.begin, one.finish, one.takeover.offsets, lane.end]
        return [*found, self.fold.horizons[-1].begin, erasure.offsets]


@pytest.mark.parametrize(
    ("at", "stands"),
    [
        ({0: 50, 1: 50}, {0: 20, 1: 0}),
        ({0: 21, 1: 0}, {0: 20, 1: 0}),
        ({0: 20, 1: 0}, {0: 20, 1: 0}),
        ({0: 19, 1: 0}, {0: 19, 1: 0}),
    ],
)
def test_what_lay_behind_the_end_stands_at_it(at: Offsets, stands: Offsets) -> None:
    """Versions, takeovers, lanes, horizons and erasures: what comes next is behind it again."""
    world = World()
    world.say(at)
    assert world.places() == [at] * 6
    assert furthest_said(world.fold, LOG) == at
    world.start(END)
    assert world.places() == [stands] * 6
    (lane,) = world.fold.lanes.values()
    assert lane.start == {0: 15, 1: 0}
    assert furthest_said(world.fold, LOG) == stands


def test_what_is_said_afterwards_stands_where_it_is_said() -> None:
    """The log grows past the place at which it was cut."""
    world = World()
    world.start(END)
    world.say({0: 50, 1: 3})
    assert world.places() == [{0: 50, 1: 3}] * 6


def test_a_job_ends_with_what_it_goes_on_with() -> None:
    """A record says everything anew: an erasure that is done holds from the end of the log."""
    world = World()
    world.say({0: 50})
    world.start(END)
    world.report(JobReport(world.job, JobState.DONE, facts=world.fold.jobs[world.job].facts))
    assert [one.offsets for one in erasures(world.fold)] == [END]


@pytest.mark.parametrize("follows", [None, 0, 1, NO_START])
def test_a_start_that_does_not_follow_the_one_before_is_a_fence_alone(follows: int | None) -> None:
    """Its driver slept, and decided by what was no more so. Older releases do not say it."""
    world = World()
    told: dict[str, Any] = {"events_id": LOG, "tenant_bytes": 1}
    first = DriverStart("a", 2, "lost", incomplete_before_ms=7, follows=world.fence, **told)
    epoch = world.add(start_record(first, at_ms=1))
    world.fence = epoch
    world.say({0: 50})
    late = DriverStart("b", 3, "behind", events_id=ANOTHER, cut_short=END, follows=follows)
    before = epoch if follows == 1 else follows
    world.fence = world.add(start_record(replace(late, follows=before), at_ms=2))

    start = world.fold.start()
    assert start is not None
    assert (start.fence, start.instance, start.reason, start.at_ms) == (
        world.fence,
        "b",
        "behind",
        2,
    )
    assert start.incomplete_before_ms == 7
    is_taken = follows in (None, 1)
    assert start.overtaken is not is_taken
    held = (start.shards, start.epoch, start.events_id, start.tenant_bytes)
    assert held == ((3, world.fence, ANOTHER, None) if is_taken else (2, epoch, LOG, 1))
    assert world.fold.log_since == (world.fence if is_taken else 0)
    assert len(world.fold.cuts(ANOTHER)) == is_taken
    world.report(JobReport(world.job, JobState.DONE))  # its fence holds


def test_nothing_is_cut_by_a_driver_that_slept() -> None:
    """What another one has said meanwhile stands where that said it."""
    world = World()
    slept = world.fence
    world.start()
    world.say({0: 50})
    late = DriverStart("a", 1, "lost", events_id=LOG, cut_short=END, follows=slept)
    world.fence = world.add(start_record(late, at_ms=0))
    assert world.places() == [{0: 50}] * 6
    assert world.fold.cuts(LOG) == []
    following = replace(late, follows=world.fence)
    world.fence = world.add(start_record(following, at_ms=0))
    assert world.places() == [END] * 6


AT = {"0": 50, "1": 3}
STANDS = {"0": 20, "1": 0}
FACTS: dict[type[Model], tuple[dict[str, Any], dict[str, Any]]] = {
    Erase: ({"topic_id": LOG, "offsets": AT}, {"offsets": STANDS}),
    # Low and high are places of the log of copies.
    Replay: ({"topic_id": LOG, "begin": AT, "low": AT, "high": AT}, {"begin": STANDS}),
    Audit: (
        {"metrics": ["m"], "from_ms": 1, "to_ms": 2, "seed": 3, "places": [[0, 50], [1, 3]]},
        {"places": [[0, 20], [1, 0]]},
    ),
    # What was given up stays told as it was.
    Adopt: ({"given_up": {"gone": [{"partition": 0, "first": 20, "last": 49}]}}, {}),
}
"""By kind of job what it goes on with, and what of that is another place afterwards."""


@pytest.mark.parametrize("kind", get_args(Job.model_fields["do"].annotation))
def test_a_job_of_any_kind_goes_on_in_the_log_that_is_left(kind: type[Model]) -> None:
    """Of the places that it knows none lies behind the end."""
    facts, other = FACTS[kind]
    world = World()
    world.report(JobReport(world.job, JobState.RUNNING, facts=facts))
    world.start(END)
    assert world.fold.jobs[world.job].facts == facts | other


def test_a_replay_knows_how_long_its_log_was() -> None:
    """One of an earlier release does not say of which log, and is cut all the same."""
    world = World()
    world.report(JobReport(world.job, JobState.RUNNING, facts={"begin": AT}))
    assert furthest_said(world.fold, LOG) == {}
    world.start(END)
    assert world.fold.jobs[world.job].facts == {"begin": STANDS}
    world.report(JobReport(world.job, JobState.RUNNING, facts={"begin": AT, "topic_id": LOG}))
    assert furthest_said(world.fold, LOG) == {0: 50, 1: 3}


def test_places_of_another_log_are_left_alone() -> None:
    """They mean nothing here, and are known by the other log's id."""
    world = World(ANOTHER)
    world.say({0: 50})
    world.start(END)
    assert world.places() == [{0: 50}] * 6
    assert furthest_said(world.fold, LOG) == {}
    assert world.fold.cuts(ANOTHER) == []


def test_two_cuts_one_after_the_other() -> None:
    """Each is of an epoch, and the log is another one since the last."""
    world = World()
    world.say({0: 50})
    first = world.start({0: 30})
    second = world.start(END)
    assert world.places() == [END] * 6
    assert [(cut.epoch, cut.end) for cut in world.fold.cuts(LOG)] == [
        (first, {0: 30}),
        (second, END),
    ]
    assert world.fold.log_since == second


def test_what_comes_next_is_counted_by_the_horizons_said_last() -> None:
    """They hold from the end of the log on; what lies before is counted by those before."""
    world = World()
    world.add(horizons_record(Horizons({}, 5, 5, LOG), fence=world.fence, at_ms=0))
    world.say({0: 50})
    world.start(END)
    assert [(one.begin, one.horizon_ms) for one in horizons_of(world.fold, LOG)] == [
        ({}, 5),
        (END, 1),
    ]


def test_a_fork_is_cut_alone() -> None:
    """What it is given the fold itself never sees."""
    world = World()
    world.say({0: 50})
    fold, world.fold = world.fold, world.fold.fork()
    world.start(END)
    assert world.places() == [END] * 6
    world.fold = fold
    assert world.places() == [{0: 50}] * 6
    assert fold.log_since == 0
