"""Folders of one life: gone with it, or found by the next one."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest
from weir_analytics.panes.scratch import LOCK, LONGEST_SOCKET, scratch, short_root
from weir_analytics.panes.session import open_session

from .conftest import settings_for

HOLDS = """
import sys
import tempfile
import uuid
from pathlib import Path
from weir_analytics.panes.scratch import scratch

with scratch(Path(sys.argv[1]), "life-") as folder:
    (folder / "unpacked").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def fail_in(root: Path) -> None:
    """Put something aside, and fail."""
    with scratch(root, "life-") as folder:
        (folder / "blocks" / "0a").mkdir(parents=True)
        assert (folder / LOCK).exists()
        raise KeyError


def test_it_goes_with_its_process(tmp_path: Path) -> None:
    """Nothing is left of who ended as it should."""
    with scratch(tmp_path, "life-") as folder:
        (folder / "blocks" / "0a").mkdir(parents=True)
        assert (folder / LOCK).exists()
    assert list(tmp_path.iterdir()) == []


def test_after_a_failure_it_goes_with_the_next(tmp_path: Path) -> None:
    """What was begun in it may still write there until its process has ended."""
    with pytest.raises(KeyError):
        fail_in(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    with scratch(tmp_path, "life-") as ours:
        assert list(tmp_path.iterdir()) == [ours]


def test_what_the_dead_left_goes_and_what_the_living_have_stays(tmp_path: Path) -> None:
    """Nothing of another name is touched, nor what has no lock yet."""
    other = tmp_path / "else-1"
    beginning = tmp_path / "life-beginning"
    for one in (other, beginning):
        one.mkdir()
    (other / LOCK).touch()
    with subprocess.Popen(  # noqa: S603  our own interpreter
        [sys.executable, "-c", HOLDS, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        with scratch(tmp_path, "life-") as ours:
            assert set(tmp_path.iterdir()) == {other, beginning, theirs, ours}
        process.send_signal(signal.SIGKILL)
    assert (theirs / "unpacked").exists()
    with scratch(tmp_path, "life-") as ours:
        assert set(tmp_path.iterdir()) == {other, beginning, ours}


@pytest.mark.parametrize(("length", "is_short"), [(40, True), (41, False)])
def test_sockets_have_paths_that_a_system_takes(
    monkeypatch: pytest.MonkeyPatch, length: int, is_short: bool
) -> None:
    """Where the usual place is too deep, another is taken."""
    usual = "/" + "x" * (length - 1)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: usual)
    assert (short_root() == Path(usual)) is is_short
    socket = f"{usual}/weir-panes-12345678/.{uuid.uuid4()}.sock"
    assert (len(socket) <= LONGEST_SOCKET) is is_short


@pytest.mark.spark
def test_a_session_after_another_has_its_workers(tmp_path: Path) -> None:
    """PySpark keeps its JVM, which has its sockets where the first session put them."""
    for name in ("one", "two"):
        with open_session(settings_for(tmp_path / name)) as session:
            frame = session.range(3).mapInArrow(lambda batches: batches, "id long")
            assert [row.id for row in frame.collect()] == [0, 1, 2]
