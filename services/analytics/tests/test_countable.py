"""What a batch asks of all versions is as if each were looked at; and nothing is made for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from weir.commit import Offsets
from weir.definitions import check as definition_check
from weir.definitions import history
from weir.definitions.fold import Definitions
from weir.definitions.history import Activation, Definition, Horizons
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import (
    DriverStart,
    Edit,
    NewRecord,
    OpenLane,
    activation_record,
    aside_record,
    delete_record,
    lane_record,
    put_record,
    start_record,
    takeover_record,
)
from weir.definitions.serving import life_of, serving
from weir.erasure import erasures, serving_now
from weir.lanes import counted_lanes, needs
from weir_analytics.panes.activation import (
    counting,
    is_over,
    lanes_to_open,
    left_over,
    predecessor,
    shown_from,
    takeover,
    to_stop,
    version_of,
)
from weir_analytics.panes.countable import Countable
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.plans import Counting, Plans
from weir_analytics.panes.versions import Version

LOG = "log"
TEXT = "kind: metric\nname: {}\nevents: {{type: t}}\nkeep: {{10s: 1h, 1m: 1d}}"
UNREADABLE = "kind: metric\nof: a later release\n"
NAMES = ("a", "b")
TENANTS = ("acme", "zeta")
THROUGH_S = (0, 4_000, 10**9)
USUAL = Horizons({}, 3_600_000, 1_000)


# ── the slow way: each version is made for each question ────────────────────


def slow_followed(fold: Definitions) -> dict[int, Activation]:
    """Return by version the one that has taken over from it."""
    activations = fold.activations.values()
    return {one.after: one for one in activations if one.after is not None and one.serves}


def slow_not_over(
    fold: Definitions, log: str, through_s: int, start: Offsets | None
) -> Iterator[tuple[Activation, Counted]]:
    """Yield the versions that have panes which may change or be read, in order."""
    followed = slow_followed(fold)
    for vid, one in sorted(fold.activations.items()):
        definition = fold.by_vid(vid)
        if definition is None or definition.metric is None:
            continue
        version = version_of(one, definition.metric, log, followed.get(vid))
        if start is not None:
            version = version.at(start)
        if not (version.cut_until and is_over(version, through_s)):
            yield one, Counted(version, definition.metric)


def slow_counted(fold: Definitions, log: str, through_s: int, start: Offsets) -> list[Counted]:
    """Return the versions that may count something in some range of the log."""
    return [
        counted
        for one, counted in slow_not_over(fold, log, through_s, start)
        if one.finish is None or one.is_of(log)
        if not fold.is_left_out(one.vid)
    ]


def slow_filling(fold: Definitions, log: str, vids: Iterable[int], at: Offsets) -> list[Counted]:
    """Return versions as a backfill counts them."""
    followed, found = slow_followed(fold), list[Counted]()
    for vid in vids:
        definition = fold.by_vid(vid)
        if definition is not None and definition.metric is not None:
            one = version_of(fold.activations[vid], definition.metric, log, followed.get(vid))
            found.append(Counted(one.at(at).within, definition.metric))
    return found


def slow_ended(fold: Definitions, log: str, through_s: int) -> list[int]:
    """Return the versions that will never count an event again."""
    on = set()
    for one, _ in slow_not_over(fold, log, through_s, None):
        is_read = one.serves and one.vid in life_of(fold, one.tenant, one.name)
        if one.finish is None or (fold.is_left_out(one.vid) and is_read):
            on.add(one.vid)
    known = (fold.by_vid(vid) for vid in fold.activations)
    return sorted(one.vid for one in known if one and one.metric and one.vid not in on)


def slow_shown_from(fold: Definitions, log: str) -> dict[int, Offsets | None]:
    """Return by version from which offsets on readers look at it."""
    found: dict[int, Offsets | None] = {}
    for vid, one in fold.activations.items():
        is_shown = one.serves and vid in life_of(fold, one.tenant, one.name)
        taken = one.takeover
        here = taken is not None and taken.topic_id in ("", log)
        found[vid] = (taken.offsets if taken is not None and here else {}) if is_shown else None
    return found


def slow_predecessor(fold: Definitions, definition: Definition) -> Definition | None:
    """Return the version that serves until another one does."""
    life = life_of(fold, definition.tenant, definition.name)
    found = [
        life[vid]
        for vid, one in sorted(fold.activations.items())
        if vid in life and vid < definition.vid and one.serves
        if one.finish is None or fold.is_left_out(vid)
        if life[vid].metric is not None
    ]
    return found[-1] if found else None


def slow_useless(fold: Definitions) -> list[int]:
    """Return the versions still counted that have no use any more."""
    found = []
    for vid, one in sorted(fold.activations.items()):
        definition = fold.by_vid(vid)
        if one.finish is not None or definition is None or definition.metric is None:
            continue
        tenant, name = definition.tenant, definition.name
        current = fold.get(tenant, "metric", name)
        is_newest = current is not None and current.vid == vid
        if vid not in life_of(fold, tenant, name) or (not one.serves and not is_newest):
            found.append(vid)
    return found


def slow_serving_now(fold: Definitions, tenant: str) -> dict[str, int]:
    """Return the vid of the newest version that serves, by metric."""
    names = {one.name for one in fold.activations.values() if one.tenant == tenant}
    chains = ((name, serving(fold, tenant, name)) for name in sorted(names))
    return {name: chain[0].vid for name, chain in chains if chain}


# ── drawn histories ─────────────────────────────────────────────────────────


class History:
    """What two tenants write and a driver says of it, batch after batch, in some order."""

    def __init__(self, seed: int) -> None:
        self.drawing = Random(seed)  # noqa: S311  drawn to be repeated
        self.fold = Definitions()
        self.log = LOG
        self.end = {0: 0, 1: 0}
        self.through_s = 0
        self.places = [dict(self.end)]
        self.fence = self.add(start_record(DriverStart("a", 1, "start"), at_ms=0))

    def add(self, record: NewRecord) -> int:
        """Append a record."""
        change = self.fold.apply(self.fold.next_offset, *record)
        assert change is not None
        assert change.applied, change.note
        return change.offset

    def step(self) -> None:
        """Do what comes next."""
        steps = (
            *(self.batch, self.edit, self.begin, self.take_over, self.fill) * 3,
            *(self.stop, self.end_some, self.erase) * 2,
            *(self.delete, self.leave_out, self.allow, self.go_back, self.adopt),
        )
        self.drawing.choice(steps)()

    def batch(self) -> None:
        """Count some records; once in a while of a partition that was added."""
        if self.drawing.random() < 0.05:
            self.end[len(self.end)] = 0
        for partition in self.end:
            self.end[partition] += self.drawing.randint(0, 9)
        self.through_s += self.drawing.randint(0, 500)
        self.places.append(dict(self.end))

    def go_back(self) -> None:
        """Begin again at an earlier place, as where a checkpoint is lost."""
        if self.drawing.random() < 0.5:
            self.end = dict(self.drawing.choice(self.places))
            self.fence = self.add(start_record(DriverStart("b", 1, "rewind"), at_ms=0))

    def adopt(self) -> None:
        """Give up the log for another one."""
        if self.drawing.random() < 0.3:
            self.log += "'"
            self.end = {0: 0, 1: 0}

    def edit(self) -> int:
        """Write a version, now and then one that only a later release can read."""
        tenant, name = self.drawing.choice(TENANTS), self.drawing.choice(NAMES)
        text = UNREADABLE if self.drawing.random() < 0.1 else TEXT.format(name)
        number = self.fold.version(tenant, "metric", name)
        return self.add(put_record(Edit(tenant, "metric", name, number, "test", 0), text))

    def delete(self) -> None:
        """Delete a metric."""
        tenant, name = self.drawing.choice(TENANTS), self.drawing.choice(NAMES)
        if self.fold.get(tenant, "metric", name) is not None:
            number = self.fold.version(tenant, "metric", name)
            self.add(delete_record(Edit(tenant, "metric", name, number, "test", 0)))

    def begin(self) -> None:
        """Count what waits for it from where the last batch ended."""
        for one in self.fold.metrics_to_start():
            after = predecessor(self.fold, one)
            fills = self.drawing.random() < 0.8
            said = counting(one, self.end, self.log, after=after, fills=fills)
            self.add(activation_record(said, op="start", fence=self.fence, at_ms=0))

    def fill(self) -> None:
        """Open the lanes that are wanted."""
        for begin, vids in lanes_to_open(self.fold, self.log):
            lane = OpenLane("backfill", self.log, dict.fromkeys(begin, 0), begin, vids)
            self.add(lane_record(lane, fence=self.fence, at_ms=0))

    def take_over(self) -> None:
        """Let some versions serve."""
        for one in self.fold.metrics_active():
            if not one.activation.serves and self.drawing.random() < 0.5:
                complete_ms = self.drawing.choice((0, 1_000 * self.drawing.randint(0, 4_000)))
                vid = one.definition.vid
                taken = takeover(self.fold, vid, self.end, complete_ms, self.log)
                assert taken is not None
                self.add(takeover_record(taken, fence=self.fence, at_ms=0))

    def stop(self) -> None:
        """Stop what has no use any more."""
        self._stopped(to_stop(self.fold))

    def end_some(self) -> None:
        """Stop predecessors that are over."""
        over = (one.vid for one in left_over(self.fold, self.log) if is_over(one, self.through_s))
        self._stopped([one for vid in over if (one := self.fold.by_vid(vid)) is not None])

    def leave_out(self) -> None:
        """Count a version no further since no plan can be made of it."""
        if active := self.fold.metrics_active():
            one = self.drawing.choice(active).definition
            self.add(aside_record(one.vid, "no plan", fence=self.fence, at_ms=0))
            if self.drawing.random() < 0.9:
                self._stopped([one])

    def allow(self) -> None:
        """Say of one that was set aside that it may be counted."""
        aside = [vid for vid in self.fold.activations if self.fold.set_aside(vid) is not None]
        if aside:
            vid = self.drawing.choice(aside)
            self.add(aside_record(vid, None, fence=self.fence, at_ms=0))

    def erase(self) -> None:
        """Let an erasure hold, and count the tenant's metrics anew for it."""
        tenant, name = self.drawing.choice(TENANTS), f"e{self.fold.next_offset}"
        do = json.dumps({"do": {"job": "erase", "subject_hash": f"{self.fold.next_offset:064}"}})
        vid = self.add(put_record(Edit(tenant, "job", name, None, "x", 0), do))
        facts = {"topic_id": self.log, "offsets": {str(p): n for p, n in self.end.items()}}
        report = JobReport(vid, JobState.RUNNING, facts=facts)
        self.add(job_record(report, fence=self.fence))
        for one in self.fold.current(tenant, "metric"):
            if self.fold.version(*one.place) == one.version and self.drawing.random() < 0.8:
                edit = Edit(tenant, "metric", one.name, one.version, f"job:{name}", 0)
                self.add(put_record(edit, one.text))

    def _stopped(self, versions: Iterable[Definition]) -> None:
        for one in versions:
            said = counting(one, self.end, self.log)
            self.add(activation_record(said, op="stop", fence=self.fence, at_ms=0))

    def range(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return some range of the log: of a batch, of one that is run again, or of a lane."""
        start = dict(self.drawing.choice((self.places[-1], *self.places[-3:], *self.places)))
        if self.drawing.random() < 0.3:
            start = {p: n for p, n in start.items() if self.drawing.random() < 0.7}
        ends = (start | self.end).items()
        return start, {p: start.get(p, 0) + self.drawing.randint(0, 9) for p, _ in ends}


def covering(found: Iterable[Counted], start: Offsets, end: Offsets) -> list[Version]:
    """Return the versions of which a range may hold something."""
    return [one.version for one in found if one.version.covers(start, end) is not False]


def told(counting: Counting) -> tuple[list[Version], bool]:
    """Return what of a plan goes by the versions."""
    return [one.version for one in counting.versions], counting.guarded


def slow_within(
    fold: Definitions, known: Iterable[Version], start: Offsets, end: Offsets
) -> tuple[object, bool]:
    """Return the same of a range by all versions that there are."""
    covered = [(one, one.covers(start, end)) for one in known]
    found = [slow_gapped(fold, one) for one, how in covered if how is not False]
    guarded = any(how is None for _one, how in covered)
    return (found if guarded else [one.within for one in found]), guarded


def slow_gapped(fold: Definitions, one: Version) -> Version:
    """Return a version, and whether rows are taken out of its panes."""
    later = [e.vid for e in erasures(fold) if e.tenant == one.tenant and e.vid > one.vid]
    return replace(one, gapped=bool(one.cut_until and later))


def check_batches(drawn: History, plans: Plans) -> None:
    """Compare what ranges are counted for."""
    fold, log, at = drawn.fold, drawn.log, drawn.end
    for _ in range(4):
        start, end = drawn.range()
        slow = slow_counted(fold, log, 0, start)
        assert told(plans.versions_for(start, end)) == slow_within(
            fold, (one.version for one in slow), start, end
        )
        through_s = drawn.drawing.choice(THROUGH_S)
        found = Countable(fold, log).counted(through_s, start)
        slow = slow_counted(fold, log, through_s, start)
        assert covering(found, start, end) == covering(slow, start, end)
        again = [
            one.version
            for one in slow_counted(fold, log, through_s, at)
            if one.version.finish is None
        ]
        assert told(plans.rebuilding(start, end, at, through_s)) == slow_within(
            fold, again, start, end
        )
    vids = sorted(fold.activations)
    filled = [slow_gapped(fold, one.version) for one in slow_filling(fold, log, vids, at)]
    assert [one.version for one in plans.filling({}, at, at, vids).versions] == filled


def check_definitions(drawn: History) -> None:
    """Compare what is asked of the definitions once a record."""
    fold, log = drawn.fold, drawn.log
    for through_s in (drawn.through_s, *THROUGH_S):
        countable = Countable(fold, log)
        ended = [vid for vid in countable.ended(through_s) if countable.is_readable(vid)]
        assert ended == slow_ended(fold, log, through_s)
    shown = {vid: shown_from(fold, log, vid) for vid in fold.activations}
    assert shown == slow_shown_from(fold, log)
    assert [one.vid for one in to_stop(fold)] == slow_useless(fold)
    followed = slow_followed(fold)
    on = [vid for vid, one in sorted(fold.activations.items()) if one.finish is None]
    readable = [vid for vid in on if (one := fold.by_vid(vid)) is not None and one.metric]
    assert [one.vid for one in left_over(fold, log)] == [vid for vid in readable if vid in followed]
    for vid in fold.activations:
        one = fold.by_vid(vid)
        assert one is not None
        assert predecessor(fold, one) == slow_predecessor(fold, one)
    for tenant in TENANTS:
        assert serving_now(fold, tenant) == slow_serving_now(fold, tenant)
    # A lane is of the first need of any of its versions; here each has its own.
    for lane in counted_lanes(fold, log):
        (need,) = needs(fold, [lane]).values()
        assert (need.name == "LEFT_OVER") <= any(vid in followed for vid in lane.vids)


@pytest.mark.parametrize("seed", range(60))
def test_a_range_is_counted_for_what_each_version_says(seed: int) -> None:
    """Edits, deletions, takeovers, erasures, faults, rollbacks and other logs, in any order."""
    drawn = History(seed)
    plans = {drawn.log: Plans(drawn.fold, drawn.log, USUAL, lambda _: None, hash_key=b"k")}
    for _ in range(40):
        drawn.step()
        if drawn.log not in plans:
            plans[drawn.log] = Plans(drawn.fold, drawn.log, USUAL, lambda _: None, hash_key=b"k")
        check_batches(drawn, plans[drawn.log])
    check_definitions(drawn)


# ── what it costs ───────────────────────────────────────────────────────────


class Years:
    """A metric that was edited many times; each version took over and was stopped."""

    def __init__(self, past: int) -> None:
        self.fold = Definitions()
        self.records: list[NewRecord] = []
        self.fence = self._add(start_record(DriverStart("a", 1, "start"), at_ms=0))
        self.at = 0
        self.vid = self._version()
        for _ in range(past):
            before, self.vid = self.vid, self._version()
            said = counting(self.definition(before), {0: self.at}, LOG)
            self._add(activation_record(said, op="stop", fence=self.fence, at_ms=0))

    def _version(self) -> int:
        number = self.fold.version("acme", "metric", "m")
        edit = Edit("acme", "metric", "m", number, "test", 0)
        text = f"{TEXT.format('m')}\ndescription: as of {self.at}"
        vid = self._add(put_record(edit, text))
        self.at += 10
        said = counting(self.definition(vid), {0: self.at}, LOG, fills=True)
        self._add(activation_record(said, op="start", fence=self.fence, at_ms=0))
        taken = takeover(self.fold, vid, {0: self.at}, 0, LOG)
        assert taken is not None
        self._add(takeover_record(taken, fence=self.fence, at_ms=0))
        return vid

    def read_again(self) -> Definitions:
        """Return the fold of a driver that starts."""
        fold = Definitions()
        for record in self.records:
            fold.apply(fold.next_offset, *record)
        return fold

    def write(self) -> None:
        """Write something that has nothing to do with it."""
        number = self.fold.version("zeta", "metric", "x")
        self._add(put_record(Edit("zeta", "metric", "x", number, "t", 0), TEXT.format("x")))

    def definition(self, vid: int) -> Definition:
        """Return a version."""
        found = self.fold.by_vid(vid)
        assert found is not None
        return found

    def _add(self, record: NewRecord) -> int:
        self.records.append(record)
        change = self.fold.apply(self.fold.next_offset, *record)
        assert change is not None
        assert change.applied, change.note
        return change.offset


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Take note of each version that is made."""
    found: list[int] = []
    real = Version.__init__

    def init(self: Version, *args: object, **members: object) -> None:
        real(self, *args, **members)  # type: ignore[arg-type]
        found.append(self.vid)

    monkeypatch.setattr(Version, "__init__", init)
    return found


@pytest.mark.parametrize("past", [3, 300])
def test_a_batch_makes_nothing_where_nothing_was_written(past: int, made: list[int]) -> None:
    """However many versions there were; after a record only what is counted still is made."""
    years = Years(past)
    plans = Plans(years.fold, LOG, USUAL, lambda _: None)
    start, end = {0: years.at}, {0: years.at + 5}
    made.clear()
    first = plans.versions_for(start, end)
    assert set(made) == {years.vid}
    made.clear()
    assert plans.versions_for(end, {0: years.at + 9}).versions == first.versions
    plans.rebuilding({0: 3}, {0: 9}, end, 0)
    plans.filling({}, start, end, [years.vid])
    assert made == []
    years.write()
    assert plans.versions_for(start, end) == first
    assert made == [years.vid] * 3, "without its place in the log, with it, and within its span"


def test_a_driver_that_starts_reads_the_texts_of_what_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A text takes milliseconds: those of all versions that ever were would be minutes."""
    read, real = list[str](), definition_check.check

    def check(kind: str, name: str, text: str, **how: Any) -> Any:
        read.append(text)
        return real(kind, name, text, **how)

    years = Years(50)
    fold = years.read_again()
    history._model_of.cache_clear()
    monkeypatch.setattr(history, "check", check)
    Plans(fold, LOG, USUAL, lambda _: None).versions_for({0: years.at}, {0: years.at + 5})
    assert len(Countable(fold, LOG).ended(0)) == 50
    assert [shown_from(fold, LOG, vid) for vid in fold.activations]
    assert read == [years.definition(years.vid).text]


def test_a_batch_of_before_makes_those_that_stopped_since(made: list[int]) -> None:
    """And not those that had stopped by then."""
    years = Years(100)
    plans = Plans(years.fold, LOG, USUAL, lambda _: None)
    made.clear()
    found = plans.versions_for({0: years.at - 25}, {0: years.at - 20})
    assert {one.version.vid for one in found.versions} < set(made)
    assert len(set(made)) == 4


def test_what_readers_see_is_asked_of_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a thousand versions would look at all of them, in a batch of all tenants."""
    years, looked = Years(300), list[str]()
    real = Definitions.history

    def history_of(fold: Definitions, tenant: str, kind: str, name: str) -> list[Definition]:
        looked.append(name)
        return real(fold, tenant, kind, name)

    monkeypatch.setattr(Definitions, "history", history_of)
    assert all(shown_from(years.fold, LOG, vid) for vid in years.fold.activations)
    assert to_stop(years.fold) == []
    assert looked == []
