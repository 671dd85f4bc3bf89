"""`weir top`: what it knows, what it shows, and both against a real dashboard."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from weir_cli.screen import lines_of, spark, told
from weir_cli.telling import columns, table
from weir_cli.watched import Watched, fold, query_of
from weir_local.testing import TestStack

from .conftest import Command

NOW_MS = 1_800_000_000_000
ANSWER: dict[str, Any] = {
    "metric": {"name": "orders", "unit": "", "resolution_ms": 10_000},
    "t_ms": [NOW_MS - 20_000, NOW_MS - 10_000, NOW_MS],
    "series": [
        {"k": 0, "by": {}, "value": [1.0, 5.0, 2.0], "count": [10, 50, 20], "state": "fpp"}
    ],
    "of": 1, "notes": [], "corrections": [], "final_to_ms": NOW_MS - 20_000,
}  # fmt: skip
ALERT = {
    "id": "a1", "rule": "slow", "labels": {"region": "eu\x1b[2J"}, "severity": "high",
    "state": "firing", "verdict": "provisional", "value": 617.2, "limit": 400.0,
    "since_ms": NOW_MS - 60_000,
}  # fmt: skip
FRAMES: list[dict[str, Any]] = [
    {"op": "welcome", "now_ms": NOW_MS - 1},
    {"op": "subscribed", "id": 1, "key": "p1"},
    {"op": "subscribed", "id": 3, "key": "q1", "query": {"metric": "orders", "aggregate": "rate"}},
    {"op": "snapshot", "key": "q1", "part": 1, "parts": 1, "answer": ANSWER},
    {"op": "alert", "key": "a1", "seq": 5, "alert": ALERT},
    {"op": "alerts", "key": "a1", "seq": 5, "open": ["a1"]},
    {
        "op": "pipeline", "key": "p1", "bottleneck": "panes",
        "parts": [{"name": "panes", "instance": "x", "status": "ok", "busy": 0.84, "in": 1281.0,
                   "lag_ms": 220}],
    },
    {
        "op": "heartbeat", "now_ms": NOW_MS,
        "fresh": {"status": "live", "processed_through_ms": NOW_MS - 400, "part": None},
    },
    {"op": "of_a_later_release"},
]  # fmt: skip


ASKED = {3: {"metric": "orders", "aggregate": "rate"}}
NEWER = {"code": "not_available", "message": "a newer release has written weir.alerts"}


def refused(number: int) -> dict[str, Any]:
    """Return the frame that refuses a subscription."""
    return {"op": "error", "id": number, "problem": NEWER}


def folded(frames: list[dict[str, Any]]) -> Watched:
    """Return what is known after frames."""
    state = Watched(asked=ASKED)
    for frame in frames:
        state = fold(state, frame)
    return state


class TestWhatIsShown:
    def test_the_whole_screen(self) -> None:
        """Freshness, alerts, parts and metrics; the window that is still filling is left out."""
        assert lines_of(folded(FRAMES), width=120, height=40) == [
            "weir top  2027-01-15 08:00:00Z  live, counted 0.4 s ago  bottleneck: panes",
            "",
            "alert               severity  state               value  limit  since",
            "slow region=eu�[2J  high      firing provisional  617.2  400    60 s",
            "",
            "part   status  busy  in/s   lag",
            "panes  ok      84%   1,281  0.2 s",
            "",
            "metric       value               last 30 steps",
            "orders rate  5      provisional  ▂█",
        ]

    def test_an_estimate_has_its_ends(self) -> None:
        """Between which the exact value lies; an exact one has none to tell."""
        series = ANSWER["series"][0]
        for low, high, shown in ((4.5, 6.0, "5 (4.5 to 6)"), (5.0, 5.0, "5")):
            ends = {"low": [1.0, low, 2.0], "high": [1.0, high, 2.0]}
            answer = {**ANSWER, "series": [{**series, **ends}]}
            state = folded([*FRAMES, {**FRAMES[3], "answer": answer}])
            line = lines_of(state, width=120, height=40)[-1]
            assert line.split("  ")[1].strip() == shown
            (metric,) = told(state)["metrics"]
            assert (metric["value"], metric["low"], metric["high"]) == (5.0, low, high)

    def test_what_the_log_is_about_to_lose_comes_first(self) -> None:
        """As long as the dashboard says so; one of an older release says nothing of it."""
        said: dict[str, Any] = {"op": "pipeline", "key": "p1", "bottleneck": None, "parts": []}
        warned = folded([*FRAMES, said | {"log_warning": "events are deleted in 13 min"}])
        lines = lines_of(warned, width=120, height=40)
        assert lines[1] == "warning: events are deleted in 13 min"
        assert told(warned)["log_warning"] == "events are deleted in 13 min"
        for after in (said, said | {"log_warning": None}, {"op": "welcome", "now_ms": NOW_MS}):
            state = fold(warned, after)
            assert not any("warning" in line for line in lines_of(state, width=120, height=40))
            assert told(state)["log_warning"] is None

    def test_what_quarantine_is_about_to_lose_stands_behind_it(self) -> None:
        """Whoever can replay it has to know in time."""
        said: dict[str, Any] = {"op": "pipeline", "key": "p1", "bottleneck": None, "parts": []}
        both = said | {"log_warning": "of the log", "quarantine_warning": "of quarantine"}
        warned = folded([*FRAMES, both])
        assert lines_of(warned, width=120, height=40)[1:3] == [
            "warning: of the log",
            "warning: of quarantine",
        ]
        assert told(warned)["quarantine_warning"] == "of quarantine"
        assert told(fold(warned, said))["quarantine_warning"] is None

    def test_what_ended_is_gone(self) -> None:
        """An alert that ended, or that the list of those that fire does not name."""
        for last in (
            {"op": "alert", "key": "a1", "seq": 6, "alert": {**ALERT, "state": "resolved"}},
            {"op": "alerts", "key": "a1", "seq": 6, "open": []},
        ):
            assert "no alert fires" in lines_of(folded([*FRAMES, last]), width=80, height=40)

    def test_a_lost_connection(self) -> None:
        """What was known stays, under a line that says so; a new connection begins anew."""
        first, *_ = lines_of(folded(FRAMES), width=80, height=40, lost_s=12.3)
        assert first == "weir top  no connection for 12 s; trying again"
        said = folded([*FRAMES, {"op": "goodbye", "code": 1012, "reason": "restart"}])
        first, *_ = lines_of(said, width=80, height=40, lost_s=12.3)
        assert first == "weir top  no connection for 12 s (restart); trying again"
        assert folded([*FRAMES, FRAMES[0]]).alerts == {}

    def test_what_is_not_known_of_alerts_is_not_that_none_fires(self) -> None:
        """Before they are told, after each new connection, and where they are refused."""
        none = {"op": "alerts", "key": "a1", "seq": 5, "open": []}
        for frames, shown in (
            ([], "alerts: unknown, not told yet"),
            (FRAMES[:5], "alerts: unknown, not told yet"),
            ([*FRAMES, none], "no alert fires"),
            ([*FRAMES, none, FRAMES[0]], "alerts: unknown, not told yet"),
            ([*FRAMES, none, refused(2)], f"alerts: unknown, {NEWER['message']}"),
        ):
            state = folded(frames)
            lines = lines_of(state, width=120, height=40)
            assert shown in lines
            assert ("no alert fires" in lines) == (shown == "no alert fires")
            assert (told(state)["alerts"] is None) == ("unknown" in shown)
        lost = lines_of(folded([*FRAMES, none]), width=120, height=40, lost_s=3)
        assert "no alert fired when the connection was lost" in lost
        assert told(folded([*FRAMES, refused(2)]))["refused"] == {"alerts": NEWER["message"]}

    def test_what_is_refused_is_shown_with_its_reason(self) -> None:
        """Parts, and a metric such as one that was deleted meanwhile; its old numbers go."""
        state = folded([*FRAMES, refused(1), refused(3)])
        lines = lines_of(state, width=120, height=40)
        assert f"parts: unknown, {NEWER['message']}" in lines
        assert f"orders rate: unknown, {NEWER['message']}" in lines
        assert told(state)["parts"] is None
        (metric,) = told(state)["metrics"]
        assert (metric["value"], metric["refused"]) == (None, NEWER["message"])

    def test_nothing_is_reported_before_all_of_it_is_known(self) -> None:
        """Alerts, parts, freshness, and each metric that was asked for; told or refused."""
        state = Watched(asked={**ASKED, 4: {"metric": "b", "aggregate": "count"}})
        assert state.untold == ["freshness", "parts", "alerts", "orders", "b"]
        whole = []
        for frame in (*FRAMES, refused(4)):
            state = fold(state, frame)
            whole.append(state.is_whole)
        assert whole == [False] * len(FRAMES) + [True]
        assert fold(state, refused(2)).is_whole
        assert not folded([one for one in FRAMES if one["op"] != "alerts"]).is_whole
        # A refusal of the alerts stands for no metric.
        early = folded([*(one for one in FRAMES if one["op"] != "snapshot"), refused(2)])
        assert early.untold == ["orders"]
        assert fold(state, FRAMES[0]).untold == ["freshness", "parts", "alerts", "orders", "b"]

    def test_a_small_terminal(self) -> None:
        """Nothing is wider or longer than the terminal, and what is left out is said."""
        lines = lines_of(folded(FRAMES), width=20, height=4)
        assert max(map(len, lines)) <= 20
        assert lines[3:] == ["… 7 more lines"]

    def test_wide_signs(self) -> None:
        """A sign may take two columns of a terminal, or none; rows stand below each other."""
        assert [columns(text) for text in ("a", "東京", "e\u0301", "ｱ", "（")] == [1, 4, 1, 1, 2]  # noqa: RUF001  wide on purpose
        wide = {**ALERT, "rule": "遅い" * 10, "labels": {"region": "東京"}}
        frames = [*FRAMES, {"op": "alert", "key": "a1", "seq": 6, "alert": wide}]
        lines = lines_of(folded(frames), width=40, height=40)
        assert max(map(columns, lines)) <= 40
        head, row = table([["alert", "state"], ["遅い", "firing"]])
        assert columns(head[: head.index("state")]) == columns(row[: row.index("firing")])

    def test_sparks(self) -> None:
        """From 0, or the least below it, to the largest; a gap where nothing is known."""
        assert spark([0.0, 1.0, None, 2.0]) == "▁▅ █"
        assert spark([None, None]) == "  "
        assert spark([0.0]) == "▁"
        assert spark([-2.0, 0.0, 2.0]) == "▁▅█"
        assert spark([-2.0, -1.0]) == "▁▅"

    def test_what_is_asked(self) -> None:
        """The flow where a metric has it, else what it has; steps of whole panes."""
        metric = {"name": "m", "aggregates": ["avg", "rate"], "resolution_ms": 1_000}
        assert query_of(metric) == {
            "metric": "m",
            "aggregate": "rate",
            "step": "10s",
            "range": {"last": "5m"},
        }
        hourly = {"name": "m", "aggregates": ["p95"], "resolution_ms": 3_600_000}
        asked = query_of(hourly)
        assert (asked["aggregate"], asked["step"]) == ("p95", "1h")
        for texts in (["top(data.a, 5)"], ["theta(subject)", "top(data.a)"]):
            assert query_of({**hourly, "aggregates": texts})["aggregate"] == "rate"

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (9_999.4, "9,999"),
            (9_999.5, "10,000"),
            (9_999.6, "10,000"),
            (-9_999.6, "-10,000"),
            (12_345.6, "12,346"),
            (1_234_567.0, "1,234,567"),
            (0.16666, "0.1667"),
            (-0.0, "0"),
        ],
    )
    def test_four_digits(self, value: float, shown: str) -> None:
        """Or all before the point: what is rounded up to 10,000 has no exponent."""
        changed = {**ANSWER["series"][0], "value": [1.0, value, 2.0]}
        answer = {**ANSWER, "series": [changed]}
        line = lines_of(folded([*FRAMES, {**FRAMES[3], "answer": answer}]), width=99, height=40)[-1]
        assert line.split("  ")[1] == shown


@pytest.mark.stack
class TestAgainstADashboard:
    def test_a_report_where_there_is_no_terminal(self, weir: Command) -> None:
        """Plain lines, or JSON; it ends after as many as were asked for."""
        written, _ = weir.do("top", "-n", "1")
        assert written.startswith("weir top  20")
        assert "\ndashboard  ok" in written
        assert "\x1b" not in written
        (found,) = map(json.loads, weir.do("top", "-n", "1", "--json")[0].splitlines())
        assert "dashboard" in {part["name"] for part in found["parts"]}
        assert found["lost_s"] is None

    def test_a_metric_that_is_not_there(self, weir: Command) -> None:
        """Exit code 2, and what to look at."""
        _, errors = weir.do("top", "nowhere", code=2)
        assert "must be one of this tenant's, got nowhere; `weir get metric` lists them" in errors

    def test_a_key_that_does_not_hold(self, weir: Command) -> None:
        """It is refused at once, not tried for ever."""
        weir.key = "wk_aaaaaaaa_" + "b" * 43
        assert "key" in weir.do("top", "-n", "1", code=1)[1]

    def test_on_a_terminal(self, installation: TestStack) -> None:
        """It draws until Ctrl-C, and leaves the terminal as it was."""
        ours, theirs = pty.openpty()
        environment = {
            **os.environ,
            "WEIR_DASHBOARD_URL": installation.dashboard_url,
            "WEIR_API_KEY": installation.key,
        }
        command = [sys.executable, "-m", "weir_cli", "top"]
        process = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs)  # noqa: S603
        os.close(theirs)
        try:
            drawn = read_until(ours, b"dashboard  ok")
            assert drawn.startswith(b"\x1b[?1049h\x1b[?25l\x1b[H")
            process.send_signal(signal.SIGINT)
            left = read_until(ours, b"\x1b[?1049l")
            assert b"\x1b[?25h" in left
            assert process.wait(30) == 130
        finally:
            process.kill()
            process.wait()
            os.close(ours)


def read_until(terminal: int, wanted: bytes, timeout_s: float = 60.0) -> bytes:
    """Return what a terminal shows up to some bytes."""
    seen, deadline = b"", time.monotonic() + timeout_s
    while wanted not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 65_536)
    return seen
