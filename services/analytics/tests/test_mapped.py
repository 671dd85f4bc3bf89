"""Files that stay mapped: read once, but never another one's content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from weir.clock import ManualClock
from weir_analytics.panes.mapped import KEPT_S, Mapped


class Reading:
    """Files that are kept, and which were read."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.files = Mapped(self.clock)
        self.seen: list[str] = []

    def text(self, path: Path) -> str:
        """Return what a file holds."""

        def read(one: Path) -> str:
            self.seen.append(one.name)
            return one.read_text()

        return self.files.read(path, read)


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    """Return one that has read two files."""
    found = Reading()
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        found.text(tmp_path / name)
    found.files.keep_only(tmp_path, ["a", "b"])
    assert found.seen == ["a", "b"]
    found.seen.clear()
    return found


def test_a_file_is_read_once(tmp_path: Path, reading: Reading) -> None:
    """However often it is asked for."""
    for _ in range(3):
        assert reading.text(tmp_path / "a") == "a"
    assert reading.seen == []


def test_another_file_of_the_name_is_read(tmp_path: Path, reading: Reading) -> None:
    """A batch that comes again renames its run over the one of before, as large and as old."""
    (tmp_path / ".a").write_text("2")
    of_before = (tmp_path / "a").stat()
    os.utime(tmp_path / ".a", ns=(of_before.st_atime_ns, of_before.st_mtime_ns))
    (tmp_path / ".a").rename(tmp_path / "a")
    assert reading.text(tmp_path / "a") == "2"
    assert reading.seen == ["a"]


def test_one_that_is_gone_is_gone(tmp_path: Path, reading: Reading) -> None:
    """What is kept of it answers for nobody."""
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError):
        reading.text(tmp_path / "a")


def test_what_is_not_in_the_folder_is_let_go(tmp_path: Path, reading: Reading) -> None:
    """A deleted file takes its place on the disk for so long as it is kept."""
    reading.files.keep_only(tmp_path, ["b"])
    reading.text(tmp_path / "b")
    reading.text(tmp_path / "a")
    assert reading.seen == ["a"]


def test_a_folder_that_nobody_looks_at_is_let_go(tmp_path: Path, reading: Reading) -> None:
    """Another worker has the partition now, or its lane is done."""
    reading.clock.advance(round(1_000 * KEPT_S))
    reading.files.keep_only(tmp_path / "other", [])
    reading.text(tmp_path / "a")
    assert reading.seen == []
    reading.clock.advance(1)
    reading.files.keep_only(tmp_path / "other", [])
    reading.text(tmp_path / "a")
    assert reading.seen == ["a"]
