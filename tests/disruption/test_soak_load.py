"""What a soak is told, and what it sends: by the second, and in a burst."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import harness
import pytest
from disruption.soak import BURST_PER_S, RATE, options
from disruption.soak_load import CELLS, SoakLoad
from disruption.soak_watch import (
    FLAT,
    OF_ENGINE,
    Span,
    Spans,
    figures_of,
    memory_of,
    unexplained,
)
from load import Refusal
from prometheus_client import generate_latest
from weir.clock import SystemClock
from weir_analytics.panes.ops import Figures
from weir_analytics.panes.own import Own, Process
from weir_analytics.panes.vitals import Vitals
from weir_ingest.settings import Settings


@pytest.mark.parametrize(
    ("arguments", "found"),
    [([], (10.0, RATE)), (["30"], (30.0, RATE)), (["0.5", "2000"], (0.5, 2000))],
)
def test_minutes_and_rate(arguments: list[str], found: tuple[float, int]) -> None:
    """What is not named is as usual."""
    assert options(arguments) == found


@pytest.mark.parametrize("rate", ["9", "0", "-500", "many", "9001"])
def test_a_rate_that_is_none(rate: str) -> None:
    """A load below a batch of one event, or beyond what ingest takes, is refused, in words."""
    with pytest.raises(SystemExit, match=f'must be 10 to 9000 events a second, got "{rate}"'):
        options(["30", rate])


def test_a_burst_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are larger until its end, and their numbers go on; each event has its cell.

    None is larger than ingest takes: it would be refused for ever, and nothing would follow.
    """
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    load = SoakLoad("http://nowhere", "key", "7", batch=RATE // 10)
    sizes, rates, first = [], [], 0
    for at_s in (100.0, 101.0, 120.9, 121.0):
        now_s[0] = at_s
        batch = load.events(first)
        assert [event["data"]["n"] for event in batch] == list(range(first, first + len(batch)))
        assert batch[-1]["data"]["cell"] == f"c{batch[-1]['data']['n'] % CELLS}"
        first += len(batch)
        sizes.append(len(batch))
        rates.append(round(len(batch) / load.every_s))
        if at_s == 100.0:
            now_s[0] = 101.0
            load.burst(20.0, BURST_PER_S)
    assert sizes == [50, 900, 900, 50]
    assert rates == [RATE, BURST_PER_S, BURST_PER_S, RATE]
    assert max(sizes) + 50 < Settings.model_fields["max_batch_events"].default


def test_a_burst_is_half_of_what_was_measured() -> None:
    """A faster Weir is also soaked with more."""
    text = Path(harness.__file__).with_name("results").joinpath("latency.json").read_text()
    assert json.loads(text)["figures"]["loads"]["50%"]["load_per_s"] == BURST_PER_S


def test_what_is_known_of_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those without a 2xx are unknown, as are those under way; sent again is no item more."""
    load, known = SoakLoad("http://nowhere", "key", "7"), list[dict[str, int]]()
    answers = iter([Refusal(0, 0, 503, "1"), Refusal(0, 0, 0, ""), None])

    def once(_batch: object) -> Refusal | None:
        known.append(load.told())
        return next(answers)

    monkeypatch.setattr(load, "_once", once)
    assert load._until_stored([{}] * 10)
    assert known[0] == {"sent": 10, "accepted": 0, "refused": 0, "unknown": 10, "resent": 0}
    last = {"sent": 10, "accepted": 10, "refused": 2, "unknown": 0, "resent": 20}
    assert load.told() == last


def test_what_is_watched_of_the_engine_is_told_by_it() -> None:
    """Each figure by the name and labels that the engine gives it: a soak reads no other."""
    figures = Figures()
    figures.watch(Vitals(own=Own(resident={Process.JVM: 7})))
    told = figures_of(generate_latest(figures.registry).decode().splitlines())
    assert told.keys() >= {*FLAT.values(), *map(memory_of, OF_ENGINE)}
    assert told[memory_of("jvm")] == 7


VERDICTS = [("00", "lost"), ("10", "ok"), ("20", "lost"), ("30", "behind"), ("40", "lost")]


@pytest.mark.parametrize(
    ("spans", "unseen"),
    [
        ([], ["20", "30", "40"]),
        ([Span(19_000, 21_000, "wipe", True)], ["30", "40"]),
        ([Span(19_000, 21_000, "edit", False)], ["20", "30", "40"]),
        ([Span(0, math.inf, "burst", False), Span(30_000, 40_000, "wipe", True)], ["20"]),
        ([Span(0, 50_000, "restart", False)], ["20", "30", "40"]),
    ],
)
def test_a_verdict_is_explained_by_a_fault_alone(spans: list[Span], unseen: list[str]) -> None:
    """No edit, burst, restart or comparison excuses one; the very first finds no mark."""
    lines = [{"at": f"1970-01-01T00:00:{at}Z", "verdict": verdict} for at, verdict in VERDICTS]
    found = unexplained(reversed(lines), Spans(spans))
    assert [text[17:19] for text in found] == unseen


def test_what_goes_on_is_told_apart_from_what_is_broken() -> None:
    """Both cover a time, in which nothing is judged; only a fault explains an error."""
    spans = Spans()
    spans.begin("edit")
    now_ms = SystemClock().now_ms()
    assert spans.covers(now_ms, now_ms)
    assert spans.covers(now_ms, now_ms, "edit")
    assert not spans.is_broken(now_ms)
    spans.end()
    spans.begin("wipe", is_fault=True)
    assert spans.is_broken(SystemClock().now_ms())
    spans.end(settle_s=-1)
    assert not spans.is_broken(SystemClock().now_ms())
