"""Rules: when a number of a metric is worth telling somebody.

A rule asks one aggregate of one metric over windows that follow each other, for each
group, and holds it against one limit. Two levels of severity are two rules. In place of a
metric it may name a signal of Weir itself, which says by itself what is asked of it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from weir.definitions.aggregates import parse_aggregate
from weir.definitions.base import DefinitionModel, Model, Name, as_tuple, checked_name
from weir.definitions.conditions import Conditions
from weir.definitions.durations import DurationMs, format_duration
from weir.definitions.faults import expression_fault, fault
from weir.definitions.signals import AGGREGATE, EVERY_MS, PREFIX, SIGNALS, Signal
from weir.expressions import ExpressionError

MAX_DIMENSIONS: Final = 8
MAX_LABELS: Final = 16
MAX_CHANNELS: Final = 16
FEW_EVENTS: Final = 20
"""Of fewer events a percentile is no reason to wake anybody, if the rule does not say."""

_DAY_MS: Final = 86_400_000
_PERCENTILE: Final = re.compile(r"p\d")
_LABEL: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_WEB: Final = re.compile(r"https?://[^\s\x00-\x1f]+")


def _checked_metric(name: str) -> str:
    if name.startswith(PREFIX) and name not in SIGNALS:
        known = ", ".join(SIGNALS)
        raise fault(required=f"a metric, or one of {known}", mend="name one of them", got=name)
    return name if name in SIGNALS else checked_name(name)


Number = Annotated[float, Field(ge=-1e100, le=1e100, allow_inf_nan=False)]
Texts = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=256)], ...], BeforeValidator(as_tuple)
]


class RuleWindow(Model):
    """Which windows are looked at: tumbling if they meet, hopping if they overlap.

    Attributes:
        length: Whole panes of the metric.
        step: From one window's end to the next; left out, a tenth of the length, in whole
            panes. Not longer than the length, or events would be looked at by nobody.
    """

    length: DurationMs
    step: DurationMs | None = None

    @model_validator(mode="after")
    def _meets(self) -> RuleWindow:
        if self.length <= 0 or (self.step is not None and not 0 < self.step <= self.length):
            raise fault(
                required="a window with a length, and a step not longer than it",
                mend="write window: 5m, or window: {length: 5m, step: 30s}",
                got=format_duration(self.length),
            )
        return self


class NoData(Model):
    """What a group without data does; it never means that all is well.

    Attributes:
        then: Keep the state as it was, or fire.
        tell_after: For how long before it is told, or fires.
        end_after: For how long before the group is given up: its alert ends.
    """

    then: Literal["keep", "fire"] = "keep"
    tell_after: DurationMs = 600_000
    end_after: DurationMs = _DAY_MS

    @model_validator(mode="after")
    def _in_order(self) -> NoData:
        if self.end_after < self.tell_after:
            raise fault(
                required="an end_after not shorter than tell_after",
                mend="write no_data: {tell_after: 10m, end_after: 24h}",
                got=format_duration(self.end_after),
            )
        return self


class Route(Model):
    """Who is told.

    Attributes:
        channels: Names of channels.
        repeat: How often it is told again while it fires; 0s: once.
    """

    channels: Annotated[
        tuple[Name, ...], BeforeValidator(as_tuple), Field(max_length=MAX_CHANNELS)
    ] = ()
    repeat: DurationMs = 4 * 3_600_000


class Rule(DefinitionModel):
    """A rule. Lengths of time are written as durations and held in milliseconds.

    Attributes:
        metric: Whose numbers: a metric's, or a signal's of Weir itself (`weir.lag`), which
            has one aggregate, window and grouping.
        aggregate: Which of them: `count`, `p95`, `distinct(subject)`.
        window: Over which windows.
        by: One alert for each group of these dimensions.
        where: Only these series.
        above, below, outside: The limit, one of the three; a value on it is within.
        hold: (`for`) For how long it must be beyond, from the first such window to the last.
        recover: Where it must come back to; left out, the limit itself.
        recover_for: For how long it must be back.
        min_events: A window of fewer says nothing.
        certain: Fire only if the whole error band is beyond the limit.
        decide: `fast`: on provisional windows, confirmed later; `sure`: on final ones.
        no_data: What silence does.
        severity: How bad it is; two levels are two rules.
        message: What is told; `{value}` and such are filled in.
        labels: Told along, for routing at the receiver.
        route: Who is told.
        runbook: Where it says what to do.
        mode: `shadow` records and tells nobody; `stopped` is not evaluated.
    """

    kind: Literal["rule"] = "rule"
    metric: Annotated[str, AfterValidator(_checked_metric)]
    aggregate: str
    window: RuleWindow
    by: Annotated[Texts, Field(max_length=MAX_DIMENSIONS)] = ()
    where: Conditions = ()
    above: Number | None = None
    below: Number | None = None
    outside: Annotated[tuple[Number, Number], BeforeValidator(as_tuple)] | None = None
    hold: Annotated[DurationMs, Field(alias="for")] = 0
    recover: Number | Annotated[tuple[Number, Number], BeforeValidator(as_tuple)] | None = None
    recover_for: DurationMs = 0
    min_events: Annotated[int, Field(ge=0, le=10**12)] = 0
    certain: bool = False
    decide: Literal["fast", "sure"] = "fast"
    no_data: NoData = NoData()
    severity: Literal["info", "low", "high", "critical"] = "high"
    message: str = Field(default="", max_length=1_000)
    labels: Annotated[dict[str, str], Field(max_length=MAX_LABELS)] = Field(default_factory=dict)
    route: Route = Route()
    runbook: str = Field(default="", max_length=1_000)
    mode: Literal["active", "shadow", "stopped"] = "active"

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        signal = SIGNALS.get(str(given.get("metric")))
        if signal is not None:
            window = format_duration(EVERY_MS)
            given = {"aggregate": AGGREGATE, "window": window, "by": list(signal.by), **given}
        percentile = _PERCENTILE.match(str(given.get("aggregate", "")))
        return {"min_events": FEW_EVENTS if percentile else 0, **given}

    @field_validator("window", mode="before")
    @classmethod
    def _length_alone(cls, given: Any) -> Any:
        return {"length": given} if isinstance(given, str) else given

    @field_validator("aggregate")
    @classmethod
    def _known(cls, text: str, given: ValidationInfo) -> str:
        # A rule may ask as a query does: "distinct" is short for the one that is declared.
        if text in ("distinct", "theta") or given.data.get("metric") in SIGNALS:
            return text
        if text.partition("(")[0] == "top":
            raise fault(
                required="an aggregate that is a number",
                mend="a top is a list: count the texts that matter by a metric with where",
            )
        try:
            parse_aggregate(text)
        except ExpressionError as error:
            raise expression_fault(error) from None
        return text

    @field_validator("labels")
    @classmethod
    def _named(cls, labels: dict[str, str]) -> dict[str, str]:
        for name, value in labels.items():
            if not _LABEL.fullmatch(name) or len(value) > 256:
                raise fault(
                    required="labels with names of a-z, 0-9 and _, and texts of at most 256",
                    mend="write labels: {team: checkout}",
                    got=name,
                )
        return labels

    @field_validator("runbook")
    @classmethod
    def _web(cls, link: str) -> str:
        if link and not _WEB.fullmatch(link):
            raise fault(required="an http or https link", mend="write runbook: https://…")
        return link

    @model_validator(mode="after")
    def _one_limit(self) -> Rule:
        said = [n for n in ("above", "below", "outside") if getattr(self, n) is not None]
        if len(said) != 1:
            raise fault(
                required="a rule with one of above, below and outside",
                mend="write above: 400; for two levels write two rules",
                got=", ".join(said) or "none",
            )
        self._check_recover()
        return self

    @model_validator(mode="after")
    def _as_the_signal(self) -> Rule:
        signal = SIGNALS.get(self.metric)
        if signal is None:
            return self
        asked = self.aggregate, self.window.length, self.by
        if asked != (AGGREGATE, EVERY_MS, signal.by) or self.where or self.window.step:
            raise fault(
                required=f"a rule on {self.metric} without aggregate, window, by and where",
                mend="leave them out: a signal has its own",
                got=f"{self.aggregate} over {format_duration(self.window.length)}",
            )
        return self

    def _check_recover(self) -> None:
        low, high = self.limits
        back_low, back_high = self.back
        if low > high or not (low <= back_low <= back_high <= high):
            side = {"above": "at most", "below": "at least"}.get(self.side, "within")
            raise fault(
                required=f"a recover {side} the limit, {self.limit_text}",
                mend="leave it out, or bring it inside, so that what recovers is not beyond",
                got=str(self.recover if self.recover is not None else self.outside),
            )

    # ── what the evaluator asks ─────────────────────────────────────────────

    @property
    def signal(self) -> Signal | None:
        """The signal of Weir itself that it watches; None for a rule on a metric."""
        return SIGNALS.get(self.metric)

    @property
    def side(self) -> str:
        """Which of the three the limit is: `above`, `below` or `outside`."""
        return next(n for n in ("above", "below", "outside") if getattr(self, n) is not None)

    @property
    def limit(self) -> float | tuple[float, float]:
        """The limit as it was written: a number, or the two of `outside`."""
        if self.outside is not None:
            return self.outside
        low, high = self.limits
        return high if self.below is None else low

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest value within the limit; infinite where there is none."""
        if self.outside is not None:
            return self.outside
        low = -float("inf") if self.below is None else self.below
        return low, float("inf") if self.above is None else self.above

    @property
    def back(self) -> tuple[float, float]:
        """The least and the greatest value that is a recovery."""
        low, high = self.limits
        if self.recover is None:
            return low, high
        if isinstance(self.recover, tuple):
            return self.recover
        return (low, self.recover) if self.below is None else (self.recover, high)

    @property
    def limit_text(self) -> str:
        """The limit as people write it."""
        if isinstance(self.limit, tuple):
            return f"{self.limit[0]:,.15g} to {self.limit[1]:,.15g}"
        return f"{self.limit:,.15g}"
