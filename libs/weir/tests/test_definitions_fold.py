"""The fold of `weir.definitions`: races, fences, activations, junk, and formats of old."""

from __future__ import annotations

import json
from pathlib import Path as FilePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.definitions.fold import READERS, Definitions
from weir.definitions.history import Definition, Start
from weir.definitions.outcomes import Change, Outcome
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
from weir.formats import NewerFormatError

TEXT = "kind: metric\nname: m\nevents: {type: t}"
DRIVER = DriverStart(instance="a", shards=2, reason="start")


class Log:
    """A topic with one partition, folded as it is written."""

    def __init__(self) -> None:
        self.records: list[tuple[int, NewRecord]] = []
        self.state = Definitions()

    def add(self, record: NewRecord) -> Change:
        """Append a record and return what became of it."""
        offset = len(self.records) * 2 + 3  # real offsets have gaps
        self.records.append((offset, record))
        change = self.state.apply(offset, *record)
        assert change is not None
        return change

    def put(self, based_on: int | None, text: str = TEXT, name: str = "m") -> Change:
        """Append a change of a metric."""
        named = text.replace("name: m", f"name: {name}", 1)
        return self.add(put_record(edit(based_on, name), named))

    def start(self, **changed: Any) -> int:
        """Append a driver's start and return its fence."""
        start = DriverStart(**{"instance": "a", "shards": 2, "reason": "start", **changed})
        return self.add(start_record(start, at_ms=1)).offset


def edit(based_on: int | None, name: str = "m") -> Edit:
    """Return an edit of a metric of tenant `acme`."""
    return Edit("acme", "metric", name, based_on, by="key:a1b2c3d4", at_ms=7)


def counting(vid: int, **changed: Any) -> Counting:
    """Return the activation of a version of metric `m`."""
    fields = {"tenant": "acme", "name": "m", "version": 1, "offsets": {0: 5, 1: 9}}
    return Counting(vid, **{**fields, **changed})


class TestChanges:
    def test_first_version(self) -> None:
        """What is written is found by name and by its offset, and its model is typed."""
        log = Log()
        change = log.put(None)
        assert change.applied
        found = log.state.get("acme", "metric", "m")
        assert change.versions == (found,)
        assert found == log.state.by_vid(change.offset)
        assert isinstance(found, Definition)
        assert (found.version, found.vid, found.by) == (1, change.offset, "key:a1b2c3d4")
        assert found.metric is not None
        assert log.state.get("other", "metric", "m") is None

    def test_of_two_writers_one_wins(self) -> None:
        """Two changes made from one version: the first counts, the second learns it lost."""
        log = Log()
        log.put(None)
        assert log.put(1, TEXT + "\nunit: ms").applied
        lost = log.put(1, TEXT + "\nunit: s")
        assert (lost.outcome, lost.note) == (Outcome.CONFLICT, "the current version is 2")
        assert [d.version for d in log.state.history("acme", "metric", "m")] == [2, 1]
        assert "unit: ms" in log.state.history("acme", "metric", "m")[0].text

    def test_a_change_of_nothing_or_of_the_future_is_a_conflict(self) -> None:
        """A change made from a version that is not there yet is ignored."""
        log = Log()
        assert log.put(3).outcome is Outcome.CONFLICT
        log.put(None)
        assert log.put(2).outcome is Outcome.CONFLICT
        assert log.put(None).outcome is Outcome.CONFLICT

    def test_the_base_decides_and_not_the_number(self) -> None:
        """A writer that counts right but started from an older version loses."""
        log = Log()
        log.put(None)
        log.put(1)
        late = put_record(edit(1), TEXT)
        value = json.loads(late.value) | {"version": 3}
        change = log.add(NewRecord(late.key, json.dumps(value).encode()))
        assert change.outcome is Outcome.CONFLICT

    def test_zero_and_null_both_mean_there_was_none(self) -> None:
        """A writer that says 0 for "no version" creates as one that says null."""
        record = put_record(edit(None), TEXT)
        value = json.loads(record.value) | {"based_on": 0}
        assert Definitions().apply(0, record.key, value).applied  # type: ignore[union-attr]

    def test_delete_and_create_again(self) -> None:
        """A deleted definition is gone but its history stays, and numbers go on."""
        log = Log()
        log.put(None)
        assert log.add(delete_record(edit(1))).applied
        assert log.state.get("acme", "metric", "m") is None
        assert log.state.version("acme", "metric", "m") == 2
        assert log.state.current() == []
        assert log.put(None).outcome is Outcome.CONFLICT
        assert log.put(2).applied
        assert [d.op for d in log.state.history("acme", "metric", "m")] == ["put", "delete", "put"]

    def test_current_by_tenant_and_kind(self) -> None:
        """Lists are sorted, and narrowed by tenant and kind."""
        log = Log()
        log.put(None, name="b")
        log.put(None, name="a")
        log.add(put_record(Edit("zeta", "board", "x", None, "u", 1), "kind: board\nname: x"))
        assert [d.name for d in log.state.current("acme", "metric")] == ["a", "b"]
        assert [d.name for d in log.state.current(kind="board")] == ["x"]
        assert len(log.state.current()) == 3

    def test_what_is_deleted(self) -> None:
        """The deletion that stands, of one tenant and kind; none of what was made again."""
        log = Log()
        for name in ("b", "a", "kept", "again"):
            log.put(None, name=name)
        for name in ("again", "b", "a"):
            log.add(delete_record(edit(1, name)))
        log.put(2, name="again")
        assert [(d.name, d.version) for d in log.state.deleted("acme", "metric")] == [
            ("a", 2),
            ("b", 2),
        ]
        assert log.state.deleted("acme", "board") == []
        assert log.state.deleted("zeta", "metric") == []


