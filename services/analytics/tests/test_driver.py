"""The driver around its stream, without Spark: what comes before it, and how it ends."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from structlog.testing import capture_logs
from weir.clock import ManualClock
from weir.commit import Verdict
from weir.definitions.fold import Definitions
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    activation_record,
    put_record,
    start_record,
)
from weir_analytics.panes import driver as panes_driver
from weir_analytics.panes import life as life_module
from weir_analytics.panes import plans as plans_module
from weir_analytics.panes.between import BEHIND, BUSY, Pace, quiet
from weir_analytics.panes.cycle import Done
from weir_analytics.panes.driver import (
    EXIT_FENCED,
    EXIT_FOREIGN,
    EXIT_STOPPED,
    LOOK_S,
    MOST_STARTS,
    STARTS_PAUSE_S,
    STREAM_LOOKS,
    Driver,
)
from weir_analytics.panes.dry_runs import DryRuns
from weir_analytics.panes.life import Life
from weir_analytics.panes.ops import Figures, answer
from weir_analytics.panes.outcome import Outcome
from weir_analytics.panes.passing import StreamEndedError, first_line
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.start import OwnStart
from weir_analytics.panes.ticks import LogEnds
from weir_analytics.panes.vitals import Vitals

from .conftest import settings_for
from .test_reasons import empty_record


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """Return a driver that has only its own state."""
    return new_driver(tmp_path)


def new_driver(tmp_path: Path) -> Driver:
    """Return a driver that has only its own state."""
    nothing: Any = None
    return Driver(settings_for(tmp_path), nothing, nothing, nothing, nothing, nothing)


@pytest.mark.parametrize("is_counted", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_a_plan_that_cannot_be_made_ahead_ends_no_start(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, fails: bool, is_counted: bool
) -> None:
    """Which version it fails with is looked for beside live counting; the others it has made.

    None of them begins by that: it is tried with records of the log before.
    """
    fold = Definitions()
    text = "kind: metric\nname: m\nevents: {type: t}\nkeep: {10s: 1h}"
    record = put_record(Edit("acme", "metric", "m", None, "test", 0), text)
    fold.apply(0, record.key, record.value)
    if is_counted:
        begun = Counting(0, "acme", "m", 1, {0: 0}, topic_id="log")
        fence = start_record(DriverStart("a", 1, "start"), at_ms=0)
        begin = activation_record(begun, op="start", fence=1, at_ms=0)
        for offset, one in enumerate((fence, begin), start=1):
            fold.apply(offset, one.key, one.value)
    log = SimpleNamespace(fold=fold, end=lambda: 1, read_to=lambda _: None, close=lambda: None)
    monkeypatch.setattr(panes_driver, "DefinitionsLog", lambda _: log)
    monkeypatch.setattr(panes_driver, "topic_id", lambda *_: "log")
    monkeypatch.setattr(
        panes_driver, "LogOffsets", lambda *_: SimpleNamespace(ends=lambda: ({}, {0: 1}))
    )
    monkeypatch.setattr(DryRuns, "warm", lambda *_: None)

    def make(counted: Sequence[object], *_: object, **__: object) -> Any:
        if counted and fails:
            raise ZeroDivisionError
        return SimpleNamespace(versions=())

    monkeypatch.setattr(plans_module, "make_plan", make)
    driver.vitals, driver.clock = Vitals(), ManualClock()
    with capture_logs() as logs:
        driver.warm_up()
    assert driver._proven.ready == frozenset()
    assert any("m" in str(key) for key in driver._plans) is not fails
    assert bool(fold.activations) is is_counted
    assert ("plan_not_made" in {line["event"] for line in logs}) is fails


def test_every_life_knows_what_the_process_has_started(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who finds that another one has started since does not begin again."""
    driver.figures, driver.vitals, driver.stop = Figures(), Vitals(), Waits()
    found = list[int | None]()

    def start(*given: Any) -> None:
        (own,) = (one for one in given if isinstance(one, OwnStart))
        found.append(own.fence)
        own.fence = 7
        if len(found) == 2:
            driver.stop.set()
        raise TimeoutError

    monkeypatch.setattr(panes_driver, "take_over", start)
    monkeypatch.setattr(life_module, "drop_callbacks", lambda _spark: None)
    monkeypatch.setattr(driver, "_jvm_is_gone", lambda: False)
    driver.clock = ManualClock()
    vars(driver)["_open"] = opened
    driver.run()
    assert found == [None, 7]


