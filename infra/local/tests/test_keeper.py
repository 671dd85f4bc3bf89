"""When a part that ended is started again, and what is said of its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from weir_local import keeper
from weir_local.diagnosis import explain
from weir_local.home import Home
from weir_local.keeper import Restarts
from weir_local.notes import Follower
from weir_local.process import Part


def test_pauses_grow_to_a_limit() -> None:
    """A part that keeps ending is started after 1, 2, 4, … 30 s."""
    restarts = Restarts()
    pauses = []
    for _ in range(7):
        pauses.append(restarts.ended(1000.0))
        assert restarts.due_s == 1000.0 + pauses[-1]
        restarts.started(1000.0)
    assert pauses == [1, 2, 4, 8, 16, 30, 30]


def test_a_stable_part_begins_anew() -> None:
    """After a minute of life the pause is a second again; at exactly a minute not yet."""
    restarts = Restarts()
    restarts.ended(1000.0)
    restarts.started(1000.0)
    assert restarts.ended(1060.0) == 2
    restarts.started(1060.0)
    assert restarts.ended(1120.1) == 1


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("java.io.IOException: No space left on device", "the disk is full; free some space"),
        ("java.lang.OutOfMemoryError: Java heap space", "its JVM is full, however much memory is"),
        (
            "java.lang.OutOfMemoryError: unable to create native",
            "there is not enough memory; close",
        ),
        ("[Errno 98] Address already in use", "its port is taken; stop what listens there"),
        ("No module named 'weir_x'", "a Python package is missing; run `make setup`"),
        ("ValueError: odd", "ValueError: odd"),
    ],
)
def test_known_symptoms_are_said_in_words(tmp_path: Path, line: str, sentence: str) -> None:
    """What a log shows becomes cause and mend; an unknown error is shown as it is."""
    part = Part("a", [], tmp_path)
    part.log_path.write_text(f"starting\n{line}\n  at somewhere\n")
    assert explain(part).startswith(sentence)


def test_a_note_that_finds_no_room_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a full disk the keeper goes on, says so in its log, and writes the note later."""
    home = Home(tmp_path / "home", 9100)
    watcher = keeper.Keeper(home)
    notes = Follower(keeper.notes_path(home))
    with monkeypatch.context() as full:
        full.setattr(keeper, "notes_path", lambda _home: Path("/dev/full"))
        watcher._note("ingest has ended")
    said = capsys.readouterr().err
    assert said.startswith("ingest has ended (the disk is full")
    assert "free some space" in said
    watcher._note("ingest was started again")
    assert [note["text"] for note in notes.new()] == [
        "ingest has ended",
        "ingest was started again",
    ]


def test_half_a_note_is_passed_over(tmp_path: Path) -> None:
    """A line that a full disk cut off does not hide those after it."""
    path = tmp_path / "notes.jsonl"
    path.write_text('{"n":1}\n{"n":\n\n{"n":3}\n')
    assert Follower(path).new() == [{"n": 1}, {"n": 3}]


def test_follower_reads_each_line_once(tmp_path: Path) -> None:
    """A line is read when it is complete, once; an emptied file is read from its start."""
    path = tmp_path / "notes.jsonl"
    follower = Follower(path)
    assert follower.new() == []
    path.write_text('{"n":1}\n{"n":')
    assert follower.new() == [{"n": 1}]
    path.write_text('{"n":1}\n{"n":2}\n')
    assert follower.new() == [{"n": 2}]
    path.write_text('{"n":3}\n')
    assert follower.new() == [{"n": 3}]
