"""`weir send` as it is typed: what it says, how it ends, and what a killed process leaves."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from weir_cli.__main__ import main
from weir_cli.sending import pacing
from weir_local.ports import free_port

from .ingesting import Log, Served, serving
from .sending import KEY

DEADLINE_S = 30.0
TEN = b'{"n":1}\n' * 10


@dataclass
class Typed:
    """Types `weir send` for one ingest.

    Attributes:
        folder: Where files lie, and the shell stands.
        served: Ingest.
        url: Its address.
    """

    folder: Path
    served: Served
    url: str

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the command is given."""
        state = str(self.folder / "home")
        return {"WEIR_INGEST_URL": self.url, "WEIR_API_KEY": KEY, "XDG_STATE_HOME": state}

    @property
    def log(self) -> Log:
        """What ingest has."""
        return self.served.log

    def write(self, name: str, raw: bytes) -> Path:
        """Write a file."""
        path = self.folder / name
        path.write_bytes(raw)
        return path

    def states(self) -> list[dict[str, Any]]:
        """Return what the resume files say."""
        return [json.loads(path.read_text()) for path in (self.folder / "home/weir").glob("*.json")]

    def do(self, *words: str | Path, code: int = 0) -> tuple[str, str]:
        """Run the command in this process; assert its exit code, return what it wrote."""
        written, errors = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(written),
            contextlib.redirect_stderr(errors),
        ):
            for name, value in self.environment.items():
                patch.setenv(name, value)
            ended = main(["send", *map(str, words)])
        assert ended == code, written.getvalue() + errors.getvalue()
        return written.getvalue(), errors.getvalue()

    def begin(self, *words: str | Path, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Start the command in a process of its own."""
        return subprocess.Popen(  # noqa: S603  the command is ours
            [sys.executable, "-m", "weir_cli", "send", *words],
            env=os.environ | self.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def finish(process: subprocess.Popen[str], code: int) -> tuple[str, str]:
    """Wait for a command; assert its exit code and return what it wrote."""
    written, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == code, written + errors
    return written, errors


def await_(claim: Any, what: str) -> None:
    """Return once something holds.

    Raises:
        TimeoutError: If it does not in time.
    """
    until_s = time.monotonic() + DEADLINE_S
    while not claim():
        if time.monotonic() > until_s:
            raise TimeoutError(what)
        time.sleep(0.01)


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Typed]:
    """Return the command, with an ingest of its own."""
    with serving() as served:
        yield Typed(tmp_path, served, served.url)


class TestSummary:
    def test_in_words(self, typed: Typed) -> None:
        """Sent, accepted, quarantined by reason, refused, unknown; and what was not sent."""
        raw = b"a,t\n1,2026-01-01\n2,never\n3\n4,never\n"
        path = typed.write("a.csv", raw)
        written, errors = typed.do(path, "--time", "t", code=8)
        first, *rest = written.splitlines()
        assert first.startswith("sent 3 in ")
        assert first.endswith(
            " a second: 1 accepted, 2 quarantined (2 time_invalid), 0 refused, 0 unknown"
        )
        assert rest == [
            "not understood, and not sent: 1",
            "counted once `weir query … --after 0:3` answers",
        ]
        told = errors.splitlines()
        assert (
            told[0] == f"weir: {path} is read as CSV with the columns a, t; --format says otherwise"
        )
        assert told[1] == f"weir: {path}, line 3: quarantined, time_invalid: " + (
            'time must be RFC 3339 such as "2026-03-01T10:00:00Z", got "never"'
        )
        assert told[-1] == f"weir: {path}, line 4: a row must have 2 fields, got 1; not sent"

    def test_as_json(self, typed: Typed) -> None:
        """One object, with every number; the inputs stand in it by name."""
        one, two = typed.write("a.ndjson", TEN + b"bad\n"), typed.write("b.ndjson", TEN)
        written, _ = typed.do(one, two, "--json", code=8)
        told = json.loads(written)
        assert told.pop("seconds") >= 0
        assert told.pop("events_per_s") >= 0
        assert told == {
            **{"sent": 21, "accepted": 20, "quarantined": 1, "refused": 0, "unknown": 0},
            **{"not_understood": 0, "reasons": {"invalid_json": 1}, "may_count_twice": 0},
            **{"broken": [], "position": "0:21", "stopped": False},
            "inputs": [
                {"input": str(one), "name": str(one), "bytes": 84, "before": None},
                {"input": str(two), "name": str(two), "bytes": 80, "before": None},
            ],
        }
        again = json.loads(typed.do(one, two, "--json")[0])
        assert (again["sent"], again["position"]) == (0, "0:21")
        assert again["inputs"][0]["before"] == {
            **{"accepted": 10, "quarantined": 1, "refused": 0, "not_understood": 0},
            "position": "0:11",
        }

    def test_of_a_run_that_goes_on(self, typed: Typed) -> None:
        """What was there before is told, and where this one began."""
        path = typed.write("a.ndjson", TEN)
        assert typed.do(path, "--format", "ndjson")[1] == ""
        typed.write("a.ndjson", TEN + b'{"n":2}\n')
        written, errors = typed.do(path, "--format", "ndjson")
        assert f"earlier runs, {path}: 10 accepted, 0 quarantined, 0 refused, 0 not " in written
        assert errors == f"weir: {path} goes on behind byte 80: what is before it is confirmed\n"
        assert [state["at"]["offset"] for state in typed.states()] == [88]

    def test_by_whatever_way_a_file_is_reached(
        self, typed: Typed, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its name is where it lies, not what was typed."""
        path = typed.write("a.ndjson", TEN)
        typed.do(path)
        (typed.folder / "link.ndjson").symlink_to(path)
        monkeypatch.chdir(typed.folder)
        for way in ("a.ndjson", "./link.ndjson"):
            assert typed.do(way)[0].startswith("sent 0 in ")

    def test_what_may_count_twice(self, typed: Typed) -> None:
        """After an hour the horizon may have passed: both ends say so."""
        path = typed.write("a.ndjson", TEN)
        state = typed.folder / "state"
        typed.do(path, "--state", state)
        said = json.loads(state.read_text())
        state.write_text(json.dumps(said | {"tried_at_ms": 1}))
        typed.write("a.ndjson", TEN * 2)
        written, errors = typed.do(path, "--state", state)
        assert (
            "behind byte 80 may have been sent more than an hour ago, the usual dedup h" in errors
        )
        assert (
            "up to 10 may count twice: they were sent again after the usual dedup hori" in written
        )


class TestHowItEnds:
    def test_a_refusal(self, typed: Typed) -> None:
        """At once, in ingest's words, with exit code 1; for programs as an object, too."""
        typed.log.always = "401"
        path = typed.write("a.ndjson", TEN)
        written, errors = typed.do(path, typed.write("b.ndjson", TEN), code=1)
        assert len(typed.served.paths) == 1
        assert written.startswith("sent 0 in ")
        assert errors.splitlines()[-1] == "weir: come later"
        said, error = typed.do(path, "--json", code=1)[0].splitlines()
        assert json.loads(said)["sent"] == 0
        assert json.loads(error) == {"error": {"code": "x", "message": "come later", "errors": []}}
        assert len(typed.served.paths) == 2

    def test_no_answer(self, typed: Typed) -> None:
        """With exit code 3; what is unknown is told as that."""
        typed.log.always = "503"
        path = typed.write("a.ndjson", TEN)
        written, errors = typed.do(path, "--give-up", "0.2", code=3)
        assert ": 0 accepted, 0 quarantined, 0 refused, 10 unknown\n" in written
        assert (
            "whether the unknown ones are stored nobody knows: the next run sends them" in written
        )
        assert errors.splitlines()[-1] == (
            f"weir: ingest at {typed.url} must answer, answered 503 for 0.2 s: come later;"
            " --give-up waits longer; another run goes on where this one was"
        )
        typed.log.always = ""
        assert ": 10 accepted, " in typed.do(path)[0]

    def test_nobody_there(self, typed: Typed) -> None:
        """Nothing was sent."""
        typed.url = f"http://127.0.0.1:{free_port()}"
        path = typed.write("a.ndjson", TEN)
        written, errors = typed.do(path, "--give-up", "0", "--json", code=3)
        told, error = map(json.loads, written.splitlines())
        assert (told["sent"], error["error"]["code"]) == (0, "unreached")
        assert "must answer, could not be reached (" in errors

    def test_what_it_asks_for_is_waited(self, typed: Typed) -> None:
        """`Retry-After` of a quota, without a word: it goes on."""
        typed.log.faults = ["429", ""]
        typed.served.fields = {"Retry-After": "1"}
        _, errors = typed.do(typed.write("a.ndjson", TEN), "--format", "ndjson")
        assert errors == ""
        assert len(typed.served.paths) == 2
        assert len(typed.log.identities) == 10

    def test_gzip_that_breaks_off(self, typed: Typed) -> None:
        """What was there is sent, but no half line; mended, it goes on."""
        whole = gzip.compress(os.urandom(90_000).hex().encode().join([b'{"n":"', b'"}\n{"n":2}\n']))
        raw = gzip.compress(TEN) + whole
        path = typed.write("a.ndjson.gz", raw[:-2_000])
        written, errors = typed.do(path, code=8)
        assert ": 10 accepted, " in written
        assert f"weir: {path} must be gzip to its end, got one that breaks off\n" in errors
        typed.write("a.ndjson.gz", raw)
        assert ": 2 accepted, " in typed.do(path)[0]
        assert len(typed.log.identities) == typed.log.identities.total() == 12

    @pytest.mark.parametrize("ending", [b"\0" * 512, b""])
    def test_gzip_of_several_members(self, typed: Typed, ending: bytes) -> None:
        """One after the other, and with zeros behind the last, as tapes have them."""
        path = typed.write("a.ndjson.gz", gzip.compress(TEN) * 3 + ending)
        assert ": 30 accepted, " in typed.do(path)[0]

    def test_another_input_does_not_end_the_others(self, typed: Typed) -> None:
        """One of which nothing is understood is told, once something was sent."""
        good, bad = typed.write("a.ndjson", TEN), typed.write("b.log", b"hello\n")
        last = typed.write("c.ndjson", TEN)
        words = ("--pattern", "(?P<n>{.*)")
        written, errors = typed.do(good, bad, last, *words, code=8)
        assert ": 20 accepted, " in written
        assert f"weir: {bad} must have entries that are understood, got 1 first ones" in errors
        written, errors = typed.do(bad, good, *words, "--restart", code=2)
        assert (written, len(typed.log.sizes)) == ("", 2)


class TestDryRun:
    def test_the_first_events(self, typed: Typed) -> None:
        """As they would be sent, without a key, an ingest, or a file that is written."""
        path = typed.write("a.csv", b"a\n" + b"1\n" * 20)
        typed.url = ""
        written, errors = typed.do(path, "--dry-run", "--type", "t")
        events = [json.loads(line) for line in written.splitlines()]
        assert len(events) == 10
        assert len({one["id"] for one in events}) == 10
        assert {one["type"] for one in events} == {"t"}
        assert errors.startswith(f"weir: {path} is read as CSV with the columns a, each row as of")
        assert list(typed.folder.iterdir()) == [path]

    def test_what_is_not_understood(self, typed: Typed) -> None:
        """By its line; the exit code says so."""
        path = typed.write("a.csv", b"a,b\n1\n")
        _, errors = typed.do(path, "--dry-run", code=8)
        assert errors.endswith(f"weir: {path}, line 2: a row must have 2 fields, got 1\n")


class TestOptions:
    @pytest.mark.parametrize(
        ("words", "why"),
        [
            ("--rate 0", "--rate must be more than 0 events a second, got 0"),
            ("--rate inf", "--rate must be more than 0 events a second, got inf"),
            ("--batch 0", "--batch must be between 1 and 10000, got 0"),
            ("--batch 10001", "--batch must be between 1 and 10000, got 10001"),
            ("--give-up -1", "--give-up must be 0 or more seconds, got -1"),
            ("--state a --no-state", "--state and --no-state exclude each other, got both"),
            ("--type=", "--type must be 1 to 512 printable signs, got ''"),
            (f"--source {'x' * 513}", "--source must be 1 to 512 printable signs, got 'xxx"),
            ("--name \x07", r"--name must be 1 to 512 printable signs, got '\x07'"),
            ("b --name x", "--name must come with one input, got 2; send them one by one"),
            ("b --state x", "--state must come with one input, got 2; send them one by one"),
            ("a.ndjson", "each input must be named once, got "),
            ("none", "none must be a file that can be read: No such file or directory"),
            (".", ". must be a file that can be read: Is a directory"),
            (
                "--url ftp://x",
                '--url or WEIR_INGEST_URL must be http://host:port, got "ftp://x"; g',
            ),
            ("--state a.ndjson/b", "a.ndjson/b must be a resume file that can be written: "),
        ],
    )
    def test_what_cannot_be_meant(
        self, typed: Typed, words: str, why: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Exit code 2, and nothing is sent."""
        monkeypatch.chdir(typed.folder)
        typed.write("a.ndjson", TEN)
        typed.write("b", TEN)
        _, errors = typed.do("a.ndjson", *words.split(" "), code=2)
        assert f"weir: {why}" in errors
        assert typed.served.paths == []

    def test_no_place_for_a_resume_file(
        self, typed: Typed, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As in an image whose user has no home."""

        def homeless(_path: Path) -> Path:
            raise RuntimeError

        monkeypatch.setattr(Path, "expanduser", homeless)
        path = typed.write("a.ndjson", TEN)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Typed, "environment", {"WEIR_INGEST_URL": typed.url, "WEIR_API_KEY": KEY})
            patch.delenv("XDG_STATE_HOME", raising=False)
            _, errors = typed.do(path, code=2)
            typed.do(path, "--no-state")
        assert (
            "a resume file must have a home, found none; set XDG_STATE_HOME, or give --state"
            in (errors)
        )

    def test_two_installations(self, typed: Typed) -> None:
        """What went to one did not go to the other."""
        path = typed.write("a.ndjson", TEN)
        typed.do(path)
        with serving() as other:
            typed.url = f"{other.url}/"
            typed.do(path)
            typed.url = other.url
            typed.do(path)
            assert (len(other.paths), len(typed.states())) == (1, 2)

    def test_at_a_rate(self, typed: Typed) -> None:
        """Batches are small, and it takes as long as it has to."""
        start_s = time.monotonic()
        typed.do(typed.write("a.ndjson", TEN), "--rate", "20")
        assert time.monotonic() - start_s >= 0.44
        assert max(typed.log.sizes) < 10
        assert sum(typed.log.sizes) == 10


class TestStandardInput:
    def send(self, typed: Typed, raw: bytes, *words: str | Path, code: int = 0) -> tuple[str, str]:
        """Send what stands on standard input."""
        process = typed.begin("-", *words, stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.buffer.write(raw)  # type: ignore[attr-defined]
        return finish(process, code)

    def test_without_a_name(self, typed: Typed) -> None:
        """Each run is an input of its own, and says so; nothing of it is kept."""
        for _ in range(2):
            _, errors = self.send(typed, TEN)
        assert len(typed.log.identities) == 20
        assert errors == (
            "weir: standard input is read as NDJSON; --format says otherwise\n"
            "weir: standard input has no --name: sent again by another run, it counts again\n"
        )
        assert typed.states() == []

    def test_with_a_name(self, typed: Typed) -> None:
        """The same again has the same ids; those of a file of that name, too, and compressed."""
        for raw in (TEN, gzip.compress(TEN)):
            self.send(typed, raw, "--name", "n", "--format", "ndjson")
        typed.do(typed.write("a.ndjson", TEN), "--name", "n")
        assert set(typed.log.identities.values()) == {3}
        assert len(typed.log.identities) == 10

    def test_with_a_resume_file(self, typed: Typed) -> None:
        """Where one is asked for what is confirmed is passed over."""
        words = ("--name", "n", "--state", typed.folder / "state")
        self.send(typed, TEN, *words)
        self.send(typed, TEN + b'{"n":2}\n', *words)
        assert typed.log.sizes == [10, 1]
        _, errors = self.send(typed, b'{"m":1}\n' + TEN, *words, code=2)
        assert "standard input must be the input of which 88 bytes were sent, got another" in errors
        _, errors = self.send(typed, TEN, "--state", typed.folder / "state", code=2)
        assert "--state must come with --name for standard input, which has no name of " in errors

    def test_what_comes_slowly(self, typed: Typed) -> None:
        """An event does not wait for a batch to be full, nor for the end."""
        process = typed.begin("-", "--format", "ndjson", stdin=subprocess.PIPE)
        assert process.stdin is not None
        for number in (1, 2):
            process.stdin.write(f'{{"n":{number}}}\n')
            process.stdin.flush()
            await_(lambda: len(typed.log.events) == number, "an event")  # noqa: B023
        process.send_signal(signal.SIGINT)
        written, _ = finish(process, 130)
        assert written.startswith("sent 2 in ")


class TestKilled:
    @pytest.mark.parametrize("fault", ["lost", "unheard"])
    @pytest.mark.parametrize("at", [1, 3])
    def test_it_goes_on(self, typed: Typed, fault: str, at: int) -> None:
        """A kill -9 before or behind the moment when a batch is stored: nothing lost, or double."""
        path = typed.write("a.ndjson", TEN)
        process = typed.begin(path, "--batch", "2")

        def hook() -> None:
            if len(typed.served.paths) == at:
                typed.log.faults = [fault]
                process.kill()
                process.wait()

        typed.served.hook = hook
        finish(process, -signal.SIGKILL)
        assert len(typed.log.events) == 2 * (at - 1) + 2 * (fault == "unheard")
        assert [state["at"]["offset"] for state in typed.states()] == [16 * (at - 1)]
        written, _ = typed.do(path, "--batch", "2")
        assert f": {10 - 2 * (at - 1)} accepted, " in written
        assert len(typed.log.identities) == 10
        assert typed.log.identities.total() == 10 + 2 * (fault == "unheard")

    def test_ctrl_c_waits_for_what_is_on_its_way(self, typed: Typed) -> None:
        """It is confirmed and told; another run sends the rest."""
        path = typed.write("a.ndjson", TEN)
        process = typed.begin(path, "--batch", "2", "--format", "ndjson")
        stopping = threading.Event()

        def hook() -> None:
            if len(typed.served.paths) == 2:
                process.send_signal(signal.SIGINT)
                stopping.wait(DEADLINE_S)

        typed.served.hook = hook
        assert process.stderr is not None
        told = process.stderr.readline()
        stopping.set()
        written, _ = finish(process, 130)
        assert told.startswith(
            "weir: stopping once ingest answers what was sent, in 5 s at most; C"
        )
        assert ": 4 accepted, 0 quarantined, 0 refused, 0 unknown\n" in written
        (state,) = typed.states()
        assert (state["at"]["offset"], state["tried_at_ms"]) == (32, None)
        typed.do(path)
        assert typed.log.identities.total() == len(typed.log.identities) == 10

    def test_ctrl_c_again_ends_at_once(self, typed: Typed) -> None:
        """What is on its way is sent again by another run."""
        path = typed.write("a.ndjson", TEN)
        process = typed.begin(path, "--batch", "2", "--format", "ndjson")
        over = threading.Event()

        def hook() -> None:
            if len(typed.served.paths) == 2:
                process.send_signal(signal.SIGINT)
                over.wait(DEADLINE_S)

        typed.served.hook = hook
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        written, errors = finish(process, 130)
        over.set()
        assert (written, errors) == ("", "")
        (state,) = typed.states()
        assert (state["at"]["offset"], state["tried_at_ms"] is None) == (16, False)

    def test_ctrl_c_while_it_waits(self, typed: Typed) -> None:
        """A pause ends at once; what has been tried is not known."""
        typed.log.always = "503"
        typed.served.fields = {"Retry-After": "60"}
        path = typed.write("a.ndjson", TEN)
        process = typed.begin(path, "--format", "ndjson")
        await_(lambda: typed.served.paths, "a request")
        process.send_signal(signal.SIGINT)
        written, errors = finish(process, 130)
        assert ", 10 unknown\n" in written
        assert "must answer" not in errors
        assert pacing.LONGEST_ASKED_S > DEADLINE_S
