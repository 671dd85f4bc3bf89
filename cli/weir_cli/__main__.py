"""The command line: `weir COMMAND …`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from weir_cli import exits
from weir_cli.api import UnreachedError
from weir_cli.commands import COMMANDS
from weir_cli.telling import complain, say_error


class Parser(argparse.ArgumentParser):
    """A parser whose errors are told as all others are."""

    def error(self, message: str) -> NoReturn:
        """Refuse words that cannot be meant.

        Raises:
            UsageError: Always.
        """
        self.print_usage(sys.stderr)
        raise exits.UsageError(message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        return _run(words)
    except KeyboardInterrupt:
        return exits.STOPPED
    except BrokenPipeError:
        # Whoever read has seen enough, as `head` does; Python would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.DONE


def _run(words: Sequence[str]) -> int:
    """Run a command; what ends it is told."""
    # Words that cannot be read are answered in JSON too.
    as_json = "--json" in words
    try:
        asked = parser().parse_args(words)
        as_json = getattr(asked, "json", as_json)
        code: int = asked.run(asked)
    except (exits.UsageError, UnreachedError) as error:
        complain(str(error))
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
