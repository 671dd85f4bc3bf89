"""What the source says in errors: texts by where they are made, with "…" for what is filled in.

Nothing is run. A text is followed from the call that is given it to where it is written: through
names, constants, the functions of the same files, and either side of a choice. What cannot be
followed, such as the words of a library, is left out; so is what has no words of its own.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILLED_IN = "…"
Function = ast.FunctionDef | ast.AsyncFunctionDef
_WORD = re.compile(r"[^\W\d_]{2}")
# A function that calls itself would be followed for ever.
_DEEPEST = 12


@dataclass(frozen=True)
class Place:
    """Where an expression stands.

    Attributes:
        function: The innermost function; None outside of functions.
        deep: Through how many other expressions it was reached.
        is_part: Whether it is only a part of a text, of which "…" is said if it is not known.
    """

    function: Function | None
    deep: int = 0
    is_part: bool = False

    def below(self, function: Function | None, *, is_part: bool = False) -> Place:
        """Return the place of what is followed from here."""
        return Place(function, self.deep + 1, self.is_part or is_part)


@dataclass(frozen=True)
class Module:
    """A file of the source.

    Attributes:
        tree: What is written in it.
        beside: The files in which what it imports may be.
    """

    tree: ast.Module
    beside: list[Module] = field(default_factory=list, repr=False)

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Return its functions by name; no methods."""
        return {one.name: one for one in self.tree.body if isinstance(one, Function)}

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """Return what its names stand for that are set outside of functions."""
        found: dict[str, ast.expr] = {}
        for one in self.tree.body:
            if isinstance(one, ast.Assign):
                found |= {ast.unparse(to): one.value for to in one.targets}
            elif isinstance(one, ast.AnnAssign) and one.value is not None:
                found[ast.unparse(one.target)] = one.value
        return found

    def calls(self) -> Iterator[tuple[ast.Call, Function | None]]:
        """Yield every call, with the innermost function that it stands in."""
        yield from _calls_of([self.tree])

    def texts(self, node: ast.AST, function: Function | None) -> set[str]:
        """Return the texts that an expression may be, whichever way it is made.

        Args:
            node: The expression.
            function: Where it stands; None outside of functions.
        """
        return {text for text in self._texts(node, Place(function)) if _WORD.search(text)}

    def _texts(self, node: ast.AST, at: Place) -> set[str]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return {node.value}
        unknown = {FILLED_IN} if at.is_part else set()
        if at.deep > _DEEPEST:
            return unknown
        if isinstance(node, ast.JoinedStr):
            parts = [self._part(one, at) for one in node.values]
            told = ("".join(some) for some in itertools.product(*parts))
            return {re.sub(f"{FILLED_IN}+", FILLED_IN, text) for text in told}
        if isinstance(node, ast.Call):
            return self._called(node, at) or unknown
        followed = self._followed(node, at)
        return {text for one, of, place in followed for text in of._texts(one, place)} or unknown

    def _part(self, part: ast.expr, at: Place) -> set[str]:
        """Return what a part of a text may say."""
        if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
            found = self._texts(part.value, at.below(at.function, is_part=True))
            return {text if _WORD.search(text) else FILLED_IN for text in found}
        return {str(part.value)} if isinstance(part, ast.Constant) else {FILLED_IN}

    def _followed(self, node: ast.AST, at: Place) -> Iterator[tuple[ast.AST, Module, Place]]:
        """Yield what an expression that is no text itself may be, and where that stands."""
        here = at.below(at.function)
        if isinstance(node, ast.Name):
            yield from ((one, self, here) for one in _assigned(node.id, at.function))
            of = next((one for one in (self, *self.beside) if node.id in one.constants), None)
            if of is not None:
                yield of.constants[node.id], of, at.below(None)
        elif isinstance(node, ast.IfExp):
            yield from ((one, self, here) for one in (node.body, node.orelse))
        elif isinstance(node, ast.BoolOp):
            yield from ((one, self, here) for one in node.values)

    def _called(self, node: ast.Call, at: Place) -> set[str]:
        """Return what a function of these files returns; of another, what it is given."""
        called = node.func
        here = at.below(at.function)
        if isinstance(called, ast.Attribute) and called.attr == "format":
            templates = self._texts(called.value, here)
            return {re.sub(r"{[^}]*}", FILLED_IN, text) for text in templates}
        for module in (self, *self.beside):
            found = module.functions.get(ast.unparse(called))
            if found is not None:
                ends = (one.value for one in ast.walk(found) if isinstance(one, ast.Return))
                there = at.below(found)
                return {text for one in ends if one for text in module._texts(one, there)}
        given_to = () if at.is_part else node.args
        return {text for one in given_to for text in self._texts(one, here)}


def _calls_of(
    nodes: Iterable[ast.AST], function: Function | None = None
) -> Iterator[tuple[ast.Call, Function | None]]:
    for node in nodes:
        within = node if isinstance(node, Function) else function
        if isinstance(node, ast.Call):
            yield node, within
        yield from _calls_of(ast.iter_child_nodes(node), within)


def _assigned(name: str, function: Function | None) -> Iterator[ast.expr]:
    """Yield what a name is set to in a function, also beside other names."""
    for one in ast.walk(function) if function is not None else ():
        if isinstance(one, ast.Assign):
            for to in one.targets:
                if ast.unparse(to) == name:
                    yield one.value
                elif isinstance(to, ast.Tuple) and isinstance(one.value, ast.Tuple):
                    pairs = zip(to.elts, one.value.elts, strict=True)
                    yield from (value for of, value in pairs if ast.unparse(of) == name)
        elif isinstance(one, ast.NamedExpr | ast.AnnAssign):
            yield from (one.value,) if one.value and ast.unparse(one.target) == name else ()


def modules(*paths: str) -> list[Module]:
    """Return some files of the repository, and those of some folders; each knows the others."""
    files = [
        file
        for path in paths
        for file in ([ROOT / path] if path.endswith(".py") else sorted((ROOT / path).rglob("*.py")))
    ]
    found = [Module(ast.parse(file.read_text(encoding="utf-8"))) for file in files]
    for one in found:
        one.beside.extend(other for other in found if other is not one)
    return found


def given(of: Iterable[Module], arguments: Callable[[ast.Call], Iterable[ast.AST]]) -> set[str]:
    """Return the texts that calls are given.

    Args:
        of: The files.
        arguments: Returns which arguments of a call may be texts that somebody reads.
    """
    return {
        text
        for module in of
        for call, function in module.calls()
        for argument in arguments(call)
        for text in module.texts(argument, function)
    }


def raised(of: Iterable[Module], names: str) -> set[str]:
    """Return what the errors say whose names match a pattern, also what they say of themselves.

    A class that makes its own text gives it to `super().__init__`.
    """
    files = list(of)

    def is_one(name: str) -> bool:
        return re.fullmatch(names, name.rpartition(".")[2]) is not None

    found = given(files, lambda call: call.args if is_one(ast.unparse(call.func)) else ())
    for module in files:
        classes = (one for one in module.tree.body if isinstance(one, ast.ClassDef))
        for call, function in _calls_of(one for one in classes if is_one(one.name)):
            if ast.unparse(call.func) == "super().__init__":
                found |= {text for one in call.args for text in module.texts(one, function)}
    return found
