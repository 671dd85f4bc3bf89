"""Files that stay mapped: read once, but never another one's content."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from weir_analytics.panes import mapped as module
from weir_analytics.panes.mapped import KEPT_S, mapped


def reading(seen: list[str], path: Path) -> str:
    """Return what a file holds, and note that it was read."""

    def read(one: Path) -> str:
        seen.append(one.name)
        return one.read_text()

    return mapped(path, read)


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """However often it is asked for."""
    seen = list[str]()
    (tmp_path / "a").write_text("1")
    for _ in range(3):
        assert reading(seen, tmp_path / "a") == "1"
    assert seen == ["a"]


def test_another_file_of_the_name_is_read(tmp_path: Path) -> None:
    """A batch that comes again renames its run over the one of before, as large and as old."""
    seen = list[str]()
    (tmp_path / "a").write_text("1")
    reading(seen, tmp_path / "a")
    (tmp_path / ".a").write_text("2")
    of_before = (tmp_path / "a").stat()
    os.utime(tmp_path / ".a", ns=(of_before.st_atime_ns, of_before.st_mtime_ns))
    (tmp_path / ".a").rename(tmp_path / "a")
    assert reading(seen, tmp_path / "a") == "2"
    assert seen == ["a", "a"]


def test_one_that_is_gone_is_gone(tmp_path: Path) -> None:
    """What is kept of it answers for nobody."""
    (tmp_path / "a").write_text("1")
    reading([], tmp_path / "a")
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError):
        reading([], tmp_path / "a")


def test_what_nobody_asks_for_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deleted file takes its place on the disk for so long as it is mapped."""
    now_s = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(module, "_swept_s", 0.0)
    monkeypatch.setattr(module, "_files", {})
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        reading([], tmp_path / name)
    now_s[0] += KEPT_S
    reading([], tmp_path / "b")
    now_s[0] += 2.0
    reading([], tmp_path / "b")
    assert list(module._files) == [tmp_path / "b"]
