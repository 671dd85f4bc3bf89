"""The loop: nothing lost, nothing with two ids, and each entry in one number of the account."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weir_cli.exits import UsageError
from weir_cli.sending import resuming
from weir_cli.sending.entries import REST
from weir_cli.sending.posting import Fate, Tried
from weir_cli.sending.resuming import HEAD_BYTES, HORIZON_MS, StateFile, usual_path

from .ingesting import Log
from .sending import Desk

HOUR_MS = 3_600_000
LOG_LINE = '1.2.3.4 - - [17/May/2015:10:05:%02d +0000] "GET /%d HTTP/1.1" 200 5 "-" "a %d"\n'
FAULTS = st.lists(st.sampled_from(["lost", "unheard", "503", "429", "408", "500", ""]), max_size=4)
KILLS = st.lists(st.integers(0, 14), max_size=4)


def ndjson(kinds: Sequence[int], ending: str = "\n") -> bytes:
    """Return lines: events with an id and without, bare data, what is unusable, and nothing."""
    forms = (
        '{"id":"own-%d","type":"a","data":{}}',
        '{"type":"a","data":{"n":%d}}',
        '{"n":1}',
        "bad",
        "",
        '{"type":"a","data":{},"time":"never %d"}',
    )
    lines = (
        forms[kind] % at if "%d" in forms[kind] else forms[kind] for at, kind in enumerate(kinds)
    )
    return "".join(line + ending for line in lines).encode()


def rows(kinds: Sequence[int], ending: str = "\n") -> bytes:
    """Return CSV: rows that are alike, that are different, of several lines, at fault, blank."""
    forms = ("1,2", "%d,2", '"a\n""b,\n",2', "1", "", '"x"y,2')
    lines = (
        forms[kind] % at if "%d" in forms[kind] else forms[kind] for at, kind in enumerate(kinds)
    )
    return "".join(line + ending for line in ("a,b", *lines)).encode()


def access(kinds: Sequence[int]) -> bytes:
    """Return an access log: lines that are alike, that are different, and what is none."""
    forms = (LOG_LINE % (1, 2, 3), LOG_LINE, "hello\n")
    return "".join(
        forms[kind % 3] % ((at % 60, at, at) if kind % 3 == 1 else ())
        for at, kind in enumerate(kinds)
    ).encode()


KINDS = st.lists(st.integers(0, 5), min_size=1, max_size=12)


def straight(raw: bytes, name: str, *words: str) -> Log:
    """Return what the log has once an input was sent without any trouble."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        with suppress(UsageError):  # nothing of it is understood
            desk.send(desk.write(name, raw), "--name", "n", *words)
        return desk.log


def check_once(found: Log, wanted: Log) -> None:
    """Check that a log has each event of another, under one id, and nothing else."""
    assert set(found.identities) == set(wanted.identities)
    assert all(times == 1 for times in wanted.identities.values())
    assert set(found.quarantined) == set(wanted.quarantined)


