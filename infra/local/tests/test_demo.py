"""The demo's feeder: reading the log, moving its times, going on after a stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.clock import ManualClock
from weir.definitions.check import check
from weir.definitions.rule import Rule
from weir_local.client import ApiClient
from weir_local.demo.accesslog import parse_line, read_log
from weir_local.demo.feeder import (
    BATCH,
    MOST_SAMPLES,
    MachineSamples,
    Progress,
    WebRequests,
    iso,
)
from weir_local.demo.machine import Counters, rates
from weir_local.demo.prepare import read_definitions
from weir_local.demo.schedule import PASS_MS, Cursor, Schedule, squeeze
from weir_local.repository import ACCESS_LOG, DEFINITIONS
from weir_local.waiting import wait_until

LINE = (
    '1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 404 203 '
    '"http://x/" "Agent \\"quoted\\" 1.0"'
)
NOW_MS = 1_800_000_000_000


class Recorder(ApiClient):
    """Takes what is posted instead of sending it."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1", "key")
        self.posted: list[dict[str, Any]] = []

    def post_events(self, events: list[dict[str, Any]]) -> Any:
        """Keep the events."""
        self.posted += events


class TestParseLine:
    def test_every_field(self) -> None:
        """All fields of a line are read, with an escaped quote inside."""
        request = parse_line(LINE)
        assert request.time_ms == 1431857103000
        assert request.data == {
            "client": "1.2.3.4",
            "method": "GET",
            "path": "/a?b=c",
            "status": 404,
            "status_class": "4xx",
            "bytes": 203,
            "referrer": "http://x/",
            "agent": 'Agent \\"quoted\\" 1.0',
        }

    def test_a_dash_is_left_out(self) -> None:
        """What the log does not know is missing in the event, never zero."""
        request = parse_line('h - - [17/May/2015:10:05:03 +0200] "HEAD / HTTP/1.0" 304 - "-" "-"')
        assert request.time_ms == 1431849903000
        assert request.data.keys() == {"client", "method", "path", "status", "status_class"}

    def test_rejects_another_format(self) -> None:
        """A line of another format is refused, and shown."""
        with pytest.raises(ValueError, match="combined log format, got 'hello'"):
            parse_line("hello")

    def test_the_whole_log(self) -> None:
        """All 10,000 requests are read, in order of time, with their status."""
        requests = read_log(ACCESS_LOG)
        assert len(requests) == 10_000
        assert Counter(r.data["status"] for r in requests)[200] == 9126
        times = [r.time_ms for r in requests]
        assert times == sorted(times)


