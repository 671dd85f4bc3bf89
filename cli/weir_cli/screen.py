"""What `weir top` shows, as lines of text: pure, the same for a terminal and for a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weir_cli.telling import columns, instant, printable, table
from weir_cli.watched import ALERTS, PIPELINE, Newest, Watched, newest, values

SPARKS: Final = "▁▂▃▄▅▆▇█"
STATE: Final = {"p": "provisional", "i": "incomplete", "r": "rebuilding", "n": "not kept"}


def lines_of(state: Watched, *, width: int, height: int, lost_s: float | None = None) -> list[str]:
    """Return the screen, the most urgent first.

    Args:
        state: What is known.
        width: Columns; longer lines are cut.
        height: Lines; what does not fit is left out, and said so.
        lost_s: For how long the connection has been lost; None while it holds.
    """
    blocks = [_head(state, lost_s), _alerts(state, lost_s), _parts(state), _metrics(state)]
    lines = [line for block in blocks if block for line in (*block, "")][:-1]
    lines = [_cut(printable(line), width) for line in lines]
    if len(lines) <= height:
        return lines
    more = len(lines) - height + 1
    return [*lines[: height - 1], _cut(f"… {more} more lines", width)]


def told(state: Watched) -> dict[str, Any]:
    """Return what is shown as JSON: null where nothing is known, which is not nothing."""
    alerts = [dict(alert) for alert in state.alerts.values()]
    return {
        "now_ms": state.now_ms,
        "fresh": dict(state.fresh),
        "bottleneck": state.bottleneck,
        "log_warning": state.log_warning,
        "quarantine_warning": state.quarantine_warning,
        "parts": [dict(part) for part in state.parts] or None,
        "alerts": alerts if state.are_alerts_known else None,
        "metrics": [_told(state, number) for number in _shown(state)],
        "refused": {
            name: state.refused[number]
            for name, number in (("parts", PIPELINE), ("alerts", ALERTS))
            if number in state.refused
        },
    }


def _told(state: Watched, number: int) -> dict[str, Any]:
    asked, answer = state.asked[number], state.answer(number)
    found = Newest() if answer is None else newest(answer)
    return {
        "metric": asked["metric"],
        "aggregate": asked["aggregate"],
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "state": found.state,
        "refused": state.refused.get(number),
    }


def spark(found: Sequence[float | None]) -> str:
    """Return values as a row of bars, from 0 or the least below it; a gap for what is not known."""
    known = [0.0, *(value for value in found if value is not None)]
    least, steps = min(known), len(SPARKS) - 1
    height = max(known) - least or 1.0
    return "".join(
        " " if value is None else SPARKS[round((value - least) / height * steps)] for value in found
    )


def _head(state: Watched, lost_s: float | None) -> list[str]:
    if lost_s is not None:
        why = f" ({state.lost})" if state.lost else ""
        return [f"weir top  no connection for {lost_s:.0f} s{why}; trying again"]
    status = state.fresh.get("status", "…")
    through = state.fresh.get("processed_through_ms")
    age = f", counted {_ago(state.now_ms - through)} ago" if through else ""
    part = f" because of {state.fresh['part']}" if state.fresh.get("part") else ""
    slow = f"  bottleneck: {state.bottleneck}" if state.bottleneck else ""
    head = f"weir top  {instant(state.now_ms)}  {status}{age}{part}{slow}"
    warnings = filter(None, (state.log_warning, state.quarantine_warning))
    return [head, *(f"warning: {one}" for one in warnings)]


def _alerts(state: Watched, lost_s: float | None) -> list[str]:
    if not state.are_alerts_known:
        return [f"alerts: unknown, {state.refused.get(ALERTS, 'not told yet')}"]
    if not state.alerts:
        last = "no alert fires" if lost_s is None else "no alert fired when the connection was lost"
        return [last]
    rows = [["alert", "severity", "state", "value", "limit", "since"]]
    for one in sorted(state.alerts.values(), key=lambda alert: -alert["since_ms"]):
        labels = ",".join(f"{name}={value}" for name, value in one["labels"].items())
        rows.append(
            [
                one["rule"] + (f" {labels}" if labels else ""),
                one["severity"],
                f"{one['state']} {one['verdict'] or ''}".strip(),
                _number(one["value"]),
                _number(one["limit"]),
                _ago(state.now_ms - one["since_ms"]),
            ]
        )
    return table(rows)


def _parts(state: Watched) -> list[str]:
    if not state.parts:
        return [f"parts: unknown, {state.refused.get(PIPELINE, 'not told yet')}"]
    rows = [["part", "status", "busy", "in/s", "lag"]]
    for one in state.parts:
        busy = "-" if one["busy"] is None else f"{one['busy']:.0%}"
        lag = "-" if one["lag_ms"] is None else _ago(one["lag_ms"])
        rows.append([one["name"], one["status"], busy, _number(one["in"]), lag])
    return table(rows)


def _metrics(state: Watched) -> list[str]:
    rows, refused = [["metric", "value", "", "last 30 steps"]], []
    for number in _shown(state):
        asked, answer = state.asked[number], state.answer(number)
        what = f"{asked['metric']} {asked['aggregate']}"
        if answer is None:
            refused.append(f"{what}: unknown, {state.refused[number]}")
            continue
        found = newest(answer)
        unit = f" {answer['metric'].get('unit') or ''}".rstrip()
        ends = f" ({_number([found.low, found.high])})" if found.is_estimate else ""
        shown = _number(found.value) + unit + ends
        rows.append([what, shown, STATE.get(found.state, ""), spark(values(answer)[:-1])])
    return [*(table(rows) if len(rows) > 1 else []), *refused]


def _shown(state: Watched) -> list[int]:
    """Return the metrics of which something is known, by name: their subscriptions."""
    known = [n for n in state.asked if n in state.refused or state.answer(n) is not None]
    return sorted(known, key=lambda number: str(state.asked[number]["metric"]))


def _number(value: Any) -> str:
    """Return a number with four digits, or all that it has before the point."""
    if isinstance(value, list):
        return " to ".join(_number(one) for one in value)
    if value is None:
        return "-"
    # What four digits round up to 10,000 would have an exponent, too. A zero has no sign.
    return f"{value or 0:,.4g}" if abs(value) < 9_999.5 else f"{value:,.0f}"


def _ago(length_ms: float) -> str:
    seconds = max(0.0, length_ms / 1000)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3600:.0f} h"


def _cut(line: str, width: int) -> str:
    if columns(line) <= width:
        return line
    while line and columns(line) > max(0, width - 1):
        line = line[:-1]
    return line + "…"
