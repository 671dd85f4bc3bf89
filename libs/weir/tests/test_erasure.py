"""Who was erased: what they are known by, and where it holds."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.commit import Offsets
from weir.definitions.fold import Definitions
from weir.definitions.history import Lane
from weir.definitions.jobs import JobReport, JobState, job_named, job_record
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    NewRecord,
    activation_record,
    delete_record,
    put_record,
    start_record,
)
from weir.erasure import (
    PREFIX,
    Erasure,
    Erasures,
    ErasuresMemo,
    Subjects,
    erasures,
    pads,
    served_without,
    subject_hash,
)
from weir.lanes import next_slice
from weir.series import OTHER, encode_series

KEY = b"a key of the installation"
HASH = subject_hash(KEY, "acme", "user-17")


class TestHash:
    def test_it_is_keyed_and_told_apart_by_tenant(self) -> None:
        """Without the key nobody can try subjects; the same one elsewhere is another."""
        assert len(HASH) == 64
        assert subject_hash(b"another", "acme", "user-17") != HASH
        assert subject_hash(KEY, "zeta", "user-17") != HASH

    @given(st.binary(min_size=1, max_size=200), st.text(max_size=40))
    def test_from_hashes_alone_it_is_the_same(self, key: bytes, subject: str) -> None:
        """HMAC is two hashes over padded texts, also for keys longer than a block."""
        subject = subject.encode("utf-8", "ignore").decode()
        inner, outer = pads(key)
        message = PREFIX + b"acme\0" + subject.encode()
        first = hashlib.sha256(inner + message).digest()

        assert hashlib.sha256(outer + first).hexdigest() == subject_hash(key, "acme", subject)


def fold_with(*reports: JobReport) -> Definitions:
    """Return definitions with one erasure, at offset 1, and what a driver said of it."""
    fold = Definitions()
    records = [start_record(DriverStart("a", 1, "start"), at_ms=0)]
    text = json.dumps({"kind": "job", "name": "j", "do": {"job": "erase", "subject_hash": HASH}})
    records.append(put_record(Edit("acme", "job", "j", None, "test", 0), text))
    records += [job_record(report, fence=0) for report in reports]
    for offset, record in enumerate(records):
        fold.apply(offset, record.key, record.value)
    return fold


HELD = {"topic_id": "events", "offsets": {"0": 10, "1": 20}}


class TestErasures:
    def test_one_that_was_only_asked_for_holds_nowhere(self) -> None:
        """The driver says from where: a batch must not be counted half with and half without."""
        assert erasures(fold_with()) == []

    @pytest.mark.parametrize(
        "state", [JobState.RUNNING, JobState.DONE, JobState.CANCELLED, JobState.FAILED]
    )
    def test_one_that_holds(self, state: JobState) -> None:
        """For ever, however its job has ended."""
        (found,) = erasures(fold_with(JobReport(1, state, facts=HELD)))

        assert found == Erasure(1, "acme", HASH, {0: 10, 1: 20}, "events")

    def test_one_that_holds_cannot_be_cancelled(self) -> None:
        """A deletion that met the driver's record on its way changes nothing."""
        fold = fold_with(JobReport(1, JobState.RUNNING, facts=HELD))
        deletion = delete_record(Edit("acme", "job", "j", 1, "test", 0))
        change = fold.apply(fold.next_offset, deletion.key, deletion.value)
        found = job_named(fold, "acme", "j")

        assert change is not None
        assert change.applied
        assert found is not None
        assert (found.cancelled, found.stopping, found.state) == (True, False, JobState.RUNNING)

    def test_one_that_was_only_asked_for_can(self) -> None:
        """Nothing was left out of any batch."""
        fold = fold_with()
        deletion = delete_record(Edit("acme", "job", "j", 1, "test", 0))
        fold.apply(fold.next_offset, deletion.key, deletion.value)
        found = job_named(fold, "acme", "j")

        assert found is not None
        assert (found.stopping, found.state) == (True, JobState.CANCELLED)

    def test_one_that_failed_holds_nowhere(self) -> None:
        """As where the driver has no key to know the subject by."""
        assert erasures(fold_with(JobReport(1, JobState.FAILED))) == []

    @pytest.mark.parametrize(
        ("end", "holds"),
        [
            ({0: 5, 1: 5}, False),
            ({0: 10, 1: 20}, False),
            ({0: 11, 1: 20}, True),
            ({0: 99, 1: 5}, True),
        ],
    )
    def test_ranges(self, end: dict[int, int], holds: bool) -> None:
        """The batch that it was said with is before it; what lies on both sides is without."""
        one = Erasure(1, "acme", HASH, {0: 10, 1: 20}, "events")

        assert one.holds(end, "events") is holds
        assert one.holds(end, "another log")


