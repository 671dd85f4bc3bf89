"""What an input is: as the command line says, else by its name and its first line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from weir_cli.exits import UsageError
from weir_cli.sending.access import AccessLog, compiled
from weir_cli.sending.entries import Cutter, Entry, Point
from weir_cli.sending.fields import Shape
from weir_cli.sending.ndjson import Lines
from weir_cli.sending.tables import Table, first_row

FORMATS: Final = ("ndjson", "csv", "access-log")
_BY_NAME: Final = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
    ".tsv": "csv",
}
_MARK: Final = b"\xef\xbb\xbf"


class Format(Protocol):
    """How an input is read."""

    word: str

    def told(self) -> str:
        """Return what it is read as, in words."""
        ...

    def cutter(self, at: Point) -> Cutter:
        """Return what cuts an input from a point on."""
        ...

    def event(self, entry: Entry) -> bytes:
        """Return an entry as it is sent.

        Raises:
            NotUnderstoodError: If it is no event.
        """
        ...


@dataclass(frozen=True)
class Beginning:
    """What is known of an input before it is read.

    Attributes:
        label: What people call it.
        head: Its first bytes.
        is_whole: These are all of it.
    """

    label: str
    head: bytes
    is_whole: bool

    @property
    def text(self) -> Point:
        """Where its text begins: a byte order mark is none of it."""
        return Point(len(_MARK) if self.head.startswith(_MARK) else 0)

    @property
    def first_line(self) -> str:
        """Its first line with something in it."""
        lines = self.head[self.text.offset :].split(b"\n")
        return (
            next((line for line in lines if line.strip()), b"").decode("utf-8", "replace").strip()
        )


@dataclass(frozen=True)
class Chosen:
    """What the command line says of the format; empty for what it leaves open."""

    format: str = ""
    pattern: str = ""
    delimiter: str = ""


def read_as(beginning: Beginning, chosen: Chosen, shape: Shape) -> tuple[Format, Point]:
    """Return how an input is read, and where its first entry may begin.

    Raises:
        UsageError: If that cannot be told, or what is chosen does not fit.
    """
    word = chosen.format or ("access-log" if chosen.pattern else _guessed(beginning))
    for option, value, only in (
        ("--pattern", chosen.pattern, "access-log"),
        ("--delimiter", chosen.delimiter, "csv"),
    ):
        if value and word != only:
            msg = f"{option} must come with --format {only}, got it with {word}"
            raise UsageError(msg)
    if word == "csv":
        return _table(beginning, chosen.delimiter, shape)
    if word == "access-log":
        pattern = chosen.pattern or pattern_of(beginning.first_line) or "combined"
        return AccessLog(pattern, shape), beginning.text
    if shape.texts:
        msg = "--text must come with CSV or an access log, got it with NDJSON, which has types"
        raise UsageError(msg)
    return Lines(shape), beginning.text


def pattern_of(line: str) -> str:
    """Return the name of the pattern that a line matches; empty for none."""
    names = ("combined", "nginx", "common")
    return next((name for name in names if compiled(name).fullmatch(line)), "")


def _guessed(beginning: Beginning) -> str:
    name = beginning.label.lower().removesuffix(".gz")
    for ending, word in _BY_NAME.items():
        if name.endswith(ending):
            return word
    line = beginning.first_line
    if line.startswith("{") or not line:
        return "ndjson"
    if pattern_of(line):
        return "access-log"
    hint = (
        "`jq -c '.[]'` makes lines of a JSON array"
        if line.startswith("[")
        else f"give --format {', '.join(FORMATS)}"
    )
    msg = f"{beginning.label} must show what it is by its name or its first line; {hint}"
    raise UsageError(msg)


def _table(beginning: Beginning, delimiter: str, shape: Shape) -> tuple[Format, Point]:
    is_tabbed = beginning.label.lower().removesuffix(".gz").endswith(".tsv")
    sign = delimiter.replace("\\t", "\t") or ("\t" if is_tabbed else ",")
    if len(sign) != 1 or not sign.isascii() or sign in '"\r\n':
        msg = f"--delimiter must be one ASCII sign, or \\t for a tab, got {delimiter!r}"
        raise UsageError(msg)
    row = first_row(beginning.head, beginning.text, sign, is_whole=beginning.is_whole)
    if row is None:
        msg = f"{beginning.label} must begin with a row that names its columns, found none"
        raise UsageError(msg)
    columns = tuple(name.strip() for name in row.fields)
    return Table(columns, sign, shape), row.after