class TestDrivers:
    def test_fence_and_epoch(self) -> None:
        """A start without an epoch begins one at its own offset; the next may go on with it."""
        log = Log()
        assert (log.state.fence(), log.state.epoch(), log.state.start()) == (None, None, None)
        first = log.start()
        assert (log.state.fence(), log.state.epoch()) == (first, first)
        second = log.start(epoch=first, instance="b", incomplete_before_ms=9)
        assert (log.state.fence(), log.state.epoch()) == (second, first)
        start = log.state.start()
        assert isinstance(start, Start)
        assert (start.instance, start.shards, start.incomplete_before_ms) == ("b", 2, 9)

    @pytest.mark.parametrize("events_id", [None, "q4Z0"])
    def test_a_start_may_say_which_log_is_counted(self, events_id: str | None) -> None:
        """An older release says nothing."""
        log = Log()
        log.start(events_id=events_id)
        start = log.state.start()
        assert start is not None
        assert start.events_id == events_id

    @pytest.mark.parametrize("tenant_bytes", [None, 0, 7])
    def test_a_start_may_say_what_a_tenant_may_have(self, tenant_bytes: int | None) -> None:
        """Nothing at all is something else than nothing said."""
        log = Log()
        log.start(tenant_bytes=tenant_bytes)
        start = log.state.start()
        assert start is not None
        assert start.tenant_bytes == tenant_bytes

    def test_jobs_have_fences_of_their_own(self) -> None:
        """The start of another job fences nobody of this one."""
        log = Log()
        fence = log.start()
        log.add(start_record(DRIVER, at_ms=1, job="alerts"))
        assert log.state.fence("panes") == fence
        assert log.state.fence("alerts") != fence

    def test_activation_and_stop(self) -> None:
        """A version is active from its activation to its stop, with both offsets kept."""
        log = Log()
        vid, fence = log.put(None).offset, log.start()
        assert [d.vid for d in log.state.metrics_to_start()] == [vid]
        begun = counting(vid, from_start=True)
        assert log.add(activation_record(begun, op="start", fence=fence, at_ms=1)).applied
        (active,) = log.state.metrics_active()
        assert (active.definition.vid, active.metric.name) == (vid, "m")
        assert active.activation.begin == {0: 5, 1: 9}
        assert active.activation.from_start
        assert log.state.metrics_to_start() == []

        ended = counting(vid, offsets={0: 20})
        log.add(activation_record(ended, op="stop", fence=fence, at_ms=1))
        assert log.state.metrics_active() == []
        activation = log.state.activations[vid]
        assert (activation.begin, activation.finish) == ({0: 5, 1: 9}, {0: 20})

    def test_successor_with_cut(self) -> None:
        """An edit is activated after its predecessor, whose panes before the cut stay its own."""
        log = Log()
        old, fence = log.put(None).offset, log.start()
        log.add(activation_record(counting(old), op="start", fence=fence, at_ms=1))
        new = log.put(1, TEXT + "\nunit: ms").offset
        assert [one.vid for one in log.state.metrics_to_start()] == [new]
        after = counting(new, version=2, after=old, cut={10: 1_700, 60: 1_740})
        change = log.add(activation_record(after, op="start", fence=fence, at_ms=1))
        assert change.activation is not None
        assert (change.activation.after, change.activation.cut) == (old, {10: 1_700, 60: 1_740})
        assert [one.definition.vid for one in log.state.metrics_active()] == [old, new]

    def test_a_fenced_driver_changes_nothing(self) -> None:
        """After a later start an activation with the old fence is ignored, and says so."""
        log = Log()
        vid, stale = log.put(None).offset, log.start()
        fence = log.start()
        change = log.add(activation_record(counting(vid), op="start", fence=stale, at_ms=1))
        assert (change.outcome, change.note) == (Outcome.FENCED, f"the fence is {fence}")
        assert not log.state.activations

    def test_no_fence_at_all(self) -> None:
        """An activation before any start is ignored."""
        change = Log().add(activation_record(counting(1), op="start", fence=0, at_ms=1))
        assert change.outcome is Outcome.FENCED


