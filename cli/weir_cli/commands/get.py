"""`weir get [KIND[/NAME]]`: the definitions in force, or the text of one.

Files (`-f`) say whose texts are meant, by kind and name: what is written can be put into one
file and applied again. One of them that is not there is told beside the others; exit code 1.
Of a metric that does not serve yet standard error says how far it is counted back, or what it
waits for.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from weir_cli import exits
from weir_cli.api import Api, quoted
from weir_cli.files import Written, read_all
from weir_cli.options import (
    Place,
    add_command,
    add_files,
    check_one_way,
    kind_or_place,
    reached,
)
from weir_cli.outcomes import tell_missing
from weir_cli.serving import why_not
from weir_cli.telling import complain, instant, refuse, say_as_it_is, say_json, say_list


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "list definitions, or print the text of one"
    command = add_command(commands, "get", says=says, about=__doc__)
    command.add_argument(
        "definition", nargs="?", type=kind_or_place, metavar="KIND[/NAME]", help="by default all"
    )
    add_files(command, required=False)
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Print one definition, or a list of them; return the exit code.

    Raises:
        UsageError: If file, address or key cannot be used; nothing was sent.
        UnreachedError: If the dashboard did not answer in time.
    """
    check_one_way(asked)
    written = read_all(asked.file) if asked.file else []
    api = reached(asked)
    if written:
        return _several(api, written, as_json=asked.json)
    wanted: Place | None = asked.definition
    if wanted is not None and wanted.name:
        return _one(api, wanted, as_json=asked.json)
    return _list(api, wanted.kind if wanted else None, as_json=asked.json)


def _one(api: Api, wanted: Place, *, as_json: bool) -> int:
    answer = api.call("GET", _where(wanted))
    if not answer.is_ok:
        refuse(answer, as_json=as_json)
        return exits.REFUSED
    _write(answer.body, as_json=as_json)
    _tell_why(api, wanted, answer.body)
    return exits.DONE


def _several(api: Api, written: Sequence[Written], *, as_json: bool) -> int:
    """Print what is in force of the definitions that files name."""
    code, first = exits.DONE, True
    for one in written:
        wanted = Place(one.kind, one.name)
        answer = api.call("GET", _where(wanted))
        if not answer.is_ok:
            tell_missing(one, answer, as_json=as_json)
            code = exits.REFUSED
            continue
        if not (first or as_json):
            say_as_it_is("---\n")
        first = False
        _write(answer.body, as_json=as_json)
        _tell_why(api, wanted, answer.body, of=f"{one.title}: ")
    return code


def _where(wanted: Place) -> str:
    return f"/definitions{quoted(wanted.kind, wanted.name)}"


def _write(stored: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        say_json(stored)
        return
    # As it stands in the log, so that it can be written to a file and applied again.
    say_as_it_is(str(stored["text"]).removesuffix("\n") + "\n")


def _tell_why(api: Api, wanted: Place, stored: dict[str, Any], *, of: str = "") -> None:
    """Say how far a metric is, or what it waits for; an older dashboard does not know."""
    if stored["state"] != "starting":
        return
    answer = api.call("GET", f"{_where(wanted)}/progress")
    why = why_not(answer.body) if answer.is_ok else None
    if why:
        complain(f"{of}version {answer.body['version']} does not serve yet: {why}")


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
