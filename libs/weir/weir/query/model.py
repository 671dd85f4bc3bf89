"""A query as it is asked: the JSON of the API, checked, and its one canonical form.

Two queries that ask for the same have the same canonical form, however they were
spelled: the live hub evaluates each form once, for everybody who watches it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic import model_validator as after_all

from weir.definitions.durations import format_duration, parse_duration_ms
from weir.problems import MAX_ERRORS, ProblemError, Reason, echo

MAX_DIMENSIONS = 10
MAX_CONDITIONS = 20
MAX_VALUES = 500
MAX_TEXT = 256
MAX_COMPARED = 4
WEEK_MS = 7 * 86_400_000


def _canonical_length(text: str) -> str:
    length_ms = parse_duration_ms(text)
    if length_ms <= 0:
        msg = "duration must be longer than nothing, got " + text
        raise ValueError(msg)
    weeks, rest = divmod(length_ms, WEEK_MS)
    return format_duration(length_ms) if rest else f"{weeks}w"


def _instant(value: Any) -> Any:
    """Return ISO 8601 text with a zone as epoch milliseconds; leave anything else."""
    if not isinstance(value, str):
        return value
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        msg = f'instant must be ISO 8601 with a zone, or epoch ms, got "{value[:64]}"'
        raise ValueError(msg)
    return int((at - datetime.fromtimestamp(0, UTC)).total_seconds() * 1000)


def _condition(value: Any) -> Any:
    """Refuse what is no condition in words of its own: a union would tell of each way it is not."""
    if not isinstance(value, list | tuple) or len(value) != 3 or not isinstance(value[0], str):
        msg = 'condition must be a dimension, an operator and a value: ["status", "=", "500"]'
        raise ValueError(msg)
    name, operator, operand = value
    if operator not in ("=", "!=", "in", "like"):
        msg = f"operator must be =, !=, in or like, got {echo(json.dumps(operator, default=str))}"
        raise ValueError(msg)
    values = operand if operator == "in" else [operand]
    if not isinstance(values, list | tuple) or not 1 <= len(values) <= MAX_VALUES:
        msg = f'in must have a list of 1 to {MAX_VALUES} texts, such as ["eu", "us"]'
        raise ValueError(msg)
    for one in values:
        _check_text(one, may_be_null=operator != "like")
    _check_text(name, may_be_null=False)
    return value


def _check_text(value: Any, *, may_be_null: bool) -> None:
    if isinstance(value, bool | int | float):
        msg = f'values of dimensions must be texts: write "{json.dumps(value)}" with its quotes'
        raise ValueError(msg)
    if not (value is None and may_be_null) and not isinstance(value, str):
        msg = f"values of dimensions must be texts, got {echo(json.dumps(value, default=str))}"
        raise ValueError(msg)
    if value is not None and len(value) > MAX_TEXT:
        msg = f"text must have at most {MAX_TEXT} characters, got {len(value)}"
        raise ValueError(msg)


Text = Annotated[str, Field(max_length=MAX_TEXT)]
Name = Annotated[str, Field(min_length=1, max_length=64)]
Length = Annotated[str, Field(max_length=32), AfterValidator(_canonical_length)]
Instant = Annotated[int, Field(ge=-(2**53), le=2**53), BeforeValidator(_instant)]
Values = Annotated[list[Text | None], Field(min_length=1, max_length=MAX_VALUES)]
Condition = Annotated[
    tuple[Text, Literal["=", "!="], Text | None]
    | tuple[Text, Literal["in"], Values]
    | tuple[Text, Literal["like"], Text],
    BeforeValidator(_condition),
]
_EXAMPLES = {
    "window": '{"kind": "sliding", "length": "5m"}',
    "range": '{"last": "1h"}',
    "limit": '{"top": 20}',
    "by": '["region"]',
    "where": '[["region", "=", "eu"]]',
    "compare": '["1w"]',
    "left": '{"metric": "errors", "aggregate": "count"}',
    "right": '{"metric": "requests", "aggregate": "count"}',
}
# What Pydantic would say of classes of ours.
_KINDS = {"model_type": "an object", "list_type": "a list"}


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Window(_Asked):
    """Which kind of windows, and how long each is."""

    kind: Literal["tumbling", "hopping", "sliding"]
    length: Length | None = None


class Range(_Asked):
    """Which span of time: the last so long, or from one instant to another."""

    last: Length | None = None
    from_ms: Annotated[Instant | None, Field(alias="from")] = None
    to_ms: Annotated[Instant | None, Field(alias="to")] = None

    @after_all(mode="after")
    def _one_of_two(self) -> Range:
        both = self.from_ms is not None and self.to_ms is not None
        if self.last is None and both and self.from_ms < self.to_ms:  # type: ignore[operator]
            return self
        if self.last is not None and self.from_ms is None and self.to_ms is None:
            return self
        msg = 'range must be {"last": "1h"} or {"from": …, "to": …} with from before to'
        raise ValueError(msg)


class Limit(_Asked):
    """How many series to answer with, the largest last values first."""

    top: Annotated[int, Field(ge=1, le=500)]
    other: bool = False


class Side(_Asked):
    """One operand of an expression: a metric and one of its aggregates.

    `before` asks for the span of that length which ends where each window begins, in place
    of the window: who was there before.
    """

    metric: Name
    aggregate: Name
    version: Annotated[int, Field(ge=1)] | None = None
    where: Annotated[list[Condition], Field(max_length=MAX_CONDITIONS)] = []
    before: Length | None = None


class Expr(_Asked):
    """Two aggregates combined by arithmetic, window by window.

    `ratio` is left / right, `difference` left - right, `share` left / (left + right). Of two
    sets (`theta`), `overlap` is what both have, `only_left` what the left alone has, `union`
    what either has.
    """

    op: Literal["ratio", "difference", "share", "overlap", "only_left", "union"]
    left: Side
    right: Side


class Query(_Asked):
    """What is asked: which numbers, over which windows, of which series."""

    metric: Name | None = None
    version: Annotated[int, Field(ge=1)] | None = None
    aggregate: Name | None = None
    expr: Expr | None = None
    window: Window | None = None
    by: Annotated[list[Text], Field(max_length=MAX_DIMENSIONS)] = []
    where: Annotated[list[Condition], Field(max_length=MAX_CONDITIONS)] = []
    range: Range = Range(last="1h")
    step: Length | None = None
    compare: Annotated[list[Length], Field(max_length=MAX_COMPARED)] = []
    fill: Literal["auto", "none"] = "auto"
    limit: Limit | None = None
    after: dict[str, Any] | None = None

    @after_all(mode="after")
    def _metric_or_expr(self) -> Query:
        single = self.metric is not None and self.aggregate is not None
        if self.expr is None and single:
            return self
        if self.expr is not None and (self.metric, self.aggregate, self.version) == (None,) * 3:
            return self
        msg = 'query must have "metric" and "aggregate", or "expr" in their place'
        raise ValueError(msg)

    @property
    def sides(self) -> tuple[Side, ...]:
        """Return the one or two aggregates that the query reads, its filter included."""
        if self.expr is None:
            # The check above has seen that both are there.
            return (
                Side.model_construct(
                    metric=self.metric,
                    aggregate=self.aggregate,
                    version=self.version,
                    where=self.where,
                    before=None,
                ),
            )
        return tuple(
            side.model_copy(update={"where": [*side.where, *self.where]})
            for side in (self.expr.left, self.expr.right)
        )


def parse_query(asked: Any) -> Query:
    """Return the query that a JSON value asks for.

    Raises:
        ProblemError: `query_invalid` (422), or `unknown_field` if all that is wrong are
            members that no query has; each place with what it required.
    """
    try:
        return Query.model_validate(asked)
    except ValidationError as error:
        raise _problem(error) from None


def canonical(query: Query) -> dict[str, Any]:
    """Return the query's one form: what is left out filled in, order without meaning sorted.

    That of `by` is the order in which a series has its values, and its number depends on it;
    that of `compare` is the order of an answer's.
    `after` is not part of it: it says when to answer, not what.
    """
    form = query.model_dump(mode="json", by_alias=True, exclude={"after"})
    form["by"] = list(dict.fromkeys(form["by"]))
    form["compare"] = list(dict.fromkeys(form["compare"]))
    places = [form, *((form["expr"]["left"], form["expr"]["right"]) if form["expr"] else ())]
    for place in places:
        place["where"] = _sorted_conditions(place["where"])
    form["range"] = {name: value for name, value in form["range"].items() if value is not None}
    return form


def canonical_key(query: Query) -> str:
    """Return the canonical form as one text: equal for queries that ask for the same."""
    return json.dumps(canonical(query), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _sorted_conditions(conditions: list[Any]) -> list[Any]:
    whole = [
        [name, op, sorted(set(value), key=_null_last) if op == "in" else value]
        for name, op, value in conditions
    ]
    return sorted({json.dumps(c): c for c in whole}.values(), key=json.dumps)


def _null_last(value: str | None) -> tuple[bool, str]:
    return value is None, value or ""


def _mend(place: Sequence[int | str]) -> str:
    found = _EXAMPLES.get(str(place[-1])) if place else None
    return f"write {found}" if found else "see the query's members in the API reference"


def _problem(error: ValidationError) -> ProblemError:
    found = error.errors(include_url=False)
    places = tuple(
        {
            "pointer": "/" + "/".join(str(at) for at in one["loc"]),
            "required": _KINDS.get(one["type"]) or one["msg"].removeprefix("Value error, "),
            "got": echo(json.dumps(one["input"], default=str)),
            "mend": _mend(one["loc"]),
        }
        for one in found[:MAX_ERRORS]
    )
    unknown = all(one["type"] == "extra_forbidden" for one in found)
    first = places[0]
    message = f"query must be valid at {first['pointer']}: {first['required']}"
    return ProblemError(
        422, Reason.UNKNOWN_FIELD if unknown else Reason.QUERY_INVALID, message, places
    )
