"""Definitions as they stand in files: each with its own text, and where it comes from."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from weir.definitions.text import parse_text, split_text
from weir.problems import ProblemError

from weir_cli.exits import UsageError

STDIN = Path("-")
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
# What others are written against comes first: a rule is refused where its metric is not known.
FIRST = ("source", "metric", "channel", "rule")


@dataclass(frozen=True)
class Written:
    """A definition in a file.

    Attributes:
        kind: Its kind, unchecked.
        name: Its name, unchecked.
        text: The text as it was written.
        origin: The file, and its place there if it has several.
        metric: The metric that it names, unchecked; empty for none.
    """

    kind: str
    name: str
    text: str
    origin: str
    metric: str = ""

    @property
    def title(self) -> str:
        """Return kind and name as people write them."""
        return f"{self.kind}/{self.name}"


def read_all(paths: Sequence[Path]) -> list[Written]:
    """Return the definitions of files and of folders' files, in the order to send them.

    Args:
        paths: Files of one or more definitions, or folders; of a folder those files that
            lie in it or below and end in .yaml, .yml or .json. `-` is standard input.

    Raises:
        UsageError: If one cannot be read or holds no definitions, or two are the same.
    """
    found = [one for path in _files(paths) for one in _read(path)]
    if not found:
        msg = f"there must be definitions in {_listed(paths)}, found none"
        raise UsageError(msg)
    by_title: dict[str, Written] = {}
    for one in found:
        if (other := by_title.setdefault(one.title, one)) is not one:
            msg = f"{one.title} must be written once, found in {other.origin} and {one.origin}"
            raise UsageError(msg)
    return sorted(found, key=_rank)


def _rank(one: Written) -> int:
    return FIRST.index(one.kind) if one.kind in FIRST else len(FIRST)


def _files(paths: Sequence[Path]) -> Iterable[Path]:
    for path in paths:
        if path.is_dir():
            # A mounted ConfigMap shows each file twice: the second way leads over `..data`.
            yield from sorted(
                file
                for file in path.rglob("*")
                if file.suffix in SUFFIXES
                and file.is_file()
                and not any(part.startswith(".") for part in file.relative_to(path).parts)
            )
        else:
            yield path


def text_of(path: Path) -> str:
    """Return what a file holds, or standard input for `-`.

    Raises:
        OSError: If it cannot be read.
        UnicodeDecodeError: If it is not UTF-8.
    """
    read = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    return read.decode("utf-8")


def _read(path: Path) -> list[Written]:
    origin = "standard input" if path == STDIN else str(path)
    try:
        text = text_of(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        msg = f"{origin} must be a readable file of definitions: {why}"
        raise UsageError(msg) from None
    texts = split_text(text)
    return [
        _written(one, f"{origin}, definition {number}" if len(texts) > 1 else origin)
        for number, one in enumerate(texts, 1)
    ]


def _written(text: str, origin: str) -> Written:
    try:
        parsed = parse_text(text)
    except ProblemError as problem:
        msg = f"{origin}: {problem.message}"
        raise UsageError(msg) from None
    kind, name = parsed.get("kind"), parsed.get("name")
    for member, value in (("kind", kind), ("name", name)):
        if not isinstance(value, str) or not value:
            msg = f'{origin}: a definition must have a text as "{member}", got {value!r}'
            raise UsageError(msg)
    return Written(str(kind), str(name), text, origin, str(parsed.get("metric") or ""))


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join("standard input" if path == STDIN else str(path) for path in paths)