class TestNothingIsLostOrDouble:
    @pytest.mark.thorough
    @settings(max_examples=40)
    @given(kinds=KINDS, kills=KILLS, faults=FAULTS, batch=st.integers(1, 4), data=st.data())
    @pytest.mark.parametrize("form", ["ndjson", "csv", "access-log", "ndjson.gz"])
    def test_killed_anywhere(
        self, form: str, kinds: list[int], kills: list[int], faults: list[str], batch: int,
        data: st.DataObject,
    ) -> None:  # fmt: skip
        """After any kills, lost requests and lost answers: each event is there, under one id."""
        word = form.removesuffix(".gz")
        raw = {"ndjson": ndjson, "csv": rows, "access-log": access}[word](kinds)
        ending = ("--format", word, *(("--pattern", "combined") if word == "access-log" else ()))
        wanted = straight(raw, "a", *ending)
        if not wanted.sizes:
            return
        with tempfile.TemporaryDirectory() as folder:
            desk = Desk(Path(folder), Log(list(faults)))
            path = desk.write("a", gzip.compress(raw) if form.endswith(".gz") else raw)
            words = (path, "--name", "n", *ending)
            for steps in kills:
                size = data.draw(st.integers(1, 4))
                desk.send_killed(steps, *words, "--batch", str(size))
            _, failed = desk.send(*words, "--batch", str(batch))
            assert failed is None
            check_once(desk.log, wanted)
            totals = desk.state.totals
            assert totals.accepted == len(wanted.identities)
            assert totals.quarantined == len(wanted.quarantined)
            # A process that ended has one batch of at most four on its way.
            extra = desk.log.identities.total() - len(wanted.identities)
            assert extra <= 4 * (len(kills) + faults.count("unheard"))

    @pytest.mark.thorough
    @settings(max_examples=40)
    @given(kinds=KINDS, data=st.data())
    @pytest.mark.parametrize("form", ["ndjson", "access-log"])
    def test_cut_at_any_byte(self, form: str, kinds: list[int], data: st.DataObject) -> None:
        """An input that was there in part, to any byte, and then whole: the same ids, once."""
        raw = ndjson(kinds, data.draw(st.sampled_from(["\n", "\r\n"])))
        raw = raw if form == "ndjson" else access(kinds)
        ending = ("--format", form, *(("--pattern", "combined") if form == "access-log" else ()))
        wanted = straight(raw, "a", *ending)
        if not wanted.sizes:
            return
        with tempfile.TemporaryDirectory() as folder:
            desk = Desk(Path(folder))
            for end in sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=3))):
                with suppress(UsageError):  # nothing of it is understood
                    desk.send(desk.write("a", raw[:end]), "--name", "n", *ending)
            desk.send(desk.write("a", raw), "--name", "n", *ending)
            check_once(desk.log, wanted)
            # Nothing was sent a second time: each run began behind what was confirmed.
            assert desk.log.identities.total() == len(wanted.identities)
            assert len(desk.log.quarantined) == len(wanted.quarantined)

    def test_rows_that_are_cut(self, tmp_path: Path) -> None:
        """A quoted field that is open, or a row without all its fields, waits for the rest."""
        raw = b'a,b\n1,2\n3,"x\ny\nz"\n4,5\n'
        desk = Desk(tmp_path)
        for end in (9, 13, 15, 16, len(raw)):
            sender, _ = desk.send(desk.write("a.csv", raw[:end]))
            assert sender.account.is_whole == (end == len(raw))
        assert [one["data"] for one in desk.log.events] == [
            {"a": 1, "b": 2},
            {"a": 3, "b": "x\ny\nz"},
            {"a": 4, "b": 5},
        ]
        assert desk.state.totals.not_understood == 0
        assert desk.told[-1].endswith(
            "line 3: a quoted field must be closed before the input ends; left for later"
        )

    def test_a_line_that_was_sent_before_it_had_its_end(self, tmp_path: Path) -> None:
        """A row that looked whole goes on: that cannot be mended, so it is told."""
        desk = Desk(tmp_path)
        desk.send(desk.write("a.csv", b"a\n12"))
        sender, _ = desk.send(desk.write("a.csv", b"a\n123\n4\n"))
        assert [one["data"]["a"] for one in desk.log.events] == [12, 4]
        assert (sender.account.not_understood, sender.account.is_whole) == (1, False)
        assert desk.told[-1].endswith(f"a.csv, line 2: {REST}; not sent")


