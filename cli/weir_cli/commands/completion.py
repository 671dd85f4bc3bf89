"""`weir completion SHELL`: what completes words of `weir` in bash, zsh or fish.

$ eval "$(weir completion bash)"                                    # in ~/.bashrc
$ weir completion zsh > ~/.zfunc/_weir                              # a folder of fpath
$ weir completion fish > ~/.config/fish/completions/weir.fish
"""

from __future__ import annotations

import argparse
from typing import Any

from weir_cli import exits
from weir_cli.completing import SHELLS, words_of
from weir_cli.telling import say_as_it_is


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "completion",
        help="print what completes words in a shell",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("shell", choices=tuple(SHELLS), help="which shell")
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Write the completion of a shell."""
    from weir_cli.__main__ import parser

    say_as_it_is(SHELLS[asked.shell](words_of(parser())))
    return exits.DONE
