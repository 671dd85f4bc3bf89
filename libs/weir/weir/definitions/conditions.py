"""Filters on declared dimensions, as boards and rules write them.

A list of conditions that all hold: `[[route, in, [/pay, /cart]], [region, =, eu]]`, or
the same as a text in SQL's spelling: `route in ('/pay', '/cart') and region = 'eu'`.
What the operators mean is in `weir/query/conditions.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator
from sqlglot import exp

from weir.definitions.base import Model, as_tuple, is_written
from weir.definitions.faults import expression_fault, fault
from weir.expressions import ExpressionError, Path
from weir.expressions.errors import wrong
from weir.expressions.leaves import check_paths, is_path, parts_of, quoted_alone
from weir.expressions.parse import located
from weir.expressions.syntax import position, said, syntax_of

OPERATORS: Final = ("=", "!=", "in", "like")
MAX_CONDITIONS: Final = 16


class Condition(Model):
    """A filter on a declared dimension, written as a list: `[route, in, [/pay, /cart]]`.

    Attributes:
        dimension: Its name, or its path.
        op: How it is compared; `in` takes a list, `like` a pattern with `%`.
        value: With what; a null is what has no value.
    """

    dimension: str
    op: Literal["=", "!=", "in", "like"]
    value: Any

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, given: Any) -> Any:
        if isinstance(given, list | tuple) and len(given) == 3:
            return dict(zip(("dimension", "op", "value"), given, strict=True))
        if isinstance(given, dict):
            return given
        raise fault(
            required="a list of dimension, operator and value",
            mend=f"write [region, =, eu]; the operators are {', '.join(OPERATORS)}",
        )

    @model_validator(mode="after")
    def _fits(self) -> Condition:
        scalars = self.value if self.op == "in" else [self.value]
        if not isinstance(scalars, list | tuple) or not all(_is_scalar(s) for s in scalars):
            wanted = "a list of values" if self.op == "in" else "one value"
            raise fault(required=f"{wanted} after {self.op}", mend="write [route, in, [/a, /b]]")
        return self


def conditions_of(text: str, *, written: bool = False) -> tuple[list[Any], ...]:
    """Return the conditions that a text says, each as a list.

    Args:
        text: Them, joined by `and`.
        written: They are about to be written: a path with more names than a dimension can have,
            which was once taken, is refused.

    Raises:
        ExpressionError: If it is no `and` of comparisons of a dimension with texts.
    """
    return located(text, lambda: _conditions(text, written=written))


def _conditions(text: str, *, written: bool) -> tuple[list[Any], ...]:
    whole = syntax_of(text).unnest()
    if written:
        check_paths(whole)
    parts = [part.unnest() for part in whole.flatten()] if isinstance(whole, exp.And) else [whole]
    return tuple(map(_condition, parts))


def _condition(part: Any) -> list[Any]:
    if isinstance(part, exp.In) and part.expressions:
        return [_dimension(part.this), "in", [_text(one) for one in part.expressions]]
    if isinstance(part, exp.Is) and isinstance(part.expression, exp.Null):
        return [_dimension(part.this), "=", None]
    if isinstance(part, exp.Not) and isinstance(part.this, exp.Is):
        return [_dimension(part.this.this), "!=", None]
    for kind, op in ((exp.EQ, "="), (exp.NEQ, "!="), (exp.Like, "like")):
        if isinstance(part, kind):
            return [_dimension(part.this), op, _text(part.expression)]
    raise wrong(
        said(part),
        "a comparison of a declared dimension: =, !=, in, like or is null, joined by and",
        "filter by anything else in the metric's own where",
        position(part),
    )


def _dimension(node: Any) -> str:
    if not is_path(node):
        mend = "write the dimension first: region = 'eu'"
        raise wrong(said(node), "a declared dimension", mend, position(node))
    return str(Path(parts_of(node)))


def _text(node: Any) -> str:
    if not isinstance(node, exp.Literal) or not node.is_string:
        mend = "dimensions hold texts: write '404', not 404"
        if (name := quoted_alone(node)) is not None:
            mend = f"text stands in single quotes: {said(exp.Literal.string(name))}"
        raise wrong(said(node), "a text in single quotes", mend, position(node))
    return str(node.this)


def _listed(given: Any, info: ValidationInfo) -> Any:
    if not isinstance(given, str):
        return as_tuple(given)
    try:
        return conditions_of(given, written=is_written(info))
    except ExpressionError as error:
        raise expression_fault(error) from None


Conditions = Annotated[
    tuple[Condition, ...], BeforeValidator(_listed), Field(max_length=MAX_CONDITIONS)
]


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
