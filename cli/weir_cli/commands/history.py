"""`weir history [KIND/NAME]`: who changed it, and when; of everything without a name.

Without a name the key needs the scope `admin`. `--refused` lists what readers pass over: records
that somebody wrote past the API and that cannot be used, or that came too late.
"""

from __future__ import annotations

import argparse
from typing import Any

from weir_cli import exits
from weir_cli.api import quoted
from weir_cli.options import add_command, place, reached
from weir_cli.telling import instant, refuse, say, say_json, table

PAGE = 500


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "tell who changed definitions, and when"
    command = add_command(commands, "history", says=says, about=__doc__)
    command.add_argument(
        "definition", nargs="?", type=place, metavar="KIND/NAME", help="by default all"
    )
    command.add_argument("--texts", action="store_true", help="print the text of each version too")
    command.add_argument("--refused", action="store_true", help="what readers pass over, and why")
    command.add_argument("-n", "--limit", type=int, default=100, help="how many; by default 100")
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """List edits, the newest first; return the exit code.

    Raises:
        UsageError: If address or key cannot be used.
        UnreachedError: If the dashboard did not answer in time.
    """
    if not 1 <= asked.limit <= PAGE:
        msg = f"--limit must be between 1 and {PAGE}, got {asked.limit}"
        raise exits.UsageError(msg)
    answer = reached(asked).call("GET", _path(asked))
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    items = [one for one in answer.body["items"] if _is_meant(asked, one)][: asked.limit]
    if asked.json:
        for one in items:
            say_json(one)
    elif items:
        _tell(asked, items)
    return exits.DONE


def _path(asked: argparse.Namespace) -> str:
    if asked.refused:
        return f"/definitions/refused?limit={PAGE if asked.definition else asked.limit}"
    if asked.definition is None:
        return f"/changes?limit={asked.limit}"
    return f"/definitions{quoted(asked.definition.kind, asked.definition.name)}/history"


def _is_meant(asked: argparse.Namespace, one: dict[str, Any]) -> bool:
    if not asked.refused or asked.definition is None:
        return True
    return (one["kind"], one["name"]) == (asked.definition.kind, asked.definition.name)


def _tell(asked: argparse.Namespace, items: list[dict[str, Any]]) -> None:
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
        title or f"{one['kind']}/{one['name']}",
        version,
        what,
        instant(one["at_ms"]),
        one["by"],
    ]
