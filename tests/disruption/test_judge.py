"""The judgements after a fault: each passes what is right, and fails on its own fault."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from account import LogRecord
from disruption.checkpoints import is_under_way
from disruption.judge import (
    TOLD_MS,
    Trace,
    Watch,
    age_untold,
    begun_anew,
    copied,
    given_up,
    lead_of_one,
    refused,
    stored,
    taken,
    uncounted,
    unlisted,
    untold_loss,
    where_it_stopped,
)
from disruption.mixed_recount import USES, compare_uses
from disruption.uses import KEEP_MS, unseen, uses_of
from equality import AGGREGATES, PANE_MS, SPEC
from load import GROUPS, ODD, OLD_MS, OTHER, TYPE, Load
from recount import Api, compare, panes_of

NOW_MS = 1_800_000_000_000
PANE = ("g1", NOW_MS + PANE_MS)


class TestStored:
    def test_each_acknowledged_event_once(self) -> None:
        """What was sent and not answered may count, or not."""
        assert stored([2, 0, 1], 3, 3) == []
        assert stored([0, 1, 2, 4], 3, 5) == []

    @pytest.mark.parametrize(
        ("numbers", "wrong"),
        [
            ([0, 2], (1, "does not count")),
            ([0, 1, 1, 2], (1, "counts 2 times")),
            ([0, 1, 2, 5], (5, "was not sent")),
            ([0, 1, 2, -1], (-1, "was not sent")),
            ([], (0, "does not count")),
        ],
    )
    def test_lost_double_and_invented(self, numbers: list[int], wrong: tuple[int, str]) -> None:
        """I1, I3, I2: an event that is missing, one that counts twice, one nobody sent."""
        assert wrong in stored(numbers, 3, 5)

    def test_what_the_log_has_lost_is_not_missing(self) -> None:
        """From a place on all must be there; what is there of before counts once, too."""
        assert stored([1, 3, 4], 5, 5, first=3) == []
        assert stored([1, 1, 4], 5, 5, first=3) == [
            (1, "counts 2 times"),
            (3, "does not count"),
        ]


def hole(partition: int, first: int, last: int, *shards: int) -> dict[str, Any]:
    """Return a hole as an adoption tells it."""
    count = last - first + 1
    told = {"partition": partition, "first": first, "last": last}
    return {**told, "shards": list(shards), "count": count}


class TestHoles:
    def test_what_retention_has_taken(self) -> None:
        """From where a shard stands up to what is left, and nothing where it stands there."""
        assert taken([{0: 5, 1: 7}, {0: 5, 1: 7}], {0: 9, 1: 7}) == [hole(0, 5, 8, 0, 1)]

    def test_shards_that_stand_apart_lack_different_offsets(self) -> None:
        """Each hole names who lacks it; a partition that a mark does not name stands at 0."""
        found = taken([{0: 5}, {0: 6, 1: 2}], {0: 9, 1: 2})
        assert found == [hole(0, 5, 8, 0), hole(0, 6, 8, 1), hole(1, 0, 1, 0)]

    def test_what_was_counted_of_another_log(self) -> None:
        """All of it; of a partition of which nothing was counted, nothing."""
        assert given_up([{0: 5, 1: 0}, {0: 4, 1: 0}]) == [hole(0, 0, 3, 1), hole(0, 0, 4, 0)]


COUNTED = [((2, 17), "counted")]


@pytest.mark.parametrize(
    ("found", "where"),
    [
        (Trace([]), "it is not in the log"),
        (Trace([((2, 17), "quarantined")]), "it is in the log as a refused item, at 2:17"),
        (Trace([((2, 17), "beyond_horizon")]), "it is beyond_horizon, at 2:17"),
        (
            Trace(COUNTED, ["value_invalid"] * 2, 9, 9, 9),
            "its value is quarantined for value_invalid, at 2:17",
        ),
        (Trace(COUNTED, [], 9, 8, 9), "it counts, at 2:17; Redis has 8 of 9 of its pane"),
        (Trace(COUNTED, [], 9, None, 9), "it counts, at 2:17; Redis has None of 9 of its pane"),
        (Trace(COUNTED, [], 9, 9, 8), "Redis has all of its pane; the API says 8, are 9"),
        (
            Trace([*COUNTED, ((2, 18), "duplicate")], [], 9, 9, 9),
            "it counts, at 2:17, 2:18, and its pane is whole in Redis and in the API",
        ),
    ],
    ids=["log", "refused", "disposition", "quarantine", "redis", "no redis", "api", "nowhere"],
)
def test_where_an_event_stopped(found: Trace, where: str) -> None:
    """The first place that lacks it is named, and where it is in the log."""
    assert where_it_stopped(found) == where


@pytest.mark.parametrize(
    ("at", "late"),
    [
        ([], "it was not told at all"),
        (["2027-01-15T07:59:59.500000Z", "2027-01-15T08:00:01Z"], ""),
        (["2027-01-15T08:00:00Z"], "it was told 0 ms after the loss"),
        (["2027-01-15T08:00:01.250000Z"], "it was told 1250 ms after the loss"),
    ],
)
def test_a_loss_is_told_beforehand(at: list[str], late: str) -> None:
    """D12: once is enough, and after it is too late."""
    assert untold_loss([{"at": one} for one in at], NOW_MS) == late


class TestRefused:
    PREFIX = "7-bad-"

    def judged(self, *records: LogRecord, counted: tuple[str, ...] = ()) -> list[str]:
        """Judge a log to which item 0 was acknowledged."""
        return refused(records, self.PREFIX, ["7-bad-0"], counted)

    def record(self, name: str, *, reason: bool) -> LogRecord:
        """Return the record of an item."""
        headers = {"weir-reason": b"time_invalid"} if reason else {"weir-tail": b"1"}
        return LogRecord(0, 0, NOW_MS, headers, b'{"specversion":"1.0","id": "%b"}' % name.encode())

    def test_kept_and_not_counted(self) -> None:
        """It may be there several times, since what is refused has no identity; ticks are none."""
        item = self.record("7-bad-0", reason=True)
        tick = LogRecord(0, 1, NOW_MS, {"weir-tick": b"1"}, None)
        other = self.record("7-0", reason=False)
        unknown = self.record("7-bad-1", reason=True)
        assert self.judged(item, item, tick, other, unknown, counted=("7-0",)) == []

    def test_lost_stored_as_an_event_and_counted(self) -> None:
        """I1 and I2 of what is answered 2xx only to be quarantined."""
        item, event = (self.record("7-bad-0", reason=reason) for reason in (True, False))
        assert self.judged() == ["refused item 7-bad-0 is not in the log"]
        assert self.judged(item, event) == ["refused item 7-bad-0 is in the log as an event"]
        assert self.judged(item, counted=("7-bad-0",)) == ["refused item 7-bad-0 counts"]

    def test_the_load_knows_what_was_acknowledged(self) -> None:
        """Of each batch that was answered 2xx, not of the one that was cut off."""
        load = Load("http://nowhere", "key", "7", batch=2, bad=2, acknowledged=4)
        load.batches = [(0, 2, ""), (2, 2, ""), (4, 2, "")]
        assert load.refused() == ["7-bad-0-0", "7-bad-0-1", "7-bad-2-0", "7-bad-2-1"]


class TestCopied:
    def copy(self, offset: int, *, vid: int = 7, left_out: int = 0) -> LogRecord:
        """Return the copy of a record of partition 1."""
        headers = {
            "weir-version": str(vid).encode(),
            "weir-origin": f"weir.events/id/1/{offset}".encode(),
            **({"weir-left-out": str(left_out).encode()} if left_out else {}),
        }
        return LogRecord(0, 0, NOW_MS, headers, b"{}")

    def test_one_of_each(self) -> None:
        """A copy may come again (C5); another version's and what nobody could use are not meant."""
        whole = LogRecord(0, 0, NOW_MS, {"weir-origin": b"weir.events/id/1/9"}, b"{")
        copies = [self.copy(3), self.copy(4), self.copy(3), self.copy(5, vid=8), whole]
        assert copied([(1, 3), (1, 4)], copies, 7) == []
        assert copied([(1, 3), (1, 4), (1, 5)], [*copies[:2], self.copy(3, left_out=1)], 7) == []

    def test_one_that_is_missing_and_one_too_many(self) -> None:
        """What was not copied is missing, however many others were; what is used has no copy."""
        assert copied([(1, 3), (1, 4)], [self.copy(3), self.copy(4, vid=8)], 7) == [
            "1 whose value cannot be used have no copy, such as (1, 4)"
        ]
        assert copied([(1, 3)], [self.copy(3), self.copy(4)], 7) == [
            "event (1, 4) could be used, and is quarantined"
        ]


