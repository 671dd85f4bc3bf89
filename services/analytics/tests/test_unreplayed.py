"""Which copies no replay has looked into: by what stands in `weir.quarantine`, and by jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from weir import names
from weir.definitions.fold import Definitions
from weir.definitions.job import Replay
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import DriverStart, Edit, put_record, start_record
from weir.log_place import LogPlace
from weir_analytics.jobs.unreplayed import Copies, DoneReplay, Unreplayed, done_replays

NOW_MS = 1_800_000_000_000


def copy(n: int, **more: str) -> dict[str, bytes | None]:
    """Return the headers of the copy of a record."""
    said = {
        names.HEADER_REASON: "not_an_event",
        names.HEADER_TENANT: "acme",
        names.HEADER_SOURCE: "shop",
        names.HEADER_ORIGIN: f"weir.events/id/0/{n}",
        names.HEADER_AT: str(NOW_MS + 1_000 * n),
    }
    return {name: text.encode() for name, text in (said | more).items()}


def note(n: int) -> dict[str, bytes | None]:
    """Return the headers of the note that a record was put back."""
    return {names.HEADER_REPLAYED: b"9", names.HEADER_ORIGIN: f"weir.events/id/0/{n}".encode()}


def taken(*headers: dict[str, bytes | None], most: int = 9) -> Copies:
    """Return what was read of a partition."""
    copies = Copies(most)
    for offset, one in enumerate(headers):
        copies.take(0, offset, NOW_MS + offset, one)
    return copies


def first(copies: Copies) -> int | None:
    """Return the offset of the oldest copy of partition 0."""
    oldest = copies.oldest().get(0)
    return None if oldest is None else oldest.counted


def test_the_oldest_without_a_note_waits() -> None:
    """Wherever the note of another stands; a copy that came again is the first one."""
    assert first(taken(copy(1), copy(2), copy(1), note(2))) == 0
    assert first(taken(copy(1), copy(2), note(1))) == 1
    assert first(taken(copy(1), note(1))) is None
    assert first(taken(copy(1), note(1), copy(1))) is None, "a batch that ran again"


@pytest.mark.parametrize(
    "other",
    [
        copy(1, **{names.HEADER_VERSION: "7"}),
        copy(1, **{names.HEADER_SHA256: "ab"}),
        copy(1, **{names.HEADER_AT: "soon"}),
        {},
    ],
)
def test_what_no_replay_brings_back_does_not_wait(other: dict[str, bytes | None]) -> None:
    """What one metric could not use, of what only the beginning is kept, what others wrote."""
    assert first(taken(other)) is None


@pytest.mark.parametrize(
    ("tenant", "wanted", "high", "oldest"),
    [
        ("acme", {}, 2, None),
        ("acme", {}, 1, 1),
        ("other", {}, 2, 0),
        ("acme", {"reason": "number_range"}, 2, 0),
        ("acme", {"source": "shop"}, 2, None),
        ("acme", {"since": "2027-01-15T08:00:02Z"}, 2, 0),
        ("acme", {"until": "2027-01-15T08:00:02Z"}, 2, 1),
    ],
)
def test_a_replay_that_asked_for_it_has_looked_into_it(
    tenant: str, wanted: dict[str, Any], high: int, oldest: int | None
) -> None:
    """Though it was of no use: whoever asked was told."""
    copies = taken(copy(1), copy(2))
    done = DoneReplay(8, tenant, Replay.model_validate(wanted), {0: high})
    assert copies.drop([done], {0: 0}) == 0
    assert first(copies) == oldest

    copies = Copies()
    copies.drop([done], {0: 0})
    for n in (1, 2):
        copies.take(0, n - 1, NOW_MS, copy(n))
    assert first(copies) == oldest, "also if it is read when the replay is done"


@pytest.mark.parametrize(("topic_id", "oldest"), [(None, 1), ("q", None)])
def test_a_replay_has_looked_into_nothing_that_came_after_it(
    topic_id: str | None, oldest: int | None
) -> None:
    """One that does not say its topic may be of another one, with copies at the same places."""
    copies = taken(copy(1), copy(2))
    copies.drop([DoneReplay(8, "acme", Replay(), {0: 5_000}, topic_id, NOW_MS)], {0: 0})
    assert first(copies) == oldest


def test_what_is_deleted_waits_no_more_and_is_counted() -> None:
    """But for what a replay has looked into before."""
    copies = taken(copy(1), copy(2), copy(3))
    done = DoneReplay(8, "acme", Replay.model_validate({"until": "2027-01-15T08:00:02Z"}), {0: 9})
    assert copies.drop([done], {0: 2}) == 1
    assert first(copies) == 2
    assert copies.drop([], {0: 3}) == 1
    assert copies.oldest() == {}


def test_of_more_than_are_held_the_oldest_are() -> None:
    """What follows is read again once half of them are gone, and not before."""
    copies = taken(*(copy(n) for n in range(6)), note(0), most=4)
    assert (first(copies), copies.again()) == (1, {})
    copies.take(0, 7, NOW_MS, copy(7))
    copies.drop([], {0: 2})
    assert copies.again() == {0: 4}
    assert copies.again() == {}
    copies.take(0, 4, NOW_MS, copy(4))
    copies.drop([], {0: 4})
    assert first(copies) == 4


def test_each_partition_holds_its_oldest() -> None:
    """However many copies another one has; a note of the only one is taken in."""
    copies = Copies(4)
    copies.share(2)
    for n in range(5):
        copies.take(0, n, NOW_MS, copy(n))
    copies.take(1, 0, NOW_MS - 9, copy(5))
    assert copies.oldest() == {0: LogPlace(0, NOW_MS), 1: LogPlace(0, NOW_MS - 9)}
    copies.take(1, 1, NOW_MS, note(5))
    assert copies.oldest() == {0: LogPlace(0, NOW_MS)}
    copies.take(1, 2, NOW_MS, copy(6))
    copies.take(1, 3, NOW_MS, copy(7))
    copies.take(1, 4, NOW_MS, note(6))
    copies.take(1, 5, NOW_MS, copy(8))
    copies.take(1, 6, NOW_MS, note(7))
    assert copies.again() == {}
    assert copies.oldest()[1].counted == 5, "what has a note takes no room"


def test_what_is_not_held_yet_is_told_of_by_its_first_one() -> None:
    """Until all is read that follows it: it may be deleted as soon as that one."""
    copies = taken(*(copy(n) for n in range(6)), most=4)
    assert first(copies) == 0
    copies.drop([DoneReplay(8, "acme", Replay(), {0: 4})], {0: 0})
    assert copies.oldest() == {0: LogPlace(4, NOW_MS + 4)}
    assert copies.again() == {0: 4}
    assert copies.oldest() == {0: LogPlace(4, NOW_MS + 4)}
    copies.take(0, 4, NOW_MS + 4, copy(4))
    copies.take(0, 5, NOW_MS + 5, note(4))
    assert copies.oldest() == {0: LogPlace(4, NOW_MS + 4)}
    copies.all_read()
    assert copies.oldest() == {}


def test_what_there_was_no_room_for_is_deleted_as_well() -> None:
    """It is counted, once, and stands for nothing: what is there now was not read yet."""
    copies = taken(*(copy(n) for n in range(6)), most=4)
    assert copies.drop([], {0: 9}) == 5
    assert copies.drop([], {0: 9}) == 0
    assert copies.oldest() == {0: LogPlace(9)}
    assert copies.again() == {0: 4}
    assert copies.oldest() == {0: LogPlace(9)}
    copies.all_read()
    assert copies.oldest() == {}

    copies = taken(*(copy(n) for n in range(6)), most=4)
    done = DoneReplay(8, "acme", Replay(), {0: 6})
    copies.drop([done], {0: 0})
    assert copies.drop([done], {0: 9}) == 0, "a replay has looked into it"
    copies = taken(*(copy(n) for n in range(6)), most=4)
    copies.drop([DoneReplay(8, "acme", Replay(), {0: 4})], {0: 0})
    assert copies.again() == {0: 4}
    assert copies.drop([], {0: 5}) == 1, "also while it is read again"
    assert copies.oldest() == {0: LogPlace(5)}


def test_a_copy_is_compared_with_a_replay_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is looked, and however many were ever done: not of what is deleted."""
    compared: list[tuple[str | None, int]] = []
    compare = DoneReplay.has_looked_into

    def counted(replay: DoneReplay, one: Unreplayed) -> bool:
        compared.append((replay.wanted.reason, one.offset))
        return compare(replay, one)

    def of_a_look(*replays: DoneReplay, start: int = 0) -> Sequence[tuple[str | None, int]]:
        compared.clear()
        copies.drop(replays, {0: start})
        return sorted(compared)

    monkeypatch.setattr(DoneReplay, "has_looked_into", counted)
    copies = taken(copy(0), copy(1), copy(2))
    one, other = (
        DoneReplay(vid, "acme", Replay(reason=reason), {0: 4})
        for vid, reason in ((8, "too_deep"), (7, "number_range"))
    )
    of_others = DoneReplay(9, "zeta", Replay(), {0: 4})
    assert of_a_look(one, of_others) == [("too_deep", n) for n in range(3)]
    assert of_a_look(one, of_others) == []
    # A job that was asked for before may end after it.
    assert of_a_look(other, one, of_others) == [("number_range", n) for n in range(3)]
    copies.take(0, 3, NOW_MS, copy(3))
    assert compared[3:] == [("too_deep", 3), ("number_range", 3)], "the newest first"
    assert of_a_look(other, one, of_others, start=4) == []
    copies.take(0, 4, NOW_MS, copy(4))
    assert compared == [], "of what is still there they have seen nothing"
    assert of_a_look(other, one, DoneReplay(10, "acme", Replay(), {0: 4}), start=4) == []
    assert first(copies) == 4


