"""How fast it goes, how long it waits, and what goes together."""

from __future__ import annotations

import io
import math
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from weir.clock import ManualClock
from weir_cli.sending.account import Account
from weir_cli.sending.batching import MOST_BYTES, Batch, Batcher, Made, Reader
from weir_cli.sending.entries import Entry, Point
from weir_cli.sending.fields import Shape
from weir_cli.sending.inputs import Input, InputBrokenError
from weir_cli.sending.pacing import (
    FIRST_PAUSE_S,
    LONGEST_ASKED_S,
    LONGEST_PAUSE_S,
    Pace,
    Patience,
    Waits,
    stopped_by_ctrl_c,
)
from weir_cli.sending.progress import Line, text_of
from weir_cli.sending.tables import Table

from .sending import Desk


def made(at: int, event: bytes = b"{}", *, raw: bytes = b"{}", is_cut: bool = False) -> Made:
    """Return an entry as it may be sent."""
    return Made(
        Entry(at, at, raw, Point(at + 1, at + 1), is_cut=is_cut), event, "" if event else "no"
    )


def waits_by(clock: ManualClock) -> Waits:
    """Return what waits by a clock that goes on as it is waited."""
    return Waits(clock, lambda length_s: clock.advance(math.ceil(length_s * 1_000)))


class TestPace:
    def test_without_a_rate(self) -> None:
        """There is no end of room, and nothing to wait for."""
        pace = Pace(None, 0.0)
        pace.took(1_000_000)
        assert (pace.room(0.0), pace.wait_s(0.0, 1_000)) == (None, 0.0)

    @pytest.mark.parametrize(("rate", "together"), [(2.0, 1), (10.0, 1), (100.0, 10), (1e5, 1_000)])
    def test_an_even_rate(self, rate: float, together: int) -> None:
        """Each event has its instant; as many go together as fall in a tenth of a second."""
        pace, now_s, gone = Pace(rate, 0.0), 0.0, 0
        for _ in range(50):
            now_s += pace.wait_s(now_s, 1_000)
            room = pace.room(now_s)
            assert room is not None
            assert together <= room <= together + 1
            pace.took(room)
            gone += room
            assert gone <= now_s * rate + 1.001
        assert gone >= now_s * rate - 1

    def test_a_slow_answer_puts_nothing_off(self) -> None:
        """What fell due meanwhile goes at once: the rate is that of the whole."""
        pace = Pace(100.0, 0.0)
        pace.took(10)
        assert (pace.wait_s(3.0, 1_000), pace.room(3.0)) == (0.0, 291)


class TestPatience:
    def test_pauses_grow(self) -> None:
        """From a quarter of a second to half a minute, each somewhat at random."""
        patience, found = Patience(1e6, 0.0), []
        for _ in range(12):
            found.append(patience.pause_s(0.0, 0.0) or 0.0)
        for at, pause_s in enumerate(found):
            most_s = min(FIRST_PAUSE_S * 2**at, LONGEST_PAUSE_S)
            assert most_s / 2 <= pause_s <= most_s
        assert len({Patience(1e6, 0.0).pause_s(0.0, 0.0) for _ in range(20)}) > 10

    def test_as_long_as_is_asked(self) -> None:
        """No less than `Retry-After`, and no more than a minute of it."""
        patience = Patience(1e6, 0.0)
        assert 5.0 < (patience.pause_s(0.0, 5.0) or 0.0) <= 5.0 + FIRST_PAUSE_S
        most_s = LONGEST_ASKED_S + 2 * FIRST_PAUSE_S
        assert LONGEST_ASKED_S < (patience.pause_s(0.0, 1e5) or 0.0) <= most_s

    def test_until_it_is_given_up(self) -> None:
        """Once more at the end; progress gives all of the time again, and short pauses."""
        patience = Patience(10.0, 0.0)
        assert patience.pause_s(9.0, 30.0) == 1.0
        assert patience.pause_s(10.0, 0.0) is None
        patience.progressed(10.0)
        assert (patience.pause_s(19.0, 0.0) or 1.0) <= FIRST_PAUSE_S
        assert patience.pause_s(20.0, 0.0) is None


class TestWaits:
    def test_a_stop_ends_a_pause(self) -> None:
        """Within a moment, however long it was to be."""
        clock = ManualClock()
        waits = Waits(clock)

        def sleep(length_s: float) -> None:
            clock.advance(round(length_s * 1_000))
            waits.is_stopped = clock.monotonic_s() >= 1.0

        waits._sleep = sleep
        waits.pause(1_000.0)
        assert 1.0 <= clock.monotonic_s() < 1.2
        waits.pause(1_000.0)
        assert clock.monotonic_s() < 1.2

    def test_ctrl_c_and_a_second_one(self) -> None:
        """The first is noted, the second ends; then it is as it was before."""
        before, waits = signal.getsignal(signal.SIGINT), Waits(ManualClock())
        with stopped_by_ctrl_c(waits):
            os.kill(os.getpid(), signal.SIGINT)
            assert waits.is_stopped
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before

    def test_what_runs_in_the_background_passes_it_over(self) -> None:
        """A shell says so, and a key that was meant for another command is none for this one."""
        before, waits = signal.signal(signal.SIGINT, signal.SIG_IGN), Waits(ManualClock())
        try:
            with stopped_by_ctrl_c(waits):
                os.kill(os.getpid(), signal.SIGINT)
            assert not waits.is_stopped
        finally:
            signal.signal(signal.SIGINT, before)


