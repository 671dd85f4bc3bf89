"""Who was erased: what they are known by, and where it holds."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.definitions.fold import Definitions
from weir.definitions.history import Lane
from weir.definitions.jobs import JobReport, JobState, job_named, job_record
from weir.definitions.records import DriverStart, Edit, delete_record, put_record, start_record
from weir.erasure import PREFIX, Erasure, Subjects, borders, erasures, pads, subject_hash
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
        places = borders([Erasure(1, "t", "h", {0: n}, "events") for n in at], "events")
        stands: dict[int, dict[int, int]] = {0: {0: 0}}
        ends = []
        while (found := next_slice(self.LANE, stands, most, places)) is not None:
            assert found.start == stands[0]
            assert found.start[0] < found.end[0] <= found.start[0] + most
            assert not any(found.start[0] < n < found.end[0] for n in at)
            stands[0] = dict(found.end)
            ends.append(found.end[0])

        assert ends[-1] == 100

    def test_borders_of_another_log_mean_nothing(self) -> None:
        """Their offsets are of that one."""
        assert borders([Erasure(1, "t", "h", {0: 5}, "other")], "events") == []


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

    def test_the_row_of_all_others_names_nobody(self) -> None:
        """Nor does a text that is no series."""
        assert not self.SUBJECTS.are_named_by(OTHER)
        assert not self.SUBJECTS.are_named_by("user-17")

    def test_the_key_is_in_no_text(self) -> None:
        """A log that tells of it does not give the key away."""
        assert "installation" not in repr(self.SUBJECTS)