class TestSqueeze:
    @given(st.lists(st.integers(0, 10**9).map(lambda s: s * 1000), min_size=1, max_size=200))
    def test_fills_the_length_in_order(self, times: list[int]) -> None:
        """Offsets ascend, begin at 0 and stay within the length."""
        offsets = squeeze(sorted(times))
        assert offsets == sorted(offsets)
        assert offsets[0] == 0
        assert offsets[-1] < PASS_MS

    def test_no_gap_is_left(self) -> None:
        """The real log, squeezed, has requests in each 10 s of its hour."""
        offsets = squeeze([r.time_ms for r in read_log(ACCESS_LOG)])
        assert set(range(360)) == {offset // 10_000 for offset in offsets}


class TestSchedule:
    schedule = Schedule(NOW_MS, (0, 1000, 3_599_999))

    def test_first_pass_is_the_past_hour(self) -> None:
        """At the start exactly the first pass is due, and the next line is the second pass."""
        due = self.schedule.due(Cursor(), NOW_MS - 1, 10)
        assert [d.time_ms - NOW_MS for d in due] == [-PASS_MS, -PASS_MS + 1000, -1]
        after = self.schedule.after(Cursor(), 3)
        assert after == Cursor(1, 0)
        assert [d.round for d in self.schedule.due(after, NOW_MS, 10)] == [1]

    def test_nothing_comes_early(self) -> None:
        """A line is due at its instant and not a millisecond before."""
        assert self.schedule.due(Cursor(1, 1), NOW_MS + 999, 10) == []
        assert len(self.schedule.due(Cursor(1, 1), NOW_MS + 1000, 10)) == 1

    def test_a_long_absence_is_skipped(self) -> None:
        """After a night only the last hour is sent, and a cursor never goes back."""
        night_ms = NOW_MS + 12 * PASS_MS
        moved = self.schedule.not_before(Cursor(1, 1), night_ms - PASS_MS)
        assert moved == Cursor(12, 0)
        assert self.schedule.not_before(Cursor(12, 2), night_ms - PASS_MS) == Cursor(12, 2)


class TestWebRequests:
    def feeder(self, path: Path) -> WebRequests:
        """Return a feeder over three lines."""
        requests = [parse_line(LINE)] * 3
        progress = Progress.read(path, NOW_MS)
        return WebRequests(requests, Schedule(progress.started_ms, (0, 1000, 2000)), progress)

    def test_goes_on_where_it_stopped(self, tmp_path: Path) -> None:
        """A second feeder sends nothing twice and keeps the first one's ids and times."""
        first, second = Recorder(), Recorder()
        state = tmp_path / "state.json"
        assert self.feeder(state).send(first, NOW_MS - 1) == 3
        assert self.feeder(state).send(second, NOW_MS + 1500) == 2
        ids = [event["id"] for event in first.posted + second.posted]
        assert len(set(ids)) == 5
        assert second.posted[0]["time"] == iso(NOW_MS)

    def test_a_repeated_line_has_the_same_id(self, tmp_path: Path) -> None:
        """A crash between the answer and the saved state repeats ids, it makes no new ones."""
        first, again = Recorder(), Recorder()
        state = tmp_path / "state.json"
        feeder = self.feeder(state)
        feeder.progress.save()
        before = state.read_text()
        feeder.send(first, NOW_MS - 1)
        state.write_text(before)
        self.feeder(state).send(again, NOW_MS - 1)
        assert again.posted == first.posted

    def test_stops_between_batches(self, tmp_path: Path) -> None:
        """Told to stop, it sends no further batch."""
        requests = [parse_line(LINE)] * (3 * BATCH)
        progress = Progress.read(tmp_path / "state.json", NOW_MS)
        schedule = Schedule(progress.started_ms, tuple(range(len(requests))))
        recorder = Recorder()
        sent = WebRequests(requests, schedule, progress).send(
            recorder, NOW_MS, lambda: len(recorder.posted) >= BATCH
        )
        assert sent == len(recorder.posted) == BATCH


class Busy(BaseHTTPRequestHandler):
    """Answers that it has no room, and counts how often it was asked."""

    asked: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        """Refuse for now."""
        self.asked.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(503)
        self.send_header("Retry-After", "5")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Write nothing."""


def test_samples_are_taken_and_sigterm_is_seen_while_ingest_is_away(tmp_path: Path) -> None:
    """The feeder neither stands still at a 503 nor outlives SIGTERM, and exits cleanly."""
    Busy.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        **os.environ,
        "WEIR_INGEST_URL": f"http://127.0.0.1:{server.server_port}",
        "WEIR_API_KEY": "key",
        "WEIR_FEEDER_STATE": str(tmp_path / "state.json"),
    }
    command = [sys.executable, "-m", "weir_local.demo"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as feeder:  # noqa: S603
        wait_until(
            lambda: Busy.asked and Busy.asked[-1].count(b"machine.sample") >= 2,
            timeout_s=30,
            what="two samples that wait",
        )
        feeder.send_signal(signal.SIGTERM)
        assert feeder.wait(5) == 0
    server.shutdown()
    server.server_close()


class TestMachine:
    def test_rates_are_differences(self) -> None:
        """Bytes a second are the difference over the time; a reset counter counts as 0."""
        before = Counters(10.0, 100, 1000, 5, 5)
        now = Counters(12.0, 300, 500, 5, 25)
        assert rates(before, now) == {
            "disk_read_bytes_per_s": 100.0,
            "disk_written_bytes_per_s": 0.0,
            "received_bytes_per_s": 0.0,
            "sent_bytes_per_s": 10.0,
        }

    def test_samples_that_wait_are_bounded(self) -> None:
        """While nothing can be sent the oldest samples are given up, the latest are kept."""
        machine, clock = MachineSamples("run"), ManualClock(NOW_MS)
        for _ in range(MOST_SAMPLES + 3):
            clock.advance(1000)
            machine.take(clock)
        assert len(machine.waiting) == MOST_SAMPLES
        assert machine.waiting[-1]["time"] == iso(clock.now_ms())
        recorder = Recorder()
        machine.send(recorder)
        assert len(recorder.posted) == MOST_SAMPLES
        assert not machine.waiting


def test_definitions_are_read_in_order() -> None:
    """The web server's definitions come first, each with its text as written."""
    texts = read_definitions(DEFINITIONS)
    assert next(iter(texts)) == "metric/requests"
    assert {"board/web", "board/machine"} <= texts.keys()
    assert all(text.strip() for text in texts.values())


def test_a_rule_fires_within_two_minutes() -> None:
    """The first two minutes that are sent live hold a response that is larger than its limit."""
    rule = check("rule", "large_responses", read_definitions(DEFINITIONS)["rule/large_responses"])
    assert isinstance(rule.model, Rule)
    assert (rule.model.aggregate, rule.model.side) == ("max", "above")
    log = read_log(ACCESS_LOG)
    offsets = squeeze([one.time_ms for one in log])
    early = [int(log[n].data.get("bytes", 0)) for n, at in enumerate(offsets) if at < 100_000]
    assert max(early) > rule.model.limits[1]


@pytest.mark.parametrize("name", list(read_definitions(DEFINITIONS)))
def test_each_definition_passes_the_check(name: str) -> None:
    """What `make demo` puts is accepted under its own kind and name."""
    kind, _, own = name.partition("/")
    assert check(kind, own, read_definitions(DEFINITIONS)[name]).model.name == own