class TestWhatCannotBeRead:
    @pytest.mark.parametrize(
        ("key", "value", "outcome"),
        [
            (b"acme/metric/m", None, Outcome.UNREADABLE),
            (b"acme/metric/m", b"not json", Outcome.UNREADABLE),
            (b"acme/metric/m", b"[]", Outcome.UNREADABLE),
            (b"acme/metric/m", b'{"v":1}', Outcome.UNREADABLE),
            (b"\xff", b'{"v":1}', Outcome.UNREADABLE),
            (b"acme/metric/m", b"[" * 100_000, Outcome.UNREADABLE),
            (b"acme/metric/m", b'{"v":99}', Outcome.UNKNOWN),
            (b"acme/metric/m", b'{"v":[]}', Outcome.UNREADABLE),
            (b"_/start", b'{"v":1,"record":"start"}', Outcome.UNREADABLE),
            (b"_/x", b'{"v":1,"record":"x","job":"panes","fence":3}', Outcome.UNKNOWN),
        ],
    )
    def test_is_passed_over(self, key: bytes, value: bytes | None, outcome: Outcome) -> None:
        """Junk and later formats are told, not raised, and the fold goes on."""
        log = Log()
        log.start()
        change = log.state.apply(100, key, value)
        assert change is not None
        assert change.outcome is outcome
        record = put_record(edit(None), TEXT)
        assert log.state.apply(101, *record).applied  # type: ignore[union-attr]
        assert log.state.newer.why is None

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            (b"acme/metric/m", {"tenant": "acme", "kind": "metric", "name": "m"}),
            (b"_/start", {"record": "start"}),
            (b"_/later", {"record": "later"}),
        ],
    )
    def test_a_record_of_ours_that_is_newer(self, key: bytes, value: dict[str, str]) -> None:
        """It names its own place, as in every version; what comes after does not undo it."""
        state = Definitions()
        change = state.apply(7, key, json.dumps({**value, "v": 3}).encode())
        assert state.apply(8, *put_record(edit(None), TEXT)).applied  # type: ignore[union-attr]

        assert change is not None
        assert (change.outcome, change.note) == (Outcome.UNKNOWN, "format version 3")
        with pytest.raises(NewerFormatError, match=r"^record 7 of weir\.definitions must be of"):
            state.newer.check()

    @pytest.mark.parametrize("key", [b"acme/metric/m", b"_/start"])
    def test_nobody_elses_record_is_newer(self, key: bytes) -> None:
        """Anybody may write to the topic: what does not name its place is junk of any version."""
        state = Definitions()
        for offset, value in enumerate((b'{"v":3}', b'{"v":3,"record":"lane","name":"m"}')):
            state.apply(offset, key, value)

        assert state.newer.why is None

    def test_key_must_fit_the_value(self) -> None:
        """A record under another key than it names is no record of ours."""
        record = put_record(edit(None), TEXT)
        change = Definitions().apply(0, b"acme/metric/other", record.value)
        assert change is not None
        assert change.outcome is Outcome.UNREADABLE

    @given(st.binary(max_size=40), st.binary(max_size=80))
    def test_any_bytes(self, key: bytes, value: bytes) -> None:
        """No bytes make the fold raise."""
        change = Definitions().apply(0, key, value)
        assert change is not None
        assert not change.applied

    def test_reading_again_changes_nothing(self) -> None:
        """A record that was folded before is passed over without a word."""
        log = Log()
        log.put(None)
        log.start()
        for offset, record in log.records:
            assert log.state.apply(offset, *record) is None
        assert log.state.version("acme", "metric", "m") == 1
        assert log.state.next_offset == 6


