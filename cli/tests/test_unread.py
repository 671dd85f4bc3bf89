"""What a command does once nobody reads what it writes: it goes on, and its exit code is its own.

Each runs in a process of its own, with one end of a pipe that is closed from the start, as that
behind `head` is sooner or later; or with a file that takes nothing, as on a full disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .conftest import Command, finish
from .serving import Given, serving
from .test_live import dashboard, tell
from .test_top import FRAMES

CSV = {"Content-Type": "text/csv; charset=utf-8"}


@contextmanager
def unread() -> Iterator[int]:
    """Give what a process may write to, and nobody reads."""
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        yield theirs
    finally:
        os.close(theirs)


def answering(_method: str, path: str, body: Any) -> Given:
    """Answer as a dashboard that stores everything but what is called bad."""
    found = body["definitions"] if isinstance(body, dict) and "definitions" in body else []
    if path.endswith("/plan"):
        diff = {"old_version": None}
        told = {"ok": True, "diff": diff, "estimate": None}
        bad = {"ok": False, "code": "definition_invalid", "message": "no"}
        return 200, {"items": [bad if one["name"] == "bad" else told for one in found]}, {}
    if path.endswith("/apply"):
        return 200, {"items": [{"outcome": "created", "version": 1} for _ in found]}, {}
    if path.endswith("/query"):
        return 200, "time,value\r\n" * (20_000 if body["metric"] == "many" else 1), CSV
    if "/jobs" in path:
        return (
            200,
            {"id": "j_1", "job": "audit", "state": "done", "outcome": {"verified": False}},
            {},
        )
    return 200, {"version": 1, "state": "active", "text": "kind: board\nname: a\n"}, {}


def board(name: str) -> str:
    """Return the text of a definition."""
    return f"kind: board\nname: {name}\n"


def test_a_refusal_keeps_its_exit_code(tmp_path: Path) -> None:
    """A check in a pipe is not passed by what reads its lines."""
    (tmp_path / "bad.yaml").write_text(board("bad"))
    with serving(by=answering) as served, unread() as pipe:
        process = Command(tmp_path, served.url, "wk_key").begin(
            "check", "-f", tmp_path, stdout=pipe
        )
        assert finish(process, 1)[1] == ""


def test_all_of_it_is_stored(tmp_path: Path) -> None:
    """Also what is sent in a request after the first lines were told."""
    names = [f"b{number}" for number in range(450)]
    (tmp_path / "all.yaml").write_text("---\n".join(map(board, names)))
    with serving(by=answering) as served, unread() as pipe:
        process = Command(tmp_path, served.url, "wk_key").begin(
            "apply", "-f", tmp_path, stdout=pipe
        )
        assert finish(process)[1] == ""
    stored = [len(body["definitions"]) for _, path, body in served.asked if path.endswith("/apply")]
    assert stored == [400, 50]


def test_a_job_is_followed_to_its_end(tmp_path: Path) -> None:
    """With neither progress nor outcome to be told, the code says what it found."""
    running = {"id": "j_1", "job": "audit", "state": "running"}

    def answer(method: str, path: str, body: Any) -> Given:
        return (202, running, {}) if method == "POST" else answering(method, path, body)

    with serving(by=answer) as served, unread() as pipe:
        process = Command(tmp_path, served.url, "wk_key").begin("audit", stdout=pipe, stderr=pipe)
        assert process.wait(60) == 4
    assert [method for method, _, _ in served.asked] == ["POST", "GET"]


@pytest.mark.parametrize(
    "words",
    [
        "get board/a",
        "query few rate --csv",
        "query many rate --csv",
        "completion bash",
        "--help",
        "query --help",
        "jobs j_1 --detach --json",
    ],
)
def test_nothing_is_complained_of(tmp_path: Path, words: str) -> None:
    """Neither a short text, which would be met as Python ends, nor one beyond a pipe's buffer."""
    with serving(by=answering) as served, unread() as pipe:
        process = Command(tmp_path, served.url, "wk_key").begin(*words.split(), stdout=pipe)
        assert finish(process, 4 if words.startswith("jobs") else 0)[1] == ""


@pytest.mark.parametrize("words", ["get", "get --nothing", "query"])
def test_so_it_is_where_nobody_reads_errors(tmp_path: Path, words: str) -> None:
    """The exit code is that of the refusal, or of the usage that was to be told."""
    with serving((403, {"message": "no"}, {})) as served, unread() as pipe:
        process = Command(tmp_path, served.url, "wk_key").begin(
            *words.split(), stdout=subprocess.DEVNULL, stderr=pipe
        )
        assert process.wait(60) == (1 if words == "get" else 2)


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_what_only_shows_ends(tmp_path: Path, words: tuple[str, ...]) -> None:
    """`weir top` would go on for ever, and nobody could tell."""
    with (
        dashboard(lambda connection, _: tell(connection, FRAMES), "orders") as url,
        unread() as pipe,
    ):
        process = Command(tmp_path, url, "wk_key").begin("top", *words, stdout=pipe)
        try:
            assert finish(process)[1] == ""
        finally:
            process.kill()
            process.wait()


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a file that is always full")
class TestAFullDisk:
    def test_it_is_told_and_all_is_stored(self, tmp_path: Path) -> None:
        """Also what is sent after the first line that could not be written."""
        names = [f"b{number}" for number in range(450)]
        (tmp_path / "all.yaml").write_text("---\n".join(map(board, names)))
        with serving(by=answering) as served, FULL.open("w") as full:
            process = Command(tmp_path, served.url, "wk_key").begin(
                "apply", "-f", tmp_path, stdout=full.fileno()
            )
            told = finish(process, 7)[1]
        stored = [len(b["definitions"]) for _, path, b in served.asked if path.endswith("/apply")]
        assert stored == [400, 50]
        assert told.splitlines() == [
            "weir: standard output must take all that is written, got: No space left on device;"
            " what was asked for went on, and a part of what it said is missing: write it elsewhere"
        ]

    def test_another_exit_code_stays(self, tmp_path: Path) -> None:
        """A check that fails is not told from one whose lines are missing by 7."""
        (tmp_path / "bad.yaml").write_text(board("bad"))
        with serving(by=answering) as served, FULL.open("w") as full:
            process = Command(tmp_path, served.url, "wk_key").begin(
                "check", "-f", tmp_path, stdout=full.fileno()
            )
            assert "standard output must take" in finish(process, 1)[1]

    def test_one_of_errors_hides_no_exit_code(self, tmp_path: Path) -> None:
        """Nowhere is left where it could be told."""
        with serving((403, {"message": "no"}, {})) as served, FULL.open("w") as full:
            process = Command(tmp_path, served.url, "wk_key").begin("get", stderr=full.fileno())
            assert finish(process, 1)[0] == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_what_the_caller_has_closed_is_taken_by_no_socket(closed: str) -> None:
    """Python has no stream there, and the next file that is opened would have its number."""
    with serving(by=answering) as served:
        done = subprocess.run(  # noqa: S603  the command is ours
            [
                "/bin/sh",
                "-c",
                f'exec "$0" -m weir_cli query few rate --csv {closed}',
                sys.executable,
            ],
            env=os.environ | {"WEIR_DASHBOARD_URL": served.url, "WEIR_API_KEY": "wk_key"},
            capture_output=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (b"" if ">&-" in closed.replace("2>&-", "") else b"time,value\r\n")
