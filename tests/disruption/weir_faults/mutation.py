"""Replaces one named function of Weir by a wrong one, before anybody can import it.

A mutant is a module of `tests/disruption/mutants` with `TARGET`, such as
`weir.commit:decide` or `weir_analytics.panes.store:ShardStore.commit`, and
`mutate(original)`, which returns what takes its place.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


def install(name: str) -> None:
    """Have a mutant's target replaced as soon as its module is imported."""
    mutant = importlib.import_module(f"mutants.{name}")
    sys.meta_path.insert(0, _Finder(mutant.TARGET, mutant.mutate))


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
    def __init__(self, target: str, mutate: Callable[[Any], Any]) -> None:
        self._module, _, self._path = target.partition(":")
        self._mutate = mutate

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
                replace(module, self._path, self._mutate)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
