"""`weir check -f FILE…`: whether definitions would be accepted. Nothing is stored.

The dashboard itself checks, with what it knows: whether a rule's metric is there, what a
metric costs at most, which is told. The definitions of one call are checked together, in the
order in which `weir apply` sends them: a rule may be on a metric that is in the files.
"""

from __future__ import annotations

import argparse
from typing import Any

from weir_cli import exits
from weir_cli.files import read_all
from weir_cli.options import add_command, add_files, reached
from weir_cli.outcomes import outcome_of, tell
from weir_cli.planning import planned
from weir_cli.telling import refuse


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "check definitions in files, without storing them"
    command = add_command(commands, "check", says=says, about=__doc__)
    add_files(command)
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Check every definition of the files; return the exit code.

    Raises:
        UsageError: If files, address or key cannot be used; nothing was sent.
        UnreachedError: If the dashboard did not answer in time.
    """
    definitions = read_all(asked.file)
    api = reached(asked)
    items, answer = planned(api, definitions)
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    for one, item in zip(definitions, items, strict=True):
        tell(one, outcome_of(item), as_json=asked.json)
    return exits.DONE if all(item["ok"] for item in items) else exits.REFUSED
