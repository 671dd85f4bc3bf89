"""`weir rollback KIND/NAME --to VERSION`: an older text in force again, as a new version.

Nothing of the history is lost. A metric is counted anew by the version that this makes. It
is made from the version that was just read; `--from` refuses if that is another one. A file
(`-f`) says which definition is meant; the file itself stays as it is. With `--follow` it ends
once a metric serves by that version.
"""

from __future__ import annotations

import argparse
from http import HTTPStatus
from typing import Any

from weir_cli import exits
from weir_cli.api import Api, quoted
from weir_cli.files import read_all
from weir_cli.options import Place, add_command, add_files, place, reached
from weir_cli.serving import add_following, follow_all
from weir_cli.telling import complain, refuse, say, say_json


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "put an older version in force again"
    command = add_command(commands, "rollback", says=says, about=__doc__)
    command.add_argument(
        "definition", nargs="?", type=place, metavar="KIND/NAME", help="which, if no file says it"
    )
    command.add_argument("--to", type=int, required=True, metavar="VERSION", help="whose text")
    command.add_argument(
        "--from", dest="base", type=int, metavar="VERSION", help="only if this one is in force"
    )
    add_files(command, required=False)
    add_following(command)
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Roll one definition back; return the exit code.

    Raises:
        UsageError: If file, address or key cannot be used; nothing was sent.
        UnreachedError: If the dashboard did not answer in time.
    """
    wanted, api = _meant(asked), reached(asked)
    where = f"/definitions{quoted(wanted.kind, wanted.name)}"
    condition = _condition(api, where, asked)
    if condition is None:
        return exits.REFUSED
    answer = api.call("POST", f"{where}/rollback", {"version": asked.to}, condition)
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    _tell(wanted, answer.body, asked.to, as_json=asked.json)
    if not asked.follow or wanted.kind != "metric":
        return exits.DONE
    return follow_all(api, [(wanted.name, answer.body["version"])], asked)


def _meant(asked: argparse.Namespace) -> Place:
    """Return the definition that is named, by itself or by a file."""
    if (asked.file is None) == (asked.definition is None):
        msg = "a rollback must have one KIND/NAME or a file (-f), got neither or both"
        raise exits.UsageError(msg)
    if asked.file is None:
        named: Place = asked.definition
        return named
    found = read_all(asked.file)
    if len(found) > 1:
        titles = ", ".join(one.title for one in found)
        msg = f"a rollback must be of one definition, found {titles}; name one as KIND/NAME"
        raise exits.UsageError(msg)
    return Place(found[0].kind, found[0].name)


def _condition(api: Api, where: str, asked: argparse.Namespace) -> dict[str, str] | None:
    """Return what the change is made from; None if that cannot be read."""
    if asked.base is not None:
        return {"If-Match": f'"{asked.base}"'}
    seen = api.call("GET", where)
    if seen.is_ok:
        return {"If-Match": f'"{seen.body["version"]}"'}
    if seen.status == HTTPStatus.NOT_FOUND:
        return {"If-None-Match": "*"}  # it was deleted, or never was: the dashboard says which
    refuse(seen, as_json=asked.json)
    return None


def _tell(wanted: Place, stored: dict[str, Any], to: int, *, as_json: bool) -> None:
    if as_json:
        say_json(stored)
    else:
        say(f"{wanted.title} version {stored['version']} has the text of version {to}")
    if stored.get("refused"):
        complain(f"a newer version is passed over: {stored['refused']['message']}")
