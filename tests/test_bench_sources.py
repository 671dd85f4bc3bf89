"""A result names its script: other statements make another one, other prose does not."""

from __future__ import annotations

from pathlib import Path

import pytest
import sources

SCRIPT = '''"""About it."""
import part
from os import path

LIMIT = 3


def measure() -> int:
    """Return it."""
    # three
    return LIMIT
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one benchmark of two files, and one that is of another."""
    monkeypatch.setattr(sources, "HERE", tmp_path)
    (tmp_path / "some.py").write_text(SCRIPT)
    (tmp_path / "part.py").write_text("import report\nONE = 1\n")
    (tmp_path / "other.py").write_text("TWO = 2\n")
    (tmp_path / "report.py").write_text("THREE = 3\n")
    return tmp_path


@pytest.mark.usefixtures("here")
def test_what_it_imports_is_part_of_it() -> None:
    """From the same folder, and not what only shows results."""
    assert [path.name for path in sources.sources("some")] == ["part.py", "some.py"]
    assert sources.digest("none") == ""


@pytest.mark.parametrize(
    ("file", "before", "after", "same"),
    [
        ("some.py", "LIMIT = 3", "LIMIT = 4", False),
        ("part.py", "ONE = 1", "ONE = 2", False),
        ("some.py", "# three", "# as many as needed", True),
        ("some.py", "Return it.", "Return all of it.", True),
        ("some.py", "LIMIT = 3", "LIMIT = (\n    3\n)", True),
        ("other.py", "TWO = 2", "TWO = 3", True),
        ("report.py", "THREE = 3", "THREE = 4", True),
    ],
)
def test_only_other_statements_make_another_digest(
    here: Path, file: str, before: str, after: str, same: bool
) -> None:
    """Of its own files; comments, docstrings and layout are not what is measured."""
    kept, path = sources.digest("some"), here / file
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    assert (sources.digest("some") == kept) is same


def test_what_is_run_and_not_imported_is_part_of_it() -> None:
    """Flink's side in Java, and the marked job."""
    flink = {path.name for path in sources.sources("flink")}
    assert {"Peer.java", "jars.lock", "pom.xml", "workload.py", "contest.py"} <= flink
    assert {"marked_panes.py", "job.py"} <= {path.name for path in sources.sources("rebuild")}