class TestAnswers:
    def test_each_entry_is_in_one_number(self, tmp_path: Path) -> None:
        """Accepted, quarantined by reason, not understood; lines are told by their number."""
        desk = Desk(tmp_path)
        raw = b'{"n":1}\n\nbad\n{"type":"a","data":{},"time":"never"}\n{"x":2}\n{"a'
        sender, failed = desk.send(desk.write("a.ndjson", raw), "--batch", "2")
        account = sender.account
        assert failed is None
        assert (account.sent, account.accepted, account.not_understood) == (4, 2, 1)
        assert account.quarantined == {"invalid_json": 1, "time_invalid": 1}
        label = str(tmp_path / "a.ndjson")
        assert [one.removeprefix(label) for one in desk.told] == [
            ", line 3: quarantined, invalid_json: JSON is malformed: invalid character (byte 0)",
            ', line 4: quarantined, time_invalid: time must be RFC 3339 such as "2026-03-01T10:00:'
            '00Z", got "never"',
            ", line 6: the last line must be an object of JSON, or end with a line feed; left for"
            " later",
        ]
        assert desk.state.at.offset == raw.rindex(b"{")
        assert desk.state.totals.not_understood == 0
        assert account.position == "0:4"

    def test_only_the_first_are_told(self, tmp_path: Path) -> None:
        """Ten lines, and then how many more."""
        desk = Desk(tmp_path)
        desk.send(desk.write("a.ndjson", b"{}\n" + b"bad\n" * 12))
        assert len(desk.told) == 11
        assert desk.told[-1].endswith("a.ndjson: 2 more entries, which are not told here")

    def test_all_ids_are_safe_to_send_again(self, tmp_path: Path) -> None:
        """Also where ingest would make one up: it never has to."""
        desk = Desk(tmp_path)
        safe = list[bool]()

        def post(body: bytes, events: int, key: str) -> Tried:
            tried = desk.log.post(body, events, key)
            assert tried.answer is not None
            safe.append(tried.answer.body["retry_safe"])
            return tried

        desk.send(desk.write("a.ndjson", ndjson([0, 1, 2, 3, 5, 2])), post=post)
        assert safe == [True]

    @pytest.mark.parametrize(
        ("most", "sizes"),
        [(5, [8, 4, 4] + [4] * 4), (1, [8, 4, 2, 1, 1, 2, 1, 1, 4, 2, 1, 1, 2, 1, 1] + [1] * 16)],
    )
    def test_too_many_events(self, tmp_path: Path, most: int, sizes: list[int]) -> None:
        """A batch is halved until it is taken, and those that follow are small; in order."""
        desk = Desk(tmp_path, Log(most_events=most))
        raw = b"".join(b'{"n":%d}\n' % n for n in range(24))
        sender, _ = desk.send(desk.write("a.ndjson", raw), "--batch", "8")
        assert desk.log.sizes == sizes
        assert [one["data"]["n"] for one in desk.log.events] == list(range(24))
        assert sender.account.accepted == 24

    def test_one_that_is_too_large(self, tmp_path: Path) -> None:
        """It is refused by its line; those around it are taken, and what follows it."""
        desk = Desk(tmp_path, Log(most_bytes=1_000))
        large = b'{"x":"' + b"y" * 2_000 + b'"}\n'
        raw = b'{"n":1}\n' * 3 + b"\n" + large + b'{"n":1}\n' * 140
        sender, failed = desk.send(desk.write("a.ndjson", raw), "--batch", "40")
        assert failed is None
        assert (sender.account.accepted, sender.account.sent) == (143, 144)
        assert sender.account.refused == {"body_too_large": 1}
        assert desk.told == [
            f"{tmp_path / 'a.ndjson'}, line 5: refused, body_too_large: a request must hold less;"
            " send parts"
        ]
        assert desk.state.totals.refused == 1
        # What is cut for its bytes keeps its number of events.
        assert max(desk.log.sizes[-3:]) > 1

    @pytest.mark.parametrize(
        ("fault", "fate"),
        [(str(status), Fate.REFUSED) for status in (301, 400, 401, 403, 404, 405, 415, 422)],
    )
    def test_what_is_refused_ends_it_at_once(self, tmp_path: Path, fault: str, fate: Fate) -> None:
        """Nothing of it is stored, and no other try would help."""
        desk = Desk(tmp_path, Log(always=fault))
        sender, failed = desk.send(desk.write("a.ndjson", b'{"n":1}\n'))
        assert failed is not None
        assert failed.fate is fate
        assert (sender.account.sent, sender.account.unknown, desk.clock.monotonic_s()) == (0, 0, 0)
        assert desk.state.tried_at_ms is None

    @pytest.mark.parametrize("fault", ["408", "429", "500", "502", "503", "504", "lost", "unheard"])
    def test_the_rest_is_tried_again(self, tmp_path: Path, fault: str) -> None:
        """The same bytes with the same key, until they are taken."""
        desk = Desk(tmp_path, Log([fault] * 3))
        sender, failed = desk.send(desk.write("a.ndjson", b'{"n":1}\n{"n":1}\n'))
        assert failed is None
        assert (sender.account.accepted, len(desk.log.identities)) == (2, 2)
        assert len(set(desk.log.keys)) == 1
        assert len(desk.told) == 1
        assert desk.told[0].startswith("ingest ")
        assert desk.told[0].endswith("trying again until 600 s have gone by without an answer")

    @pytest.mark.parametrize(("fault", "unknown"), [("429", 0), ("503", 2), ("lost", 2)])
    def test_until_it_is_given_up(self, tmp_path: Path, fault: str, unknown: int) -> None:
        """After so long without an answer; whether it is stored is not known but of 429."""
        desk = Desk(tmp_path, Log([""], fault))
        raw = b'{"n":1}\n' * 4
        sender, failed = desk.send(desk.write("a.ndjson", raw), "--batch", "2", "--give-up", "60")
        assert failed is not None
        assert 60 <= desk.clock.monotonic_s() < 62
        assert (sender.account.accepted, sender.account.unknown) == (2, unknown)
        assert sender.account.sent == 2 + unknown
        assert (desk.state.tried_at_ms is not None) == (unknown > 0)
        assert desk.state.at.offset == len(raw) // 2

    def test_each_answer_gives_it_time_again(self, tmp_path: Path) -> None:
        """It is given up for standing still, not for being slow."""
        desk = Desk(tmp_path, Log(["503"] * 5 + [""] + ["503"] * 5))
        _, failed = desk.send(
            desk.write("a.ndjson", b'{"n":1}\n' * 2), "--batch", "1", "--give-up", "9"
        )
        assert failed is None
        assert desk.clock.monotonic_s() > 9

    def test_refused_after_it_may_have_been_stored(self, tmp_path: Path) -> None:
        """A key that was revoked meanwhile says nothing of the try before."""
        desk = Desk(tmp_path, Log(["unheard", "401"]))
        sender, failed = desk.send(desk.write("a.ndjson", b'{"n":1}\n'))
        assert failed is not None
        assert (failed.fate, sender.account.unknown) == (Fate.REFUSED, 1)
        assert desk.state.tried_at_ms is not None


