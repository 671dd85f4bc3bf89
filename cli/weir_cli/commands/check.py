"""`weir check -f FILE…`: whether definitions would be accepted. Nothing is stored.

The dashboard itself checks, with what it knows: whether a rule's metric is there, what a
metric costs at most. A metric and its rule in files that were never applied are checked one
by one, so the rule is refused until the metric is there.
"""

from __future__ import annotations

import argparse
from typing import Any

from weir_cli import exits
from weir_cli.api import Answer, Api
from weir_cli.commands.apply import Outcome, tell
from weir_cli.files import Written, read_all
from weir_cli.options import add_command, add_files, reached


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
    outcomes = [check(api, one) for one in definitions]
    for one, outcome in zip(definitions, outcomes, strict=True):
        tell(one, outcome, as_json=asked.json)
    refused = any(outcome.word == "refused" for outcome in outcomes)
    return exits.REFUSED if refused else exits.DONE


def check(api: Api, one: Written) -> Outcome:
    """Check one definition.

    Raises:
        UnreachedError: If the dashboard did not answer in time.
    """
    draft = {"kind": one.kind, "name": one.name, "text": one.text}
    answer = api.call("POST", "/definitions/validate", draft)
    if not answer.is_ok:
        return Outcome("refused", why=tuple(answer.told()))
    if answer.body["ok"]:
        return Outcome("ok")
    # What is wrong is told by the same members as in a refusal.
    return Outcome("refused", why=tuple(Answer(answer.status, answer.body).told()))
