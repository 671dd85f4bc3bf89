"""Entries gathered into batches, in order: so many events, and so many bytes, at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weir_cli.sending.entries import Cutter, Entry, Point
from weir_cli.sending.fields import NotUnderstoodError
from weir_cli.sending.guessing import Format
from weir_cli.sending.inputs import Input, InputBrokenError
from weir_cli.sending.pacing import Pace, Waits

MOST_EVENTS: Final = 10_000
"""What ingest takes at once, by default (docs/ingest.md 3.5)."""
MOST_BYTES: Final = 1_000_000
# What is not understood is confirmed, and told, with what is.
MOST_ENTRIES: Final = 20_000
# How long an event waits for company where an input is quiet.
QUIET_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Made:
    """An entry and what is sent of it.

    Attributes:
        entry: The entry.
        event: One line of JSON; empty if it is not understood.
        why: What it must be, where it is not understood.
    """

    entry: Entry
    event: bytes
    why: str = ""

    @property
    def is_left(self) -> bool:
        """Whether it is left for a later run: the input may go on where it is cut off."""
        return not self.event and self.entry.is_cut


@dataclass(frozen=True)
class Batch:
    """Entries that are confirmed together.

    Attributes:
        made: The entries, in order.
    """

    made: Sequence[Made]

    @property
    def sent(self) -> list[Made]:
        """Those that are events."""
        return [one for one in self.made if one.event]

    @property
    def body(self) -> bytes:
        """The events, a line each."""
        return b"".join(one.event + b"\n" for one in self.sent)

    @property
    def end(self) -> Entry | None:
        """The last entry that is done with once the batch is."""
        return next((one.entry for one in reversed(self.made) if not one.is_left), None)

    def halves(self) -> tuple[Batch, Batch]:
        """Return two batches with half of the events each."""
        middle = self.made.index(self.sent[len(self.sent) // 2])
        return Batch(self.made[:middle]), Batch(self.made[middle:])


def made_of(entry: Entry, form: Format) -> Made:
    """Return what is sent of an entry, or why nothing is."""
    if entry.why:
        return Made(entry, b"", entry.why)
    try:
        return Made(entry, form.event(entry))
    except NotUnderstoodError as error:
        return Made(entry, b"", str(error))


class Reader:
    """Reads an input from a point on, entry by entry."""

    def __init__(self, source: Input, form: Format, at: Point) -> None:
        """Take an input, which stands at the point."""
        self._source, self._form = source, form
        self._cutter: Cutter = form.cutter(at)
        self.broken: InputBrokenError | None = None

    def __iter__(self) -> Iterator[Made | None]:
        """Yield each entry; None says that nothing has come for a moment.

        What an input that breaks off had before is read, and `broken` says why.
        """
        try:
            for piece in self._source.pieces():
                if not piece:
                    yield None
                yield from self._made(self._cutter.feed(piece))
        except InputBrokenError as error:
            # What comes behind the last line is not known: it may have no end.
            self.broken = error
            return
        yield from self._made(self._cutter.end())

    def _made(self, entries: Sequence[Entry]) -> Iterator[Made]:
        return (made_of(entry, self._form) for entry in entries if not entry.is_blank)


class Batcher:
    """Gathers batches as they may go."""

    def __init__(self, made: Iterator[Made | None], pace: Pace, waits: Waits, most: int) -> None:
        """Take what is read.

        Args:
            made: Entries in order; None where nothing has come for a moment.
            pace: How many may go.
            waits: What it waits by.
            most: The most events of a batch.
        """
        self._made, self._pace, self._waits = made, pace, waits
        self._kept: Made | None = None
        self._is_over = False
        self.most_events, self.most_bytes = most, MOST_BYTES

    def next(self) -> Batch:
        """Return the next batch; one without entries is the end."""
        now_s = self._waits.clock.monotonic_s
        self._waits.pause(self._pace.wait_s(now_s(), self.most_events))
        room = self._pace.room(now_s())
        most = self.most_events if room is None else max(1, min(room, self.most_events))
        taken, events, size, first_s = list[Made](), 0, 0, now_s()
        while not self._waits.is_stopped and events < most and len(taken) < MOST_ENTRIES:
            # What flows slowly is not to wait for a batch's worth of it.
            if taken and now_s() - first_s >= QUIET_S:
                break
            one = self._one()
            if one is None:
                if self._is_over:
                    break
                continue
            length = max(len(one.event), len(one.entry.raw)) + 1
            if taken and size + length > self.most_bytes:
                self._kept = one
                break
            if not taken:
                first_s = now_s()
            taken.append(one)
            events, size = events + bool(one.event), size + length
        self._pace.took(events)
        return Batch(taken)

    def smaller(self, batch: Batch, *, by_events: bool) -> None:
        """Say that a batch was too large for ingest.

        Args:
            batch: Which.
            by_events: It has too many events; else too many bytes, be it of one event.
        """
        if by_events:
            self.most_events = max(1, min(self.most_events, len(batch.sent) // 2))
        else:
            self.most_bytes = max(1, min(self.most_bytes, len(batch.body) // 2))

    def _one(self) -> Made | None:
        if self._kept is not None:
            one, self._kept = self._kept, None
            return one
        try:
            return next(self._made)
        except StopIteration:
            self._is_over = True
            return None