class TestResuming:
    RAW = b'{"n":1}\n' * 4
    LONG = b'{"n":1}\n' * 1_000

    def test_a_second_run_sends_nothing(self, tmp_path: Path) -> None:
        """And one after more has come sends that."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", self.RAW)
        desk.send(path)
        sender, _ = desk.send(path)
        assert (sender.account.sent, desk.log.sizes) == (0, [4])
        sender, _ = desk.send(desk.write("a.ndjson", self.RAW + b'{"n":2}\n'))
        assert (sender.account.sent, desk.log.sizes, len(desk.log.identities)) == (1, [4, 1], 5)
        assert desk.state.totals.accepted == 5
        assert desk.state.totals.position == "0:5"

    def test_without_a_resume_file(self, tmp_path: Path) -> None:
        """All of it is sent again, under the same ids."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", self.RAW)
        desk.send(path, is_kept=False)
        desk.send(path, is_kept=False)
        assert set(desk.log.identities.values()) == {2}
        assert list(tmp_path.iterdir()) == [path]

    def test_from_the_start(self, tmp_path: Path) -> None:
        """Where that is asked for; the file begins anew, too."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", self.RAW)
        desk.send(path)
        desk.send(path, "--restart")
        assert set(desk.log.identities.values()) == {2}
        assert desk.state.totals.accepted == 4

    def test_a_file_that_lies_elsewhere(self, tmp_path: Path) -> None:
        """Under the name that it had it goes on; the same bytes from a pipe would, too."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", self.RAW)
        desk.send(path)
        moved = desk.write("b.ndjson", self.RAW + b'{"n":2}\n')
        sender, _ = desk.send(moved, "--name", str(path.resolve()))
        assert sender.account.sent == 1
        with pytest.raises(UsageError, match="the input must be that of the resume file"):
            desk.send(moved)

    @pytest.mark.parametrize(
        "raw",
        [
            b'{"n":2}\n' + LONG[8:],
            LONG[:-8] + b'{"n":2}\n',
            LONG[:8] + b" " + LONG[8:],
            LONG[:-1],
            b"",
            b'{"m":1}\n',
        ],
    )
    def test_another_input_of_that_name(self, tmp_path: Path, raw: bytes) -> None:
        """By how it begins, by the last entry that was sent, or by its length: it is noticed."""
        desk = Desk(tmp_path)
        desk.send(desk.write("a.ndjson", self.LONG))
        assert len(self.LONG) - 8 > HEAD_BYTES
        with pytest.raises(UsageError, match=r"a\.ndjson must be the input of which 8,000 bytes w"):
            desk.send(desk.write("a.ndjson", raw))
        assert len(desk.log.sizes) == 1

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            (("--format", "access-log"), "the format must be that of the resume file, 'ndjson', g"),
            (("--name", "x"), "the input must be that of the resume file, "),
        ],
    )
    def test_another_purpose(self, tmp_path: Path, words: tuple[str, ...], why: str) -> None:
        """A place of one format is none of another."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", self.RAW)
        desk.send(path)
        with pytest.raises(UsageError, match=why):
            desk.send(path, *words)

    def test_another_key(self, tmp_path: Path) -> None:
        """It may be another tenant's, which has nothing of this; or not, and then it goes on."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", self.RAW)
        desk.send(path)
        desk.key = desk.key.replace("a", "c")
        why = "the key must be that of the resume file, 'aaaaaaaa', got 'cccccccc'; --same-tenant g"
        with pytest.raises(UsageError, match=why):
            desk.send(path)
        desk.send(path, "--same-tenant")
        desk.send(path)
        assert desk.log.sizes == [4]

    def test_two_at_a_time(self, tmp_path: Path) -> None:
        """The second would send what the first sends."""
        file = StateFile(tmp_path / "state")
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", self.RAW)
        with pytest.raises(
            UsageError, match="must belong to one `weir send` at a time, got a seco"
        ):
            desk.send(path)
        file.close()
        desk.send(path)

    @pytest.mark.parametrize(
        ("text", "why"),
        [("x", "it has something else"), ("{}", "it has"), ('{"v": 2}', "it has"), ("[]", "it ha")],
    )
    def test_a_file_that_is_none(self, tmp_path: Path, text: str, why: str) -> None:
        """Nothing is sent by guess."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", self.RAW)
        (tmp_path / "state").write_text(text)
        with pytest.raises(UsageError, match=f"must be a resume file of this release: {why}"):
            desk.send(path)

    def test_a_file_of_another_release(self, tmp_path: Path) -> None:
        """Its members may mean something else."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", self.RAW)
        desk.send(path)
        said = json.loads((tmp_path / "state").read_text())
        (tmp_path / "state").write_text(json.dumps(said | {"v": 2}))
        with pytest.raises(UsageError, match="must be a resume file of this release: it has somet"):
            desk.send(path)

    def test_a_file_that_cannot_be_written(self, tmp_path: Path) -> None:
        """At the start nothing is sent; later it ends, since all of it would be sent again."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", self.RAW)
        (tmp_path / "state.new").mkdir()
        with pytest.raises(UsageError, match="must be a resume file that can be written: Is a dir"):
            desk.send(path)
        assert desk.log.sizes == []
        (tmp_path / "state.new").rmdir()

        def post(body: bytes, events: int, key: str) -> Tried:
            (tmp_path / "state.new").mkdir()
            return desk.log.post(body, events, key)

        sender, failed = desk.send(path, "--batch", "1", post=post)
        assert (failed, desk.log.sizes, sender.at) == (None, [1], 0)
        (why,) = sender.account.broken
        assert why.endswith(
            "state must be written after each batch: Is a directory; what is not in it is sent"
            " again by the next run, with the same ids"
        )

    def test_it_is_written_in_one_step(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who looks at it sees all of the old one or all of the new; and the disk has it first."""
        desk = Desk(tmp_path)
        desk.send(desk.write("a.ndjson", self.RAW))
        path, state, seen = tmp_path / "state", desk.state, list[tuple[str, str]]()
        before, after = state.text(), replace(state, name="new").text()

        def look(descriptor: int) -> None:
            seen.append((path.read_text(), Path(f"/proc/self/fd/{descriptor}").read_text()))

        monkeypatch.setattr(os, "fsync", look)
        file = StateFile(path)
        with path.open() as old:
            file.save(replace(state, name="new"))
            assert old.read() == before
        file.close()
        assert seen == [(before, after)]
        assert path.read_text() == after

    def test_what_it_keeps(self, tmp_path: Path) -> None:
        """As text and back; a file of its own for each input and each installation."""
        desk = Desk(tmp_path)
        desk.send(desk.write("a.ndjson", self.RAW))
        state = desk.state
        assert resuming.State.read(state.text()) == state
        assert json.loads(state.text())["v"] == 1
        assert "bbbb" not in state.text()
        at = {"XDG_STATE_HOME": "/s"}
        paths = {usual_path(n, u, at) for n in ("a", "b") for u in ("http://x", "http://y")}
        assert len(paths) == 4
        assert {path.parent for path in paths} == {Path("/s/weir")}
        assert usual_path("a", "b", {}).is_relative_to(Path("~/.local/state/weir").expanduser())


