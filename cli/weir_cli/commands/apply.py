"""`weir apply -f FILE…`: definitions become what files say. Creates, updates, never deletes.

All definitions of one call are stored together, or none: if one is refused, or somebody else
changes one at the same time again and again, nothing is stored. More than 400, or 800 kB, are
sent in several requests, each all or none; the first that is refused is the last that is sent.
One beyond the tenant's quota of changes is sent again when it may be, for an hour at most.

A definition that means the same as the stored one is left alone, also where comments or
order differ: each version of a metric is counted anew. A run that broke off is run again.
With `--follow` it ends once all metrics serve by what the files say.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from weir_cli import exits
from weir_cli.api import Answer, Api, told_of
from weir_cli.files import Written, read_all
from weir_cli.options import add_command, add_files, reached
from weir_cli.outcomes import Outcome, outcome_of, tell
from weir_cli.planning import parts, planned
from weir_cli.serving import Version, add_following, follow_all
from weir_cli.telling import refuse

TRIES: Final = 3
PAUSE_S: Final = 0.5
# Another replica of the dashboard may read a metric a moment after one stored it.
METRIC_TIMEOUT_S: Final = 5.0
SKIPPED: Final = Outcome("skipped")


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "create and update definitions from files, all or none; never deletes"
    command = add_command(commands, "apply", says=says, about=__doc__)
    add_files(command)
    add_following(command)
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Apply every definition of the files; return the exit code.

    Raises:
        UsageError: If files, address or key cannot be used; nothing was sent.
        UnreachedError: If the dashboard did not answer in time.
    """
    definitions = read_all(asked.file)
    api = reached(asked)
    found: dict[str, Outcome] = {}
    is_done = True
    for part in parts(definitions):
        try:
            outcomes = apply(api, part)
        except RefusedError as refused:
            refuse(refused.answer, as_json=asked.json)
            is_done = False
            break
        for one, outcome in zip(part, outcomes, strict=True):
            # A metric may come once more, with a rule on it: what was done is told once.
            if one.title not in found or outcome.word == "refused":
                found[one.title] = outcome
                tell(one, outcome, as_json=asked.json)
        if SKIPPED in outcomes or any(one.word == "refused" for one in outcomes):
            is_done = False
            break
    for one in definitions if found else ():
        if one.title not in found:
            tell(one, SKIPPED, as_json=asked.json)
    if not is_done:
        return exits.REFUSED
    return follow_all(api, _metrics(definitions, found), asked) if asked.follow else exits.DONE


def _metrics(definitions: Sequence[Written], found: Mapping[str, Outcome]) -> list[Version]:
    """Return the versions of the metrics that files say, as they are in force."""
    numbers = {one.name: found[one.title].version for one in definitions if one.kind == "metric"}
    return [(name, number) for name, number in numbers.items() if number is not None]


class RefusedError(Exception):
    """A request was refused, and nobody's definition is to blame.

    Attributes:
        answer: The refusal.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(answer.sentence)


def apply(api: Api, part: Sequence[Written]) -> list[Outcome]:
    """Make definitions what their files say, all or none; return what became of each.

    Raises:
        RefusedError: If the dashboard refused to judge or to store any of them.
        UnreachedError: If the dashboard did not answer in time.
    """
    for tries_left in reversed(range(TRIES)):
        items, answer = _judged(api, part)
        if not answer.is_ok:
            raise RefusedError(answer)
        if not all(item["ok"] for item in items):
            return [SKIPPED if item["ok"] else outcome_of(item) for item in items]
        answer = api.call("POST", "/definitions/apply", {"definitions": _based(part, items)})
        if answer.is_ok:
            return [Outcome(one["outcome"], one["version"]) for one in answer.body["items"]]
        # Somebody else was faster: look again at what is there now.
        if answer.status != HTTPStatus.CONFLICT or not tries_left:
            break
        time.sleep(PAUSE_S)
    return _refused(part, answer)


def _judged(api: Api, part: Sequence[Written]) -> tuple[list[dict[str, Any]], Answer]:
    """Return what storing each would do; wait a while for metrics that are not known."""
    until_s = time.monotonic() + METRIC_TIMEOUT_S
    while True:
        items, answer = planned(api, part)
        codes = {item["code"] for item in items if not item["ok"]}
        if codes != {"metric_unknown"} or time.monotonic() >= until_s:
            return items, answer
        time.sleep(PAUSE_S)


def _based(part: Sequence[Written], items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return definitions as they are sent, each based on the version that was seen."""
    return [
        {
            "kind": one.kind,
            "name": one.name,
            "text": one.text,
            "based_on": item["diff"]["old_version"],
        }
        for one, item in zip(part, items, strict=True)
    ]


def _refused(part: Sequence[Written], answer: Answer) -> list[Outcome]:
    """Return what a refusal says of each.

    Raises:
        RefusedError: If it names none of them.
    """
    body = answer.body if isinstance(answer.body, dict) else {}
    places: dict[int, list[dict[str, Any]]] = {}
    for place in body.get("errors") or []:
        root, _, rest = str(place.get("pointer")).removeprefix("/definitions/").partition("/")
        if root.isdecimal():
            places.setdefault(int(root), []).append({**place, "pointer": f"/{rest}"})
    if not places:
        raise RefusedError(answer)
    return [
        _refused_at(body.get("code"), places[at]) if at in places else SKIPPED
        for at in range(len(part))
    ]


def _refused_at(code: Any, places: list[dict[str, Any]]) -> Outcome:
    said = {"code": code, "message": told_of(places[0]), "errors": places}
    return Outcome.refused(Answer(HTTPStatus.UNPROCESSABLE_ENTITY, said))
