"""Which files a benchmark is made of, and their digest: whether a result is of the script here.

Comments, docstrings and layout do not count: what is measured is the same without them. Nor
does what only judges and shows results. What comes from outside `bench/` is the product, or
what it is compared with; of that a result names the commit.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
SHOWN = {"report", "bars", "sources"}
# What is no import of the module that runs it.
RUN_BY = {
    "job": ("marked_panes.py", "marked_daemon.py"),
    "flink_peer": ("flink/pom.xml", "flink/jars.lock", "flink/java/**/*.java"),
}
DIGITS = 12


def digest(name: str) -> str:
    """Return the digest of what a benchmark measures by; of one that is not there it is empty."""
    files = sources(name)
    seen = hashlib.sha256()
    for path in files:
        seen.update(f"{path.relative_to(HERE)}\0{meaning(path)}\0".encode())
    return seen.hexdigest()[:DIGITS] if files else ""


def sources(name: str) -> list[Path]:
    """Return the files in `bench/` that a benchmark is made of, each once."""
    waiting, found = [HERE / f"{name}.py"], set[Path]()
    while waiting:
        path = waiting.pop()
        if path in found or path.stem in SHOWN or not path.is_file():
            continue
        found.add(path)
        if path.suffix == ".py":
            waiting += [HERE / f"{module}.py" for module in imported(path.read_text())]
            waiting += [one for glob in RUN_BY.get(path.stem, ()) for one in HERE.glob(glob)]
    return sorted(found)


def imported(text: str) -> Iterator[str]:
    """Yield the first name of each module that a script imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def meaning(path: Path) -> str:
    """Return what a file does: of Python without docstrings, comments and layout."""
    text = path.read_text()
    return without_prose(text) if path.suffix == ".py" else text


def without_prose(text: str) -> str:
    """Return the statements of a script; texts that stand for themselves do nothing."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
