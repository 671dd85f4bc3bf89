"""The command line: `weir COMMAND …`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from weir_cli import exits
from weir_cli.api import UnreachedError
from weir_cli.commands import COMMANDS
from weir_cli.telling import complain, lost, put, say_error


class Parser(argparse.ArgumentParser):
    """A parser whose errors are told as all others are."""

    def error(self, message: str) -> NoReturn:
        """Refuse words that cannot be meant.

        Raises:
            UsageError: Always.
        """
        self.print_usage(sys.stderr)
        raise exits.UsageError(message)

    def _print_message(self, message: str, file: TextIO | None = None) -> None:  # type: ignore[override]
        # argparse's own leaves help in a buffer, and a closed pipe is met as Python ends.
        put(file or sys.stderr, message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    _open_what_is_closed()
    try:
        code = _run(words)
    except KeyboardInterrupt:
        code = exits.STOPPED
    if lost:
        complain(
            f"standard output must take all that is written, got: {lost[0]}; what was asked for"
            " went on, and a part of what it said is missing: write it elsewhere"
        )
    return exits.UNWRITTEN if lost and code == exits.DONE else code


def _open_what_is_closed() -> None:
    """Lead to nowhere what the caller has closed (`>&-`), before a socket takes its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def _run(words: Sequence[str]) -> int:
    """Run a command; what ends it is told."""
    # Words that cannot be read are answered in JSON too.
    as_json = "--json" in words
    try:
        asked = parser().parse_args(words)
        as_json = getattr(asked, "json", as_json)
        code: int = asked.run(asked)
    except (exits.UsageError, UnreachedError) as error:
        for text in (str(error), *getattr(error, "__notes__", ())):
            complain(text)
        if as_json:
            say_error(error.error())
        return exits.UNREACHED if isinstance(error, UnreachedError) else exits.USAGE
    return code


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    whole = Parser(
        prog="weir",
        description="Speaks to a Weir over its public HTTP API.",
        epilog=exits.EXPLAINED,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return whole


if __name__ == "__main__":
    sys.exit(main())
