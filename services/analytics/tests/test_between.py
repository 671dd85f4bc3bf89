"""Work between live batches: whose turn it is, and how much of the time it takes."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException
from structlog.testing import capture_logs
from weir.clock import ManualClock, SystemClock
from weir.commit import Verdict
from weir.formats import NewerFormatError
from weir_analytics.panes import lanes
from weir_analytics.panes.between import (
    BEHIND,
    BUSY,
    IDLE_S,
    MOST_UNEXPECTED,
    Between,
    Pace,
    Step,
    pace_of,
    pause_s,
    quiet,
)
from weir_analytics.panes.holes import Hole, HoleError, OvertakenError
from weir_analytics.panes.lanes import Filler
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.slice_size import (
    LEAST_RECORDS,
    NOTHING_KNOWN,
    Last,
    failed,
    live_as_last,
    measured,
    next_size,
)
from weir_analytics.panes.turns import GivenUpError, Turns
from weir_analytics.panes.vitals import Vitals

from .test_passing import raised

DEADLINE_S = 10.0


@pytest.fixture(autouse=True)
def _no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the JVM of another file's session, which this process may have ended before."""
    monkeypatch.setattr(SparkContext, "_gateway", None)


class Slices:
    """Work of which each slice is counted, and waits for what it is told to."""

    def __init__(
        self, wait: Callable[[], object] = lambda: None, *, fails: BaseException | None = None
    ) -> None:
        self.done, self.wait, self.fails = 0, wait, fails
        self.began = threading.Event()

    def prepare(self) -> None:
        """Prepare nothing."""

    def step(self, _cycle: object) -> Step:
        """Do a slice."""
        if self.fails is not None:
            raise self.fails
        self.began.set()
        self.wait()
        self.done += 1
        return Step.DONE


def between(turns: Turns, *works: Slices) -> Between:
    """Return a thread that does some work, not yet begun."""
    return Between(cast("Any", None), works, turns, SystemClock(), lambda: BUSY)


class TestTurns:
    def test_a_batch_that_waits_comes_before_the_next_slice(self) -> None:
        """However many slices there are, a batch waits for one."""
        turns, order = Turns(), list[str]()
        in_slice, go_on = threading.Event(), threading.Event()

        def work() -> None:
            for n in range(2):
                with turns.between(lambda: False):
                    order.append(f"slice {n}")
                    in_slice.set()
                    go_on.wait(DEADLINE_S)

        def batch() -> None:
            with turns.live():
                order.append("batch")

        slices = threading.Thread(target=work, daemon=True)
        live = threading.Thread(target=batch, daemon=True)
        slices.start()
        assert in_slice.wait(DEADLINE_S)
        live.start()
        until(lambda: turns._live_waiting == 1)
        go_on.set()
        slices.join(DEADLINE_S)
        live.join(DEADLINE_S)

        assert order == ["slice 0", "batch", "slice 1"]

    def test_who_is_told_to_stop_gets_no_turn(self) -> None:
        """Also where the turn is free."""
        with pytest.raises(GivenUpError), Turns().live(lambda: True):
            pytest.fail("must not get the turn")

    def test_the_turn_is_free_after_an_error(self) -> None:
        """A batch that fails leaves nothing behind."""
        turns = Turns()
        with pytest.raises(ZeroDivisionError), turns.live():
            _ = 1 // 0
        with turns.live():
            pass


