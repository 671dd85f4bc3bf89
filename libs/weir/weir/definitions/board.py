"""Boards: tiles, each a query without its range, and how to draw it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from weir.definitions.aggregates import parse_aggregate
from weir.definitions.base import DefinitionModel, Model, Name, as_tuple
from weir.definitions.conditions import Conditions
from weir.definitions.durations import DurationMs
from weir.definitions.faults import expression_fault, fault
from weir.expressions import ExpressionError

MAX_TILES: Final = 60

Texts = Annotated[tuple[str, ...], BeforeValidator(as_tuple), Field(max_length=16)]


class Window(Model):
    """The span of events that a point stands for.

    Attributes:
        kind: Tumbling and hopping ones follow each other, sliding ones end at every step.
        length: Its length; left out, the length of a step.
    """

    kind: Literal["tumbling", "hopping", "sliding"] = "tumbling"
    length: DurationMs | None = None


class Tile(Model):
    """One tile.

    Attributes:
        type: How it is drawn.
        title: Its heading; left out, what it asks.
        size: Columns it takes: a quarter, half or the whole of the board.
        metric: What is asked; every tile but a note has one.
        aggregate, aggregates: Which of the metric's; several make bands or lines.
        by: One line, or row, for each set of values of these dimensions.
        where: Only these series.
        window: Over which windows; a length alone is a tumbling one.
        text: Of a note.
    """

    type: Literal["number", "chart", "top", "note"]
    title: str = Field(default="", max_length=200)
    size: Literal["S", "M", "L"] = "M"
    metric: Name | None = None
    aggregate: str | None = None
    aggregates: Texts = ()
    by: Texts = ()
    where: Conditions = ()
    window: Window | None = None
    text: str = Field(default="", max_length=10_000)

    @field_validator("window", mode="before")
    @classmethod
    def _length_alone(cls, given: Any) -> Any:
        return {"length": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _asks_something(self) -> Tile:
        if self.type == "note":
            return self
        asked = self.aggregates or ((self.aggregate,) if self.aggregate else ())
        if self.metric is None or not asked or (self.aggregate and self.aggregates):
            raise fault(
                required="a tile with metric, and aggregate or aggregates",
                mend="write metric: requests, aggregate: rate",
            )
        for aggregate in asked:
            try:
                parse_aggregate(aggregate)
            except ExpressionError as error:
                raise expression_fault(error) from None
        return self


class Board(DefinitionModel):
    """A board.

    Attributes:
        title: Its heading.
        tiles: In reading order.
    """

    kind: Literal["board"] = "board"
    title: str = Field(default="", max_length=200)
    tiles: Annotated[tuple[Tile, ...], BeforeValidator(as_tuple), Field(max_length=MAX_TILES)] = ()