@pytest.mark.parametrize("said", [{}, {"quarantine_id": "q"}])
@pytest.mark.parametrize(
    ("do", "state", "is_done"),
    [
        ({"job": "replay", "reason": "too_deep"}, JobState.DONE, True),
        ({"job": "replay", "reason": "too_deep"}, JobState.FAILED, False),
        ({"job": "replay", "reason": "too_deep", "dry_run": True}, JobState.DONE, False),
        ({"job": "audit"}, JobState.DONE, False),
    ],
)
def test_only_a_replay_that_is_done_has_looked_into_anything(
    do: dict[str, Any], state: JobState, is_done: bool, said: dict[str, Any]
) -> None:
    """Not one that only said what it would do, or ended on the way; an earlier one says less."""
    fold = Definitions()
    fold.apply(0, *start_record(DriverStart("a", 1, "start"), at_ms=0))
    fold.apply(1, *put_record(Edit("acme", "job", "r", None, "t", 0), json.dumps({"do": do})))
    facts = {"low": {"0": 3}, "high": {"0": 40}} | said
    report = JobReport(1, state, NOW_MS, facts)
    fold.apply(2, *job_record(report, fence=0))
    wanted, topic_id = Replay(reason="too_deep"), said.get("quarantine_id")
    done = DoneReplay(1, "acme", wanted, {0: 40}, topic_id, NOW_MS)
    assert done_replays(fold) == ((done,) if is_done else ())