class UsesServed(Api):
    """Serves what a version did with the events of one minute."""

    def __init__(self, **row: int | None) -> None:
        super().__init__("http://nowhere", "key")
        self.row = {"minute_ms": NOW_MS, "counted": 10, **row}

    def call(self, method: str, path: str, body: Any = None) -> Any:  # noqa: ARG002
        """Answer the only question that is asked."""
        assert path.startswith("/metrics/load/ledger")
        return {"items": [self.row]}


RIGHT = dict(zip(USES, (4, 3, 2, 1), strict=True))


class TestUses:
    def test_the_load_has_some_of_each(self) -> None:
        """Of another type, with a value that is none, too old for the metric, and the others."""
        load = Load("http://nowhere", "key", "7", batch=2, odd=1)
        items = [*load.events(0), *load._odd_items()]
        assert [item["type"] for item in items] == [TYPE, TYPE, OTHER, ODD, ODD]
        assert len({item["id"] for item in items}) == len(items)
        ages_ms = (0, 0, 0, 0, OLD_MS)
        for item, age_ms in zip(items, ages_ms, strict=True):
            item |= {"_received_ms": NOW_MS, "_time_ms": NOW_MS - age_ms}
        uses = uses_of(items)
        assert uses == {NOW_MS: Counter(dict(zip(USES, (2, 1, 1, 1), strict=True)))}
        assert unseen(uses) == []
        assert unseen(uses_of(items[:-1])) == ["pane_not_kept"]
        assert KEEP_MS < OLD_MS

    def test_equal(self) -> None:
        """A minute that the version has not counted as it came tells nothing of other types."""
        uses = {NOW_MS: Counter(RIGHT)}
        for more in ({}, {"not_matched": None}):
            assert compare_uses(UsesServed(**{**RIGHT, **more}), "load", uses).mismatches == []

    @pytest.mark.parametrize("use", USES)
    def test_one_that_is_elsewhere(self, use: str) -> None:
        """I4: each is seen to be wrong, though together they are what was counted."""
        other = USES[USES.index(use) - 1]
        row = {**RIGHT, use: RIGHT[use] + 1, other: RIGHT[other] - 1}
        found = compare_uses(UsesServed(**row), "load", {NOW_MS: Counter(RIGHT)})
        assert len(found.mismatches) == 1

    def test_what_does_not_add_up(self) -> None:
        """I4: counted = used + not matched + value quarantined + pane not kept."""
        found = compare_uses(UsesServed(**RIGHT, counted=11), "load", {NOW_MS: Counter(RIGHT)})
        assert len(found.mismatches) == 1

    def test_minutes_of_one_side_alone(self) -> None:
        """What was not sent is served, or what was sent is not."""
        served = UsesServed(**RIGHT)
        assert len(compare_uses(served, "load", {}).mismatches) == 1
        uses = {NOW_MS: Counter(RIGHT), NOW_MS + 60_000: Counter(used=1)}
        assert len(compare_uses(served, "load", uses).mismatches) == 1

    def test_minutes_of_which_the_log_lacks_a_part_are_left_out(self) -> None:
        """On both sides: from an instant on all is compared, and nothing before it."""
        uses = {NOW_MS: Counter[str](), NOW_MS - 60_000: Counter(used=1)}
        assert len(compare_uses(UsesServed(**RIGHT), "load", uses).mismatches) == 2
        found = compare_uses(UsesServed(**RIGHT), "load", uses, from_ms=NOW_MS + 60_000)
        assert (found.points, found.mismatches) == (0, [])
        later = compare_uses(UsesServed(**RIGHT), "load", uses, from_ms=NOW_MS)
        assert (later.points, len(later.mismatches)) == (1, 1)


