"""What becomes of each definition of a call, told by its file: a line, or an object of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weir_cli.api import Answer
from weir_cli.files import Written
from weir_cli.telling import complain, say, say_json, size


@dataclass(frozen=True)
class Outcome:
    """What became of one definition.

    Attributes:
        word: `created`, `updated`, `unchanged`, `refused`, or `skipped`: nothing is stored of it
            since another was refused; of a check `ok`.
        version: The version in force; None if nothing was stored, or if that was not asked.
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


def outcome_of(item: dict[str, Any]) -> Outcome:
    """Return what storing a definition would come to, as the dashboard judged it."""
    if item["ok"]:
        return Outcome("ok", estimate=item["estimate"])
    # What is wrong is told by the same members as in a refusal.
    return Outcome.refused(Answer(422, item))


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


def tell_missing(one: Written, answer: Answer, *, as_json: bool = False) -> None:
    """Write why nothing can be told of a definition; not among what is told of the others."""
    if as_json:
        tell(one, Outcome.refused(answer), as_json=True)
    else:
        complain(f"{one.title} ({one.origin}): {answer.told()[0]}")


def cost_of(estimate: Mapping[str, Any]) -> str:
    """Return what a metric costs at most, in words."""
    return (
        f"at most {estimate['series']:,} series, {size(estimate['memory_bytes'])} of panes, "
        f"{estimate['rows_a_batch']:,} rows written a batch"
    )
