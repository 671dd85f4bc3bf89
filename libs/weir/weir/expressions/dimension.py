"""Dimensions: what splits a metric into series, `data.region` or `url_host(data.url) as host`.

A dimension is a path, whose value may be any scalar, or an expression, which has a name behind
`as`. A number or a truth that is computed is split by its text, which is that of `to_text`. A text
that is computed may be many times as long as what events hold, so it is cut like every text that
is stored, before it becomes a part of a series.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from weir.expressions.errors import ExpressionError, wrong
from weir.expressions.evaluate import evaluate
from weir.expressions.functions import ALIASES, APPROXIMATED, TO_TEXT
from weir.expressions.leaves import check_paths, is_path, path_at
from weir.expressions.limits import check_size
from weir.expressions.numbers import scalar_text
from weir.expressions.parse import kind_of, located, parse_kind
from weir.expressions.parse_calls import truth_text
from weir.expressions.paths import Path
from weir.expressions.quotes import without_texts
from weir.expressions.syntax import syntax_of
from weir.expressions.tree import Call, Kind, Node, paths_of, walk
from weir.problems import echo
from weir.series import cut_text

# A text of the language ends in a quote, so no name within one is taken for this.
_NAMED: Final = re.compile(r"(?s)(.*\S)\s+as\s+([A-Za-z_][A-Za-z0-9_]*)\s*", re.IGNORECASE)
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SUBJECT: Final = Path(("subject",))


@dataclass(frozen=True, slots=True)
class Dimension:
    """One of them.

    Attributes:
        text: How it is written; the same text has the same values.
        source: Where its value is read, or what it is computed by.
        given: What it is called, if `as` says so.
    """

    text: str
    source: Path | Node
    given: str | None = None

    @property
    def path(self) -> Path | None:
        """Where its value is read; None if it is computed."""
        return self.source if isinstance(self.source, Path) else None

    @property
    def tree(self) -> Node | None:
        """What it is computed by; None if it is read."""
        return None if isinstance(self.source, Path) else self.source

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every path that it reads."""
        return (self.source,) if isinstance(self.source, Path) else paths_of(self.source)

    @property
    def called(self) -> tuple[str, ...]:
        """What it may be called in answers: the name that it is given, or those of its path."""
        if self.given is not None:
            return (self.given,)
        return (self.source.name, str(self.source)) if isinstance(self.source, Path) else ()

    def read(self, event: Mapping[str, Any]) -> str | None:
        """Return its value for an event; None: there is none.

        Raises:
            TypeError: If an object or an array stands at its path.
        """
        if isinstance(self.source, Path):
            return scalar_text(self.source.read(event))
        text = cast("str | None", evaluate(self.source, event))
        return None if text is None else cut_text(text)


def parse_dimension(text: str, *, written: bool = False) -> Dimension:
    """Return the dimension that a text names.

    Args:
        text: A path, or an expression; and `as` and a name behind it.
        written: It is about to be written; see `parse_kind`.

    Raises:
        ExpressionError: With place, requirement and mend.
    """
    return located(text, lambda: _parse(text, written=written))


def _parse(text: str, *, written: bool) -> Dimension:
    named = _NAMED.fullmatch(text)
    body, given = (named[1], named[2]) if named else (text, None)
    if given is not None and _NAME.fullmatch(given) is None:
        mend = "begin it with a letter: small letters, digits and _, 64 at most"
        raise wrong(given, "a name", mend, text.rindex(given))
    syntax = syntax_of(body).unnest()
    if is_path(syntax):
        check_paths(syntax)
        path = path_at(syntax)
        return Dimension(str(path) if given is None else f"{path} as {given}", path, given)
    tree = _text_tree(body, written=written)
    _check(body, tree, given, written=written)
    return Dimension(f"{body.strip()} as {given}", tree, given)


def _text_tree(body: str, *, written: bool) -> Node:
    """Return the tree of an expression's text, whatever it yields."""
    kind = kind_of(body) or Kind.TEXT
    tree = parse_kind(body, kind, written=written)
    if kind is Kind.NUMBER:
        tree = Call(TO_TEXT, (tree,), Kind.TEXT)
    elif kind is Kind.BOOL:
        tree = truth_text(tree)
    check_size(tree)
    return tree


def _check(body: str, tree: Node, given: str | None, *, written: bool) -> None:
    if given is None:
        names = (path.name for path in paths_of(tree) if _NAME.fullmatch(path.name))
        typed = body.strip()
        mend = f"give it a name: {echo(typed)} as {next(names, 'kind')}"
        raise wrong(typed, "a path, or an expression with a name", mend, body.index(typed))
    inexact = [n.name for n in walk(tree) if isinstance(n, Call) and n.name in APPROXIMATED]
    if inexact:
        mend = "a series must be the same wherever it is computed: split by something else"
        also = [name for name, of in ALIASES.items() if of == inexact[0]]
        raise _of_word(
            body, [inexact[0], *also], "an expression without exp, ln, log10 and power", mend
        )
    if written and _SUBJECT in paths_of(tree):
        mend = "whoever is erased could not be found in what is made of it; write subject alone"
        raise _of_word(body, [str(_SUBJECT)], "an expression that does not read subject", mend)


def _of_word(body: str, names: list[str], required: str, mend: str) -> ExpressionError:
    """Return the error of a word that an expression says, by one of its names."""
    word = rf"(?<![.\w])(?:{'|'.join(map(re.escape, names))})\b"
    found = re.search(word, without_texts(body), re.IGNORECASE)
    if found is None:  # in double quotes
        return wrong(names[0], required, mend)
    return wrong(found[0], required, mend, found.start())


def names_of(dimensions: Iterable[Dimension]) -> tuple[str, ...]:
    """Return what dimensions are called in answers.

    That is the name that each is given; else its path's last name, where that is unique, or the
    whole path.
    """
    called = [one.called for one in dimensions]
    first = [names[0] for names in called]
    return tuple(names[0] if first.count(names[0]) == 1 else names[-1] for names in called)