class TestWatch:
    def test_counts_that_grow(self) -> None:
        """Up to what was sent; a pane that is not known for a while has not fallen."""
        watch = Watch()
        for found in ({PANE: 3}, {PANE: 3}, {}, {PANE: 5}):
            assert watch.take(1, found, {PANE: 5}, live=bool(found)) == []

    def test_a_pane_that_vanishes(self) -> None:
        """I12: at a takeover nothing becomes unknown; in another epoch it is counted again."""
        for epoch, live, wrong in ((1, True, 1), (1, False, 0), (2, True, 0)):
            watch = Watch()
            watch.take(1, {PANE: 3, ("g2", 0): 1}, {PANE: 5, ("g2", 0): 1})
            found = watch.take(epoch, {PANE: 3}, {PANE: 5}, live=live)
            assert found == ["1 panes are unknown that were counted: [('g2', 0)]"] * wrong

    def test_a_pane_that_fell(self) -> None:
        """I6: within an epoch, unless Redis itself was taken back."""
        for epoch, may_fall, wrong in ((1, False, 1), (2, False, 0), (1, True, 0)):
            watch = Watch()
            watch.take(1, {PANE: 3}, {PANE: 5})
            found = watch.take(epoch, {PANE: 2}, {PANE: 5}, may_fall=may_fall)
            assert found == [f"pane {PANE} fell from 3 to 2"] * wrong

    def test_what_was_unknown_for_a_while_comes_back_as_it_was(self) -> None:
        """While the numbers are not live nothing is known of a pane; once they are, all is."""
        for found, wrong in (
            ({PANE: 3}, []),
            ({}, [f"1 panes are unknown that were counted: [{PANE}]"]),
            ({PANE: 2}, [f"pane {PANE} fell from 3 to 2"]),
        ):
            watch = Watch()
            watch.take(1, {PANE: 3}, {PANE: 5})
            assert watch.take(1, {}, {PANE: 5}, live=False) == []
            assert watch.take(1, found, {PANE: 5}) == wrong

    def test_more_than_was_sent(self) -> None:
        """I6: in a pane, and in one to which nothing was sent; also where counts may fall."""
        found = Watch().take(1, {PANE: 6, ("g2", 0): 1}, {PANE: 5}, may_fall=True)
        assert found == [
            f"pane {PANE} has 6 events, 5 were sent",
            "pane ('g2', 0) has 1 events, 0 were sent",
        ]


