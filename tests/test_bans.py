"""What no source of Weir may call: ways from a text to code.

A definition is somebody's text. It becomes a tree and then columns, node by node; nothing
in between takes text for a program. Read from the source by AST, so that no spelling
hides a call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("libs", "services", "cli", "infra", "bench")
NAMES = {"eval", "exec", "compile", "__import__"}
METHODS = {"expr", "selectExpr", "sql", "createTempView", "registerTempTable"}
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
# Frames take a condition as SQL where it is a text.
OF_FRAMES = {"filter", "where"}
# sqlglot writes its own tree back as text, to tell somebody what was wrong.
ALLOWED = {("libs/weir/weir/expressions/syntax.py", "sql")}


def faults(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of everything in a source that is banned."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, one.name) for one in node.names if _banned(one.name))
        elif isinstance(node, ast.ImportFrom):
            yield from _of_import(node)
        elif isinstance(node, ast.Call):
            yield from _of_call(node)


def _banned(module: str) -> bool:
    return module.partition(".")[0] in MODULES


def _of_import(node: ast.ImportFrom) -> Iterator[tuple[int, str]]:
    if node.level == 0 and _banned(node.module or ""):
        yield node.lineno, str(node.module)
    for one in node.names:
        spark = (node.module or "").startswith("pyspark") and one.name in METHODS
        if spark or (node.module == "yaml" and one.name != "safe_load"):
            yield node.lineno, one.name


def _of_call(node: ast.Call) -> Iterator[tuple[int, str]]:
    called = node.func
    if isinstance(called, ast.Name) and called.id in NAMES:
        yield node.lineno, called.id
    if not isinstance(called, ast.Attribute):
        return
    of_yaml = isinstance(called.value, ast.Name) and called.value.id == "yaml"
    if called.attr in METHODS or (of_yaml and called.attr in ("load", "load_all", "unsafe_load")):
        yield node.lineno, called.attr
    if called.attr in OF_FRAMES and any(map(_is_text, node.args)):
        yield node.lineno, called.attr


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def sources() -> list[Path]:
    """Return every Python file that is not a test."""
    found = (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if not {"tests", "node_modules"} & set(path.parts))


def test_no_text_becomes_code() -> None:
    """No source evaluates, executes or unpickles anything, or hands Spark a text as SQL."""
    found = [
        (name, line, what)
        for path in sources()
        for name in [path.relative_to(ROOT).as_posix()]
        for line, what in faults(path.read_text(encoding="utf-8"))
        if (name, what) not in ALLOWED
    ]

    assert found == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("F.expr(text)", "expr"),
        ("from pyspark.sql.functions import expr", "expr"),
        ("frame.selectExpr('a')", "selectExpr"),
        ("spark.sql(text)", "sql"),
        ("frame.filter('a > 1')", "filter"),
        ("frame.where(f'{column} > 1')", "where"),
        ("eval(text)", "eval"),
        ("exec(text)", "exec"),
        ("compile(text, '', 'eval')", "compile"),
        ("import pickle", "pickle"),
        ("import pickle as p", "pickle"),
        ("from pickle import loads", "pickle"),
        ("import yaml\nyaml.load(text)", "load"),
        ("from yaml import load", "load"),
    ],
)
def test_each_ban_bites(source: str, what: str) -> None:
    """Each way that is banned is found where it stands."""
    assert [name for _line, name in faults(source)] == [what]


@pytest.mark.parametrize(
    "source", ["frame.where(F.col('a') > 1)", "re.compile('a')", "yaml.safe_load(text)", "sql = 1"]
)
def test_what_is_alike_is_not_banned(source: str) -> None:
    """What only looks like it is left alone."""
    assert list(faults(source)) == []
