"""What commands write: words for people, JSON for programs, refusals to standard error.

With `--json` an error is an object on standard output too, `{"error": {…}}`: standard error
holds progress and notes as well, which no program could tell from it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from weir_cli import exits
from weir_cli.api import Answer

# Values of dimensions and words of definitions are anybody's: a terminal obeys these signs.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Return a text in which nothing makes a terminal do anything."""
    return _CONTROL.sub("�", text)


lost: Final[list[str]] = []
"""Why standard output lacks something that was said, as on a full disk; empty if nobody lacks it:
who closes a pipe has read enough."""


def put(stream: TextIO, text: str) -> bool:
    """Write text at once, so that a pipe sees it too; return whether that went well.

    Once it does not, as behind `head` or on a full disk, all that follows goes nowhere and the
    work goes on: it must not be left half done, and the exit code says how it ended.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            lost.append(error.strerror or str(error))
        # What is left in the buffer would be written, and complained of, as Python ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return False
    return True


def say(text: str) -> bool:
    """Write a line; return whether somebody reads."""
    return put(sys.stdout, f"{printable(text)}\n")


def say_json(value: Any) -> bool:
    """Write a value as JSON on one line; return whether somebody reads."""
    text = json.dumps(value, ensure_ascii=False)
    escaped = _CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
    return put(sys.stdout, f"{escaped}\n")


def say_as_it_is(text: str) -> None:
    """Write what is to be put into a file, letter by letter; to a terminal as all else is."""
    if sys.stdout.isatty():
        text = printable(text.replace("\r\n", "\n"))
    put(sys.stdout, text)


def complain(text: str) -> None:
    """Write a line to standard error."""
    put(sys.stderr, f"weir: {printable(text)}\n")


def say_error(error: Mapping[str, Any]) -> None:
    """Write an error for programs.

    Args:
        error: Its `code`, `message` and `errors`, the places.
    """
    say_json({"error": dict(error)})


def refuse(answer: Answer, *, as_json: bool, job: str | None = None) -> None:
    """Write a refusal in the dashboard's words, and for programs if they read.

    Args:
        answer: The refusal.
        as_json: Whether programs read.
        job: Id of the job that was followed, which goes on.
    """
    first, *more = answer.told()
    complain(first)
    for line in more:
        put(sys.stderr, f"    {printable(line)}\n")
    if as_json:
        say_error(answer.error() | ({} if job is None else {"job": job}))


def say_list(
    answer: Answer,
    columns: Sequence[str],
    row: Callable[[dict[str, Any]], list[str]],
    *,
    as_json: bool,
) -> int:
    """Write the items of an answer, or why there are none; return the exit code.

    Args:
        answer: The dashboard's.
        columns: What stands above a table; nothing is written of no items.
        row: Returns an item's row of it.
        as_json: Write JSON, an object a line, in place of a table.
    """
    if not answer.is_ok:
        refuse(answer, as_json=as_json)
        return exits.REFUSED
    items = answer.body["items"]
    if as_json:
        for one in items:
            say_json(one)
    elif items:
        say("\n".join(table([list(columns), *map(row, items)])))
    return exits.DONE


def size(of_bytes: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in ("B", "kB", "MB", "GB"):
        if of_bytes < 1000:
            return f"{of_bytes:.3g} {unit}"
        of_bytes /= 1000
    return f"{of_bytes:,.3g} TB"


def instant(at_ms: int) -> str:
    """Return an instant as people read it: UTC, in seconds; beyond the years 1 to 9999 in ms."""
    try:
        at = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (ValueError, OverflowError):
        return f"{at_ms} ms"
    return at.strftime("%Y-%m-%d %H:%M:%SZ")


def table(rows: list[list[str]]) -> list[str]:
    """Return rows as lines with columns that stand below each other."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(_filled, row, widths)).rstrip() for row in rows]


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes: 2 for wide signs, 0 for combining."""
    if text.isascii():
        return len(text)
    return sum(_columns(sign) for sign in text)


def _columns(sign: str) -> int:
    if unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1


def _filled(cell: str, width: int) -> str:
    return cell + " " * (width - columns(cell))
