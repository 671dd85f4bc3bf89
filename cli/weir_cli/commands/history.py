"""`weir history [KIND/NAME]`: who changed it, and when; of everything without a name.

Files (`-f`) say whose edits are meant, by kind and name: those of all of them in one list.
Without a name the key needs the scope `admin`. `--refused` lists what readers pass over: records
that somebody wrote past the API and that cannot be used, or that came too late.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from weir_cli import exits
from weir_cli.api import Api, quoted
from weir_cli.files import Written, read_all
from weir_cli.options import add_command, add_files, check_one_way, place, reached
from weir_cli.outcomes import tell_missing
from weir_cli.telling import instant, refuse, say, say_json, table

PAGE = 500


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "tell who changed definitions, and when"
    command = add_command(commands, "history", says=says, about=__doc__)
    command.add_argument(
        "definition", nargs="?", type=place, metavar="KIND/NAME", help="by default all"
    )
    add_files(command, required=False)
    command.add_argument("--texts", action="store_true", help="print the text of each version too")
    command.add_argument("--refused", action="store_true", help="what readers pass over, and why")
    command.add_argument("-n", "--limit", type=int, default=100, help="how many; by default 100")
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """List edits, the newest first; return the exit code.

    Raises:
        UsageError: If limit, file, address or key cannot be used; nothing was sent.
        UnreachedError: If the dashboard did not answer in time.
    """
    if not 1 <= asked.limit <= PAGE:
        msg = f"--limit must be between 1 and {PAGE}, got {asked.limit}"
        raise exits.UsageError(msg)
    check_one_way(asked)
    written = read_all(asked.file) if asked.file else []
    api = reached(asked)
    if written and not asked.refused:
        return _of_files(api, written, asked)
    answer = api.call("GET", _path(asked))
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    titles = {one.title for one in written} | (
        {asked.definition.title} if asked.definition else set()
    )
    items = answer.body["items"]
    if asked.refused and titles:
        items = [one for one in items if _title(one) in titles]
    _tell(asked, items[: asked.limit])
    return exits.DONE


def _of_files(api: Api, written: Sequence[Written], asked: argparse.Namespace) -> int:
    """List the edits of the definitions that files name."""
    code, items = exits.DONE, list[dict[str, Any]]()
    for one in written:
        answer = api.call("GET", f"/definitions{quoted(one.kind, one.name)}/history")
        if answer.is_ok:
            named = {"kind": one.kind, "name": one.name}
            items += [edit | named for edit in answer.body["items"]]
        else:
            tell_missing(one, answer, as_json=asked.json)
            code = exits.REFUSED
    items.sort(key=lambda edit: int(edit["vid"]), reverse=True)
    _tell(asked, items[: asked.limit])
    return code


def _path(asked: argparse.Namespace) -> str:
    if asked.refused:
        some = asked.definition or asked.file
        return f"/definitions/refused?limit={PAGE if some else asked.limit}"
    if asked.definition is None:
        return f"/changes?limit={asked.limit}"
    return f"/definitions{quoted(asked.definition.kind, asked.definition.name)}/history"


def _tell(asked: argparse.Namespace, items: list[dict[str, Any]]) -> None:
    if asked.json:
        for one in items:
            say_json(one)
        return
    title = None if asked.definition is None else asked.definition.title
    lines = table([_row(one, title) for one in items])
    for one, line in zip(items, lines, strict=True):
        why = one.get("refused") or (one.get("message") if asked.refused else None)
        say(line)
        if why:
            say(f"    passed over: {why}")
        if asked.texts and one.get("text"):
            say("".join(f"    {text}\n" for text in one["text"].splitlines()).rstrip("\n"))


def _row(one: dict[str, Any], title: str | None) -> list[str]:
    version = "" if one["version"] is None else f"version {one['version']}"
    what = "refused" if "op" not in one else "deleted" if one["op"] == "delete" else "written"
    return [
        title or _title(one),
        version,
        what,
        instant(one["at_ms"]),
        one["by"],
    ]


def _title(one: dict[str, Any]) -> str:
    return f"{one['kind']}/{one['name']}"
