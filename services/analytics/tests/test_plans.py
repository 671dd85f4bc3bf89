"""What ranges are counted for, and without whom."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from weir.commit import Offsets
from weir.definitions.fold import Definitions
from weir.definitions.history import Horizons
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import (
    DriverStart,
    Edit,
    NewRecord,
    activation_record,
    put_record,
    start_record,
)
from weir.horizons import horizons_within
from weir_analytics.panes.activation import counting
from weir_analytics.panes.erased import Erased
from weir_analytics.panes.lanes import spanned
from weir_analytics.panes.plan import KEPT, beyond_from
from weir_analytics.panes.plans import Counting, Plans

LOG = "log"
TEXT = "kind: metric\nname: m\nevents: {type: t}\nkeep: {10s: 1h}\n"
GONE = ("acme", "a" * 64)
AT = {0: 100}


class World:
    """A metric of `acme`, and somebody of each of two tenants who was erased at offset 10."""

    def __init__(self, erased_at: dict[str, int] | None = None) -> None:
        self.fold = Definitions()
        self._add(start_record(DriverStart("a", 1, "start"), at_ms=0))
        self.begin("m", {})
        for tenant in ("acme", "zeta"):
            do = {"do": {"job": "erase", "subject_hash": GONE[1]}}
            vid = self._add(put_record(Edit(tenant, "job", "j", None, "x", 0), json.dumps(do)))
            facts = {"topic_id": LOG, "offsets": erased_at or {"0": 10}}
            self._add(job_record(JobReport(vid, JobState.RUNNING, facts=facts), fence=0))
        usual = Horizons({}, 3_600_000, 1_000)
        self.plans = Plans(self.fold, LOG, usual, lambda _plan: None, hash_key=b"k")

    def begin(self, name: str, offsets: Offsets) -> None:
        """Let another metric be counted from some offsets on."""
        vid = self._add(put_record(Edit("acme", "metric", name, None, "test", 0), TEXT))
        definition = self.fold.by_vid(vid)
        assert definition is not None
        said = counting(definition, offsets, LOG)
        self._add(activation_record(said, op="start", fence=0, at_ms=0))

    def cut_short(self, end: Offsets) -> None:
        """Let a driver go on with the log, which has lost its end."""
        start = DriverStart("a", 1, "lost", events_id=LOG, cut_short=end)
        self._add(start_record(start, at_ms=0))

    def _add(self, record: NewRecord) -> int:
        offset = self.fold.next_offset
        change = self.fold.apply(offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
        return offset


@pytest.mark.parametrize(
    ("start", "end", "is_account"), [({0: 0}, {0: 10}, False), ({0: 10}, {0: 20}, True)]
)
def test_nobody_erased_is_counted_again(
    start: dict[int, int], end: dict[int, int], is_account: bool
) -> None:
    """After a loss no version is given them, wherever in the log; the account is as it was."""
    again = World().plans.rebuilding(start, end, AT, 0)

    assert (GONE in again.erased, GONE in again.later) == (is_account, not is_account)
    assert {tenant for tenant, _hash in again.later} <= {"acme"}, "zeta has nothing there"


def test_who_was_erased_stays_so_in_a_log_that_was_cut_short() -> None:
    """What comes gets offsets before the place from which the erasure held."""
    world = World({"0": 1_000})
    assert GONE not in world.plans.erased({0: 20}, {0: 30})
    world.cut_short({0: 20})

    assert GONE in world.plans.erased({0: 20}, {0: 30})
    # What the log still has is accounted for as it was, and given to no version.
    again = world.plans.rebuilding({0: 0}, {0: 20}, {0: 20}, 0)
    assert (GONE in again.erased, GONE in again.later) == (False, True)


@pytest.mark.parametrize(
    ("start", "end", "is_held"),
    [
        ({0: 15, 1: 5}, {0: 15, 1: 10}, False),  # nothing of what lies behind it
        ({0: 15, 1: 5}, {0: 15, 1: 11}, True),
        ({0: 15, 1: 5}, {0: 16, 1: 10}, True),  # both sides: no part may be counted with them
        ({0: 15}, {0: 15}, False),
    ],
)
def test_a_partition_of_which_there_is_nothing_is_on_no_side(
    start: Offsets, end: Offsets, is_held: bool
) -> None:
    """Lanes begin at other places than batches: what live counting counted is accounted so."""
    world = World({"0": 10, "1": 10})

    assert (GONE in world.plans.rebuilding(start, end, AT, 0).erased) is is_held


def drawn_range(drawing: Random) -> tuple[Offsets, Offsets]:
    """Return a range of some of three partitions."""
    own = drawing.sample(range(3), drawing.randint(1, 3))
    start = {p: drawing.randint(0, 25) for p in own}
    return start, {p: n + drawing.randint(0, 9) for p, n in start.items()}


def counted_at(counting: Counting, place: tuple[int, int]) -> set[int]:
    """Return the versions that a plan counts an event for, by its partition and offset."""
    partition, offset = place
    return {
        one.version.vid
        for one in counting.versions
        if not counting.guarded or offset >= one.version.begin.get(partition, 0)
    }


def beyond_at(horizons: Sequence[Horizons], place: tuple[int, int]) -> int:
    """Return from which age on a plan takes an event as beyond."""
    partition, offset = place
    told = beyond_from(horizons)
    return [ms for begin, ms in told if begin == {} or offset >= begin.get(partition, 0)][-1]


@pytest.mark.parametrize("seed", range(500))
def test_a_plan_of_several_ranges_counts_each_as_its_own_would(seed: int) -> None:
    """Wherever metrics and horizons begin, and whether ranges share partitions or not."""
    drawing, world = Random(seed), World()  # noqa: S311  drawn to be repeated
    for name in "abc":
        own = drawing.sample(range(3), drawing.randint(0, 3))
        world.begin(name, {p: drawing.randint(0, 30) for p in own})
    places = sorted(drawing.randint(0, 30) for _ in range(2))
    known = [
        Horizons({}, 1_000, 10, LOG),
        *(Horizons(dict.fromkeys(range(3), n), 1_000, 11 + n, LOG) for n in places),
    ]
    ranges = [drawn_range(drawing) for _ in range(drawing.randint(2, 3))]
    erased = world.plans.erased(*ranges[0])
    ranges = [one for one in ranges if world.plans.erased(*one) == erased]
    start, end = spanned(ranges)
    whole = world.plans.rebuilding(start, end, AT, 0)
    assert whole.erased == erased
    for first, last in ranges:
        own_plan = world.plans.rebuilding(*spanned([(first, last)]), AT, 0)
        assert own_plan.erased | own_plan.later <= whole.erased | whole.later
        for place in [(p, offset) for p, n in last.items() for offset in range(first[p], n)]:
            assert counted_at(whole, place) == counted_at(own_plan, place)
            told = [horizons_within(known, *one) for one in ((start, end), (first, last))]
            assert beyond_at(told[0], place) == beyond_at(told[1], place)


def test_a_batch_that_is_run_again_counts_as_before() -> None:
    """Shards that hold it and shards that lack it must end alike."""
    again = World().plans.versions_for({0: 0}, {0: 10})

    assert (again.erased, again.later) == (frozenset(), frozenset())


def test_only_another_age_that_is_beyond_needs_another_plan() -> None:
    """Once for what comes after it; who looks back finds the plan that was made before."""
    known = [
        Horizons({}, 1_000, 10, LOG),
        Horizons({0: 5}, 2_000, 10, LOG),
        Horizons({0: 9}, 2_000, 20, LOG),
    ]
    at = {"first": {0: 0}, "dedup": {0: 5}, "beyond": {0: 9}}
    ranges = {name: horizons_within(known, start, {0: start[0] + 1}) for name, start in at.items()}

    assert beyond_from(ranges["first"]) == beyond_from(ranges["dedup"]) == [({}, 10)]
    assert beyond_from(ranges["beyond"]) == [({}, 20)]
    assert beyond_from(known) == [({}, 10), ({0: 9}, 20)]


def test_a_backfill_counts_nobody_erased() -> None:
    """Neither the account nor a version of it needs to know when that was: one plan for all."""
    world = World()
    (vid,) = world.fold.activations
    before, across, behind = (
        world.plans.filling({0: start}, {0: end}, AT, [vid])
        for start, end in ((0, 10), (5, 15), (10, 20))
    )

    assert before == across == behind
    assert before.erased == {GONE, ("zeta", GONE[1])}


class TestKept:
    def test_the_plan_in_use_is_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """However many others are made before the next batch asks for it."""
        plans, made = World().plans, plans_made(monkeypatch)
        used = plans.plan_of(counting_of("used"), in_use=True)
        for n in range(3 * KEPT):
            plans.plan_of(counting_of(f"ahead {n}"))
        assert plans.plan_of(counting_of("used"), in_use=True) is used
        assert (made.count("used"), len(plans.made)) == (1, KEPT)

    def test_the_one_that_nobody_asked_for_the_longest_goes(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Not the one that was made first: that may be asked for still."""
        plans, made = World().plans, plans_made(monkeypatch)
        for n in range(KEPT):
            plans.plan_of(counting_of(f"{n}"))
        plans.plan_of(counting_of("0"))
        plans.plan_of(counting_of("another"))
        plans.plan_of(counting_of("0"))
        assert made.count("0") == 1
        plans.plan_of(counting_of("1"))
        assert made.count("1") == 2

    def test_it_is_let_go_when_another_is_in_use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One that is used no more takes the place of others for no longer than these."""
        plans, made = World().plans, plans_made(monkeypatch)
        plans.plan_of(counting_of("before"), in_use=True)
        for n in range(KEPT):
            plans.plan_of(counting_of(f"{n}"), in_use=True)
        plans.plan_of(counting_of("before"))
        assert made.count("before") == 2


def counting_of(name: str) -> Counting:
    """Return what no other name's plan counts."""
    return Counting((), False, frozenset({("acme", name)}), (Horizons({}, 1, 1),))


def plans_made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make plans without Spark; return what was made, as it comes."""
    made: list[str] = []

    def make(*_: object, erased: Erased, **__: object) -> Any:
        made.extend(name for _tenant, name in erased.subjects)
        return object()

    monkeypatch.setattr("weir_analytics.panes.plans.make_plan", make)
    return made