class TestVerdicts:
    @pytest.mark.parametrize("verdict", [Verdict.OK, Verdict.LOST, Verdict.BEHIND, Verdict.REWIND])
    def test_what_a_start_finds_is_counted_before_anything_is_done(
        self, driver: Driver, monkeypatch: pytest.MonkeyPatch, verdict: Verdict
    ) -> None:
        """Also where the start itself fails then: the next one may find it mended."""

        def start(*given: Any) -> None:
            given[-1](verdict)
            driver.stop.set()
            msg = "no route"
            raise OSError(msg)

        assert self._counted(driver, monkeypatch, start) == (EXIT_STOPPED, {verdict: 1})

    @pytest.mark.parametrize(
        ("verdict", "code"),
        [
            (Verdict.FENCED, EXIT_FENCED),
            (Verdict.FOREIGN, EXIT_FOREIGN),
            (Verdict.LOST, EXIT_STOPPED),
            (Verdict.BEHIND, EXIT_STOPPED),
            (Verdict.REWIND, EXIT_STOPPED),
        ],
    )
    def test_what_ends_a_stream_is_counted(
        self, driver: Driver, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, code: int
    ) -> None:
        """Once each, whether it ends the process or leads to a new start."""

        def start(*_given: Any) -> None:
            driver.stop.set()
            raise VerdictError(verdict, "why")

        assert self._counted(driver, monkeypatch, start) == (code, {verdict: 1})

    def test_shards_that_are_short_are_remembered_until_a_start_counts_them_anew(
        self, driver: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Their marks may say that nothing is amiss; the start may fail a few times."""
        told: list[set[int]] = []
        driver.stop = Waits()

        def start(*given: Any) -> None:
            told.append(set(given[-2].short))
            if len(told) == 3:
                driver.stop.set()
            raise VerdictError(Verdict.LOST, "why", [len(told)])

        with capture_logs() as logs:
            self._counted(driver, monkeypatch, start)
        assert told == [set(), {1}, {1, 2}, {1, 2, 3}], "and once more as it ends"
        (left,) = (line for line in logs if line["event"] == "shards_left_short")
        assert left["shards"] == [1, 2, 3], "nobody else knows of them once it has ended"

    def test_shards_that_are_short_are_told_whatever_ends_the_driver(
        self, driver: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who writes a pane's key may write the fence's next, and that ends every start."""
        ends = iter([VerdictError(Verdict.LOST, "why", [1]), ValueError("fence must be JSON")])
        driver.stop = Waits()

        def start(*_given: Any) -> None:
            raise next(ends)

        with capture_logs() as logs, pytest.raises(ValueError, match="fence"):
            self._counted(driver, monkeypatch, start)
        (left,) = (line for line in logs if line["event"] == "shards_left_short")
        assert left["shards"] == [1]

    @staticmethod
    def _counted(
        driver: Driver, monkeypatch: pytest.MonkeyPatch, start: Callable[..., None]
    ) -> tuple[int, dict[Verdict, int]]:
        """Run a driver whose start does something; return its exit code and what it has counted."""
        driver.figures, driver.vitals = Figures(), Vitals()
        monkeypatch.setattr(panes_driver, "take_over", start)
        monkeypatch.setattr(life_module, "drop_callbacks", lambda _spark: None)
        driver.clock = ManualClock()
        vars(driver)["_open"] = opened
        monkeypatch.setattr(driver, "_jvm_is_gone", lambda: False)
        code = driver.run()
        return code, {v: n for v, n in verdicts_of(driver.figures).items() if n}

    @pytest.mark.parametrize(
        ("repeated", "retries", "counted"),
        [
            (False, 0, {Verdict.OK: 1}),
            (True, 0, {Verdict.DONE: 1}),
            (False, 3, {Verdict.OK: 1, Verdict.RETRY: 3}),
        ],
    )
    def test_a_batch_counts_as_one(
        self, repeated: bool, retries: int, counted: dict[Verdict, int]
    ) -> None:
        """Applied now, or before; and each time that a shard was read again for it."""
        figures = Figures()
        assert verdicts_of(figures) == dict.fromkeys(Verdict, 0)
        figures.tell(done_batch(repeated, retries), Vitals())

        assert {v: n for v, n in verdicts_of(figures).items() if n} == counted


class Waits(threading.Event):
    """Notes how long a driver waits between its lives, and lets it wait no time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_s: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        """Return at once."""
        self.asked_s.append(timeout or 0.0)
        return self.is_set()


def test_only_who_has_not_lasted_waits_before_the_next_life(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer each time, though each may count a batch; an old interruption makes none longer."""
    driver.clock = clock = ManualClock(1_795_348_800_000)
    driver.figures, driver.vitals, driver.stop = Figures(), Vitals(), Waits()
    lives = iter([60_000, 9_999, 0, 0, 0, 0, 10_001, 0, None])
    dropped, left = MagicMock(), list[weakref.ref[Any]]()

    def live(*_given: Any) -> None:
        lasts_ms = next(lives)
        assert all(one() is None for one in left), "the life before was to be collected"
        left.append(left_behind())
        if lasts_ms is None:
            driver.stop.set()
        clock.advance(lasts_ms or 0)
        raise TimeoutError

    monkeypatch.setattr(panes_driver, "take_over", live)
    monkeypatch.setattr(life_module, "drop_callbacks", dropped)
    monkeypatch.setattr(driver, "_jvm_is_gone", lambda: False)
    vars(driver)["_open"] = opened
    gc.disable()
    try:
        driver.run()
    finally:
        gc.enable()

    assert driver.stop.asked_s == [0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 0.0, 0.5, 1.0]
    assert dropped.call_count == len(left) == 9


@pytest.mark.parametrize("wrote", [0, 1])
def test_starts_that_no_batch_follows_become_rare(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, wrote: int
) -> None:
    """Their records are kept for ever; where none was written the next life waits no longer."""
    driver.clock = clock = ManualClock(1_795_348_800_000)
    driver.figures, driver.vitals, driver.stop = Figures(), Vitals(), Waits()
    driver.ticker = MagicMock()
    driver.ticker.seen.clock_ahead_ms = 0
    lives = iter(range(MOST_STARTS + 6))
    counts = MOST_STARTS + 3

    def live(*_given: Any) -> None:
        life = next(lives)
        if life == counts:
            driver._tell(replace(done_batch(False, 0), batch=MagicMock(end={0: 1}, single=True)))
        if life == counts + 2:
            driver.stop.set()
        clock.advance(15_000)  # longer than what is followed by the next at once
        raise TimeoutError

    monkeypatch.setattr(panes_driver, "take_over", live)
    monkeypatch.setattr(life_module, "drop_callbacks", lambda _spark: None)
    monkeypatch.setattr(driver, "_jvm_is_gone", lambda: False)
    vars(driver)["_open"] = lambda: opened(wrote)
    driver.run()

    rare = [STARTS_PAUSE_S] * 3 if wrote else [0.0] * 3
    assert driver.stop.asked_s == [0.0] * MOST_STARTS + rare + [0.0] * 3


def opened(wrote: int = 0) -> Any:
    """Return stores of which none is there; the definitions were written to so many times."""
    return MagicMock(definitions=MagicMock(writes=wrote))


def left_behind() -> weakref.ref[Any]:
    """Return what tells whether something is there that knows itself."""

    class Part:
        """A part of a life."""

        whole: Part

    part = Part()
    part.whole = part
    return weakref.ref(part)


def test_what_the_jvm_keeps_of_a_stream_holds_no_life(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps the function that counts a batch, for minutes."""
    monkeypatch.setattr(panes_driver, "source_options", lambda *_: {})
    driver.spark = spark = MagicMock()
    writer = spark.readStream.format.return_value.options.return_value.load.return_value.writeStream
    cycle: Any = MagicMock()
    cycle.footing.target = {0: 1}
    life = Life(weakref.ref(cycle))
    driver._stream(cycle, life)
    (function,) = writer.foreachBatch.call_args.args
    assert life.cycle() is cycle
    del cycle
    gc.collect()

    assert life.cycle() is None
    with pytest.raises(StreamEndedError, match="batch 8 must be of the stream that runs"):
        function(None, 8)


def test_slices_take_all_once_no_event_has_come_for_a_while(driver: Driver) -> None:
    """By what the batches brought; the mean of their events falls slowly."""
    driver.clock = ManualClock(1_795_348_800_000)
    driver.vitals, driver.figures, driver.ticker = Vitals(), Figures(), MagicMock()
    driver.ticker.seen.clock_ahead_ms = 0
    driver.vitals.log = LogEnds(news={0: 9})
    paces = list[Pace]()
    for events, wait_ms in [(400_000, 1_000), (0, 1_900), (0, 200), (1, 1_000)]:
        driver.clock.advance(wait_ms)
        done = done_batch(repeated=False, retries=0)
        done = replace(done, outcome=replace(done.outcome, events={"counted": events}))
        driver._tell(replace(done, batch=MagicMock(end={0: 9}, single=True)))
        driver.vitals.processed_through_ms = driver.clock.now_ms()
        paces.append(driver._pace())

    assert paces == [BUSY, BUSY, quiet(2.1), BUSY]
    driver.vitals.received_per_s = 0.0
    assert driver._pace() == quiet(0.0)
    driver.vitals.log = LogEnds(news={0: 10})  # an event came while a slice was counted
    assert driver._pace() == BUSY
    driver.vitals.log = LogEnds()  # nobody knows
    assert driver._pace() == BUSY
    driver.vitals.processed_through_ms -= 60_000
    assert driver._pace() == BEHIND
    driver.vitals.last_batch_s = None
    assert driver._pace() == BUSY


class Steps(threading.Event):
    """Each look finds the clock set by so much more; then the driver is told to stop."""

    def __init__(self, clock: ManualClock, *steps_ms: int) -> None:
        super().__init__()
        self._clock, self._steps_ms = clock, list(steps_ms)

    def wait(self, timeout: float | None = None) -> bool:
        """Set the clock, in no time."""
        if not self._steps_ms:
            return True
        self._clock.advance(round(1000 * (timeout or 0)))
        self._clock.step(self._steps_ms.pop(0))
        return False


class TestFollow:
    @pytest.mark.parametrize("back_ms", [1_001, 3_600_000])
    def test_a_clock_that_is_set_back_ends_the_stream(self, driver: Driver, back_ms: int) -> None:
        """Spark would sleep until the clock is there again; why it begins anew is told."""
        driver.clock = clock = ManualClock(1_795_348_800_000)
        driver.stop = Steps(clock, 0, 7_200_000, -back_ms, 0)
        life = Life(lambda: None)
        driver._follow(MagicMock(isActive=True), MagicMock(failure=None), life)

        assert isinstance(life.failure, StreamEndedError)
        assert f"was by {back_ms / 1000:.0f} s: the stream begins anew" in str(life.failure)
        assert not driver.stop.wait(0.5), "the rest was to come"

    def test_steps_that_nobody_waits_for_end_nothing(self, driver: Driver) -> None:
        """Ahead, or back by less than anybody notices."""
        driver.clock = clock = ManualClock(1_795_348_800_000)
        driver.stop = Steps(clock, 3_600_000, -1_000, 0, -1_000)
        life = Life(lambda: None)
        driver._follow(MagicMock(isActive=True), MagicMock(failure=None), life)

        assert life.failure is None

    def test_a_stream_that_has_ended_is_noticed(self, driver: Driver) -> None:
        """The JVM is asked less often than what is known here."""
        driver.clock = clock = ManualClock()
        driver.stop = Steps(clock, *[0] * (2 * STREAM_LOOKS))
        query, life = MagicMock(isActive=False), Life(lambda: None)
        query.exception.return_value = StreamEndedError("a task failed")
        driver._follow(query, MagicMock(failure=None), life)

        assert "a task failed" in str(life.failure)
        assert clock.monotonic_s() == pytest.approx(LOOK_S * STREAM_LOOKS)

    def test_what_a_batch_has_said_is_kept(self, driver: Driver) -> None:
        """A driver that is fenced off ends, whatever its clock does just then."""
        driver.clock = clock = ManualClock(1_795_348_800_000)
        driver.stop = Steps(clock, -3_600_000)
        fenced = VerdictError(Verdict.FENCED, "a newer driver runs")
        life = Life(lambda: None, failure=fenced)
        driver._follow(MagicMock(isActive=True), MagicMock(failure=None), life)

        assert life.failure is fenced


def done_batch(repeated: bool, retries: int) -> Done:
    """Return a batch without events."""
    outcome = Outcome(Verdict.OK, 0, {}, (), (), {"counted": 0}, repeated=repeated, retries=retries)
    return Done(cast("Any", None), outcome, empty_record(), 0.1)


def verdicts_of(figures: Figures) -> dict[Verdict, int]:
    """Return what `/metrics` says of verdicts."""
    text = answer("/metrics", Vitals(), figures)[2].decode()
    found = re.findall(r'^weir_panes_verdicts_total{verdict="(\w+)"} (\S+)$', text, re.MULTILINE)
    return {Verdict(verdict): int(float(n)) for verdict, n in found}


SAID_BY_SPARK = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/app/weir_analytics/panes/writer.py", line 128, in write
    raise ValueError("SomeError: of the code, not of the run")
redis.exceptions.OutOfMemoryError: command not allowed when used memory > 'maxmemory'.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/weir_analytics/panes/shard_wire.py", line 128, in _replies
    raise StoreError(msg) from refused
weir_analytics.panes.shard_wire.StoreError: redis refused to write: command not allowed
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException
Caused by: java.lang.Error: no matter
"""


class TestWhatWentWrong:
    def test_of_a_task_it_is_what_the_worker_raised(self) -> None:
        """Whoever reads it asks what is wrong with Redis, not that Spark has workers."""
        wanted = "StoreError: redis refused to write: command not allowed"
        assert first_line(RuntimeError(SAID_BY_SPARK)) == wanted

    def test_of_all_else_it_is_the_first_line(self) -> None:
        """With the kind of error before it."""
        assert first_line(OSError("no route\nmore")) == "OSError: no route"