class TestSlices:
    LANE = Lane(7, 1, "rebuild", "events", (), (0,), {0: 0}, {0: 100}, 0, 0)

    @given(st.integers(1, 60), st.lists(st.integers(0, 120), max_size=3))
    def test_no_slice_lies_on_both_sides_of_a_border(self, most: int, at: list[int]) -> None:
        """And together they are the lane, whole and once."""
        found = Erasures([Erasure(1, "t", "h", {0: n}, "events") for n in at], "events")
        stands: dict[int, dict[int, int]] = {0: {0: 0}}
        ends = []
        while (one := next_slice(self.LANE, stands, most, found.borders)) is not None:
            assert one.start == stands[0]
            assert one.start[0] < one.end[0] <= one.start[0] + most
            assert not any(one.start[0] < n < one.end[0] for n in at)
            stands[0] = dict(one.end)
            ends.append(one.end[0])

        assert ends[-1] == 100

    def test_borders_of_another_log_mean_nothing(self) -> None:
        """Their offsets are of that one."""
        one = Erasure(1, "t", "h", {0: 5}, "other")
        assert Erasures([one], "events").borders.places == []


places = st.dictionaries(st.integers(0, 2), st.integers(0, 9), max_size=3)


class TestWithin:
    @given(
        st.lists(
            st.builds(
                Erasure,
                st.integers(0, 9),
                st.sampled_from(["acme", "zeta"]),
                st.sampled_from("hijklmno"),
                places,
                st.sampled_from(["log", "log", "another"]),
            ),
            max_size=9,
        ),
        st.lists(places, min_size=1, max_size=4),
    )
    def test_it_is_what_each_says(self, found: list[Erasure], ends: list[dict[int, int]]) -> None:
        """Wherever each holds from, in this log or another, and whatever the order."""
        known = Erasures(found, "log")
        for end in ends:
            held = {(one.tenant, one.hash) for one in found if one.holds(end, "log")}
            assert known.within(end) == held
        assert known.subjects == {(one.tenant, one.hash) for one in found}

    def test_a_batch_asks_none_of_those_that_hold_long_since(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However many there are; and the same ones are the same object, not only equal."""
        each = [Erasure(n, "acme", f"{n}", {0: 10 * n, 1: 3 * n}, "log") for n in range(1_000)]
        known, asked = Erasures(each, "log"), list[int]()
        real = Erasure.holds

        def holds(one: Erasure, end: Offsets, topic_id: str) -> bool:
            asked.append(one.vid)
            return real(one, end, topic_id)

        monkeypatch.setattr(Erasure, "holds", holds)
        assert known.within({0: 20_000, 1: 5_000}) is known.within({0: 20_005, 1: 5_005})
        assert len(known.within({0: 5_000, 1: 1_500})) == 500
        assert len(known.within({0: 5_000, 1: 1_501})) == 501
        for n in range(100):
            assert len(known.within({0: 10 * n, 1: 3 * n})) == n
        assert asked == []


class TestMemo:
    def test_it_is_made_anew_where_one_more_holds(self) -> None:
        """Not for whatever else is written, nor when the job of one ends; of a fork as of any."""
        fold, memo = fold_with(JobReport(1, JobState.RUNNING, facts=HELD)), ErasuresMemo("events")
        known = memo.of(fold)
        assert known.subjects == {("acme", HASH)}

        for record in (
            put_record(Edit("acme", "metric", "m", None, "t", 0), "kind: metric"),
            job_record(JobReport(1, JobState.DONE, facts=HELD), fence=0),
        ):
            fold.apply(fold.next_offset, *record)
            assert memo.of(fold) is known
        assert memo.of(fold.fork()) is known

        asked = json.dumps({"do": {"job": "erase", "subject_hash": "0" * 64}})
        record = put_record(Edit("zeta", "job", "k", None, "t", 0), asked)
        change = fold.apply(fold.next_offset, *record)
        assert change is not None
        assert memo.of(fold) is known
        said = job_record(JobReport(change.offset, JobState.RUNNING, facts=HELD), fence=0)
        fold.apply(fold.next_offset, *said)
        assert memo.of(fold).subjects == {("acme", HASH), ("zeta", "0" * 64)}
        assert memo.of(fold_with()).subjects == frozenset(), "of another log of definitions"


class TestSubjects:
    SUBJECTS = Subjects("acme", frozenset({HASH, subject_hash(KEY, "acme", "a|b")}), KEY)

    @pytest.mark.parametrize(
        ("values", "named"),
        [
            (["user-17"], True),
            (["eu", None, "user-17"], True),
            (["a|b", "eu"], True),
            (["a", "b"], False),
            (["user-170", "User-17", "user-17 "], False),
            ([None], False),
            ([], False),
        ],
    )
    def test_a_series_names_them_by_a_whole_value(
        self, values: list[str | None], named: bool
    ) -> None:
        """Letter by letter, and whatever is escaped in the text."""
        assert self.SUBJECTS.are_named_by(encode_series(values)) is named

    def test_of_a_cut_text_what_is_left_is_looked_at(self) -> None:
        """What was cut off nobody can tell from the hash."""
        assert self.SUBJECTS.are_named_by(encode_series(["user-17", "x" * 300]))
        assert not self.SUBJECTS.are_named_by(encode_series(["x" * 300, "user-17"]))

    def test_half_a_character_is_nobody(self) -> None:
        """A quarantined text may hold one; an accepted subject does not."""
        assert not self.SUBJECTS.is_one("\ud800")

    def test_the_row_of_all_others_names_nobody(self) -> None:
        """Nor does a text that is no series."""
        assert not self.SUBJECTS.are_named_by(OTHER)
        assert not self.SUBJECTS.are_named_by("user-17")

    def test_the_key_is_in_no_text(self) -> None:
        """A log that tells of it does not give the key away."""
        assert "installation" not in repr(self.SUBJECTS)


class TestServedWithout:
    TEXT = "kind: metric\nname: {}\nevents: {{type: t}}"

    def fold(self, *more: NewRecord) -> Definitions:
        """Return metrics one (vid 1) and two (vid 2), both counted, and an erasure at 5."""
        fold = Definitions()
        asked = json.dumps({"do": {"job": "erase", "subject_hash": HASH}})
        records = [
            start_record(DriverStart("a", 1, "start"), at_ms=0),
            self.put("one", None),
            self.put("two", None),
            self.counted(1, "one", 1),
            self.counted(2, "two", 1),
            put_record(Edit("acme", "job", "j", None, "test", 0), asked),
            job_record(JobReport(5, JobState.RUNNING, facts=HELD), fence=0),
            *more,
        ]
        for offset, record in enumerate(records):
            assert fold.apply(offset, record.key, record.value) is not None
        return fold

    def put(self, name: str, based_on: int | None) -> NewRecord:
        """Return a version of a metric."""
        return put_record(Edit("acme", "metric", name, based_on, "t", 0), self.TEXT.format(name))

    def counted(self, vid: int, name: str, version: int, *, fills: bool = False) -> NewRecord:
        """Return what says that a version is counted; while it fills, the one before serves."""
        said = Counting(vid, "acme", name, version, {0: 0}, after=None, fills=fills)
        return activation_record(said, op="start", fence=0, at_ms=0)

    def is_due(self, *more: NewRecord) -> bool:
        """Return whether the erasure is one without which everything is served."""
        return [one.vid for one in served_without(self.fold(*more))] == [5]

    def test_it_is_due_once_every_metric_is_served_by_a_later_version(self) -> None:
        """One of them is not enough, nor one that is being filled."""
        one = self.put("one", 1), self.counted(7, "one", 2)
        assert not self.is_due()
        assert not self.is_due(*one)
        assert not self.is_due(*one, self.put("two", 1), self.counted(9, "two", 2, fills=True))
        assert self.is_due(*one, self.put("two", 1), self.counted(9, "two", 2))

    def test_what_serves_counts_and_not_what_was_written_last(self) -> None:
        """A metric that was edited once more, or that never began, holds up nobody."""
        again = self.put("one", 1), self.counted(7, "one", 2), self.put("two", 1)
        both = *again, self.counted(9, "two", 2)
        assert self.is_due(*both, self.put("two", 2))
        assert self.is_due(*both, self.put("three", None))
        assert self.is_due(*both, self.put("two", 2), self.counted(11, "two", 3, fills=True))

    def test_a_metric_that_was_deleted_is_not_served(self) -> None:
        """Nor waited for."""
        gone = delete_record(Edit("acme", "metric", "two", 1, "t", 0))
        assert self.is_due(self.put("one", 1), self.counted(7, "one", 2), gone)