class TestBatches:
    def batches(
        self, entries: Sequence[Made | None], *, most: int = 1_000, rate: float | None = None
    ) -> list[list[int]]:
        """Return what goes together, each entry by where it stands."""
        clock = ManualClock()
        waits = waits_by(clock)

        def read() -> Iterator[Made | None]:
            for one in entries:
                # What flows is quiet for a while.
                if one is None:
                    clock.advance(300)
                yield one

        batcher = Batcher(read(), Pace(rate, 0.0), waits, most)
        found = list[list[int]]()
        while (batch := batcher.next()).made:
            found.append([one.entry.start for one in batch.made])
        return found

    def test_so_many_events(self) -> None:
        """Entries that are no events come along, and do not count."""
        entries = [made(0), made(1, b""), made(2), made(3), made(4, b"")]
        assert self.batches(entries, most=2) == [[0, 1, 2], [3, 4]]

    @pytest.mark.parametrize(("less", "wanted"), [(0, [[0, 1], [2]]), (-1, [[0], [1, 2]])])
    def test_so_many_bytes(self, less: int, wanted: list[list[int]]) -> None:
        """With the line feeds between them; an entry that is too long by itself goes alone."""
        half = b"x" * (MOST_BYTES // 2 - 1)
        assert self.batches([made(0, half), made(1, half + b"x" * -less), made(2)]) == wanted
        assert self.batches([made(0), made(1, half * 3), made(2)]) == [[0], [1], [2]]
        # What is not sent takes memory, too.
        assert self.batches([made(n, b"", raw=half) for n in range(3)]) == [[0, 1], [2]]

    def test_what_flows_slowly(self) -> None:
        """An event waits a second for company, and no longer."""
        slow: list[Made | None] = [made(0), None, made(1), None, None, None, made(2), None, made(3)]
        assert self.batches(slow) == [[0, 1], [2, 3]]
        quiet: list[Made | None] = [None] * 20
        assert self.batches([*quiet, made(0), *quiet]) == [[0]]

    def test_at_a_rate(self) -> None:
        """Batches are as large as what is due."""
        assert self.batches([made(n) for n in range(25)], rate=100.0) == [
            list(range(10)),
            list(range(10, 20)),
            list(range(20, 25)),
        ]

    def test_a_stop(self) -> None:
        """Nothing more is gathered."""
        clock = ManualClock()
        waits = waits_by(clock)
        waits.is_stopped = True
        assert not Batcher(iter([made(0)]), Pace(None, 0.0), waits, 10).next().made

    def test_an_input_that_breaks_off(self) -> None:
        """What is behind its last line feed is no entry, however whole it looks."""

        class Breaking:
            def pieces(self) -> Iterator[bytes]:
                yield b"1\n2"
                msg = "why"
                raise InputBrokenError(msg)

        form = Table(("a",), ",", Shape("n"))
        reader = Reader(cast("Input", Breaking()), form, Point())
        assert [one.entry.raw for one in reader if one is not None] == [b"1"]
        assert str(reader.broken) == "why"

    def test_halves(self) -> None:
        """Of the events each has half, and together they are all entries in order."""
        entries = [made(0, b""), made(1), made(2, b""), made(3), made(4), made(5, b"")]
        first, second = Batch(entries).halves()
        assert [*first.made, *second.made] == entries
        assert (len(first.sent), len(second.sent)) == (1, 2)

    def test_what_is_done_with(self) -> None:
        """The last entry that a later run does not take again."""
        left = made(2, b"", is_cut=True)
        end = Batch([made(0), made(1, b""), left]).end
        assert end is not None
        assert end.start == 1
        assert Batch([left]).end is None


class TestPositions:
    def test_the_highest_offset_of_each_partition(self) -> None:
        """In whatever order answers come; what is no position is passed over."""
        account = Account()
        for position in ("0:7,1:3", "0:5,1:4", "", "else", "2:0"):
            account.reach(position)
        assert account.position == "0:7,1:4,2:0"


class TestProgress:
    @pytest.mark.parametrize(("is_live", "times"), [(True, 2), (False, 0)])
    def test_a_line_on_a_terminal(
        self,
        monkeypatch: pytest.MonkeyPatch,
        is_live: bool,
        times: int,
    ) -> None:
        """Five times a second at most, and never where nobody looks."""
        written = io.StringIO()
        monkeypatch.setattr(written, "isatty", lambda: is_live, raising=False)
        monkeypatch.setattr(sys, "stderr", written)
        clock = ManualClock()
        line = Line(clock)
        for sent in range(4):
            line.show("a", sent, 0.5)
            clock.advance(100)
        assert written.getvalue().count("sent") == times
        line.tell("trouble")
        line.end()
        assert written.getvalue().endswith(
            "\r\x1b[Kweir: trouble\n" if times else "weir: trouble\n"
        )

    def test_its_words(self) -> None:
        """How many, how fast, and how much of the input; of what flows that is not known."""
        assert text_of("a", 12_000, 0.456, 4.0) == "a: 12,000 sent, 3,000 a second, 46%"
        assert text_of("a", 1, None, 0.0) == "a: 1 sent"

    def test_how_much_of_a_file_is_read(self, tmp_path: Path) -> None:
        """By its bytes, also where it goes on behind some."""
        desk = Desk(tmp_path)
        path = desk.write("a.ndjson", b'{"n":1}\n' * 50_000)
        sender, _ = desk.send(path)
        assert sender._job.source.share == 1.0
