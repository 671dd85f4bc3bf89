"""`weir diff -f FILE…`: what `weir apply` would change. Nothing is stored.

Of a definition that would change a unified diff of the two texts is written, and the members
that would mean something else. With KIND/NAME and two versions, those are compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from weir_cli import exits
from weir_cli.api import Answer
from weir_cli.files import read_all
from weir_cli.options import add_command, add_files, place, reached
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
    questions = list(_questions(asked))
    api = reached(asked)
    answers = [api.call("POST", "/definitions/diff", body) for _, body in questions]
    for (name, _), answer in zip(questions, answers, strict=True):
        _tell(name, answer, as_json=asked.json)
    if not all(answer.is_ok for answer in answers):
        return exits.REFUSED
    same = all(answer.body["same"] for answer in answers)
    return exits.DONE if same else exits.DIFFERENT


def _questions(asked: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each comparison: what the newer text is called, and what is sent."""
    if (asked.file is None) == (asked.definition is None):
        msg = "a comparison must have files (-f) or one KIND/NAME, got neither or both"
        raise exits.UsageError(msg)
    if asked.definition is None:
        for one in read_all(asked.file):
            yield one.origin, {"kind": one.kind, "name": one.name, "text": one.text}
        return
    if asked.version is None:
        msg = "--version must say which version of it to compare, got none"
        raise exits.UsageError(msg)
    body = {"kind": asked.definition.kind, "name": asked.definition.name}
    against = {} if asked.against is None else {"against": asked.against}
    yield f"version {asked.version}", {**body, "version": asked.version, **against}


def _tell(name: str, answer: Answer, *, as_json: bool) -> None:
    if not answer.is_ok:
        refuse(answer, as_json=as_json)
    elif as_json:
        say_json(answer.body)
    else:
        for line in lines_of(name, answer.body):
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