class TestAge:
    @pytest.mark.parametrize(
        ("age_ms", "status", "since_ms"),
        [
            (TOLD_MS, "live", None),
            (TOLD_MS + 1, "behind", 1),
            (TOLD_MS + 1, "stale", 1),
            (None, "stale", 1),
            (TOLD_MS + 1, "rebuilding", None),
        ],
    )
    def test_it_is_told(self, age_ms: int | None, status: str, since_ms: int | None) -> None:
        """I10: from ten seconds on, with since when; what is counted again says that instead."""
        assert age_untold(self.fresh(age_ms, status, since_ms), NOW_MS) == []

    @pytest.mark.parametrize(
        ("age_ms", "status", "since_ms"),
        [(TOLD_MS + 1, "live", None), (None, "live", None), (TOLD_MS + 1, "stale", None)],
    )
    def test_it_is_not(self, age_ms: int | None, status: str, since_ms: int | None) -> None:
        """Old numbers that are called live, or old since nobody knows when."""
        (wrong,) = age_untold(self.fresh(age_ms, status, since_ms), NOW_MS)
        assert wrong.endswith(f"are called {status}, since None")

    def fresh(self, age_ms: int | None, status: str, since_ms: int | None) -> dict[str, Any]:
        """Return the freshness of an answer."""
        through_ms = None if age_ms is None else NOW_MS - age_ms
        return {"processed_through_ms": through_ms, "status": status, "since_ms": since_ms}


class TestErrors:
    def test_what_is_listed_or_was_there_before(self) -> None:
        """An error of before is none of this fault's."""
        before = Counter({("panes", "old"): 2})
        now = before + Counter({("panes", "verdict"): 3})
        assert unlisted(now, before, ["verdict"]) == []

    def test_what_is_not(self) -> None:
        """Also one more of those that were there before."""
        before = Counter({("panes", "old"): 2})
        now = Counter({("panes", "old"): 3, ("ingest", "traceback"): 1})
        assert unlisted(now, before, ["verdict"]) == [
            "ingest logged traceback, which this fault does not list",
            "panes logged old, which this fault does not list",
        ]


@pytest.mark.parametrize(
    ("differences", "status", "filled", "lag", "wrong"),
    [
        ([], "live", True, 0, ""),
        ([], "behind", True, 0, ""),
        (["minute 0: {}, is {'counted': 1}"], "live", True, 0, "ledger and log must agree"),
        (["minute 0: {}, is {'counted': 1}"], "stale", True, 1, "ledger and log must agree"),
        ([], "rebuilding", True, 0, "what was lost must be counted again"),
        ([], "stale", True, 0, "what was lost must be counted again"),
        ([], "live", False, 0, "what was lost must be counted again"),
        ([], "live", True, 1, "no event must wait to be counted, told are 1"),
        ([], "live", True, None, "no event must wait to be counted, told are None"),
    ],
)
def test_all_is_counted(
    differences: list[str], status: str, filled: bool, lag: int | None, wrong: str
) -> None:
    """I4 and I16: no difference in the ledger, nothing that is still counted again, no lag."""
    found = uncounted(differences, status, is_filled=filled, lag=lag)
    assert len(found) == bool(wrong)
    assert wrong in "".join(found)


