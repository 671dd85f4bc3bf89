"""`weir get [KIND[/NAME]]`: the definitions in force, or the text of one.

Of a metric that does not serve yet standard error says what it waits for.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from weir_cli import exits
from weir_cli.api import Answer, Api, quoted
from weir_cli.options import Place, add_command, kind_or_place, reached
from weir_cli.telling import complain, instant, printable, refuse, say_json, say_list


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "list definitions, or print the text of one"
    command = add_command(commands, "get", says=says, about=__doc__)
    command.add_argument(
        "definition", nargs="?", type=kind_or_place, metavar="KIND[/NAME]", help="by default all"
    )
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Print one definition, or a list of them; return the exit code.

    Raises:
        UsageError: If address or key cannot be used.
        UnreachedError: If the dashboard did not answer in time.
    """
    api = reached(asked)
    wanted: Place | None = asked.definition
    if wanted is not None and wanted.name:
        return _one(api, wanted, as_json=asked.json)
    return _list(api, wanted.kind if wanted else None, as_json=asked.json)


def _one(api: Api, wanted: Place, *, as_json: bool) -> int:
    where = f"/definitions{quoted(wanted.kind, wanted.name)}"
    answer = api.call("GET", where)
    if not answer.is_ok:
        refuse(answer, as_json=as_json)
        return exits.REFUSED
    if as_json:
        say_json(answer.body)
    else:
        # As it stands in the log, so that it can be written to a file and applied again.
        text = str(answer.body["text"]).removesuffix("\n") + "\n"
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
    if answer.body["state"] == "starting":
        _tell_why(api.call("GET", f"{where}/progress"))
    return exits.DONE


def _tell_why(answer: Answer) -> None:
    """Say what a metric waits for; an older dashboard does not know."""
    why = answer.body.get("waits_for") if answer.is_ok else None
    if why:
        complain(f"version {answer.body['version']} does not serve yet: {why}")


def _list(api: Api, kind: str | None, *, as_json: bool) -> int:
    answer = api.call("GET", "/definitions" + (f"?kind={quoted(kind)[1:]}" if kind else ""))
    columns = ("definition", "version", "state", "changed", "by")
    return say_list(answer, columns, _row, as_json=as_json)


def _row(one: dict[str, Any]) -> list[str]:
    name, version = f"{one['kind']}/{one['name']}", str(one["version"])
    return [name, version, _state(one), instant(one["at_ms"]), one["by"]]


def _state(one: dict[str, Any]) -> str:
    newer = one.get("refused")
    return f"{one['state']}, version {newer['version']} refused" if newer else str(one["state"])
