"""`weir apply -f FILE…`: definitions become what files say. Creates, updates, never deletes.

A definition that means the same as the stored one is left alone, also where comments or
order differ: each version of a metric is counted anew. What one run has done the next
one finds unchanged, so a run that broke off is simply run again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from weir_cli import exits
from weir_cli.api import Answer, Api, quoted
from weir_cli.files import Written, read_all
from weir_cli.options import add_command, add_files, reached
from weir_cli.telling import say, say_json, size

TRIES = 3
PAUSE_S = 0.5
CONFLICTS = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)
# Another replica of the dashboard may read a metric a moment after this one stored it.
METRIC_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Outcome:
    """What became of one definition.

    Attributes:
        word: `created`, `updated`, `unchanged` or `refused`; of a check `ok`.
        version: The version in force; None if it was refused.
        why: Of a refusal, the dashboard's words.
        error: The same for programs.
        estimate: Of a check, what a metric costs at most.
    """

    word: str
    version: int | None = None
    why: tuple[str, ...] = ()
    error: Mapping[str, Any] | None = None
    estimate: Mapping[str, Any] | None = None

    @classmethod
    def refused(cls, answer: Answer) -> Outcome:
        """Return what a refusal comes to."""
        return cls("refused", why=tuple(answer.told()), error=answer.error())


class Patience:
    """How long a run waits for other replicas to read the metrics that it stored, in all.

    Metrics are sent before rules: once this has been waited, what is not known is not there.
    """

    def __init__(self) -> None:
        self._until_s: float | None = None

    @property
    def lasts(self) -> bool:
        """Whether to wait still; the first to ask begins the wait."""
        now_s = time.monotonic()
        if self._until_s is None:
            self._until_s = now_s + METRIC_TIMEOUT_S
        return now_s < self._until_s


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "create and update definitions from files; never deletes"
    command = add_command(commands, "apply", says=says, about=__doc__)
    add_files(command)
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Apply every definition of the files; return the exit code.

    Raises:
        UsageError: If files, address or key cannot be used; nothing was sent.
        UnreachedError: If the dashboard did not answer in time.
    """
    definitions = read_all(asked.file)
    api = reached(asked)
    refused, patience = 0, Patience()
    for one in definitions:
        outcome = apply(api, one, patience)
        refused += outcome.word == "refused"
        tell(one, outcome, as_json=asked.json)
    return exits.REFUSED if refused else exits.DONE


def apply(api: Api, one: Written, patience: Patience) -> Outcome:
    """Make one definition what its file says.

    Raises:
        UnreachedError: If the dashboard did not answer in time.
    """
    outcome = Outcome("refused")
    for _ in range(TRIES):
        place = f"/definitions{quoted(one.kind, one.name)}"
        seen = api.call("GET", place)
        if not seen.is_ok and seen.status != HTTPStatus.NOT_FOUND:
            return Outcome.refused(seen)
        current = seen.body if seen.is_ok else None
        if current is not None and means_the_same(api, one, current):
            return Outcome("unchanged", current["version"])
        answer = put(api, one, current, patience)
        if answer.is_ok:
            word = "created" if current is None else "updated"
            return Outcome(word, answer.body["version"])
        outcome = Outcome.refused(answer)
        # Somebody else was faster: look again at what is there now.
        if answer.status not in CONFLICTS:
            break
    return outcome


def means_the_same(api: Api, one: Written, current: Mapping[str, Any]) -> bool:
    """Tell whether a text means what is stored; the dashboard itself reads both."""
    if one.text.strip() == str(current["text"]).strip():
        return True
    draft = {"kind": one.kind, "name": one.name, "text": one.text}
    checked = api.call("POST", "/definitions/validate", draft)
    return checked.is_ok and checked.body["ok"] and checked.body["parsed"] == current["parsed"]


def put(api: Api, one: Written, current: Mapping[str, Any] | None, patience: Patience) -> Answer:
    """Store a definition as the version after the one that was seen."""
    condition = (
        {"If-None-Match": "*"} if current is None else {"If-Match": f'"{current["version"]}"'}
    )
    place = f"/definitions{quoted(one.kind, one.name)}"
    while True:
        answer = api.call("PUT", place, {"text": one.text}, condition)
        code = answer.body.get("code") if isinstance(answer.body, dict) else None
        if code != "metric_unknown" or not patience.lasts:
            return answer
        time.sleep(PAUSE_S)


def tell(one: Written, outcome: Outcome, *, as_json: bool = False) -> None:
    """Write what became of a definition."""
    if as_json:
        say_json(
            {
                "outcome": outcome.word,
                "kind": one.kind,
                "name": one.name,
                "version": outcome.version,
                "origin": one.origin,
                "why": outcome.why,
                "error": outcome.error,
                "estimate": outcome.estimate,
            }
        )
        return
    version = f" version {outcome.version}" if outcome.version is not None else ""
    first, *more = outcome.why or ("",)
    why = f": {first}" if first else ""
    origin = f" ({one.origin})" if first else ""
    cost = f": {cost_of(outcome.estimate)}" if outcome.estimate else ""
    line = f"{outcome.word:<9} {one.title}{version}{origin}{why}{cost}"
    say("\n".join([line, *(f"    {m}" for m in more)]))


def cost_of(estimate: Mapping[str, Any]) -> str:
    """Return what a metric costs at most, in words."""
    return (
        f"at most {estimate['series']:,} series, {size(estimate['memory_bytes'])} of panes, "
        f"{estimate['rows_a_batch']:,} rows written a batch"
    )