class TestDedupHorizon:
    """What may have been stored longer ago than the dedup horizon is told: it may count twice."""

    @pytest.mark.parametrize(("away_ms", "twice"), [(HORIZON_MS, 0), (HORIZON_MS + 1, 2)])
    def test_after_a_kill(self, tmp_path: Path, away_ms: int, twice: int) -> None:
        """Only of the batch that was on its way, once."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", b'{"n":1}\n' * 6)
        words = (path, "--batch", "2")
        # Steps: the first write, the first batch, its place, the second batch.
        assert desk.send_killed(7, *words)
        assert len(desk.log.events) == 4
        desk.clock.advance(away_ms)
        sender, _ = desk.send(*words)
        assert (sender.account.twice, sender.account.accepted) == (twice, 4)
        assert sender.account.is_whole
        assert desk.log.identities.total() == 8
        assert desk.state.tried_at_ms is None

    def test_after_an_end_in_peace(self, tmp_path: Path) -> None:
        """Nothing was on its way."""
        desk = Desk(tmp_path)
        desk.send(desk.write("a.ndjson", b'{"n":1}\n'))
        desk.clock.advance(10 * HOUR_MS)
        sender, _ = desk.send(desk.write("a.ndjson", b'{"n":1}\n' * 2))
        assert (sender.account.twice, sender.account.accepted) == (0, 1)

    def test_the_first_time_counts(self, tmp_path: Path) -> None:
        """Tries between that met nobody do not make it younger."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", b'{"n":1}\n')
        assert desk.send_killed(3, path)
        for _ in range(2):
            desk.clock.advance(HOUR_MS * 3 // 4)
            desk.log.always = "429"
            desk.send(path, "--give-up", "0")
        desk.log.always = ""
        sender, _ = desk.send(path)
        assert sender.account.twice == 1

    @pytest.mark.parametrize(("fault", "twice"), [("unheard", 1), ("429", 0)])
    def test_while_it_is_tried(self, tmp_path: Path, fault: str, twice: int) -> None:
        """A run that is more patient than the horizon is long meets it, too."""
        desk = Desk(tmp_path, Log([fault] + ["429"] * 400))
        path = desk.write("a.ndjson", b'{"n":1}\n')
        sender, failed = desk.send(path, "--give-up", "90000")
        assert failed is None
        assert desk.clock.monotonic_s() > HOUR_MS / 1_000
        assert sender.account.twice == twice


class TestNothingUnderstood:
    def test_nothing_is_sent(self, tmp_path: Path) -> None:
        """A wrong pattern is no reason to go through a file."""
        desk = Desk(tmp_path)
        path = desk.write("a.log", b"\nhello\nyou\n")
        with pytest.raises(UsageError) as error:
            desk.send(path, "--pattern", "common")
        assert str(error.value).removeprefix(str(path)) == (
            " must have entries that are understood, got 2 first ones of which none is, an access"
            " log by the pattern common; line 2: a line must match the pattern common; see --format"
            " and --pattern, and try it with --dry-run"
        )
        assert desk.state.at.offset == 0
        assert replace(desk.state, at=desk.state.at).totals.not_understood == 0

    def test_once_something_was(self, tmp_path: Path) -> None:
        """Then what is not is told line by line."""
        desk = Desk(tmp_path)
        good = (LOG_LINE % (1, 1, 1)).encode()
        desk.send(desk.write("a.log", good), "--pattern", "combined")
        sender, _ = desk.send(desk.write("a.log", good + b"hello\n"), "--pattern", "combined")
        assert sender.account.not_understood == 1
        assert desk.state.totals.not_understood == 1
