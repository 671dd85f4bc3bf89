"""Replaces one named function of Weir by a wrong one, before anybody can import it.

A mutant is a module of `tests/disruption/mutants` with `TARGET`, such as
`weir.commit:decide` or `weir_analytics.panes.store:ShardStore.commit`, and
`mutate(original)`, which returns what takes its place. Where several lines of defence hold a
fault off, a mutant of each is named, with `+` between them.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any


def install(name: str) -> None:
    """Have the targets of one mutant or several replaced as soon as their modules are imported.

    A mutant itself is imported only then: it may import what it replaces a part of.

    Raises:
        ValueError: If there is no such mutant, or it names no target.
    """
    for one in name.split("+"):
        sys.meta_path.insert(0, _Finder(target_of(one), f"mutants.{one}"))


def target_of(name: str) -> str:
    """Return what a mutant replaces, without importing it.

    Raises:
        ValueError: If there is no such mutant, or it names no target.
    """
    spec = importlib.util.find_spec(f"mutants.{name}")
    text = Path(spec.origin).read_text("utf-8") if spec is not None and spec.origin else ""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TARGET":
            return str(ast.literal_eval(node.value))
    msg = f'mutant must be a module of tests/disruption/mutants with a TARGET, got "{name}"'
    raise ValueError(msg)


def replace(module: ModuleType, path: str, mutate: Callable[[Any], Any]) -> None:
    """Replace what a path within a module names.

    Raises:
        AttributeError: If the name is gone: the mutant proves nothing any more.
    """
    *holders, last = path.split(".")
    holder: Any = module
    for step in holders:
        holder = getattr(holder, step)
    setattr(holder, last, mutate(getattr(holder, last)))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, target: str, mutant: str) -> None:
        self._module, _, self._path = target.partition(":")
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module's own spec, with a loader that replaces the function."""
        if fullname != self._module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                replace(module, self._path, importlib.import_module(self._mutant).mutate)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
