"""The command line: `weir COMMAND …`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn, TextIO

from weir_cli import exits
from weir_cli.api import UnreachedError
from weir_cli.commands import COMMANDS
from weir_cli.telling import complain, put, say_error


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
    try:
        return _run(words)
    except KeyboardInterrupt:
        return exits.STOPPED


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