class TestBetween:
    def test_ending_waits_for_the_slice_at_hand(self) -> None:
        """Nothing is torn down under a slice."""
        go_on = threading.Event()
        work = Slices(lambda: go_on.wait(DEADLINE_S))
        thread = between(Turns(), work)
        thread.start()
        assert work.began.wait(DEADLINE_S)
        threading.Timer(0.05, go_on.set).start()
        thread.end()

        assert work.done == 1
        assert thread.failure is None

    def test_each_work_gets_its_slice(self) -> None:
        """One that always has something to do does not starve the next."""
        first, second = Slices(), Slices()
        thread = between(Turns(), first, second)
        thread.start()
        until(lambda: second.done >= 2)
        thread.end()

        assert abs(first.done - second.done) <= 1

    @pytest.mark.parametrize(
        "grave",
        [
            VerdictError(Verdict.FENCED, "a newer driver runs"),
            NewerFormatError("mark must be of format version 1 or below"),
            HoleError([Hole(0, 7, 9)]),
            OvertakenError(3, 20),
            raised(f"a.b.HoleError: {HoleError([Hole(0, 7, 9)])}"),
        ],
    )
    def test_what_ends_a_life_is_there_to_be_raised(self, grave: Exception) -> None:
        """A fence or a shard said so, or a start record has to say what the log lacks."""
        thread = between(Turns(), Slices(fails=grave))
        thread.start()
        until(lambda: thread.failure is grave)
        thread.end()

    @pytest.mark.parametrize(
        ("error", "event"),
        [
            (OSError("redis is away"), "work_waits"),
            (PySparkException("no task"), "work_waits"),
        ],
    )
    def test_all_else_lets_its_work_wait_while_the_others_go_on(
        self, error: Exception, event: str
    ) -> None:
        """Longer each time; live counting goes on, and so does the next life's like this one's."""
        clock, turns = ManualClock(), Turns()
        bad, good = Slices(fails=error), Slices(lambda: clock.advance(500))
        one = Between(cast("Any", None), [bad, good], turns, clock, lambda: quiet(0.0))
        asked = list[int]()
        one.ending = Pauses(400)

        def prepare() -> None:
            asked.append(clock.now_ms())

        bad.prepare = prepare  # type: ignore[method-assign]
        with capture_logs() as logs:
            one._run()
        assert one.failure is None
        assert good.done == 400
        waited = [(b - a) // 1000 for a, b in itertools.pairwise(asked)]
        assert waited[:7] == [1, 2, 4, 8, 16, 32, 60]
        assert {line["event"] for line in logs} == {event}
        assert {line["work"] for line in logs} == {"slices"}
        bad.fails = None
        one.ending = Pauses(130)
        one._run()
        assert bad.done > 1, "it goes on at the pace of all others"


class Failing:
    """A life of a driver whose slices fail by turns.

    Attributes:
        ended: What outlives it.
    """

    def __init__(self, *errors: Exception | Step) -> None:
        self.errors, self.ended = errors, Counter[str]()

    def prepare(self) -> None:
        """Prepare nothing."""

    def step(self, _cycle: object) -> Step:
        """Fail as is told, or tell what was done."""
        said = next(self._told)
        if isinstance(said, Exception):
            raise said
        return said

    def live(self, hours: float = 24.0) -> tuple[BaseException | None, int, float]:
        """Return what ends it, after how many failures, and how many seconds."""
        self._told = itertools.cycle(self.errors)
        clock = ManualClock()
        others = Slices(lambda: clock.advance(250))
        one = Between(
            cast("Any", None), [self, others], Turns(), clock, lambda: BUSY, ended=self.ended
        )
        one.ending = Pauses(round(hours * 14_400))
        with capture_logs() as logs:
            one._run()
        failed = [line for line in logs if line["event"] == "work_failed"]
        return one.failure, len(failed), clock.monotonic_s()


OURS = KeyError("of ours")


class TestUnexpected:
    @pytest.mark.parametrize("beside", [(), (Step.IDLE, Step.IDLE), (Step.SOON,)])
    def test_it_ends_the_life_if_it_comes_again_and_again(self, beside: tuple[Step, ...]) -> None:
        """A new one cures what it knows by itself; what does nothing in between is no better."""
        failure, failures, after_s = Failing(OURS, *beside).live()
        assert (failure, failures) == (OURS, MOST_UNEXPECTED)
        assert after_s < 20

    @pytest.mark.parametrize("between", [Step.DONE, OSError("redis is away")])
    def test_not_if_something_was_done_meanwhile_or_a_part_is_away(
        self, between: Exception | Step
    ) -> None:
        """The work goes on, or a new life would be as badly off."""
        failure, failures, _ = Failing(*[OURS] * (MOST_UNEXPECTED - 1), between).live(2.0)
        assert failure is None
        assert failures > MOST_UNEXPECTED

    def test_each_life_that_cures_nothing_lasts_longer(self) -> None:
        """It leaves a record for ever; something that is done is the end of that."""
        work = Failing(OURS)
        lives = [work.live() for _ in range(9)]
        assert {life[0] for life in lives} == {OURS}
        assert [life[1] for life in lives] == [5, 10, 20, 40, 80, 160, 320, 320, 320]
        assert lives[-1][2] > 5 * 3_600
        work.errors = (Step.DONE,)
        work.live(0.01)
        work.errors = (OURS,)
        assert work.live()[1] == MOST_UNEXPECTED


class Pauses(threading.Event):
    """An event that is waited for so many times, for no time; then it is set."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.told: list[float] = []
        self._count = count

    def wait(self, timeout: float | None = None) -> bool:
        """Note how long somebody would have waited."""
        self.told.append(timeout or 0.0)
        if len(self.told) >= self._count:
            self.set()
        return self.is_set()


class TestPause:
    @pytest.mark.parametrize(
        ("per_s", "quiet_s", "waits", "is_behind", "pace"),
        [
            (0.0, 0.0, False, False, quiet(0.0)),
            (0.9, 0.0, False, False, quiet(0.0)),
            (1.0, 0.0, False, False, BUSY),
            (9_000.0, 1.9, False, False, BUSY),
            # The mean of a load that is over falls slowly.
            (9_000.0, 2.5, False, False, Pace(0.99, 1.5, 2.5)),
            (0.0, 9.0, True, False, BUSY),  # an event came during a slice
            (0.0, 9.0, True, True, BEHIND),
            (9_000.0, 0.0, True, True, BEHIND),
            (0.0, 9.0, False, True, quiet(9.0)),  # only ticks have waited for slices
        ],
    )
    def test_how_much_slices_may_take(
        self, per_s: float, quiet_s: float, waits: bool, is_behind: bool, pace: Pace
    ) -> None:
        """All where only ticks come, half beside events, a tenth where numbers are old."""
        assert pace_of(per_s, quiet_s, waits=waits, is_behind=is_behind) == pace

    @pytest.mark.parametrize(
        ("quiet_s", "lost_s"), [(0.0, 1.5), (2.0, 2.0), (3.5, 3.0), (1e6, 3.0)]
    )
    def test_what_was_lost_has_longer_slices_the_longer_it_is_quiet(
        self, quiet_s: float, lost_s: float
    ) -> None:
        """Others have not: who sends again waits for one, and sees numbers meanwhile."""
        assert quiet(quiet_s) == Pace(0.99, 1.5, lost_s)

    def test_that_live_counting_waited_for_a_slice_is_not_that_it_is_behind(self) -> None:
        """Else each slice of a quiet time would be followed by a pause of seconds."""
        clock, turns, looks = ManualClock(), Turns(), list[int]()

        def pace() -> Pace:
            looks.append(clock.now_ms())
            return BEHIND if clock.now_ms() else quiet(9.0)

        works = [Slices(lambda: clock.advance(3_000))]
        one = Between(cast("Any", None), works, turns, clock, pace)
        one.ending = pauses = Pauses(1)
        one._run()
        assert looks == [0]
        assert pauses.told == pytest.approx([0.03], abs=0.01)

    def test_it_is_quiet_from_the_last_event_on(self) -> None:
        """Whatever came in a batch before it."""
        vitals = Vitals()
        for received in (200_000, 0, 0, 0):
            vitals.receive(received, 1.0)
        assert (vitals.quiet_s, vitals.received_per_s > 1.0) == (3.0, True)
        vitals.receive(1, 1.0)
        assert vitals.quiet_s == 0.0

    def test_live_counting_has_the_rest_after_each_round(self) -> None:
        """As long as the slices of the round took, by half of the time; and where none was done."""
        clock, turns = ManualClock(), Turns()
        works = [Slices(lambda: clock.advance(200)), Slices(lambda: clock.advance(100))]
        one = Between(cast("Any", None), works, turns, clock, lambda: BUSY)
        one.ending = pauses = Pauses(3)
        one._run()
        assert pauses.told == pytest.approx([0.3] * 3)
        assert [work.done for work in works] == [3, 3]
        nothing = Between(cast("Any", None), (), turns, clock, lambda: BUSY)
        nothing.ending = pauses = Pauses(1)
        nothing._run()
        assert pauses.told == [IDLE_S]

    @pytest.mark.parametrize(("pace", "pause"), [(BUSY, 0.4), (BEHIND, 3.6)])
    def test_slices_take_their_share_of_the_time(self, pace: Pace, pause: float) -> None:
        """Half of it, a tenth while counting is behind; but they always go on."""
        assert pause_s(0.4, pace) == pytest.approx(pause)

    def test_where_nothing_arrives_they_hardly_pause(self) -> None:
        """What was lost is back as soon as can be."""
        assert pause_s(3.0, quiet(9.0)) < 0.1

    def test_a_slice_that_took_very_long_does_not_stop_the_next_one(self) -> None:
        """The first of a plan may take half a minute on a busy machine."""
        assert pause_s(30.0, BEHIND) == pytest.approx(5.0)


class TestSize:
    @pytest.mark.parametrize(
        ("before", "done", "took_s", "size"),
        [
            (20_000, 20_000, 0.8, 10_000),  # twice as long as it may
            (20_000, 20_000, 0.4, 20_000),
            (20_000, 20_000, 0.05, 80_000),  # eight times as fast: at most four times as many
            (60_000, 60_000, 0.2, 100_000),  # the most
            (20_000, 20_000, 60.0, 5_000),  # the least: who takes nothing never ends
            (20_000, 0, 0.0, 5_000),
        ],
    )
    def test_a_slice_takes_as_long_as_it_may(
        self, before: int, done: int, took_s: float, size: int
    ) -> None:
        """By how fast the last one was, with bounds: a live batch waits for it."""
        assert next_size(Last(before, done, took_s), 0.4, 100_000) == size

    @pytest.mark.parametrize(
        ("events_per_s", "slice_s", "size"),
        [
            (None, 3.0, 100_000),  # nothing is known: what a batch may have
            (20_000.0, 3.0, 90_000),
            (20_000.0, 0.4, 12_000),
            (90_000.0, 3.0, 200_000),  # two batches at most
            (1_000.0, 0.4, 5_000),
        ],
    )
    def test_after_ticks_no_slice_is_larger_than_events_allow(
        self, events_per_s: float | None, slice_s: float, size: int
    ) -> None:
        """A night of ticks is counted fast, and events may follow."""
        ticks = Last(90_000, 90_000, 0.1, events_per_s)
        assert next_size(ticks, slice_s, 100_000) == size

    @pytest.mark.parametrize(
        ("done", "known"),
        [
            ([(40_000, 40_000)], 20_000.0),
            ([(40_000, 20_000), (30_000, 30_000)], 10_000.0),  # of the largest
            ([(4_998, 4_998)], 2_499.0),  # as evenly over the partitions as can be
            ([(2_499, 2_499)], 7_000.0),  # so few take as long as none
            ([(40_000, 3)], 7_000.0),  # most are ticks
            ([(40_000, 19_000)], 9_500.0),  # so many at least
        ],
    )
    def test_the_pace_of_events_is_that_of_slices_of_little_else(
        self, done: list[tuple[int, int]], known: float
    ) -> None:
        """What was known stays so, whatever ticks take."""
        found = measured(Last(1, 1, 1.0, 7_000.0), 50_000, done, 2.0)
        assert found == Last(50_000, max(done)[0], 2.0, known)

    def test_nothing_is_known_before_the_first_of_them(self) -> None:
        """However fast ticks were."""
        assert measured(Last(1, 1, 1.0), 50_000, [(40_000, 3)], 0.1).events_per_s is None

    def test_after_a_failure_slices_begin_small_and_grow_while_they_go_well(self) -> None:
        """To half of what failed in some steps, and then slowly: it may have been too much."""
        last, sizes = failed(Last(90_000, 90_000, 0.4, 225_000.0), 90_000), list[int]()
        for _ in range(40):
            sizes.append(next_size(last, 0.4, 100_000))
            last = measured(last, sizes[-1], [(sizes[-1], sizes[-1])], sizes[-1] / 300_000)
        assert sizes[:4] == [LEAST_RECORDS, 4 * LEAST_RECORDS, 47_856, 49_351]
        assert 20 < next(n for n, size in enumerate(sizes) if size >= 90_000) < 30
        assert sizes[-1] == 120_000, "it is no bound for ever"
        for _ in range(999):
            last = measured(last, 5_000, [(5_000, 5_000)], 0.1)
        assert last.bound is None

    @pytest.mark.parametrize("records", [3, LEAST_RECORDS])
    def test_a_small_slice_does_not_fail_for_its_size(self, records: int) -> None:
        """Others need not be smaller for it."""
        last = Last(90_000, 90_000, 0.4, 225_000.0)
        assert failed(last, records) == last
        assert failed(NOTHING_KNOWN, LEAST_RECORDS + 1).bound == LEAST_RECORDS

    @pytest.mark.parametrize(
        ("per_s", "slice_s", "beside", "size"),
        [
            (None, 0.4, 2, 5_000),
            (1_000.0, 0.4, 2, 5_000),
            (200_000.0, 0.4, 2, 40_000),
            (2_000_000.0, 0.4, 2, 200_000),
            (None, 3.0, 2, 5_000),
            (20_000.0, 3.0, 2, 20_000),
            (20_000.0, 3.0, 1, 20_000),
            (80_000.0, 3.0, 8, 20_000),
            (2_000_000.0, 3.0, 2, 200_000),
        ],
    )
    def test_the_first_slice_has_half_of_what_live_counting_does(
        self, per_s: float | None, slice_s: float, beside: int, size: int
    ) -> None:
        """Or its share where more are counted side by side.

        For two seconds, or as long as it may take if that is less, with the same bounds.
        """
        assert next_size(live_as_last(per_s, 100_000, beside), slice_s, 100_000) == size

    def test_its_size_is_by_the_pace_when_it_begins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not when the one before it ended: by now somebody may send again."""
        monkeypatch.setattr(lanes, "forget_lanes", lambda *_: None)
        paces, cycle = [quiet(0.0)], MagicMock()
        cycle.book.next.return_value = None
        last = Last(100_000, 200_000, 1.0, 1e6)
        filler = Filler(MagicMock(), MagicMock(), ManualClock(), 600_000, lambda: paces[-1], last)
        filler._open = set()
        cycle.book.open.return_value = []
        cycle.book.needed.return_value = []
        filler.step(cycle)
        paces.append(BUSY)
        filler.step(cycle)

        paces.append(quiet(9.0))
        cycle.book.open.return_value = [MagicMock(kind="backfill")]
        filler._look_at_s = 1e9
        filler.step(cycle)
        cycle.book.needed.return_value = cycle.book.open.return_value
        filler.step(cycle)
        paces.append(BUSY)
        filler.step(cycle)
        # A lane of which nothing is counted makes nobody's slices long.
        monkeypatch.setattr(lanes, "filled_by", lambda *_: ())
        (lane,) = cycle.book.needed.return_value
        filler._refused = {lane.offset: "its plan fails"}
        filler.step(cycle)

        asked = [call.args[1] for call in cycle.book.next.call_args_list]
        assert asked == [300_000, 40_000, 300_000, 400_000, 80_000, 40_000]


def until(true: Callable[[], bool]) -> None:
    """Wait until something is true."""
    looked, clock = threading.Event(), SystemClock()
    deadline_s = clock.monotonic_s() + DEADLINE_S
    while not true():
        assert clock.monotonic_s() < deadline_s
        looked.wait(0.01)
