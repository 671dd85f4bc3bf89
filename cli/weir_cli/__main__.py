"""The command line: `weir COMMAND …`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from weir_cli import exits
from weir_cli.api import UnreachedError
from weir_cli.commands import COMMANDS
from weir_cli.telling import complain


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    asked = parser().parse_args(arguments)
    try:
        code: int = asked.run(asked)
    except exits.UsageError as error:
        complain(str(error))
        return exits.USAGE
    except UnreachedError as error:
        complain(str(error))
        return exits.UNREACHED
    except KeyboardInterrupt:
        return exits.STOPPED
    except BrokenPipeError:
        # Whoever read has seen enough, as `head` does; Python would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.DONE
    return code


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    whole = argparse.ArgumentParser(
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
