"""Metrics: what is counted, of which events, by what, how finely, and for how long."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from weir.definitions.aggregates import OF_TEXTS, SUFFIXES, Aggregate, parse_aggregate
from weir.definitions.base import DefinitionModel, as_tuple, is_written
from weir.definitions.durations import DurationMs, format_duration
from weir.definitions.faults import expression_fault, fault
from weir.definitions.selection import Selection
from weir.definitions.sketch_sizes import MAX_KLL_K, USUAL_SIZES, SketchSizes
from weir.expressions import (
    ExpressionError,
    Node,
    Path,
    parse_number,
    parse_where,
)
from weir.expressions.dimension import Dimension, names_of, parse_dimension
from weir.expressions.tree import paths_of
from weir.problems import Reason
from weir.sketches import kll_k, least_kll_k

RESOLUTIONS_MS: Final = (1_000, 10_000, 60_000, 3_600_000)
MAX_KEEP_MS: Final = 400 * 86_400_000
"""Events older than this are beyond the horizon and in no pane."""
MAX_DIMENSIONS: Final = 8
MAX_AGGREGATES: Final = 16
MAX_SERIES: Final = 100_000

DEFAULT_KEEP_MS: Final = {
    1_000: 6 * 3_600_000,
    10_000: 24 * 3_600_000,
    60_000: 7 * 86_400_000,
    3_600_000: 90 * 86_400_000,
}
# The names of a metric's aggregates in the Prometheus API.
_AMBIGUOUS: Final = re.compile(rf".*_(p\d+|{SUFFIXES})")

_T = TypeVar("_T")


def _parsed(parse: Callable[[str], _T], text: str) -> _T:
    try:
        return parse(text)
    except ExpressionError as error:
        raise expression_fault(error) from None


def _checks(parse: Callable[..., object]) -> AfterValidator:
    def check(text: str, info: ValidationInfo) -> str:
        _parsed(partial(parse, written=is_written(info)), text)
        return text

    return AfterValidator(check)


def _same_dimension(text: str, info: ValidationInfo) -> str:
    return _parsed(partial(parse_dimension, written=is_written(info)), text).text


def _same_aggregate(text: str) -> str:
    return _parsed(parse_aggregate, text).name


def checked_resolution(value: int) -> int:
    """Return a length of panes as it is, if there are panes of that length.

    Raises:
        PydanticCustomError: Which lengths there are.
    """
    if value not in RESOLUTIONS_MS:
        names = ", ".join(map(format_duration, RESOLUTIONS_MS))
        raise fault(
            required=f"one of {names}", mend="windows may be any multiple of it: choose the finest"
        )
    return value


ResolutionMs = Annotated[DurationMs, AfterValidator(checked_resolution)]


class Metric(DefinitionModel):
    """A metric.

    Lengths of time are written as durations and held in milliseconds.

    Attributes:
        events: Which events are looked at.
        where: Condition; an event for which it is false or null is not matched.
        value: What is measured; left out, events are only counted.
        unit: Of the value, as shown: `ms`, `bytes`, `€`.
        by: The dimensions, in the order of the series text: paths, or expressions,
            each with a name behind `as`.
        aggregates: What can be asked of it: `count`, `p95`, `distinct(subject)` and others.
        sketches: How large its sketches are.
        resolution: Length of a pane.
        keep: Resolution -> how long its panes are kept; the metric's own and coarser ones.
        allowed_lateness: How long after its end a pane is provisional.
        max_series: Beyond it, series are counted together as `other`; over several shards
            some may be before, since each shard has its part of the number.
    """

    kind: Literal["metric"] = "metric"
    events: Selection
    where: Annotated[str, _checks(parse_where)] | None = None
    value: Annotated[str, _checks(parse_number)] | None = None
    unit: str = Field(default="", max_length=32)
    by: Annotated[
        tuple[Annotated[str, AfterValidator(_same_dimension)], ...],
        BeforeValidator(as_tuple),
        Field(max_length=MAX_DIMENSIONS),
    ] = ()
    aggregates: Annotated[
        tuple[Annotated[str, AfterValidator(_same_aggregate)], ...],
        BeforeValidator(as_tuple),
        Field(min_length=1, max_length=MAX_AGGREGATES),
    ]
    sketches: SketchSizes = USUAL_SIZES
    resolution: ResolutionMs = 10_000
    keep: dict[ResolutionMs, DurationMs]
    allowed_lateness: Annotated[DurationMs, Field(le=86_400_000)] = 60_000
    max_series: Annotated[int, Field(ge=1, le=MAX_SERIES)] = 1_000

    # ── defaults that depend on other members ───────────────────────────────

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        filled = dict(given)
        measured = filled.get("value") is not None
        filled.setdefault(
            "aggregates", ["count", "avg", "min", "max"] if measured else ["count", "rate"]
        )
        if "keep" not in filled:
            finest = _finest(filled.get("resolution", "10s"))
            kept = {r: k for r, k in DEFAULT_KEEP_MS.items() if r >= finest}
            filled["keep"] = {format_duration(r): format_duration(k) for r, k in kept.items()}
        return filled

    # ── checks of one member ────────────────────────────────────────────────

    @field_validator("name")
    @classmethod
    def _unambiguous(cls, name: str) -> str:
        if _AMBIGUOUS.fullmatch(name):
            ending = name.rpartition("_")[2]
            raise fault(
                required=f'a name that does not end in "_{ending}"',
                mend=f"{name} would be read as the {ending} of {name.rpartition('_')[0]}; "
                "choose another name",
                reason=Reason.NAME_AMBIGUOUS,
            )
        return name

    @field_validator("by", "aggregates")
    @classmethod
    def _once(cls, texts: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        again = next((text for at, text in enumerate(texts) if text in texts[:at]), None)
        if again is None:
            return texts
        if is_written(info):
            mend = f"name each once: {again} stands there twice"
            raise fault(required="a list without repetitions", mend=mend)
        # Two dimensions that are one have two places in every series text that was stored.
        return texts if info.field_name == "by" else tuple(dict.fromkeys(texts))

    @field_validator("by")
    @classmethod
    def _each_name_once(cls, texts: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        dimensions = [parse_dimension(text) for text in texts] if is_written(info) else []
        for one in dimensions:
            others = [other for other in dimensions if other is not one]
            if one.given is not None and any(one.given in other.called for other in others):
                raise fault(
                    required="dimensions that each have a name of their own",
                    mend=f"call one of them something else than {one.given}",
                    got=", ".join(texts),
                )
        return texts

    @field_validator("aggregates")
    @classmethod
    def _each_word_once(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        words = [parse_aggregate(text).word for text in texts]
        for word in OF_TEXTS:
            if words.count(word) > 1:
                raise fault(
                    required=f"at most one {word}(...)",
                    mend="define a second metric for the other one",
                )
        return texts

    @field_validator("sketches")
    @classmethod
    def _carries_percentiles(cls, sizes: SketchSizes, info: ValidationInfo) -> SketchSizes:
        asked = map(parse_aggregate, info.data.get("aggregates", ()))
        percentiles = {a.percentile / 100: a.name for a in asked if a.percentile is not None}
        if sizes.kll_k is None or not percentiles or not is_written(info):
            return sizes
        tail, worst = min((min(q, 1 - q), name) for q, name in percentiles.items())
        least = least_kll_k(tail) or MAX_KLL_K  # more extreme ones are no aggregates
        if sizes.kll_k < least:
            raise fault(
                required=f"a kll_k of at least {least}, which {worst} takes",
                mend=f"write kll_k: {least}, leave kll_k out, or do not ask for {worst}",
                got=str(sizes.kll_k),
            )
        return sizes

    # ── checks across members ───────────────────────────────────────────────

    @model_validator(mode="after")
    def _consistent(self) -> Metric:
        wanting = [a.name for a in self.parsed_aggregates if a.needs_value]
        if self.value is None and wanting:
            raise fault(
                required=f'a metric with "value" for {", ".join(wanting)}',
                mend="say what is measured: value: data.amount",
                got="no value",
            )
        self._check_keep()
        return self

    def _check_keep(self) -> None:
        own = format_duration(self.resolution)
        if self.resolution not in self.keep or min(self.keep) < self.resolution:
            raise fault(
                required=f"a keep with {own}, the resolution, and none finer",
                mend=f"write keep: {{{own}: 24h}}, or change the resolution",
                got=", ".join(map(format_duration, self.keep)),
            )
        for resolution, length in self.keep.items():
            if not max(resolution, self.allowed_lateness) <= length <= MAX_KEEP_MS:
                raise fault(
                    required=f"a keep of {format_duration(resolution)} between "
                    f"{format_duration(self.allowed_lateness)}, the allowed lateness, and 400d",
                    mend="keep a pane at least until it is final",
                    got=format_duration(length),
                )

    # ── what the engine and the readers ask ─────────────────────────────────

    @cached_property
    def where_tree(self) -> Node | None:
        """The condition as a tree; None if every selected event matches."""
        return None if self.where is None else parse_where(self.where)

    @cached_property
    def value_tree(self) -> Node | None:
        """What is measured, as a tree; None if events are only counted."""
        return None if self.value is None else parse_number(self.value)

    @property
    def counted(self) -> object:
        """Which events are counted, and which value of them: equal if two metrics count the same.

        `by` is none of it: who asks for a dimension says so.
        """
        chosen = frozenset(self.events.type), frozenset(self.events.source)
        return chosen, self.where_tree, self.value_tree

    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        """What splits it into series, in the order of the series text."""
        return tuple(map(parse_dimension, self.by))

    @cached_property
    def dimension_names(self) -> tuple[str, ...]:
        """What the dimensions are called in answers; see `names_of`."""
        return names_of(self.dimensions)

    def dimension(self, name: str) -> int | None:
        """Return the place of a dimension called by its name or its path; None if unknown."""
        if name in self.dimension_names:
            return self.dimension_names.index(name)
        paths = [None if one.path is None else str(one.path) for one in self.dimensions]
        return paths.index(name) if name in paths else None

    @cached_property
    def parsed_aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates."""
        return tuple(map(parse_aggregate, self.aggregates))

    @cached_property
    def percentiles(self) -> tuple[float, ...]:
        """The percentiles asked for, such as 99.9."""
        return tuple(a.percentile for a in self.parsed_aggregates if a.percentile is not None)

    @cached_property
    def distinct_path(self) -> Path | None:
        """Whose values are counted distinct; None if nobody asks."""
        return self._path_of("distinct")

    @cached_property
    def theta_path(self) -> Path | None:
        """Whose values make a set that can be compared; None if nobody asks."""
        return self._path_of("theta")

    @cached_property
    def top_path(self) -> Path | None:
        """Whose most frequent values are listed; None if nobody asks."""
        return self._path_of("top")

    @cached_property
    def members(self) -> tuple[Path, ...]:
        """The paths whose texts some sketch takes, each once, that of `distinct` first."""
        paths = (self.distinct_path, self.theta_path, self.top_path)
        return tuple(dict.fromkeys(path for path in paths if path is not None))

    def _path_of(self, word: str) -> Path | None:
        return next((a.path for a in self.parsed_aggregates if a.word == word), None)

    @property
    def needs_kll(self) -> bool:
        """Whether a percentile is asked for, so that panes carry a KLL sketch."""
        return bool(self.percentiles)

    @property
    def needs_hll(self) -> bool:
        """Whether a distinct count is asked for, so that panes carry an HLL sketch."""
        return self.distinct_path is not None

    @property
    def needs_spread(self) -> bool:
        """Whether a standard deviation is asked for."""
        return "stddev" in self.aggregates

    @property
    def needs_last(self) -> bool:
        """Whether the newest value is asked for."""
        return "last" in self.aggregates

    @property
    def kll_k(self) -> int:
        """Size of the KLL sketch that carries the percentiles; 0 without any."""
        if not self.percentiles:
            return 0
        return self.sketches.kll_k or kll_k(p / 100 for p in self.percentiles)

    @property
    def resolution_ms(self) -> int:
        """Length of a pane."""
        return self.resolution

    @property
    def lateness_ms(self) -> int:
        """How long after its end a pane is provisional."""
        return self.allowed_lateness

    @property
    def keep_ms(self) -> Mapping[int, int]:
        """Resolution -> how long its panes are kept, finest first."""
        return dict(sorted(self.keep.items()))

    @cached_property
    def trees(self) -> tuple[Node, ...]:
        """Every expression that it has."""
        found = (self.where_tree, self.value_tree, *(one.tree for one in self.dimensions))
        return tuple(tree for tree in found if tree is not None)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """Every path that the metric reads, each once."""
        found = [path for tree in self.trees for path in paths_of(tree)]
        read = (one.path for one in self.dimensions if one.path is not None)
        return tuple(dict.fromkeys((*found, *read, *self.members)))

    def selects(self, event: Mapping[str, Any]) -> bool:
        """Tell whether an event is of the types and the source of the metric."""
        return self.events.matches(event)


def _finest(resolution: Any) -> int:
    """Return a resolution in milliseconds; the least one if it is wrong, to be told later."""
    known = {format_duration(r): r for r in RESOLUTIONS_MS}
    return known.get(str(resolution), RESOLUTIONS_MS[0])