class TestLaws:
    @given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.booleans())))
    def test_versions_are_an_unbroken_chain(self, edits: list[tuple[str, int, bool]]) -> None:
        """Whatever writers try, each history counts 1, 2, 3 and each change has its base."""
        log = Log()
        for name, based_on, delete in edits:
            made = edit(based_on or None, name)
            log.add(delete_record(made) if delete else put_record(made, TEXT))
        for name in "ab":
            history = log.state.history("acme", "metric", name)[::-1]
            assert [d.version for d in history] == list(range(1, len(history) + 1))
            assert [d.based_on or 0 for d in history] == list(range(len(history)))


class TestFormats:
    def test_version_1_stays_readable(self) -> None:
        """The records of the first release fold to what they meant then."""
        state = Definitions()
        fixture = FilePath(__file__).with_name("test_definitions_v1.jsonl")
        for line in fixture.read_text().splitlines():
            record = json.loads(line)
            change = state.apply(record["offset"], record["key"], record["value"])
            assert change is not None
            assert change.outcome.value == record["outcome"], record

        assert {(d.kind, d.name, d.version) for d in state.current("default")} == {
            ("key", "a1b2c3d4", 1),
            ("metric", "requests", 2),
            ("board", "web", 1),
        }
        assert (state.fence(), state.epoch()) == (7, 3)
        assert state.start().incomplete_before_ms == 1_700_000_000_000  # type: ignore[union-attr]
        assert state.activations[1].finish == {0: 40, 1: 41}
        assert state.activations[5].after == 1
        assert state.activations[5].cut == {10: 1_700_000_010}
        assert [one.metric.unit for one in state.metrics_active()] == ["req"]

    def test_version_2_stays_readable(self) -> None:
        """The records of the first release that writes bundles: one whole, one late, one broken."""
        state = Definitions()
        fixture = FilePath(__file__).with_name("test_definitions_v2.jsonl")
        for line in fixture.read_text().splitlines():
            record = json.loads(line)
            change = state.apply(record["offset"], record["key"], record["value"])
            assert change is not None
            assert change.outcome.value == record["outcome"], record

        assert {(d.kind, d.name, d.version, d.vid) for d in state.current("default")} == {
            ("metric", "requests", 3, 6),
            ("rule", "slow", 1, 2),
        }
        assert state.newer.why is None

    def test_every_format_has_a_fixture(self) -> None:
        """Whoever writes a new format keeps a file of the old ones."""
        folder = FilePath(__file__).parent
        for version in READERS:
            assert (folder / f"test_definitions_v{version}.jsonl").exists()
