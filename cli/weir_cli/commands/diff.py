"""`weir diff -f FILE…`: what `weir apply` would change. Nothing is stored.

Of a definition that would change a unified diff of the two texts is written, and the members
that would mean something else. What `weir apply` would refuse is told by file, and why; the
definitions of one call are judged together, as `weir check` does. With KIND/NAME and two
versions, those are compared.
"""

from __future__ import annotations

import argparse
from typing import Any

from weir_cli import exits
from weir_cli.files import read_all
from weir_cli.options import add_command, add_files, place, reached
from weir_cli.outcomes import outcome_of, tell
from weir_cli.planning import planned
from weir_cli.telling import refuse, say, say_json


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "tell what `apply` would change, or how two versions differ"
    command = add_command(commands, "diff", says=says, about=__doc__)
    command.add_argument(
        "definition", nargs="?", type=place, metavar="KIND/NAME", help="compare versions of it"
    )
    command.add_argument("--version", type=int, metavar="N", help="this version of it")
    command.add_argument(
        "--against", type=int, metavar="N", help="with this; by default the current"
    )
    add_files(command, required=False)
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Compare; return the exit code.

    Raises:
        UsageError: If files, versions, address or key cannot be used; nothing was sent.
        UnreachedError: If the dashboard did not answer in time.
    """
    if (asked.file is None) == (asked.definition is None):
        msg = "a comparison must have files (-f) or one KIND/NAME, got neither or both"
        raise exits.UsageError(msg)
    return _versions(asked) if asked.file is None else _files(asked)


def _files(asked: argparse.Namespace) -> int:
    """Compare what files say with what is in force."""
    definitions = read_all(asked.file)
    items, answer = planned(reached(asked), definitions)
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    for one, item in zip(definitions, items, strict=True):
        if item["ok"]:
            _tell(one.origin, item["diff"], as_json=asked.json)
        else:
            tell(one, outcome_of(item), as_json=asked.json)
    if not all(item["ok"] for item in items):
        return exits.REFUSED
    return _code(all(item["diff"]["same"] for item in items))


def _versions(asked: argparse.Namespace) -> int:
    """Compare two versions of a definition."""
    if asked.version is None:
        msg = "--version must say which version of it to compare, got none"
        raise exits.UsageError(msg)
    body = {"kind": asked.definition.kind, "name": asked.definition.name}
    against = {} if asked.against is None else {"against": asked.against}
    sent = {**body, "version": asked.version, **against}
    answer = reached(asked).call("POST", "/definitions/diff", sent)
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    _tell(f"version {asked.version}", answer.body, as_json=asked.json)
    return _code(answer.body["same"])


def _code(same: bool) -> int:
    return exits.DONE if same else exits.DIFFERENT


def _tell(name: str, found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        outcome = "same" if found["same"] else "new" if found["old_version"] is None else "changed"
        say_json({"outcome": outcome, **found, "origin": name})
    else:
        for line in lines_of(name, found):
            say(line)


def lines_of(name: str, found: dict[str, Any]) -> list[str]:
    """Return the lines that tell one comparison.

    Args:
        name: What the newer text is called.
        found: The dashboard's answer.
    """
    title = f"{found['kind']}/{found['name']}"
    if found["same"]:
        more = ", but for its letters" if found["text"] else ""
        return [f"{title}: the same as version {found['old_version']}{more}"]
    lines = found["text"].replace("+++ draft", f"+++ {name}", 1).splitlines()
    if found["old_version"] is None:
        return [f"{title}: new", *lines]
    changed = [f"  {one['pointer']}: {one['old']!r} -> {one['new']!r}" for one in found["members"]]
    return [f"{title}: {len(changed)} member(s) change", *changed, *lines]