def test_a_lane_that_goes_on_and_one_that_begins_anew() -> None:
    """C11: at the next slice, to its end; one that had not begun, or was done, is no matter."""
    lanes = {7: (5, 20), 8: (9, 9), 9: (0, 6)}
    assert begun_anew(lanes, {7: 15, 9: 6, 11: 4}) == []
    assert begun_anew(lanes, {7: 20}) == ["lane 7 stood at 5 of 20, and 20 were counted after that"]
    for counted in ({7: 14}, {}, {7: 15, 8: 9}):
        assert len(begun_anew(lanes, counted)) == 1


def test_what_a_dead_driver_was_at(tmp_path: Path) -> None:
    """A batch is under way from its plan on until it is noted as done; without a plan none is."""
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
    assert not is_under_way(tmp_path)
    for name, under_way in (("offsets/9", True), ("commits/9", False), ("offsets/10", True)):
        (tmp_path / name).touch()
        (tmp_path / f"{name}.crc").touch()
        assert is_under_way(tmp_path) is under_way


# Of each group n the values n and n + GROUPS; the later one came later.
WORTH: dict[str, Any] = {
    "count": lambda _: 2,
    "sum": lambda n: 2 * n + GROUPS,
    "min": lambda n: n,
    "max": lambda n: n + GROUPS,
    "avg": lambda n: n + GROUPS / 2,
    "stddev": lambda _: GROUPS / 2,
    "last": lambda n: n + GROUPS,
}


class Served(Api):
    """Serves panes of the load's metric, one aggregate of them wrong if asked to."""

    def __init__(self, wrong: str = "", by: float = 0.0, events: int = 2) -> None:
        super().__init__("http://nowhere", "key")
        self.wrong, self.by, self.events = wrong, by, events

    def call(self, method: str, path: str, body: Any = None) -> Any:  # noqa: ARG002
        """Answer a query."""
        name = body["aggregate"]
        off = self.by if name == self.wrong else 0.0
        series = [
            {
                "by": {"group": f"g{n}"},
                "value": [WORTH[name](n) + off],
                **{"low": [None], "high": [None], "state": "f"},
                "count": [self.events],
            }
            for n in range(GROUPS)
        ]
        return {"t_ms": [NOW_MS + PANE_MS], "series": series}


class TestPanes:
    def panes(self) -> Any:
        """Return the load's panes, by the recount."""
        events = [
            {
                "type": TYPE,
                "id": f"7-{n}",
                "source": "/load",
                "_time_ms": NOW_MS + n,
                "data": {"n": n, "group": f"g{n % GROUPS}"},
            }
            for n in range(2 * GROUPS)
        ]
        return panes_of(events, SPEC, PANE_MS)

    def test_equal(self) -> None:
        """Every aggregate that the load's metric has."""
        found = compare(Served(), self.panes(), SPEC, AGGREGATES, PANE_MS)
        assert found.mismatches == []
        assert found.points == GROUPS * len(AGGREGATES)

    @pytest.mark.parametrize("aggregate", AGGREGATES)
    def test_off_by_one(self, aggregate: str) -> None:
        """I5: each aggregate is seen to be wrong, in every group."""
        found = compare(Served(aggregate, by=1), self.panes(), SPEC, AGGREGATES, PANE_MS)
        assert len(found.mismatches) == GROUPS
        assert all(text.startswith(f"load {aggregate} ") for text in found.mismatches)

    def test_another_number_of_events(self) -> None:
        """The right sum of too many events is wrong all the same."""
        found = compare(Served(events=3), self.panes(), SPEC, ("sum",), PANE_MS)
        assert len(found.mismatches) == GROUPS

    def test_one_that_is_missing_and_one_too_many(self) -> None:
        """A pane that is not served, and one that nothing was sent to."""
        panes = self.panes()
        (key, pane), *rest = panes.items()
        found = compare(Served(), {(NOW_MS, ("g9",)): pane, **panes}, SPEC, ("sum",), PANE_MS)
        assert len(found.mismatches) == 1
        found = compare(Served(), dict(rest), SPEC, ("sum",), PANE_MS)
        assert len(found.mismatches) == 1
        assert str(key) in found.mismatches[0]


@pytest.mark.parametrize(
    ("batches", "lead"),
    [
        ([{"a": 10, "b": 1}, {"a": 10, "b": 1}], 0.0),
        ([{"a": 10}, {"b": 5}], 1.0),
        ([{"a": 3, "b": 2}, {"a": 1, "b": 2}], 0.25),
        ([{"a": 10}, {"a": 10}], 0.0),
    ],
    ids=["side by side", "one after the other", "a little apart", "alone"],
)
def test_how_far_one_tenant_is_ahead(batches: list[dict[str, int]], lead: float) -> None:
    """By the part of what waited for each, whatever it was."""
    assert lead_of_one(batches) == lead
