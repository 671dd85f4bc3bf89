"""What `weir top` knows: a fold of the frames of the live socket, without I/O.

A frame says "this is so now"; what it does not mention is as it was. The same frames in
the same order give the same state, and a snapshot replaces what was known of its query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from weir.definitions.durations import format_duration
from weir.live import apply

POINTS: Final = 30
LEAST_STEP_MS: Final = 10_000
# Ids of subscriptions; those of metrics follow.
PIPELINE: Final = 1
ALERTS: Final = 2
FIRST_METRIC: Final = 3
FIRES: Final = ("firing", "recovering")


@dataclass(frozen=True)
class Watched:
    """Everything that is shown.

    Attributes:
        asked: Id of a subscription to a metric -> what is asked of it.
        now_ms: The server's clock, at the newest frame that tells it; 0 before the first.
        fresh: How old the numbers are (`fresh` of a heartbeat).
        bottleneck: The part that holds up the flow, if one does.
        log_warning: What the log is about to lose; None: nothing, or not told.
        quarantine_warning: What quarantine is about to lose; None: the same.
        parts: Each process, by name and instance.
        alerts: Alert id -> the alert as it is now; those that fire.
        are_alerts_known: Whether these are all. Before that nothing says that none fires.
        keys: Id of a subscription -> its key in frames.
        answers: Key of a subscription -> its newest answer.
        refused: Id of a subscription that was refused, or ended -> why.
        lost: Why the connection ended; empty while it holds, or if nothing said so.
    """

    asked: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    now_ms: int = 0
    fresh: Mapping[str, Any] = field(default_factory=dict)
    bottleneck: str | None = None
    log_warning: str | None = None
    quarantine_warning: str | None = None
    parts: tuple[Mapping[str, Any], ...] = ()
    alerts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    are_alerts_known: bool = False
    keys: Mapping[int, str] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    lost: str = ""

    @property
    def untold(self) -> list[str]:
        """What was asked for, and neither told nor refused so far."""
        told = {PIPELINE: bool(self.parts), ALERTS: self.are_alerts_known}
        told |= {number: self.answer(number) is not None for number in self.asked}
        names = {PIPELINE: "parts", ALERTS: "alerts"}
        names |= {number: str(query["metric"]) for number, query in self.asked.items()}
        missing = [
            names[one] for one, is_told in told.items() if not (is_told or one in self.refused)
        ]
        return missing if self.now_ms and self.fresh else ["freshness", *missing]

    @property
    def is_whole(self) -> bool:
        """Whether everything that was asked for has been told once, or refused."""
        return not self.untold

    def answer(self, number: int) -> Any:
        """Return the newest answer of a subscription; None if there is none."""
        return self.answers.get(self.keys.get(number, ""))


def query_of(metric: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked of a metric: its flow, over the last thirty steps.

    Of one that has only texts it is the rate, which is kept of every metric.

    Args:
        metric: It, as `GET /metrics` tells it.
    """
    named = [name for name in metric["aggregates"] if not name.startswith(("top", "theta"))]
    wanted = next((name for name in ("rate", "count") if name in named), None)
    aggregate = wanted or next(iter(named), "rate")
    step_ms = max(metric["resolution_ms"], LEAST_STEP_MS)
    return {
        "metric": metric["name"],
        "aggregate": aggregate,
        "step": format_duration(step_ms),
        "range": {"last": format_duration(POINTS * step_ms)},
    }


def fold(state: Watched, frame: Mapping[str, Any]) -> Watched:
    """Return what is known after a frame; one of a kind that is not known changes nothing."""
    match frame["op"]:
        case "welcome":
            # What a new connection does not tell again is not known any more.
            return Watched(asked=state.asked, now_ms=frame["now_ms"])
        case "heartbeat":
            return replace(state, now_ms=frame["now_ms"], fresh=frame["fresh"])
        case "pipeline":
            return replace(
                state,
                bottleneck=frame["bottleneck"],
                log_warning=frame.get("log_warning"),
                quarantine_warning=frame.get("quarantine_warning"),
                parts=tuple(frame["parts"]),
            )
        case "subscribed":
            return replace(state, keys={**state.keys, frame["id"]: frame["key"]})
        case "snapshot" | "delta":
            return replace(state, answers={**state.answers, frame["key"]: _answer(state, frame)})
        case "error" if frame["id"] is not None:
            return _refused(state, frame["id"], frame["problem"])
        case "alert":
            return replace(state, alerts=_alerts(state, frame["alert"]))
        case "alerts":
            still = {a: state.alerts[a] for a in frame["open"] if a in state.alerts}
            return replace(state, alerts=still, are_alerts_known=True)
        case "goodbye":
            return replace(state, lost=frame["reason"])
    return state


def _refused(state: Watched, number: int, problem: Mapping[str, Any]) -> Watched:
    """Return what is known after one subscription was refused; the others are told."""
    why = str(problem.get("message") or problem.get("code") or "refused")
    state = replace(state, refused={**state.refused, number: why})
    if number == ALERTS:
        return replace(state, alerts={}, are_alerts_known=False)
    if number == PIPELINE:
        return replace(state, bottleneck=None, log_warning=None, quarantine_warning=None, parts=())
    answers = {key: one for key, one in state.answers.items() if key != state.keys.get(number)}
    return replace(state, answers=answers)


def _alerts(state: Watched, alert: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    others = {a: one for a, one in state.alerts.items() if a != alert["id"]}
    return {**others, alert["id"]: alert} if alert["state"] in FIRES else others


def _answer(state: Watched, frame: Mapping[str, Any]) -> Any:
    before = state.answers.get(frame["key"])
    if frame["op"] == "delta":
        # A delta follows a snapshot, on the same connection.
        return apply(before, frame) if before is not None else before  # type: ignore[arg-type]
    if frame["part"] == 1 or before is None:
        return frame["answer"]
    return {**before, "series": [*before["series"], *frame["answer"]["series"]]}


class Newest(NamedTuple):
    """The newest value that is told of a metric.

    Attributes:
        value: None: not known.
        low, high: The ends that hold the exact one; of an exact value they are the value.
        state: As a letter; "" without a series.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    state: str = ""

    @property
    def is_estimate(self) -> bool:
        """Whether the exact value may be another one."""
        return self.low != self.high


def newest(answer: Mapping[str, Any]) -> Newest:
    """Return the newest value of an answer's first series.

    The last window of a live answer is still being filled: the one before it is told.
    """
    if not answer["series"]:
        return Newest()
    series = answer["series"][0]
    at = max(0, len(series["value"]) - 2)
    low, high = (series[name][at] if name in series else None for name in ("low", "high"))
    return Newest(series["value"][at], low, high, series["state"][at])


def values(answer: Mapping[str, Any]) -> list[float | None]:
    """Return the values of an answer's first series, the oldest first."""
    return list(answer["series"][0]["value"]) if answer["series"] else []
