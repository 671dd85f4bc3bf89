"""What ends a tree: paths and literals, out of sqlglot's nodes."""

from __future__ import annotations

import math
from typing import Any, Final

from sqlglot import exp

from weir.expressions.errors import not_allowed, wrong
from weir.expressions.paths import (
    MAX_ELEMENT,
    MAX_PARTS,
    TEXT_ATTRIBUTES,
    TIME,
    TOO_MANY_PARTS,
    Path,
    element,
    element_at,
    fault_of,
    fault_of_name,
)
from weir.expressions.syntax import position, said
from weir.expressions.tree import Constant, Kind

_PATHS: Final = (exp.Column, exp.Dot, exp.Bracket)


def is_path(syntax: Any) -> bool:
    """Tell whether a node can only be a path, right or wrong."""
    return isinstance(syntax, _PATHS)


def attribute_kind(name: str) -> Kind | None:
    """Return the kind of an attribute of the envelope, None of any other name."""
    if name == TIME:
        return Kind.NUMBER
    return Kind.TEXT if name in TEXT_ATTRIBUTES else None


def quoted_alone(syntax: Any) -> str | None:
    """Return the name that stands alone and in double quotes; None of anything else."""
    if not isinstance(syntax, exp.Column) or syntax.table or not syntax.this.args.get("quoted"):
        return None
    return str(syntax.name)


def check_paths(syntax: Any) -> None:
    """Check that no path of an expression has more names than any that may be read.

    It comes before whatever else may refuse the expression: sqlglot nests the names of a path,
    and what reads one of some hundreds may recurse.

    Raises:
        ExpressionError: If one has.
    """
    # Breadth first, so of each path the whole is found before its parts.
    for node in filter(is_path, syntax.walk()):
        links = _links(node)
        head = links[-1]
        if len(links) - 1 + (len(head.parts) if isinstance(head, exp.Column) else 1) > MAX_PARTS:
            raise wrong(said(node), *TOO_MANY_PARTS, position(node))


def _links(syntax: Any) -> list[Any]:
    """Return the nodes of a path: the whole, the whole without its last name, and so on."""
    links = [syntax]
    while isinstance(links[-1], exp.Dot | exp.Bracket):
        links.append(links[-1].this.unnest())
    return links


def path_at(syntax: Any) -> Path:
    """Return the path that a node is.

    Raises:
        ExpressionError: If it is none that may be read.
    """
    parts = parts_of(syntax)
    fault = fault_of(parts)
    if fault:
        raise wrong(said(syntax), fault[0], fault[1], position(syntax))
    return Path(parts)


def parts_of(syntax: Any) -> tuple[str, ...]:
    """Return names and elements that a node says, whether or not an event has such a path.

    Raises:
        ExpressionError: If it says something else.
    """
    *links, head = _links(syntax)
    parts = [
        _element(link) if isinstance(link, exp.Bracket) else _name(link.expression, syntax)
        for link in links
    ]
    if not isinstance(head, exp.Column):
        raise not_allowed(said(syntax), "name one member: data.amount", position(syntax))
    parts += [_name(part, syntax) for part in reversed(head.parts)]
    return tuple(reversed(parts))


def _name(part: Any, syntax: Any) -> str:
    if not isinstance(part, exp.Identifier):
        raise not_allowed(said(syntax), "name one member: data.amount", position(syntax))
    name = str(part.name)
    # A member that is called "[0]" would else be taken for an element.
    fault = fault_of_name(name) if element_at(name) is not None else None
    if fault:
        raise wrong(said(syntax), fault[0], fault[1], position(syntax))
    return name


def _element(bracket: Any) -> str:
    inner = bracket.expressions
    digits = str(inner[0].this) if len(inner) == 1 and isinstance(inner[0], exp.Literal) else ""
    if digits.isdecimal() and digits.isascii() and not inner[0].is_string:
        number = int(digits[:9])
        if number <= MAX_ELEMENT:
            return element(number)
    required = f"a whole number from 0 to {MAX_ELEMENT} in brackets"
    # Of `[:]` nothing was read that has a place of its own.
    place = inner[0] if len(inner) == 1 and position(inner[0]) is not None else bracket
    mend = 'elements are counted from 0: data.items[0]; a name stands in quotes: data."a b"'
    raise wrong(said(place), required, mend, position(place))


def literal_of(syntax: Any) -> Constant | None:
    """Return a literal, with its sign; None if it is not one.

    Raises:
        ExpressionError: If it is a number beyond a double.
    """
    if isinstance(syntax, exp.Neg):
        inner = literal_of(syntax.this.unnest())
        if inner is None or not isinstance(inner.value, float):
            return None
        return Constant(0.0 - inner.value, Kind.NUMBER)
    if isinstance(syntax, exp.Boolean):
        return Constant(bool(syntax.this), Kind.BOOL)
    if not isinstance(syntax, exp.Literal):
        return None
    if syntax.is_string:
        return Constant(str(syntax.this), Kind.TEXT)
    try:
        number = float(str(syntax.this))
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        required = "a number between -1.8e308 and 1.8e308"
        raise wrong(said(syntax), required, "write a smaller one", position(syntax))
    return Constant(number, Kind.NUMBER)
